package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/crash"
	"parley/internal/simulator/phone"
)

// Result is what became of one performance of a case.
type Result struct {
	Case     *Case
	Round    int // from 1, of the case's repeats
	Verdicts []Verdict
	Figures  Figures
	Err      error // it could not be performed
	Took     time.Duration
	Timeline *Timeline
	Record   *Record
	Heard    []int16 // the assistant's sound, in its time
	Said     []int16 // the caller's
	Rate     audio.Rate
	Files    []string // its sound and picture, where they were kept
}

// Passed says whether all that was expected came.
func (r *Result) Passed() bool { return r.Err == nil && len(r.Failed()) == 0 }

// Failed are the expectations that were not met.
func (r *Result) Failed() (out []Verdict) {
	for _, v := range r.Verdicts {
		if !v.OK {
			out = append(out, v)
		}
	}
	return out
}

// Seed is what made its line and its chance.
func (r *Result) Seed() uint64 { return r.Case.Seed + uint64(r.Round-1)*rounds }

// rounds is what lies between the seeds of a case's rounds.
const rounds = 1_000_003

// Title is the case's name with what sets this performance apart.
func (r *Result) Title() string {
	title := r.Case.Name
	if len(r.Case.Values) > 0 {
		title += " [" + strings.Join(r.Case.Values, " ") + "]"
	}
	if r.Case.Repeat > 1 {
		title += fmt.Sprintf(" #%d", r.Round)
	}
	return title
}

// Runner performs cases, several at a time. Close it.
type Runner struct {
	Server     *Server
	Synthesize Synthesize
	Parallel   int
	Patient    bool     // calls for which the account has no line wait for one; otherwise they end with ErrBusy
	Ears       Ears     // of cases that name none
	Model      ai.Model // plays personas and judges; nil: there is none
	// Done is told of each result as it comes, one at a time; it may be nil
	Done func(r *Result, done, all int)

	called   sync.Mutex
	exchange *exchange // nil before an assistant is to call
}

// Close hangs up whoever assistants called.
func (n *Runner) Close() {
	n.called.Lock()
	defer n.called.Unlock()
	if n.exchange != nil {
		n.exchange.close()
		n.exchange = nil
	}
}

// open is where assistants call.
func (n *Runner) open() (*exchange, error) {
	n.called.Lock()
	defer n.called.Unlock()
	var err error
	if n.exchange == nil {
		n.exchange, err = newExchange()
	}
	return n.exchange, err
}

// Run performs all cases and returns their results in the cases' order.
func (n *Runner) Run(ctx context.Context, cases []Case) []Result {
	var results []Result
	for i := range cases {
		for round := range cases[i].Repeat {
			results = append(results, Result{Case: &cases[i], Round: round + 1})
		}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	room, done := make(chan struct{}, max(1, n.Parallel)), 0
	for i := range results {
		r := &results[i]
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			began := time.Now()
			if r.Err = context.Cause(ctx); r.Err == nil {
				r.Err = crash.Run(func() error { return n.perform(ctx, r) })
			}
			for n.Patient && errors.Is(r.Err, ErrBusy) {
				select {
				case <-time.After(time.Second):
					r.Err = n.perform(ctx, r)
				case <-ctx.Done():
					r.Err = context.Cause(ctx)
				}
			}
			r.Took = time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			if done++; n.Done != nil {
				n.Done(r, done, len(results))
			}
		})
	}
	wg.Wait()
	return results
}

// ErrBusy is why a case was not performed for which the account has no line now: it can be, once one is free.
var ErrBusy = errors.New("all lines of the account are taken")

// errLimit ends a case that takes too long.
var errLimit = errors.New("the case took longer than its limit: give it a longer one, such as limit: 3m")

// measure judges what was heard and recorded, and takes its figures.
func (r *Result) measure(c *Case) {
	r.Verdicts, r.Figures = c.Judge(r.Timeline, r.Record), c.Figures(r.Timeline, r.Record)
	r.Figures.count(r.Verdicts)
}

