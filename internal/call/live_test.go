package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uptrace/bun"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/blob"
	"parley/internal/call"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/voice"
)

// A leg that was opened is ended, even if the session can't hear, if it panics, or if its assistant can't be prepared.
func TestLegsAreEnded(t *testing.T) {
	h := lite(t)
	down := func(what string, n *node) {
		t.Helper()
		n.start()
		select {
		case <-h.answered().down:
		case <-time.After(patience):
			t.Errorf("%s: the line stays silent", what)
		}
		if n.Stop(t.Context()); n.Stats().Live != 0 {
			t.Errorf("%s: %+v", what, n.Stats())
		}
	}
	deaf := &speech{}
	deaf.recognizer.Err = errors.New("the recognizer is gone")
	down("deaf", h.node(func(c *call.Config) { c.Converse, c.Speech = nil, deaf }))
	down("panic", h.node(func(c *call.Config) {
		c.Converse = func(context.Context, *voice.Session, audio.Leg) voice.Result { panic("a test's") }
	}))
	n := h.node(func(c *call.Config) {
		c.Speech = &speech{err: &ai.Error{Kind: ai.Config,
			Err: errors.New("no voice")}}
	})
	v, err := n.Web(t.Context(), h.a, call.Visitor{})
	h.must(err)
	h.must(v.Enter(t.Context()))
	l := newLeg()
	v.Begin(l)
	select {
	case <-l.down:
	case <-time.After(patience):
		t.Error("a browser stays on a silent line")
	}
}

// If something that was said or done in a call can't be stored, the call ends without it: its money and its line are
// free.
func TestUnstorable(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		n := h.node()
		id := n.start().ID
		leg := h.answered()
		leg.says(h, parley.SpeakerAssistant, "Hello.")
		h.until(id, "stored so far", func(c *parley.Call) bool { return len(c.Turns) == 1 })
		leg.do(h, func(s *voice.Session) {
			s.Tell(voice.Event{Kind: voice.ToolUsed,
				Call: agent.ToolCall{Name: "order", Arguments: json.RawMessage(`{"a":`), Result: "done"}})
			s.Tell(voice.Event{Kind: voice.Answerer, AnsweredBy: parley.AnsweredHuman})
		})
		h.until(id, "kept as far as it can be", func(c *parley.Call) bool {
			return c.AnsweredBy == parley.AnsweredHuman
		})
		leg.hangUp(parley.CustomerHangup)
		c := h.reported(id)
		if c.Status != parley.CallCompleted || c.EndedReason != parley.CustomerHangup || len(c.Turns) != 1 ||
			len(c.FunctionCalls) != 0 || c.AssistantCost == 0 {
			t.Errorf("%+v", c)
		}
		if _, reserved, entries := h.money(); reserved != 0 || len(entries) != 2 {
			t.Errorf("%s set aside, %+v", reserved, entries)
		}
		if n.Stop(t.Context()); n.Stats().Live != 0 {
			t.Error("the line is held")
		}
	})
}

// outage is a database that a process can't reach for a while.
type outage struct{ atomic.Bool }

func (o *outage) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context {
	if o.Load() {
		gone, cancel := context.WithCancelCause(ctx)
		cancel(errors.New("the database is away"))
		return gone
	}
	return ctx
}

func (o *outage) AfterQuery(context.Context, *bun.QueryEvent) {}

// apart runs a test with two processes of one database, on fake time, each with its own connection.
func apart(t *testing.T, beat time.Duration, test func(t *testing.T, h *harness, a, b *node, awayA, awayB *outage)) {
	synctest.Test(t, func(t *testing.T) {
		o := storetest.Options(t, "sqlite")
		h := furnish(t, storetest.Open(t, o), "http://127.0.0.1:9")
		h.beats = beat > 5*time.Second
		h.change(h.a, `{"max_duration":3600}`)
		one := func() (*node, *outage) {
			away := &outage{}
			mine := o
			mine.Watch = away
			db := storetest.Open(t, mine)
			return h.node(func(c *call.Config) { c.DB, c.Beat, c.Lost = db, beat, 3*beat }), away
		}
		a, awayA := one()
		b, awayB := one()
		test(t, h, a, b, awayA, awayB)
	})
}

