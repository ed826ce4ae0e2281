package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/call"
	"parley/internal/lang"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/voice"
)

// colleague is a person who is called for a transfer: the test presses keys for them, and hangs up.
type colleague struct {
	peer  audio.Peer
	runs  chan struct{}
	once  sync.Once
	gone  chan struct{}
	ended chan struct{} // closed when the leg is over
}

func newColleague() *colleague {
	return &colleague{runs: make(chan struct{}), gone: make(chan struct{}), ended: make(chan struct{})}
}

func (*colleague) Rate() audio.Rate  { return audio.Wide }
func (*colleague) Dial(string) error { return nil }
func (c *colleague) Hangup()         { c.once.Do(func() { close(c.gone) }) }

func (c *colleague) Run(ctx context.Context, p audio.Peer) error {
	defer close(c.ended)
	c.peer = p
	close(c.runs)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.gone:
		return parley.CustomerHangup
	}
}

// presses presses a key again and again until it is noticed: before the colleague is asked, keys are ignored.
func (c *colleague) presses(key byte) {
	<-c.runs
	for range 2000 {
		select {
		case <-c.ended:
			return
		case <-time.After(time.Millisecond):
			c.peer.Digit(key)
		}
	}
}

// desk is the target of transfers in these tests.
type desk struct {
	h        *harness
	err      error // instead of an answer
	hangs    bool  // it rings for ever
	who      *colleague
	verdict  parley.EndedReason // ends the briefing, without a word of the colleague's
	briefing chan *voice.Session
	routes   chan call.Route
}

