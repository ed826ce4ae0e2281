package call_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/audio"
	"parley/internal/auth"
	"parley/internal/call"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/voice"
)

// heardLeg is a leg that says how its sound is: worse each time it is asked.
type heardLeg struct {
	*leg
	asked atomic.Int64
}

func (l *heardLeg) Media() *parley.CallMedia {
	return &parley.CallMedia{Codec: "G722", Heard: parley.CallSound{JitterMS: float64(l.asked.Add(1))}}
}

func ofKind(err error, kind parley.Kind) bool {
	e, ok := errors.AsType[*parley.Error](err)
	return ok && e.Kind == kind
}

// talking is a call that is held for real on a node.
func (n *node) talking(ctx context.Context, leg audio.Leg) int64 {
	n.h.Helper()
	v, err := n.Web(ctx, n.h.a, call.Visitor{})
	n.h.must(err)
	n.h.must(v.Enter(ctx))
	v.Begin(leg)
	for deadline := time.Now().Add(patience); n.Whisper(ctx, n.h.user.ID, v.ID, "It begins.") != nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			n.h.Fatal("the conversation does not begin")
		}
	}
	return v.ID
}

func really(c *call.Config) { c.Converse = nil }

// What a supervisor does about a call, they do on any node: the one that has the call does it, and answers with its
// results and its refusals.
func TestCallOnAnotherNode(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		browser := newLeg()
		owner := h.node(really, func(c *call.Config) {
			c.Connect = func(_ context.Context, b call.Browser, then func(audio.Leg, error)) (line call.BrowserLine, err error) {
				offer := b.Offer
				if offer == "one too many" {
					return line, &auth.LimitError{RetryAfter: 15}
				}
				if offer == "wrong" {
					return line, parley.Fields{{Name: "sdp", Messages: []string{"The sdp field can't be answered."}}}.Err()
				}
				go then(browser, nil)
				line.SDP, line.Tag, line.Links = "to "+offer+" of "+b.From, `"one"`, []string{"<turns:" + b.Relay + ">"}
				line.Reconnect = func(_ context.Context, match, fragment string) (call.Connection, error) {
					if match == "stale" {
						return call.Connection{}, parley.Errorf(parley.Stale, "anew")
					}
					return call.Connection{SDP: "anew " + fragment, Tag: `"two"`}, nil
				}
				return line, nil
			}
		})
		asked := h.node(really)
		ctx, user := t.Context(), h.user.ID
		customer := &heardLeg{leg: newLeg()}
		id := owner.talking(ctx, customer)

		h.must(asked.Whisper(ctx, user, id, " Offer a discount. "))
		h.until(id, "whispered to", func(c *parley.Call) bool {
			return slices.ContainsFunc(c.Turns, func(t parley.CallTurn) bool {
				return t.Whispered && t.Speaker == parley.SpeakerSupervisor && t.Text == "Offer a discount."
			})
		})
		if err := asked.Whisper(ctx, user+1, id, "Offer a discount."); !ofKind(err, parley.NotFound) {
			t.Errorf("another user whispers: %v", err)
		}

		got, err := asked.Invite(ctx, user, id, call.Invitation{To: "+12025550144", NumberID: &h.number.ID, Mode: parley.LegTakeOver, By: "Bo"})
		if err != nil || got.ID == 0 || got.Status != parley.LegDialing || got.PhoneNumber != "+12025550144" || got.Person != "Bo" {
			t.Fatalf("%v %+v", err, got)
		}
		called := h.answered()
		stands := func(ok func(l *parley.CallLeg) bool) {
			t.Helper()
			for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
				l, err := h.db.CallLeg(ctx, user, id, got.ID)
				h.must(err)
				if ok(l) {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("the leg is %+v", l)
				}
			}
		}
		stands(func(l *parley.CallLeg) bool { return l.Status == parley.LegJoined && l.Mode == parley.LegTakeOver })
		back, err := asked.ChangeLeg(ctx, user, id, got.ID, parley.LegListen)
		if err != nil || back.Mode != parley.LegListen {
			t.Errorf("hand back: %v %+v", err, back)
		}
		h.must(asked.HangupLeg(ctx, user, id, got.ID))
		stands(func(l *parley.CallLeg) bool { return l.EndedAt != 0 && l.EndedReason == parley.APIHangup })
		select {
		case <-called.down:
		case <-time.After(patience):
			t.Error("the telephone is not hung up on")
		}
		if _, err := asked.ChangeLeg(ctx, user, id, got.ID, parley.LegListen); !ofKind(err, parley.Conflict) {
			t.Errorf("a leg that is over is changed: %v", err)
		}
		if _, err := asked.Invite(ctx, user, id, call.Invitation{To: "+882161234567"}); !ofKind(err, parley.Forbidden) {
			t.Errorf("a satellite is called: %v", err)
		}

		_, err = asked.Attend(ctx, user, id, call.Browser{Offer: "wrong"})
		if e, ok := errors.AsType[*parley.Error](err); !ok || e.Kind != parley.Invalid || !e.Fields.Has("sdp") {
			t.Errorf("a wrong offer: %v", err)
		}
		_, err = asked.Attend(ctx, user, id, call.Browser{Offer: "one too many"})
		var later interface{ Wait() int }
		if !ofKind(err, parley.TooMany) || !errors.As(err, &later) || later.Wait() != 15 {
			t.Errorf("one too many: %v", err)
		}
		seat, err := asked.Attend(ctx, user, id, call.Browser{Offer: "an offer", From: "192.0.2.7", By: "Ana"})
		if err != nil || seat.SDP != "to an offer of 192.0.2.7" || seat.Tag != `"one"` || len(seat.Links) != 1 {
			t.Fatalf("%v %+v", err, seat)
		}
		anew, err := asked.Reconnect(ctx, user, id, call.BrowserChange{Leg: seat.Leg, Match: "*", Fragment: "by the other network"})
		if err != nil || anew.SDP != "anew by the other network" || anew.Tag != `"two"` {
			t.Errorf("connect anew: %v %+v", err, anew)
		}
		if _, err := asked.Reconnect(ctx, user, id, call.BrowserChange{Leg: seat.Leg, Match: "stale"}); !ofKind(err, parley.Stale) {
			t.Errorf("a connection that was replaced: %v", err)
		}
		if _, err := asked.Reconnect(ctx, user+1, id, call.BrowserChange{Leg: seat.Leg}); !ofKind(err, parley.NotFound) {
			t.Errorf("another user's leg: %v", err)
		}
		if _, err := owner.Reconnect(ctx, user, id, call.BrowserChange{Leg: got.ID}); !ofKind(err, parley.Conflict) {
			t.Errorf("a leg that is over: %v", err)
		}
		got.ID = seat.Leg
		stands(func(l *parley.CallLeg) bool {
			return l.Status == parley.LegJoined && l.Mode == parley.LegListen && l.Person == "Ana"
		})

		now, err := asked.Now(ctx, user, id)
		h.must(err)
		for deadline, before := time.Now().Add(patience), now.Media.Heard.JitterMS; now.Media.Heard.JitterMS < before+10; {
			if time.Sleep(5 * time.Millisecond); time.Now().After(deadline) {
				t.Fatalf("the figures are not fresh: %+v", now.Media)
			}
			now, err = asked.Now(ctx, user, id)
			h.must(err)
		}

		h.must(asked.Hangup(ctx, user, id))
		for what, l := range map[string]*leg{"the customer": customer.leg, "the browser": browser} {
			select {
			case <-l.down:
			case <-time.After(patience):
				t.Errorf("%s is not hung up on", what)
			}
		}
		h.reported(id)
		if err := asked.Whisper(ctx, user, id, "Too late."); !ofKind(err, parley.Conflict) {
			t.Errorf("a call that is over: %v", err)
		}
		if list, err := h.db.Requests(ctx, store.CallRequests, owner.Node()); err != nil || len(list) != 0 {
			t.Errorf("left: %v %+v", err, list)
		}
	})
}

