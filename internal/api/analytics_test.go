package api_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/internal/parley"
	"parley/internal/search"
	"parley/internal/store"
)

// held stores a call that is over.
func (h *harness) held(assistant int64, change func(*parley.Call)) *parley.Call {
	h.Helper()
	now, from := parley.DateTime(parley.Now()), "+14155552671"
	c := &parley.Call{AssistantID: assistant, Type: parley.CallInbound, Status: parley.CallCompleted, AnsweredAt: now, EndedAt: now,
		EndedReason: parley.CustomerHangup, AnsweredBy: parley.AnsweredHuman, CustomerPhone: &from, Duration: 90,
		AssistantCost: parley.USD / 4, Turns: []parley.CallTurn{{Speaker: parley.SpeakerCustomer, Text: "I want a refund <now>."},
			{Speaker: parley.SpeakerAssistant, Text: "Sure.", Latency: &parley.Latency{FirstPacketMS: 800}}}}
	change(c)
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateCall(ctx, h.user.ID, c) })
	return c
}

func TestAnalytics(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		a := h.assistant(nil)
		h.held(a, func(c *parley.Call) {})
		h.held(a, func(c *parley.Call) {
			c.Status, c.EndedReason, c.AnsweredAt, c.AnsweredBy, c.AssistantCost, c.Turns = parley.CallFailed, parley.Unreachable, 0, "", 0, nil
		})
		h.held(a, func(c *parley.Call) { c.Test = true })
		got := h.get("/user/analytics?range=today", status(200)).json()
		total := got["total"].(map[string]any)
		if got := fmt.Sprintln(total["calls"], total["cost"], total["success_rate"], total["minutes"],
			total["failed"]); got != "2 0.25 0.5 3 1\n" {
			t.Errorf("%v", total)
		}
		if n := len(got["days"].([]any)); n != 1 {
			t.Errorf("%d days", n)
		}
		if rows := got["assistants"].([]any); len(rows) != 1 || fmt.Sprint(rows[0].(map[string]any)["id"]) != fmt.Sprint(a) {
			t.Errorf("%v", rows)
		}
		if p, err := got["latency_ms"].(map[string]any)["p95"].(json.Number).Int64(); p < 784 || p > 816 || err != nil {
			t.Errorf("p95 is %v", p)
		}
		for path, calls := range map[string]int{"?range=yesterday": 0, "": 2, "?channel=inbound": 2, "?channel=web": 0,
			fmt.Sprintf("?assistant_id=%d&range=90d", a): 2, "?phone_number_id=5": 0} {
			if n := h.get("/user/analytics"+path, status(200)).json()["total"].(map[string]any)["calls"]; fmt.Sprint(n) != fmt.Sprint(calls) {
				t.Errorf("%s: %v calls", path, n)
			}
		}
		h.get("/user/analytics?assistant_id=999999", status(404))
		h.get("/user/analytics?range=week", status(422)).fails("range")
		h.get("/user/analytics?date_from=2020-01-01&date_to=2025-01-01", status(422)).fails("date_to")
		if n := h.stranger().get("/user/analytics", status(200)).json()["total"].(map[string]any)["calls"]; fmt.Sprint(n) != "0" {
			t.Errorf("a stranger sees %v calls", n)
		}

		// The lists behind the figures.
		for filter, n := range map[string]int{"": 3, "test=false": 2, "test=true": 1, "answered_by=nobody": 1,
			"answered_by=human&test=false": 1, "ended_reason=unreachable": 1, "slower_than_ms=799&test=0": 1, "slower_than_ms=800": 0,
			"sentiment=positive": 0, "search=refunds&test=false": 0} {
			if got := h.get("/user/calls?"+filter, status(200)).json()["total"]; fmt.Sprint(got) != fmt.Sprint(n) {
				t.Errorf("%s: %v calls, not %v", filter, got, n)
			}
		}
		if err := search.IndexTranscripts(t.Context(), h.db); err != nil {
			t.Fatal(err)
		}
		found := h.get("/user/calls?search=refunds&test=false", status(200)).json()
		if fmt.Sprint(found["total"]) != "1" {
			t.Fatalf("%v", found)
		}
		if p := found["data"].([]any)[0].(map[string]any)["snippet"].([]any); fmt.Sprint(p[1]) != "map[match:true text:refund]" {
			t.Errorf("%v", p)
		}
		if n := h.stranger().get("/user/calls?search=refund", status(200)).json()["total"]; fmt.Sprint(n) != "0" {
			t.Errorf("a stranger finds %v", n)
		}
	})
}

// sheet reads a list as CSV.
func (h *harness) sheet(path string) [][]string {
	h.Helper()
	req, err := http.NewRequestWithContext(h.Context(), "GET", h.url+"/api/user/"+path, nil)
	if err != nil {
		h.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.Fatal(err)
	}
	defer res.Body.Close()
	if kind := res.Header.Get("Content-Type"); res.StatusCode != 200 || kind != "text/csv; charset=utf-8" {
		raw, _ := io.ReadAll(res.Body)
		h.Fatalf("%s: %d %s: %.200s", path, res.StatusCode, kind, raw)
	}
	rows, err := csv.NewReader(res.Body).ReadAll()
	if err != nil || len(rows) == 0 {
		h.Fatalf("%s: %v", path, err)
	}
	return rows
}