func (d *desk) config(c *call.Config) {
	c.Dial = func(ctx context.Context, r call.Route, ringing func()) (audio.Leg, error) {
		if r.To == "+12025550199" {
			return d.h.far.dial(ctx, r, ringing)
		}
		d.routes <- r
		ringing()
		if d.hangs {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		if d.err != nil {
			return nil, d.err
		}
		return d.who, nil
	}
	c.Converse = func(ctx context.Context, s *voice.Session, l audio.Leg) voice.Result {
		if _, customer := l.(*leg); customer {
			return converse(ctx, s, l)
		}
		d.briefing <- s
		turns := []parley.CallTurn{{Speaker: parley.SpeakerAssistant, Text: s.Persona.Initial}}
		if d.verdict != "" {
			return voice.Result{Reason: d.verdict, Turns: turns}
		}
		err := l.Run(ctx, silent{})
		reason, _ := errors.AsType[parley.EndedReason](err)
		return voice.Result{Reason: reason, Turns: turns}
	}
}

type silent struct{}

func (silent) Hear(audio.Frame)                       {}
func (silent) Tick(_ audio.Frame, _ audio.Frame) bool { return false }
func (silent) Digit(byte)                             {}

func newDesk(h *harness) *desk {
	return &desk{h: h, who: newColleague(), briefing: make(chan *voice.Session, 1), routes: make(chan call.Route, 1)}
}

// transfer has a customer's conversation announce the customer to the colleague.
func transfer(ctx context.Context, s *voice.Session, tool parley.AssistantTool) (voice.Line, error) {
	return s.Warm(ctx, voice.Announcement{Tool: tool.Warm(), Persona: s.Persona,
		History: []ai.Message{{Role: ai.Assistant, Text: "Hello."}, {Role: ai.User, Text: "I want a cake."}}})
}

// session is the conversation with the customer.
func (l *leg) session(h testing.TB) (s *voice.Session) {
	h.Helper()
	l.do(h, func(now *voice.Session) { s = now })
	return s
}

var toDesk = parley.AssistantTool{Type: "warm_call_transfer", SupervisorPhone: "+4930901820"}

// The colleague may accept with a key; both legs are charged, each once, when the call ends.
func TestAnnounceAccepted(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		d := newDesk(h)
		n := h.node(d.config)
		id := n.start().ID
		far := h.answered()
		h.model.Script(aitest.Behaviour{Text: "She wants a cake."})
		go d.who.presses('1')
		line, err := transfer(t.Context(), far.session(h), toDesk)
		h.must(err)
		if r := <-d.routes; r.To != toDesk.SupervisorPhone || r.From != h.number.PhoneNumber || r.Number.ID != h.number.ID {
			t.Errorf("called by %+v", r)
		}
		p := lang.Of("en").Phrases
		if s := <-d.briefing; !s.Outbound || s.Persona.Initial != p.Announced+" She wants a cake. "+p.Consent ||
			!bool(s.Persona.Assistant.EndCallOnVoicemail) || len(s.Persona.Assistant.Tools) != 0 {
			t.Errorf("the briefing begins with %q", s.Persona.Initial)
		}
		legs := func() []parley.CallLeg {
			list, err := h.db.CallLegs(t.Context(), h.user.ID, id)
			h.must(err)
			return list
		}
		leg := legs()[0]
		if leg.Status != parley.LegJoined || leg.JoinedAt == 0 || leg.AnsweredAt == 0 || leg.EndedAt != 0 ||
			leg.Summary != "She wants a cake." || leg.Reserved != 2*leg.Rate || leg.Rate == 0 {
			t.Errorf("joined: %+v", leg)
		}
		if _, reserved, _ := h.money(); reserved != h.call(id).Reserved+leg.Reserved {
			t.Errorf("%s set aside", reserved)
		}
		line.Close()
		<-d.who.ended
		far.hangUp(parley.Transferred)
		c := h.reported(id)
		if leg = legs()[0]; leg.Status != parley.LegEnded || leg.EndedReason != parley.Transferred || leg.Cost != leg.Rate ||
			len(leg.Turns) != 1 {
			t.Errorf("ended: %+v", leg)
		}
		told, _ := h.events()[0]["legs"].([]any)
		if len(told) != 1 || told[0].(map[string]any)["phone_number"] != toDesk.SupervisorPhone ||
			told[0].(map[string]any)["ended_reason"] != string(parley.Transferred) {
			t.Errorf("the event has the legs %v", told)
		}
		if c.LegCost != leg.Cost || c.TotalCost() != c.CarrierCost+c.AssistantCost+leg.Cost {
			t.Errorf("the call costs %s, %s of it the leg", c.TotalCost(), c.LegCost)
		}
		_, reserved, entries := h.money()
		paid := parley.Money(0)
		for _, e := range entries {
			paid -= e.Amount
		}
		if len(entries) != 3 || reserved != 0 || paid != c.TotalCost() {
			t.Errorf("%s set aside, %s paid: %+v", reserved, paid, entries)
		}
		spent, err := h.db.Spend(t.Context(), h.user.ID, parley.Now())
		if h.must(err); spent != c.TotalCost() {
			t.Errorf("%s of the day are spent", spent)
		}
	})
}

