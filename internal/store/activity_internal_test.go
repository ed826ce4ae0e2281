package store

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/internal/parley"
)

// Packed counts are read back as they were. Data that was cut or changed gives an error or other numbers, never a panic.
func TestPack(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	a, want := &activity{}, map[parley.ActivityKey]parley.Counts{}
	for range 2000 {
		k := parley.ActivityKey{Quarter: rnd.Int64N(24), AssistantID: rnd.Int64N(4), NumberID: rnd.Int64N(2) * (1 << 40),
			CampaignID: rnd.Int64N(2), Channel: []string{"inbound", "web"}[rnd.IntN(2)]}
		n := parley.Counts{"calls": 1, "cost": rnd.Int64N(100) - 50, "reason:" + strconv.Itoa(rnd.IntN(20)): 1}
		a.add(k, n)
		if want[k] == nil {
			want[k] = parley.Counts{}
		}
		for name, v := range n {
			want[k][name] += v
		}
	}
	b := a.pack()
	back, err := unpack(b)
	if err != nil {
		t.Fatal(err)
	}
	got := map[parley.ActivityKey]parley.Counts{}
	for _, c := range back.cells {
		got[c.key] = parley.Counts{}
		for _, n := range c.counts {
			got[c.key][back.names[n.name]] = n.n
		}
	}
	for k := range want { // a sum of zero may be there or not
		for name, v := range want[k] {
			if v == 0 {
				delete(want[k], name)
				delete(got[k], name)
			}
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%.2000s", d)
	}
	for range 5000 {
		cut := append([]byte(nil), b[:rnd.IntN(len(b))]...)
		if len(cut) > 0 {
			cut[rnd.IntN(len(cut))] ^= byte(rnd.IntN(256))
		}
		unpack(cut)
	}
	if _, err := unpack(b[:len(b)-1]); err == nil {
		t.Error("half a row is read")
	}
}
