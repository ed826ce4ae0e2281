package call_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/assistant"
	"parley/internal/audio"
	"parley/internal/billing"
	"parley/internal/blob"
	"parley/internal/call"
	"parley/internal/catalog"
	"parley/internal/egress"
	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/provider/openai"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/tool"
	"parley/internal/voice"
)

func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) }

// patience bounds every wait: it only guards against a hang.
const patience = 20 * time.Second

// harness is a database with a user, an outbound assistant with a number, and the far end that is called.
type harness struct {
	testing.TB
	db         *store.DB
	model      *aitest.Server
	assistants *assistant.Studio
	prices     *billing.Prices
	blobs      *blob.Dir
	dir        string
	user       *parley.User
	number     *parley.Number
	a          *parley.Assistant
	far        *farEnd
	beats      bool // processes only give signs of life: looking for reports for weeks would take too long
}

func each(t *testing.T, test func(t *testing.T, h *harness)) {
	t.Helper()
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) { test(t, open(t, db)) })
}

func lite(t *testing.T) *harness {
	t.Helper()
	t.Parallel()
	return open(t, storetest.SQLite(t))
}

func open(t testing.TB, db *store.DB) *harness {
	t.Helper()
	model := aitest.NewServer(t)
	model.Models = []string{"thinker"}
	h := furnish(t, db, model.URL)
	h.model = model
	return h
}

// slowly runs a test on fake time, in which weeks pass in a moment: on SQLite, as nothing may wait for a network, and
// without a model.
func slowly(t *testing.T, test func(t *testing.T, h *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, furnish(t, storetest.SQLite(t), "http://127.0.0.1:9")) })
}

func furnish(t testing.TB, db *store.DB, model string) *harness {
	t.Helper()
	h := &harness{TB: t, db: db, dir: t.TempDir(), far: &farEnd{legs: make(chan *leg, 100)}}
	providers, err := provider.Open(provider.All(openai.Declare(&openai.Settings{BaseURL: model,
		Stall: 10 * time.Second})))
	h.must(err)
	t.Cleanup(providers.Close)
	guard := egress.New(nil, netip.MustParsePrefix("127.0.0.0/8"))
	t.Cleanup(guard.Close)
	cat := catalog.New("", provider.All(openai.Declare(&openai.Settings{APIKey: "k", ChatModel: []string{"thinker"}})))
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.KeepModels(ctx, cat.Models()) })
	rows, err := db.Models(t.Context())
	h.must(err)
	h.must(cat.SetModels(rows))
	h.prices, err = billing.ReadPrices("")
	h.must(err)
	h.blobs, err = blob.OpenDir(t.TempDir())
	h.must(err)
	h.assistants = &assistant.Studio{DB: db, Catalog: cat, Providers: providers, Tools: tool.New(guard)}
	h.user = storetest.User(t, db, 10*parley.USD)
	h.number = h.rent("+12025550100")
	h.a = h.assistant(
		`{"phone_number_id":%d,"is_webhook_active":true,"webhook_url":"http://127.0.0.1:9/hook","send_webhook_only_on_completed":false}`,
		h.number.ID)
	return h
}

func (h *harness) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *harness) write(fn func(context.Context, *store.Tx) error) {
	h.Helper()
	h.must(h.db.Write(context.Background(), fn))
}

// rent gives the user a number.
func (h *harness) rent(phone string) *parley.Number {
	h.Helper()
	n := &parley.Number{PhoneNumber: phone, CountryCode: parley.PhoneCountry(phone), Type: parley.NumberNormal,
		PaidUntil: parley.Now().Add(time.Hour)}
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateNumber(ctx, h.user.ID, n) })
	return n
}

// assistant makes an active outbound assistant, with changes.
func (h *harness) assistant(change string, args ...any) *parley.Assistant {
	h.Helper()
	cat := h.assistants.Catalog
	text := fmt.Sprintf(`{"name":"Anna","type":"outbound","mode":"pipeline","status":"active","timezone":"UTC","voice_id":%d,"language_id":1,"llm_model_id":%d,
		"system_prompt":"Serve {{who}}.","initial_message":"Hello {{who}}.","variables":{"who":"everybody"},"max_duration":120,"ringing_time":20}`,
		cat.Voices("pipeline", 1)[0].ID, cat.ModelsOf(parley.LLM)[0].ID)
	body := tree(h, text)
	for k, v := range tree(h, fmt.Sprintf(change, args...)) {
		body[k] = v
	}
	a, err := h.assistants.Create(context.Background(), h.user.ID, body)
	h.must(err)
	return a
}

// change changes an assistant.
func (h *harness) change(a *parley.Assistant, change string, args ...any) {
	h.Helper()
	_, err := h.assistants.Update(context.Background(), h.user.ID, a.ID, tree(h, fmt.Sprintf(change, args...)))
	h.must(err)
}

