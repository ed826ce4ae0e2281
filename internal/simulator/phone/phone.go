// Package phone is a telephone for tests, benchmarks and parley test: a SIP user agent on loopback with real RTP that
// says what it is given and keeps what it hears. It shares no code of SIP with the program, and makes and reads RTP and RTCP octet
// by octet, so that both are not wrong in the same way; codecs, keys and the clock are the program's.
package phone

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Phone is a user agent on a UDP socket of its own. It holds any number of calls.
type Phone struct {
	Username, Password string // answers a digest challenge with them, where there are any
	Options            Options

	conn     *net.UDPConn
	incoming chan *Incoming
	reader   sync.WaitGroup

	mu       sync.Mutex
	calls    map[string]*Call     // by Call-ID
	waiting  map[string]*Incoming // not answered yet
	answered map[string][]byte    // by branch and method: what was answered, for those who ask again
	odd      []string
	received int
}

// Options are how a phone's calls sound.
type Options struct {
	Types    []int // RTP payload types that are offered: 0, 8, 9; nil is 0 and 8
	NoEvents bool  // no telephone-event: keys are tones
	NoRefer  bool  // does not send calls elsewhere (405)
	Forget   bool  // keeps no sound: a benchmark's

	// The line on which the phone speaks. The same seed loses and delays the same packets.
	Seed   uint64
	Loss   float64       // of the packets that it sends, 0 to 1
	Jitter time.Duration // the most that a packet is late
	Echo   float64       // dB, below 0: how loud what it hears comes back; 0 is not at all
	Noise  []int16       // behind the voice, again and again; at the call's rate
}

func (o Options) types() []int {
	if o.Types == nil {
		return []int{0, 8}
	}
	return o.Types
}

func (o Options) events() int {
	if o.NoEvents {
		return 0
	}
	return 101
}

// Listen opens a phone on a free port of 127.0.0.1. Close it.
func Listen() (*Phone, error) { return ListenOn(netip.MustParseAddrPort("127.0.0.1:0")) }

// ListenOn opens a phone.
func ListenOn(at netip.AddrPort) (*Phone, error) {
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, fmt.Errorf("phone: %w", err)
	}
	stamp(conn)
	conn.SetReadBuffer(4 << 20) // hundreds of calls at once
	p := &Phone{conn: conn, incoming: make(chan *Incoming, 1000), calls: map[string]*Call{},
		waiting: map[string]*Incoming{}, answered: map[string][]byte{}}
	p.reader.Go(p.read)
	return p, nil
}

// Addr is where it listens.
func (p *Phone) Addr() netip.AddrPort { return p.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// Odd is what came that is no proper SIP, or that nobody expected.
func (p *Phone) Odd() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.odd...)
}

// Received is how many messages came.
func (p *Phone) Received() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.received
}

func (p *Phone) strange(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.odd = append(p.odd, fmt.Sprintf(format, args...))
}

// Close falls silent: whoever is still on a call hears nothing more. It waits for all that the phone has running.
func (p *Phone) Close() {
	p.conn.Close()
	p.reader.Wait()
	p.mu.Lock()
	calls := p.calls
	p.calls = nil
	p.mu.Unlock()
	for _, c := range calls {
		c.over("closed")
		c.media.wait()
	}
}

func (p *Phone) read() {
	buf, control := make([]byte, 64<<10), make([]byte, stampBytes)
	for {
		n, told, _, from, err := p.conn.ReadMsgUDPAddrPort(buf, control)
		if err != nil {
			return
		}
		if n < 20 { // keep-alives
			continue
		}
		m, err := parse(buf[:n])
		if err != nil {
			p.strange("%v", err)
			continue
		}
		m.at = arrival(control[:told])
		p.take(m, netip.AddrPortFrom(from.Addr().Unmap(), from.Port()))
	}
}

func (p *Phone) send(m *message, to netip.AddrPort) { p.conn.WriteToUDPAddrPort(m.bytes(), to) }

