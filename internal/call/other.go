package call

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"parley/internal/audio"
	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/voice"
)

// A supervisor or a third person takes part in a live call: called by telephone, or from a browser. Each is a leg, with
// a row like that of a transfer's target, and a line of the conversation (voice.Guest).

// maxOthers is how many may take part in a call at once, besides its customer.
const maxOthers = 8

// others are who takes part in a live call. Its call's lock guards it.
type others struct {
	session *voice.Session   // nil: nobody talks with the customer yet
	at      map[int64]*other // by the ids of their legs
	coming  int              // those that have no leg yet
	closed  bool             // the conversation is over
	wg      sync.WaitGroup
}

// other is one of them.
type other struct {
	*live
	ctx    context.Context
	cancel context.CancelCauseFunc
	keys   chan byte
	done   chan struct{} // closed when they are no part of the call any more
	by     int64         // the credential that a browser came with; 0: none that could end

	mu    sync.Mutex
	leg   parley.CallLeg
	guest *voice.Guest // nil: they are not there yet

	reconnect func(ctx context.Context, match, fragment string) (Connection, error) // nil: theirs is no browser
}

// Invitation is who is to be called into a call, and for what.
type Invitation struct {
	Kind     parley.LegKind
	Mode     parley.LegMode
	To       string // as a transfer's target
	NumberID *int64 // the own number that they see; nil: the call's, or the assistant's
	Listed   bool   // only somebody whom the account lists
	By       string // the name of who calls them in
}

// Invite calls somebody into one of the user's live calls. When it returns, the leg has a row and the money is set
// aside; dialling continues on its own.
func (d *Center) Invite(ctx context.Context, userID, id int64, i Invitation) (*parley.CallLeg, error) {
	if i.Listed {
		if is, err := d.listed(ctx, userID, i.To); err != nil {
			return nil, err
		} else if !is {
			return nil, errUnlisted
		}
	}
	l, err := d.held(ctx, userID, id)
	if err != nil {
		leg := new(parley.CallLeg)
		return leg, d.ask(ctx, err, userID, id, askInvite, i, leg)
	}
	if l.call.Test {
		return nil, errTest
	}
	i.Kind = cmp.Or(i.Kind, parley.LegSupervisor)
	if i.Mode == "" && i.Kind == parley.LegGuest {
		i.Mode = parley.LegTalk
	}
	r, err := l.target(ctx, &parley.AssistantTool{SupervisorPhone: i.To, OutboundPhoneID: i.NumberID})
	if err != nil {
		return nil, err
	}
	o, err := l.enlist(ctx, parley.CallLeg{Kind: i.Kind, Mode: cmp.Or(i.Mode, parley.LegListen), PhoneNumber: r.To, CallerID: r.From,
		Person: i.By, Rate: l.carrierRate(parley.CallOutbound, &r.Number, r.To)})
	if err != nil {
		return nil, err
	}
	leg := o.state()
	go o.run(func() (audio.Leg, error) {
		return l.reach(o.ctx, r, func() { o.change(func(leg *parley.CallLeg) { leg.Status = parley.LegRinging }) })
	})
	return &leg, nil
}

// Browser is a supervisor's browser that wants to take part in a call.
type Browser struct {
	Offer string // SDP
	From  string // whom it is counted against; see rtc.Offer
	Relay string // host:port at which it reaches our TURN relay; "": it doesn't
	Mode  parley.LegMode
	By    string // the name of whose browser it is
	// the key or the session that it came with: 0 stands for ever
	Credential int64
}

// BrowserLine is the connection of a browser that takes part in a call.
type BrowserLine struct {
	Connection
	// Reconnect connects the browser anew after its network has changed, by the text of a fragment, where match is the
	// tag that it knows (rtc.Leg.Reconnect). The SDP is "" where nothing has changed.
	Reconnect func(ctx context.Context, match, fragment string) (Connection, error) `json:"-"`
}

// Connection is how a browser is connected, as it is told.
type Connection struct {
	SDP   string   // the answer; after a change the fragment (RFC 8840)
	Tag   string   // names it until the next one (RFC 9725, section 4.3.1)
	Links []string // the TURN servers that may help it: values of Link headers
}

// Attended is the place that a browser got.
type Attended struct {
	Connection
	Leg int64
}

