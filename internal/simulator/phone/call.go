package phone

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Refused is the answer to a call that was not taken.
type Refused struct{ Code int }

func (r *Refused) Error() string { return "refused with " + strconv.Itoa(r.Code) }

// Call is a call that the phone is in.
type Call struct {
	Invited, Rang, Answered time.Time // of calls that it made: INVITE sent, first 180 or 183, 200
	phone                   *Phone
	options                 Options
	id                      string
	at                      netip.AddrPort // of the far end's signalling
	target                  string         // the far end's Contact
	local, remote           string         // From and To of our requests
	routes                  []string       // the proxies that our requests pass
	media                   *media

	mu        sync.Mutex
	sequence  int
	responses chan *message
	ack       *message // of our latest INVITE
	gotACK    chan struct{}
	ackOnce   sync.Once
	refer     string
	ended     string // "" while live
	done      chan struct{}
}

func (p *Phone) newCall(id string, at netip.AddrPort, o Options) (*Call, error) {
	m, err := newMedia(o)
	if err != nil {
		return nil, err
	}
	return &Call{phone: p, options: o, id: id, at: at, media: m, responses: make(chan *message, 100),
		gotACK: make(chan struct{}), done: make(chan struct{})}, nil
}

func (c *Call) contact() string { return fmt.Sprintf("<sip:phone@%s>", c.phone.Addr()) }

// Call calls somebody at a server and returns when they have answered, or with a *Refused. from is who calls. When
// ctx ends before, the call is taken back.
func (p *Phone) Call(ctx context.Context, from, to string, server netip.AddrPort) (*Call, error) {
	c, err := p.newCall(token(), server, p.Options)
	if err != nil {
		return nil, err
	}
	c.local = fmt.Sprintf("<sip:%s@%s>;tag=%s", from, p.Addr().Addr(), token())
	c.target = fmt.Sprintf("sip:%s@%s", to, server)
	c.remote = "<" + c.target + ">"
	p.mu.Lock()
	p.calls[c.id] = c
	p.mu.Unlock()
	if err := c.invite(ctx, "sendrecv"); err != nil {
		c.over("refused")
		c.media.wait()
		p.mu.Lock()
		delete(p.calls, c.id)
		p.mu.Unlock()
		return nil, err
	}
	return c, nil
}

// invite makes an INVITE or a re-INVITE, and confirms what is answered.
func (c *Call) invite(ctx context.Context, direction string) error {
	body := offer(c.media.addr(), c.options.types(), c.options.events(), direction)
	c.mu.Lock()
	c.Invited = time.Now()
	c.mu.Unlock()
	m := c.make("INVITE", body)
	r, err := c.ask(ctx, m)
	if r != nil && (r.status() == 401 || r.status() == 407) && c.phone.Password != "" {
		c.confirm(m, r)
		challenge, name := r.get("www-authenticate"), "authorization"
		if r.status() == 407 {
			challenge, name = r.get("proxy-authenticate"), "proxy-authorization"
		}
		uri := m.uri()
		m = c.make("INVITE", body)
		m.add(name, authorize(challenge, "INVITE", uri, c.phone.Username, c.phone.Password))
		r, err = c.ask(ctx, m)
	}
	if err != nil {
		return err
	}
	if r.status() >= 300 {
		c.confirm(m, r)
		return &Refused{r.status()}
	}
	c.mu.Lock()
	c.remote = r.get("to")
	if t := inBrackets(r.get("contact")); t != "" {
		c.target = t
	}
	if c.Answered.IsZero() {
		c.Answered = r.at
		c.routes = r.all("record-route")
		slices.Reverse(c.routes)
	}
	c.mu.Unlock()
	theirs, err := describe(r.body)
	if err != nil {
		return err
	}
	c.media.begin(theirs, c.options)
	c.confirm(m, r)
	return nil
}

// confirm sends the ACK. That of a refusal belongs to the INVITE's transaction and has its branch, that of a 200 has
// one of its own.
func (c *Call) confirm(invite, r *message) {
	number, _, _ := strings.Cut(invite.get("cseq"), " ")
	uri, via := invite.uri(), invite.get("via")
	if r.status() < 300 {
		uri, via = c.target, c.via()
	}
	ack := &message{start: "ACK " + uri + " SIP/2.0"}
	ack.add("via", via).add("max-forwards", "70").add("from", c.local).add("to", r.get("to")).add("call-id",
		c.id).add("cseq", number+" ACK")
	if r.status() < 300 {
		c.routed(ack)
		c.mu.Lock()
		c.ack = ack
		c.mu.Unlock()
	}
	c.phone.send(ack, c.at)
}

