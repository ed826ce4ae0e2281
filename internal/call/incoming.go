package call

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"parley/internal/audio"
	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/stage"
	"parley/internal/store"
	"parley/internal/telemetry"
)

// Ringer is an unanswered incoming call, as the line provides it.
type Ringer interface {
	// Ring tells the caller that the call is ringing.
	Ring() error
	// Answer takes the call; the returned leg must be run.
	Answer(ctx context.Context) (audio.Leg, error)
	// Refuse turns it down with a SIP status.
	Refuse(code int) error
	// Done is closed when the caller has given up.
	Done() <-chan struct{}
}

// progresser is a Ringer whose caller can hear something before the answer. The leg must be run, and is the one that
// Answer returns.
type progresser interface {
	Progress(ctx context.Context) (audio.Leg, error)
}

// Arrival is an incoming call: over a user's trunk, over the carrier's, or from a softphone on the server's own
// machine.
type Arrival struct {
	Ringer
	From, To    string // E.164 where they are phone numbers
	TrunkID     int64  // 0 is the carrier's
	AssistantID int64  // from a softphone: whom it calls
	Signalling  *parley.CallSignalling
}

// teller is a Ringer that tells the trunk's owner why a call is refused of which no row is kept.
type teller interface{ Tell(code int, why string) }

// The SIP statuses with which calls are refused.
const (
	nobodyThere = 404
	notNow      = 480
	busyHere    = 486
	noService   = 503
	useIdentity = 428
	declined    = 603
)

// errNobody refuses a call to a number that nobody has here.
var errNobody = errors.New("nobody has this number")

// errUnproved is errNobody for a trunk's number that its owner has not proved.
var errUnproved = fmt.Errorf("%w: it is not proved", errNobody)

// errBlocked refuses a caller whom the number's owner does not want to hear from.
var errBlocked = errors.New("the caller is blocked")

// suspect refuses a caller whom nobody vouches for, as the number's owner wants it.
type suspect struct{ verdict *parley.CallVerification }

func (s *suspect) Error() string {
	return "The number's route refuses callers who are not verified, and this one's verification says: " + s.verdict.String() + "."
}

// code is the SIP status: what is wrong with the call's Identity, that it has none (RFC 8224, section 6.2.2), or where
// another has verified it, that the call is not wanted.
func (s *suspect) code() int {
	switch {
	case s.verdict == nil:
		return useIdentity
	case s.verdict.Code != 0:
		return s.verdict.Code
	}
	return declined
}

// Incoming takes a call, and returns when it is over.
func (d *Center) Incoming(ctx context.Context, in Arrival) {
	if d.enter() != nil {
		refuse(in, noService)
		return
	}
	var r *reception
	err := crash.Run(func() (err error) { r, err = d.accept(ctx, in); return err })
	if err != nil {
		d.wg.Done()
		var untrusted *suspect
		switch {
		case errors.Is(err, errNobody):
			why := "The number called is nobody's here any more."
			if errors.Is(err, errUnproved) {
				why = "This server takes calls to a trunk's number only when its owner has proved that it is theirs: " +
					"see “Caller ID” on the Numbers page."
			}
			tell(in, nobodyThere, why)
			refuse(in, nobodyThere)
		case errors.Is(err, errBlocked):
			refuse(in, declined)
		case errors.As(err, &untrusted):
			tell(in, untrusted.code(), untrusted.Error())
			refuse(in, untrusted.code())
		case errors.Is(err, ErrFull):
			refuse(in, busyHere)
		default:
			var e *parley.Error
			if !errors.As(err, &e) {
				slog.Error("take a call", "to", in.To, "error", err)
			} else if errors.Is(err, errAsleep) {
				tell(in, notNow, errAsleep.Message+" Assign an active one to it.")
			}
			refuse(in, notNow)
		}
		return
	}
	r.run(r.receive)
}

func tell(in Arrival, code int, why string) {
	if t, ok := in.Ringer.(teller); ok {
		t.Tell(code, why)
	}
}

func refuse(in Arrival, code int) {
	if err := in.Refuse(code); err != nil {
		slog.Debug("turn a call down", "error", err)
	}
}

