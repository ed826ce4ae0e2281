package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/api"
	"parley/internal/assistant"
	"parley/internal/auth"
	"parley/internal/chat"
	"parley/internal/egress"
	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/provider/openai"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/tool"
)

// talking is a house whose assistants think with our own model server, and that has these channels.
func talking(t testing.TB, db *store.DB, change func(*api.Config),
	channels ...func(*chat.Chat) []chat.Replied) (*harness, *aitest.Server) {
	t.Helper()
	model := aitest.NewServer(t)
	model.Models = richModels
	providers, err := provider.Open(provider.All(openai.Declare(&openai.Settings{BaseURL: model.URL})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(providers.Close)
	h := open(t, db, func(c *api.Config) {
		guard := egress.New(nil)
		t.Cleanup(guard.Close)
		c.Hub = event.NewHub()
		c.Assistants = &assistant.Studio{DB: db, Catalog: c.Catalog, Providers: providers, Tools: tool.New(guard)}
		config := chat.Config{DB: db, Assistants: c.Assistants, Prices: c.Prices, Hub: c.Hub}
		for _, open := range channels { // one, or none
			config.Channels = open
		}
		c.Chat = chat.New(config)
		conversations := c.Chat
		t.Cleanup(func() { conversations.Stop(context.Background()) })
		if change != nil {
			change(c)
		}
	})
	return h, model
}

// eachTalking runs a test in a talking house on each database.
func eachTalking(t *testing.T, test func(t *testing.T, h *harness, model *aitest.Server)) {
	eachDB(t, func(t *testing.T, db *store.DB) {
		h, model := talking(t, db, nil)
		test(t, h, model)
	})
}

// active makes an assistant that answers. Public routes know it by the uuid.
func (h *harness) active(change map[string]any) (id int64, uuid string) {
	h.Helper()
	id = h.assistant(with(map[string]any{"status": "active", "system_prompt": "Serve {{who}}.", "prompt_current_time": false,
		"initial_message": "Hello {{who}}.",
		"widget_settings": map[string]any{"pre_chat_fields": []any{map[string]any{"variable": "who",
			"label": "Your name"}}}}, change))
	return id, h.get(fmt.Sprintf("/user/assistant/%d", id), status(200)).json()["uuid"].(string)
}

// anonymous leaves the credential out.
var anonymous = header("Authorization", "")

func (h *harness) converse(uuid string) string {
	h.Helper()
	return h.post("/conversations", map[string]any{"assistant_id": uuid, "variables": map[string]any{"who": "Ana"}},
		anonymous, status(200)).json()["conversation_id"].(string)
}

func TestConversationRoundTrip(t *testing.T) {
	eachTalking(t, func(t *testing.T, h *harness, model *aitest.Server) {
		aid, uuid := h.active(nil)
		made := h.post("/conversations", map[string]any{"assistant_id": uuid,
			"variables": map[string]any{"who": "Ana"}}, anonymous, status(200))
		id := made.json()["conversation_id"].(string)
		made.is(`{"status":true,"conversation_id":"` + id +
			`","history":[{"role":"assistant","content":"Hello Ana."}]}`)
		h.post("/conversations/"+id+"/messages", map[string]any{"message": "  Hi  "}, anonymous, status(200)).
			is(`{"status":true,"message":"You said: Hi (prompt: Serve Ana.)","function_calls":[]}`)
		h.get("/conversations/"+id, anonymous, status(200)).is(
			`{"status":true,"history":[{"role":"assistant","content":"Hello Ana."},` +
				`{"role":"user","content":"Hi"},{"role":"assistant","content":"You said: Hi (prompt: Serve Ana.)"}],"variables":{"who":"Ana"}}`)

		list := h.get("/user/conversations", status(200)).json()
		item := list["data"].([]any)[0].(map[string]any)
		if item["id"] != id || item["assistant_id"] != uuid || item["assistant_name"] != "Desk" ||
			item["type"] != "widget" ||
			item["message_count"] != json.Number("3") || item["total_cost"] != json.Number("0.01") ||
			item["ai_enabled"] != true {
			t.Errorf("list item %v", item)
		}
		whole := h.get("/user/conversations/"+id, status(200)).json()
		if len(whole["history"].([]any)) != 3 || whole["variables"].(map[string]any)["who"] != "Ana" ||
			whole["customer"] != nil {
			t.Errorf("whole: %v", whole)
		}
		if e := h.get("/user/billing/ledger", status(200)).json()["data"].([]any)[0].(map[string]any); e["amount"] != json.Number("-0.01") ||
			e["balance_after"] != json.Number("4.99") {
			t.Errorf("ledger: %v", e)
		}
		other := h.stranger()
		for _, path := range []string{"/user/conversations/" + id, "/user/conversations/no-uuid",
			"/user/conversations/00000000-0000-0000-0000-000000000000"} {
			other.get(path, status(404)).is(`{"message":"Conversation not found"}`)
			other.delete(path, status(404))
			other.post(path+"/enable-ai", nil, status(404))
			other.post(path+"/reply", map[string]any{"message": "x"}, status(404))
		}
		if n := other.get("/user/conversations", status(200)).json()["total"]; n != json.Number("0") {
			t.Errorf("a stranger sees %v conversations", n)
		}
		h.delete(fmt.Sprintf("/user/assistant/%d", aid), status(200)) // the history stays
		if n := h.get("/user/conversations", status(200)).json()["total"]; n != json.Number("1") {
			t.Errorf("after its assistant's deletion there are %v conversations", n)
		}
		h.delete("/user/conversations/"+id, status(200)).is(`{"message":"Conversation deleted successfully"}`)
		h.get("/conversations/"+id, anonymous, status(404)).is(`{"status":false,"error":"Conversation not found"}`)
	})
}

func TestConversationRefusals(t *testing.T) {
	eachTalking(t, func(t *testing.T, h *harness, model *aitest.Server) {
		_, uuid := h.active(nil)
		_, idle := h.active(map[string]any{"status": "inactive"})
		_, fenced := h.active(map[string]any{"widget_settings": map[string]any{
			"allowed_origins": []string{"https://shop.example.com"}}})
		other := h.stranger()
		missing := `{"status":false,"error":"Assistant not found"}`
		body := func(id any, kind string) map[string]any { return map[string]any{"assistant_id": id, "type": kind} }

		h.post("/conversations", body("00000000-0000-0000-0000-000000000000", "widget"), anonymous,
			status(404)).is(missing)
		h.post("/conversations", body("nonsense", "widget"), anonymous, status(404)).is(missing)
		h.post("/conversations", body(idle, "widget"), anonymous, status(404)).is(missing)
		h.post("/conversations", body(idle, "test"), status(200)) // its owner may try it
		h.post("/conversations", body(uuid, "test"), anonymous,
			status(401)).is(`{"status":false,"error":"Unauthenticated."}`)
		other.post("/conversations", body(uuid, "test"), status(401)).is(`{"status":false,"error":"Unauthenticated."}`)
		other.post("/conversations", body(uuid, "test"), header("Authorization", "Bearer 1|x"),
			status(401)).is(`{"status":false,"error":"Unauthenticated."}`)
		for _, bad := range []any{map[string]any{}, body(5, "widget"), body(uuid, "phone"),
			map[string]any{"assistant_id": uuid, "variables": []any{1}},
			map[string]any{"assistant_id": uuid, "variables": map[string]any{"n": []any{}}}} {
			if got := h.post("/conversations", bad, anonymous, status(422)).json(); got["status"] != false ||
				got["error"] == "" || len(got) != 2 {
				t.Errorf("%v was answered %v", bad, got)
			}
		}
		h.post("/conversations", nil, raw("{"), anonymous,
			status(422)).is(`{"status":false,"error":"The request body is not valid JSON."}`)
		h.post("/conversations", body(fenced, "widget"), anonymous, status(403))
		h.post("/conversations", body(fenced, "widget"), anonymous, header("Origin", "https://evil.example.com"),
			status(403))
		h.post("/conversations", body(fenced, "widget"), anonymous, header("Origin", "https://shop.example.com"),
			status(200))

		poor := h.stranger() // has no money
		_, broke := poor.active(nil)
		h.post("/conversations", body(broke, "widget"), anonymous,
			status(402)).is(`{"status":false,"error":"Insufficient balance"}`)

		id := h.converse(uuid)
		test := h.post("/conversations", body(uuid, "test"), status(200)).json()["conversation_id"].(string)
		// not through a widget: only its owner may
		for _, path := range []string{"/conversations/" + test, "/conversations/" + test + "/events"} {
			h.get(path, anonymous, status(404)).is(`{"status":false,"error":"Conversation not found"}`)
			other.get(path, status(404))
		}
		h.post("/conversations/"+test+"/messages", map[string]any{"message": "Hi"}, anonymous, status(404))
		h.get("/conversations/"+test, status(200))
		for _, text := range []any{"", "   ", strings.Repeat("ä", 2001), 5, nil} {
			h.post("/conversations/"+id+"/messages", map[string]any{"message": text}, anonymous, status(422))
		}
		h.post("/conversations/"+id+"/messages", map[string]any{"message": strings.Repeat("ä", 2000)}, anonymous,
			status(200))
		model.Script(aitest.Behaviour{Status: 401})
		if got := h.post("/conversations/"+id+"/messages", map[string]any{"message": "Hi"}, anonymous,
			status(502)).json(); got["status"] != false || len(got) != 2 {
			t.Errorf("a failing model: %v", got)
		}
	})
}

// read collects the events of a stream up to one of a kind.
func read(t testing.TB, r *bufio.Reader, until string) (events []string) {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("after %q: %v", events, err)
		}
		if text, ok := strings.CutPrefix(line, "event: "); ok {
			events = append(events, strings.TrimSpace(text))
		} else if text, ok := strings.CutPrefix(line, "data: "); ok {
			last := len(events) - 1
			events[last] += " " + strings.TrimSpace(text)
			if strings.HasPrefix(events[last], until+" ") {
				return events
			}
		}
	}
}