func (c *Call) via() string {
	return fmt.Sprintf("SIP/2.0/UDP %s;rport;branch=z9hG4bK%s", c.phone.Addr(), token())
}

// make makes a request of this call.
func (c *Call) make(method, body string) *message {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sequence++
	m := &message{start: method + " " + c.target + " SIP/2.0", body: body}
	c.routed(m)
	m.add("via", c.via()).add("max-forwards", "70").add("from", c.local).add("to", c.remote).add("call-id", c.id).
		add("cseq", strconv.Itoa(c.sequence)+" "+method).add("contact", c.contact())
	if body != "" {
		kind := "application/sdp"
		if method == "INFO" {
			kind = "application/dtmf-relay"
		}
		m.add("content-type", kind)
	}
	return m
}

// routed has a request pass the proxies that asked for it (RFC 3261, section 12.2.1.1).
func (c *Call) routed(m *message) {
	for _, route := range c.routes {
		m.add("route", route)
	}
}

// Target is the address of the far end within the call: that of its Contact.
func (c *Call) Target() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.target
}

// ask sends a request until it is answered, and returns the final answer. An INVITE that ctx ends is cancelled.
func (c *Call) ask(ctx context.Context, m *message) (*message, error) {
	c.phone.send(m, c.at)
	wait, heard, cancelled := 500*time.Millisecond, false, false
	again, limit := time.NewTimer(wait), time.NewTimer(32*time.Second)
	defer again.Stop()
	defer limit.Stop()
	gone := ctx.Done()
	for {
		select {
		case r := <-c.responses:
			switch {
			case r.get("cseq") != m.get("cseq"):
			case r.status() >= 200:
				if cancelled && r.status() < 300 { // they crossed
					c.remote = r.get("to")
					c.confirm(m, r)
					c.bye()
				}
				if cancelled {
					if r.status() >= 300 {
						c.confirm(m, r)
					}
					return nil, context.Cause(ctx)
				}
				return r, nil
			default:
				heard = true
				if r.status() > 100 {
					c.mu.Lock()
					if c.Rang.IsZero() {
						c.Rang = r.at
					}
					c.mu.Unlock()
				}
				if gone == nil && !cancelled {
					cancelled = true
					c.phone.send(c.cancel(m), c.at)
				}
			}
		case <-again.C:
			if !heard || m.method() != "INVITE" {
				c.phone.send(m, c.at)
				wait = min(2*wait, 4*time.Second)
				again.Reset(wait)
			}
		case <-gone:
			gone = nil
			if m.method() != "INVITE" {
				return nil, context.Cause(ctx)
			}
			if heard { // otherwise nobody would know what is cancelled (RFC 3261, section 9.1)
				cancelled = true
				c.phone.send(c.cancel(m), c.at)
			}
			limit.Reset(time.Second)
		case <-limit.C:
			if gone == nil {
				return nil, context.Cause(ctx)
			}
			return nil, fmt.Errorf("%s was not answered", m.method())
		}
	}
}

func (c *Call) cancel(invite *message) *message {
	number, _, _ := strings.Cut(invite.get("cseq"), " ")
	m := &message{start: "CANCEL " + invite.uri() + " SIP/2.0"}
	return m.add("via", invite.get("via")).add("max-forwards", "70").add("from", c.local).add("to",
		invite.get("to")).add("call-id", c.id).add("cseq", number+" CANCEL")
}

// response takes one to a request of ours.
func (c *Call) response(m *message) {
	if m.status() >= 200 && m.status() < 300 && m.method() == "INVITE" {
		c.mu.Lock()
		ack := c.ack
		c.mu.Unlock()
		// they did not get it
		if ack != nil && strings.HasPrefix(ack.get("cseq"), strings.TrimSuffix(m.get("cseq"), "INVITE")) {
			c.phone.send(ack, c.at)
			return
		}
	}
	select {
	case c.responses <- m:
	default:
		c.phone.strange("too many responses, the last one %s", m.start)
	}
}

