package rtc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/webrtc/v4"

	"parley/internal/audio"
	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/rtp"
)

// Leg is a browser that calls. Its frames are of 16 kHz.
type Leg struct {
	ID string // a secret between the browser and us

	server *Server
	from   string // whom its offer was counted against
	talks  bool   // it counts among those that are connected; the server's lock guards it
	pc     *webrtc.PeerConnection
	voice  *voice
	open   chan struct{} // closed when sound can flow
	opened sync.Once
	done   chan struct{}         // closed when the call is over
	cause  error                 // why; set before done is closed
	media  atomic.Pointer[media] // while Run runs

	connecting sync.Mutex // guards what follows, and the order of descriptions
	offer      *Offer
	ours       Fragment
	restarts   int
	helpers    []ICEServer // the operator's servers, with a password of this call
	relay      [2]string   // name and password at our own relay

	mu      sync.Mutex
	ended   bool
	running chan struct{} // closed when Run has returned; nil before it
	streams int           // of RTP and RTCP that the browser began
	offered int           // data channels
	channel *webrtc.DataChannel
	waiting []string        // for the channel to open
	results chan ToolResult // nil: the browser runs no tools
}

// answer makes the connection's half that is ours.
func (l *Leg) answer(ctx context.Context, o *Offer) (string, error) {
	proof, err := l.server.certificate()
	if err != nil {
		return "", fmt.Errorf("make a certificate: %w", err)
	}
	engine := l.server.engine
	receive(&engine.BufferFactory, l)
	if o.begin {
		_ = engine.SetAnsweringDTLSRole(webrtc.DTLSRoleClient) // it is one
	}
	api := webrtc.NewAPI(webrtc.WithSettingEngine(engine), webrtc.WithMediaEngine(l.server.media),
		webrtc.WithInterceptorRegistry(nil))
	l.pc, err = api.NewPeerConnection(webrtc.Configuration{Certificates: []webrtc.Certificate{proof}})
	if err != nil {
		return "", fmt.Errorf("answer a browser: %w", err)
	}
	l.pc.OnDataChannel(l.attach)
	l.pc.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		switch state {
		case webrtc.PeerConnectionStateConnected:
			l.opened.Do(func() { close(l.open) })
		case webrtc.PeerConnectionStateFailed:
			l.end(parley.MediaTimeout)
		case webrtc.PeerConnectionStateClosed: // the browser has said goodbye
			l.end(parley.CustomerHangup)
		}
	})
	l.connecting.Lock()
	defer l.connecting.Unlock()
	l.offer = o
	answer, err := l.negotiate(ctx, o)
	if err != nil {
		return "", err
	}
	l.help()
	return o.unbundled(describe(answer, o.opus)), nil
}

// negotiate takes an offer, and returns our answer with all of our candidates.
func (l *Leg) negotiate(ctx context.Context, o *Offer) (string, error) {
	bad := func(err error) (string, error) {
		return "", parley.Errorf(parley.Invalid, "The SDP offer can't be answered: %v.", err)
	}
	if err := l.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: o.bundled()}); err != nil {
		return bad(err)
	}
	if len(l.pc.GetSenders()) == 0 {
		if _, err := l.pc.AddTrack(l.voice); err != nil {
			return bad(err)
		}
	}
	answer, err := l.pc.CreateAnswer(nil)
	if err != nil {
		return bad(err)
	}
	gathered := webrtc.GatheringCompletePromise(l.pc)
	if err := l.pc.SetLocalDescription(answer); err != nil {
		return bad(err)
	}
	select {
	case <-gathered:
	case <-l.done:
		return "", ErrOver
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	text := l.pc.LocalDescription().SDP
	l.ours, err = ReadFragment(text)
	return text, err
}

// group is the line of a bundle of the sound alone.
func (o *Offer) group() string { return "a=group:BUNDLE " + o.lone + "\r\n" }

// bundled is the offer for a library that answers bundles only: the sound is one of its own where there is none.
func (o *Offer) bundled() string {
	if o.lone == "" {
		return o.text
	}
	head, media, _ := strings.Cut(o.text, "\nm=")
	return head + "\n" + o.group() + "m=" + media
}

