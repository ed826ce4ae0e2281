package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/api"
	"parley/internal/assistant"
	"parley/internal/egress"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/tool"
)

// When saved settings can't work here, a warning says how to fix them. Settings that work get no warning.
func TestWarnings(t *testing.T) {
	none, err := provider.Open(provider.All())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(none.Close)
	db := storetest.SQLite(t, rules)
	h := open(t, db, func(c *api.Config) {
		c.Assistants = &assistant.Studio{DB: db, Catalog: c.Catalog,
			Providers: none}
	})
	warned := func(a *answer, parts ...string) {
		t.Helper()
		list, _ := a.json()["warnings"].([]any)
		text := fmt.Sprint(list...)
		for _, p := range parts {
			if !strings.Contains(text, p) {
				t.Errorf("warnings %v lack %q", list, p)
			}
		}
		if len(parts) == 0 && len(list) > 0 {
			t.Errorf("warned of %v", list)
		}
	}
	// The models are listed, but nothing can open them.
	made := h.post("/user/assistant", h.assistantBody(), status(201))
	warned(made, "gpt-4o", "is not configured on this server")
	multi := map[string]any{"mode": "multimodal", "voice_id": h.voice("multimodal", 1),
		"multimodal_model_id": h.model("multimodal")}
	warned(h.post("/user/assistants", with(h.assistantBody(), multi), status(201)), "gpt-realtime",
		"is not configured on this server")
	at := fmt.Sprintf("/user/assistants/%d", id(made.json()["data"].(map[string]any)))
	warned(h.put(at, multi, status(200)), "gpt-realtime")
	dual := map[string]any{"mode": "dualplex", "voice_id": h.voice("dualplex", 1),
		"multimodal_model_id": h.model("dualplex")}
	warned(h.do("PATCH", at, dual, status(200)), "gpt-realtime")

	model := aitest.NewServer(t)
	model.Models = richModels
	working, _ := talking(t, storetest.SQLite(t, rules), nil)
	for _, v := range working.get("/user/assistants/voices?mode=pipeline&language_id=1").list() {
		if v["synthesizer_provider_id"] != json.Number("1") { // Flite, which is installed
			continue
		}
		for _, p := range working.get("/user/assistants/transcriber-providers?language_id=1").list() {
			if p["code"] == "pocketsphinx" {
				warned(working.post("/user/assistant",
					with(working.assistantBody(), map[string]any{"voice_id": v["id"],
						"transcriber_provider_id": p["id"]}), status(201)))
				return
			}
		}
	}
	t.Error("there is no local voice and ear")
}

// The same assistant is read, changed and deleted under both names.
func TestAssistantAliases(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		n := h.assistant(nil)
		one, many := fmt.Sprintf("/user/assistant/%d", n), fmt.Sprintf("/user/assistants/%d", n)
		for i, c := range []struct{ method, at string }{{"PUT", many}, {"PATCH", many}, {"PATCH", one}, {"PUT", one}} {
			name := fmt.Sprint("Name ", i)
			got := h.do(c.method, c.at, map[string]any{"name": name}, status(200)).json()
			if got["data"].(map[string]any)["name"] != name || h.get(many, status(200)).json()["name"] != name ||
				h.get(one).json()["name"] != name {
				t.Errorf("%s %s answered %v", c.method, c.at, got)
			}
		}
		h.delete(many, status(200)).is(`{"message":"Assistant deleted successfully"}`)
		h.get(one, status(404)).is(`{"message":"Assistant not found"}`)
	})
}

