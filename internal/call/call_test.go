package call_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emiago/sipgo/sip"
	"github.com/google/go-cmp/cmp"

	"parley/internal/ai/aitest"
	"parley/internal/call"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/voice"
)

// judgement is the model's answer to both extraction and evaluation.
const judgement = `{"status":true,"summary":"Ana wants a cake.","sentiment":"positive","outcome":"success","score":9}`

// A call from its beginning to its event: what is stored, what it costs, what is reported.
func TestCall(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.model.Usually(aitest.Behaviour{Text: judgement})
		n := h.node()
		c := n.start(func(o *call.Order) { o.Variables = map[string]string{"who": "Ana"} })
		if c.Status != parley.CallInitiated || c.ID == 0 {
			t.Errorf("began as %+v", c)
		}
		leg := h.answered()
		live := h.status(c.ID, parley.CallInProgress)
		if live.AnsweredAt == 0 || live.RingingAt == 0 || live.RingingAt > live.AnsweredAt || live.EndedAt != 0 ||
			live.Node != n.Node() {
			t.Errorf("live as %+v", live)
		}
		// 120 s at most: two minutes of the line, two of the assistant.
		if _, reserved, entries := h.money(); reserved != 2*14_000+2*60_000 || len(entries) != 0 {
			t.Errorf("%s are set aside, %d entries", reserved, len(entries))
		}
		leg.do(h, func(s *voice.Session) {
			if s.Persona.Initial != "Hello Ana." || !s.Outbound || s.Persona.Language != "en" ||
				s.Persona.Synthesizer == nil || s.Transfer == nil {
				t.Errorf("the session is %+v", s)
			}
		})
		leg.says(h, parley.SpeakerAssistant, "Hello Ana.")
		leg.says(h, parley.SpeakerCustomer, "I would like a cake.")
		leg.uses(h, "order_cake")
		h.until(c.ID, "stored so far", func(c *parley.Call) bool {
			return len(c.Turns) == 2 &&
				len(c.FunctionCalls) == 1
		})
		if now, err := n.Now(t.Context(), h.user.ID, c.ID); err != nil || len(now.Turns) != 2 ||
			now.AssistantName != "Anna" {
			t.Errorf("now %+v: %v", now, err)
		}
		leg.hangUp(parley.CustomerHangup)
		got := h.reported(c.ID)
		if got.Status != parley.CallCompleted || got.EndedReason != parley.CustomerHangup || got.Duration < 1 ||
			len(got.Turns) != 2 || got.AnsweredBy != parley.AnsweredUnknown ||
			got.FunctionCalls[0].Name != "order_cake" || got.CarrierCost != 14_000 ||
			got.AssistantCost != parley.Money(60_000).MulRatio(got.Duration, 60) {
			t.Errorf("ended as %+v", got)
		}
		if d := cmp.Diff(map[string]any{"status": true, "summary": "Ana wants a cake."}, got.Variables); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(map[string]any{"sentiment": "positive", "outcome": "success", "score": 9.0},
			got.Evaluation); d != "" {
			t.Error(d)
		}
		balance, reserved, entries := h.money()
		if balance != 10*parley.USD-got.TotalCost() || reserved != 0 || len(entries) != 2 ||
			entries[0].Kind != parley.CarrierCharge || entries[1].Kind != parley.CallCharge {
			t.Errorf("balance %s, %s set aside, %+v", balance, reserved, entries)
		}
		events := h.events()
		if len(events) != 1 || events[0]["event"] != "call.completed" || events[0]["id"] != float64(c.ID) ||
			events[0]["status"] != "completed" || events[0]["customer_phone"] != "+12025550199" ||
			events[0]["assistant_phone"] != "+12025550100" ||
			events[0]["transcript"] != "AI: Hello Ana.\nCustomer: I would like a cake." ||
			!reflect.DeepEqual(events[0]["input_variables"], map[string]any{"who": "Ana"}) ||
			events[0]["recording_url"] != nil {
			t.Errorf("told %v", events)
		}
		if s := n.Stats(); s.Live != 0 || s.Ended[parley.CallCompleted] != 1 {
			t.Errorf("figures %+v", s)
		}
		spent, err := h.db.Spend(t.Context(), h.user.ID, parley.Now())
		if err != nil || spent != got.TotalCost() {
			t.Errorf("the day's spend is %s: %v", spent, err)
		}
		// The judging model was told the assistant's purpose.
		judged := false
		for _, r := range h.model.Requests() {
			judged = judged || strings.Contains(r.System, "Serve Ana.") &&
				strings.Contains(r.Messages[0].Text, "Customer: I would like a cake.")
		}
		if !judged {
			t.Error("nobody judged the call")
		}
	})
}

