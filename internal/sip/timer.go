package sip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	sipgo "github.com/emiago/sipgo/sip"

	"parley/internal/parley"
)

// Session timers (RFC 4028): both ends agree on an interval after which the call ends, unless one of them, the
// refresher, has renewed it by then.

// minInterval is the shortest interval that we accept, and the shortest that the RFC knows; maxInterval is the
// longest that we let a far end make of ours.
const (
	minInterval = 90 * time.Second
	maxInterval = 24 * time.Hour
)

// session is what was agreed on last.
type session struct {
	every time.Duration
	least time.Duration // what the far end insists on
	ours  bool          // we refresh
	since time.Time     // of the last refresh
	next  time.Time     // when we refresh; zero while it is done, or where the far end does
}

// newSession is a session that was renewed just now; nil is one without an end.
func newSession(every, least time.Duration, ours bool, now time.Time) *session {
	if every == 0 {
		return nil
	}
	s := &session{every: every, least: least, ours: ours, since: now}
	if ours {
		s.next = now.Add(every / 2)
	}
	return s
}

// over is when we hang up: a little before the end (section 10).
func (s *session) over() time.Time { return s.since.Add(s.every - min(32*time.Second, s.every/3)) }

type duty int

const (
	nothing duty = iota
	refresh
	expire
)

// due is what has to be done now.
func (s *session) due(now time.Time) duty {
	switch {
	case !now.Before(s.over()):
		return expire
	case !s.next.IsZero() && !now.Before(s.next):
		return refresh
	}
	return nothing
}

// timer is what a message says of the session's timer.
type timer struct {
	supported    bool
	every, least time.Duration // 0: not said
	refresher    string        // uac, uas, or "" where it is left open
}

func timerOf(m sipgo.Message) timer {
	t := timer{supported: supports(m, "timer")}
	t.every, t.refresher = expiryOf(m, "Session-Expires", "x")
	t.least, _ = expiryOf(m, "Min-SE")
	return t
}

// expiryOf reads a number of seconds and the refresher after it.
func expiryOf(m sipgo.Message, names ...string) (every time.Duration, refresher string) {
	for _, v := range valuesOf(m, names...) {
		number, params, _ := strings.Cut(v, ";")
		n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 32)
		if err != nil {
			continue
		}
		for p := range strings.SplitSeq(params, ";") {
			if name, value, _ := strings.Cut(p, "="); strings.EqualFold(strings.TrimSpace(name), "refresher") {
				refresher = strings.ToLower(strings.TrimSpace(value))
			}
		}
		return time.Duration(n) * time.Second, refresher
	}
	return 0, ""
}

// terms are our decision about the timer that a request asks for.
type terms struct {
	every, least time.Duration
	ours         bool
	headers      []string // of the 2xx
	tooShort     bool     // it is refused with 422
}

