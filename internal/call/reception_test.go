package call_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/call"
	"parley/internal/lang"
	"parley/internal/parley"
	"parley/internal/store"
)

// guest is a person on the telephone, as the caller or as the called party. The telephone ticks every 20 ms of fake
// time.
type guest struct {
	gone chan struct{}
	hung chan struct{} // closed when they hang up
	took chan struct{} // closed when the call is answered
	over chan struct{} // closed when their leg is over

	mu      sync.Mutex
	rang    int
	refused int
	lines   [][]int16
	heard   [][]int16
	peer    audio.Peer
	keys    string
}

func newGuest() *guest {
	return &guest{gone: make(chan struct{}), hung: make(chan struct{}), over: make(chan struct{}), took: make(chan struct{})}
}

func (g *guest) Ring() error { g.mu.Lock(); defer g.mu.Unlock(); g.rang++; return nil }
func (g *guest) Refuse(code int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused = code
	return nil
}
func (g *guest) Done() <-chan struct{} { return g.gone }

// told returns how often it rang, with what it was refused, and the keys that came.
func (g *guest) told() (rang, refused int, keys string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.rang, g.refused, g.keys
}

func (g *guest) Answer(context.Context) (audio.Leg, error) {
	close(g.took) // at most once
	return g, nil
}

// answered reports whether the call was answered.
func (g *guest) answered() bool {
	select {
	case <-g.took:
		return true
	default:
		return false
	}
}

// eager is a caller whose line can be heard before the answer.
type eager struct{ *guest }

func (e eager) Progress(context.Context) (audio.Leg, error) { return e.guest, nil }

// comesEager has a call come in over a line that can be heard before the answer.
func (b *inbox) comesEager() (g *guest, over chan struct{}) {
	g = newGuest()
	return g, b.node.take(call.Arrival{Ringer: eager{g}, From: "+12025550177", To: "+12025550100"})
}
func (*guest) Rate() audio.Rate { return audio.Narrow }
func (*guest) Hangup()          {}
func (g *guest) Dial(digits string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keys += digits
	return nil
}

func (g *guest) Run(ctx context.Context, p audio.Peer) error {
	defer close(g.over)
	g.mu.Lock()
	g.peer = p
	g.mu.Unlock()
	tick := time.NewTicker(audio.FrameTime)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-g.hung:
			return parley.CustomerHangup
		}
		in, out := make([]int16, 160), make([]int16, 160)
		g.mu.Lock()
		if len(g.lines) > 0 {
			copy(in, g.lines[0]) // nil is silence
			g.lines = g.lines[1:]
		}
		g.mu.Unlock()
		p.Hear(in)
		p.Tick(in, out)
		g.mu.Lock()
		g.heard = append(g.heard, out)
		g.mu.Unlock()
	}
}

func (g *guest) says(frames ...[]int16) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lines = append(g.lines, frames...)
}

func (g *guest) press(key byte) {
	g.mu.Lock()
	p := g.peer
	g.mu.Unlock()
	p.Digit(key)
}

// hears returns for how long a tone was heard.
func (g *guest) hears(hz float64) (d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.heard {
		var re, im, all float64
		for i, x := range f {
			sin, cos := math.Sincos(2 * math.Pi * hz * float64(i) / 8000)
			re, im, all = re+float64(x)*cos, im+float64(x)*sin, all+float64(x)*float64(x)
		}
		if all > 1e6 && 2*(re*re+im*im)/float64(len(f))/all > 0.6 {
			d += audio.FrameTime
		}
	}
	return d
}

// sounds returns for how long anything was heard.
func (g *guest) sounds() (d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.heard {
		if audio.Level(f) > -60 {
			d += audio.FrameTime
		}
	}
	return d
}

