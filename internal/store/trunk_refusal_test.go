package store_test

import (
	"context"
	"fmt"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// The latest refusals of each trunk are kept, few of each stranger, and those of trunks that are gone are not.
func TestRefusals(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		user, stranger := storetest.User(t, db, 0).ID, storetest.User(t, db, 0).ID
		made := func(number string) int64 {
			in := &parley.Trunk{Name: "t", PhoneNumber: number, SIPAddress: "192.0.2.1", Transport: "udp", AllowedInboundIPs: []string{}}
			write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.CreateTrunk(ctx, user, in) })
			return in.ID
		}
		a, b := made("+4930901820"), made("+4930901821")
		keep := func(list ...parley.TrunkRefusal) {
			write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.KeepRefusals(ctx, list) })
		}
		of := func(trunk int64) (texts []string) {
			list, err := db.TrunkRefusals(t.Context(), user, trunk)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range list {
				texts = append(texts, r.Text)
			}
			return texts
		}
		keep(parley.TrunkRefusal{TrunkID: b, At: 1, Text: "b", Caller: "+12025550177"}, parley.TrunkRefusal{TrunkID: 999, Text: "gone"})
		for i := range 40 {
			keep(parley.TrunkRefusal{TrunkID: a, At: parley.Time(i), Known: true, Place: "p", Text: fmt.Sprint("own", i)},
				parley.TrunkRefusal{TrunkID: a, At: parley.Time(i), Place: "one", Text: fmt.Sprint("one", i)},
				parley.TrunkRefusal{TrunkID: a, At: parley.Time(i), Place: fmt.Sprint(i), Text: fmt.Sprint("many", i)})
		}
		n := map[string]int{}
		for _, text := range of(a) {
			n[text[:3]]++
		}
		if n["own"] != parley.MaxRefusals || n["one"] != parley.MaxRefusalsOfPlace ||
			n["man"] != parley.MaxRefusals-parley.MaxRefusalsOfPlace {
			t.Errorf("kept %v", n)
		}
		if got := of(a)[0]; got != "many39" {
			t.Errorf("the last one is %s", got)
		}
		if got := fmt.Sprint(of(b)); got != "[b]" {
			t.Errorf("of the other trunk %s", got)
		}
		if _, err := db.TrunkRefusals(t.Context(), stranger, a); !store.IsNotFound(err) {
			t.Errorf("a stranger gets %v", err)
		}
		write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.EraseRefusals(ctx, stranger, "+12025550177") })
		if len(of(b)) != 1 {
			t.Error("a stranger erased a caller")
		}
		write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.EraseRefusals(ctx, user, "+12025550177") })
		write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.ForgetRefusals(ctx, 39) })
		if len(of(b)) != 0 || len(of(a)) != 3 {
			t.Errorf("after all that %v and %v", of(a), of(b))
		}
	})
}