// Attend has a browser take part in one of the user's live calls. Its sound goes straight to the process that has the
// call, whichever is asked.
func (d *Center) Attend(ctx context.Context, userID, id int64, b Browser) (*Attended, error) {
	l, err := d.held(ctx, userID, id)
	if err != nil {
		got := new(Attended)
		return got, d.ask(ctx, err, userID, id, askAttend, b, got)
	}
	if d.Connect == nil {
		return nil, parley.Errorf(parley.Unavailable, "The node of the server that has this call does not accept calls from browsers.")
	}
	o, err := l.enlist(ctx, parley.CallLeg{Kind: parley.LegSupervisor, Mode: cmp.Or(b.Mode, parley.LegListen), Person: b.By})
	if err != nil {
		return nil, err
	}
	o.by = b.Credential
	legs := make(chan audio.Leg)
	id = o.state().ID
	go o.run(func() (audio.Leg, error) {
		select {
		case leg := <-legs:
			return leg, nil
		case <-o.ctx.Done():
			return nil, context.Cause(o.ctx)
		}
	})
	line, err := d.Connect(ctx, b, func(leg audio.Leg, err error) {
		if err != nil {
			o.cancel(err)
			return
		}
		select {
		case legs <- leg:
			<-o.done
		case <-o.done:
			leg.Hangup()
		}
	})
	if err != nil {
		o.cancel(parley.Rejected)
		return nil, err
	}
	o.mu.Lock()
	o.reconnect = line.Reconnect
	o.mu.Unlock()
	return &Attended{line.Connection, id}, nil
}

// Reconnect connects the browser of a leg anew after its network has changed.
func (d *Center) Reconnect(ctx context.Context, userID, id int64, change BrowserChange) (*Connection, error) {
	o, err := d.other(ctx, userID, id, change.Leg)
	if err != nil {
		c := new(Connection)
		return c, d.ask(ctx, err, userID, id, askReconnect, change, c)
	}
	o.mu.Lock()
	reconnect := o.reconnect
	o.mu.Unlock()
	if reconnect == nil {
		return nil, errNoOther
	}
	c, err := reconnect(ctx, change.Match, change.Fragment)
	if err != nil {
		return nil, err
	}
	return &c, nil
}

// BrowserChange is what a browser sends when its network has changed.
type BrowserChange struct {
	Leg      int64
	Match    string // the tag of the connection that it knows; "" or *: any
	Fragment string // RFC 8840
}

// maxWhispered bounds what is whispered at once.
const maxWhispered = 1000

// Whisper tells the assistant something during one of the user's live calls, which nobody else hears.
func (d *Center) Whisper(ctx context.Context, userID, id int64, text string) error {
	text = strings.TrimSpace(text)
	if n := utf8.RuneCountInString(text); n == 0 || n > maxWhispered {
		return parley.Errorf(parley.Invalid, "Write what the assistant is to know, in at most %d characters.", maxWhispered)
	}
	l, err := d.held(ctx, userID, id)
	if err != nil {
		var none *struct{}
		return d.ask(ctx, err, userID, id, askWhisper, text, &none)
	}
	l.mu.Lock()
	s := l.others.session
	l.mu.Unlock()
	return s.Whisper(text)
}

// ChangeLeg gives a supervisor or guest another mode.
func (d *Center) ChangeLeg(ctx context.Context, userID, id, legID int64, mode parley.LegMode) (*parley.CallLeg, error) {
	o, err := d.other(ctx, userID, id, legID)
	if err != nil {
		leg := new(parley.CallLeg)
		return leg, d.ask(ctx, err, userID, id, askMode, aboutLeg{legID, mode}, leg)
	}
	if !mode.Valid() {
		return nil, parley.Errorf(parley.Invalid, "There is no mode %q: it is listen, whisper, talk or take_over.", mode)
	}
	if err := o.set(mode); err != nil {
		return nil, err
	}
	leg := o.state()
	return &leg, nil
}

// HangupLeg hangs up on a supervisor or guest; the call goes on.
func (d *Center) HangupLeg(ctx context.Context, userID, id, legID int64) error {
	o, err := d.other(ctx, userID, id, legID)
	if err != nil {
		var none *struct{}
		return d.ask(ctx, err, userID, id, askHangup, aboutLeg{Leg: legID}, &none)
	}
	o.cancel(parley.APIHangup)
	select {
	case <-o.done:
	case <-ctx.Done():
	}
	return nil
}

var (
	errCrowded = parley.Errorf(parley.Conflict, "This call has the most participants that it can have: %d, besides the customer.", maxOthers)
	errTest    = parley.Errorf(parley.Conflict, "This call is a test, in which nobody else is called.")
	errNoOther = parley.Errorf(parley.Conflict, "This leg can't be changed: it is over, or belongs to a transfer.")
)