// toneOf makes n frames of a tone.
func toneOf(hz float64, n int) (frames [][]int16) {
	for i := range n {
		f := make([]int16, 160)
		for k := range f {
			f[k] = int16(8000 * math.Sin(2*math.Pi*hz*float64(i*160+k)/8000))
		}
		frames = append(frames, f)
	}
	return frames
}

// speechOf makes n frames of a sound that a voice detector takes for speech.
func speechOf(n int) (frames [][]int16) {
	phase := 0.0
	for i := range n {
		f := make([]int16, 160)
		for j := range f {
			t := float64(i*160+j) / 8000
			phase += 2 * math.Pi * (140 + 30*math.Sin(2*math.Pi*1.3*t)) / 8000
			v := 0.0
			for h := 1; h < 16; h++ {
				v += math.Sin(phase*float64(h)) / float64(h) * (1 + 2*math.Exp(-math.Pow(float64(h)*140-700, 2)/90000))
			}
			f[j] = int16(3000 * (0.25 + 0.75*math.Pow(math.Sin(math.Pi*4*t), 2)) * v)
		}
		frames = append(frames, f)
	}
	return frames
}

// inbox is a number with a route, its assistant, and telephones that may be called.
type inbox struct {
	*harness
	t      *testing.T
	desk   *parley.Assistant
	node   *node
	speech *speech
	mu     sync.Mutex
	phones map[string]*telephone
}

// telephone is a telephone that is called: it is answered after a while, refuses, or goes on ringing.
type telephone struct {
	*guest
	after  time.Duration // 0: never
	err    error
	called time.Time
	ended  time.Time
}

func receive(t *testing.T, change func(r *parley.NumberRoute), test func(b *inbox)) {
	t.Helper()
	slowly(t, func(t *testing.T, h *harness) { test(furnished(t, h, change)) })
}

// furnished gives a number a route, which is that of a closed day until change says otherwise.
func furnished(t *testing.T, h *harness, change func(r *parley.NumberRoute)) *inbox {
	t.Helper()
	b := &inbox{harness: h, t: t, speech: &speech{}, phones: map[string]*telephone{}}
	b.desk = h.assistant(`{"type":"inbound","phone_number_id":%d,"name":"Desk","inbound_webhook_url":"http://127.0.0.1:9/in","post_call_evaluation":false,"post_call_schema":[]}`, h.number.ID)
	b.node = h.node(func(c *call.Config) {
		c.Converse, c.Speech, c.Beat, c.Lost, c.Dial = nil, b.speech, time.Second, time.Hour, b.dial
	})
	b.route(change)
	return b
}

// route sets the number's route.
func (b *inbox) route(change func(r *parley.NumberRoute)) {
	b.t.Helper()
	now := time.Now().UTC()
	r := parley.NewRoute("UTC")
	r.ClosedDates = []string{now.Format(time.DateOnly), now.AddDate(0, 0, 1).Format(time.DateOnly)}
	change(r)
	b.write(func(ctx context.Context, tx *store.Tx) error { return tx.SaveRoute(ctx, b.user.ID, b.number.ID, r) })
}

func (b *inbox) phone(number string, after time.Duration, err error) *telephone {
	p := &telephone{guest: newGuest(), after: after, err: err}
	b.phones[number] = p
	return p
}

// rang returns how long a telephone rang, and when.
func (b *inbox) rang(p *telephone) (d time.Duration, from, to time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return p.ended.Sub(p.called), p.called, p.ended
}