// perform holds one conversation and judges it.
func (n *Runner) perform(ctx context.Context, r *Result) error {
	c := *r.Case // its seed and ears are this performance's
	if c.Ears == "" {
		c.Ears = n.Ears
	}
	c.Seed, c.Steps = r.Seed(), slices.Clip(c.Steps) // a persona adds its own
	ctx, cancel := context.WithTimeoutCause(ctx, c.Limit, errLimit)
	defer cancel()
	if n.Model == nil && (len(c.Criteria) > 0 || c.Caller.Persona != "") {
		return errMind
	}
	if c.Stranger() {
		err := n.stranger(ctx, r, &c)
		if err == nil {
			r.measure(&c)
		}
		return err
	}
	var out netip.AddrPort
	if c.Outbound {
		e, err := n.open()
		if err != nil {
			return err
		}
		out = e.addr()
	}
	a, err := n.Server.callee(ctx, &c, out)
	if err != nil {
		return err
	}
	token, err := a.begin(ctx, &c, a.ID)
	if err != nil {
		return err
	}
	defer a.ask(context.WithoutCancel(ctx), "DELETE", "/user/rehearsals/"+token, nil, nil)
	if c.Channel == Chat {
		r.Timeline, r.Record, err = a.chat(ctx, &c, token, mind{n.Model})
	} else {
		err = n.telephone(ctx, r, &c, a, token)
	}
	if err != nil {
		return err
	}
	r.measure(&c)
	return mind{n.Model}.review(ctx, &c, r)
}

// telephone performs a case by telephone.
func (n *Runner) telephone(ctx context.Context, r *Result, c *Case, a *callee, token string) error {
	p := &performer{Case: c, ctx: ctx, synthesize: n.Synthesize, mind: mind{n.Model}}
	following, stop := context.WithCancel(ctx)
	var follower sync.WaitGroup
	defer follower.Wait()
	defer stop()
	if c.Ears == Told {
		p.tell = func(words string) {
			// a call that is over has no ears
			_ = a.ask(ctx, "POST", "/user/rehearsals/"+token+"/words", map[string]any{"words": words}, nil)
		}
	}
	connect := n.callOut
	if c.Outbound {
		connect = n.callIn
	}
	id := int64(0)
	err := p.perform(func(o phone.Options) (call *phone.Call, l *live, hangUp func(), err error) {
		if call, id, hangUp, err = connect(ctx, c, a, token, o, &p.t.Rang); call == nil || id == 0 {
			return call, nil, hangUp, err
		}
		l = &live{}
		crash.Go(&follower, func() { _ = a.follow(following, id, l) }, // what it lacks is in the record
			crash.Log("the following of a call", "call", id))
		return call, l, hangUp, err
	})
	if err != nil && !errors.Is(err, errLimit) {
		return err
	}
	if id == 0 {
		return errors.New("the server doesn't know the call")
	}
	r.Timeline = &p.t
	// the record of a case that took too long is read too
	reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	r.Record, err = a.record(reading, token, id, c.End)
	r.Heard, r.Said, r.Rate = p.tape()
	return err
}

// stranger performs a case at a SIP address. Nothing is recorded of it.
func (n *Runner) stranger(ctx context.Context, r *Result, c *Case) error {
	user, at, err := sipAddress(c.Assistant)
	if err != nil {
		return err
	}
	p := &performer{Case: c, ctx: ctx, synthesize: n.Synthesize}
	err = p.perform(func(o phone.Options) (*phone.Call, *live, func(), error) {
		call, leave, err := dial(ctx, "parley-test", user, at, o)
		return call, nil, leave, err
	})
	if err != nil && !errors.Is(err, errLimit) {
		return err
	}
	r.Timeline, r.Record = &p.t, &Record{}
	r.Heard, r.Said, r.Rate = p.tape()
	return err
}