// take deals with a message.
func (p *Phone) take(m *message, from netip.AddrPort) {
	id := m.get("call-id")
	p.mu.Lock()
	p.received++
	c, in := p.calls[id], p.waiting[id]
	again := p.answered[m.get("via")+m.method()]
	p.mu.Unlock()
	switch {
	case m.status() != 0 && c != nil:
		c.response(m)
	case m.status() != 0:
		p.strange("%s to nobody", m.start)
	case again != nil:
		p.conn.WriteToUDPAddrPort(again, from)
	case m.method() == "ACK":
		if c != nil {
			c.acked()
		}
	case m.method() == "OPTIONS" && c == nil:
		p.answer(m, from, m.respond(200, token()))
	case m.method() == "INVITE" && c == nil:
		p.invited(m, from)
	case m.method() == "CANCEL" && in != nil:
		p.answer(m, from, m.respond(200, in.tag))
		in.cancel()
	case c != nil:
		c.request(m, from)
	default:
		p.answer(m, from, m.respond(481, token()))
	}
}

// answer sends a response, and again to who asks again.
func (p *Phone) answer(request *message, to netip.AddrPort, response *message) {
	raw := response.bytes()
	if response.status() >= 200 {
		p.mu.Lock()
		p.answered[request.get("via")+request.method()] = raw
		p.mu.Unlock()
	}
	p.conn.WriteToUDPAddrPort(raw, to)
}

// Incoming is somebody who calls.
type Incoming struct {
	From, To string // users of the URIs
	Cancel   <-chan struct{}

	phone  *Phone
	invite *message
	at     netip.AddrPort
	tag    string
	once   sync.Once
	gone   chan struct{}
}

func (p *Phone) invited(m *message, from netip.AddrPort) {
	in := &Incoming{From: user(m.get("from")), To: user(m.uri()), phone: p, invite: m, at: from, tag: token(),
		gone: make(chan struct{})}
	in.Cancel = in.gone
	p.mu.Lock()
	p.waiting[m.get("call-id")] = in
	p.mu.Unlock()
	p.send(m.respond(100, ""), from)
	select {
	case p.incoming <- in:
	default:
		in.Refuse(503)
	}
}

// Next is the next who calls.
func (p *Phone) Next(ctx context.Context) (*Incoming, error) {
	select {
	case in := <-p.incoming:
		return in, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("nobody called: %w", ctx.Err())
	}
}

func (in *Incoming) cancel() {
	in.once.Do(func() {
		in.leave()
		in.phone.answer(in.invite, in.at, in.invite.respond(487, in.tag))
		close(in.gone)
	})
}

// leave forgets who waited.
func (in *Incoming) leave() {
	in.phone.mu.Lock()
	delete(in.phone.waiting, in.invite.get("call-id"))
	in.phone.mu.Unlock()
}

// Ring says that it rings.
func (in *Incoming) Ring() { in.phone.send(in.invite.respond(180, in.tag), in.at) }

// Refuse turns the call down.
func (in *Incoming) Refuse(code int) {
	in.once.Do(func() {
		in.leave()
		in.phone.answer(in.invite, in.at, in.invite.respond(code, in.tag))
	})
}

// Answer takes the call.
func (in *Incoming) Answer() (*Call, error) { return in.AnswerOn(in.phone.Options) }

// AnswerOn takes the call on a line of its own.
func (in *Incoming) AnswerOn(o Options) (c *Call, err error) {
	err = fmt.Errorf("the caller from %s gave up", in.From)
	in.once.Do(func() {
		p := in.phone
		if c, err = p.newCall(in.invite.get("call-id"), in.at, o); err != nil {
			return
		}
		to := in.invite.get("to") + ";tag=" + in.tag
		c.local, c.remote, c.target = to, in.invite.get("from"), inBrackets(in.invite.get("contact"))
		c.routes = in.invite.all("record-route")
		var theirs description
		if theirs, err = describe(in.invite.body); err != nil {
			return
		}
		r := in.invite.respond(200, in.tag).add("contact", c.contact()).add("content-type", "application/sdp")
		r.body = c.media.begin(theirs, o)
		p.mu.Lock()
		p.calls[c.id] = c
		delete(p.waiting, c.id)
		p.mu.Unlock()
		c.Answered = time.Now()
		p.answer(in.invite, in.at, r)
	})
	return c, err
}