func (b *inbox) dial(ctx context.Context, r call.Route, ringing func()) (audio.Leg, error) {
	p := b.phones[r.To]
	b.mu.Lock()
	p.called = time.Now()
	b.mu.Unlock()
	defer func() { b.mu.Lock(); defer b.mu.Unlock(); p.ended = time.Now() }()
	if p.err != nil {
		return nil, p.err
	}
	ringing()
	var answers <-chan time.Time
	if p.after > 0 {
		answers = time.After(p.after)
	}
	select {
	case <-answers:
		return p.guest, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// comes has a call come in.
func (b *inbox) comes() (g *guest, over chan struct{}) {
	g = newGuest()
	return g, b.node.take(call.Arrival{Ringer: g, From: "+12025550177", To: "+12025550100"})
}

// ended waits for the newest call's report.
func (b *inbox) ended() *parley.Call {
	b.t.Helper()
	return b.reported(b.newest().ID)
}

func texts(c *parley.Call) string { return parley.CallTranscript(c.Turns) }

// A message: the greeting, the tone, what the caller says, and what ends it. The call is charged, recorded and
// reported.
func TestVoicemail(t *testing.T) {
	hangsUp := func(g *guest) { time.Sleep(1500 * time.Millisecond); close(g.hung) }
	said := "AI: " + lang.Of("en").Phrases.LeaveMessage + "\nCustomer: call me back"
	for name, c := range map[string]struct {
		do     func(g *guest)
		reason parley.EndedReason
		after  time.Duration // how long after they spoke the words are recognized
	}{
		"silence":    {func(*guest) { time.Sleep(12 * time.Second) }, parley.Voicemail, 300 * time.Millisecond},
		"the key":    {func(g *guest) { time.Sleep(2 * time.Second); g.press('#') }, parley.Voicemail, 300 * time.Millisecond},
		"a hang-up":  {hangsUp, parley.CustomerHangup, 300 * time.Millisecond},
		"last words": {hangsUp, parley.CustomerHangup, 8 * time.Second}, // the wait is not charged
	} {
		t.Run(name, func(t *testing.T) {
			receive(t, func(r *parley.NumberRoute) { r.Otherwise = parley.RouteVoicemail }, func(b *inbox) {
				b.speech.recognizer.Script(aitest.Understanding{Text: "call me back", Partials: []string{}, Delay: c.after})
				g, over := b.comes()
				for range 1000 {
					if time.Sleep(20 * time.Millisecond); g.hears(1000) > 300*time.Millisecond {
						break
					}
				}
				time.Sleep(200 * time.Millisecond)
				g.says(speechOf(60)...)
				c.do(g)
				done := parley.Now()
				<-over
				got := b.ended()
				if late := parley.Time(got.EndedAt).Sub(done); late > 200*time.Millisecond {
					t.Errorf("it ended %v after it was over", late)
				}
				rang, _, _ := g.told()
				if got.TakenBy != parley.TakenByVoicemail || got.Status != parley.CallCompleted ||
					got.EndedReason != c.reason || texts(got) != said || rang == 0 {
					t.Errorf("by %s, %s by %s: %q", got.TakenBy, got.Status, got.EndedReason, texts(got))
				}
				if got.Recording == "" || got.AssistantCost == 0 || got.CarrierCost == 0 {
					t.Errorf("recorded %q, costs %s and %s", got.Recording, got.AssistantCost, got.CarrierCost)
				}
				told := b.events()
				if len(told) == 0 || told[0]["taken_by"] != "voicemail" || told[0]["recording_url"] == nil ||
					!strings.Contains(told[0]["transcript"].(string), "call me back") {
					t.Errorf("told: %v", told)
				}
				b.settled(got)
			})
		})
	}
	t.Run("nobody speaks", func(t *testing.T) {
		receive(t, func(r *parley.NumberRoute) { r.Otherwise, r.VoicemailSilence = parley.RouteVoicemail, 3 }, func(b *inbox) {
			_, over := b.comes()
			<-over
			if c := b.ended(); c.EndedReason != parley.Voicemail || c.CustomerSpoke() {
				t.Errorf("%s: %q", c.EndedReason, texts(c))
			}
		})
	})
	t.Run("too long", func(t *testing.T) {
		receive(t, func(r *parley.NumberRoute) { r.Otherwise, r.VoicemailSeconds = parley.RouteVoicemail, 10 }, func(b *inbox) {
			g, over := b.comes()
			for range 60 { // a sound without a pause would count as music
				g.says(append(speechOf(80), make([][]int16, 20)...)...)
			}
			<-over
			if c := b.ended(); c.EndedReason != parley.Voicemail || c.Duration < 12 || c.Duration > 25 {
				t.Errorf("%s after %d s", c.EndedReason, c.Duration)
			}
		})
	})
}

// settled checks that a call and its legs are charged once, and nothing is reserved any more.
func (b *inbox) settled(calls ...*parley.Call) {
	b.t.Helper()
	_, reserved, entries := b.money()
	var paid, cost parley.Money
	for _, e := range entries {
		paid -= e.Amount
	}
	for _, c := range calls {
		cost += c.TotalCost()
	}
	if reserved != 0 || paid != cost {
		b.t.Errorf("%s set aside; %s paid, and the calls cost %s", reserved, paid, cost)
	}
	lines, err := b.db.Lines(context.Background(), b.user.ID)
	b.must(err)
	if len(lines.Taken)+len(lines.Queue)+lines.Aside != 0 {
		b.t.Errorf("lines are held: %+v", lines)
	}
}

// Telephones ring together: the first to answer gets the caller, both hear each other, and the others stop ringing.
func TestRingTogether(t *testing.T) {
	receive(t, func(r *parley.NumberRoute) {
		r.Otherwise, r.RingRecord = parley.RouteTelephone, true
		r.Telephones = []parley.RingTarget{{PhoneNumber: "+4930901820", Seconds: 20}, {PhoneNumber: "+4930901821", Seconds: 20},
			{PhoneNumber: "+4930901822", Seconds: 20}}
	}, func(b *inbox) {
		slow, quick := b.phone("+4930901820", 9*time.Second, nil), b.phone("+4930901821", 3*time.Second, nil)
		b.phone("+4930901822", 0, parley.LineBusy)
		g, over := b.comes()
		time.Sleep(4 * time.Second)
		if rang, _, _ := g.told(); b.newest().TakenBy != parley.TakenByTelephone || rang == 0 {
			t.Errorf("%+v", b.newest())
		}
		g.says(toneOf(1250, 50)...)
		quick.says(toneOf(2250, 50)...)
		time.Sleep(2 * time.Second)
		if g.hears(2250) < 900*time.Millisecond || quick.hears(1250) < 900*time.Millisecond || g.hears(1250) > 0 {
			t.Errorf("they hear each other for %s and %s, and themselves for %s", g.hears(2250), quick.hears(1250), g.hears(1250))
		}
		g.press('5')
		close(quick.hung)
		<-over
		<-g.over
		c := b.ended()
		legs, err := b.db.CallLegs(b.t.Context(), b.user.ID, c.ID)
		b.must(err)
		if len(legs) != 3 {
			t.Fatalf("%d legs", len(legs))
		}
		reasons := map[string]parley.EndedReason{}
		for _, l := range legs {
			reasons[l.PhoneNumber] = l.EndedReason
			if joined := l.PhoneNumber == "+4930901821"; joined != (l.JoinedAt != 0) || joined != (l.Cost > 0) || l.Kind != parley.LegRing {
				t.Errorf("%+v", l)
			}
		}
		if reasons["+4930901820"] != parley.Canceled || reasons["+4930901821"] != parley.Transferred ||
			reasons["+4930901822"] != parley.LineBusy {
			t.Errorf("%v", reasons)
		}
		d, _, _ := b.rang(slow)
		if _, _, keys := quick.told(); d > 4*time.Second || keys != "5" {
			t.Errorf("the other rang for %s; keys %q", d, keys)
		}
		if c.EndedReason != parley.Transferred || c.AssistantCost != 0 || c.LegCost == 0 || c.Recording == "" || c.Duration > 4 {
			t.Errorf("%s, %d s: %+v", c.EndedReason, c.Duration, c.Costs())
		}
		b.settled(c)
	})
}

// Telephones ring one after the other, each for its own time; if none answers, the route's next step follows.
func TestRingInTurn(t *testing.T) {
	for name, c := range map[string]struct {
		unanswered parley.RouteStep
		by         parley.CallTaker
	}{"words": {parley.RouteWords, parley.TakenByNobody}, "voicemail": {parley.RouteVoicemail, parley.TakenByVoicemail},
		"the assistant": {parley.RouteAssistant, parley.TakenByAssistant}} {
		t.Run(name, func(t *testing.T) {
			receive(t, func(r *parley.NumberRoute) {
				r.Otherwise, r.Ring, r.Unanswered = parley.RouteTelephone, parley.RingInTurn, c.unanswered
				r.Telephones = []parley.RingTarget{{PhoneNumber: "+4930901820", Seconds: 10}, {PhoneNumber: "+4930901821", Seconds: 7}}
			}, func(b *inbox) {
				one, two := b.phone("+4930901820", 0, nil), b.phone("+4930901821", 0, nil)
				g, over := b.comes()
				time.Sleep(25 * time.Second)
				d, _, first := b.rang(one)
				if d != 10*time.Second {
					t.Errorf("the first rang for %s", d)
				}
				if d, second, _ := b.rang(two); d != 7*time.Second || second.Before(first) {
					t.Errorf("the second rang for %s", d)
				}
				if c.by == parley.TakenByAssistant {
					close(g.hung)
				}
				<-over
				got := b.ended()
				if got.TakenBy != c.by || got.LegCost != 0 || !got.Answered() || g.sounds() == 0 {
					t.Errorf("by %s, legs cost %s, %s heard", got.TakenBy, got.LegCost, g.sounds())
				}
				if sorry := lang.Of("en").Phrases.NotConnected; c.by == parley.TakenByNobody &&
					(texts(got) != "AI: "+sorry || got.EndedReason != parley.NoAnswer || got.AssistantCost != 0) {
					t.Errorf("%s: %q, %+v", got.EndedReason, texts(got), got.Costs())
				}
				b.settled(got)
			})
		})
	}
}

// When a caller gives up while telephones ring, the ringing stops, and the call costs nothing.
func TestRingGivenUp(t *testing.T) {
	receive(t, func(r *parley.NumberRoute) {
		r.ClosedDates, r.RingFirst = nil, true
		r.Telephones = []parley.RingTarget{{PhoneNumber: "+4930901820", Seconds: 60}}
	}, func(b *inbox) {
		p := b.phone("+4930901820", 0, nil)
		g, over := b.comes()
		time.Sleep(5 * time.Second)
		close(g.gone)
		<-over
		c := b.ended()
		if d, _, _ := b.rang(p); c.Status != parley.CallCanceled || c.Answered() || d > 6*time.Second || c.TotalCost() != 0 {
			t.Errorf("%s, rang for %s, costs %s", c.Status, d, c.TotalCost())
		}
		b.settled(c)
	})
}

// While all lines are taken callers wait, hear their position and music, and are connected in turn. A caller who hangs
// up leaves no trace; a caller who has waited too long goes on to the next step.
func TestQueue(t *testing.T) {
	receive(t, func(r *parley.NumberRoute) {
		one := int64(1)
		r.ClosedDates, r.Lines, r.WhenFull, r.QueueSeconds, r.QueuePlaces = nil, &one, parley.RouteQueue, 30, 2
		r.AfterQueue = parley.RouteVoicemail
	}, func(b *inbox) {
		talk, talkOver := b.comes()
		time.Sleep(3 * time.Second)
		first := b.newest().ID
		hasty, hastyOver := b.comes()
		time.Sleep(time.Second)
		next, nextOver := b.comes()
		time.Sleep(5 * time.Second)
		waits := b.newest()
		if waits.TakenBy != parley.TakenByQueue || waits.Status != parley.CallInProgress || next.sounds() < 3*time.Second {
			t.Errorf("by %s, %s, heard for %s", waits.TakenBy, waits.Status, next.sounds())
		}
		_, fullOver := b.comes() // the queue has two places
		<-fullOver
		if c := b.newest(); c.TakenBy != parley.TakenByVoicemail {
			t.Errorf("the third was taken by %s", c.TakenBy)
		}
		close(hasty.hung)
		<-hastyOver
		close(talk.hung)
		<-talkOver
		time.Sleep(4 * time.Second)
		if c := b.call(waits.ID); c.TakenBy != parley.TakenByAssistant || len(c.Turns) == 0 {
			t.Errorf("by %s: %q", c.TakenBy, texts(c))
		}
		_, lateOver := b.comes()
		time.Sleep(32 * time.Second)
		if c := b.newest(); c.TakenBy != parley.TakenByVoicemail {
			t.Errorf("after so long: by %s, %s", c.TakenBy, c.EndedReason)
		}
		<-lateOver
		close(next.hung)
		<-nextOver
		all, _, err := b.db.Calls(b.t.Context(), b.user.ID, store.CallFilter{}, store.Page{Number: 1, Size: 20})
		b.must(err)
		var calls []*parley.Call
		for _, c := range all {
			calls = append(calls, b.reported(c.ID))
		}
		said := map[string]bool{}
		for _, s := range b.speech.voice.Said() {
			said[s.Text] = true
		}
		for _, place := range []string{"1", "2"} {
			if text := strings.ReplaceAll(lang.Of("en").Phrases.InLine, "{n}", place); !said[text] {
				t.Errorf("%q was not said: %v", text, said)
			}
		}
		b.settled(calls...)
		if c := b.call(first); c.TakenBy != parley.TakenByAssistant || c.AssistantCost == 0 {
			t.Errorf("%+v", c)
		}
		c := b.call(waits.ID) // it waited for 9 seconds or so
		if sec := c.Costs().AssistantSeconds; sec >= c.Duration-5 || sec < 4 || c.AssistantCost != c.AssistantRate.MulRatio(sec, 60) {
			t.Errorf("%d of %d seconds are the assistant's", sec, c.Duration)
		}
		if c := b.call(calls[len(calls)-2].ID); c.TakenBy != parley.TakenByQueue || c.AssistantCost != 0 || c.CarrierCost == 0 {
			t.Errorf("the hasty: %+v", c)
		}
	})
}

// The steps of a route on both databases, in real time: who waits takes the line that becomes free, a telephone takes a call
// outside the hours, and a message is left where it is not answered.
func TestRouteOnBothDatabases(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		one := int64(1)
		b := furnished(t, h, func(r *parley.NumberRoute) {
			r.ClosedDates, r.Lines, r.WhenFull, r.EarlyMedia = nil, &one, parley.RouteQueue, true
		})
		was := h.newest()
		arrives := func(from func() (*guest, chan struct{}), what string, ok func(c *parley.Call) bool) (*guest, chan struct{}, *parley.Call) {
			g, over := from()
			for give := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
				if c := h.newest(); c != nil && (was == nil || c.ID != was.ID) {
					was = c
					return g, over, h.until(c.ID, what, ok)
				} else if time.Now().After(give) {
					t.Fatalf("no call is %s", what)
				}
			}
		}
		by := func(taker parley.CallTaker, s parley.CallStatus) func(c *parley.Call) bool {
			return func(c *parley.Call) bool { return c.TakenBy == taker && c.Status == s }
		}
		talk, talkOver, _ := arrives(b.comes, "with the assistant", by(parley.TakenByAssistant, parley.CallInProgress))
		next, nextOver, waits := arrives(b.comesEager, "in the queue", by(parley.TakenByQueue, parley.CallRinging))
		close(talk.hung)
		<-talkOver
		h.until(waits.ID, "with the assistant", by(parley.TakenByAssistant, parley.CallInProgress))
		if !next.answered() {
			t.Error("an assistant speaks with a caller who was not answered")
		}
		close(next.hung)
		<-nextOver
		if c := h.reported(waits.ID); c.EndedReason != parley.CustomerHangup || c.CarrierCost == 0 {
			t.Errorf("who waited: %s for %s", c.EndedReason, c.CarrierCost)
		}

		b.route(func(r *parley.NumberRoute) {
			r.Otherwise, r.Telephones = parley.RouteTelephone, []parley.RingTarget{{PhoneNumber: "+12025550188", Seconds: 5}}
			r.Unanswered, r.VoicemailSilence = parley.RouteVoicemail, 2
		})
		p := b.phone("+12025550188", 100*time.Millisecond, nil)
		caller, callerOver, taken := arrives(b.comes, "with a telephone", by(parley.TakenByTelephone, parley.CallInProgress))
		close(p.hung)
		<-callerOver
		legs, err := h.db.CallLegs(context.Background(), h.user.ID, taken.ID)
		h.must(err)
		if c := h.reported(taken.ID); len(legs) != 1 || c.EndedReason == "" || !caller.answered() {
			t.Errorf("%d legs, %s", len(legs), c.EndedReason)
		}
		p.err = parley.LineBusy
		g, over, message := arrives(b.comes, "a message", by(parley.TakenByVoicemail, parley.CallInProgress))
		<-over
		if c := h.reported(message.ID); c.EndedReason != parley.Voicemail || g.hears(1000) < 300*time.Millisecond {
			t.Errorf("%s, tone for %s", c.EndedReason, g.hears(1000))
		}
	})
}

