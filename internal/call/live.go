package call

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"parley/internal/ai"
	"parley/internal/assistant"
	"parley/internal/audio"
	"parley/internal/crash"
	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/telemetry"
	"parley/internal/voice"
)

// live is a call that belongs to this process.
type live struct {
	*Center
	a      *parley.Assistant
	house  bool // it goes over a trunk of the user's own, behind which there is a house with extensions
	id     int64
	ctx    context.Context // its cause is why the call is to end
	cancel context.CancelCauseFunc
	news   chan struct{}     // has a token when the row is behind
	client *assistant.Client // that runs tools of kind client; nil: none, as in calls by telephone

	mu      sync.Mutex
	call    parley.Call // as it stands; what is stored follows
	gone    parley.Time // when the conversation was over; 0: there was none
	ending  bool        // its row is being ended
	counted bool        // it is among those that are over; the center's lock guards it
	sip     signalled   // nil: nothing is known
	sound   measured    // likewise; of an answered call
	others  others
	legs    map[int64]parley.CallLeg // by id, as they stand: what could not be stored is stored with the call's end
}

// traced begins the trace of a call. Its span is ended by end, or by whoever learns that there will be no call.
func (d *Center) traced(c *parley.Call, a *parley.Assistant) context.Context {
	ctx, _ := telemetry.Start(d.ctx, "call", trace.SpanKindServer, attribute.String("parley.call.type", string(c.Type)),
		attribute.String("gen_ai.agent.id", a.UUID), attribute.String("gen_ai.agent.name", a.Name))
	c.Trace = parley.Trace(telemetry.Parent(ctx))
	return ctx
}

// begin registers a call whose row exists, with the context of its trace and the program that runs its tools of kind client. It is over
// when end has returned.
func (d *Center) begin(ctx context.Context, c *parley.Call, a *parley.Assistant, client *assistant.Client) *live {
	if c.Test && c.MaxDuration < a.MaxDuration { // as long as the day's minutes of tests last
		shorter := *a
		shorter.MaxDuration = c.MaxDuration
		a = &shorter
	}
	l := &live{Center: d, a: a, id: c.ID, news: make(chan struct{}, 1), call: *c, client: client,
		others: others{at: map[int64]*other{}}, legs: map[int64]parley.CallLeg{}}
	ctx = ai.ForParty(ctx, assistant.Party(a, occasion(c)))
	l.ctx, l.cancel = context.WithCancelCause(ai.Tallied(ctx, &ai.Tally{Switched: l.switched}))
	trace.SpanFromContext(ctx).SetAttributes(attribute.Int64("parley.call.id", c.ID),
		attribute.String("gen_ai.conversation.id", strconv.FormatInt(c.ID, 10)))
	d.mu.Lock()
	d.live[c.ID] = l
	d.mu.Unlock()
	d.Hub.Tell(Topic(c.ID), event.Event{Kind: Status, Data: c.Status})
	return l
}

// run has talk hold the call and then ends it; talk's error is why it is over.
func (l *live) run(talk func() error) {
	defer l.wg.Done()
	defer l.cancel(nil)
	defer func() {
		l.Center.mu.Lock()
		defer l.Center.mu.Unlock()
		delete(l.live, l.id)
		if l.counted {
			l.over--
		}
	}()
	defer crash.Contain(l.crashed) // of a call that could not end: it is closed as those of a lost process are
	stop := make(chan struct{})
	var keeping sync.WaitGroup
	crash.Go(&keeping, func() { l.keep(stop) }, l.crashed)
	err := crash.Run(talk)
	l.part()
	l.Assistants.Over(l.occasion().Of)
	close(stop)
	keeping.Wait()
	l.end(err)
}

// crashed ends this call alone after a panic of what works for it.
func (l *live) crashed(err error) {
	slog.ErrorContext(l.ctx, "a call panicked", "call", l.id, "error", err)
	l.cancel(parley.ProviderFailure)
}

// snapshot is the call as it stands.
func (l *live) snapshot() parley.Call {
	c, sound := l.stands()
	if sound != nil && c.Media == nil {
		c.Media = sound.Media()
	}
	return c
}

func (l *live) stands() (parley.Call, measured) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.call
	c.Turns, c.FunctionCalls, c.InputVariables = slices.Clone(c.Turns), slices.Clone(c.FunctionCalls),
		maps.Clone(c.InputVariables)
	c.Verdicts = slices.Clone(c.Verdicts)
	c.VendorSwitches, c.VendorUses = slices.Clone(c.VendorSwitches), slices.Clone(c.VendorUses)
	c.Complete()
	return c, l.sound
}

