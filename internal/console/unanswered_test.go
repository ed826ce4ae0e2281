package console

import (
	"context"
	"net/http"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
)

// A number that is called in vain is named on the overview, in the list and on its page, with the reason.
func TestUnansweredNumbersAreNamed(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	n := &parley.Number{PhoneNumber: "+14155550123", CountryCode: "US", Type: parley.NumberNormal, PaidUntil: parley.Now() + 1e12}
	shown := &parley.Number{PhoneNumber: "+14155550124", CountryCode: "US", Type: parley.NumberCallerID}
	if err := h.DB.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if err := tx.CreateNumber(ctx, u.ID, shown); err != nil {
			return err
		}
		return tx.CreateNumber(ctx, u.ID, n)
	}); err != nil {
		t.Fatal(err)
	}
	v.get("/").is(http.StatusOK).says(parley.FormatPhone(n.PhoneNumber)).says("it has no assistant.")
	if links := v.get("/").doc().Find("[data-unanswered] li").Length(); links != 1 {
		t.Errorf("%d numbers are named, not one", links)
	}
	v.get("/numbers").says("Not answered: it has no assistant")
	v.get("/numbers/" + id(n.ID)).says("are not answered: it has no assistant")

	a := h.assistant(t, u, "Front desk")
	for _, status := range []string{"inactive", "active"} {
		silent := status == "inactive"
		if _, err := h.Assistants.Update(t.Context(), u.ID, a.ID, treeOf(map[string]any{"type": "inbound", "status": status,
			"phone_number_id": n.ID})); err != nil {
			t.Fatal(err)
		}
		named := v.get("/").doc().Find("[data-unanswered]").Length() == 1
		if named != silent {
			t.Errorf("of an %s assistant's number: %v", status, named)
		}
		if silent {
			v.get("/").says("its assistant Front desk is inactive.")
		}
	}
}
