package api_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"parley/internal/ai/aitest"
	"parley/internal/api"
	"parley/internal/auth"
	"parley/internal/channel/whatsapp"
	"parley/internal/channel/whatsapp/graph"
	"parley/internal/channel/whatsapp/graph/graphtest"
	"parley/internal/chat"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

const customer = "+14155552671"

// texting is a talking house with a WhatsApp account of two senders. The first belongs to the user and is answered by
// an assistant.
type texting struct {
	*harness
	graph     *graphtest.Server
	model     *aitest.Server
	line      *whatsapp.Channel
	hooks     string // the webhook's address
	sender    int64
	assistant int64
}

var (
	accountNumbers = []graphtest.Object{
		graphtest.Number("111", "+1 631-555-8151", "Acme", "CONNECTED", "GREEN", "TIER_1K"),
		graphtest.Number("222", "+49 151 23456789", "Acme DE", "DISCONNECTED", "RED", "TIER_UNLIMITED"),
	}
	accountTemplates = []graphtest.Object{
		graphtest.Template("t1", "hello", "APPROVED", "POSITIONAL", "Welcome!"),
		graphtest.Template("t2", "order", "APPROVED", "POSITIONAL", "Dear {{1}}, your order {{2}} is ready."),
		graphtest.Template("t3", "visit", "APPROVED", "NAMED", "See you on {{day}}."),
		graphtest.Template("t4", "new", "PENDING", "POSITIONAL", "Soon."),
	}
)

func eachTexting(t *testing.T, test func(t *testing.T, x *texting)) {
	eachDB(t, func(t *testing.T, db *store.DB) { test(t, openTexting(t, db, auth.Rate{})) })
}

func openTexting(t testing.TB, db *store.DB, rate auth.Rate) *texting {
	t.Helper()
	x := &texting{graph: graphtest.New(t)}
	x.graph.Set(accountNumbers, accountTemplates)
	x.line = &whatsapp.Channel{DB: db, Graph: x.graph.Client(t), AppSecret: graphtest.AppSecret,
		VerifyToken: graphtest.VerifyToken}
	x.harness, x.model = talking(t, db, func(c *api.Config) {
		c.WhatsApp, x.line.Prices, c.Rates.WhatsApp = x.line, c.Prices, rate
	}, func(c *chat.Chat) []chat.Replied {
		x.line.Chat = c
		return []chat.Replied{x.line.Replied}
	})
	if err := x.line.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, phone := range []string{"+16315558151", "+49 151 23456789"} {
		if _, err := x.line.Assign(t.Context(), phone, x.user.ID); err != nil {
			t.Fatal(err)
		}
	}
	x.sender = id(x.senders("online")[0])
	x.assistant = x.harness.assistant(map[string]any{"status": "active", "initial_message": "Hello."})
	x.put(fmt.Sprintf("/user/whatsapp/senders/%d", x.sender), map[string]any{"assistant_id": x.assistant}, status(200))
	srv := httptest.NewServer(http.HandlerFunc(x.api.WhatsAppWebhook))
	t.Cleanup(srv.Close)
	x.hooks = srv.URL

	workers := river.NewWorkers()
	x.line.AddWorkers(workers)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		done <- db.Work(ctx, t.Context(), store.Jobs{Workers: workers,
			Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 4}}})
	}()
	t.Cleanup(func() { stop(); <-done })
	return x
}

func (x *texting) senders(which string) []map[string]any {
	x.Helper()
	return x.get("/user/whatsapp/senders?status="+which, status(200)).rows()
}

// template is the id of the template with a name.
func (x *texting) template(name string) int64 {
	x.Helper()
	for _, t := range x.get(fmt.Sprintf("/user/whatsapp/senders/%d/templates?status=all", x.sender),
		status(200)).rows() {
		if t["name"] == name {
			return id(t)
		}
	}
	x.Fatalf("no template %s", name)
	return 0
}

// tell sends a webhook as the platform does.
func (x *texting) tell(body []byte) {
	x.Helper()
	if got := x.hook(body, graph.Sign(graphtest.AppSecret, body)); got != 200 {
		x.Errorf("the webhook answered %d", got)
	}
}