// change changes the call, and the row follows.
func (l *live) change(fn func(c *parley.Call)) {
	l.mu.Lock()
	before := l.call.Status
	fn(&l.call)
	after := l.call.Status
	l.mu.Unlock()
	if after != before {
		l.Hub.Tell(Topic(l.id), event.Event{Kind: Status, Data: after})
	}
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// keep stores the progress of the call, so that other nodes see it and a crash loses little. Neither the audio nor the
// far end waits for this.
func (l *live) keep(stop <-chan struct{}) {
	for {
		select {
		case <-l.news:
		case <-stop:
			return
		}
		c := l.snapshot()
		keep := func(how func(*store.Tx, context.Context, *parley.Call) (bool, error)) error {
			return l.DB.Write(context.WithoutCancel(l.ctx), func(ctx context.Context, tx *store.Tx) error {
				_, err := how(tx, ctx, &c) // one that was closed meanwhile is found by renew
				return err
			})
		}
		err := keep((*store.Tx).KeepCall)
		if store.Refused(err) { // what was said can't be stored; that somebody answered can
			err = errors.Join(err, keep((*store.Tx).KeepCallState))
		}
		if err != nil {
			slog.ErrorContext(l.ctx, "store how far a call is", "call", l.id, "error", err)
		}
	}
}

func (l *live) ringing() {
	l.change(func(c *parley.Call) {
		if c.Status == parley.CallInitiated {
			c.Status, c.RingingAt = parley.CallRinging, parley.DateTime(parley.Now())
		}
	})
}

// tell takes the events of the conversation. It never blocks.
func (l *live) tell(e voice.Event) {
	var out event.Event
	switch e.Kind {
	case voice.PartialHeard:
		l.Hub.Tell(Topic(l.id), event.Event{Kind: Partial, Data: e.Text})
		return
	case voice.TurnEnded:
		l.change(func(c *parley.Call) {
			c.Turns = append(c.Turns, e.Turn)
			l.measure(parley.Time(c.AnsweredAt).Add(c.Waited()), &e.Turn)
		})
		out = event.Event{Kind: Turn, Data: e.Turn}
	case voice.ToolUsed:
		t := parley.CallTool{FunctionCall: parley.FunctionCall{Name: e.Call.Name, Arguments: e.Call.Arguments,
			Result: e.Call.Result}}
		l.change(func(c *parley.Call) {
			t.AtMS = (parley.Now().Sub(parley.Time(c.AnsweredAt)) - c.Waited()).Milliseconds()
			c.FunctionCalls = append(c.FunctionCalls, t)
		})
		out = event.Event{Kind: Tool, Data: t}
	case voice.ToolAnswered:
		l.change(func(c *parley.Call) {
			for i := range c.FunctionCalls {
				if f := &c.FunctionCalls[i]; f.Name == e.Call.Name && f.Result == e.Text {
					f.Result = e.Call.Result
					out = event.Event{Kind: Tool, Data: *f}
				}
			}
		})
	case voice.Answerer:
		l.change(func(c *parley.Call) { c.AnsweredBy, c.Verdicts = e.AnsweredBy, append(c.Verdicts, e.Verdict) })
		return
	default:
		return
	}
	l.Hub.Tell(Topic(l.id), out)
}

// maxSwitches is how many vendor switches a call's record keeps.
const maxSwitches = 100

// switched notes that another vendor has taken over, and says so.
func (l *live) switched(s ai.Switch) {
	var w parley.VendorSwitch
	l.change(func(c *parley.Call) {
		w = assistant.SwitchOf(s, parley.Time(c.AnsweredAt))
		if len(c.VendorSwitches) < maxSwitches {
			c.VendorSwitches = append(c.VendorSwitches, w)
		}
	})
	l.Hub.Tell(Topic(l.id), event.Event{Kind: Switch, Data: w})
}

// uses adds a tally's counts to earlier vendor usage, with its cost.
func (d *Center) uses(before []parley.VendorUse, t *ai.Tally) []parley.VendorUse {
	return assistant.Uses(before, t, d.Prices.Vendor)
}

func (l *live) occasion() assistant.Occasion {
	c := l.snapshot()
	o := occasion(&c)
	o.Client = l.client
	return o
}

// occasion is what the assistant is prepared for.
func occasion(c *parley.Call) assistant.Occasion {
	o := assistant.Occasion{Now: time.Now(), Of: "call " + strconv.FormatInt(c.ID, 10)}
	o.Variables, o.Visitor = parley.Part(c.InputVariables, c.VisitorNames)
	if c.CustomerPhone != nil {
		o.CustomerPhone = *c.CustomerPhone
	}
	if c.AssistantPhone != nil {
		o.AssistantPhone = *c.AssistantPhone
	}
	o.Test = testOf(c)
	return o
}

// ready prepares the conversation. Nothing of it runs yet.
func (l *live) ready() (*voice.Session, error) {
	p, err := l.persona(l.a, l.occasion())
	if err != nil {
		return nil, err
	}
	p.VoicemailSound = l.recorded(l.a)
	return l.session(p), nil
}

// session is the conversation of a prepared assistant.
func (l *live) session(p voice.Persona) *voice.Session {
	return &voice.Session{Persona: p, Outbound: l.call.Type == parley.CallOutbound, Cache: &l.cache, Tell: l.tell,
		Speculate: l.Speculate, Judge: l.Judge, Hand: l.hand, Warm: l.announce, Reach: l.connect}
}

// hand prepares another of the same user's assistants to take over. An inactive one takes no call, not even by handoff;
// but a test of an inactive assistant may hand off to other inactive ones.
func (l *live) hand(ctx context.Context, id int64) (voice.Persona, error) {
	a, err := l.DB.Assistant(ctx, l.a.UserID, id)
	if err != nil {
		return voice.Persona{}, err
	}
	if a.Status != "active" && l.a.Status == "active" {
		return voice.Persona{}, parley.Errorf(parley.Invalid,
			"The assistant %q is inactive: activate it before calls are handed to it.", a.Name)
	}
	return l.persona(a, l.occasion())
}

// talk holds the conversation on an answered leg; the error is why it is over.
func (l *live) talk(s *voice.Session, leg audio.Leg) error {
	if t, ok := under(leg).(voice.Transferrer); ok {
		s.Transfer = func(ctx context.Context, to string) error {
			if err := l.mayTransfer(to); err != nil {
				return err
			}
			return t.Transfer(ctx, to)
		}
	}
	return l.hold(leg, l.a.Record, l.a.MaxDuration, func(rec io.WriteSeeker) voice.Result {
		s.Record = rec
		l.mu.Lock()
		l.others.session = s
		l.mu.Unlock()
		return l.Converse(l.ctx, s, leg)
	})
}

// hold has converse do with an answered leg what a call is for, for so many seconds at most; the error is why it is
// over. Ending the leg is up to us, whether or not converse got to run it: nobody is left on a silent line.
func (l *live) hold(leg audio.Leg, record bool, most int64, converse func(rec io.WriteSeeker) voice.Result) error {
	defer leg.Hangup()
	l.known(leg)
	var rec *recording
	var file io.WriteSeeker
	if record {
		if rec = l.record(l.recordingPath(l.id)); rec != nil {
			file = rec.file
		}
	}
	l.answered(func(c *parley.Call) { c.RecordingDue = rec != nil })
	// A session measures the limit in audio time, which stands still while the far end has the call on hold.
	limit := time.AfterFunc(time.Duration(most)*time.Second+time.Second/2, func() { l.cancel(parley.MaxDuration) })
	r := converse(file)
	limit.Stop()
	l.mu.Lock()
	l.gone = r.Over
	l.mu.Unlock()
	if rec != nil {
		if err := rec.close(); err != nil {
			slog.ErrorContext(l.ctx, "write a recording", "call", l.id, "error", err)
		}
	}
	if r.Err != nil {
		level := slog.LevelWarn
		if crash.Is(r.Err) {
			level = slog.LevelError
		}
		slog.Log(l.ctx, level, "something went wrong in a call", "call", l.id, "error", r.Err)
	}
	l.change(func(c *parley.Call) {
		c.VendorUses = l.uses(nil, ai.TallyOf(l.ctx))
		if m, ok := under(leg).(measured); ok {
			c.Media = m.Media()
		}
		c.Turns = r.Turns // as they were heard in the end
		if len(r.Verdicts) > 0 {
			c.Verdicts = r.Verdicts
		}
		if r.AnsweredBy != "" {
			c.AnsweredBy = r.AnsweredBy
		}
	})
	switch {
	case r.Reason == "":
		return errors.New("the conversation ended without a reason")
	case r.Reason == parley.ProviderFailure || r.Failure != nil:
		return failed(r.Failure)
	case errors.Is(r.Torn, r.Reason):
		return r.Torn
	}
	return r.Reason
}

// known has the call know its leg.
func (l *live) known(leg audio.Leg) {
	leg = under(leg)
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := leg.(signalled); ok {
		l.sip = known
	}
	if known, ok := leg.(measured); ok {
		l.sound = known
	}
	if known, ok := leg.(referable); ok {
		known.MayRefer(l.mayTransfer)
	}
}

// referable is a leg whose far end may send us elsewhere, to whom a call may be transferred.
type referable interface {
	MayRefer(may func(to string) error)
}

// answered notes that the call is answered, if that is not known yet, and what else there is to note.
func (l *live) answered(also func(c *parley.Call)) {
	l.change(func(c *parley.Call) {
		if c.Status = parley.CallInProgress; c.AnsweredAt == 0 {
			c.AnsweredAt = parley.DateTime(parley.Now())
		}
		also(c)
	})
}
