package console

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"parley/internal/alert"
	"parley/internal/parley"
	"parley/internal/store"
)

// Viewers and agents don't see in the console what the API keeps from them: addresses of webhooks, what was delivered there, SIP
// messages, and the values of a trunk's SIP headers.
func TestSecretsOfPages(t *testing.T) {
	h := open(t, withCampaigns)
	u := h.user(t)
	const token = "sesame"
	made, err := alert.Create(t.Context(), h.DB, u.ID, map[string]any{"name": "Slow", "kind": "latency_p90",
		"threshold": json.Number("2000"), "webhook": true})
	if err != nil {
		t.Fatal(err)
	}
	trunk := &parley.Trunk{Name: "PBX", SIPAddress: "pbx.example.com", Transport: "udp", PhoneNumber: "+4930901820",
		SRTP: "off", InboundAuthorizationType: "auth", AllowedInboundIPs: []string{}, SIPHeaders: map[string]string{"X-Token": token}}
	err = h.DB.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if err := tx.SetWebhookURL(ctx, u.ID, "https://example.com/?token="+token); err != nil {
			return err
		}
		return tx.CreateTrunk(ctx, u.ID, trunk)
	})
	if err != nil {
		t.Fatal(err)
	}
	one, err := h.DB.User(t.Context(), u.ID)
	if err != nil {
		t.Fatal(err)
	}
	for role, sees := range map[parley.Role]bool{parley.RoleViewer: false, parley.RoleAgent: false, parley.RoleEditor: true} {
		v := h.in(t, h.member(t, one, role))
		for _, page := range []string{alertPath(made.ID), "/trunks/" + strconv.FormatInt(trunk.ID, 10)} {
			if body := v.get(page).is(200).body; strings.Contains(body, token) != sees {
				t.Errorf("%s: %s sees the token: %v", page, role, !sees)
			}
		}
	}
}
