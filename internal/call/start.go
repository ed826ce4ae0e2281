package call

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"parley/internal/assistant"
	"parley/internal/audio"
	"parley/internal/crash"
	"parley/internal/node"
	"parley/internal/parley"
	"parley/internal/stage"
	"parley/internal/store"
	"parley/internal/telemetry"
	"parley/internal/voice"
)

// Order is a call to be made.
type Order struct {
	UserID, AssistantID int64
	To                  string            // E.164
	Variables           map[string]string // they go before the assistant's own
	NumberID            int64             // the own number that it leaves from; 0: the assistant's
	SIPHeaders          map[string]string // X-…: they go before the trunk's own
	HideCallerID        *bool             // nil: as the trunk says
	ToSelf              bool              // somebody of the account tries the assistant on their own telephone, whichever way it takes calls

	// The campaign and lead that it is made for. Nobody is rung twice for one attempt at a lead: the second time, the
	// first call is returned.
	CampaignID, LeadID int64
	Attempt            int
	// Also runs in the transaction that makes the call's row; it may be nil. Its error refuses the call.
	Also func(ctx context.Context, tx *store.Tx, c *parley.Call) error
}

// Start makes a call. When it returns, the row exists and the money is set aside; dialling continues on its own.
func (d *Center) Start(ctx context.Context, o Order) (*parley.Call, error) {
	a, err := d.DB.Assistant(ctx, o.UserID, o.AssistantID)
	switch {
	case err != nil:
		return nil, err
	case o.ToSelf: // also while it is inactive
	case a.Type != "outbound":
		return nil, parley.Errorf(parley.Invalid, "The assistant is inbound: only outbound assistants can make calls.")
	case a.Status != "active":
		return nil, parley.Errorf(parley.Invalid, "The assistant is inactive: activate it before it makes calls.")
	}
	var set *staging
	if token := o.Variables[stage.Variable]; stage.Is(token) {
		if set, err = d.staging(token, a, o.Variables); err != nil {
			return nil, parley.Errorf(parley.Invalid, "The test of this call is not known, or is another assistant's.")
		}
		o.Variables, a = set.variables, set.Cast(a)
	}
	if d.Behind != nil && d.Behind() {
		return nil, ErrBehind
	}
	route, err := d.route(ctx, a, o)
	if err != nil {
		return nil, err
	}
	if !d.Destinations.Allow(route.To) {
		return nil, &Barred{route.To}
	}
	at := d.node
	if d.Elsewhere != nil && set == nil {
		if at, err = d.Elsewhere(); err != nil {
			return nil, err
		}
	}
	if err := d.enter(); err != nil {
		return nil, err
	}
	c := &parley.Call{Node: at, AssistantID: a.ID, AssistantName: a.Name, Attempt: o.Attempt, Type: parley.CallOutbound,
		Status:         parley.CallInitiated,
		AssistantPhone: &route.Number.PhoneNumber, CustomerPhone: &route.To, NumberID: &route.Number.ID,
		InputVariables: o.Variables,
		MaxDuration:    a.MaxDuration, CarrierRate: d.carrierRate(parley.CallOutbound, &route.Number, route.To),
		AssistantRate: d.Prices.Calls.Assistant}
	if o.CampaignID != 0 {
		c.CampaignID, c.LeadID = &o.CampaignID, &o.LeadID
	}
	c.Signalling = signalling(a, c, &route, &o)
	traced := d.traced(c, a)
	err = d.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := d.admit(ctx, tx, a.UserID, c); err != nil || o.Also == nil {
			return err
		}
		return o.Also(ctx, tx, c)
	})
	if err != nil {
		telemetry.End(trace.SpanFromContext(traced), "not admitted")
		d.wg.Done()
		if store.IsSecondCall(err) {
			return d.DB.AttemptCall(ctx, o.UserID, o.LeadID, o.Attempt)
		}
		return nil, err
	}
	if set != nil {
		set.Took(c.ID)
	}
	if at != d.node {
		defer d.wg.Done()
		err := d.hand(ctx, c)
		telemetry.End(trace.SpanFromContext(traced), "made by another node")
		return c, err
	}
	d.dialOut(traced, c, a, route)
	return c, nil
}

