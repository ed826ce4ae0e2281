package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/internal/auth"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// entries are the audit log's, newest first.
func (h *harness) entries(query string) (list []parley.AuditEntry) {
	h.Helper()
	raw, err := json.Marshal(h.get("/user/audit?per_page=100"+query, status(200)).json()["data"])
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		h.Fatal(err)
	}
	return list
}

func TestAuditOfRequests(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		is := func(want string) {
			t.Helper()
			e := h.entries("")[0]
			if got := strings.TrimSpace(fmt.Sprintf("%s %s %s %s: %s", e.Action, e.Kind, e.ThingID, e.Name, e.Summary())); got != want {
				t.Errorf("the last entry is %q, want %q", got, want)
			}
			if !strings.HasPrefix(e.Who, "key:") || !strings.HasPrefix(e.WhoName, "Ana (API key “") || e.Address != "127.0.0.1" {
				t.Errorf("it was %+v", e)
			}
		}
		tool := with(toolBody(), map[string]any{"name": "find", "headers": []any{map[string]any{"name": "X-Key", "value": "s3cret"}}})
		id := fmt.Sprint(h.post("/user/tools", tool, status(201)).json()["data"].(map[string]any)["id"])
		is("created tool " + id + " find:")
		at := "/user/tools/" + id
		h.put(at, map[string]any{"description": "Other words.", "timeout": 7, "endpoint": "https://example.com/s3cret",
			"headers": []any{map[string]any{"name": "X-Key", "value": "s3cret2"}}}, status(200))
		is(fmt.Sprintf("changed tool %s find: description: %s → Other words., endpoint, headers, timeout: 10 → 7", id, tool["description"]))
		n := len(h.entries(""))
		h.put(at, map[string]any{"timeout": 7}, status(200))
		h.put(at, map[string]any{"timeout": 7000}, status(422))
		h.put("/user/tools/999999", map[string]any{"timeout": 8}, status(404))
		h.get(at, status(200))
		if now := len(h.entries("")); now != n {
			t.Errorf("%d entries for what changed nothing, failed or only read", now-n)
		}
		h.delete(at, status(200))
		is("deleted tool " + id + " find:")

		a := h.assistant(nil)
		h.put(fmt.Sprint("/user/assistant/", a), map[string]any{"system_prompt": "Say s3cret.", "name": "Door"}, status(200))
		is(fmt.Sprintf("changed assistant %d Door: name: Desk → Door, system_prompt", a))
		h.put(fmt.Sprintf("/user/assistants/%d/draft", a), map[string]any{"name": "Gate"}, status(200))
		is(fmt.Sprintf("created assistant_draft %d Gate: name: Door → Gate", a))
		h.put("/user/me", map[string]any{"timezone": "Europe/Lisbon"}, status(200))
		is(`changed account  Ana: country: "" → PT, timezone: UTC → Europe/Lisbon`)
		if raw := h.get("/user/audit?per_page=100", status(200)).body; strings.Contains(string(raw), "s3cret") {
			t.Errorf("a secret is in the log: %s", raw)
		}
	})
}

// The filters are those of who, kind and days; somebody else's log is their own.
func TestAuditFilters(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		other := storetest.User(t, h.db, 0)
		n := 0
		add := func(userID int64, who string) {
			n++
			err := h.db.Write(store.By(t.Context(), store.Actor{UserID: userID, Who: who, Name: who}),
				func(ctx context.Context, tx *store.Tx) error {
					return tx.CreateTool(ctx, userID, &parley.Tool{Name: "t" + strings.Repeat("x", n)})
				})
			if err != nil {
				t.Fatal(err)
			}
		}
		add(h.user.ID, "owner")
		add(h.user.ID, "key:7")
		add(h.user.ID, "key:7")
		add(other.ID, "owner")
		today := time.Now().UTC().Format(time.DateOnly)
		for query, n := range map[string]int{"": 3, "&who=owner": 1, "&who=key:7": 2, "&kind=tool": 3, "&kind=trunk": 0,
			"&kind=tool&who=key:7": 2, "&who=member:1": 0, "&date_from=" + today: 3, "&date_to=2020-01-01": 0,
			"&date_from=2999-01-01": 0, "&date_to=2999-01-01": 3} {
			if list := h.entries(query); len(list) != n {
				t.Errorf("%s: %d entries, want %d", query, len(list), n)
			}
		}
		h.get("/user/audit?kind=nothing", status(422)).fails("kind")
		page := h.get("/user/audit?per_page=2&page=2&who=key:7", status(200)).json()
		if page["total"] != json.Number("2") {
			t.Errorf("total %v", page["total"])
		}
		if rows := h.sheet("audit.csv?who=key:7"); len(rows) != 3 || rows[1][2] != "key:7" || rows[1][5] != "created" {
			t.Errorf("CSV: %v", rows)
		}
	})
}