func (h *harness) stream(method, path, body string) *bufio.Reader {
	h.Helper()
	r, err := http.NewRequestWithContext(h.Context(), method, h.url+"/api"+path, strings.NewReader(body))
	if err != nil {
		h.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		h.Fatalf("%s answered %s, %s", path, res.Status, res.Header.Get("Content-Type"))
	}
	return bufio.NewReader(res.Body)
}

func TestStreamedReplyAndFollower(t *testing.T) {
	eachTalking(t, func(t *testing.T, h *harness, model *aitest.Server) {
		_, uuid := h.active(nil)
		id := h.converse(uuid)
		follower := h.stream("GET", "/conversations/"+id+"/events", "")
		if _, err := follower.ReadString('\n'); err != nil { // it is listening
			t.Fatal(err)
		}
		gate := make(chan struct{})
		model.Script(aitest.Behaviour{Text: "One two.", Gate: gate})
		reply := h.stream("POST", "/conversations/"+id+"/messages", `{"message":"Count"}`)
		seen := strings.Join(read(t, follower, "typing"), "\n")
		close(gate)
		got := read(t, reply, "done")
		if want := `done {"status":true,"message":"One two.","function_calls":[]}`; got[len(got)-1] != want ||
			len(got) < 2 || !strings.HasPrefix(got[0], `delta {"text":"`) {
			t.Errorf("streamed %q", got)
		}
		for !strings.Contains(seen, "One two.") {
			seen += "\n" + strings.Join(read(t, follower, "message"), "\n")
		}
		if !strings.Contains(seen, `"content":"Count"`) || !strings.Contains(seen, "typing {}") ||
			!strings.Contains(seen, `"role":"assistant"`) {
			t.Errorf("followed %s", seen)
		}
		h.post("/automate/conversations/"+id+"/disable-ai", nil, status(200)).is(`{"status":true,"ai_enabled":false}`)
		if got := read(t, follower, "ai"); got[len(got)-1] != `ai {"enabled":false}` {
			t.Errorf("followed %q", got)
		}
		h.post("/conversations/"+id+"/messages", map[string]any{"message": "Hello?"}, anonymous,
			status(200)).is(`{"status":true,"message":null,"function_calls":[]}`)
		bo := func() *answer {
			return h.post("/user/conversations/"+id+"/reply", map[string]any{"message": "Bo here."},
				header("Idempotency-Key", "bo"), status(201))
		}
		human := bo().json()
		if again := bo().json(); encode(again) != encode(human) {
			t.Errorf("one key replied %v and %v", human, again)
		}
		if data := human["data"].(map[string]any); data["role"] != "assistant" || data["author"] != "human" ||
			data["content"] != "Bo here." || !strings.Contains(fmt.Sprint(data["author_name"]), h.user.Name) {
			t.Errorf("reply %v", human)
		}
		read(t, follower, "message")
		if got := read(t, follower, "message"); !strings.Contains(got[0], "Bo here.") || strings.Contains(got[0], "author_name") {
			t.Errorf("followed %q", got)
		}
		if public := h.get("/conversations/"+id, anonymous, status(200)).json(); strings.Contains(encode(public), "author_name") {
			t.Errorf("a customer reads who answers: %v", public)
		}
		one := h.get("/user/conversations/"+id, status(200)).json()
		history := one["history"].([]any)
		if last := history[len(history)-1].(map[string]any); last["author_name"] == nil || history[0].(map[string]any)["author_name"] != nil ||
			one["assignee"] != h.user.Name {
			t.Errorf("%v does not name who wrote it", one)
		}
		h.post("/user/conversations/"+id+"/enable-ai", nil, status(200)).is(`{"status":true,"ai_enabled":true}`)

		model.Script(aitest.Behaviour{Text: "Half an answer", Fault: aitest.Failure, After: 2})
		got = read(t, h.stream("POST", "/conversations/"+id+"/messages", `{"message":"Again"}`), "error")
		if !strings.HasPrefix(got[len(got)-1], `error {"status":false,"error":"`) {
			t.Errorf("a failing stream: %q", got)
		}
	})
}