// Whatever keeps the colleague from taking the call: nobody is left on the line, the leg says why, and the part of it
// that was used is charged at once.
func TestAnnounceRefused(t *testing.T) {
	h := lite(t)
	for name, c := range map[string]struct {
		tool   parley.AssistantTool
		desk   func(d *desk)
		then   func(d *desk, cancel context.CancelCauseFunc)
		reason parley.EndedReason
		free   bool
		none   bool // nobody is called
	}{
		"declined":     {then: func(d *desk, _ context.CancelCauseFunc) { d.who.presses('2') }, reason: parley.Rejected},
		"hangs up":     {then: func(d *desk, _ context.CancelCauseFunc) { d.who.Hangup() }, reason: parley.CustomerHangup},
		"busy":         {desk: func(d *desk) { d.err = parley.LineBusy }, reason: parley.LineBusy, free: true},
		"voicemail":    {desk: func(d *desk) { d.verdict = parley.Voicemail }, reason: parley.Voicemail},
		"says nothing": {desk: func(d *desk) { d.verdict = parley.MaxSilence }, reason: parley.NoAnswer},
		"the customer leaves while it rings": {desk: func(d *desk) { d.hangs = true },
			then: func(d *desk, cancel context.CancelCauseFunc) {
				<-d.routes
				cancel(parley.CustomerHangup)
			}, reason: parley.Canceled, free: true},
		"the customer leaves while they are asked": {then: func(d *desk, cancel context.CancelCauseFunc) {
			<-d.briefing
			cancel(parley.CustomerHangup)
		}, reason: parley.CustomerHangup},
		"barred":    {tool: parley.AssistantTool{SupervisorPhone: "+33123456789"}, reason: parley.Unreachable, none: true},
		"premium":   {tool: parley.AssistantTool{SupervisorPhone: "+19005550123"}, reason: parley.Unreachable, none: true},
		"extension": {tool: parley.AssistantTool{SupervisorPhone: "204"}, reason: parley.Unreachable, none: true},
	} {
		d := newDesk(h)
		if c.desk != nil {
			c.desk(d)
		}
		n := h.node(d.config)
		before, _, _ := h.money()
		id := n.start().ID
		far := h.answered()
		s := far.session(h)
		ctx, cancel := context.WithCancelCause(t.Context())
		if c.then != nil {
			go c.then(d, cancel)
		}
		tool := toDesk
		if c.tool.SupervisorPhone != "" {
			tool.SupervisorPhone = c.tool.SupervisorPhone
		}
		line, err := transfer(ctx, s, tool)
		cancel(nil)
		if line != nil || !errors.Is(err, c.reason) {
			t.Errorf("%s: %v, %v", name, line, err)
		}
		legs, err := h.db.CallLegs(t.Context(), h.user.ID, id)
		h.must(err)
		switch {
		case c.none:
			if len(legs) != 0 {
				t.Errorf("%s: %+v", name, legs)
			}
		case len(legs) != 1 || legs[0].EndedReason != c.reason || legs[0].Status != parley.LegEnded ||
			(legs[0].Cost == 0) != c.free:
			t.Errorf("%s: %+v", name, legs)
		}
		if d.err == nil && !d.hangs && !c.none {
			<-d.who.ended
		}
		if _, reserved, _ := h.money(); reserved != h.call(id).Reserved {
			t.Errorf("%s: %s set aside", name, reserved)
		}
		far.hangUp(parley.CustomerHangup)
		row := h.reported(id)
		after, reserved, _ := h.money()
		if paid := before - after; reserved != 0 || paid != row.TotalCost() {
			t.Errorf("%s: %s set aside after the end, %s paid of %s", name, reserved, paid, row.TotalCost())
		}
		n.Stop(t.Context())
	}
}

// What the colleague says decides if it is clear; otherwise the model decides. A "yes" on picking up is no answer.
func TestAnnounceByVoice(t *testing.T) {
	h := lite(t)
	p := lang.Of("en").Phrases
	for _, c := range []struct {
		heard  string // the part of the briefing that was heard
		said   string
		reason error
	}{{"", "Yes, please.", nil}, {"", "No, not now.", parley.Rejected}, {p.Announced, "Yes.", errUndecided},
		{"", "Who is it?", errUndecided}, {p.StillThere, "Yes.", errUndecided}} {
		d := newDesk(h)
		n := h.node(d.config)
		n.start()
		far := h.answered()
		s := far.session(h)
		h.model.Script(aitest.Behaviour{Text: "A cake."})
		go func() {
			b := <-d.briefing
			heard := b.Persona.Initial
			if c.heard != "" {
				heard = c.heard
			}
			turn := b.Persona.Think([]ai.Message{{Role: ai.Assistant, Text: heard}, {Role: ai.User, Text: c.said}}, nil)
			if c.reason == errUndecided {
				h.model.Script(aitest.Behaviour{Text: "It is about a cake."})
			}
			reply, err := turn.Run(context.Background())
			if err != nil || (len(reply.Calls) == 1) == (c.reason == errUndecided) ||
				!strings.Contains(turn.System, "Customer: I want a cake.") || len(turn.Tools) != 2 {
				t.Errorf("%q: %+v, %v", c.said, reply, err)
			}
			if c.reason == errUndecided {
				d.who.Hangup()
			}
		}()
		line, err := transfer(t.Context(), s, toDesk)
		switch {
		case c.reason == nil && err != nil, c.reason == parley.Rejected && !errors.Is(err, parley.Rejected),
			c.reason == errUndecided && !errors.Is(err, parley.CustomerHangup):
			t.Errorf("%q: %v", c.said, err)
		case line != nil:
			line.Close()
		}
		far.hangUp(parley.CustomerHangup)
		n.Stop(t.Context())
	}
}