// A change of mode resets to the defaults whatever the new mode does not have.
func TestChangeOfMode(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		at := fmt.Sprintf("/user/assistant/%d", h.assistant(map[string]any{"fillers": 1, "backchannels": true,
			"allow_interruptions": false, "knowledgebase_mode": "prompt"}))
		whole := h.get(at).json()
		for name, v := range map[string]any{"mode": "multimodal", "voice_id": h.voice("multimodal", 1),
			"multimodal_model_id": h.model("multimodal")} {
			whole[name] = v
		}
		got := h.put(at, whole, status(200)).json()["data"].(map[string]any) // all that GET returned, with another mode
		if got["mode"] != "multimodal" || got["fillers"] != json.Number("0") || got["backchannels"] != false ||
			got["allow_interruptions"] != true || got["knowledgebase_mode"] != "function_call" {
			t.Errorf("%v", got)
		}
		h.put(at, map[string]any{"fillers": 1}, status(422)).fails("fillers")
		got = h.put(at, map[string]any{"mode": "pipeline", "voice_id": h.voice("pipeline", 1)},
			status(200)).json()["data"].(map[string]any)
		if got["multimodal_model_id"] != nil {
			t.Errorf("%v", got["multimodal_model_id"])
		}
	})
}

// A lead's further numbers are stored and shown, and replaced by PUT, at both of its addresses.
func TestLeadContactsOverHTTP(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(nil)
		l := h.post("/user/lead", map[string]any{"campaign_id": c, "phone_number": "+14155550101",
			"secondary_contacts": []any{map[string]any{"phone_number": "+1 (415) 555-0102",
				"variables": map[string]any{"name": "Bo", "n": 5}},
				map[string]any{"phone_number": "+14155550103"}}}, status(200)).json()["data"].(map[string]any)
		at := fmt.Sprintf("/leads/%d", id(l))
		const want = "[map[id:1 phone_number:+14155550102 status:created variables:map[n:5 name:Bo]] map[id:2 phone_number:+14155550103 " +
			"status:created variables:map[]]]"
		if fmt.Sprint(l["secondary_contacts"]) != want ||
			fmt.Sprint(h.get("/user"+at, status(200)).json()["secondary_contacts"]) != want {
			t.Errorf("%v", l)
		}
		if rows := h.get("/user/leads?page=1", status(200)).json()["data"].([]any); fmt.Sprint(
			rows[0].(map[string]any)["secondary_contacts"]) != want {
			t.Errorf("listed %v", rows)
		}
		h.post("/user/lead", map[string]any{"campaign_id": c, "phone_number": "+14155550109",
			"secondary_contacts": []any{map[string]any{"phone_number": "x"}, map[string]any{}}}).
			fails("secondary_contacts.0.phone_number", "secondary_contacts.1.phone_number")
		got := h.put(at, map[string]any{"secondary_contacts": []any{map[string]any{"phone_number": "+14155550104"}},
			"status": "reached-max-retries"}, status(200)).json()["data"].(map[string]any)
		if got["status"] != "reached-max-retries" || len(got["secondary_contacts"].([]any)) != 1 {
			t.Errorf("%v", got)
		}
		other := h.campaign(map[string]any{"name": "Autumn"})
		got = h.put(at, map[string]any{"campaign_id": other, "secondary_contacts": []any{}},
			status(200)).json()["data"].(map[string]any)
		if got["campaign_id"] != json.Number(fmt.Sprint(other)) || fmt.Sprint(got["secondary_contacts"]) != "[]" ||
			got["campaign"].(map[string]any)["name"] != "Autumn" {
			t.Errorf("%v", got)
		}
		h.put(at, map[string]any{"campaign_id": 99999}, status(404)).is(`{"message":"Campaign not found"}`)
		h.stranger().put(at, map[string]any{"campaign_id": c}, status(404)).is(`{"message":"Lead not found"}`)
		h.put(at, nil, anonymous, status(401))
		h.delete(at, status(200)).is(`{"message":"Lead deleted successfully"}`)
	})
}