func TestGenerateReply(t *testing.T) {
	eachTalking(t, func(t *testing.T, h *harness, model *aitest.Server) {
		aid, uuid := h.active(map[string]any{"initial_message": ""})
		for i, path := range []string{"/user/ai/generate-reply", "/ai/generate-reply"} {
			name := any(aid)
			if i == 1 {
				name = uuid
			}
			got := h.post(path, map[string]any{"assistant_id": name, "customer_identifier": "c-1", "message": "Hi",
				"variables": map[string]any{"who": "Bo"}}, status(200)).json()
			if got["success"] != true || got["reply"] != "You said: Hi (prompt: Serve Bo.)" ||
				got["customer_identifier"] != "c-1" || got["ai_disabled"] != false {
				t.Errorf("%s answered %v", path, got)
			}
		}
		list := h.get("/user/conversations?type=api", status(200)).json()
		item := list["data"].([]any)[0].(map[string]any)
		if list["total"] != json.Number("1") || item["message_count"] != json.Number("4") {
			t.Errorf("one customer made %v: %v", list["total"], item)
		}
		id := item["id"].(string)
		if got := h.get("/user/conversations/"+id, status(200)).json(); got["external_identifier"] != "c-1" {
			t.Errorf("%v", got)
		}
		h.post("/user/conversations/"+id+"/disable-ai", nil, status(200))
		if got := h.post("/ai/generate-reply", map[string]any{"assistant_id": aid, "customer_identifier": "c-1",
			"message": "Hi"}, status(200)).json(); got["reply"] != nil || got["ai_disabled"] != true {
			t.Errorf("while off: %v", got)
		}
		h.post("/ai/generate-reply", map[string]any{}).fails("assistant_id", "customer_identifier", "message")
		h.post("/ai/generate-reply", map[string]any{"assistant_id": true, "customer_identifier": "c",
			"message": "m"}).says("assistant_id", "The assistant_id field must be an integer or a UUID.")
		for _, bad := range []any{"99 999", "desk", 1.5, []any{}} {
			h.post("/ai/generate-reply", map[string]any{"assistant_id": bad, "customer_identifier": 5,
				"message": "m"}).fails("assistant_id", "customer_identifier")
		}
		for _, unknown := range []any{99999, "99999", "00000000-0000-0000-0000-000000000000"} {
			h.post("/ai/generate-reply", map[string]any{"assistant_id": unknown, "customer_identifier": "c",
				"message": "m"}, status(404)).is(`{"message":"Assistant not found"}`)
		}
		other := h.stranger()
		for _, name := range []any{aid, uuid} {
			other.post("/ai/generate-reply", map[string]any{"assistant_id": name, "customer_identifier": "c",
				"message": "m"}, status(404))
		}
		h.post("/ai/generate-reply", map[string]any{"assistant_id": aid}, anonymous,
			status(401)).is(`{"message":"Unauthenticated."}`)

		phone := map[string]any{"assistant_id": aid, "customer_identifier": "+12025550123", "message": "Hi"}
		first := h.post("/ai/generate-reply", phone, header("Idempotency-Key", "k1"), status(200))
		again := h.post("/ai/generate-reply", phone, header("Idempotency-Key", "k1"), status(200))
		if string(first.body) != string(again.body) || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s\n%s", first.body, again.body)
		}
		for _, want := range []string{"1", "0"} {
			if got := h.delete("/user/customers/%2B12025550123",
				status(200)).json(); got["conversations"] != json.Number(want) {
				t.Errorf("erased %v, want %s conversations", got, want)
			}
		}
	})
}