// When nobody could reach the database, the process that comes back first does not take the others for gone: they have
// time to come back too.
func TestOutage(t *testing.T) {
	apart(t, 5*time.Second, func(t *testing.T, h *harness, a, b *node, awayA, awayB *outage) {
		id := b.start().ID
		leg := h.answered()
		h.status(id, parley.CallInProgress)
		time.Sleep(time.Minute)
		awayA.Store(true)
		awayB.Store(true)
		time.Sleep(2 * time.Minute)
		awayA.Store(false)
		time.Sleep(12 * time.Second) // a has been back for longer than its check interval
		awayB.Store(false)
		time.Sleep(time.Minute)
		if c := h.call(id); c.EndedAt != 0 {
			t.Errorf("it was ended by %s", c.EndedReason)
		}
		// A process that stays away is gone.
		awayB.Store(true)
		time.Sleep(9 * time.Second)
		if c := h.call(id); c.EndedAt != 0 {
			t.Errorf("it was ended by %s before its time", c.EndedReason)
		}
		time.Sleep(16 * time.Second)
		if c := h.call(id); c.EndedReason != parley.NodeLost || c.Status != parley.CallFailed {
			t.Errorf("nobody has closed it: %+v", c)
		}
		awayB.Store(false)
		select {
		case <-leg.down:
		case <-time.After(10 * time.Second):
			t.Error("its process goes on with it")
		}
	})
}

// A process that has just started closes no calls before the others had time to give signs of life.
func TestNewcomer(t *testing.T) {
	slowly(t, func(t *testing.T, h *harness) {
		ids := h.lost(1)
		h.node(func(c *call.Config) { c.Beat, c.Lost = 5*time.Second, 15*time.Second })
		time.Sleep(14 * time.Second)
		if c := h.call(ids[0]); c.EndedAt != 0 {
			t.Error("it was closed at once")
		}
		time.Sleep(7 * time.Second)
		if c := h.call(ids[0]); c.EndedReason != parley.NodeLost {
			t.Errorf("nobody has closed it: %+v", c)
		}
	})
}

// If a call's row was committed but its process was told that it was not, the call belongs to nobody: it is closed
// while that process lives, and costs nothing.
func TestPhantom(t *testing.T) {
	slowly(t, func(t *testing.T, h *harness) {
		n := h.node(func(c *call.Config) { c.Beat, c.Lost = 5*time.Second, 15*time.Second })
		mine := n.start().ID
		h.answered()
		var phantom int64
		h.write(func(ctx context.Context, tx *store.Tx) error {
			c := &parley.Call{AssistantID: h.a.ID, Type: parley.CallOutbound, Status: parley.CallInitiated,
				MaxDuration: 60, Node: n.Node()}
			err := tx.CreateCall(ctx, h.user.ID, c)
			phantom = c.ID
			return err
		})
		time.Sleep(time.Minute)
		if c := h.call(phantom); c.EndedReason != parley.NodeLost || c.TotalCost() != 0 {
			t.Errorf("it lives on: %+v", c)
		}
		if c := h.call(mine); c.EndedAt != 0 {
			t.Errorf("the other was ended by %s", c.EndedReason)
		}
	})
}

