package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/uptrace/bun"

	"parley/internal/store"
	"parley/internal/store/storetest"
)

// Partial changes that arrive together don't overwrite each other.
func TestTwentyChangesAtOnce(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		at := fmt.Sprintf("/user/assistant/%d", h.assistant(nil))
		changes := []string{`"name":"B"`, `"system_prompt":"P"`, `"initial_message":"I"`, `"status":"active"`,
			`"timezone":"UTC"`, `"variables":{"a":"b"}`,
			`"keywords":["k"]`, `"llm_temperature":"0.90"`, `"voice_stability":"0.10"`, `"voice_similarity":"0.20"`,
			`"speech_speed":"0.80"`,
			`"ambient_sound":"city"`, `"max_duration":99`, `"max_silence_duration":98`,
			`"reengagement_interval":97`, `"ringing_time":96`, `"record":true`,
			`"wait_for_customer":true`, `"webhook_url":"https://example.com/"`, `"min_interrupt_words":4`}
		var wg sync.WaitGroup
		for _, c := range changes {
			wg.Go(func() { h.put(at, nil, raw("{"+c+"}"), status(200)) })
		}
		wg.Wait()
		got := string(h.get(at).body)
		for _, c := range changes {
			if !strings.Contains(got, c) {
				t.Errorf("lost %s", c)
			}
		}
		if n := h.get(at + "/prompt-versions").json()["total"]; n != json.Number("3") {
			t.Errorf("%v wordings of the prompt", n)
		}
		// The same for a tool's fields.
		tool := fmt.Sprintf("/user/tools/%d", h.tool(nil))
		changes = []string{`"name":"other"`, `"description":"D"`, `"endpoint":"https://example.com/x"`,
			`"method":"PATCH"`, `"timeout":29`, `"headers":[{"name":"A","value":"b"}]`}
		for _, c := range changes {
			wg.Go(func() { h.put(tool, nil, raw("{"+c+"}"), status(200)) })
		}
		wg.Wait()
		got = string(h.get(tool).body)
		for _, c := range changes {
			if !strings.Contains(got, c) {
				t.Errorf("lost %s", c)
			}
		}
	})
}

// When several requests want the same thing, only one gets it.
func TestOneWins(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		won := func(n int, try func(i int) *answer) int64 {
			var wg sync.WaitGroup
			var ok atomic.Int64
			for i := range n {
				wg.Go(func() {
					switch a := try(i); a.status {
					case 200, 201:
						ok.Add(1)
					case 422, 403, 404:
					default:
						t.Errorf("answered %d: %s", a.status, a.body)
					}
				})
			}
			wg.Wait()
			return ok.Load()
		}
		if n := won(10, func(int) *answer {
			return h.post("/user/tools",
				with(toolBody(), map[string]any{"name": "same"}))
		}); n != 1 {
			t.Errorf("%d tools of one name were made", n)
		}
		a, b := h.tool(nil), h.tool(nil)
		if n := won(2, func(i int) *answer {
			return h.put(fmt.Sprintf("/user/tools/%d", []int64{a, b}[i]), map[string]any{"name": "shared"})
		}); n != 1 {
			t.Errorf("%d tools took one name", n)
		}
		h.user.Plan = "trial" // five tools: three are there
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.SaveUser(ctx, h.user) })
		if n := won(10, func(int) *answer { return h.post("/user/tools", toolBody()) }); n != 2 {
			t.Errorf("%d tools were made where the plan left 2", n)
		}
		gone := fmt.Sprintf("/user/tools/%d", a)
		if n := won(5, func(int) *answer { return h.delete(gone) }); n != 1 {
			t.Errorf("one tool was deleted %d times", n)
		}
	})
}

// A write that fails leaves nothing half done.
func TestFailedWritesLeaveNothing(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		tool := h.tool(nil)
		at := fmt.Sprintf("/user/assistant/%d", h.assistant(map[string]any{"tool_ids": []any{tool}}))
		one := h.get(at)
		before := one.body
		bad := map[string]any{"system_prompt": "New.", "name": "New", "tool_ids": []any{tool, 999}}
		h.post("/user/assistant", with(h.assistantBody(), bad), status(422)).fails("tool_ids.1")
		h.put(at, bad, status(422)).fails("tool_ids.1")
		if after := h.get(at).body; string(before) != string(after) {
			t.Errorf("a refused PUT changed %s", difference(before, after))
		}
		if n := h.get(at + "/prompt-versions").json()["total"]; n != json.Number("1") {
			t.Errorf("a refused PUT left %v wordings", n)
		}
		if n := h.get("/user/assistants/get").json()["total"]; n != json.Number("1") {
			t.Errorf("a refused POST left %v assistants", n)
		}
		if got := h.assistant(nil); got != id(one.json())+1 && h.db.SQLite() {
			t.Errorf("a refused POST used up an id: the next is %d", got)
		}
	})
}

// counter counts the queries to the database.
type counter struct {
	n  atomic.Int64
	mu sync.Mutex
	s  []string
}

func (c *counter) BeforeQuery(ctx context.Context, e *bun.QueryEvent) context.Context {
	c.n.Add(1)
	c.mu.Lock()
	c.s = append(c.s, e.Query)
	c.mu.Unlock()
	return ctx
}