// A customer is erased by a number as it is dialled in the account's country, and by the name that a channel gave them.
func TestEraseInNationalForm(t *testing.T) {
	h, model := rough(t)
	aid, _ := h.active(nil)
	h.put("/user/me", map[string]any{"country": "DE"}, status(200))
	for _, customer := range []string{"+4930901820", "030901820", "desk"} {
		model.Script(aitest.Behaviour{Text: "Hello."})
		h.post("/ai/generate-reply", map[string]any{"assistant_id": aid, "customer_identifier": customer, "message": "Hi"}, status(200))
	}
	for _, c := range []struct{ path, want string }{{"030901820", "2"}, {"+4930901820", "0"}, {"desk", "1"}} {
		if got := h.delete("/user/customers/"+c.path, status(200)).json()["conversations"]; got != json.Number(c.want) {
			t.Errorf("%s: erased %v, want %s", c.path, got, c.want)
		}
	}
}

// A credential whose role does not suffice is none, where none is needed.
func TestPublicWithSmallRole(t *testing.T) {
	h, model := rough(t)
	_, uuid := h.active(nil)
	agent := header("Authorization", "Bearer "+h.credential(&auth.Who{User: h.user}, "key", parley.RoleViewer))
	made := h.post("/conversations", map[string]any{"assistant_id": uuid}, agent, status(200)).json()
	model.Script(aitest.Behaviour{Text: "Hello."})
	h.post(fmt.Sprintf("/conversations/%s/messages", made["conversation_id"]), map[string]any{"message": "Hi"}, agent, status(200))
	h.post("/conversations", map[string]any{"assistant_id": uuid, "type": "test"}, agent, status(401))
}

