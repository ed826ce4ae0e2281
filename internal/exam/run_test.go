package exam

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"parley/internal/assistant"
	"parley/internal/event"
	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func init() { storetest.Explains = true }

// world is an API whose assistants give scripted answers.
type world struct {
	mu       sync.Mutex
	answer   string
	asked    int           // messages
	busy     int           // how often there is no line yet
	hold     chan struct{} // not nil: messages wait for it
	arriving chan struct{} // a message has come
	broken   chan struct{} // a waiting message was cancelled
}

func (w *world) ServeHTTP(res http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "POST /api/user/rehearsals":
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.busy--; w.busy >= 0 {
			res.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(res, `{"message":%q}`, parley.LinesTaken+": your plan allows no more.")
			return
		}
		fmt.Fprint(res, `{"data":{"token":"test-1"}}`)
	case "POST /api/conversations":
		fmt.Fprint(res, `{"conversation_id":"c","history":[]}`)
	case "POST /api/conversations/c/messages":
		w.mu.Lock()
		w.asked++
		answer, hold := w.answer, w.hold
		w.mu.Unlock()
		w.arriving <- struct{}{}
		if hold != nil {
			select {
			case <-hold:
			case <-r.Context().Done():
				w.broken <- struct{}{}
			}
		}
		fmt.Fprintf(res, `{"message":%q,"function_calls":[]}`, answer)
	default:
		fmt.Fprint(res, `{}`)
	}
}

// RoundTrip implements http.RoundTripper.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return rec.Result(), nil
}

// house makes an account with an assistant that has a test.
type house struct {
	*testing.T
	*world
	db *store.DB
	a  *parley.Assistant
}

func each(t *testing.T, test func(h *house)) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := &house{t, &world{answer: "We open at 7 am.", arriving: make(chan struct{}, 100), broken: make(chan struct{}, 100)}, db, nil}
		u := storetest.User(t, db, parley.USD)
		h.a = &parley.Assistant{}
		form.Defaults(h.a)
		h.a.Name, h.a.Type, h.a.Status, h.a.Mode, h.a.Timezone, h.a.VoiceID, h.a.LanguageID = "Front desk", "inbound", "active", "pipeline",
			"UTC", 1, 1
		if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error { return tx.CreateAssistant(ctx, u.ID, h.a) }); err != nil {
			t.Fatal(err)
		}
		if _, err := h.desk().
			Create(t.Context(), u.ID, h.a.ID, "name: Open\nchannel: chat\nsteps:\n  - say: When?\n  - expect: {says: 7 am}\n"); err != nil {
			t.Fatal(err)
		}
		test(h)
	}, store.Rules{})
}

func (h *house) desk() *Desk {
	d := New(Config{DB: h.db, Assistants: &assistant.Studio{DB: h.db}, Hub: event.NewHub(),
		Ask: func(int64) http.RoundTripper { return h.world }})
	d.lease, d.beat, d.again = 2*time.Second, 100*time.Millisecond, 50*time.Millisecond
	return d
}

// serve runs a desk; the returned function ends it and waits until it has ended.
func (h *house) serve(d *Desk) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	return sync.OnceFunc(func() { cancel(); <-done })
}

func (h *house) start(d *Desk, o Order) *parley.TestRun {
	h.Helper()
	run, err := d.Start(h.Context(), h.a.UserID, h.a.ID, o)
	if err != nil {
		h.Fatal(err)
	}
	return run
}

func (h *house) report(d *Desk, id int64) *Report {
	h.Helper()
	r, err := d.Report(h.Context(), h.a.UserID, h.a.ID, id)
	if err != nil {
		h.Fatal(err)
	}
	return r
}

func (h *house) finished(d *Desk, id int64) *Report {
	h.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if r := h.report(d, id); r.FinishedAt != 0 {
			return r
		} else if time.Now().After(deadline) {
			h.Fatalf("the run does not finish: %+v", r.TestRun)
		}
	}
}

func (h *house) wait(what string, c <-chan struct{}) {
	h.Helper()
	select {
	case <-c:
	case <-time.After(20 * time.Second):
		h.Fatal(what)
	}
}

func (h *house) arrived() {
	h.Helper()
	h.wait("nobody performs the test", h.arriving)
}

// A test for which the account has no line now is given back, as often as that takes, and performed once there is one.
func TestRunWaitsForALine(t *testing.T) {
	each(t, func(h *house) {
		h.busy = maxTries + 2
		d := h.desk()
		defer h.serve(d)()
		r := h.finished(d, h.start(d, Order{}).ID)
		if len(r.Results) != 1 || r.Results[0].State != parley.TestPassed || r.Results[0].Tries != 1 {
			t.Errorf("%+v", r.Results)
		}
	})
}

// A run is performed, and the next one is compared with it.
func TestRun(t *testing.T) {
	each(t, func(h *house) {
		d := h.desk()
		defer h.serve(d)()
		if r := h.finished(d, h.start(d, Order{}).ID); r.Passed != 1 || r.Results[0].Figures == nil || len(r.Changes) != 0 {
			h.Errorf("the run ends as %+v, %+v", r.TestRun, r.Results)
		}
		h.mu.Lock()
		h.answer = "We open at 8 am."
		h.mu.Unlock()
		words := "Be brief."
		for _, draft := range []*parley.Draft{{SystemPrompt: &words}, nil} {
			r := h.finished(d, h.start(d, Order{Draft: draft}).ID)
			if r.Failed != 1 || len(r.Changes) != 1 || r.Changes[0].Better || r.Changes[0].Before != parley.TestPassed ||
				r.Results[0].Verdicts[0].Line != 5 {
				h.Errorf("the worse run ends as %+v, %+v", r.TestRun, r.Changes)
			}
		}
		tests, err := h.db.Tests(h.Context(), h.a.UserID, h.a.ID)
		if err != nil || tests[0].LastState != parley.TestFailed {
			h.Errorf("the test is %+v, %v", tests, err)
		}
	})
}

