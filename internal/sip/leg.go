package sip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	sipgo "github.com/emiago/sipgo/sip"

	"parley/internal/audio"
	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/rtp"
)

// leg is a call: its dialog, its audio, and how it ends. It exists from before our first message until the far end
// knows that the call is over.
type leg struct {
	dialog

	socket    *rtp.Socket
	own       local                   // our description
	round     int                     // how many far ends the call has had before; under the state's lock
	early     bool                    // not answered yet
	answered  time.Time               // of an incoming call that was heard before; under the state's lock
	session   atomic.Pointer[session] // nil: it has no end
	rate      atomic.Int32            // 0 until the first agreement
	sound     atomic.Pointer[rtp.Session]
	last      atomic.Pointer[rtp.Stats]             // of a leg that has run
	referable atomic.Pointer[func(to string) error] // where the far end may send us; nil: nowhere

	state struct {
		sync.Mutex
		ended     bool
		running   bool
		pending   *pending      // a 2xx of ours that waits for its ACK
		reliable  *reliable     // a provisional answer of ours that waits for its PRACK, or has had it
		offering  bool          // an INVITE of ours within the call is not answered yet
		said      []byte        // our description, as it was sent last
		as        ours          // what it says, to read an answer by
		agreed    rtp.Agreement // as it was last; its signalling's address is the dialog's
		refer     chan frag     // of a transfer under way
		handed    bool          // the far end has taken a transfer on
		going     *referral     // the far end has sent us elsewhere, and we are on our way
		referrals int           // how many times it has
		keys      string        // pressed before anybody listened
		byInfo    bool          // the far end has pressed keys by INFO
		telling   string        // keys of ours that are to be sent in the same way
	}
	done  chan struct{} // closed when the call is over
	cause error         // why; set before done is closed
	left  bool          // the far end told us; likewise
	acked chan struct{} // closed when the far end has our 2xx, or never will

	ack    atomic.Pointer[sipgo.Request] // of the far end's 2xx
	invite atomic.Pointer[sipgo.Request] // of ours, that was answered

	incoming *Invite                   // of a call that came
	forks    map[string]*fork          // of one of ours, by the far end's tag; under the dialog's lock
	losers   map[string]*sipgo.Request // the ACKs of places that were too late, likewise

	ladder *ladder       // nil: nothing is kept
	gone   chan struct{} // closed when the far end knows that it is over, or never will
}

// pending is a 2xx to an INVITE that awaits its ACK.
type pending struct {
	seq   uint32
	offer *ours // what the 2xx offered, where the ACK brings the answer
	acked chan struct{}
}

// newLeg makes a leg towards a peer, with room and ports taken.
func (s *Server) newLeg(peer netip.AddrPort) (*leg, error) {
	ip := s.addr.Addr() // the wildcard takes both families
	sock, err := s.ports.Open(ip)
	if err != nil {
		return nil, err
	}
	if !s.enter() {
		sock.Close()
		return nil, parley.Shutdown
	}
	l := &leg{socket: sock, early: true, done: make(chan struct{}), acked: make(chan struct{}),
		gone: make(chan struct{})}
	l.server = s
	l.own = local{id: uint64(rand.Uint32()), identity: s.identity, addr: netip.AddrPortFrom(s.shown(peer.Addr()), uint16(sock.Port))}
	return l, nil
}

// add makes the leg reachable for messages.
func (l *leg) add() {
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	l.server.legs[l.key()] = l
}

func (l *leg) remove() {
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	if l.server.legs[l.key()] == l { // otherwise another one has its place (refer.go)
		delete(l.server.legs, l.key())
	}
	close(l.gone)
}

// release gives back the ports and the room that newLeg took.
func (l *leg) release() {
	l.socket.Close()
	l.server.free()
	l.server.leave()
}

// Rate is the sample rate of all frames in both directions.
func (l *leg) Rate() audio.Rate { return audio.Rate(l.rate.Load()) }

// Stats are what is known of the call's audio, during the leg's run and after it.
func (l *leg) Stats() rtp.Stats {
	if s := l.last.Load(); s != nil {
		return *s
	}
	if m := l.sound.Load(); m != nil {
		return m.Stats()
	}
	return rtp.Stats{}
}

// Dial sends keys: by RFC 4733 if that was agreed on, otherwise by INFO if the far end does so too, otherwise as tones.
// Audio due meanwhile is not sent.
func (l *leg) Dial(digits string) error {
	if !audio.ValidKeys(digits) {
		return fmt.Errorf("dial %q: keys are 0-9, *, # and A-D", digits)
	}
	m := l.sound.Load()
	if m == nil {
		return errors.New("dial keys: the leg isn't running")
	}
	if !l.dialByInfo(digits) {
		m.Dial(digits)
	}
	return nil
}

// agreeLocked adopts what was chosen from a description.
func (l *leg) agreeLocked(d *description, c choice) {
	if l.rate.Load() == 0 || l.incoming == nil && !l.state.running { // later ones are changed to it
		l.rate.Store(int32(c.codec.Format.Rate()))
	}
	l.state.agreed = l.agree(d, l.shake(d, c))
	l.apply()
}