// dialOut has a call made whose row exists.
func (d *Center) dialOut(traced context.Context, c *parley.Call, a *parley.Assistant, r Route) {
	l := d.begin(traced, c, a, nil)
	l.house, r.Signalling = r.Trunk != nil, c.Signalling
	r.May = l.mayTransfer
	go l.run(func() error { return l.dial(r) })
}

// hand has another process make a call whose row names it. A call that it does not take is over.
func (d *Center) hand(ctx context.Context, c *parley.Call) error {
	var none *struct{}
	ctx = context.WithoutCancel(ctx) // whoever ordered it may be gone: the other process may dial already
	err := d.requests.Ask(ctx, store.Request{CallID: c.ID, UserID: c.UserID, Node: c.Node, Kind: askDial}, nil, &none)
	if err == nil || !errors.Is(err, errDeaf) && !node.Answered(err) { // its row tells
		return nil
	}
	failed := d.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := d.close(ctx, tx, c.ID, c.Node, parley.ProviderFailure, d.Unanswered, func(row *parley.Call) bool {
			row.End(parley.ProviderFailure, parley.Now())
			return true
		})
		return err
	})
	return errors.Join(err, failed)
}

// take makes a call that was ordered at another process, which has made its row.
func (d *Center) take(ctx context.Context, userID, id int64) error {
	c, err := d.DB.Call(ctx, userID, id)
	if err != nil {
		return err
	}
	if c.Node != d.node || c.EndedAt != 0 || c.NumberID == nil || c.CustomerPhone == nil {
		return parley.Errorf(parley.Conflict, "The call is not to be made here any more.")
	}
	a, err := d.DB.Assistant(ctx, userID, c.AssistantID)
	if err != nil {
		return err
	}
	r, err := d.line(ctx, userID, *c.NumberID)
	if err != nil {
		return err
	}
	r.To = *c.CustomerPhone
	if err := d.enter(); err != nil {
		return err
	}
	d.dialOut(d.traced(c, a), c, a, r)
	return nil
}

// signalling is what an outgoing call says about itself in SIP; nil if that is nothing but its numbers.
func signalling(a *parley.Assistant, c *parley.Call, r *Route, o *Order) *parley.CallSignalling {
	s := &parley.CallSignalling{Diversions: []parley.Diversion{}}
	var trunks map[string]string
	if r.Trunk != nil {
		s.Withheld, trunks = r.Trunk.HideCallerID, r.Trunk.SIPHeaders
	}
	if o.HideCallerID != nil {
		s.Withheld = *o.HideCallerID
	}
	s.Headers = parley.SIPHeaders(assistant.Variables(a, occasion(c)), trunks, o.SIPHeaders)
	if !s.Withheld && len(s.Headers) == 0 {
		return nil
	}
	return s
}

// Barred refuses a call to a number that this server may not call.
type Barred struct{ Number string }

func (b *Barred) Error() string { return b.Unwrap().Error() }

// Unwrap returns the refusal in words.
func (b *Barred) Unwrap() error {
	return parley.Errorf(parley.Forbidden,
		"Calls to %s are not allowed on this server. Its operator sets the allowed destinations (PARLEY_CALL_PREFIXES).", b.Number)
}

// route finds the route of a call: from the number in the order, or else the assistant's own.
func (d *Center) route(ctx context.Context, a *parley.Assistant, o Order) (Route, error) {
	id := o.NumberID
	if id == 0 && a.PhoneNumberID != nil {
		id = *a.PhoneNumberID
	}
	if id == 0 {
		return Route{}, parley.Errorf(parley.Invalid,
			"The assistant has no phone number to call from: give it one (phone_number_id).")
	}
	r, err := d.line(ctx, a.UserID, id)
	r.To = o.To
	return r, err
}