func tree(h *harness, text string) (v map[string]any) {
	h.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	h.must(dec.Decode(&v))
	return v
}

// node is a process on the database. To the others, kill looks like a power cut.
type node struct {
	*call.Center
	h    *harness
	kill context.CancelFunc
	done chan struct{}
}

// speech gives every vendor a voice and a recognizer.
type speech struct {
	voice      aitest.Synthesizer
	recognizer aitest.Recognizer
	err        error
}

func (s *speech) Synthesizer(string) (ai.Synthesizer, error) { return &s.voice, s.err }
func (s *speech) Recognizer(string) (ai.Recognizer, error)   { return &s.recognizer, s.err }
func (s *speech) Realtime(_, model string) (ai.RealtimeModel, error) {
	return nil, ai.NotConfigured("realtime model", model, "it is not")
}

// node starts a process, with changes of its configuration.
func (h *harness) node(changes ...func(*call.Config)) *node {
	h.Helper()
	where, err := call.ParseDestinations([]string{"US", "+49"})
	h.must(err)
	c := call.Config{DB: h.db, Assistants: h.assistants, Speech: &speech{}, Prices: h.prices, Hub: event.NewHub(),
		Blobs: h.blobs, Dir: h.dir, BaseURL: "https://voice.example.com",
		Secret: []byte("0123456789abcdef0123456789abcdef"), Dial: h.far.dial, Converse: converse,
		Destinations: where, Beat: 50 * time.Millisecond, Lost: 10 * time.Second}
	for _, change := range changes {
		change(&c)
	}
	n := &node{Center: call.New(c), h: h, done: make(chan struct{})}
	ctx, kill := context.WithCancel(context.Background())
	n.kill = func() { kill(); <-n.done }
	go func() {
		defer close(n.done)
		if h.beats {
			n.Pulse(ctx)
		} else {
			n.Run(ctx)
		}
	}()
	h.Cleanup(func() {
		gone, cut := context.WithCancel(context.Background())
		cut()
		n.Stop(gone)
		n.kill()
	})
	return n
}

// start makes a call to a number that answers.
func (n *node) start(o ...func(*call.Order)) *parley.Call {
	n.h.Helper()
	order := call.Order{UserID: n.h.user.ID, AssistantID: n.h.a.ID, To: "+12025550199"}
	for _, change := range o {
		change(&order)
	}
	c, err := n.Start(context.Background(), order)
	n.h.must(err)
	return c
}

func to(phone string) func(*call.Order) { return func(o *call.Order) { o.To = phone } }

// answered returns the leg of the next call that is answered.
func (h *harness) answered() *leg {
	h.Helper()
	select {
	case l := <-h.far.legs:
		return l
	case <-time.After(patience):
		h.Fatal("nobody was called")
		return nil
	}
}

// call reads a stored call.
func (h *harness) call(id int64) *parley.Call {
	h.Helper()
	c, err := h.db.RecordedCall(context.Background(), id)
	h.must(err)
	return c
}

// until waits until a stored call satisfies ok.
func (h *harness) until(id int64, what string, ok func(c *parley.Call) bool) *parley.Call {
	h.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		c := h.call(id)
		if ok(c) {
			return c
		}
		if time.Now().After(deadline) {
			h.Fatalf("call %d is not %s: %+v", id, what, c)
		}
	}
}

func (h *harness) status(id int64, s parley.CallStatus) *parley.Call {
	h.Helper()
	return h.until(id, string(s), func(c *parley.Call) bool { return c.Status == s })
}

// reported waits for a call's report.
func (h *harness) reported(id int64) *parley.Call {
	h.Helper()
	return h.until(id, "reported", func(c *parley.Call) bool { return c.EndedAt != 0 && c.ReportDue == 0 })
}

// money returns the user's balance, the reserved part of it, and the ledger without its first entry, oldest first.
func (h *harness) money() (balance, reserved parley.Money, entries []parley.LedgerEntry) {
	h.Helper()
	u, err := h.db.User(context.Background(), h.user.ID)
	h.must(err)
	free, err := h.db.Free(context.Background(), h.user.ID)
	h.must(err)
	list, _, err := h.db.Ledger(context.Background(), h.user.ID, 0, 0, store.Page{Number: 1, Size: 100})
	h.must(err)
	for i := len(list) - 2; i >= 0; i-- {
		entries = append(entries, list[i])
	}
	return u.Balance, u.Balance - free, entries
}

