package call_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/blob"
	"parley/internal/call"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// A process is killed right after an answer, before it gave another sign of life: one second of the assistant and one
// minute of the line have begun, and are charged.
func TestKilledAtTheAnswer(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		dead := h.node(func(c *call.Config) { c.Beat = time.Hour })
		answered := dead.start().ID
		h.answered()
		h.status(answered, parley.CallInProgress)
		h.far.set(func() { h.far.hangs = true })
		ringing := dead.start().ID
		h.status(ringing, parley.CallRinging)
		dead.kill()
		h.node(func(c *call.Config) { c.Lost = time.Second })
		got, rung := h.reported(answered), h.reported(ringing)
		if got.EndedReason != parley.NodeLost || got.Duration != 1 || got.CarrierCost != 14_000 ||
			got.AssistantCost != 1_000 || got.EndedAt <= got.AnsweredAt {
			t.Errorf("it ended as %+v", got)
		}
		if rung.EndedReason != parley.NodeLost || rung.Duration != 0 || rung.TotalCost() != 0 {
			t.Errorf("the one that rang ended as %+v", rung)
		}
		if balance, reserved, entries := h.money(); balance != 10*parley.USD-15_000 || reserved != 0 ||
			len(entries) != 2 {
			t.Errorf("balance %s, %s set aside, %+v", balance, reserved, entries)
		}
	})
}

// lost makes calls whose process has not been heard of for an hour.
func (h *harness) lost(n int) (ids []int64) {
	h.Helper()
	h.write(func(ctx context.Context, tx *store.Tx) error {
		for range n {
			c := &parley.Call{AssistantID: h.a.ID, Type: parley.CallOutbound, Status: parley.CallRinging,
				MaxDuration: 60, Node: "gone"}
			if err := tx.CreateCall(ctx, h.user.ID, c); err != nil {
				return err
			}
			ids = append(ids, c.ID)
		}
		_, err := tx.RenewCalls(ctx, "gone", ids, parley.Now().Add(-time.Hour))
		return err
	})
	return ids
}

// All calls of a process that is gone are closed at once, even if the functions that are notified fail.
func TestManyLostCalls(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		ids := h.lost(150)
		n := h.node(func(c *call.Config) { c.Lost = time.Second })
		for _, id := range ids {
			h.status(id, parley.CallFailed)
		}
		n.kill()
		ids = h.lost(5)
		h.node(func(c *call.Config) {
			c.Lost = time.Second
			c.Unanswered = append(c.Unanswered, func(_ context.Context, _ *store.Tx, c *parley.Call, _ error) error {
				switch c.ID {
				case ids[0]:
					return errors.New("broken")
				case ids[1]:
					panic("broken")
				}
				return nil
			})
		})
		for _, id := range ids {
			h.status(id, parley.CallFailed)
		}
	})
}

// Each unanswered call is reported to the code that ordered it, in the transaction that ends it, with its cause.
func TestUnansweredIsTold(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		type told struct {
			status parley.CallStatus
			cause  error
		}
		var mu sync.Mutex
		causes := map[int64][]told{}
		broken := 2
		var finished []int64
		n := h.node(func(c *call.Config) {
			c.Unanswered = append(c.Unanswered, func(ctx context.Context, tx *store.Tx, c *parley.Call,
				cause error) error {
				row, err := tx.CallForUpdate(ctx, c.ID)
				mu.Lock()
				defer mu.Unlock()
				causes[c.ID] = append(causes[c.ID], told{row.Status, cause})
				switch broken--; broken {
				case 1:
					return errors.New("broken")
				case 0:
					panic("broken")
				}
				return err
			})
			c.Finished = append(c.Finished, func(_ context.Context, _ *store.Tx, c *parley.Call,
				_ *parley.Assistant) error {
				mu.Lock()
				defer mu.Unlock()
				finished = append(finished, c.ID)
				return nil
			})
		})
		toldOf := func(id int64, times int, status parley.CallStatus, is ...error) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if len(causes[id]) != times {
				t.Fatalf("told %+v", causes[id])
			}
			last := causes[id][times-1]
			for _, err := range is {
				if last.status != status || !errors.Is(last.cause, err) {
					t.Errorf("told %+v, want %s and %v", last, status, err)
				}
			}
		}
		h.far.set(func() { h.far.err = fmt.Errorf("%w: %w", call.ErrNoSuchNumber, refusedBy(404)) })
		var ids []int64
		for range 3 {
			c := h.reported(n.start().ID)
			if ids = append(ids, c.ID); c.Status != parley.CallFailed || c.EndedReason != parley.Unreachable {
				t.Errorf("no such number: %s, %s", c.Status, c.EndedReason)
			}
			toldOf(c.ID, 1, parley.CallFailed, call.ErrNoSuchNumber, refusedBy(404)) // the first two were undone
		}
		if !slices.Equal(finished, ids) {
			t.Errorf("%v are finished, want %v", finished, ids)
		}
		h.far.set(func() { h.far.err = refusedBy(503) })
		toldOf(h.reported(n.start().ID).ID, 1, parley.CallFailed, refusedBy(503))
		h.far.set(func() { h.far.err, h.far.hangs = nil, true })
		id := n.start().ID
		h.status(id, parley.CallRinging)
		h.must(n.Hangup(t.Context(), h.user.ID, id))
		toldOf(h.reported(id).ID, 1, parley.CallCanceled, parley.APIHangup)
		h.far.set(func() { h.far.hangs = false })
		id = n.start().ID
		h.answered().hangUp(parley.CustomerHangup)
		h.reported(id)
		mu.Lock()
		defer mu.Unlock()
		if len(causes[id]) != 0 {
			t.Errorf("told of one that was answered: %+v", causes[id])
		}
	})
}