// agree is what both ends agree on by a choice from a description. An address where the trunk may not be counts as unusable, so
// that its sound goes where its signalling is.
func (l *leg) agree(d *description, c choice) rtp.Agreement {
	m := &d.streams[c.place]
	usable := func(a netip.Addr, port uint16) netip.AddrPort {
		to := netip.AddrPortFrom(a, port)
		if a.IsValid() && l.server.allowed(l.trunk, to) != nil {
			to = netip.AddrPortFrom(netip.Addr{}, port)
		}
		return to
	}
	return rtp.Agreement{Codec: c.codec, Direction: m.mirror(), Packet: m.packet(),
		Told: usable(m.addr, uint16(m.port)), Control: usable(m.control.Addr(), m.control.Port()), Mux: m.mux,
		In: c.theirs.key, Out: c.ours.key, DTLS: c.dtls}
}

// secrecy is the encryption that the call's trunk wants. For a softphone on this machine, encryption is used if it is
// offered.
func (l *leg) secrecy() secrecy {
	switch {
	case l.trunk == nil:
		return srtpOptional
	case l.trunk.SRTP == "":
		return srtpOff
	}
	return secrecy(l.trunk.SRTP)
}

// offer makes a new offer of ours. Its keys are always new: the call may have just moved to another telephone, which
// doesn't know how far the last ones were used. The caller holds the state's lock, or is alone with the leg.
func (l *leg) offer(c codecs) *ours {
	o := &ours{codecs: c}
	if agreed := l.state.agreed.Codec; agreed.Format != 0 {
		o.took = &agreed
	}
	switch l.secrecy() {
	case srtpOff:
	case srtpDTLS:
		o.dtls = true
	default:
		l.mu.Lock()
		way := l.hop.way
		l.mu.Unlock()
		o.keys = newKeys(way)
	}
	return o
}

// again are the formats that we offer within the call: the one that it has, then all that the trunk may have. The caller
// holds the state's lock.
func (l *leg) again() codecs {
	c := l.trunk.offered()
	f := l.state.agreed.Codec.Format
	if f == 0 {
		return c
	}
	return append(codecs{f}, slices.DeleteFunc(slices.Clone(c), func(o audio.Format) bool { return o == f })...)
}

// answerLocked takes an offer and returns our answer. Our key stays in use if theirs does, and is a new one otherwise,
// for the same reason.
func (l *leg) answerLocked(d *description, c choice) []byte {
	c = l.shake(d, l.keyed(c))
	l.agreeLocked(d, c)
	as := ours{codecs: codecs{c.codec.Format}, took: &c.codec}
	if c.ours.key.Suite != "" {
		as.keys = []sdes{c.ours}
	}
	as.dtls = c.dtls != nil
	return l.sayLocked(as, l.own.answer(d, c, l.state.agreed.Direction))
}

// keyed adds our key to what is chosen from an offer. The caller holds the state's lock.
func (l *leg) keyed(c choice) choice {
	if c.theirs.key.Suite != "" {
		was := l.state.agreed
		c.ours = sdes{c.theirs.tag, was.Out}
		if was.In != c.theirs.key || was.Out.Suite != c.theirs.key.Suite {
			c.ours.key = rtp.NewKey(c.theirs.key.Suite)
		}
	}
	return c
}

// offerLocked describes an offer of ours.
func (l *leg) offerLocked(o *ours, dir rtp.Direction) []byte {
	return l.sayLocked(*o, l.own.offer(*o, dir, l.secrecy()))
}

// sayLocked keeps our description: an offer that is to change nothing repeats it.
func (l *leg) sayLocked(as ours, text []byte) []byte {
	l.state.said, l.state.as = text, as
	return text
}

// apply tells the audio what was agreed on.
func (l *leg) apply() {
	if m := l.sound.Load(); m != nil {
		m.Agree(l.agreement())
	}
}

func (l *leg) agreement() rtp.Agreement {
	a := l.state.agreed
	a.Signal = l.peer()
	return a
}

func (l *leg) peer() netip.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hop.addr.Addr()
}

// Run moves audio between the network and p. The errors are parley.CustomerHangup, parley.Transferred when the far end
// went where Transfer sent it, parley.MediaTimeout, parley.Shutdown, ctx's cause, or whatever is wrong. While the far
// end has the call on hold, p hears nothing and isn't ticked: it stands still.
func (l *leg) Run(ctx context.Context, p audio.Peer) error {
	st := &l.state
	st.Lock()
	if st.running || st.ended {
		st.Unlock()
		if l.ended() {
			return l.cause
		}
		return errors.New("the leg runs already")
	}
	st.running = true
	m := rtp.NewSession(l.socket, l.Rate(), l.loose(), p)
	m.Pace = l.server.config.Pace
	m.Agree(l.agreement())
	for i := range len(st.keys) {
		m.Press(st.keys[i])
	}
	l.sound.Store(m)
	st.Unlock()

	defer context.AfterFunc(l.server.ctx, func() { l.end(parley.Shutdown, true) })()
	defer context.AfterFunc(ctx, func() { l.end(context.Cause(ctx), true) })()
	if err := crash.Run(func() error { m.Run(l.done, func() { l.watch(m) }); return nil }); err != nil {
		l.crashed(err)
	}
	stats := m.Stats()
	l.last.Store(&stats)
	l.sound.Store(nil) // timers of SIP's know the leg for another 32 s: the conversation is not theirs to keep
	l.release()
	return l.cause
}

