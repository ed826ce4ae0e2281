package sip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	sipgo "github.com/emiago/sipgo/sip"

	"parley"
	"parley/internal/audio"
)

// leg is a call: its dialog, its sound, and how it ends. It is there from before the first message of ours until the far end knows that it
// is over.
type leg struct {
	dialog
	begun time.Time

	socket *socket
	own    local        // our description
	early  bool         // not answered yet
	rate   atomic.Int32 // 0 until the first agreement
	media  atomic.Pointer[media]

	state struct {
		sync.Mutex
		ended   bool
		running bool
		timer   *time.Timer // the clock's
		pending *pending    // a 2xx of ours that waits for its ACK
		codec   codec       // as it was last agreed on
		dir     direction   // ours
		told    netip.AddrPort
		refer   chan frag // of a transfer under way
		handed  bool      // the far end has taken a transfer on
		keys    string    // pressed before anybody listened
	}
	done  chan struct{} // closed when the call is over
	cause error         // why; set before done is closed
	left  bool          // the far end told us; likewise
	acked chan struct{} // closed when the far end has our 2xx, or never will

	ack atomic.Pointer[sipgo.Request] // of the far end's 2xx
}

// pending is a 2xx to an INVITE until its ACK comes.
type pending struct {
	seq   uint32
	offer codecs // what the 2xx offered, where the ACK brings the answer
	acked chan struct{}
}

// newLeg is one that has room, and ports, from a peer's point of view.
func (s *Server) newLeg(peer netip.AddrPort) (*leg, error) {
	ip := s.addr.Addr() // the wildcard takes both families
	sock, err := s.ports.open(ip)
	if err != nil {
		return nil, err
	}
	if !s.enter() {
		sock.close()
		return nil, parley.Shutdown
	}
	l := &leg{socket: sock, begun: time.Now(), early: true, done: make(chan struct{}), acked: make(chan struct{})}
	l.server = s
	l.own = local{id: uint64(rand.Uint32()), addr: netip.AddrPortFrom(s.shown(peer.Addr()), uint16(sock.port))}
	return l, nil
}

// add lets messages find the leg.
func (l *leg) add() {
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	l.server.legs[l.key()] = l
}

func (l *leg) remove() {
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	delete(l.server.legs, l.key())
}

// release gives back what newLeg took: the ports and the room.
func (l *leg) release() {
	l.socket.close()
	l.server.free()
	l.server.leave()
}

func (l *leg) now() time.Duration { return time.Since(l.begun) }

// Rate is that of all frames in both directions.
func (l *leg) Rate() audio.Rate { return audio.Rate(l.rate.Load()) }

// Dial sends keys, by RFC 4733 where that was agreed on, otherwise as tones. Sound that is due meanwhile is not sent.
func (l *leg) Dial(digits string) error {
	if !audio.ValidKeys(digits) {
		return fmt.Errorf("dial %q: keys are 0-9, *, # and A-D", digits)
	}
	m := l.media.Load()
	if m == nil {
		return errors.New("dial keys: the leg isn't running")
	}
	m.dialled.Lock()
	defer m.dialled.Unlock()
	m.dialled.keys += digits
	return nil
}

// agreeLocked takes over what a description agreed on.
func (l *leg) agreeLocked(c codec, m *stream) {
	st := &l.state
	l.rate.Store(int32(c.format.Rate()))
	st.codec, st.dir = c, m.mirror()
	st.told = netip.AddrPortFrom(m.addr, uint16(m.port))
	l.apply()
}

// apply tells the sound what was agreed on. Without a usable address in the description the far end is where its signalling is.
func (l *leg) apply() {
	if m := l.media.Load(); m != nil {
		st := &l.state
		m.agree(st.codec, st.dir, st.told, l.peer(), l.now())
	}
}

func (l *leg) peer() netip.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hop.addr.Addr()
}