// All the reasons to refuse a call, in the order in which they are checked.
func TestRefusals(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		n := h.node(func(c *call.Config) { c.DailySpend = parley.USD / 2 })
		other := storetestUser(h)
		inbound := h.assistant(`{"type":"inbound"}`)
		asleep := h.assistant(`{"status":"inactive"}`)
		mute := h.assistant(`{}`)
		long := h.assistant(`{"max_duration":3600,"phone_number_id":%d}`, h.number.ID)
		unpaid := h.rent("+12025550101")
		unpaid.PaidUntil = parley.Now().Add(-time.Hour)
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.SaveNumber(ctx, h.user.ID, unpaid) })
		for _, c := range []struct {
			name string
			o    call.Order
			kind parley.Kind
			says string
		}{
			{"unknown assistant", call.Order{AssistantID: 9999}, parley.NotFound, "Assistant not found"},
			{"another's assistant", call.Order{UserID: other.ID, AssistantID: h.a.ID}, parley.NotFound,
				"Assistant not found"},
			{"inbound", call.Order{AssistantID: inbound.ID}, parley.Invalid, "outbound"},
			{"inactive", call.Order{AssistantID: asleep.ID}, parley.Invalid, "inactive"},
			{"no number", call.Order{AssistantID: mute.ID}, parley.Invalid, "no phone number"},
			{"unpaid number", call.Order{AssistantID: h.a.ID, NumberID: unpaid.ID}, parley.Invalid, "subscription"},
			{"another's number", call.Order{AssistantID: h.a.ID, NumberID: 9999}, parley.NotFound,
				"Phone number not found"},
			{"country", call.Order{AssistantID: h.a.ID, To: "+33142685300"}, parley.Forbidden, "not allowed"},
			{"premium", call.Order{AssistantID: h.a.ID, To: "+499001234567"}, parley.Forbidden, "not allowed"},
			{"a day's spend", call.Order{AssistantID: long.ID}, parley.Forbidden, "a day"},
		} {
			c.o.UserID = max(c.o.UserID, h.user.ID)
			if c.o.To == "" {
				c.o.To = "+12025550199"
			}
			got, err := n.Start(t.Context(), c.o)
			var e *parley.Error
			if !errors.As(err, &e) || e.Kind != c.kind || !strings.Contains(e.Message, c.says) || len(e.Fields) != 0 {
				t.Errorf("%s: %+v, %v", c.name, got, err)
			}
		}
		if list, total, err := h.db.Calls(t.Context(), h.user.ID, store.CallFilter{},
			store.Page{Number: 1, Size: 10}); err != nil || total != 0 {
			t.Errorf("%d calls: %v", len(list), err)
		}
		if _, reserved, _ := h.money(); reserved != 0 {
			t.Errorf("%s are set aside", reserved)
		}
	})
}

func storetestUser(h *harness) *parley.User {
	u := &parley.User{Name: "Bo", Email: "bo@example.com", PasswordHash: "-", Timezone: "UTC", Plan: "default"}
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateUser(ctx, u) })
	return u
}