func (x *texting) hook(body []byte, signature string) int {
	x.Helper()
	r, err := http.NewRequestWithContext(x.Context(), "POST", x.hooks, bytes.NewReader(body))
	if err != nil {
		x.Fatal(err)
	}
	r.Header.Set("X-Hub-Signature-256", signature)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		x.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// until waits for something that a worker does.
func (x *texting) until(what string, ok func() bool) {
	x.Helper()
	look, hang := time.NewTicker(2*time.Millisecond), time.After(30*time.Second)
	defer look.Stop()
	for !ok() {
		select {
		case <-look.C:
		case <-hang:
			x.Fatalf("waited for %s in vain", what)
		}
	}
}

func (x *texting) sent(n int) []graphtest.Sent {
	x.Helper()
	x.until(fmt.Sprintf("message %d", n), func() bool { return len(x.graph.Sent()) >= n })
	return x.graph.Sent()
}

// history is the conversation with the customer, a line per message.
func (x *texting) history() (lines []string, conversation map[string]any) {
	x.Helper()
	for _, c := range x.get("/user/conversations?type=whatsapp", status(200)).rows() {
		conversation = x.get("/user/conversations/"+c["id"].(string), status(200)).json()
		for _, m := range conversation["history"].([]any) {
			lines = append(lines, m.(map[string]any)["role"].(string)+": "+m.(map[string]any)["content"].(string))
		}
	}
	return lines, conversation
}

// row is the stored row of a message that was sent.
func (x *texting) row(wamid string) *parley.WhatsAppMessage {
	x.Helper()
	var m *parley.WhatsAppMessage
	x.write(func(ctx context.Context, tx *store.Tx) (err error) {
		m, err = tx.WhatsAppMessageForUpdate(ctx, 0, wamid)
		return err
	})
	return m
}

func (x *texting) fails(code string, n int, path string, body any) {
	x.Helper()
	before := x.balance()
	got := x.post(path, body, status(n)).json()
	if got["success"] != false || got["error_code"] != code || got["error"] == "" || got["error"] == nil {
		x.Errorf("%s answered %v, want %s", path, got, code)
	}
	if x.balance() != before {
		x.Errorf("%s cost %s - %s", code, before, x.balance())
	}
	u, err := x.db.User(x.Context(), x.user.ID)
	if err != nil {
		x.Fatal(err)
	}
	if free, err := x.db.Free(x.Context(), x.user.ID); err != nil || free != u.Balance {
		x.Errorf("%s left %v of %v free: %v", code, free, u.Balance, err)
	}
}

func TestWhatsAppSenders(t *testing.T) {
	eachTexting(t, func(t *testing.T, x *texting) {
		at := fmt.Sprintf("/user/whatsapp/senders/%d", x.sender)
		x.get("/user/whatsapp/senders", status(200)).is(fmt.Sprintf(
			`{"data":[{"id":%d,"assistant_id":%d,"phone_number":"+16315558151","display_name":"Acme",`+
				`"status":"online","quality_rating":"GREEN","messaging_limit":1000,"messaging_limit_formatted":"1,000 / 24hr"}]}`,
			x.sender, x.assistant))
		if off := x.senders("offline"); len(off) != 1 || off[0]["messaging_limit"] != nil ||
			off[0]["messaging_limit_formatted"] != "Unlimited" || off[0]["quality_rating"] != "RED" {
			t.Errorf("offline: %v", off)
		}
		if all := x.senders("all"); len(all) != 2 {
			t.Errorf("all: %v", all)
		}
		x.get("/user/whatsapp/senders?status=busy").says("status",
			"The status field must be one of: online, offline, all.")

		other := x.stranger()
		other.get("/user/whatsapp/senders?status=all", status(200)).is(`{"data":[]}`)
		gone := `{"success":false,"error":"WhatsApp sender not found","error_code":"SENDER_NOT_FOUND"}`
		for _, path := range []string{at, "/user/whatsapp/senders/999999", "/user/whatsapp/senders/x"} {
			other.put(path, map[string]any{"assistant_id": nil}, status(404)).is(gone)
			other.get(path+"/templates", status(404)).is(gone)
		}
		foreign := other.assistant(nil)
		x.put(at, map[string]any{"assistant_id": foreign}).says("assistant_id", "The selected assistant_id is invalid.")
		x.put(at, map[string]any{"assistant_id": "x"}).says("assistant_id",
			"The assistant_id field must be an integer or a UUID.")
		x.put(at, map[string]any{}).says("assistant_id", "The assistant_id field is required.")
		if got := x.put(at, map[string]any{"assistant_id": nil},
			status(200)).json(); got["data"].(map[string]any)["assistant_id"] != nil {
			t.Errorf("cleared: %v", got)
		}

		// The platform changes a sender: our id and settings stay. A sender that it no longer names is offline.
		x.put(at, map[string]any{"assistant_id": x.assistant}, status(200))
		x.graph.Set([]graphtest.Object{graphtest.Number("111", "+1 631-555-8151", "Acme 2", "CONNECTED", "YELLOW",
			"TIER_10K"), graphtest.Number("333", "+44 20 7946 0958", "New", "CONNECTED", "NA", "")},
			accountTemplates[:1])
		if err := x.line.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		x.get("/user/whatsapp/senders?status=all", status(200))
		if now := x.senders("online"); len(now) != 1 || id(now[0]) != x.sender ||
			id2(now[0]["assistant_id"]) != x.assistant || now[0]["display_name"] != "Acme 2" ||
			now[0]["messaging_limit_formatted"] != "10,000 / 24hr" {
			t.Errorf("after a change: %v", now)
		}
		x.graph.Set(nil, nil)
		x.graph.Down(true)
		if err := x.line.Sync(t.Context()); err == nil || strings.Contains(err.Error(), graphtest.Token) {
			t.Errorf("a platform that is down: %v", err)
		}
		if now := x.senders("online"); len(now) != 1 {
			t.Errorf("a platform that is down took the senders: %v", now)
		}
		x.graph.Down(false)
		if err := x.line.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now := x.senders("offline"); len(now) != 2 {
			t.Errorf("none named: %v", now)
		}
		// A sender that moves to another user does not keep the first user's assistant.
		if _, err := x.line.Assign(t.Context(), "16315558151", other.user.ID); err != nil {
			t.Fatal(err)
		}
		if got := other.get("/user/whatsapp/senders?status=all", status(200)).rows(); len(got) != 1 ||
			got[0]["assistant_id"] != nil {
			t.Errorf("moved: %v", got)
		}
		if _, err := x.line.Assign(t.Context(), "+1 202 555 0100", other.user.ID); err == nil ||
			!strings.Contains(err.Error(), "+16315558151") {
			t.Errorf("an unknown sender: %v", err)
		}
	})
}

func id2(v any) int64 { return id(map[string]any{"id": v}) }

func TestWhatsAppTemplates(t *testing.T) {
	eachTexting(t, func(t *testing.T, x *texting) {
		at := fmt.Sprintf("/user/whatsapp/senders/%d/templates", x.sender)
		list := x.get(at, status(200)).rows()
		if len(list) != 3 || !slices.Equal(keys(list[0]),
			[]string{"body_text", "category", "has_variables", "id", "language", "name", "status", "variables"}) {
			t.Fatalf("%v", list)
		}
		got := fmt.Sprintln(list[1]["name"], list[1]["variables"], list[1]["has_variables"], list[1]["body_text"],
			list[1]["status"], list[2]["variables"], list[2]["has_variables"], list[0]["variables"]) // the newest first
		if got != "order [1 2] true Dear {{1}}, your order {{2}} is ready. APPROVED [] false [day]\n" {
			t.Error(got)
		}
		if all := x.get(at+"?status=all", status(200)).rows(); len(all) != 4 {
			t.Errorf("%v", all)
		}
		x.get(at+"?status=no").says("status", "The status field must be one of: approved, all.")

		// Templates
		body := func(name string, vars any) map[string]any {
			return map[string]any{"sender_id": x.sender, "template_id": x.template(name),
				"recipient_phone": "+1 (415) 555-2671", "recipient_name": "Ana", "variables": vars}
		}
		first := x.post("/user/whatsapp/send", body("order", map[string]any{"1": "Ana", "2": "17"}), status(200),
			header("Idempotency-Key", "k"))
		a := first.json()
		if !slices.Equal(keys(a), []string{"conversation_id", "message_id", "status", "success",
			"whatsapp_message_id"}) || a["success"] != true || a["status"] != "sent" ||
			a["whatsapp_message_id"] != "wamid.OUT1" {
			t.Errorf("%v", a)
		}
		again := x.post("/user/whatsapp/send", body("order", map[string]any{"1": "Ana", "2": "17"}), status(200),
			header("Idempotency-Key", "k"))
		if string(again.body) != string(first.body) || len(x.graph.Sent()) != 1 {
			t.Errorf("the same key: %s, %d sent", again.body, len(x.graph.Sent()))
		}
		x.post("/user/whatsapp/send", body("hello", nil), status(409), header("Idempotency-Key", "k"))
		if x.balance() != "4.99" {
			t.Errorf("balance %s", x.balance())
		}
		if s := x.graph.Sent()[0]; s.From != "111" || s.To != "14155552671" {
			t.Errorf("sent %+v", s)
		}
		x.post("/user/whatsapp/send", body("visit", map[string]any{"day": "Friday"}), status(200))
		lines, conv := x.history()
		if !slices.Equal(lines, []string{"assistant: Dear Ana, your order 17 is ready.",
			"assistant: See you on Friday."}) || conv["id"] != a["conversation_id"] {
			t.Errorf("%q %v", lines, conv)
		}
		if fmt.Sprintln(conv["total_cost"], conv["variables"],
			conv["customer"]) != "0.02 map[customer_name:Ana] map[identifier:+14155552671 phone_number:+14155552671]\n" {
			t.Errorf("%v", conv)
		}

		x.fails("TEMPLATE_MISMATCH", 422, "/user/whatsapp/send", body("order", map[string]any{"1": "Ana"}))
		x.fails("TEMPLATE_MISMATCH", 422, "/user/whatsapp/send", body("order", map[string]any{"1": "Ana", "2": " "}))
		x.fails("TEMPLATE_MISMATCH", 422, "/user/whatsapp/send",
			body("visit", map[string]any{"day": "Friday", "hour": "9"}))
		x.fails("TEMPLATE_NOT_APPROVED", 422, "/user/whatsapp/send", body("new", nil))
		for _, n := range []any{0, -1, 999999} {
			x.fails("TEMPLATE_NOT_FOUND", 404, "/user/whatsapp/send",
				with(body("hello", nil), map[string]any{"template_id": n}))
		}
		x.fails("SENDER_NOT_FOUND", 404, "/user/whatsapp/send",
			with(body("hello", nil), map[string]any{"sender_id": 999999}))
		x.fails("SENDER_OFFLINE", 503, "/user/whatsapp/send",
			with(body("hello", nil), map[string]any{"sender_id": id(x.senders("offline")[0])}))
		for _, phone := range []string{"nobody", "4155552671", "+1", "+999999999999"} {
			x.fails("INVALID_PHONE", 422, "/user/whatsapp/send",
				with(body("hello", nil), map[string]any{"recipient_phone": phone}))
		}
		x.post("/user/whatsapp/send", map[string]any{}).fails("sender_id", "template_id", "recipient_phone")
		x.post("/user/whatsapp/send", map[string]any{"sender_id": "one", "template_id": 1.5, "recipient_phone": 1,
			"recipient_name": []any{}, "variables": "x"}).fails("sender_id", "template_id", "recipient_phone",
			"recipient_name", "variables")
		x.post("/user/whatsapp/send", with(body("hello", nil),
			map[string]any{"variables": map[string]any{"1": []int{2}}})).fails("variables.1")
	})
}

// A refusal by the platform is reported with the contract's codes, costs nothing, and is not in the history.
func TestWhatsAppRefusals(t *testing.T) {
	eachTexting(t, func(t *testing.T, x *texting) {
		x.tell(graphtest.Text("111", "14155552671", "wamid.IN", "Hi"))
		x.sent(1)
		lines, _ := x.history()
		log := new(bytes.Buffer)
		slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
		defer slog.SetDefault(slog.New(slog.DiscardHandler))
		body := map[string]any{"sender_id": x.sender, "recipient_phone": customer, "message": "Hello"}
		for _, c := range []struct {
			b    graphtest.Behaviour
			code string
			n    int
		}{
			{graphtest.Behaviour{Status: 400, Code: 131047, Message: "Re-engagement message"}, "SESSION_EXPIRED", 403},
			{graphtest.Behaviour{Status: 400, Code: 131026, Message: "Message undeliverable"}, "INVALID_PHONE", 422},
			{graphtest.Behaviour{Status: 400, Code: 132000, Message: "mismatch"}, "TEMPLATE_MISMATCH", 422},
			{graphtest.Behaviour{Status: 404, Code: 132001, Message: "no such template"}, "TEMPLATE_NOT_APPROVED", 422},
			{graphtest.Behaviour{Status: 401, Code: 190, Message: "expired " + graphtest.Token}, "SENDER_OFFLINE", 503},
			{graphtest.Behaviour{Status: 500, Code: 131016, Message: "Service unavailable"}, "SEND_FAILED", 503},
			{graphtest.Behaviour{Status: 400, Code: 131051, Message: "Unsupported message type"}, "SEND_FAILED", 502},
		} {
			x.graph.Script(c.b)
			x.fails(c.code, c.n, "/user/whatsapp/send-freeform", body)
		}
		for _, code := range []int{130429, 80007, 131056} {
			x.graph.Script(graphtest.Behaviour{Status: 429, Code: code, Message: "Rate limit hit", RetryAfter: "7"})
			got := x.post("/user/whatsapp/send-freeform", body, status(429))
			if got.is(`{"message":"Too Many Attempts.","retry_after":7}`); got.header.Get("Retry-After") != "7" {
				t.Errorf("Retry-After %q", got.header.Get("Retry-After"))
			}
		}
		if now, _ := x.history(); !slices.Equal(now, lines) {
			t.Errorf("history %q", now)
		}
		if strings.Contains(log.String(), graphtest.Token) || !strings.Contains(log.String(), "expired [token]") {
			t.Errorf("logged:\n%s", log)
		}
		// Money
		poor := &texting{harness: x.harness, line: x.line, graph: x.graph, sender: x.sender}
		x.write(func(ctx context.Context, tx *store.Tx) error {
			free, err := tx.Free(ctx, x.user.ID)
			if err != nil {
				return err
			}
			_, err = tx.Post(ctx, x.user.ID, &parley.LedgerEntry{Kind: parley.Credit, Amount: -free + 9_999,
				Reference: "drain", Description: "x"})
			return err
		})
		poor.fails("INSUFFICIENT_BALANCE", 402, "/user/whatsapp/send-freeform", body)
		// Without money a customer's message is kept, but not answered.
		x.tell(graphtest.Text("111", "14155552671", "wamid.IN2", "Anybody?"))
		if now, conv := x.history(); now[len(now)-1] != "user: Anybody?" || conv["ai_enabled"] != true {
			t.Errorf("%q", now)
		}
	})
}

func TestWhatsAppSession(t *testing.T) {
	eachTexting(t, func(t *testing.T, x *texting) {
		at := fmt.Sprintf("/user/whatsapp/session-status?sender_id=%d&recipient_phone=%s", x.sender,
			url.QueryEscape(customer))
		shut := `{"success":true,"has_conversation":%v,"session_status":{"is_open":false,"can_send_freeform":false,"requires_template":true,"minutes_remaining":0,"expires_at":null}}`
		x.get(at, status(200)).is(fmt.Sprintf(shut, false))
		body := map[string]any{"sender_id": x.sender, "recipient_phone": customer, "message": "Hello"}
		x.fails("SESSION_EXPIRED", 403, "/user/whatsapp/send-freeform", body)
		text := graphtest.Object{"type": "text", "text": graphtest.Object{"body": "Hi"}}
		x.tell(graphtest.Inbound("111", "14155552671", "Ana", "wamid.old",
			time.Now().Add(-24*time.Hour-time.Minute), text))
		x.sent(1)
		x.get(at, status(200)).is(fmt.Sprintf(shut, true))
		x.fails("SESSION_EXPIRED", 403, "/user/whatsapp/send-freeform", body)
		said := time.Now().Add(-time.Hour).Truncate(time.Second)
		x.tell(graphtest.Inbound("111", "14155552671", "Ana", "wamid.new", said, text))
		// it arrives late and is older: it does not close the session
		x.tell(graphtest.Inbound("111", "14155552671", "Ana", "wamid.older", said.Add(-time.Hour), text))
		x.sent(3)
		s := x.get(at, status(200)).json()["session_status"].(map[string]any)
		if left := id2(s["minutes_remaining"]); s["is_open"] != true || s["can_send_freeform"] != true ||
			s["requires_template"] != false || left < 1378 || left > 1380 ||
			s["expires_at"] != parley.At(said.Add(24*time.Hour)).String() {
			t.Errorf("%v", s)
		}
		before := x.balance()
		got := x.post("/user/whatsapp/send-freeform", body, status(200)).json()
		if lines, conv := x.history(); lines[len(lines)-1] != "assistant: Hello" ||
			got["conversation_id"] != conv["id"] || before == x.balance() {
			t.Errorf("%v %q", got, lines)
		}
		x.get("/user/whatsapp/session-status").fails("sender_id", "recipient_phone")
		x.get("/user/whatsapp/session-status?sender_id=+&recipient_phone=").fails("sender_id", "recipient_phone")
		x.get("/user/whatsapp/session-status?sender_id=x&recipient_phone=1").fails("sender_id")
		x.get(fmt.Sprintf("/user/whatsapp/session-status?sender_id=%d&recipient_phone=1", x.sender), status(422))
		if e := x.stranger().get(at, status(404)).json(); e["error_code"] != "SENDER_NOT_FOUND" {
			t.Errorf("%v", e)
		}
		x.post("/user/whatsapp/send-freeform", map[string]any{"sender_id": nil, "recipient_phone": " ",
			"message": strings.Repeat("x", 4097)}).fails("sender_id", "recipient_phone", "message")
	})
}

// A customer's message is answered once and charged once, however often and in whatever order the platform reports
// things.
func TestWhatsAppConversation(t *testing.T) {
	eachTexting(t, func(t *testing.T, x *texting) {
		in := graphtest.Text("111", "14155552671", "wamid.1", "Hi")
		for range 3 {
			x.tell(in)
		}
		one := x.sent(1)[0]
		if one.To != "14155552671" || one.From != "111" || !strings.HasPrefix(one.Text, "You said: Hi") {
			t.Errorf("%+v", one)
		}
		x.tell(in)
		x.until("the reply's row", func() bool { return x.row(one.ID) != nil })
		for _, s := range []string{"read", "sent", "delivered", "failed"} {
			x.tell(graphtest.Status("111", one.ID, s, one.Opaque))
		}
		if m := x.row(one.ID); m.Status != parley.WhatsAppRead {
			t.Errorf("%+v", m)
		}
		lines, conv := x.history()
		if len(lines) != 2 || lines[0] != "user: Hi" || x.balance() != "4.99" ||
			fmt.Sprint(conv["variables"]) != "map[customer_name:Ana]" {
			t.Errorf("%q %v balance %s", lines, conv, x.balance())
		}
		// The model is told that there is a picture.
		x.tell(graphtest.Inbound("111", "14155552671", "Ana", "wamid.2", time.Now(),
			graphtest.Object{"type": "image", "image": graphtest.Object{"caption": "my cake"}}))
		if two := x.sent(2)[1]; !strings.Contains(two.Text, "[The customer sent an image] my cake") {
			t.Errorf("%+v", two)
		}
		// A person takes over.
		at := "/user/conversations/" + conv["id"].(string)
		x.post(at+"/disable-ai", nil, status(200))
		x.tell(graphtest.Text("111", "14155552671", "wamid.3", "A human please"))
		x.post(at+"/reply", map[string]any{"message": "Here I am"}, status(201))
		if three := x.sent(3)[2]; three.Text != "Here I am" {
			t.Errorf("%+v", three)
		}
		if lines, _ := x.history(); len(lines) != 6 || lines[5] != "assistant: Here I am" || x.balance() != "4.98" {
			t.Errorf("%q balance %s", lines, x.balance())
		}
		x.post(at+"/enable-ai", nil, status(200))
		// Messages to a sender without an assistant, or with an inactive one, are not answered, but kept.
		x.put(fmt.Sprintf("/user/whatsapp/senders/%d", x.sender), map[string]any{"assistant_id": nil}, status(200))
		x.tell(graphtest.Text("111", "14155552671", "wamid.4", "Still there?"))
		if lines, _ := x.history(); len(lines) != 7 || lines[6] != "user: Still there?" || len(x.graph.Sent()) != 3 {
			t.Errorf("%q %v", lines, x.graph.Sent())
		}
		// A number that is nobody's, and one that does not belong to the account.
		x.tell(graphtest.Text("999", "14155552671", "wamid.5", "Hi"))
	})
}

// What customers do on WhatsApp beside writing: reactions are kept and neither answered nor charged, edits and deletions
// change what they are about, quotes and advertisements are told, and who keeps the phone number back is answered too.
func TestWhatsAppGestures(t *testing.T) {
	eachTexting(t, func(t *testing.T, x *texting) {
		in := func(wamid string, fields graphtest.Object) {
			t.Helper()
			x.tell(graphtest.Inbound("111", "14155552671", "Ana", wamid, time.Now(), fields))
		}
		said := func(text string) graphtest.Object {
			return graphtest.Object{"type": "text", "text": graphtest.Object{"body": text}}
		}
		with := func(o graphtest.Object, key string, v any) graphtest.Object { o[key] = v; return o }
		in("w1", with(said("How much is it?"), "referral", graphtest.Object{"source_type": "ad", "headline": "Cakes for all",
			"body": "Half price", "source_url": "https://fb.me/1"}))
		one := x.sent(1)[0]
		x.until("the reply's row", func() bool { return x.row(one.ID) != nil })
		lines, _ := x.history()
		if want := "user: [The customer comes from an advertisement: Cakes for all · Half price · " +
			"https://fb.me/1]\nHow much is it?"; lines[0] != want {
			t.Errorf("the advertisement is %q", lines[0])
		}
		paid := x.balance()
		in("w2", graphtest.Object{"type": "reaction", "reaction": graphtest.Object{"message_id": one.ID, "emoji": "👍"}})
		in("w3", graphtest.Object{"type": "reaction", "reaction": graphtest.Object{"message_id": one.ID}})
		edit := func(original, text string) graphtest.Object {
			return graphtest.Object{"type": "edit", "edit": graphtest.Object{"original_message_id": original, "message": said(text)}}
		}
		in("w4", edit("w1", "How much is the big one?"))
		in("w5", graphtest.Object{"type": "revoke", "revoke": graphtest.Object{"original_message_id": "w3"}})
		in("w5", graphtest.Object{"type": "revoke", "revoke": graphtest.Object{"original_message_id": "unknown"}})
		lines, conv := x.history()
		if len(lines) != 4 || lines[0] != "user: How much is the big one?" ||
			!strings.HasPrefix(lines[2], "user: [The customer reacted with 👍] (to: \"You said: ") ||
			lines[3] != "user: [The customer deleted this message.]" {
			t.Errorf("%q", lines)
		}
		first := conv["history"].([]any)[0].(map[string]any)
		last := conv["history"].([]any)[3].(map[string]any)
		if first["edited"] != true || last["deleted"] != true || x.balance() != paid || len(x.graph.Sent()) != 1 {
			t.Errorf("%v %v, balance %s of %s, sent %v", first, last, x.balance(), paid, x.graph.Sent())
		}
		// An edit of what never came is answered as what it says.
		in("w6", edit("never", "Are you open?"))
		if two := x.sent(2)[1]; !strings.HasPrefix(two.Text, "You said: Are you open?") {
			t.Errorf("%+v", two)
		}
		in("w7", with(said("This one"), "context", graphtest.Object{"id": one.ID, "from": "15550783881"}))
		if three := x.sent(3)[2]; !strings.Contains(three.Text, "[In reply to: \"You said: ") || !strings.Contains(three.Text, "This one") {
			t.Errorf("%+v", three)
		}
	})
}

// A customer who keeps the phone number back is known by the platform's id, answered by it, and the same person as
// before where the number was once told.
func TestWhatsAppUserID(t *testing.T) {
	eachTexting(t, func(t *testing.T, x *texting) {
		hidden := func(wamid, user, text string) []byte {
			body := graphtest.Inbound("111", "", "Ana", wamid, time.Now(), graphtest.Object{"type": "text", "text": graphtest.Object{"body": text},
				"from_user_id": user})
			return []byte(strings.Replace(strings.Replace(string(body), `"from":"",`, "", 1), `"wa_id":""`, `"user_id":"`+user+`"`, 1))
		}
		const bo = "SE.13491208655302741918"
		x.tell(hidden("w1", bo, "Hi"))
		if one := x.sent(1)[0]; one.To != bo || !strings.HasPrefix(one.Text, "You said: Hi") {
			t.Errorf("%+v", one)
		}
		_, conv := x.history()
		if conv["customer_phone"] != nil || fmt.Sprint(conv["variables"]) != "map[customer_name:Ana]" {
			t.Errorf("%v", conv)
		}
		x.post("/user/whatsapp/send-freeform",
			map[string]any{"sender_id": x.sender, "recipient_phone": bo, "message": "On its way."}, status(200))
		if two := x.sent(2)[1]; two.To != bo || two.Text != "On its way." {
			t.Errorf("%+v", two)
		}
		const ana = "US.ENT.11815799212886844830"
		x.tell(graphtest.Inbound("111", "14155552671", "Ana", "w2", time.Now(), graphtest.Object{"type": "text",
			"text": graphtest.Object{"body": "It's me"}, "from_user_id": ana}))
		x.sent(3)
		x.tell(hidden("w3", ana, "Now without a number"))
		if four := x.sent(4)[3]; four.To != "14155552671" {
			t.Errorf("%+v", four)
		}
		if n := len(x.get("/user/conversations?type=whatsapp", status(200)).rows()); n != 2 {
			t.Errorf("%d conversations of two people", n)
		}
	})
}

// The answer to a send request gets lost: the first status says that the message went out, and it is charged. If it
// fails after that, the money is given back.
func TestWhatsAppLostAnswer(t *testing.T) {
	eachTexting(t, func(t *testing.T, x *texting) {
		body := map[string]any{"sender_id": x.sender, "template_id": x.template("hello"), "recipient_phone": customer}
		x.graph.Script(graphtest.Behaviour{Lose: true})
		key := header("Idempotency-Key", "k")
		first := x.post("/user/whatsapp/send", body, status(502), key)
		if got := first.json(); got["error_code"] != "SEND_FAILED" || x.balance() != "5" {
			t.Errorf("%v balance %s", got, x.balance())
		}
		lost := x.sent(1)[0]
		// It may have gone out: a request under the same key does not send it again.
		if again := x.post("/user/whatsapp/send", body, status(502),
			key); string(again.body) != string(first.body) || len(x.graph.Sent()) != 1 {
			t.Errorf("again %s, sent %d", again.body, len(x.graph.Sent()))
		}
		for range 2 {
			x.tell(graphtest.Status("111", lost.ID, "delivered", lost.Opaque))
			x.tell(graphtest.Status("111", lost.ID, "sent", lost.Opaque))
		}
		lines, conv := x.history()
		if !slices.Equal(lines, []string{"assistant: Welcome!"}) || x.balance() != "4.99" ||
			fmt.Sprint(conv["total_cost"]) != "0.01" {
			t.Errorf("%q balance %s", lines, x.balance())
		}
		if m := x.row(lost.ID); m == nil || m.Status != parley.WhatsAppDelivered {
			t.Errorf("%+v", m)
		}
		// Accepted, charged, and then not delivered, reported twice and out of order.
		x.post("/user/whatsapp/send", body, status(200))
		second := x.sent(2)[1]
		for _, s := range []string{"failed", "sent", "failed"} {
			x.tell(graphtest.Status("111", second.ID, s, second.Opaque,
				graphtest.Object{"code": 131026, "title": "Message undeliverable"}))
		}
		if m := x.row(second.ID); m.Status != parley.WhatsAppFailed || !strings.Contains(m.Error, "131026") ||
			x.balance() != "4.99" {
			t.Errorf("%+v balance %s", m, x.balance())
		}
		// The status arrives before the answer.
		gate, taken := make(chan struct{}), make(chan graphtest.Sent, 1)
		x.graph.Script(graphtest.Behaviour{Gate: gate, Taken: taken})
		done := make(chan *answer)
		go func() { done <- x.post("/user/whatsapp/send", body, status(200)) }()
		third := <-taken
		x.tell(graphtest.Status("111", third.ID, "read", third.Opaque))
		close(gate)
		if a := (<-done).json(); a["status"] != "read" || a["whatsapp_message_id"] != third.ID ||
			x.balance() != "4.98" {
			t.Errorf("%v balance %s", a, x.balance())
		}
		// A status that carries our id of another message changes nothing.
		x.tell(graphtest.Status("111", "wamid.elsewhere", "failed", third.Opaque))
		x.tell(graphtest.Status("111", "wamid.elsewhere", "failed", "parley:notanumber"))
		if x.balance() != "4.98" {
			t.Errorf("balance %s", x.balance())
		}
	})
}

// If a conversation goes while nobody knows whether its message was sent, the message costs nothing, whatever is told of it
// later, and nothing stays set aside.
func TestWhatsAppDeletedUnderWay(t *testing.T) {
	for name, remove := range map[string]func(x *texting, conversation string){
		"deleted": func(x *texting, conversation string) { x.delete("/user/conversations/"+conversation, status(200)) },
		"erased": func(x *texting, _ string) {
			x.write(func(ctx context.Context, tx *store.Tx) error {
				_, _, err := tx.EraseCustomer(ctx, x.user.ID, customer)
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachTexting(t, func(t *testing.T, x *texting) {
				x.graph.Script(graphtest.Behaviour{Lose: true})
				x.post("/user/whatsapp/send", map[string]any{"sender_id": x.sender, "template_id": x.template("hello"),
					"recipient_phone": customer}, status(502))
				lost := x.sent(1)[0]
				_, conv := x.history()
				free := func() parley.Money {
					t.Helper()
					free, err := x.db.Free(t.Context(), x.user.ID)
					if err != nil {
						t.Fatal(err)
					}
					return free
				}
				if got := free(); got >= 5*parley.USD {
					t.Errorf("%v are free while the message is under way", got)
				}
				remove(x, conv["id"].(string))
				x.tell(graphtest.Status("111", lost.ID, "delivered", lost.Opaque))
				if got := free(); got != 5*parley.USD || x.balance() != "5" {
					t.Errorf("%v of %s are free", got, x.balance())
				}
			})
		})
	}
}

// Replies that the platform can't take for a moment go out later, in order, and once.
func TestWhatsAppReplyIsRetried(t *testing.T) {
	eachTexting(t, func(t *testing.T, x *texting) {
		x.tell(graphtest.Text("111", "14155552671", "wamid.1", "one"))
		x.sent(1)
		_, conv := x.history()
		at := "/user/conversations/" + conv["id"].(string) + "/reply"
		x.graph.Script(graphtest.Behaviour{Status: 429, Code: 130429, Message: "Rate limit hit"},
			graphtest.Behaviour{Status: 503, Raw: "down"})
		for _, text := range []string{"first", "second", "third"} {
			x.post(at, map[string]any{"message": text}, status(201))
		}
		var texts []string
		for _, s := range x.sent(4)[1:] {
			texts = append(texts, s.Text)
		}
		if !slices.Equal(texts, []string{"first", "second", "third"}) {
			t.Errorf("sent %q", texts)
		}
		// Outside the window a person's message is refused, and nothing is stored.
		x.write(func(ctx context.Context, tx *store.Tx) error {
			return tx.DeleteConversation(ctx, x.user.ID, conv["id"].(string))
		})
		x.tell(graphtest.Inbound("111", "14155552671", "Ana", "wamid.old", time.Now().Add(-25*time.Hour),
			graphtest.Object{"type": "text", "text": graphtest.Object{"body": "late"}}))
		x.sent(5)
		lines, conv := x.history()
		x.post("/user/conversations/"+conv["id"].(string)+"/reply", map[string]any{"message": "too late"}, status(403))
		if now, _ := x.history(); !slices.Equal(now, lines) {
			t.Errorf("%q", now)
		}
	})
}

func TestWhatsAppWebhook(t *testing.T) {
	x := openTexting(t, storetest.SQLite(t, rules), auth.Rate{})
	verify := func(query string) (int, string) {
		t.Helper()
		res, err := http.Get(x.hooks + "?" + query)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(b)
	}
	if n, b := verify("hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=" +
		graphtest.VerifyToken); n != 200 || b != "1158201444" {
		t.Errorf("%d %s", n, b)
	}
	for _, q := range []string{"", "hub.mode=subscribe&hub.challenge=1",
		"hub.mode=subscribe&hub.challenge=1&hub.verify_token=x", "hub.mode=x&hub.challenge=1&hub.verify_token=" +
			graphtest.VerifyToken} {
		if n, b := verify(q); n != 403 || strings.Contains(b, "1") && b == "1" {
			t.Errorf("%s: %d %s", q, n, b)
		}
	}
	body := graphtest.Text("111", "14155552671", "wamid.1", "Hi")
	for _, signature := range []string{"", "sha256=", "sha256=00", graph.Sign("other", body),
		graph.Sign(graphtest.AppSecret, append(body, ' '))} {
		if n := x.hook(body, signature); n != 403 {
			t.Errorf("signature %q: %d", signature, n)
		}
	}
	if lines, _ := x.history(); len(lines) != 0 {
		t.Errorf("believed: %q", lines)
	}
	for _, odd := range []string{`not json`, `{}`, `[]`,
		`{"entry":[{"changes":[{"field":"messages","value":{"messages":[{"id":"a"},{"from":"1"},5]}}]}]}`} {
		if n := x.hook([]byte(odd), graph.Sign(graphtest.AppSecret, []byte(odd))); n != 200 {
			t.Errorf("%s: %d", odd, n)
		}
	}
	readOnly(t, x.db)
	if n := x.hook(body, graph.Sign(graphtest.AppSecret, body)); n != 503 {
		t.Errorf("while nothing can be written: %d", n)
	}
	big := bytes.Repeat([]byte(" "), 5<<20)
	if n := x.hook(big, graph.Sign(graphtest.AppSecret, big)); n != 413 {
		t.Errorf("5 MiB: %d", n)
	}
	x.line.AppSecret, x.line.VerifyToken = "", ""
	if n := x.hook(body, graph.Sign("", body)); n != 403 {
		t.Errorf("without a secret: %d", n)
	}
	if n, _ := verify("hub.mode=subscribe&hub.challenge=1&hub.verify_token="); n != 403 {
		t.Errorf("without a token: %d", n)
	}
}

func TestWhatsAppLimitAndNone(t *testing.T) {
	x := openTexting(t, storetest.SQLite(t, rules), auth.Rate{PerSecond: 0.001, Burst: 2})
	body := map[string]any{"sender_id": x.sender, "template_id": x.template("hello"), "recipient_phone": customer}
	for range 2 {
		x.post("/user/whatsapp/send", body, status(200))
	}
	x.post("/user/whatsapp/send", body, status(429))
	x.post("/user/whatsapp/send-freeform", map[string]any{"sender_id": x.sender, "recipient_phone": customer,
		"message": "Hi"}, status(429))

	x.line.Graph = nil // no account is configured any more
	x.get("/user/whatsapp/senders?status=all", status(200)).is(`{"data":[]}`)
	other := x.stranger()
	if e := other.post("/user/whatsapp/send", body, status(404)).json(); e["error_code"] != "SENDER_NOT_FOUND" {
		t.Errorf("%v", e)
	}
}

// A server dies while it waits for the platform: the sweep sends the reply again, unless a status has said that it went
// out. A message from a user is given up if no status comes.
func TestWhatsAppStranded(t *testing.T) {
	eachTexting(t, func(t *testing.T, x *texting) {
		x.tell(graphtest.Text("111", "14155552671", "wamid.1", "Hi"))
		one := x.sent(1)[0]
		x.until("the reply's row", func() bool { return x.row(one.ID) != nil })
		var ids []int64
		strand := func(messageID int64, cost parley.Money) *parley.WhatsAppMessage {
			m := &parley.WhatsAppMessage{SenderID: x.sender, ConversationID: x.row(one.ID).ConversationID,
				MessageID: messageID, Phone: customer, Body: fmt.Sprint("part ", len(ids)),
				Status: parley.WhatsAppSending, Cost: cost}
			x.write(func(ctx context.Context, tx *store.Tx) error {
				if _, err := tx.AddWhatsAppMessage(ctx, x.user.ID, m); err != nil {
					return err
				}
				return tx.Reserve(ctx, x.user.ID, fmt.Sprint("whatsapp:", m.ID), cost, parley.Now().Add(time.Hour))
			})
			ids = append(ids, m.ID)
			return m
		}
		message := x.row(one.ID).MessageID
		told, lost, hopeless := strand(message, 0), strand(message, 0), strand(0, 10_000)
		x.tell(graphtest.Status("111", "wamid.told", "delivered", fmt.Sprint("parley:", told.ID)))
		for range 2 { // too early: another node's work is not touched
			if err := x.line.Sweep(t.Context(), parley.Now()); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(x.graph.Sent()); n != 1 {
			t.Fatalf("%d sent", n)
		}
		for range 2 {
			if err := x.line.Sweep(t.Context(), parley.Now().Add(20*time.Minute)); err != nil {
				t.Fatal(err)
			}
		}
		if s := x.graph.Sent(); len(s) != 2 || s[1].Text != lost.Body {
			t.Errorf("sent %+v", s)
		}
		if m, err := x.db.WhatsAppMessage(t.Context(), hopeless.ID); err != nil || m.Status != parley.WhatsAppFailed {
			t.Errorf("%+v %v", m, err)
		}
		if free, err := x.db.Free(t.Context(), x.user.ID); err != nil || free != 4_990_000 {
			t.Errorf("%v is free: %v", free, err)
		}
		// It went out after all.
		x.tell(graphtest.Status("111", "wamid.late", "sent", fmt.Sprint("parley:", hopeless.ID)))
		if lines, _ := x.history(); lines[len(lines)-1] != "assistant: "+hopeless.Body || x.balance() != "4.98" {
			t.Errorf("%q balance %s", lines, x.balance())
		}
	})
}

// A reply that is too long for the platform goes out in parts, in order.
func TestWhatsAppLongReply(t *testing.T) {
	x := openTexting(t, storetest.SQLite(t, rules), auth.Rate{})
	long := strings.TrimSpace(strings.Repeat("word ", 1000)) + "."
	x.model.Script(aitest.Behaviour{Text: long})
	x.tell(graphtest.Text("111", "14155552671", "wamid.1", "Tell me all"))
	parts := x.sent(2)
	if got := parts[0].Text + " " + parts[1].Text; got != long || len(parts) != 2 {
		t.Errorf("%d parts: %d and %d characters", len(parts), len(parts[0].Text), len(parts[1].Text))
	}
}