// accept finds out what happens to a call and stores its row. A call refused for lack of room or money leaves a row too.
func (d *Center) accept(ctx context.Context, in Arrival) (*reception, error) {
	r, err := d.callee(ctx, in)
	if err != nil {
		return nil, err
	}
	a, n := r.to, r.number
	set, err := d.staged(in, a)
	if err != nil {
		return nil, err
	}
	if set != nil {
		a = set.Cast(a)
	}
	c := &parley.Call{AssistantID: a.ID, AssistantName: a.Name, Type: parley.CallInbound, Status: parley.CallInitiated,
		CarrierRate:   d.carrierRate(parley.CallInbound, n, ""),
		AssistantRate: d.Prices.Calls.Assistant}
	if s := in.Signalling; s != nil {
		c.Signalling, c.InputVariables = s, s.Given(a.Variables)
		c.VisitorNames = slices.Sorted(maps.Keys(c.InputVariables))
	}
	if n != nil {
		c.AssistantPhone, c.NumberID, c.CustomerPhone = &n.PhoneNumber, &n.ID, caller(in.From)
	}
	if set != nil {
		c.InputVariables, c.Test = set.variables, true
	}
	var reason error
	traced := d.traced(c, a)
	if err = r.admit(ctx, d, c); err != nil {
		defer telemetry.End(trace.SpanFromContext(traced), "not admitted")
	}
	switch {
	case err == nil:
		if set != nil {
			set.Took(c.ID)
		}
		r.live = d.begin(traced, c, a, nil)
		r.house = in.TrunkID != 0
		return r, nil
	case errors.Is(err, ErrFull) && c.Test: // who performs the test knows, and tries again
		return nil, err
	case errors.Is(err, ErrFull):
		reason = parley.Explain(parley.LineBusy,
			"The limit of concurrent calls of your plan or of the number was reached: the caller heard a busy tone.")
	case errors.Is(err, store.Insufficient):
		reason = parley.InsufficientBalance
	default:
		return nil, err
	}
	c.Reserved, c.TakenBy = 0, parley.TakenByAssistant
	c.End(reason, parley.Now())
	c.ReportDue = parley.Now()
	kept := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		tx.AfterCommit(d.wake)
		return tx.CreateCall(ctx, a.UserID, c)
	})
	return nil, errors.Join(err, kept)
}

// errAsleep refuses a call that nobody takes now.
var errAsleep = parley.Errorf(parley.Unavailable, "No active assistant answers this number.")

// errClosed refuses a call as the number's route wants it.
var errClosed = parley.Errorf(parley.Unavailable, "The number's route refuses calls now.")

// left is why the call of a caller who has given up is over.
func (in Arrival) left() error {
	if known, ok := in.Ringer.(interface{ Context() context.Context }); ok {
		if cause := context.Cause(known.Context()); errors.Is(cause, parley.CustomerHangup) {
			return cause
		}
	}
	return parley.CustomerHangup
}

// callee is what happens to a call: which assistant it is for, and by which route. A softphone's calls have neither
// number nor route.
func (d *Center) callee(ctx context.Context, in Arrival) (*reception, error) {
	missing := func(err error) error {
		if store.IsNotFound(err) {
			return errNobody
		}
		return err
	}
	r := &reception{in: in, open: true}
	var err error
	if in.AssistantID != 0 {
		r.to, err = d.DB.AnyAssistant(ctx, in.AssistantID)
		if err == nil && r.to.Status != "active" && !stage.Is(in.From) { // an inactive one can be tested
			err = errAsleep
		}
		return r, missing(err)
	}
	if r.number, err = d.called(ctx, in); err == nil {
		err = d.unproved(ctx, r.number)
	}
	switch n := r.number; {
	case err != nil:
		return nil, missing(err)
	case n.Type == parley.NumberNormal && !n.Subscribed(parley.Now()):
		return nil, errAsleep
	case n.Route != nil:
		return r, d.routed(ctx, r, n.Route)
	}
	r.to, err = d.DB.NumberAssistant(ctx, r.number.UserID, r.number.ID)
	if err == nil && r.to == nil {
		err = errAsleep
	}
	return r, err
}

// unproved refuses a trunk's number whose owner has not proved that it is theirs, where the server wants that: two accounts may take calls
// from the same provider, and anybody can enter any number.
func (d *Center) unproved(ctx context.Context, n *parley.Number) error {
	if !d.NumberProof || n.Type != parley.NumberSIP || !strings.HasPrefix(n.PhoneNumber, "+") { // an extension is nobody else's
		return nil
	}
	is, err := d.DB.ProvedNumber(ctx, n.UserID, n.PhoneNumber)
	if err == nil && !is {
		slog.Info("a call is not answered: nobody has proved that the number is theirs (PARLEY_NUMBER_PROOF)", "number", n.ID, "user", n.UserID)
		err = errUnproved
	}
	return err
}

// routed is what happens to a call to a number by its route.
func (d *Center) routed(ctx context.Context, r *reception, route *parley.NumberRoute) error {
	n, number := r.number, ""
	if c := caller(r.in.From); c != nil {
		number = *c
	}
	blocked := route.Blocks(number)
	if route.BlockBlacklist && number != "" && !blocked {
		on, err := d.DB.Blacklisted(ctx, n.UserID, []string{number})
		if err != nil {
			return err
		}
		blocked = on[number]
	}
	if blocked {
		return errBlocked
	}
	r.route, r.open = route, route.Open(time.Now())
	if s := r.in.Signalling; s != nil && route.Suspects(s.Verification) {
		if route.SuspectStep != parley.RouteOtherwise {
			return &suspect{s.Verification}
		}
		r.open = false
	}
	r.step = route.First(r.open)
	a, err := d.inCharge(ctx, r)
	if err != nil || a == nil {
		return cmp.Or(err, error(errAsleep))
	}
	if r.step == parley.RouteRefuse || r.step == parley.RouteAssistant && a.Status != "active" {
		if refuses := r.step == parley.RouteRefuse; !r.canSound() {
			if refuses {
				return errClosed
			}
			return errAsleep
		}
		r.step = parley.RouteWords
	}
	r.to = a
	return nil
}