// The limits hold when calls start at the same time: the plan's limit, the day's limit, the balance.
func TestLimitsInARace(t *testing.T) {
	possible := 2 * parley.Money(14_000+60_000) // the cost of two of these calls
	for name, c := range map[string]struct {
		plan    string
		balance parley.Money
		spend   parley.Money
		want    int
		kind    parley.Kind
	}{
		"plan":    {"trial", 10 * parley.USD, 0, 2, parley.Forbidden},
		"day":     {"default", 10 * parley.USD, 3*possible + 1, 3, parley.Forbidden},
		"balance": {"default", 4*possible + 1, 0, 4, parley.Payment},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, h *harness) {
				h.far.set(func() { h.far.hangs = true })
				h.user.Plan = c.plan
				h.write(func(ctx context.Context, tx *store.Tx) error {
					if err := tx.SaveUser(ctx, h.user); err != nil {
						return err
					}
					_, err := tx.Post(ctx, h.user.ID,
						&parley.LedgerEntry{Kind: parley.Credit, Amount: c.balance - 10*parley.USD, Reference: "less"})
					return err
				})
				nodes := []*node{h.node(func(cfg *call.Config) { cfg.DailySpend = c.spend }),
					h.node(func(cfg *call.Config) { cfg.DailySpend = c.spend })}
				var mu sync.Mutex
				var wg sync.WaitGroup
				var made []int64
				for i := range 12 {
					wg.Go(func() {
						got, err := nodes[i%2].Start(context.Background(),
							call.Order{UserID: h.user.ID, AssistantID: h.a.ID, To: "+12025550199"})
						var e *parley.Error
						mu.Lock()
						defer mu.Unlock()
						if err == nil {
							made = append(made, got.ID)
						} else if !errors.As(err, &e) || e.Kind != c.kind {
							t.Errorf("refused with %v", err)
						}
					})
				}
				wg.Wait()
				_, reserved, _ := h.money()
				if len(made) != c.want || reserved != parley.Money(c.want)*possible {
					t.Errorf("%d calls began, want %d; %s are set aside", len(made), c.want, reserved)
				}
				// Calls that end make room again: nothing was spent.
				for _, id := range made {
					h.must(nodes[0].Hangup(t.Context(), h.user.ID, id))
				}
				for _, id := range made {
					h.status(id, parley.CallCanceled)
				}
				if balance, reserved, _ := h.money(); reserved != 0 || balance != c.balance {
					t.Errorf("%s are set aside, %s left", reserved, balance)
				}
				nodes[1].start()
			})
		})
	}
}

// refusedBy is a line's error for a refusal.
type refusedBy int

func (r refusedBy) Error() string             { return fmt.Sprint("refused: ", int(r)) }
func (r refusedBy) Ended() parley.EndedReason { return parley.ReasonOfSIP(int(r)) }