// The list of conversations can be filtered by the customer and by the channel.
func TestConversationCustomers(t *testing.T) {
	eachTalking(t, func(t *testing.T, h *harness, model *aitest.Server) {
		aid, uuid := h.active(nil)
		h.converse(uuid)
		ids := map[string]string{}
		for _, name := range []string{"+12025550123", "customer-7"} {
			got := h.post("/user/ai/generate-reply",
				map[string]any{"assistant_id": aid, "customer_identifier": name, "message": "Hi"}, status(200)).json()
			ids[name] = got["conversation_id"].(string)
			history := h.get("/user/conversations/"+ids[name], status(200)).json()["history"].([]any)
			// the initial message was sent to nobody
			if len(history) != 2 || history[0].(map[string]any)["content"] != "Hi" {
				t.Errorf("history %v", history)
			}
		}
		h.write(func(ctx context.Context, tx *store.Tx) error {
			return tx.KeepWhatsAppSenders(ctx, []parley.WhatsAppSender{{GraphID: "1", PhoneNumber: "+16315558151",
				DisplayName: "Acme", Status: parley.SenderOnline, QualityRating: "GREEN"}})
		})
		h.write(func(ctx context.Context, tx *store.Tx) error {
			all, err := tx.AllWhatsAppSenders(ctx)
			if err != nil {
				return err
			}
			if err := tx.AssignWhatsAppSender(ctx, all[0].ID, h.user.ID); err != nil {
				return err
			}
			_, err = tx.AddWhatsAppMessage(ctx, h.user.ID,
				&parley.WhatsAppMessage{SenderID: all[0].ID, ConversationID: ids["customer-7"], Inbound: true,
					Phone: "+12025550123", Status: parley.WhatsAppReceived})
			return err
		})
		for query, want := range map[string]string{"customer_phone=%2B12025550123": ids["+12025550123"],
			"customer_phone=12025550123":                                   ids["+12025550123"],
			"external_identifier=customer-7":                               ids["customer-7"],
			"external_identifier=customer-7&customer_phone=%2B12025550123": "", "customer_phone=%2B12025550199": "",
			"whatsapp_sender_phone=%2B16315558151": ids["customer-7"], "whatsapp_sender_phone=%2B16315558152": ""} {
			rows := h.get("/user/conversations?"+query, status(200)).json()["data"].([]any)
			got := ""
			for _, r := range rows {
				got += r.(map[string]any)["id"].(string)
			}
			if got != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
		}
		if rows := h.stranger().get("/user/conversations?whatsapp_sender_phone=%2B16315558151",
			status(200)).json()["data"].([]any); len(rows) != 0 {
			t.Errorf("a stranger sees %v", rows)
		}
	})
}

// When the model fails on a message, its owner is told why, and nobody else.
func TestFailedMessageIsTold(t *testing.T) {
	eachTalking(t, func(t *testing.T, h *harness, model *aitest.Server) {
		_, uuid := h.active(nil)
		conversation := h.converse(uuid)
		model.Script(aitest.Behaviour{Status: 401, Message: "sk-secret is wrong"})
		h.post("/conversations/"+conversation+"/messages", map[string]any{"message": "Hi"}, anonymous, status(502))
		history := h.get("/user/conversations/"+conversation, status(200)).json()["history"].([]any)
		asked := history[len(history)-1].(map[string]any)
		if text, _ := asked["error"].(string); !strings.HasPrefix(text, "The model failed: ") ||
			strings.Contains(text, "sk-secret") {
			t.Errorf("%v", asked)
		}
		if public := h.get("/conversations/"+conversation, anonymous,
			status(200)); strings.Contains(string(public.body), "The model failed") {
			t.Errorf("the visitor is told %s", public.body)
		}
	})
}