// A server that stops gives its runs back; a server that dies loses them when its lease expires. The next server
// performs them, and each is stored once.
func TestRunSurvives(t *testing.T) {
	each(t, func(h *house) {
		h.hold = make(chan struct{})
		first := h.desk()
		stop := h.serve(first)
		run := h.start(first, Order{})
		h.arrived()
		stop()
		if r := h.report(first, run.ID); r.Results[0].State != parley.TestWaiting {
			h.Fatalf("given back it is %s", r.Results[0].State)
		}

		// a process that takes the run and is never heard of again
		var lost []parley.TestResult
		now := parley.Now()
		if err := h.db.Write(h.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
			lost, err = tx.ClaimTests(ctx, "dead", false, now, now.Add(time.Second), 10)
			return err
		}); err != nil || len(lost) != 1 {
			h.Fatalf("claimed are %v, %v", lost, err)
		}
		close(h.hold)
		second := h.desk()
		defer h.serve(second)()
		r := h.finished(second, run.ID)
		if r.Passed != 1 || r.Results[0].State != parley.TestPassed {
			h.Errorf("the run ends as %+v", r.TestRun)
		}
		lost[0].State = parley.TestFailed
		if err := h.db.Write(h.Context(), func(ctx context.Context, tx *store.Tx) error {
			mine, err := tx.FinishTest(ctx, &lost[0])
			if mine {
				h.Error("a process that had lost it stored its own result")
			}
			return err
		}); err != nil {
			h.Error(err)
		}
		if h.report(second, run.ID).Passed != 1 {
			h.Error("the result was overwritten")
		}
	})
}

// A run that is stopped is cancelled, and calls wait while no process has a telephone.
func TestRunStops(t *testing.T) {
	each(t, func(h *house) {
		h.hold = make(chan struct{})
		d := h.desk()
		defer h.serve(d)()
		spoken, err := d.Create(h.Context(), h.a.UserID, h.a.ID, "name: Spoken\nsteps:\n  - hear: greeting\n")
		if err != nil {
			h.Fatal(err)
		}
		waits := h.start(d, Order{Tests: []int64{spoken.ID}})
		run := h.start(d, Order{})
		h.arrived()
		if err := d.Stop(h.Context(), h.a.UserID, h.a.ID, run.ID); err != nil {
			h.Fatal(err)
		}
		if r := h.report(d, run.ID); r.Status != "stopped" || r.Left != 0 || r.Results[0].State != parley.TestStopped {
			h.Errorf("stopped it is %+v", r.TestRun)
		}
		if r := h.report(d, waits.ID); r.Results[0].State != parley.TestWaiting {
			h.Errorf("without a telephone the call is %s", r.Results[0].State)
		}
		h.wait("what was stopped is not broken off", h.broken)
		if r := h.report(d, run.ID); r.Results[0].State != parley.TestStopped {
			h.Errorf("afterwards it is %s", r.Results[0].State)
		}
	})
}

// When a customer is erased, the tests and replays made from their words are erased, and nobody else's.
func TestErased(t *testing.T) {
	each(t, func(h *house) {
		phone, d := "+12025550123", h.desk()
		c := &parley.Conversation{UserID: h.a.UserID, AssistantID: h.a.ID, Type: parley.TestConversation,
			Variables: map[string]string{}, CustomerPhone: &phone}
		write := func(fn func(ctx context.Context, tx *store.Tx) error) {
			h.Helper()
			if err := h.db.Write(h.Context(), fn); err != nil {
				h.Fatal(err)
			}
		}
		write(func(ctx context.Context, tx *store.Tx) error {
			if err := tx.CreateConversation(ctx, c, ""); err != nil {
				return err
			}
			return tx.AddMessage(ctx, &parley.Message{ConversationID: c.ID, Role: parley.RoleUser, Content: "I am Ana."}, 0, 0)
		})
		made, err := d.CreateFrom(h.Context(), h.a.UserID, Source{ConversationID: c.ID})
		if err != nil {
			h.Fatal(err)
		}
		stop := h.serve(d)
		defer stop()
		replay, both := h.start(d, Order{ConversationID: c.ID}), h.start(d, Order{})
		h.finished(d, replay.ID)
		h.finished(d, both.ID)
		erase := func(who string) {
			h.Helper()
			write(func(ctx context.Context, tx *store.Tx) error {
				_, _, err := tx.EraseCustomer(ctx, h.a.UserID, who)
				return err
			})
		}
		erase("+12025550124")
		if _, err := h.db.Test(h.Context(), h.a.UserID, h.a.ID, made.ID); err != nil {
			h.Errorf("somebody else was erased: %v", err)
		}
		erase(phone)
		if _, err := h.db.Test(h.Context(), h.a.UserID, h.a.ID, made.ID); !store.IsNotFound(err) {
			h.Errorf("the test of their words is left: %v", err)
		}
		if _, err := h.db.TestRun(h.Context(), h.a.UserID, h.a.ID, replay.ID); !store.IsNotFound(err) {
			h.Errorf("the replay is left: %v", err)
		}
		var words int
		if err := h.db.SQL().NewRaw("SELECT count(*) FROM test_scripts WHERE script LIKE '%I am Ana%'").
			Scan(h.Context(), &words); err != nil || words != 0 {
			h.Errorf("their words are left in %d scripts of runs: %v", words, err)
		}
		if list, err := h.db.TestResults(h.Context(), h.a.UserID, both.ID); err != nil || len(list) != 1 || list[0].Name != "Open" {
			h.Errorf("of the run are left %+v: %v", list, err)
		}
	})
}