// Unanswered calls: the state and the reason for each cause, and they cost nothing.
func TestUnanswered(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		n := h.node()
		for _, c := range []struct {
			err    error
			status parley.CallStatus
			reason parley.EndedReason
		}{
			{parley.LineBusy, parley.CallBusy, parley.LineBusy},
			{refusedBy(486), parley.CallBusy, parley.LineBusy},
			{refusedBy(600), parley.CallBusy, parley.LineBusy},
			{fmt.Errorf("dial: %w", refusedBy(480)), parley.CallNoAnswer, parley.NoAnswer},
			{refusedBy(408), parley.CallNoAnswer, parley.NoAnswer},
			{refusedBy(603), parley.CallFailed, parley.Rejected},
			{refusedBy(404), parley.CallFailed, parley.Unreachable},
			{refusedBy(484), parley.CallFailed, parley.Unreachable},
			{refusedBy(503), parley.CallFailed, parley.Unreachable},
			{parley.Unreachable, parley.CallFailed, parley.Unreachable},
			{errors.New("no route to host"), parley.CallFailed, parley.Unreachable},
		} {
			h.far.set(func() { h.far.err = c.err })
			got := h.reported(n.start().ID)
			if got.Status != c.status || got.EndedReason != c.reason || got.TotalCost() != 0 || got.Duration != 0 ||
				got.AnsweredAt != 0 || got.RingingAt == 0 || len(got.Evaluation) != 0 {
				t.Errorf("%v ended as %+v", c.err, got)
			}
		}
		balance, reserved, entries := h.money()
		if balance != 10*parley.USD || reserved != 0 || len(entries) != 0 || len(h.model.Requests()) != 0 {
			t.Errorf("balance %s, %s set aside, %d entries, %d requests to the model", balance, reserved,
				len(entries), len(h.model.Requests()))
		}
		if events := h.events(); len(events) != 11 || events[0]["status"] != "busy" ||
			events[3]["status"] != "no-answer" {
			t.Errorf("told %v", events)
		}
		h.change(h.a, `{"send_webhook_only_on_completed":true}`)
		h.reported(n.start().ID)
		if events := h.events(); len(events) != 11 {
			t.Errorf("%d were told", len(events))
		}
	})
}

func TestRingingTime(t *testing.T) {
	h := lite(t)
	h.change(h.a, `{"ringing_time":1}`)
	h.far.set(func() { h.far.hangs = true })
	n := h.node()
	began := time.Now()
	c := h.reported(n.start().ID)
	if took := time.Since(began); c.Status != parley.CallNoAnswer || c.EndedReason != parley.NoAnswer ||
		took < time.Second {
		t.Errorf("after %s %s, %s", took, c.Status, c.EndedReason)
	}
	if call.ConnectTime <= 64*sip.T1 {
		t.Errorf("after %s a trunk that is gone is taken for somebody who doesn't answer", call.ConnectTime)
	}
}

// A hang-up reaches a call on any node and in any state.
func TestHangup(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		near, far := h.node(), h.node()
		h.far.set(func() { h.far.gate = make(chan struct{}) })
		ringing := near.start()
		h.status(ringing.ID, parley.CallRinging)
		h.must(far.Hangup(t.Context(), h.user.ID, ringing.ID))
		if c := h.reported(ringing.ID); c.Status != parley.CallCanceled || c.EndedReason != parley.Canceled ||
			c.TotalCost() != 0 {
			t.Errorf("ringing: %+v", c)
		}
		h.far.set(func() { h.far.gate = nil })
		for _, by := range []*node{near, far} {
			c := near.start()
			leg := h.answered()
			h.status(c.ID, parley.CallInProgress)
			h.must(by.Hangup(t.Context(), h.user.ID, c.ID))
			<-leg.over
			if c := h.reported(c.ID); c.Status != parley.CallCompleted || c.EndedReason != parley.APIHangup ||
				c.TotalCost() == 0 {
				t.Errorf("live: %+v", c)
			}
			var e *parley.Error
			if err := by.Hangup(t.Context(), h.user.ID, c.ID); !errors.As(err, &e) || e.Kind != parley.Conflict {
				t.Errorf("over: %v", err)
			}
			if err := by.Hangup(t.Context(), storetestUserOnce(h).ID, c.ID); !store.IsNotFound(err) {
				t.Errorf("another's: %v", err)
			}
		}
	})
}

func storetestUserOnce(h *harness) *parley.User {
	if u, err := h.db.UserByEmail(context.Background(), "bo@example.com"); err == nil {
		return u
	}
	return storetestUser(h)
}