// A number that was not searched for is looked up. A number whose assistant is inactive says so.
func TestNumberWithoutASearch(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		shown := h.get("/user/phone-numbers/search?country_code=GB",
			status(200)).json()["data"].([]any)[0].(map[string]any)
		other := h.stranger()
		h.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Post(ctx, other.user.ID, &parley.LedgerEntry{Kind: parley.Credit, Amount: 5 * parley.USD,
				Reference: "start"})
			return err
		})
		buy := map[string]any{"phone_number": shown["phone_number"]}
		n := other.post("/user/phone-numbers/purchase", buy, status(201)).json()["data"].(map[string]any)
		if n["phone_number"] != shown["phone_number"] || n["country_code"] != "GB" || n["assistant_status"] != nil {
			t.Errorf("%v", n)
		}
		if u, err := h.db.User(t.Context(), other.user.ID); err != nil || u.Balance >= 5*parley.USD {
			t.Errorf("nothing was paid: %v, %v", u.Balance, err)
		}
		h.post("/user/phone-numbers/purchase", buy, status(400)) // it is taken by now
		for _, no := range []string{"+14155559876", "+442079460000000", "+4915112345678", "x"} {
			other.post("/user/phone-numbers/purchase", map[string]any{"phone_number": no}, status(400))
		}
		a := other.assistant(map[string]any{"phone_number_id": id(n), "status": "inactive"})
		for _, want := range []string{"inactive", "active"} {
			other.put(fmt.Sprintf("/user/assistants/%d", a), map[string]any{"status": want}, status(200))
			row := other.get("/user/phone-numbers/all", status(200)).json()["data"].([]any)[0].(map[string]any)
			if row["assistant_status"] != want || row["assistant_name"] != "Desk" {
				t.Errorf("%v, want %s", row, want)
			}
			if row := other.get("/user/assistants/phone-numbers",
				status(200)).list()[0]; row["assistant_status"] != want ||
				row["assistant_id"] != json.Number(fmt.Sprint(a)) {
				t.Errorf("%v, want %s", row, want)
			}
		}
	})
}

// A tool is tested with the variables that a conversation would have.
func TestToolTestVariables(t *testing.T) {
	var seen string
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.URL.RawQuery
		io.WriteString(w, "ok")
	}))
	t.Cleanup(far.Close)
	guard := egress.New(nil, netip.MustParsePrefix("127.0.0.0/8"))
	t.Cleanup(guard.Close)
	h := lite(t, func(c *api.Config) { c.Assistants.Tools = tool.New(guard) })
	n := h.tool(map[string]any{"name": "look_up", "method": "GET", "schema": []any{},
		"endpoint": far.URL + "/?d={{current_date}}&w={{current_weekday}}&a={{assistant_name}}&own={{own}}&c={{customer_phone}}"})
	try := fmt.Sprintf("/user/tools/%d/test", n)
	today := func() string { return "d=" + time.Now().UTC().Format(time.DateOnly) }
	h.post(try, map[string]any{}, status(200))
	if !strings.HasPrefix(seen, "d=20") || !strings.Contains(seen, "day&a=&own=&c=") {
		t.Errorf("without an assistant it was asked %s", seen)
	}
	first := h.assistant(map[string]any{"name": "Anna", "timezone": "UTC", "tool_ids": []any{n},
		"variables": map[string]any{"own": "1"}})
	other := h.assistant(map[string]any{"name": "Bo", "timezone": "UTC"})
	before := today()
	h.post(try, map[string]any{"variables": map[string]any{"customer_phone": "+1"}}, status(200))
	if !strings.HasPrefix(seen, before) && !strings.HasPrefix(seen, today()) ||
		!strings.Contains(seen, "a=Anna&own=1&c=%2B1") {
		t.Errorf("with assistant %d it was asked %s", first, seen)
	}
	h.post(try, map[string]any{"assistant_id": other, "variables": map[string]any{"own": "2"}}, status(200))
	if !strings.Contains(seen, "a=Bo&own=2&c=") {
		t.Errorf("with the other it was asked %s", seen)
	}
	h.post(try, map[string]any{"assistant_id": 99999}, status(404)).is(`{"message":"Assistant not found"}`)
}