// Run moves sound between the network and p. The errors are parley.CustomerHangup, parley.Transferred when the far end went where Transfer
// sent it, parley.MediaTimeout, parley.Shutdown, ctx's cause, or what is wrong. While the far end holds the call p hears nothing and isn't
// ticked: it stands still.
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
	m := newMedia(l.socket, l.Rate(), p)
	m.latch.loose = l.server.config.Loose
	m.agree(st.codec, st.dir, st.told, l.peer(), l.now())
	for i := range len(st.keys) {
		m.info(st.keys[i], l.now())
	}
	l.media.Store(m)
	st.Unlock()

	defer context.AfterFunc(l.server.ctx, func() { l.end(parley.Shutdown, true) })()
	var receiver sync.WaitGroup
	receiver.Go(func() { l.receive(m) })
	l.clock(ctx, m)
	_ = l.socket.rtp.SetReadDeadline(time.Unix(1, 0))
	receiver.Wait()
	l.media.Store(nil) // timers of SIP's know the leg for another 32 s: the conversation is not theirs to keep
	l.release()
	return l.cause
}

// pressed tells a key that came by SIP INFO, when somebody listens.
func (l *leg) pressed(key byte) {
	l.state.Lock()
	defer l.state.Unlock()
	if m := l.media.Load(); m != nil && !l.state.ended {
		m.info(key, l.now())
	} else if len(l.state.keys) < 64 {
		l.state.keys += string(key)
	}
}

// receive reads packets until the socket's deadline is set.
func (l *leg) receive(m *media) {
	var buf [2048]byte
	for {
		n, from, err := l.socket.rtp.ReadFromUDPAddrPort(buf[:])
		if l.ended() {
			return
		}
		if err != nil { // an ICMP message that came back for a packet of ours
			continue
		}
		m.packet(buf[:n], netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), l.now())
	}
}

const (
	frameTime  = audio.FrameTime
	mostBehind = 2 // frames that are made up for; a longer stall is a gap
)

// clock ticks every 20 ms until the call is over. The times are counted from the beginning, so that nothing drifts.
func (l *leg) clock(ctx context.Context, m *media) {
	next := l.now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	l.state.Lock()
	l.state.timer = timer
	l.state.Unlock()
	defer context.AfterFunc(ctx, func() { l.end(context.Cause(ctx), true) })()
	for {
		<-timer.C // who ends the call sets it off
		if l.ended() {
			return
		}
		now := l.now()
		missed := int((now - next) / frameTime)
		if missed <= mostBehind {
			missed = 0
		}
		next += time.Duration(missed) * frameTime
		m.tick(now, missed)
		next += frameTime
		since, agreed := m.silence(now)
		if agreed && since > l.server.longest || !agreed && since > l.server.silent {
			if m.missed() {
				slog.Warn("a call ends for want of sound; what came, came from addresses that its signalling does not name: if they are right, a NAT changes them, and PARLEY_RTP_SOURCE=any takes such sound",
					"trunk", l.trunkID(), "peer", l.peer())
			}
			l.end(parley.MediaTimeout, true)
			return
		}
		timer.Reset(next - l.now())
		if l.ended() { // just before, and what end has set is lost
			return
		}
	}
}

// trunkID is that of the trunk that the call came or went over, 0 for the carrier's and a softphone's.
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

// end ends the call, once. With bye the far end is told; otherwise it has told us.
func (l *leg) end(cause error, bye bool) {
	st := &l.state
	st.Lock()
	if st.ended {
		st.Unlock()
		return
	}
	st.ended = true
	running := st.running
	l.cause, l.left = cause, !bye
	close(l.done)
	if st.timer != nil {
		st.timer.Reset(0)
	}
	st.Unlock()
	if bye {
		l.server.begin(l.hangUp)
	} else {
		l.remove()
	}
	if !running {
		l.release()
	}
}

// hangUp sends BYE, when the far end has confirmed the call or won't any more (RFC 3261, section 15).
func (l *leg) hangUp() {
	defer l.remove()
	ctx, cancel := context.WithTimeout(context.Background(), 64*sipgo.T1)
	defer cancel()
	// A stopping server doesn't wait long for those who don't answer.
	defer context.AfterFunc(l.server.ctx, func() { time.AfterFunc(l.server.patient, cancel) })()
	select {
	case <-l.acked:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		ctx, cancel = context.WithTimeout(context.Background(), l.server.patient)
		defer cancel()
	}
	_, _ = l.ask(ctx, l.request(sipgo.BYE)) // who doesn't answer is gone
}
