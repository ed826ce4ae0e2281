package console

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/internal/parley"
)

func TestCostsAddUp(t *testing.T) {
	for _, c := range []struct {
		total parley.Money
		parts []parley.Money
		want  string
	}{
		{10_000, []parley.Money{5_000, 5_000}, "$0.01 $0.00"},
		{20_000, []parley.Money{13_000, 7_000}, "$0.01 $0.01"},
		{100_000, []parley.Money{33_333, 33_333, 33_334}, "$0.03 $0.03 $0.04"},
		{15_500, []parley.Money{12_500, 3_000, 0}, "$0.01 $0.01 $0.00"},
		{9_000, []parley.Money{7_500, 1_500}, "$0.0075 $0.0015"},
		{1_234_560_000, []parley.Money{1_234_000_000, 560_000}, "$1,234.00 $0.56"},
		{30_000, []parley.Money{10_000, 5_000}, "$0.01 $0.01"}, // the rest is shown nowhere
		{-25_000, []parley.Money{-20_000, -5_000}, "−$0.02 −$0.01"},
		{0, []parley.Money{20_000, -20_000}, "$0.02 −$0.02"},
		{0, nil, ""},
	} {
		if got := strings.Join(costTexts(c.total, c.parts), " "); got != c.want {
			t.Errorf("%v of %v: %q, want %q", c.parts, c.total, got, c.want)
		}
	}
	if got := strings.Join(minuteTexts(95, []int64{31, 31, 33}), " "); got != "0.5 0.5 0.6" || rounded(95, 6) != 96 {
		t.Errorf("minutes: %s", got)
	}
}

// What is shown of any parts adds up to what is shown of their total, and is less than a step from what they are.
func TestShownPartsAddUp(t *testing.T) {
	read := func(text string) parley.Money {
		m, err := parley.ParseMoney(strings.NewReplacer("−", "-", "$", "", ",", "").Replace(text))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		parts, total := make([]parley.Money, r.IntN(12)), parley.Money(0)
		for i := range parts {
			parts[i] = parley.Money(r.Int64N([]int64{1, 3_000, 30_000, 5_000_000}[r.IntN(4)]))
			if r.IntN(9) == 0 {
				parts[i] = -parts[i]
			}
			total += parts[i]
		}
		sum := parley.Money(0)
		texts := costTexts(total, parts)
		for i, text := range texts {
			shown := read(text)
			if off := shown - parts[i]; off <= -10_000 || off >= 10_000 {
				t.Fatalf("%v is shown as %s", parts[i], text)
			}
			sum += shown
		}
		if sum != read(dollars(total)) {
			t.Fatalf("%v are shown as %v, their total as %s", parts, texts, dollars(total))
		}
		seconds, all := make([]int64, len(parts)), int64(0)
		for i := range seconds {
			seconds[i] = r.Int64N(400)
			all += seconds[i]
		}
		tenths := int64(0)
		for _, text := range minuteTexts(all, seconds) {
			f, err := strconv.ParseInt(strings.Replace(text, ".", "", 1), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			tenths += f
		}
		if tenths != rounded(all, 6)/6 {
			t.Fatalf("%v seconds are %v minutes", all, tenths)
		}
	}
}

// A call's page shows costs that add up.
func TestCostsOfACallAddUp(t *testing.T) {
	h := open(t)
	u := h.user(t)
	c := h.called(t, u, h.caller(t, u, "Front desk"), func(c *parley.Call) {
		over(parley.CustomerHangup)(c)
		c.CarrierCost, c.AssistantCost, c.LegCost = 13_000, 13_000, 7_000
	})
	cells := h.signedIn(t, u).get("/calls/" + id(c.ID)).doc().Find("#facts dd.num").Map(textOfNode)
	var shown []string
	for _, cell := range cells {
		if first, _, _ := strings.Cut(strings.TrimSpace(cell), " "); strings.HasPrefix(first, "$") {
			shown = append(shown, strings.Fields(cell)[0])
		}
	}
	if want := []string{"$0.01", "$0.01", "$0.01", "$0.03"}; !slices.Equal(shown, want) {
		t.Errorf("shown: %v, want %v", shown, want)
	}
}