// inCharge is the assistant that has the calls to a number now, and in whose voice callers are spoken to where it has no
// part in them; nil if there is none.
func (d *Center) inCharge(ctx context.Context, r *reception) (*parley.Assistant, error) {
	userID, id := r.number.UserID, r.route.OtherwiseAssistantID
	if r.open || id == nil {
		return d.DB.NumberOwner(ctx, userID, r.number.ID)
	}
	a, err := d.DB.Assistant(ctx, userID, *id)
	if store.IsNotFound(err) || err == nil && a.Type != "inbound" {
		return nil, nil
	}
	return a, err
}

// called is the number that was called: one of the trunk's, or a rented one reached over the carrier.
func (d *Center) called(ctx context.Context, in Arrival) (*parley.Number, error) {
	if in.TrunkID != 0 {
		t, err := d.DB.AnyTrunk(ctx, in.TrunkID)
		if err != nil {
			return nil, err
		}
		return d.DB.TrunkNumber(ctx, t, in.To)
	}
	to, ok := normalize(in.To)
	if !ok {
		return nil, errNobody
	}
	return d.DB.RentedNumber(ctx, to)
}

// normalize reads a number as lines write it, with or without its plus.
func normalize(s string) (string, bool) {
	if n, ok := parley.NormalizePhone(s); ok {
		return n, true
	}
	return parley.NormalizePhone("+" + s)
}

// caller is the calling party: a phone number, or an extension of the house; nil if withheld.
func caller(from string) *string {
	if n, ok := normalize(from); ok {
		return &n
	}
	if from != "" && len(from) <= 32 && strings.Trim(from, "+0123456789*#") == "" {
		return &from
	}
	return nil
}

// prepareTime is how long a caller hears ringing while a greeting is prepared, in addition to the time taken by the
// inbound webhook.
const prepareTime = time.Second

// answer lets the call ring while the assistant is prepared, then answers and holds the conversation.
func (l *live) answer(in Arrival) error {
	answered := make(chan struct{})
	var watch sync.WaitGroup
	defer watch.Wait()
	pickedUp := sync.OnceFunc(func() { close(answered) })
	defer pickedUp()
	crash.Go(&watch, func() {
		select {
		case <-in.Done():
			l.cancel(in.left())
		case <-answered:
		}
	}, l.crashed)
	if err := in.Ring(); err != nil {
		slog.DebugContext(l.ctx, "ring", "call", l.id, "error", err) // a caller who has gone is seen below
	}
	l.ringing()
	l.ask()
	s, err := l.ready()
	if err != nil {
		refuse(in, notNow)
		return l.unready(err)
	}
	rates := []audio.Rate{audio.Narrow, audio.Wide}
	if known, ok := in.Ringer.(interface{ Rate() audio.Rate }); ok {
		rates = []audio.Rate{known.Rate()}
	}
	greeted := prepare(l.ctx, s, rates...)
	defer greeted.stop()
	select {
	case <-greeted.done:
	case <-time.After(prepareTime):
	case <-in.Done():
		l.cancel(in.left())
	case <-l.ctx.Done():
	}
	if l.ctx.Err() != nil {
		refuse(in, notNow) // nothing where the caller has gone
		return context.Cause(l.ctx)
	}
	leg, err := in.Answer(l.ctx)
	if err != nil {
		if cause := context.Cause(l.ctx); cause != nil {
			return cause
		}
		return err
	}
	pickedUp()
	return l.talk(s, leg)
}

// ask notifies the assistant's endpoint of the call; its response may supply variables.
func (l *live) ask() {
	o := l.occasion()
	if l.Webhooks == nil || l.a.InboundWebhookURL == nil || o.Test != "" {
		return
	}
	vars := l.Webhooks.Inbound(l.ctx, l.a, o.CustomerPhone, o.AssistantPhone, l.call.Signalling)
	if len(vars) > 0 {
		l.change(func(c *parley.Call) {
			all := maps.Clone(c.InputVariables)
			if all == nil {
				all = map[string]string{}
			}
			maps.Copy(all, vars)
			c.InputVariables = all
			c.VisitorNames = slices.DeleteFunc(slices.Clone(c.VisitorNames), func(name string) bool {
				_, owners := vars[name]
				return owners
			})
		})
	}
}