// dial calls somebody on a telephone of its own, which leave puts away.
func dial(ctx context.Context, from, to string, at netip.AddrPort, o phone.Options) (call *phone.Call, leave func(), err error) {
	handset, err := phone.Listen()
	if err != nil {
		return nil, func() {}, err
	}
	handset.Options = o
	ring, cancel := context.WithTimeout(ctx, ending)
	defer cancel()
	if call, err = handset.Call(ring, from, to, at); err != nil {
		err = fmt.Errorf("call %s at %s: %w", to, at, err)
	}
	return call, handset.Close, err
}

// callOut calls an assistant as a softphone does.
func (n *Runner) callOut(ctx context.Context, c *Case, a *callee, token string, o phone.Options, _ *time.Duration) (*phone.Call,
	int64, func(), error) {
	call, leave, err := dial(ctx, token, fmt.Sprint(a.ID), n.Server.SIP, o)
	if refused, ok := errors.AsType[*phone.Refused](err); ok && refused.Code == 486 {
		err = fmt.Errorf("%w: %w", ErrBusy, err)
	}
	if err != nil {
		return nil, 0, leave, err
	}
	var now struct {
		CallID int64 `json:"call_id"`
	}
	err = a.ask(ctx, "GET", "/user/rehearsals/"+token, nil, &now)
	return call, now.CallID, leave, err
}

// callIn has an assistant call, and takes the call as the case wants.
func (n *Runner) callIn(ctx context.Context, c *Case, a *callee, token string, o phone.Options, ringing *time.Duration) (*phone.Call,
	int64, func(), error) {
	number, calls, leave := n.exchange.number()
	var made struct {
		CallID int64 `json:"call_id"`
	}
	vars := map[string]string{testVariable: token}
	maps.Copy(vars, c.Variables)
	if err := a.ask(ctx, "POST", "/user/make_call", map[string]any{"assistant_id": a.ID, "phone_number": number,
		"variables": vars}, &made); err != nil {
		return nil, 0, leave, err
	}
	call, rang, err := c.answered(ctx, calls, o)
	*ringing = rang
	return call, made.CallID, leave, err
}

// tape is the sound of both sides in its time.
func (p *performer) tape() (heard, said []int16, rate audio.Rate) {
	if p.call == nil {
		return nil, nil, 0
	}
	rate = p.call.Rate()
	length := int(p.t.Ended.Seconds()*float64(rate)) + int(rate)
	heard, said = lay(length, rate, p.zero, p.call.Packets(), p.call.Sound()), make([]int16, length)
	for _, a := range p.t.Acts {
		if a.Kind != Press {
			pcm, _, _ := p.speech(&p.Steps[a.Step])
			place(said, rate, a.From, pcm)
		}
	}
	return heard, said, rate
}

// place puts sound at its time.
func place(to []int16, rate audio.Rate, at time.Duration, pcm []int16) {
	if i := int(at * time.Duration(rate) / time.Second); i >= 0 && i < len(to) {
		copy(to[i:], pcm)
	}
}

const (
	clockRate = 8000                   // of the time stamps of all codecs here, G.722's too (RFC 3551)
	jump      = 500 * time.Millisecond // between packets that are no part of one stream
)

// lay puts the sound of packets on a tape that begins at zero. Their time stamps say where it belongs: whatever the packets
// were late is the line's. The one that came with the least delay says where the stream is; after a jump it begins anew.
func lay(length int, rate audio.Rate, zero time.Time, packets []phone.Packet, sound []int16) []int16 {
	tape := make([]int16, length)
	var first phone.Packet
	var anchor time.Duration
	for _, one := range packets {
		if one.From == one.To { // keys
			continue
		}
		due := one.At.Sub(zero)
		at := anchor + time.Duration(int32(one.TS-first.TS))*time.Second/clockRate
		if one.SSRC != first.SSRC || first.At.IsZero() || due < at || due-at > jump {
			first, anchor, at = one, due, due
		}
		place(tape, rate, at, sound[one.From:one.To])
	}
	return tape
}