// notes collects what is logged.
type notes struct {
	mu   sync.Mutex
	text strings.Builder
}

func (n *notes) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(b)
}

// A problem with a line is logged; a person who does not answer, or a number that does not exist, is not.
func TestFailuresAreLogged(t *testing.T) { // not parallel: there is one log
	var log notes
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(slog.New(slog.DiscardHandler)) })
	h := open(t, storetest.SQLite(t))
	n := h.node()
	for _, err := range []error{
		fmt.Errorf("%w: the name of the trunk was not found", parley.Unreachable),
		fmt.Errorf("%w: no. %w", call.ErrNoSuchNumber, parley.Unreachable),
		fmt.Errorf("%w: they talk", parley.LineBusy),
	} {
		h.far.set(func() { h.far.err = err })
		h.reported(n.start().ID)
	}
	missing := &ai.Error{Kind: ai.Config, Err: errors.New("flite is not installed")}
	h.reported(h.node(func(c *call.Config) { c.Speech = &speech{err: missing} }).start().ID)
	log.mu.Lock()
	defer log.mu.Unlock()
	text := log.text.String()
	if strings.Count(text, "a call failed") != 1 ||
		!strings.Contains(text, "the name of the trunk was not found") ||
		!strings.Contains(text, "voice configuration: flite is not installed") {
		t.Errorf("logged %s", text)
	}
}

// gated stores a blob only when its gate is open.
type gated struct {
	blob.Store
	may <-chan struct{}
}

func (s gated) Put(ctx context.Context, name string, r io.Reader) (int64, error) {
	<-s.may
	return s.Store.Put(ctx, name, r)
}

// When a call is over there is room for another, and the waiting code is told, wherever the recording is.
func TestRoomAfterTheEnd(t *testing.T) {
	h := lite(t)
	h.change(h.a, `{"record":true}`)
	gate := make(chan struct{})
	live := make(chan int, 1)
	var n *node
	n = h.node(func(c *call.Config) {
		c.Blobs = gated{h.blobs, gate}
		c.Ended = append(c.Ended, func(*parley.Call) { live <- n.Stats().Live })
	})
	id := n.start().ID
	leg := h.answered()
	h.until(id, "recording", func(c *parley.Call) bool { return c.RecordingDue })
	leg.hangUp(parley.CustomerHangup)
	select {
	case got := <-live:
		if got != 0 {
			t.Errorf("%d calls are live", got)
		}
	case <-time.After(patience):
		t.Error("nobody was told")
	}
	if n.Here(id) == nil {
		t.Error("its recording is not stored, and nobody has it")
	}
	close(gate)
	h.reported(id)
	h.until(id, "stored", func(c *parley.Call) bool { return !c.RecordingDue })
}

// dumb is a vendor that panics.
type dumb struct{}

func (dumb) Speak(context.Context, ai.Speech, <-chan string, func(ai.Sound) error) error {
	panic("no voice")
}

type dumbSpeech struct{ speech }

func (*dumbSpeech) Synthesizer(string) (ai.Synthesizer, error) { return dumb{}, nil }

// A panic while a greeting is prepared, or while a call is read, affects only that call.
func TestPanicsStay(t *testing.T) {
	h := lite(t)
	n := h.node(func(c *call.Config) { c.Speech = &dumbSpeech{} })
	id := n.start().ID
	h.answered().hangUp(parley.CustomerHangup)
	if c := h.reported(id); c.Status != parley.CallCompleted {
		t.Errorf("%+v", c)
	}
	order := call.Order{UserID: h.user.ID, AssistantID: h.a.ID, To: "+12025550199",
		Also: func(context.Context, *store.Tx, *parley.Call) error { panic("no lead") }}
	if c, err := n.Start(t.Context(), order); err == nil || !strings.Contains(err.Error(), "no lead") {
		t.Errorf("began as %+v: %v", c, err)
	}
	n.Stop(t.Context()) // it waits for none of them
	// A call whose target can't even be looked up is turned away.
	blind := call.New(call.Config{})
	in := newRinger()
	blind.Incoming(t.Context(), call.Arrival{Ringer: in, To: "+12025550100"})
	if in.refused != 480 {
		t.Errorf("refused with %d", in.refused)
	}
	blind.Stop(t.Context())
	err := call.Together(func() error { panic("one") }, func() error { return errors.New("two") },
		func() error { return nil })
	if err == nil || !strings.Contains(err.Error(), "one") || !strings.Contains(err.Error(), "two") {
		t.Errorf("got %v", err)
	}
}