// line is the way out over one of a user's numbers.
func (d *Center) line(ctx context.Context, userID, id int64) (Route, error) {
	n, err := d.DB.Number(ctx, userID, id)
	if err != nil {
		return Route{}, err
	}
	r := Route{Number: *n}
	switch {
	case n.Type == parley.NumberNormal && !n.Subscribed(parley.Now()):
		return r, parley.Errorf(parley.Invalid, "The phone number %s has no active subscription.", n.PhoneNumber)
	case n.Type == parley.NumberSIP:
		if err := d.proved(ctx, n); err != nil {
			return r, err
		}
		r.Trunk, err = d.DB.NumberTrunk(ctx, userID, n.ID)
	}
	return r, err
}

// maxExtension is the length of the longest extension that is surely no telephone number.
const maxExtension = 6

// proved refuses a trunk's number that its owner has not verified, if the operator requires verification: anybody can
// write down any number. An extension shows itself to its telephone system alone.
func (d *Center) proved(ctx context.Context, n *parley.Number) error {
	if !d.Verified || len(n.PhoneNumber) <= maxExtension && !strings.HasPrefix(n.PhoneNumber, "+") {
		return nil
	}
	ok, err := d.DB.ProvedNumber(ctx, n.UserID, n.PhoneNumber)
	if err == nil && !ok {
		err = parley.Errorf(parley.Invalid, "The phone number %s is not verified, and this server's operator asks for that before calls leave "+
			"from it (PARLEY_TRUNK_CALLER_ID): verify it as a caller id first.", n.PhoneNumber)
	}
	return err
}

// carrierRate is the price of each started minute of a call, on top of the assistant's: n is our own number, nil if
// none is involved.
func (d *Center) carrierRate(kind parley.CallType, n *parley.Number, to string) parley.Money {
	switch {
	case n == nil:
		return 0
	case n.Type == parley.NumberSIP:
		return d.Prices.Calls.Trunk
	case kind == parley.CallInbound:
		return d.Prices.Inbound(n.CountryCode)
	}
	return d.Prices.Outbound(parley.PhoneCountry(to))
}

var (
	// ErrFull refuses a call for which the plan has no room.
	ErrFull     = parley.Errorf(parley.Forbidden, parley.LinesTaken+": your plan allows no more calls at once. Wait until one has ended.")
	errDisabled = parley.Errorf(parley.Forbidden, "The account is disabled.")
)

// admit lets a call begin or refuses it, by the daily spending limit, the plan's lines and the balance. The account is
// locked, so that of two calls that begin together the second sees the first.
func (d *Center) admit(ctx context.Context, tx *store.Tx, userID int64, c *parley.Call) error {
	if err := tx.LockUser(ctx, userID); err != nil {
		return err
	}
	u, err := tx.User(ctx, userID)
	if err != nil {
		return err
	}
	if u.DisabledAt != 0 {
		return errDisabled
	}
	c.Reserved, c.Node = c.Possible(), cmp.Or(c.Node, d.node)
	now := parley.Now()
	if c.Test {
		c.Reserved = 0
		if err := tx.Meter(ctx, userID, now, parley.LimitTestCalls); err != nil {
			return err
		}
		minutes, err := tx.TakeDay(ctx, userID, parley.LimitTestMinutes, minutes(c.MaxDuration), now)
		if err != nil {
			return err
		}
		c.MaxDuration = min(c.MaxDuration, 60*minutes)
	}
	if c.Type == parley.CallOutbound {
		if err := d.spend(ctx, tx, userID, c.Reserved, now); err != nil {
			return err
		}
	}
	if err := d.hasRoom(ctx, tx.Query, u, c); err != nil {
		return err
	}
	if err := tx.CreateCall(ctx, userID, c); err != nil {
		return err
	}
	if c.Test {
		return nil
	}
	reserve := tx.Reserve
	if c.Type == parley.CallWeb { // anybody may begin it
		reserve = tx.ReservePublic
	}
	return reserve(ctx, userID, reference(c.ID), c.Reserved, now.Add(hold))
}

// minutes are the minutes that seconds begin.
func minutes(seconds int64) int64 { return (seconds + 59) / 60 }