// pressed reports a key that came by SIP INFO, if anybody listens.
func (l *leg) pressed(key byte) {
	l.state.Lock()
	defer l.state.Unlock()
	l.state.byInfo = true
	if m := l.sound.Load(); m != nil && !l.state.ended {
		m.Press(key)
	} else if len(l.state.keys) < 64 {
		l.state.keys += string(key)
	}
}

// watch refreshes the call's session, and ends a call that has fallen silent.
func (l *leg) watch(m *rtp.Session) {
	l.timed(time.Now())
	if err := m.Failed(); crash.Is(err) {
		l.crashed(err)
		return
	} else if err != nil {
		slog.Warn("a call ends because its sound can't be encrypted", "trunk", l.trunkID(), "error", err)
		l.end(parley.Explain(fmt.Errorf("%w: %w", parley.MediaTimeout, err), "%s", uncovered), true)
		return
	}
	l.state.Lock()
	early, answered := l.early, l.answered
	l.state.Unlock()
	if early { // most telephones say nothing before the answer
		return
	}
	since, agreed := m.Silence()
	since = min(since, time.Since(answered))
	most := l.server.silent
	if agreed {
		most = l.server.longest
	}
	if since <= most {
		return
	}
	if m.Missed() {
		slog.Warn("a call ends for want of sound; what came, came from addresses that its signalling does not name: if they are right, "+
			"a NAT changes them, and PARLEY_RTP_SOURCE=any takes such sound",
			"trunk", l.trunkID(), "peer", l.peer())
		l.end(parley.Explain(parley.MediaTimeout, strangeSound, m.Stats().Stranger), true)
		return
	}
	l.end(parley.MediaTimeout, true)
}

// strangeSound says why a call is silent although sound comes.
const strangeSound = "The far end's sound was lost. What came, came from %s, which the far end did not name, and was not heard. " +
	"If that address is right, set the trunk's rtp_source to any."

// crashed ends the call after a panic, which Run returns: its owner logs it with the call's id.
func (l *leg) crashed(err error) { l.end(fmt.Errorf("%w: %w", parley.ProviderFailure, err), true) }

// begin runs f in a goroutine that the server's Run waits for. A panic ends this call.
func (l *leg) begin(f func()) {
	l.server.begin(func() {
		defer crash.Contain(l.crashed)
		f()
	})
}

// uncovered is what the owner is told of a handshake that failed.
const uncovered = "The sound could not be encrypted: the handshake of DTLS-SRTP with the trunk failed, so nothing could be heard. " +
	"Check that the trunk shows the certificate whose fingerprint it names and that nothing in between keeps UDP back, " +
	"or set srtp to required or optional."

// trunkID is the id of the call's trunk, 0 for the carrier's and a softphone's.
func (l *leg) trunkID() int64 {
	if l.trunk == nil {
		return 0
	}
	return l.trunk.ID
}

func (l *leg) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// Hangup ends the call from our side.
func (l *leg) Hangup() { l.end(parley.AssistantHangup, true) }

// end ends the call, once. With bye the far end is told; otherwise the far end told us.
func (l *leg) end(cause error, bye bool) {
	st := &l.state
	st.Lock()
	if st.ended {
		st.Unlock()
		return
	}
	st.ended = true
	bye = bye && !(l.early && l.incoming != nil) // a call that was not answered is refused
	running := st.running
	l.cause, l.left = cause, !bye
	st.Unlock()
	if !bye {
		l.remove() // who learns of the end may rely on it: another BYE belongs to no call
	}
	close(l.done)
	if bye {
		l.begin(l.hangUp)
	}
	if !running {
		l.release()
	}
}

// hangUp sends BYE once the far end has confirmed the call, or won't any more (RFC 3261, section 15).
func (l *leg) hangUp() {
	defer l.remove()
	ctx, cancel := context.WithTimeout(context.Background(), 64*sipgo.T1)
	defer cancel()
	// A stopping server doesn't wait long for far ends that don't answer.
	defer context.AfterFunc(l.server.ctx, func() { time.AfterFunc(l.server.patient, cancel) })()
	select {
	case <-l.acked:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		ctx, cancel = context.WithTimeout(context.Background(), l.server.patient)
		defer cancel()
	}
	_, _ = l.ask(ctx, withReason(l.request(sipgo.BYE), reasonFor(l.cause))) // who doesn't answer is gone
}