// Where the route says so, the queue is heard before the call is answered, and costs nothing until an assistant has a line;
// who hangs up meanwhile was never answered. A call that waits for two minutes is answered.
func TestQueueBeforeAnswer(t *testing.T) {
	receive(t, func(r *parley.NumberRoute) {
		one := int64(1)
		r.ClosedDates, r.Lines, r.WhenFull, r.QueueSeconds, r.EarlyMedia = nil, &one, parley.RouteQueue, 150, true
	}, func(b *inbox) {
		talk, talkOver := b.comesEager()
		time.Sleep(3 * time.Second)
		hasty, hastyOver := b.comesEager()
		time.Sleep(4 * time.Second)
		left := b.newest().ID
		next, nextOver := b.comesEager()
		time.Sleep(5 * time.Second)
		waits := b.newest()
		if !talk.answered() || next.answered() || waits.Status != parley.CallRinging || waits.TakenBy != parley.TakenByQueue ||
			next.sounds() < 3*time.Second {
			t.Errorf("answered: %t, %t; %s by %s, heard for %s", talk.answered(), next.answered(), waits.Status, waits.TakenBy, next.sounds())
		}
		close(hasty.hung)
		<-hastyOver
		close(talk.hung)
		<-talkOver
		time.Sleep(4 * time.Second)
		if c := b.call(waits.ID); !next.answered() || c.TakenBy != parley.TakenByAssistant || c.Status != parley.CallInProgress ||
			len(c.Turns) == 0 {
			t.Errorf("answered: %t, %s by %s: %q", next.answered(), c.Status, c.TakenBy, texts(c))
		}
		close(next.hung)
		<-nextOver
		c := b.reported(left)
		if hasty.answered() || c.Status != parley.CallCanceled || c.CarrierCost != 0 || c.Duration != 0 {
			t.Errorf("the hasty: answered %t, %s, %s", hasty.answered(), c.Status, c.CarrierCost)
		}
		if c := b.reported(waits.ID); c.CarrierCost == 0 || c.Duration > 150 {
			t.Errorf("%s for %d seconds", c.CarrierCost, c.Duration)
		}
	})
}