// hasRoom reports whether the account has room for a call where it is to be: an assistant's, a test too, needs a line, and those
// beside the lines are as many at most as the plan has lines. Those who wait are limited by their number.
func (d *Center) hasRoom(ctx context.Context, q store.Query, u *parley.User, c *parley.Call) error {
	lines, err := q.Lines(ctx, u.ID)
	if err != nil {
		return err
	}
	c.Complete()
	plan, free := d.Prices.Plan(u.Plan).ParallelCalls, true
	switch c.TakenBy {
	case parley.TakenByAssistant:
		w := waiter(c)
		if c.Type != parley.CallInbound { // a number's own limit is for those who call it
			w.NumberID = 0
		}
		free = lines.Free(plan, w)
	case parley.TakenByTelephone, parley.TakenByVoicemail:
		free = lines.Aside < plan
	}
	if !free {
		return ErrFull
	}
	return nil
}

// waiter is a call among those who wait for a line.
func waiter(c *parley.Call) (w parley.Waiter) {
	if w.ID = c.ID; c.NumberID != nil {
		w.NumberID = *c.NumberID
	}
	return w
}

// spend counts what an outgoing call may cost to what the user's calls may cost that day.
func (d *Center) spend(ctx context.Context, tx *store.Tx, userID int64, cost parley.Money, now parley.Time) error {
	spent, err := tx.Spend(ctx, userID, now)
	if err != nil {
		return err
	}
	if d.DailySpend > 0 && spent+cost > d.DailySpend {
		return parley.Errorf(parley.Forbidden, "This call may cost up to %s USD, and %s of the %s USD that outgoing calls may cost a day are "+
			"spent or set aside. The operator sets the limit (PARLEY_CALL_DAILY_SPEND).",
			cost.Text(), spent.Text(), d.DailySpend.Text())
	}
	return tx.AddSpend(ctx, userID, now, cost)
}

// dial calls the far end and holds the conversation with whoever answers.
func (l *live) dial(r Route) error {
	s, err := l.ready()
	if err != nil {
		return l.unready(err)
	}
	defer prepare(l.ctx, s, audio.Narrow, audio.Wide).stop()
	leg, err := l.reach(l.ctx, r, l.ringing)
	if err != nil {
		return err
	}
	return l.talk(s, leg)
}

// reach calls somebody. Reaching the far end may take a while before it rings; after that it rings for as long as the
// assistant's settings say.
func (l *live) reach(ctx context.Context, r Route, ringing func()) (audio.Leg, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	rings := time.Duration(l.a.RingingTime) * time.Second
	patience := time.AfterFunc(rings+connectTime, func() { cancel(parley.NoAnswer) })
	defer patience.Stop()
	leg, err := l.Dial(ctx, r, func() {
		patience.Reset(rings)
		ringing()
	})
	if cause := context.Cause(ctx); err != nil && cause != nil && !isReason(err) {
		return nil, cause
	}
	return leg, err
}

// connectTime is how long reaching the far end may take. A dead trunk is detected sooner (RFC 3261: 32 s), so it is not
// mistaken for somebody who doesn't answer.
const connectTime = 35 * time.Second

// unready ends a call whose assistant can't speak or hear.
func (l *live) unready(err error) error {
	slog.ErrorContext(l.ctx, "a call can't be held", "call", l.id, "assistant", l.a.ID, "error", err)
	return failed(err)
}

// failed ends a call because of a failure on our side, with what its owner is told about it.
func failed(err error) error {
	if text := parley.Explanation(err); text != "" {
		return parley.Explain(parley.ProviderFailure, "%s", text)
	}
	return parley.ProviderFailure
}

// greeting is a greeting that is being prepared.
type greeting struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when it is there, or can't be
}

// prepare makes the greeting's audio while the call rings, at the rates that the line may turn out to have. Stop it
// afterwards.
func prepare(ctx context.Context, s *voice.Session, rates ...audio.Rate) *greeting {
	ctx, cancel := context.WithCancel(ctx)
	g := &greeting{cancel, make(chan struct{})}
	go func() {
		defer close(g.done)
		for _, rate := range rates {
			if err := crash.Run(func() error { return s.Prepare(ctx, rate) }); err != nil && ctx.Err() == nil {
				slog.Warn("a greeting could not be prepared", "assistant", s.Persona.Assistant.ID, "error", err)
				return
			}
		}
	}()
	return g
}

func (g *greeting) stop() {
	if g == nil {
		return
	}
	g.cancel()
	<-g.done
}