// A long call is never closed by another process, whatever the day; the calls of a process that is gone are closed
// soon, and charged up to its last sign of life.
func TestWeeksOfCalls(t *testing.T) {
	apart(t, time.Minute, func(t *testing.T, h *harness, a, _ *node, _, _ *outage) {
		h.write(func(ctx context.Context, tx *store.Tx) error {
			h.number.PaidUntil = parley.Now().Add(365 * 24 * time.Hour)
			_, err := tx.Post(ctx, h.user.ID, &parley.LedgerEntry{Kind: parley.Credit, Amount: 100 * parley.USD,
				Reference: "more"})
			return errors.Join(err, tx.SaveNumber(ctx, h.user.ID, h.number))
		})
		h.change(h.a, `{"max_duration":3600}`)
		for day := range 15 {
			time.Sleep(24*time.Hour - 20*time.Minute)
			id := a.start().ID
			leg := h.answered()
			time.Sleep(20 * time.Minute)
			if c := h.call(id); c.EndedAt != 0 || time.Since(c.SeenAt.Time()) > 61*time.Second {
				t.Fatalf("day %d: %+v", day, c)
			}
			leg.hangUp(parley.CustomerHangup)
			if c := h.status(id, parley.CallCompleted); c.Duration < 1200 || c.Duration > 1201 {
				t.Fatalf("day %d: %+v", day, c)
			}
			if _, reserved, _ := h.money(); reserved != 0 {
				t.Fatalf("day %d: %s are set aside", day, reserved)
			}
		}
		id := a.start().ID
		h.answered()
		time.Sleep(10 * time.Minute)
		a.kill()
		time.Sleep(5 * time.Minute)
		if c := h.call(id); c.EndedReason != parley.NodeLost || c.Duration < 540 || c.Duration > 601 {
			t.Errorf("%+v", c)
		}
	})
}

// A call's event waits for its recording, however long storing it takes, and has the link.
func TestSlowRecording(t *testing.T) {
	slowly(t, func(t *testing.T, h *harness) {
		h.change(h.a, `{"record":true}`)
		gate := make(chan struct{})
		n := h.node(func(c *call.Config) { c.Blobs = gated{h.blobs, gate} })
		id := n.start().ID
		leg := h.answered()
		h.until(id, "recording", func(c *parley.Call) bool { return c.RecordingDue })
		leg.hangUp(parley.CustomerHangup)
		time.Sleep(30 * time.Minute)
		if c := h.call(id); c.Status != parley.CallCompleted || c.ReportDue == 0 || len(h.events()) != 0 {
			t.Errorf("told %v before the recording was there: %+v", h.events(), c)
		}
		close(gate)
		c := h.reported(id)
		if events := h.events(); len(events) != 1 || events[0]["recording_url"] == nil || c.Recording == "" {
			t.Errorf("told %v", events)
		}
	})
}

// If a process dies while it stores a recording, the next process with its directory stores it; the event waits for
// that.
func TestRecordingAcrossRestart(t *testing.T) {
	slowly(t, func(t *testing.T, h *harness) {
		h.change(h.a, `{"record":true}`)
		broken := h.node(func(c *call.Config) { c.Blobs = failing{h.blobs} })
		id := broken.start().ID
		leg := h.answered()
		h.until(id, "recording", func(c *parley.Call) bool { return c.RecordingDue })
		leg.hangUp(parley.CustomerHangup)
		h.status(id, parley.CallCompleted)
		time.Sleep(time.Minute)
		broken.Stop(t.Context())
		broken.kill()
		time.Sleep(10 * time.Minute)
		if len(h.events()) != 0 {
			t.Fatalf("told %v", h.events())
		}
		n := h.node()
		h.reported(id)
		if events := h.events(); len(events) != 1 || events[0]["recording_url"] == nil {
			t.Errorf("told %v", events)
		}
		n.Stop(t.Context())
		n.kill()
		// If the sound is gone nobody waits for it, and if it can't be stored nobody waits for ever.
		broken = h.node(func(c *call.Config) { c.Blobs = failing{h.blobs} })
		gone, stuck := broken.start().ID, int64(0)
		for _, id := range []*int64{&gone, &stuck} {
			if id == &stuck {
				stuck = broken.start().ID
			}
			leg := h.answered()
			h.until(*id, "recording", func(c *parley.Call) bool { return c.RecordingDue })
			if id == &gone {
				h.must(os.Remove(filepath.Join(h.dir, strconv.FormatInt(gone, 10)+".wav")))
			}
			leg.hangUp(parley.CustomerHangup)
			h.status(*id, parley.CallCompleted)
		}
		time.Sleep(10 * time.Second)
		if c := h.call(gone); c.ReportDue != 0 || c.RecordingDue {
			t.Errorf("what is gone is waited for: %+v", c)
		}
		time.Sleep(61 * time.Minute)
		if c := h.call(stuck); c.ReportDue != 0 || len(h.events()) != 3 {
			t.Errorf("%d events, %+v", len(h.events()), c)
		}
	})
}

