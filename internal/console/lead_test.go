package console

import (
	"fmt"
	"net/http"
	"testing"

	"parley/internal/campaign"
	"parley/internal/parley"
	"parley/internal/store"
)

// A lead is added and changed by hand; what is wrong stands beside its field, and nobody else gets at it.
func TestLeadByHand(t *testing.T) {
	h := open(t, withCampaigns)
	u := h.user(t)
	v := h.signedIn(t, u)
	a := h.assistant(t, u, "Caller")
	if _, err := h.Assistants.Update(t.Context(), u.ID, a.ID, treeOf(map[string]any{"type": "outbound",
		"variables": map[string]any{"company": "Acme", "customer_name": ""}})); err != nil {
		t.Fatal(err)
	}
	c, err := h.Campaigns.Create(t.Context(), u, treeOf(map[string]any{"name": "Spring", "assistant_id": a.ID}))
	if err != nil {
		t.Fatal(err)
	}
	at := "/campaigns/" + id(c.ID)
	if v.get(at).doc().Find(`a[href="`+at+`/leads/new"]`).Length() != 1 {
		t.Error("the campaign's page leads to no new lead")
	}
	form := v.get(at + "/leads/new").form(at + "/leads/new")
	if form.Get("variables.0.key") != "company" || form.Get("variables.1.key") != "customer_name" {
		t.Errorf("the assistant's variables are not asked for: %v", form)
	}
	form.Set("phone_number", "12")
	v.post(at+"/leads/new", form).is(http.StatusUnprocessableEntity).says("Not saved")
	form.Set("phone_number", "+1 415 555 0123")
	form.Set("variables.1.value", "Ana")
	v.post(at+"/leads/new", form).moved(at + "?done=saved")
	v.post(at+"/leads/new", form).is(http.StatusUnprocessableEntity) // twice
	list, _, err := h.DB.Leads(t.Context(), u.ID, store.LeadFilter{CampaignID: c.ID}, store.Page{Number: 1, Size: 10})
	if err != nil || len(list) != 1 || list[0].PhoneNumber != "+14155550123" ||
		len(list[0].Variables) != 1 || list[0].Variables["customer_name"] != "Ana" {
		t.Fatalf("%+v %v", list, err)
	}
	one := at + "/leads/" + id(list[0].ID)
	form = v.get(one).form(one)
	form.Set("phone_number", "+14155550124")
	form.Set("variables.0.value", "Ben")
	v.post(one, form).moved(at + "?done=saved")
	l, err := h.DB.Lead(t.Context(), u.ID, list[0].ID)
	if err != nil || l.PhoneNumber != "+14155550124" || l.Variables["customer_name"] != "Ben" || l.Status != parley.LeadCreated {
		t.Errorf("%+v %v", l, err)
	}
	// A row that is removed is a variable that goes; what somebody else added meanwhile stays.
	if _, err := h.Campaigns.ChangeLead(t.Context(), u.ID, l.ID,
		campaign.LeadChange{Variables: map[string]string{"city": "Rome"}}); err != nil {
		t.Fatal(err)
	}
	form = v.get(one).form(one)
	if _, err := h.Campaigns.ChangeLead(t.Context(), u.ID, l.ID,
		campaign.LeadChange{Variables: map[string]string{"late": "yes"}}); err != nil {
		t.Fatal(err)
	}
	form.Del("variables.0.key") // city
	form.Del("variables.0.value")
	v.post(one, form).moved(at + "?done=saved")
	if l, err = h.DB.Lead(t.Context(), u.ID, l.ID); err != nil || fmt.Sprint(l.Variables) != "map[customer_name:Ben late:yes]" {
		t.Errorf("%+v %v", l.Variables, err)
	}
	other := h.signedIn(t, h.user(t))
	other.get(one).is(http.StatusNotFound)
	other.post(one, form).is(http.StatusNotFound)
}