func (c *counter) AfterQuery(context.Context, *bun.QueryEvent) {}

// The number of queries that a request makes does not grow with the size of its answer.
func TestQueriesPerRequest(t *testing.T) {
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			c := &counter{}
			o := storetest.Options(t, engine, rules)
			o.Watch = c
			h := open(t, storetest.Open(t, o), nil)
			h.fill(100)
			tools := []any{h.tool(nil), h.tool(nil), h.tool(nil)}
			for range 5 {
				h.assistant(map[string]any{"tool_ids": tools})
			}
			one := fmt.Sprintf("/user/assistant/%d", h.assistant(map[string]any{"tool_ids": tools}))
			h.get(one + "/prompt-versions")
			for _, q := range []struct {
				method, path, body string
				most               int64
			}{
				{"GET", "/user/me", "", 1}, // the credential
				{"GET", "/user/assistants/languages", "", 1},
				{"GET", "/user/assistants/get?per_page=1", "", 5},
				{"GET", "/user/assistants/get?per_page=100", "", 5},
				{"GET", "/user/assistants/get?per_page=100&page=2", "", 5},
				{"GET", "/user/assistants/get?page=99", "", 2},
				{"GET", "/user/assistants", "", 13}, // in pages that grow: 10, 40, 160 rows, four queries each
				{"GET", "/user/assistants/outbound", "", 13},
				{"GET", "/user/tools", "", 2},
				{"GET", one, "", 4},
				{"GET", one + "/prompt-versions", "", 6},
				{"GET", "/user/assistants/phone-numbers", "", 3},
				{"POST", "/user/tools", encode(toolBody()), 11}, // stored bytes are three of them
				{"PUT", one, `{"name":"Z"}`, 23},
				{"PUT", one, `{}`, 12},
			} {
				c.n.Store(0)
				c.s = nil
				h.do(q.method, q.path, nil, raw(q.body))
				if got := c.n.Load(); got > q.most || got == 0 {
					t.Errorf("%s %s asked %d times, at most %d:\n%.3000s", q.method, q.path, got, q.most,
						strings.Join(c.s, "\n"))
				}
			}
		})
	}
}

// The same holds for the lists of campaigns, leads, numbers and trunks.
func TestQueriesOfCampaigns(t *testing.T) {
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			c := &counter{}
			o := storetest.Options(t, engine, rules)
			o.Watch = c
			h := open(t, storetest.Open(t, o), nil)
			who, gone := h.caller(nil), int64(0)
			for i := range 12 {
				at := h.campaign(map[string]any{"assistant_id": who, "phone_number_ids": []any{h.number(), h.number()}})
				for j := range 3 {
					h.lead(at, fmt.Sprintf("+1415555%04d", 100+3*i+j))
				}
				gone = at
			}
			h.delete(fmt.Sprintf("/user/campaigns/%d", gone), status(200))
			for i := range 5 {
				h.post("/user/blacklist", map[string]any{"phone_number": fmt.Sprintf("+1415555%04d", 200+i)},
					status(201))
				h.post(trunksAt, with(trunkBody(), map[string]any{"phone_number": fmt.Sprintf("+1415555%04d",
					300+i)}), status(201))
			}
			one := fmt.Sprintf("/user/campaigns/%d", gone-1)
			for path, most := range map[string]int64{"/user/campaigns": 3, one: 3, one + "/stats": 4,
				"/user/leads?per_page=1": 5, "/user/leads?per_page=100": 5, "/user/leads?page=99": 3,
				fmt.Sprintf("/user/leads?page=1&campaign_id=%d&status=created", gone-1): 7, "/user/blacklist": 2,
				"/user/phone-numbers/all": 3, "/user/phone-numbers": 3, trunksAt: 2, "/user/sms?per_page=100": 3} {
				c.n.Store(0)
				c.s = nil
				h.get(path, status(200))
				if got := c.n.Load(); got > most || got == 0 {
					t.Errorf("%s asked %d times, at most %d:\n%.3000s", path, got, most, strings.Join(c.s, "\n"))
				}
			}
		})
	}
}

// The memory that a list takes is bounded by its rows.
func TestAllocationsPerList(t *testing.T) {
	h := lite(t, nil)
	h.fill(200)
	list := func(rows int) float64 {
		r := httptest.NewRequestWithContext(t.Context(), "GET",
			fmt.Sprintf("/api/user/assistants/get?per_page=%d", rows), nil)
		r.Header.Set("Authorization", "Bearer "+h.token)
		return testing.AllocsPerRun(20, func() {
			w := httptest.NewRecorder()
			h.api.ServeHTTP(w, r)
			if w.Code != 200 {
				t.Fatal(w.Body)
			}
		})
	}
	few, many := list(15), list(100)
	t.Logf("%.0f allocations for 15 rows, %.0f for 100", few, many)
	if few > allocsOfFifteen || many > allocsOfFifteen*100/15 {
		t.Errorf("%.0f allocations for 15 rows, %.0f for 100", few, many)
	}
}

// allocsOfFifteen is one and a half times what was measured when this was written.
const allocsOfFifteen = 3000