var errUndecided = errors.New("it takes the model")

// If the process dies while customer and colleague talk, another process ends the call and its leg, and charges both
// once.
func TestAnnounceNodeLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := furnish(t, storetest.SQLite(t), "http://127.0.0.1:9")
		d := newDesk(h)
		a := h.node(d.config)
		id := a.start().ID
		far := h.answered()
		go d.who.presses('1')
		_, err := transfer(t.Context(), far.session(h), toDesk)
		h.must(err)
		time.Sleep(70 * time.Second)
		a.kill()
		b := h.node()
		time.Sleep(30 * time.Second)
		c := h.call(id)
		legs, err := h.db.CallLegs(t.Context(), h.user.ID, id)
		h.must(err)
		if c.EndedReason != parley.NodeLost || legs[0].EndedReason != parley.NodeLost || legs[0].Cost != 2*legs[0].Rate ||
			c.LegCost != legs[0].Cost {
			t.Errorf("%s, %+v", c.EndedReason, legs)
		}
		b.kill()
		if _, reserved, entries := h.money(); reserved != 0 || len(entries) != 3 {
			t.Errorf("%s set aside: %+v", reserved, entries)
		}
	})
}

// While the database is away, a colleague answers, or hangs up again: their leg ends and is charged by what has happened, not
// by what its row says, once the call has ended.
func TestAnnounceOutage(t *testing.T) {
	for name, c := range map[string]struct {
		answers bool // the database is away while they answer, and not while they hang up
		reason  parley.EndedReason
		minutes int64
	}{
		"the answer":  {true, parley.CustomerHangup, 6},
		"the hang-up": {false, parley.Rejected, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := storetest.Options(t, "sqlite")
				h := furnish(t, storetest.Open(t, o), "http://127.0.0.1:9")
				h.change(h.a, `{"max_duration":3600}`)
				away := &outage{}
				o.Watch = away
				db := storetest.Open(t, o)
				d := newDesk(h)
				n := h.node(d.config, func(config *call.Config) {
					dial := config.Dial
					config.DB, config.Beat, config.Lost = db, 5*time.Second, 15*time.Second
					config.Dial = func(ctx context.Context, r call.Route, ringing func()) (audio.Leg, error) {
						leg, err := dial(ctx, r, ringing)
						away.Store(c.answers && leg == audio.Leg(d.who))
						return leg, err
					}
				})
				id := n.start().ID
				far := h.answered()
				s := far.session(h)
				go func() {
					<-d.briefing
					if time.Sleep(20 * time.Second); c.answers {
						return
					}
					away.Store(true)
					d.who.presses('2')
				}()
				if c.answers {
					go d.who.presses('1')
				}
				_, err := transfer(t.Context(), s, toDesk)
				if away.Store(false); (err == nil) != c.answers {
					t.Fatal(err)
				}
				time.Sleep(5*time.Minute + 30*time.Second)
				far.hangUp(parley.CustomerHangup)
				row := h.status(id, parley.CallCompleted)
				legs, err := h.db.CallLegs(t.Context(), h.user.ID, id)
				h.must(err)
				if leg := legs[0]; leg.EndedReason != c.reason || leg.AnsweredAt == 0 || leg.Cost != parley.Money(c.minutes)*leg.Rate ||
					row.LegCost != leg.Cost {
					t.Errorf("%+v, %s of the call", leg, row.LegCost)
				}
				if _, reserved, entries := h.money(); reserved != 0 || len(entries) != 3 {
					t.Errorf("%s set aside: %+v", reserved, entries)
				}
			})
		})
	}
}

