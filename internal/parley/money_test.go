package parley_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"parley/internal/parley"
)

func TestParseMoney(t *testing.T) {
	for text, want := range map[string]parley.Money{
		"0": 0, "1": parley.USD, "12.5": 12_500_000, "0.000001": 1, "-0.01": -10_000, "0.0000004": 0,
		"0.0000005": 1, "-0.0000005": -1,
		"0.9999995": parley.USD, "999999999999": 999_999_999_999 * parley.USD, "5.": 5 * parley.USD,
		".5": parley.USD / 2, "007": 7 * parley.USD,
		"0.00000149999": 1,
	} {
		if got, err := parley.ParseMoney(text); err != nil || got != want {
			t.Errorf("%q is %d, want %d: %v", text, got, want, err)
		}
	}
	for _, text := range []string{"", ".", "-", "--1", "+1", "1e3", "1,5", "0x1", " 1", "1 ", "1.2.3", "NaN", "$1",
		"1.0000000x", "١", "1234567890123", "999999999999.9999999", "1.-5"} {
		if got, err := parley.ParseMoney(text); err == nil {
			t.Errorf("%q was read as %d", text, got)
		}
	}
}

func TestMoneyIsWritten(t *testing.T) {
	for m, want := range map[parley.Money][2]string{ // for people, in JSON
		0: {"0.00", "0"}, 1: {"0.000001", "0.000001"}, 10_000: {"0.01", "0.01"}, 7_500: {"0.0075", "0.0075"},
		12_500_000: {"12.50", "12.5"},
		parley.USD: {"1.00", "1"}, -parley.USD / 4: {"-0.25", "-0.25"}, 100 * parley.USD: {"100.00", "100"},
		math.MinInt64: {"-9223372036854.775808", "-9223372036854.775808"},
	} {
		b, err := json.Marshal(m)
		if m.String() != want[0] || string(b) != want[1] || err != nil {
			t.Errorf("%d is %s and %s, want %v", int64(m), m, b, want)
		}
	}
}

func TestMoneyMulRatio(t *testing.T) {
	for _, c := range []struct {
		m        parley.Money
		num, den int64
		want     parley.Money
	}{
		{60_000, 1, 60, 1000}, {1, 1, 2, 1}, {1, 1, 3, 0}, {3, 1, 2, 2}, {-3, 1, 2, -2}, {3, -1, 2, -2},
		{-3, -1, 2, 2}, {0, 7, 9, 0},
		{10_000, 61_500, 60_000, 10_250}, {parley.USD, 3600_000, 60_000, 60 * parley.USD},
		{100 * parley.USD, 3600_000, 1000, 360_000 * parley.USD},
	} {
		if got := c.m.MulRatio(c.num, c.den); got != c.want {
			t.Errorf("%d * %d / %d is %d, want %d", c.m, c.num, c.den, got, c.want)
		}
	}
}

func FuzzMoney(f *testing.F) {
	for _, s := range []string{"0", "12.5", "-0.0000005", "999999999999.9999999", ".", "1e9", "--1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := parley.ParseMoney(s)
		if err != nil {
			return
		}
		if strings.Trim(s, "0123456789.-") != "" {
			t.Errorf("%q was read as %s", s, m)
		}
		for _, text := range []string{m.String(), string(must(json.Marshal(m)))} {
			if again, err := parley.ParseMoney(text); err != nil || again != m {
				t.Errorf("%q is %d, written %q, read again %d: %v", s, m, text, again, err)
			}
		}
		var back parley.Money
		if err := json.Unmarshal(must(json.Marshal(m)), &back); err != nil || back != m {
			t.Errorf("%d came back as %d: %v", m, back, err)
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