// grant decides (section 9). own is the interval that we would like, 0 for none; least is the shortest that we accept.
func (t timer) grant(own, least time.Duration) (g terms) {
	switch {
	case t.every == 0 && (own == 0 || !t.supported):
		return g
	case t.every == 0: // we would like one, so it is up to us
		g.every, g.ours = max(own, t.least), true
	case t.every < least:
		g.tooShort = t.supported // otherwise a proxy asks, and the caller couldn't do anything about it
		return g
	default:
		g.every, g.ours = t.every, !t.supported || t.refresher == "uas"
	}
	g.least = t.least
	if g.ours {
		g.headers = []string{"Session-Expires", seconds(g.every) + ";refresher=uas"}
	} else {
		g.headers = []string{"Session-Expires", seconds(g.every) + ";refresher=uac", "Require", "timer"}
	}
	return g
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// askTimer adds to a request which interval we would like. Where the session runs already, who refreshes it is said
// too: who asks.
func askTimer(req *sipgo.Request, every, least time.Duration, running bool) {
	for _, name := range []string{"Session-Expires", "Min-SE"} {
		req.RemoveHeader(name)
	}
	if every == 0 {
		return
	}
	value := seconds(every)
	if running {
		value += ";refresher=uac"
	}
	req.AppendHeader(sipgo.NewHeader("Session-Expires", value))
	if least > 0 {
		req.AppendHeader(sipgo.NewHeader("Min-SE", seconds(least)))
	}
}

// longer is what to ask for after a 422; it is false if that would change nothing.
func longer(res *sipgo.Response, every, least time.Duration) (newEvery, newLeast time.Duration, ok bool) {
	wanted := timerOf(res).least
	return max(every, wanted), wanted, (wanted > every || wanted > least) && wanted <= maxInterval
}

// renewed notes what a 2xx to a request of ours says of the timer.
func (l *leg) renewed(res *sipgo.Response) {
	t := timerOf(res)
	l.session.Store(newSession(t.every, t.least, t.refresher != "uas", time.Now()))
}

// timed renews the session when that is due, and ends one that nobody has renewed.
func (l *leg) timed(now time.Time) {
	s := l.session.Load()
	if s == nil {
		return
	}
	switch s.due(now) {
	case expire:
		slog.Info("a call ends: its session was not refreshed in time", "trunk", l.trunkID(), "by us", s.ours,
			"interval", s.every)
		l.end(errExpired, true)
	case refresh:
		busy := *s
		busy.next = time.Time{}
		if l.session.CompareAndSwap(s, &busy) {
			l.begin(func() { l.refresh(&busy) })
		}
	}
}

var errExpired = fmt.Errorf("%w: the session was not refreshed in time (RFC 4028)", parley.MediaTimeout)

// refresh renews the session: by UPDATE if the far end knows that, otherwise by an INVITE that changes nothing.
func (l *leg) refresh(s *session) {
	ctx := l.server.ctx
	every, least := s.every, s.least
	for range 3 {
		res, err := l.askAgain(ctx, every, least)
		if _, silent := errors.AsType[absent](err); silent || err == nil && (res.StatusCode == 481 || res.StatusCode == 408) {
			l.end(errExpired, true) // it knows nothing of the call (RFC 3261, section 12.2.1.2)
			return
		}
		if err == nil && res.IsSuccess() {
			l.renewed(res)
			return
		}
		var ok bool
		if err != nil || res.StatusCode != 422 {
			break
		}
		if every, least, ok = longer(res, every, least); !ok {
			break
		}
	}
	later := *s
	later.next = time.Now().Add(s.every / 12)
	l.session.CompareAndSwap(s, &later)
}

// askAgain sends one refresh.
func (l *leg) askAgain(ctx context.Context, every, least time.Duration) (*sipgo.Response, error) {
	if l.knows(sipgo.UPDATE) {
		req := l.request(sipgo.UPDATE)
		askTimer(req, every, least, true)
		able(req)
		return l.ask(ctx, req)
	}
	return l.reoffer(ctx, func(req *sipgo.Request) { askTimer(req, every, least, true) })
}

// errBusy is the failure of an offer of ours that always met one of theirs.
var errBusy = errors.New("another change of the call was under way each time")

// reoffer sends an INVITE with our description as it was said last, so that nothing changes, and takes the answer. If
// the far end does the same just then, both wait for a while and try again (RFC 3261, section 14.1).
func (l *leg) reoffer(ctx context.Context, with func(*sipgo.Request)) (*sipgo.Response, error) {
	st := &l.state
	for range 6 {
		st.Lock()
		if st.ended {
			st.Unlock()
			return nil, cmp.Or(l.cause, errFinal)
		}
		free := !l.early && !st.offering && st.pending == nil
		said, as := st.said, st.as
		st.offering = st.offering || free
		st.Unlock()
		if free {
			res, err := l.inviteAgain(ctx, said, as, with)
			st.Lock()
			st.offering = false
			st.Unlock()
			if err != nil || res.StatusCode != 491 {
				return res, err
			}
		}
		wait := time.NewTimer(glare(sipgo.T1, l.calls(), rand.Float64()))
		select {
		case <-wait.C:
		case <-l.done:
			wait.Stop()
		case <-ctx.Done():
			wait.Stop()
			return nil, context.Cause(ctx)
		}
	}
	return nil, errBusy
}

// glare is how long to wait after a 491: whoever made the Call-ID waits longer. t1 is half a second; at is from 0 to 1.
func glare(t1 time.Duration, caller bool, at float64) time.Duration {
	from, to := time.Duration(0), 4*t1 // 0 to 2 s
	if caller {
		from, to = 21*t1/5, 8*t1 // 2.1 to 4 s
	}
	return (from + time.Duration(at*float64(to-from))).Truncate(10 * time.Millisecond)
}

// inviteAgain sends one INVITE within the call, and confirms what it is answered.
func (l *leg) inviteAgain(ctx context.Context, said []byte, as ours, with func(*sipgo.Request)) (*sipgo.Response, error) {
	req := l.request(sipgo.INVITE)
	with(req)
	able(req)
	withSDP(req, said)
	h := l.next(ctx)
	if l.server.connected(h.addr, overTCP) { // somebody is there who answers
		h, _ = l.server.widened(ctx, req, h)
	}
	login := l.credentials()
	for {
		try := req.Clone()
		l.server.address(try, h)
		tx, err := l.server.transact(ctx, try, h)
		if err != nil {
			return nil, err
		}
		res, err := outcome(ctx, tx, h)
		switch {
		case err != nil:
			tx.Terminate()
			return nil, err
		case res.IsSuccess():
			tx.Terminate()
			l.learn(res)
			l.sendACK(try)
			return res, l.reanswered(res, as)
		case res.StatusCode != 401 && res.StatusCode != 407 || login.answer(req, res) != nil:
			return res, nil
		}
		login.renumber(req)
	}
}

// reanswered takes the answer to an offer that changed nothing: the far end's may change all the same.
func (l *leg) reanswered(res *sipgo.Response, as ours) error {
	text, _ := sdpOf(res)
	d, err := parseSDP(text)
	if err != nil {
		return nil //nolint:nilerr // what was agreed on before still holds
	}
	c, ok := d.audio(0, &as, l.secrecy())
	if !ok {
		return nil
	}
	l.state.Lock()
	defer l.state.Unlock()
	was := l.state.agreed
	d.streams[c.place].mux = was.Mux
	if c.codec.Format == was.Codec.Format { // under the numbers that were said then
		c.codec.Receive = was.Codec.Receive
		if c.codec.Event && was.Codec.Event {
			c.codec.ReceiveEvent = was.Codec.ReceiveEvent
		}
	}
	l.agreeLocked(d, c)
	return nil
}
