package assistant_test

import (
	"context"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// A number has one assistant: giving it to another assistant takes it from the first, and if that is refused the first
// keeps it.
func TestAnswerNumber(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, 0)
		d := studio(t, db)
		n := &parley.Number{PhoneNumber: "+14155552671", CountryCode: "US", Type: parley.NumberSIP}
		if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			return tx.CreateNumber(ctx, u.ID, n)
		}); err != nil {
			t.Fatal(err)
		}
		person := func(kind string) int64 {
			a, err := d.Create(t.Context(), u.ID, body(d, `{"type":%q}`, kind))
			if err != nil {
				t.Fatal(err)
			}
			return a.ID
		}
		day, night, caller := person("inbound"), person("inbound"), person("outbound")
		is := func(want int64) {
			t.Helper()
			answered, err := db.AnsweredNumbers(t.Context(), u.ID)
			if got := answered[n.ID]; err != nil || got != want {
				t.Errorf("%d answers it, %v, want %d", got, err, want)
			}
		}
		answer := func(number int64, id *int64) error {
			return db.Write(t.Context(), d.AnswerNumber(u.ID, number, id))
		}
		give := func(id *int64) error { return answer(n.ID, id) }
		for _, id := range []int64{day, night, night} {
			if err := give(&id); err != nil {
				t.Fatal(err)
			}
			is(id)
		}
		unknown := int64(1 << 40)
		for _, id := range []int64{caller, unknown} {
			fails(t, give(&id), "assistant_id")
			is(night)
		}
		if err := give(nil); err != nil {
			t.Fatal(err)
		}
		is(0)
		if err := give(&night); err != nil {
			t.Fatal(err)
		}
		if err := answer(unknown, &day); err == nil {
			t.Error("nobody's number is answered")
		}
		is(night)
	})
}