func TestConversationFilters(t *testing.T) {
	eachTalking(t, func(t *testing.T, h *harness, model *aitest.Server) {
		aid, uuid := h.active(nil)
		_, second := h.active(nil)
		h.converse(uuid)
		h.converse(second)
		h.post("/conversations", map[string]any{"assistant_id": uuid, "type": "test"}, status(200))
		day := func(d time.Duration) string { return time.Now().UTC().Add(d).Format(time.DateOnly) }
		for query, want := range map[string]string{
			"": "3", "type=&assistant_id=&date_from=": "3", "type=widget": "2", "type=test": "1",
			"type=whatsapp": "0", fmt.Sprintf("assistant_id=%d", aid): "2",
			fmt.Sprintf("assistant_id=%d&type=test", aid): "1", "date_from=" + day(0): "3", "date_to=" + day(0): "3",
			"date_from=" + day(48*time.Hour): "0", "date_to=" + day(-24*time.Hour): "0", "date_from=" +
				day(-time.Hour*24) + "&date_to=" + day(0): "3",
		} {
			if got := h.get("/user/conversations?"+query, status(200)).json()["total"]; got != json.Number(want) {
				t.Errorf("%s: %v, want %s", query, got, want)
			}
		}
		h.get("/user/conversations?type=phone").fails("type")
		h.get("/user/conversations?date_from=31.01.2026&date_to=2026-02-30&assistant_id=x&per_page=101&page=0").
			fails("date_from", "date_to", "assistant_id", "per_page", "page")
		h.get("/user/conversations?assistant_id=0", status(404)).is(`{"message":"Assistant not found"}`)
		h.get("/user/conversations?assistant_id=99999", status(404)).is(`{"message":"Assistant not found"}`)
		h.stranger().get(fmt.Sprintf("/user/conversations?assistant_id=%d", aid), status(404))
	})
}