// Nothing of a customer stays in the log, so that erasing one erases them.
func TestAuditOfCustomers(t *testing.T) {
	h := lite(t, nil)
	lead := h.lead(h.campaign(nil), "+12025550123")
	h.put(fmt.Sprint("/user/leads/", lead), map[string]any{"variables": map[string]any{"name": "Carla"}}, status(200))
	if e := h.entries("")[0]; e.Kind != parley.AuditLead || e.ThingID != fmt.Sprint(lead) || e.Summary() != "variables" {
		t.Errorf("%+v", e)
	}
	h.put(fmt.Sprint("/user/leads/", lead), map[string]any{"phone_number": "+12025550124"}, status(200))
	if e := h.entries("")[0]; e.Summary() != "phone_number" {
		t.Errorf("%+v", e)
	}
	h.post("/user/blacklist", map[string]any{"phone_number": "+12025550123", "name": "Carla"}, status(201))
	h.delete("/user/customers/+12025550123", status(200))
	if e := h.entries("")[0]; e.Kind != parley.AuditCustomer || e.Action != parley.AuditDeleted {
		t.Errorf("%+v", e)
	}
	raw := h.get("/user/audit?per_page=100", status(200)).body
	for _, text := range []string{"Carla", "2025550123", "2025550124"} {
		if strings.Contains(string(raw), text) {
			t.Errorf("%s is in the log: %s", text, raw)
		}
	}
}

// Changes in a session are those of its owner or member; who accepts an invitation is named by its address.
func TestAuditOfPeople(t *testing.T) {
	h := lite(t, nil)
	change := func(who *auth.Who) {
		t.Helper()
		token := h.credential(who, "session", "")
		h.put("/user/me", map[string]any{"name": "New"}, status(200), header("Authorization", "Bearer "+token))
	}
	change(&auth.Who{User: h.user})
	if e := h.entries("")[0]; e.Who != "owner" || e.WhoName != "Ana" || e.Kind != parley.AuditAccount || e.Summary() != "name: Ana → New" {
		t.Errorf("%+v", e)
	}
	who := h.member(parley.RoleEditor)
	if list := h.entries("&kind=member"); len(list) != 1 || !strings.HasPrefix(list[0].Who, "invitation:") || list[0].Address != "192.0.2.1" ||
		list[0].Action != parley.AuditCreated || list[0].Name != "Mo" {
		t.Errorf("%+v", list)
	}
	change(who)
	if e := h.entries("")[0]; e.Who != fmt.Sprint("member:", who.Member.ID) || e.WhoName != "Mo" || e.Kind != parley.AuditMember ||
		e.Summary() != "name: Mo → New" {
		t.Errorf("%+v", e)
	}
	link, err := h.authority.ResetPassword(t.Context(), &auth.Who{User: h.user}, who.Member.ID, "")
	if err == nil {
		err = h.authority.SetForgotten(t.Context(), "192.0.2.9", link.Token, "another correct horse")
	}
	if err != nil {
		t.Fatal(err)
	}
	if e := h.entries("")[0]; e.Who != fmt.Sprint("member:", who.Member.ID) || e.Address != "192.0.2.9" || e.Summary() != "password" {
		t.Errorf("%+v", e)
	}
}