// failing is a blob store that accepts nothing.
type failing struct{ blob.Store }

func (failing) Put(context.Context, string, io.Reader) (int64, error) { return 0, errors.New("full") }

// A link to a recording holds for a week at least, and for eight days at most, whenever it is made.
func TestLinksExpire(t *testing.T) {
	slowly(t, func(t *testing.T, h *harness) {
		h.change(h.a, `{"record":true}`)
		n := h.node()
		id := n.start().ID
		h.answered().hangUp(parley.CustomerHangup)
		c := h.reported(id)
		n.kill() // the process is not needed any more
		for _, later := range []time.Duration{0, time.Minute, 11 * time.Hour, 12*time.Hour + 58*time.Minute,
			30 * 24 * time.Hour} {
			time.Sleep(later)
			made, path := time.Now(), n.RecordingPath(c)
			open := func() error {
				parts := strings.Split(path, "/")
				id, _ := strconv.ParseInt(parts[2], 10, 64)
				expires, _ := strconv.ParseInt(parts[3], 10, 64)
				_, err := n.LinkedCall(t.Context(), id, expires, parts[4])
				return err
			}
			for time.Since(made) < 7*24*time.Hour {
				if err := open(); err != nil {
					t.Fatalf("made at %s, it doesn't open after %s: %v", made, time.Since(made), err)
				}
				time.Sleep(time.Hour)
			}
			time.Sleep(time.Until(made.Add(8 * 24 * time.Hour)))
			if err := open(); !store.IsNotFound(err) {
				t.Errorf("made at %s, it still opens after %s: %v", made, time.Since(made), err)
			}
		}
	})
}

// Where a call may be transferred: numbers that may be called, however they are written, and a company's own
// extensions if the call goes over its trunk.
func TestTransferTargets(t *testing.T) {
	h := lite(t)
	trunk := h.trunk("+4930901820")
	n := h.node()
	try := func(s *voice.Session) map[string]string {
		out := map[string]string{}
		for _, to := range []string{"+12025550142", "+499001234567", "+33142685300", "204",
			"sip:anna@pbx.example.com", "sip:+12025550142@pbx.example.com",
			"sip:+499001234567@pbx.example.com", "sip:0033142685300@pbx.example.com",
			"sip:+33-1-42685300@pbx.example.com", "anna", ""} {
			if err := s.Transfer(t.Context(), to); err != nil {
				out[to] = err.Error()
			}
		}
		return out
	}
	for name, c := range map[string]struct {
		number int64
		house  bool
	}{"rented number": {h.number.ID, false}, "trunk": {trunk.PhoneNumberID, true}} {
		n.start(func(o *call.Order) { o.NumberID = c.number })
		leg := h.answered()
		leg.do(h, func(s *voice.Session) {
			refused := try(s)
			for _, to := range []string{"+499001234567", "+33142685300", "sip:+499001234567@pbx.example.com",
				"sip:0033142685300@pbx.example.com",
				"sip:+33-1-42685300@pbx.example.com", "anna", ""} {
				if refused[to] == "" {
					t.Errorf("%s: sent to %q", name, to)
				}
			}
			if refused["+12025550142"] != "" {
				t.Errorf("%s: %v", name, refused)
			}
			for _, to := range []string{"204", "sip:anna@pbx.example.com", "sip:+12025550142@pbx.example.com"} {
				if (refused[to] == "") != c.house {
					t.Errorf("%s: %s: %q", name, to, refused[to])
				}
			}
		})
		leg.hangUp(parley.CustomerHangup)
	}
}