// events returns the payloads of the events for the user's endpoints, oldest first.
func (h *harness) events() (list []map[string]any) {
	h.Helper()
	rows, _, err := h.db.Deliveries(context.Background(), h.user.ID, "", "", store.Page{Number: 1, Size: 100})
	h.must(err)
	for i := len(rows) - 1; i >= 0; i-- {
		d, err := h.db.Delivery(context.Background(), h.user.ID, rows[i].ID)
		h.must(err)
		var v map[string]any
		h.must(json.Unmarshal([]byte(d.Payload), &v))
		list = append(list, v)
	}
	return list
}

// farEnd is the party that is called.
type farEnd struct {
	mu    sync.Mutex
	route call.Route
	err   error         // instead of an answer
	gate  chan struct{} // after ringing, the answer waits until this is closed
	hangs bool          // never answers
	forks int           // how many more places ring
	legs  chan *leg
}

func (f *farEnd) set(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn()
}

func (f *farEnd) dial(ctx context.Context, r call.Route, ringing func()) (audio.Leg, error) {
	f.mu.Lock()
	f.route = r
	err, gate, hangs, forks := f.err, f.gate, f.hangs, f.forks
	f.mu.Unlock()
	for range 1 + forks {
		ringing()
	}
	if hangs {
		gate = make(chan struct{})
	}
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	l := newLeg()
	f.legs <- l
	return l, nil
}

// leg is the leg to a far end that was reached: the test decides what is said and who hangs up.
type leg struct {
	does   chan func(*voice.Session)
	reason chan parley.EndedReason
	breaks chan error    // a vendor's failure that the conversation runs into
	over   chan struct{} // closed when the conversation is over
	down   chan struct{} // closed when we have hung up
	hang   sync.Once
}

func newLeg() *leg {
	return &leg{does: make(chan func(*voice.Session)), reason: make(chan parley.EndedReason, 1),
		breaks: make(chan error), over: make(chan struct{}), down: make(chan struct{})}
}

func (l *leg) Hangup() { l.hang.Do(func() { close(l.down) }) }

func (*leg) Rate() audio.Rate  { return audio.Narrow }
func (*leg) Dial(string) error { return nil }

// Run waits until the far end hangs up; without a reason, it first listens to the end.
func (l *leg) Run(ctx context.Context, p audio.Peer) error {
	select {
	case r := <-l.reason:
		if r != "" {
			return r
		}
	case <-ctx.Done():
	}
	for frame := make(audio.Frame, 160); ctx.Err() == nil; {
		p.Tick(frame, frame)
	}
	return context.Cause(ctx)
}

func (*leg) Transfer(ctx context.Context, to string) error { return nil }
func (l *leg) hangUp(reason parley.EndedReason)            { l.reason <- reason }
func (l *leg) do(h testing.TB, fn func(s *voice.Session)) {
	h.Helper()
	done := make(chan struct{})
	select {
	case l.does <- func(s *voice.Session) { defer close(done); fn(s) }:
		<-done
	case <-time.After(patience):
		h.Fatal("the conversation does not go on")
	}
}

// says has a speaker say something.
func (l *leg) says(h testing.TB, speaker, text string) {
	h.Helper()
	l.do(h, func(s *voice.Session) {
		s.Tell(voice.Event{Kind: voice.TurnEnded, Turn: parley.CallTurn{Speaker: speaker, Text: text}})
	})
}

func (l *leg) uses(h testing.TB, name string) {
	h.Helper()
	l.do(h, func(s *voice.Session) {
		s.Tell(voice.Event{Kind: voice.ToolUsed, Call: agent.ToolCall{Name: name,
			Arguments: json.RawMessage(`{"a":1}`), Result: "done"}})
	})
}

// converse is a conversation that does what the test's leg says.
func converse(ctx context.Context, s *voice.Session, l audio.Leg) (r voice.Result) {
	far := l.(*leg)
	defer close(far.over)
	tell := s.Tell
	s.Tell = func(e voice.Event) {
		if e.Kind == voice.TurnEnded {
			r.Turns = append(r.Turns, e.Turn)
		}
		tell(e)
	}
	if s.Record != nil {
		rec, err := audio.NewRecorder(s.Record, far.Rate())
		if err == nil {
			err = rec.Write(make(audio.Frame, 160), make(audio.Frame, 160))
		}
		if err == nil {
			defer rec.Close()
		}
	}
	for {
		select {
		case fn := <-far.does:
			fn(s)
		case r.Failure = <-far.breaks:
		case r.Reason = <-far.reason:
			return r
		case <-ctx.Done():
			r.Reason, _ = context.Cause(ctx).(parley.EndedReason)
			return r
		}
	}
}

// files lists the recordings in progress in the directory of recordings.
func (h *harness) files() []string {
	h.Helper()
	list, err := filepath.Glob(filepath.Join(h.dir, "*"))
	h.must(err)
	return list
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