// unbundled is the answer, without a bundle where none was offered (RFC 9143, section 7.3).
func (o *Offer) unbundled(answer string) string {
	if o.lone == "" {
		return answer
	}
	return strings.Replace(answer, o.group(), "", 1)
}

// describe says in our answer how we want Opus (RFC 7587, section 6.1): as wide as we hear and at a rate that is good
// for speech; what is not said is off: stereo, silence suppression, and the redundancy that our decoder has no use
// for.
func describe(answer, opus string) string {
	lines := strings.Split(answer, "\r\n")
	out := lines[:0:0]
	for _, line := range lines {
		if strings.HasPrefix(line, "a=fmtp:"+opus+" ") {
			continue
		}
		out = append(out, line)
		if strings.HasPrefix(line, "a=rtpmap:"+opus+" ") {
			out = append(out, "a=fmtp:"+opus+" minptime=10;maxplaybackrate=16000;maxaveragebitrate=32000")
		}
	}
	return strings.Join(out, "\r\n")
}

// attend waits for the browser, tells then of it, and cleans up when the call is over.
func (l *Leg) attend(then func(*Leg, error)) {
	defer l.release()
	defer crash.Contain(l.crashed)
	wait := time.NewTimer(l.server.Connect)
	defer wait.Stop()
	stop := context.AfterFunc(l.server.ctx, func() { l.end(parley.Shutdown) })
	defer stop()
	select {
	case <-l.open:
		if !l.server.connect(l) {
			l.end(errFull)
			then(l, errFull)
			return
		}
		then(l, nil)
		<-l.done
	case <-wait.C:
		l.end(parley.Unreachable)
		then(l, parley.Unreachable)
	case <-l.done:
		then(l, l.cause)
	}
}

// release gives back what Answer took, when nobody uses it any more.
func (l *Leg) release() {
	l.end(parley.CustomerHangup)
	l.mu.Lock()
	running := l.running
	l.mu.Unlock()
	if running != nil {
		<-running
	}
	if l.pc != nil {
		_ = l.pc.GracefulClose() // waits for its goroutines
	}
	s := l.server
	if s.relay != nil {
		s.relay.dismiss(l.relay[0])
	}
	s.mu.Lock()
	delete(s.legs, l.ID)
	if l.talks {
		s.talking--
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(w *Leg) bool { return w == l })
	s.mu.Unlock()
	s.work.Done()
}

// end ends the call, once.
func (l *Leg) end(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended, l.cause = true, cause
	close(l.done)
}

// crashed ends the call after a panic, which Run returns: its owner logs it with the call's id.
func (l *Leg) crashed(err error) { l.end(fmt.Errorf("%w: %w", parley.ProviderFailure, err)) }

// Done is closed when the call is over.
func (l *Leg) Done() <-chan struct{} { return l.done }

// Hangup ends the call for the assistant.
func (l *Leg) Hangup() { l.end(parley.AssistantHangup) }

// Rate is that of all frames in both directions.
func (l *Leg) Rate() audio.Rate { return audio.Wide }

// Dial has nobody to send keys to.
func (l *Leg) Dial(string) error { return errors.New("dial keys: a browser takes none") }

// Run moves sound between the browser and p. The errors are parley.CustomerHangup, parley.MediaTimeout,
// parley.Shutdown, or ctx's cause.
func (l *Leg) Run(ctx context.Context, p audio.Peer) error {
	l.mu.Lock()
	if l.running != nil {
		l.mu.Unlock()
		return errors.New("the leg has run already")
	}
	running := make(chan struct{})
	defer close(running)
	l.running = running
	l.mu.Unlock()
	m := newMedia(l.voice, p)
	l.media.Store(m)
	l.clock(ctx, m)
	l.media.Store(nil)
	m.peer.Stop()
	return l.cause
}

// ---- What comes from the network, decrypted ----

// maxStreams is more than a browser with one microphone begins, also when it changes it, with their RTCP.
const maxStreams = 64

// receive has a connection's packets come to the leg itself, from the goroutine that decrypts them: what pion would
// do is to keep them for another one. T is the type by which pion tells RTP and RTCP apart; the module that names it
// is not ours to require.
func receive[T ~int](factory *func(T, uint32) io.ReadWriteCloser, l *Leg) {
	*factory = func(kind T, _ uint32) io.ReadWriteCloser {
		l.mu.Lock()
		l.streams++
		many := l.streams > maxStreams
		l.mu.Unlock()
		if many {
			l.end(parley.CustomerHangup)
		}
		return &stream{leg: l, sound: kind == 1, closed: make(chan struct{})}
	}
}