// A supervisor's browser is hung up on when its credential no longer lets them take part: they were disabled, or have a
// lesser role. The call goes on.
func TestBrowserLeavesWithItsCredential(t *testing.T) {
	slowly(t, func(t *testing.T, h *harness) {
		browser, customer := newLeg(), newLeg()
		var may atomic.Bool
		may.Store(true)
		owner := h.node(really, func(c *call.Config) {
			c.Beat, c.Lost = 5*time.Second, time.Hour
			c.Connect = func(_ context.Context, _ call.Browser, then func(audio.Leg, error)) (line call.BrowserLine, err error) {
				go then(browser, nil)
				return line, nil
			}
			c.MayAttend = func(_ context.Context, credential int64) (bool, error) { return credential == 7 && may.Load(), nil }
		})
		asked := h.node(really)
		ctx, user := t.Context(), h.user.ID
		id := owner.talking(ctx, customer)
		seat, err := asked.Attend(ctx, user, id, call.Browser{Offer: "an offer", Credential: 7})
		h.must(err)
		leg := func() *parley.CallLeg {
			l, err := h.db.CallLeg(ctx, user, id, seat.Leg)
			h.must(err)
			return l
		}
		time.Sleep(12 * time.Second)
		if l := leg(); l.Status != parley.LegJoined {
			t.Fatalf("while they may: %+v", l)
		}
		may.Store(false)
		time.Sleep(6 * time.Second)
		if l := leg(); l.EndedAt == 0 || l.EndedReason != parley.APIHangup {
			t.Errorf("when they may no longer: %+v", l)
		}
		select {
		case <-browser.down:
		default:
			t.Error("the browser is not hung up on")
		}
		if c, err := h.db.Call(ctx, user, id); err != nil || c.EndedAt != 0 {
			t.Errorf("the call has ended too: %+v %v", c, err)
		}
		h.must(asked.Hangup(ctx, user, id))
		h.reported(id)
	})
}