// 120 transfers with random ends at random moments: each leg ends, is charged at most once, and leaves nothing
// reserved.
func TestAnnounceSeeds(t *testing.T) {
	slowly(t, func(t *testing.T, h *harness) {
		h.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Post(ctx, h.user.ID, &parley.LedgerEntry{Kind: parley.Credit, Amount: 1000 * parley.USD, Reference: "more"})
			return err
		})
		for seed := range uint64(120) {
			random := rand.New(rand.NewPCG(seed, 7))
			upTo := func(most time.Duration) time.Duration { return time.Duration(random.Int64N(int64(most))) }
			d := newDesk(h)
			switch random.IntN(4) {
			case 0:
				d.err = []error{parley.LineBusy, parley.Rejected, parley.Unreachable, errors.New("broken")}[random.IntN(4)]
			case 1:
				d.hangs = true
			case 2:
				d.verdict = parley.Voicemail
			}
			n := h.node(d.config, func(c *call.Config) { c.Beat, c.Lost = 10*time.Second, time.Minute })
			id := n.start().ID
			far := h.answered()
			s := far.session(h)
			ctx, cancel := context.WithCancelCause(t.Context())
			key, hangs, leaves := upTo(8*time.Second), upTo(8*time.Second), upTo(15*time.Second)
			var others sync.WaitGroup
			others.Go(func() {
				time.Sleep(key)
				select {
				case <-d.who.runs:
					d.who.peer.Digit("12345"[random.IntN(5)])
				default:
				}
			})
			others.Go(func() { time.Sleep(hangs); d.who.Hangup() })
			others.Go(func() { time.Sleep(leaves); cancel(parley.CustomerHangup) })
			line, err := transfer(ctx, s, toDesk)
			if line != nil {
				<-ctx.Done()
				line.Close()
			} else if err == nil {
				t.Errorf("seed %d: neither a line nor an error", seed)
			}
			others.Wait()
			select {
			case <-d.who.runs:
				<-d.who.ended
			default:
			}
			far.hangUp(parley.CustomerHangup)
			n.Stop(t.Context())
			n.kill()
			legs, err := h.db.CallLegs(t.Context(), h.user.ID, id)
			h.must(err)
			if len(legs) != 1 || legs[0].EndedAt == 0 || legs[0].EndedReason == "" {
				t.Errorf("seed %d: %+v", seed, legs)
			}
		}
		if _, reserved, _ := h.money(); reserved != 0 {
			t.Errorf("%s set aside", reserved)
		}
	})
}

// The events that a follower of the call gets about a leg, in order.
func TestAnnounceEvents(t *testing.T) {
	h := lite(t)
	d := newDesk(h)
	n := h.node(d.config)
	id := n.start().ID
	far := h.answered()
	s := far.session(h)
	events, stop, _ := n.Hub.Listen(call.Topic(id), 20)
	defer stop()
	go d.who.presses('2')
	_, err := transfer(t.Context(), s, toDesk)
	if !errors.Is(err, parley.Rejected) {
		t.Error(err)
	}
	var got []string
	for len(got) == 0 || got[len(got)-1] != string(parley.LegEnded) {
		e := <-events
		if leg, ok := e.Data.(parley.CallLeg); ok && e.Kind == call.Leg {
			got = append(got, string(leg.Status))
			if _, err := json.Marshal(leg); err != nil {
				t.Error(err)
			}
		}
	}
	if text := strings.Join(got, " "); text != "dialing ringing briefing ended" {
		t.Error(text)
	}
	far.hangUp(parley.CustomerHangup)
	h.reported(id)
}