// request takes one of the far end's within the call.
func (c *Call) request(m *message, from netip.AddrPort) {
	switch m.method() {
	case "BYE":
		c.phone.answer(m, from, m.respond(200, ""))
		c.over("bye")
	case "INVITE":
		theirs, err := describe(m.body)
		if err != nil {
			c.phone.answer(m, from, m.respond(488, ""))
			return
		}
		r := m.respond(200, "").add("contact", c.contact()).add("content-type", "application/sdp")
		r.body = c.media.begin(theirs, c.options)
		c.phone.answer(m, from, r)
	case "REFER":
		if c.phone.Options.NoRefer {
			c.phone.answer(m, from, m.respond(405, ""))
			return
		}
		c.mu.Lock()
		c.refer = inBrackets(m.get("refer-to"))
		c.mu.Unlock()
		c.phone.answer(m, from, m.respond(202, "").add("contact", c.contact()))
		for i, line := range []string{"100 Trying", "200 OK"} {
			n := c.make("NOTIFY", "")
			n.add("event", "refer").add("content-type", "message/sipfrag;version=2.0")
			n.add("subscription-state", []string{"active;expires=60", "terminated;reason=noresource"}[i])
			n.body = "SIP/2.0 " + line + "\r\n"
			c.phone.send(n, c.at)
		}
	case "OPTIONS", "INFO", "NOTIFY", "UPDATE":
		c.phone.answer(m, from, m.respond(200, ""))
	default:
		c.phone.strange("%s within a call", m.start)
	}
}

func (c *Call) acked() { c.ackOnce.Do(func() { close(c.gotACK) }) }

// over ends the call, once.
func (c *Call) over(why string) {
	c.mu.Lock()
	first := c.ended == ""
	if first {
		c.ended = why
	}
	c.mu.Unlock()
	if first {
		c.media.stop()
		close(c.done)
	}
}

// Done is closed when the call is over.
func (c *Call) Done() <-chan struct{} { return c.done }

// Ended says why the call is over: bye is the far end's, hangup ours; "" while it is live.
func (c *Call) Ended() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// Referred is where the far end asked us to go, "" for nowhere.
func (c *Call) Referred() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refer
}

// Addr is where the call's sound is sent from.
func (c *Call) Addr() netip.AddrPort { return c.media.addr() }

// Confirmed is closed when the far end has sent its ACK, of a call that we took.
func (c *Call) Confirmed() <-chan struct{} { return c.gotACK }

// Hangup ends the call and waits until the far end knows.
func (c *Call) Hangup() error {
	if c.Ended() != "" {
		return nil
	}
	err := c.bye()
	c.over("hangup")
	c.media.wait()
	return err
}

func (c *Call) bye() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := c.ask(ctx, c.make("BYE", ""))
	if err == nil && r.status() != 200 && r.status() != 481 { // 481: it hung up at the same time
		err = &Refused{r.status()}
	}
	return err
}

// Drop falls silent without a word, as a phone does whose network is gone.
func (c *Call) Drop() {
	c.phone.mu.Lock()
	delete(c.phone.calls, c.id)
	c.phone.mu.Unlock()
	c.over("dropped")
	c.media.wait()
}

// Hold stops the sound in both directions, Resume begins it again.
func (c *Call) Hold(ctx context.Context) error { return c.invite(ctx, "sendonly") }

// Resume ends a hold.
func (c *Call) Resume(ctx context.Context) error { return c.invite(ctx, "sendrecv") }

// Change offers other RTP payload types (0, 8, 9) in the middle of the call, and goes on in what is chosen of them. Sound
// that is said and kept from then on has the new rate.
func (c *Call) Change(ctx context.Context, types ...int) error {
	c.options.Types = types
	return c.invite(ctx, "sendrecv")
}

// Info sends a key by SIP INFO.
func (c *Call) Info(ctx context.Context, key byte) error {
	r, err := c.ask(ctx, c.make("INFO", fmt.Sprintf("Signal=%c\r\nDuration=160\r\n", key)))
	if err == nil && r.status() != 200 {
		err = &Refused{r.status()}
	}
	return err
}