// A call that has waited for two minutes is answered: exchanges cut those that ring for three.
func TestLongQueueIsAnswered(t *testing.T) {
	receive(t, func(r *parley.NumberRoute) {
		one := int64(1)
		r.ClosedDates, r.Lines, r.WhenFull, r.QueueSeconds, r.EarlyMedia = nil, &one, parley.RouteQueue, 150, true
	}, func(b *inbox) {
		b.write(func(ctx context.Context, tx *store.Tx) error { // the line is taken
			return tx.CreateCall(ctx, b.user.ID, &parley.Call{AssistantID: b.desk.ID, Type: parley.CallInbound, Status: parley.CallInProgress,
				TakenBy: parley.TakenByAssistant, NumberID: &b.number.ID, AnsweredAt: parley.DateTime(parley.Now()), Node: "another"})
		})
		g, over := b.comesEager()
		time.Sleep(110 * time.Second)
		if g.answered() {
			t.Error("a caller who has waited for less than two minutes was answered")
		}
		time.Sleep(15 * time.Second)
		if c := b.newest(); !g.answered() || c.Status != parley.CallInProgress || c.TakenBy != parley.TakenByQueue {
			t.Errorf("after two minutes: answered %t, %s by %s", g.answered(), c.Status, c.TakenBy)
		}
		<-over
		if c := b.ended(); c.EndedReason != parley.NoAnswer || c.CarrierCost == 0 {
			t.Errorf("%s for %s", c.EndedReason, c.CarrierCost)
		}
	})
}