// When a call's process is gone, another process closes the call: one row, one charge, one end, one event. If the
// first process is alive after all, it hangs up and changes nothing.
func TestLostNode(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.model.Usually(aitest.Behaviour{Text: judgement})
		quick := func(c *call.Config) { c.Lost = time.Second }
		dead := h.node(quick)
		talking, ringing := dead.start(), int64(0)
		leg := h.answered()
		h.status(talking.ID, parley.CallInProgress)
		leg.says(h, parley.SpeakerCustomer, "Hello?")
		h.until(talking.ID, "stored so far", func(c *parley.Call) bool { return len(c.Turns) == 1 })
		h.far.set(func() { h.far.gate = make(chan struct{}) })
		ringing = dead.start().ID
		h.status(ringing, parley.CallRinging)
		dead.kill() // no signs of life from here on
		seen := h.call(talking.ID)

		h.node(quick)
		h.node(quick) // both of them check for lost calls
		lost, rung := h.reported(talking.ID), h.reported(ringing)
		if lost.Status != parley.CallFailed || lost.EndedReason != parley.NodeLost ||
			parley.Time(lost.EndedAt) != max(seen.SeenAt, parley.Time(seen.UpdatedAt)) || lost.Duration < 1 ||
			lost.Duration > 20 ||
			len(lost.Turns) != 1 || lost.Evaluation["outcome"] != "success" {
			t.Errorf("the live one: %+v, last seen %s, stored at %s", lost, seen.SeenAt, parley.Time(seen.UpdatedAt))
		}
		if rung.Status != parley.CallFailed || rung.EndedReason != parley.NodeLost || rung.TotalCost() != 0 {
			t.Errorf("the ringing one: %+v", rung)
		}
		// The process comes back to life.
		leg.says(h, parley.SpeakerAssistant, "Still here.")
		ctx, stop := context.WithCancel(context.Background())
		alive := make(chan struct{})
		go func() { defer close(alive); dead.Run(ctx) }()
		<-leg.over
		all, giveUp := context.WithTimeout(context.Background(), patience)
		dead.Stop(all) // it returns when the calls are over
		if err := all.Err(); err != nil || dead.Stats().Live != 0 {
			t.Errorf("%d calls go on: %v", dead.Stats().Live, err)
		}
		giveUp()
		stop()
		<-alive
		if got := h.call(talking.ID); len(got.Turns) != 1 || got.UpdatedAt != lost.UpdatedAt ||
			got.EndedReason != parley.NodeLost {
			t.Errorf("the dead have changed it: %+v", got)
		}
		balance, reserved, entries := h.money()
		if balance != 10*parley.USD-lost.TotalCost() || reserved != 0 || len(entries) != 2 || len(h.events()) != 2 {
			t.Errorf("balance %s, %s set aside, %d entries, %d events", balance, reserved, len(entries),
				len(h.events()))
		}
	})
}

// One attempt at a lead rings once, however often it is started.
func TestAttempt(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		n, also := h.node(), 0
		order := call.Order{UserID: h.user.ID, AssistantID: h.a.ID, To: "+12025550199", CampaignID: 5, LeadID: 7,
			Attempt: 1,
			Also:    func(ctx context.Context, tx *store.Tx, c *parley.Call) error { also++; return nil }}
		first, err := n.Start(t.Context(), order)
		h.must(err)
		again, err := n.Start(t.Context(), order)
		h.must(err)
		order.Attempt = 2
		second, err := n.Start(t.Context(), order)
		h.must(err)
		if first.ID != again.ID || second.ID == first.ID || *again.LeadID != 7 || *again.CampaignID != 5 ||
			again.Attempt != 1 || also != 2 {
			t.Errorf("calls %d, %d, %d; %d rows", first.ID, again.ID, second.ID, also)
		}
		h.answered()
		h.answered()
		select {
		case <-h.far.legs:
			t.Error("somebody was rung twice")
		default:
		}
		if _, reserved, _ := h.money(); reserved != first.Reserved+second.Reserved {
			t.Errorf("%s are set aside", reserved)
		}
		// Order.Also, which runs in the row's transaction, refuses the row.
		order.Attempt, order.Also = 3, func(context.Context, *store.Tx, *parley.Call) error { return errors.New("no") }
		if _, err := n.Start(t.Context(), order); err == nil || err.Error() != "no" {
			t.Errorf("began in spite of it: %v", err)
		}
	})
}