// held is one of the user's calls whose conversation is under way on this node. The error is elsewhere if another node
// has it.
func (d *Center) held(ctx context.Context, userID, id int64) (*live, error) {
	c, err := d.DB.Call(ctx, userID, id)
	if err != nil {
		return nil, err
	}
	l := d.here(id)
	switch {
	case c.EndedAt != 0:
		return nil, voice.ErrNotHeld
	case l == nil && c.Node == d.node: // it has just ended
		return nil, voice.ErrNotHeld
	case l == nil:
		return nil, &elsewhere{c.Node}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.others.session == nil || l.others.closed {
		return nil, voice.ErrNotHeld
	}
	return l, nil
}

// other is who takes part in one of the user's calls by a leg.
func (d *Center) other(ctx context.Context, userID, id, legID int64) (*other, error) {
	leg, err := d.DB.CallLeg(ctx, userID, id, legID)
	if err != nil {
		return nil, err
	}
	if leg.EndedAt != 0 || leg.Kind == parley.LegTransfer {
		return nil, errNoOther
	}
	l, err := d.held(ctx, userID, id)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.others.at[legID]; o != nil {
		return o, nil
	}
	return nil, errNoOther
}

// enlist stores a leg that begins. It must be run.
func (l *live) enlist(ctx context.Context, leg parley.CallLeg) (*other, error) {
	o := &other{live: l, keys: make(chan byte, 8), done: make(chan struct{}), leg: leg}
	l.mu.Lock()
	err := error(nil)
	switch {
	case l.others.closed:
		err = voice.ErrNotHeld
	case len(l.others.at)+l.others.coming >= maxOthers:
		err = errCrowded
	default:
		l.others.coming++
		l.others.wg.Add(1)
	}
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	err = l.enroll(ctx, &o.leg)
	o.ctx, o.cancel = context.WithCancelCause(l.ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.others.coming--
	if err != nil {
		o.cancel(nil)
		l.others.wg.Done()
		return nil, err
	}
	l.others.at[o.leg.ID] = o
	if l.others.closed {
		o.cancel(parley.Canceled)
	}
	return o, nil
}

// part ends the parts that others take in a call which is over; their legs end with its row.
func (l *live) part() {
	l.mu.Lock()
	l.others.closed = true
	for _, o := range l.others.at {
		o.cancel(parley.Canceled)
	}
	l.mu.Unlock()
	l.others.wg.Wait()
}

// run has them take part until they are gone, or the call is over.
func (o *other) run(reach func() (audio.Leg, error)) {
	defer o.others.wg.Done()
	defer close(o.done)
	defer o.cancel(nil)
	err := crash.Run(func() error { return o.take(reach) })
	if crash.Is(err) {
		slog.ErrorContext(o.ctx, "a leg of a call panicked", "call", o.id, "leg", o.leg.ID, "error", err)
	}
	o.live.mu.Lock()
	delete(o.others.at, o.leg.ID)
	over := o.others.closed
	o.live.mu.Unlock()
	if over {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	_, reason := parley.Disposition(err, o.leg.AnsweredAt != 0)
	o.endLeg(&o.leg, reason)
}

// take is their time in the call; the error is why it is over.
func (o *other) take(reach func() (audio.Leg, error)) error {
	far, err := reach()
	if err != nil {
		return err
	}
	line := runPatch(o.ctx, far, o.taped(&o.leg, far))
	defer line.Close()
	o.change(func(leg *parley.CallLeg) { leg.AnsweredAt = parley.DateTime(parley.Now()) })
	if err := o.sit(line); err != nil {
		return err
	}
	o.change(func(leg *parley.CallLeg) { leg.Status, leg.JoinedAt = parley.LegJoined, parley.DateTime(parley.Now()) })
	look := time.NewTicker(lookForCredential)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			if !o.stands() {
				o.cancel(parley.APIHangup) // which ends the line
			}
		case key := <-o.keys:
			if i := slices.Index(modeKeys, key); i >= 0 {
				_ = o.set(keyModes[i]) // a key that can't be followed changes nothing
			}
		case <-line.done:
			return line.err
		}
	}
}

// lookForCredential is how often it is asked whether who takes part by browser still may.
const lookForCredential = 5 * time.Second

// stands says whether they still may take part. A database that does not answer says nothing about it.
func (o *other) stands() bool {
	if o.by == 0 || o.MayAttend == nil {
		return true
	}
	may, err := o.MayAttend(o.ctx, o.by)
	return may || err != nil
}

// The keys with which a supervisor changes the mode on the telephone.
var (
	modeKeys = []byte{'1', '2', '3', '4'}
	keyModes = []parley.LegMode{parley.LegListen, parley.LegWhisper, parley.LegTalk, parley.LegTakeOver}
)

// sit gives them their place. Who wanted to take over while the customer is transferred listens.
func (o *other) sit(line *patch) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	g := &voice.Guest{Line: line, Kind: o.leg.Kind}
	if o.leg.Kind == parley.LegSupervisor {
		g.Keys = func(key byte) {
			select {
			case o.keys <- key:
			default: // nobody presses so many
			}
		}
	}
	err := o.others.session.Admit(g, o.leg.Mode)
	if errors.Is(err, voice.ErrPassing) {
		o.leg.Mode = parley.LegListen
		err = o.others.session.Admit(g, o.leg.Mode)
	}
	if err == nil {
		o.guest = g
	}
	return err
}

// set gives them another mode.
func (o *other) set(mode parley.LegMode) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.guest != nil {
		if err := o.guest.Change(mode); err != nil {
			return err
		}
	}
	o.leg.Mode = mode
	o.keepLeg(&o.leg)
	return nil
}

// change changes their leg, and stores it.
func (o *other) change(fn func(leg *parley.CallLeg)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	fn(&o.leg)
	o.keepLeg(&o.leg)
}

func (o *other) state() parley.CallLeg {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.leg
}