// Who can't be helped is told so before the call is refused, and neither is charged: when the hours are over, and when the
// assistant is inactive. A line that can't be heard before the answer refuses as ever.
func TestWordsBeforeRefusal(t *testing.T) {
	for name, prepare := range map[string]func(b *inbox){"closed": func(*inbox) {}, "inactive": func(b *inbox) {
		r := parley.NewRoute("UTC")
		r.EarlyMedia = true
		b.write(func(ctx context.Context, tx *store.Tx) error { return tx.SaveRoute(ctx, b.user.ID, b.number.ID, r) })
		b.change(b.desk, `{"status":"inactive"}`)
	}} {
		t.Run(name, func(t *testing.T) {
			receive(t, func(r *parley.NumberRoute) { r.EarlyMedia = true }, func(b *inbox) {
				prepare(b)
				g, over := b.comesEager()
				<-over
				c := b.ended()
				_, refused, _ := g.told()
				if g.answered() || refused != 480 || g.sounds() < time.Second/2 || c.Status != parley.CallNoAnswer ||
					c.EndedReason != parley.NoAnswer || c.TakenBy != parley.TakenByNobody || c.CarrierCost != 0 || c.AssistantCost != 0 {
					t.Errorf("answered %t, refused with %d, heard for %s; %s, %s by %s for %s", g.answered(), refused, g.sounds(),
						c.Status, c.EndedReason, c.TakenBy, c.CarrierCost)
				}
				deaf, over := b.comes()
				<-over
				if _, refused, _ := deaf.told(); deaf.answered() || refused != 480 || deaf.sounds() != 0 {
					t.Errorf("without sound: answered %t, refused with %d", deaf.answered(), refused)
				}
				synctest.Wait()
			})
		})
	}
}

// If the voice fails, the tone is still played, and ringing telephones needs no voice.
func TestReceptionWithoutVoice(t *testing.T) {
	receive(t, func(r *parley.NumberRoute) { r.Otherwise = parley.RouteVoicemail }, func(b *inbox) {
		b.speech.err = errors.New("the vendor is gone")
		g, over := b.comes()
		<-over
		if c := b.ended(); c.EndedReason != parley.Voicemail || g.hears(1000) < 300*time.Millisecond {
			t.Errorf("%s, tone for %s", c.EndedReason, g.hears(1000))
		}
		synctest.Wait()
	})
}