// A server that stops waits for its calls, accepts no new ones, and cuts them off when it must.
func TestStop(t *testing.T) {
	h := lite(t)
	n := h.node()
	first := n.start()
	a := h.answered()
	second := n.start()
	b := h.answered()
	h.status(first.ID, parley.CallInProgress)
	h.status(second.ID, parley.CallInProgress)
	ctx, cut := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() { defer close(stopped); n.Stop(ctx) }()
	for {
		_, err := n.Start(t.Context(), call.Order{UserID: h.user.ID, AssistantID: h.a.ID, To: "+12025550199"})
		var e *parley.Error
		if errors.As(err, &e) && e.Kind == parley.Unavailable {
			break
		}
		h.must(err) // it is not stopping yet: one more call
		h.answered().hangUp(parley.CustomerHangup)
	}
	a.hangUp(parley.CustomerHangup)
	h.until(first.ID, "over", func(c *parley.Call) bool { return c.EndedAt != 0 })
	select {
	case <-stopped:
		t.Fatal("it did not wait for a live call")
	default:
	}
	b.says(h, parley.SpeakerAssistant, "One moment.")
	cut()
	<-stopped
	got := map[int64]*parley.Call{first.ID: h.call(first.ID), second.ID: h.call(second.ID)}
	reasons := map[parley.EndedReason]int{}
	for _, c := range got {
		reasons[c.EndedReason]++
		if c.Status != parley.CallCompleted {
			t.Errorf("%+v", c)
		}
	}
	if reasons[parley.CustomerHangup] != 1 || reasons[parley.Shutdown] != 1 {
		t.Errorf("reasons %v", reasons)
	}
	n.kill() // what has ended is reported before everything is over
	if c := h.call(second.ID); c.ReportDue != 0 {
		t.Errorf("not reported: %+v", c)
	}
}

// A failure in one call ends only that call.
func TestBrokenConversations(t *testing.T) {
	h := lite(t)
	n := h.node()
	for name, c := range map[string]struct {
		do     func(s *voice.Session)
		status parley.CallStatus
	}{
		"panic":  {func(s *voice.Session) { panic("no") }, parley.CallFailed},
		"nobody": {nil, parley.CallFailed},
	} {
		id := n.start().ID
		leg := h.answered()
		if c.do == nil {
			leg.hangUp("") // a session that gives no reason
		} else {
			leg.does <- c.do
		}
		if got := h.reported(id); got.Status != c.status || got.EndedReason != parley.ProviderFailure {
			t.Errorf("%s: %s, %s", name, got.Status, got.EndedReason)
		}
	}
	// An assistant that can't speak calls nobody.
	dumb := h.node(func(c *call.Config) { c.Speech = &speech{err: errors.New("flite is not installed")} })
	if got := h.reported(dumb.start().ID); got.EndedReason != parley.ProviderFailure || got.RingingAt != 0 ||
		got.TotalCost() != 0 {
		t.Errorf("dumb: %+v", got)
	}
}

// While the sound of calls is sent late, no call is begun: whoever wanted one is told when to try again, and nothing is kept
// of it.
func TestStartWhileBehind(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		n := h.node(func(c *call.Config) { c.Behind = func() bool { return true } })
		_, err := n.Start(t.Context(), call.Order{UserID: h.user.ID, AssistantID: h.a.ID, To: "+12025550199"})
		var later interface{ Wait() int }
		if !ofKind(err, parley.Unavailable) || !errors.As(err, &later) || later.Wait() != 10 {
			t.Errorf("while sound is late: %v", err)
		}
		if list, _, err := h.db.Calls(t.Context(), h.user.ID, store.CallFilter{}, store.Page{Number: 1, Size: 1}); err != nil || len(list) != 0 {
			t.Errorf("there are calls: %v %v", err, list)
		}
	})
}