// A request takes the owner a moment. Where the owner does not look, it is withdrawn after five seconds, and not done
// later.
func TestRequestsInTime(t *testing.T) {
	slowly(t, func(t *testing.T, h *harness) {
		told := make(chan string, 10)
		stub := func(c *call.Config) {
			c.Beat, c.Lost = 5*time.Second, time.Hour
			c.Converse = func(ctx context.Context, s *voice.Session, l audio.Leg) voice.Result {
				<-ctx.Done()
				return voice.Result{Reason: parley.APIHangup}
			}
			c.Connect = func(_ context.Context, b call.Browser, then func(audio.Leg, error)) (line call.BrowserLine, err error) {
				told <- b.Offer
				return line, nil
			}
		}
		owner, asked := h.node(stub), h.node(stub)
		id := owner.start().ID
		h.answered()
		h.status(id, parley.CallInProgress)
		time.Sleep(time.Second)
		for range 5 {
			began := time.Now()
			if _, err := asked.Attend(t.Context(), h.user.ID, id, call.Browser{Offer: "in time"}); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 500*time.Millisecond {
				t.Errorf("it took %s", took)
			}
			<-told
		}
		owner.kill() // it looks no more; the call is still its own
		began := time.Now()
		_, err := asked.Attend(t.Context(), h.user.ID, id, call.Browser{Offer: "late"})
		if took := time.Since(began); !ofKind(err, parley.Unavailable) || took != 5*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
		if list, err := h.db.Requests(t.Context(), store.CallRequests, owner.Node()); err != nil || len(list) != 0 || len(told) != 0 {
			t.Errorf("left: %v %+v", err, list)
		}
		// Rows of an asker that died are swept.
		h.write(func(ctx context.Context, tx *store.Tx) error {
			return tx.CreateRequest(ctx, store.CallRequests, &store.Request{CallID: id, UserID: h.user.ID, Node: owner.Node(), Kind: "hangup"})
		})
		time.Sleep(3 * time.Minute)
		if list, err := h.db.Requests(t.Context(), store.CallRequests, owner.Node()); err != nil || len(list) != 0 {
			t.Errorf("not swept: %v %+v", err, list)
		}
	})
}

// A request is begun with once, however many look, and not after it was withdrawn.
func TestRequestIsTakenOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		id := h.node().start().ID
		q := func() *store.Request {
			return &store.Request{CallID: id, UserID: h.user.ID, Node: "n", Kind: "mode"}
		}
		h.write(func(ctx context.Context, tx *store.Tx) error {
			one, two := q(), q()
			if err := errors.Join(tx.CreateRequest(ctx, store.CallRequests, one), tx.CreateRequest(ctx, store.CallRequests, two)); err != nil {
				return err
			}
			is := func(what string, got bool, err error, want bool) {
				if err != nil || got != want {
					t.Errorf("%s: %v %v", what, got, err)
				}
			}
			got, err := tx.TakeRequest(ctx, store.CallRequests, one.ID)
			is("take", got, err, true)
			got, err = tx.TakeRequest(ctx, store.CallRequests, one.ID)
			is("take again", got, err, false)
			got, err = tx.DropRequest(ctx, store.CallRequests, one.ID, true)
			is("withdraw what was begun", got, err, false)
			got, err = tx.DropRequest(ctx, store.CallRequests, two.ID, true)
			is("withdraw", got, err, true)
			got, err = tx.TakeRequest(ctx, store.CallRequests, two.ID)
			is("take what was withdrawn", got, err, false)
			return tx.AnswerRequest(ctx, store.CallRequests, one.ID, "done")
		})
	})
}