// Who takes over by /user has the conversation; what an automation turns off waits for somebody to take it.
func TestWhatNeedsAPerson(t *testing.T) {
	eachTalking(t, func(t *testing.T, h *harness, _ *aitest.Server) {
		_, uuid := h.active(nil)
		mine, handed := h.converse(uuid), h.converse(uuid)
		h.converse(uuid)
		h.post("/user/conversations/"+mine+"/disable-ai", nil, status(200))
		h.post("/automate/conversations/"+handed+"/disable-ai", nil, status(200))
		for _, id := range []string{mine, handed} {
			h.post("/conversations/"+id+"/messages", map[string]any{"message": "Anybody?"}, anonymous, status(200))
		}
		for part, want := range map[string][]string{"needs_person": {mine, handed}, "unassigned": {handed}, "mine": {mine}} {
			list := h.get("/user/conversations?show="+part, status(200)).json()["data"].([]any)
			var got []string
			for _, row := range list {
				row := row.(map[string]any)
				got = append(got, row["id"].(string))
				if row["waits_since"] == nil {
					t.Errorf("%s: %v does not say since when it waits", part, row)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", part, got, want)
			}
		}
		h.post("/user/conversations/"+handed+"/reply", map[string]any{"message": "Here I am."}, status(201))
		h.post("/user/conversations/"+mine+"/enable-ai", nil, status(200))
		if got := h.get("/user/conversations?show=needs_person", status(200)).json()["data"].([]any); len(got) != 0 {
			t.Errorf("answered and handed back, these wait: %v", got)
		}
		got := h.get("/user/conversations?show=mine", status(200)).json()["data"].([]any)
		if len(got) != 1 || got[0].(map[string]any)["id"] != handed {
			t.Errorf("who answers has the conversation: %v", got)
		}
		if row := got[0].(map[string]any); row["waits_since"] != nil || row["assignee"] != h.user.Name {
			t.Errorf("it waits since %v", row["waits_since"])
		}
		h.get("/user/conversations?show=others", status(422))

		// what a member takes over is the member's, and not the owner's
		who := h.member(parley.RoleAgent)
		token, err := h.authority.Begin(t.Context(), who, parley.Session, "test", nil)
		if err != nil {
			t.Fatal(err)
		}
		member := *h
		member.token = token
		member.post("/user/conversations/"+mine+"/disable-ai", nil, status(200))
		for as, want := range map[*harness]string{&member: mine, h: handed} {
			if got := as.get("/user/conversations?show=mine", status(200)).json()["data"].([]any); len(got) != 1 ||
				got[0].(map[string]any)["id"] != want {
				t.Errorf("mine are %v, want %s", got, want)
			}
		}
	})
}

func TestPublicLimitsAndCORS(t *testing.T) {
	rate := func(text string) auth.Rate {
		r, err := auth.ParseRate(text)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	h, _ := talking(t, storetest.SQLite(t, rules), func(c *api.Config) {
		c.Rates.Create, c.Rates.Message, c.Rates.Reply = rate("3/min"), rate("2/min"), rate("1/min")
	})
	aid, uuid := h.active(nil)
	id := h.converse(uuid)
	h.converse(uuid)
	h.converse(uuid)
	limited := h.post("/conversations", map[string]any{"assistant_id": uuid}, anonymous, status(429))
	if limited.json()["message"] != "Too Many Attempts." || limited.header.Get("Retry-After") == "" ||
		limited.json()["retry_after"] == nil {
		t.Errorf("%s", limited.body)
	}
	for range 2 {
		h.post("/conversations/"+id+"/messages", map[string]any{"message": "Hi"}, anonymous, status(200))
	}
	h.post("/conversations/"+id+"/messages", map[string]any{"message": "Hi"}, anonymous, status(429))
	body := map[string]any{"assistant_id": aid, "customer_identifier": "c", "message": "Hi"}
	h.post("/ai/generate-reply", body, status(200))
	h.post("/ai/generate-reply", body, status(429))

	pre := h.do("OPTIONS", "/conversations/"+id+"/messages", nil, anonymous,
		header("Origin", "https://shop.example.com"), status(204))
	if pre.header.Get("Access-Control-Allow-Origin") != "*" ||
		!strings.Contains(pre.header.Get("Access-Control-Allow-Methods"), "POST") {
		t.Errorf("preflight: %v", pre.header)
	}
	if got := h.get("/conversations/"+id, anonymous,
		status(200)); got.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("no CORS on a public route: %v", got.header)
	}
	if got := h.get("/user/me", status(200)); got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("CORS below /user/: %v", got.header)
	}
}