func TestSheets(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.put("/user/me", map[string]any{"timezone": "Asia/Kathmandu"}, status(200))
		a := h.assistant(nil)
		const calls = 405 // more than one read returns
		for i := range calls {
			h.held(a, func(c *parley.Call) {
				c.Turns[0].Text = fmt.Sprintf("%d", i)
				c.Variables = map[string]any{"what": "=1+1", "age": nil}
				c.VariablesNotes, c.Turns[0].Language = map[string]string{"age": "The conversation doesn't say."}, "fr"
				if i == 0 {
					evil := "=cmd|' /C calc'!A0"
					c.CustomerPhone, c.Sentiment, c.Evaluation = &evil, "", map[string]any{"sentiment": "@evil"}
				}
			})
		}
		rows := h.sheet("calls.csv")
		if len(rows) != calls+1 {
			t.Fatalf("%d rows", len(rows))
		}
		at := map[string]int{}
		for i, name := range rows[0] {
			at[name] = i
		}
		seen := map[string]bool{}
		for _, row := range rows[1:] {
			seen[row[at["id"]]] = true
		}
		first, last := rows[1], rows[calls]
		if len(seen) != calls || first[at["client_phone_number"]] != "+14155552671" || first[at["total_cost"]] != "0.25" ||
			!strings.HasSuffix(first[at["created_at"]], "+05:45") || !strings.Contains(first[at["transcript"]], fmt.Sprint(calls-1)) ||
			first[at["variables_notes"]] != `{"age":"The conversation doesn't say."}` || first[at["turn_languages"]] != "fr, -" {
			t.Errorf("%d different, the first is %q", len(seen), first)
		}
		if made, err := time.Parse(time.RFC3339, first[at["created_at"]]); err != nil || time.Since(made) > time.Minute {
			t.Errorf("%v %v", made, err)
		}
		if last[at["client_phone_number"]] != "'=cmd|' /C calc'!A0" || last[at["sentiment"]] != "'@evil" {
			t.Errorf("formulas: %q", last)
		}
		if n := len(h.sheet("calls.csv?answered_by=nobody")); n != 1 {
			t.Errorf("%d rows of nobody's", n)
		}
		for _, path := range []string{"conversations.csv", "leads.csv", "campaigns.csv", "billing/ledger.csv", "sms.csv",
			"webhook-deliveries.csv", fmt.Sprintf("test-runs.csv?assistant_id=%d", a)} {
			h.sheet(path)
		}
		h.get("/user/test-runs.csv?assistant_id=999999", status(404))
		h.ownSheets(a)
		h.get("/user/calls.csv?campaign_id=999999", status(404))
		if n := len(h.stranger().sheet("calls.csv")); n != 1 {
			t.Errorf("a stranger gets %d rows", n)
		}
	})
}

// ownSheets looks at the lists of what an account has.
func (h *harness) ownSheets(assistant int64) {
	h.Helper()
	number := h.number()
	h.put(fmt.Sprintf("/user/assistant/%d", assistant), map[string]any{"name": "=1+1", "phone_number_id": number}, status(200))
	for i := range 205 { // more than one read returns
		h.post("/user/blacklist", map[string]any{"phone_number": fmt.Sprintf("+1415555%04d", 2000+i)}, status(201))
	}
	tool := h.post("/user/tools",
		map[string]any{"name": "look_up", "description": "=2+2", "endpoint": "https://example.com/{id}", "method": "GET",
			"headers": []any{map[string]any{"name": "X-Key", "value": "very secret"}}, "schema": []any{}}, status(201)).
		json()["data"].(map[string]any)
	base := h.post("/user/knowledgebases", map[string]any{"name": "Rules"}, status(201)).json()["data"].(map[string]any)
	for path, want := range map[string][]string{
		"assistants.csv":    {fmt.Sprint(assistant), "'=1+1", fmt.Sprint(number)},
		"phone-numbers.csv": {fmt.Sprint(number), "'=1+1"},
		"tools.csv":         {fmt.Sprint(tool["id"]), "'=2+2", "X-Key", "https://example.com/{id}"},
		"blacklist.csv":     {"+14155552000"},
		fmt.Sprintf("documents.csv?knowledgebase_id=%v", base["id"]): nil,
	} {
		rows := h.sheet(path)
		text := fmt.Sprint(rows)
		for _, w := range want {
			if !strings.Contains(text, w) {
				h.Errorf("%s lacks %q: %.500s", path, w, text)
			}
		}
		if strings.Contains(text, "very secret") {
			h.Errorf("%s has a header's value", path)
		}
		if path == "blacklist.csv" && len(rows) != 206 {
			h.Errorf("%d rows of the blacklist", len(rows))
		}
		other := h.stranger()
		if strings.HasPrefix(path, "documents") {
			other.get("/user/"+path, status(404))
		} else if n := len(other.sheet(path)); n != 1 {
			h.Errorf("a stranger gets %d rows of %s", n, path)
		}
	}
}