// stream takes the packets of one source.
type stream struct {
	leg    *Leg
	sound  bool // not RTCP, of which nothing is used
	closed chan struct{}
	once   sync.Once
}

// Write takes a packet. Sound from before the leg's Run or after it is heard by nobody. A packet that causes a panic
// ends its own call.
func (s *stream) Write(packet []byte) (int, error) {
	defer crash.Contain(s.leg.crashed)
	if m := s.leg.media.Load(); s.sound && m != nil {
		m.packet(packet, s.leg.now(m))
	}
	return len(packet), nil
}

// Read is what pion reads by: nothing is left to be read.
func (s *stream) Read([]byte) (int, error) {
	<-s.closed
	return 0, io.EOF
}

func (s *stream) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

func (l *Leg) now(m *media) time.Duration { return time.Since(m.begun) }

// grid is what the ticks of all calls fall on: those that are due together wake the process once.
const grid = audio.FrameTime / 2

// clock ticks every 20 ms until the call is over.
func (l *Leg) clock(ctx context.Context, m *media) {
	defer context.AfterFunc(ctx, func() { l.end(context.Cause(ctx)) })()
	c := rtp.NewClock(m.begun)
	c.Pace = l.server.Pace
	c.Align(l.server.began, grid)
	c.Run(l.done, func(at time.Duration, missed int) {
		defer crash.Contain(l.crashed)
		m.tick(at, missed)
		if m.silence(at) > l.server.Silence {
			l.end(parley.MediaTimeout)
		}
	})
}

// ---- The data channel "parley": what happens, as JSON, the keys of a keypad, and what tools in the browser answer ----

// ChannelLabel is what the browser calls the channel.
const ChannelLabel = "parley"

const (
	maxWaiting  = 64       // messages before the channel opens
	maxBuffered = 1 << 20  // bytes that a browser may be behind
	maxChannels = 8        // that a browser may open: each takes a goroutine and 64 KB
	maxMessage  = 256      // bytes of a message that is looked at
	maxResult   = 64 << 10 // likewise, where the browser runs tools; of a longer one the channel ends
	maxResults  = 8        // that nobody has read
)

func (l *Leg) attach(d *webrtc.DataChannel) {
	l.mu.Lock()
	l.offered++
	many := l.offered > maxChannels
	l.mu.Unlock()
	if many {
		l.end(parley.CustomerHangup)
	}
	if d.Label() != ChannelLabel {
		return
	}
	d.OnOpen(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.channel != nil {
			return
		}
		l.channel = d
		for _, text := range l.waiting {
			_ = d.SendText(text) // a browser that has left is seen elsewhere
		}
		l.waiting = nil
	})
	d.OnMessage(func(msg webrtc.DataChannelMessage) {
		defer crash.Contain(l.crashed)
		var in struct {
			Type, Key string
			ToolResult
		}
		size := maxMessage
		if l.results != nil {
			size = maxResult
		}
		if len(msg.Data) > size || json.Unmarshal(msg.Data, &in) != nil {
			return
		}
		switch m := l.media.Load(); {
		case in.Type == "tool_result":
			select {
			case l.results <- in.ToolResult:
			default: // more than anybody asked for
			}
		case in.Type == "digit" && len(in.Key) == 1 && audio.ValidKeys(in.Key) && m != nil:
			m.digit(in.Key[0], l.now(m))
		}
	})
}

// ToolResult is what a browser answers that was asked to run a tool.
type ToolResult struct {
	ID     string          `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  string          `json:"error"`
}

// Results are what tools in the browser have answered.
func (l *Leg) Results() <-chan ToolResult { return l.results }

// Tell sends the browser something as JSON, in order. It doesn't wait; what a browser is too slow to take is dropped.
func (l *Leg) Tell(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended && l.channel == nil:
	case l.channel == nil && len(l.waiting) < maxWaiting:
		l.waiting = append(l.waiting, string(text))
	case l.channel != nil && l.channel.BufferedAmount() < maxBuffered:
		_ = l.channel.SendText(string(text))
	}
}
