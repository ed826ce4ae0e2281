package rtc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/logging"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
	sample "github.com/pion/webrtc/v4/pkg/media"

	"parley/internal/audio"
	"parley/internal/parley"
	sound "parley/internal/rtp"
)

// patience bounds every wait: it only guards against a hang.
const patience = 20 * time.Second

// listening returns a server on loopback, whose goroutines are gone when the test is over.
func listening(t *testing.T, c Config) *Server {
	t.Helper()
	before := runtime.NumGoroutine()
	c.Listen = "127.0.0.1:0"
	s := New(c)
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		gone(t, before)
	})
	return s
}

// gone waits until there are no more goroutines than before.
func gone(t *testing.T, before int) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before:\n%s", n, before, buf[:runtime.Stack(buf, true)])
	}
}

// browser is a caller's end of a call.
type browser struct {
	*webrtc.PeerConnection
	t       *testing.T
	mic     *webrtc.TrackLocalStaticSample
	raw     *voice // for packets that a test makes itself
	channel *webrtc.DataChannel
	open    chan bool
	told    chan string
	heard   chan []int16 // what the far end says, 20 ms each
	states  chan webrtc.PeerConnectionState
	gaps    bool // packets may be missing
}

func call(t *testing.T, change ...func(*webrtc.SettingEngine)) *browser {
	t.Helper()
	var e webrtc.SettingEngine
	for _, c := range change {
		c(&e)
	}
	e.SetIncludeLoopbackCandidate(true)
	e.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	e.LoggerFactory = &logging.DefaultLoggerFactory{DefaultLogLevel: logging.LogLevelDisabled}
	m := new(webrtc.MediaEngine)
	if err := m.RegisterDefaultCodecs(); err != nil {
		t.Fatal(err)
	}
	pc, err := webrtc.NewAPI(webrtc.WithSettingEngine(e), webrtc.WithMediaEngine(m),
		webrtc.WithInterceptorRegistry(nil)).NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{PeerConnection: pc, t: t, told: make(chan string, 100), open: make(chan bool, 1),
		heard: make(chan []int16, 1000), states: make(chan webrtc.PeerConnectionState, 10)}
	t.Cleanup(func() { _ = pc.GracefulClose() })
	if b.mic, err = webrtc.NewTrackLocalStaticSample(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus,
		ClockRate: 48000, Channels: 2}, "mic", "mic"); err == nil {
		_, err = pc.AddTrack(b.mic)
	}
	if err != nil {
		t.Fatal(err)
	}
	if b.channel, err = pc.CreateDataChannel(ChannelLabel, nil); err != nil {
		t.Fatal(err)
	}
	b.channel.OnMessage(func(m webrtc.DataChannelMessage) { b.told <- string(m.Data) })
	b.channel.OnOpen(func() { b.open <- true })
	pc.OnConnectionStateChange(func(s webrtc.PeerConnectionState) { b.states <- s })
	pc.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		dec := audio.NewDecoder(audio.G722)
		if track.Codec().MimeType != webrtc.MimeTypeG722 {
			t.Errorf("we hear %s", track.Codec().MimeType)
		}
		var last *rtp.Packet
		for {
			p, _, err := track.ReadRTP()
			if err != nil {
				return
			}
			if last != nil && !b.gaps && (p.SequenceNumber != last.SequenceNumber+1 || (p.Timestamp-last.Timestamp)%160 != 0) {
				t.Errorf("packet %d at %d follows %d at %d", p.SequenceNumber, p.Timestamp, last.SequenceNumber,
					last.Timestamp)
			}
			last = p
			select {
			case b.heard <- dec.Decode(nil, p.Payload):
			default:
			}
		}
	})
	return b
}

func (b *browser) offer() string {
	b.t.Helper()
	o, err := b.CreateOffer(nil)
	if err == nil {
		err = b.SetLocalDescription(o)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return o.SDP
}

// dial calls the server; then gets the server's side.
func (b *browser) dial(s *Server, then func(*Leg, error)) *Leg {
	b.t.Helper()
	o, err := ReadOffer(b.offer())
	if err != nil {
		b.t.Fatal(err)
	}
	leg, answer, err := s.Answer(b.t.Context(), o, then)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer}); err != nil {
		b.t.Fatalf("%v in\n%s", err, answer)
	}
	return leg
}

// speak sends packets, one every 20 ms, until the context ends.
func (b *browser) speak(ctx context.Context, packets [][]byte) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = b.mic.WriteSample(sample.Sample{Data: packets[i%len(packets)], Duration: 20 * time.Millisecond})
		}
	}
}

// speech reads the packets of an Opus file: a sentence, spoken by flite and encoded by libopus as browsers do when
// asked for 16 kHz.
func speech(t testing.TB) (packets [][]byte) {
	t.Helper()
	data, err := os.ReadFile("testdata/speech.ogg")
	if err != nil {
		t.Fatal(err)
	}
	var packet []byte
	for len(data) >= 27 { // RFC 3533: pages of segments; a segment below 255 bytes ends a packet
		n := int(data[26])
		table, body := data[27:27+n], data[27+n:]
		for _, size := range table {
			packet = append(packet, body[:size]...)
			if body = body[size:]; size < 255 {
				packets = append(packets, packet)
				packet = nil
			}
		}
		data = body
	}
	return packets[2:] // without the headers
}

// listener is a peer that records what it hears and plays a tone.
type listener struct {
	mu     sync.Mutex
	frames int     // heard
	energy float64 // of all frames
	ticks  int
	wanted float64 // of the frames that came in order
	digits string
	phase  float64
	told   chan struct{} // gets a token when something came
}

func newListener() *listener { return &listener{told: make(chan struct{}, 1)} }

func (p *listener) note() {
	select {
	case p.told <- struct{}{}:
	default:
	}
}

func energy(f []int16) (sum float64) {
	for _, s := range f {
		sum += float64(s) * float64(s)
	}
	return sum
}

func (p *listener) Hear(f audio.Frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frames++
	p.energy += energy(f)
	p.note()
}

func (p *listener) Tick(in, out audio.Frame) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ticks++
	p.wanted += energy(in)
	for i := range out {
		out[i] = int16(8000 * math.Sin(p.phase))
		p.phase += 2 * math.Pi * 1000 / 16000
	}
	p.note()
	return true
}

func (p *listener) Digit(key byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.digits += string(key)
	p.note()
}

// until waits until the listener has received something.
func (p *listener) until(t *testing.T, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		p.mu.Lock()
		yes := ok()
		p.mu.Unlock()
		if yes {
			return
		}
		select {
		case <-p.told:
		case <-deadline:
			t.Fatalf("it did not come: %+v", p)
		}
	}
}

// is waits for a value from a channel.
func is[T comparable](t *testing.T, ch <-chan T, want T) {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case got := <-ch:
			if got == want {
				return
			}
		case <-deadline:
			t.Fatalf("%v did not come", want)
		}
	}
}

func TestCall(t *testing.T) {
	s := listening(t, Config{})
	b := call(t)
	p := newListener()
	ended := make(chan error, 1)
	began := time.Now()
	leg := b.dial(s, func(l *Leg, err error) {
		if err != nil {
			t.Errorf("no call: %v", err)
			return
		}
		t.Logf("connected after %v", time.Since(began))
		l.Tell(map[string]string{"type": "turn", "text": "Hello"})
		ended <- l.Run(context.Background(), p)
	})
	is(t, b.states, webrtc.PeerConnectionStateConnected)
	is(t, b.told, `{"text":"Hello","type":"turn"}`)
	ctx, quiet := context.WithCancel(t.Context())
	var speaking sync.WaitGroup
	speaking.Go(func() { b.speak(ctx, speech(t)) })
	p.until(t, func() bool { return p.frames > 60 && p.energy > 1e9 && p.wanted > 1e9 && p.ticks > 60 })

	// What it says is a tone of 1 kHz at 16 kHz.
	var tone []int16
	for len(tone) < 8000 {
		select {
		case f := <-b.heard:
			tone = append(tone, f...)
		case <-time.After(patience):
			t.Fatal("nothing is heard")
		}
	}
	tone = tone[len(tone)-3200:]
	var re, im float64
	for i, v := range tone {
		re += float64(v) * math.Cos(2*math.Pi*1000/16000*float64(i))
		im += float64(v) * math.Sin(2*math.Pi*1000/16000*float64(i))
	}
	if part := 2 * (re*re + im*im) / float64(len(tone)) / energy(tone); part < 0.95 ||
		energy(tone)/float64(len(tone)) < 2e7 {
		t.Errorf("%.3f of what is heard is the tone", part)
	}
	for _, text := range []string{`{"type":"digit","key":"5"}`, `{"type":"digit","key":"x"}`, `no json`,
		`{"type":"digit","key":"55"}`, `{"type":"digit","key":"#"}`} {
		if err := b.channel.SendText(text); err != nil {
			t.Fatal(err)
		}
	}
	p.until(t, func() bool { return p.digits == "5#" })

	if err := leg.Dial("1"); err == nil {
		t.Error("a browser took keys")
	}
	if err := leg.Run(t.Context(), p); err == nil || errors.Is(err, parley.CustomerHangup) {
		t.Errorf("it ran twice: %v", err)
	}
	quiet()
	speaking.Wait()
	if err := b.GracefulClose(); err != nil {
		t.Fatal(err)
	}
	is(t, ended, error(parley.CustomerHangup))
	<-leg.Done()
	leg.Tell("nobody hears it")
}

func TestCallsEnd(t *testing.T) {
	stop := errors.New("stop")
	for _, c := range []struct {
		name   string
		config Config
		end    func(*Server, *Leg, context.CancelCauseFunc)
		want   error
	}{
		{"silence", Config{Silence: 300 * time.Millisecond}, func(*Server, *Leg, context.CancelCauseFunc) {},
			parley.MediaTimeout},
		{"hung up over HTTP", Config{}, func(s *Server, l *Leg, _ context.CancelCauseFunc) {
			if !s.Hangup(l.ID) {
				t.Error("it is not known")
			}
		}, parley.CustomerHangup},
		{"hung up by us", Config{}, func(_ *Server, _ *Leg, cancel context.CancelCauseFunc) { cancel(stop) }, stop},
		{"shutdown", Config{}, func(s *Server, _ *Leg, _ context.CancelCauseFunc) { go s.Close() }, parley.Shutdown},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := listening(t, c.config)
			b := call(t)
			p := newListener()
			ctx, cancel := context.WithCancelCause(t.Context())
			ended := make(chan error, 1)
			leg := b.dial(s, func(l *Leg, err error) {
				if err == nil {
					err = l.Run(ctx, p)
				}
				ended <- err
			})
			p.until(t, func() bool { return p.ticks > 0 })
			c.end(s, leg, cancel)
			is(t, ended, c.want)
			is(t, b.states, webrtc.PeerConnectionStateClosed) // the browser is told
		})
	}
}

// cable is a network that can be unplugged.
type cable struct {
	net.PacketConn
	out atomic.Bool
}

func (c *cable) WriteTo(b []byte, to net.Addr) (int, error) {
	if c.out.Load() {
		return len(b), nil
	}
	return c.PacketConn.WriteTo(b, to)
}

func TestNetworkThatGoes(t *testing.T) {
	s := listening(t, Config{Lost: 2 * time.Second})
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{PacketConn: socket}
	b := call(t, func(e *webrtc.SettingEngine) {
		mux := webrtc.NewICEUDPMux(nil, c)
		e.SetICEUDPMux(mux)
		t.Cleanup(func() { mux.Close() })
	})
	p := newListener()
	ended := make(chan error, 1)
	b.dial(s, func(l *Leg, err error) {
		if err == nil {
			err = l.Run(context.Background(), p)
		}
		ended <- err
	})
	is(t, b.states, webrtc.PeerConnectionStateConnected)
	ctx, quiet := context.WithCancel(t.Context())
	var speaking sync.WaitGroup
	speaking.Go(func() { b.speak(ctx, speech(t)) })
	p.until(t, func() bool { return p.frames > 10 })
	c.out.Store(true)
	is(t, ended, error(parley.MediaTimeout))
	quiet()
	speaking.Wait()
}

func TestCallsThatNeverBegin(t *testing.T) {
	s := listening(t, Config{Connect: time.Second, MaxCalls: 1})
	o, err := ReadOffer(call(t).offer())
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan error, 1)
	leg, answer, err := s.Answer(t.Context(), o, func(_ *Leg, err error) { told <- err })
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a=ice-lite", "a=setup:passive", "maxplaybackrate=16000", "G722/8000",
		"a=candidate:", "a=end-of-candidates"} {
		if !strings.Contains(answer, want) {
			t.Errorf("no %s in\n%s", want, answer)
		}
	}
	is(t, told, error(parley.Unreachable))
	<-leg.Done()
	if err := leg.Run(t.Context(), newListener()); !errors.Is(err, parley.Unreachable) {
		t.Errorf("run afterwards: %v", err)
	}

	// A browser that leaves before it is connected, and a server that closes.
	b := call(t)
	o, _ = ReadOffer(b.offer())
	for s.legsNow() > 0 {
		runtime.Gosched()
	}
	if leg, _, err = s.Answer(t.Context(), o, func(_ *Leg, err error) { told <- err }); err != nil {
		t.Fatal(err)
	}
	if !s.Hangup(leg.ID) || s.Hangup("nobody") {
		t.Error("hanging up")
	}
	is(t, told, error(parley.CustomerHangup))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Answer(t.Context(), o, nil); err == nil {
		t.Error("a closed server answers")
	}
}

// Offers that are not followed by a connection occupy no line, and only so many of one address may wait.
func TestJunkOffers(t *testing.T) {
	s := listening(t, Config{Connect: time.Minute, MaxCalls: 1})
	offer := func(from string) error {
		o, err := ReadOffer(call(t).offer())
		if err != nil {
			t.Fatal(err)
		}
		o.From = from
		_, _, err = s.Answer(t.Context(), o, func(*Leg, error) {})
		return err
	}
	for i := range maxOffersFrom {
		if err := offer("192.0.2.1"); err != nil {
			t.Fatalf("offer %d: %v", i, err)
		}
	}
	if err := offer("192.0.2.1"); !errors.Is(err, ErrMany) {
		t.Errorf("one more of the same address: %v", err)
	}
	for range maxOffersFrom {
		if err := offer("192.0.2.2"); err != nil {
			t.Errorf("another address: %v", err)
		}
	}
	// A caller who really connects gets the line, and only then is none left.
	p := newListener()
	l, ended := call(t).talk(s, p)
	if err := offer("192.0.2.3"); !errors.Is(err, errFull) {
		t.Errorf("one more than there is room for: %v", err)
	}
	l.Hangup()
	is(t, ended, error(parley.AssistantHangup))
}

// While the sound of calls is sent late, browsers are told when to try again.
func TestLateSoundRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := New(Config{Pace: sound.NewPace(time.Nanosecond)})
		go s.Pace.Run(ctx)
		done := make(chan struct{})
		var clocks sync.WaitGroup
		for range 2 {
			c := sound.NewClock(time.Now())
			c.Pace = s.Pace
			clocks.Go(func() { c.Run(done, func(time.Duration, int) { time.Sleep(25 * time.Millisecond) }) }) // the next frame is late
		}
		if err := s.admit(&Leg{server: s, ID: "1", done: make(chan struct{})}); err != nil {
			t.Errorf("before anything is late: %v", err)
		}
		time.Sleep(10 * time.Second)
		err := s.admit(&Leg{server: s, ID: "2", done: make(chan struct{})})
		var later interface{ Wait() int }
		if !isKind(err, parley.Unavailable) || !errors.As(err, &later) || later.Wait() != 10 {
			t.Errorf("while sound is late: %v", err)
		}
		close(done)
		clocks.Wait()
	})
}

// When there are more offers than are kept, the oldest is dropped.
func TestOldOffersGiveWay(t *testing.T) {
	s := New(Config{MaxCalls: 1})
	legs := make([]*Leg, maxOffers+1)
	for i := range legs {
		legs[i] = &Leg{server: s, ID: strconv.Itoa(i), done: make(chan struct{})}
		if err := s.admit(legs[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i, l := range legs {
		select {
		case <-l.done:
			if i > 0 || !errors.Is(l.cause, parley.Unreachable) {
				t.Errorf("offer %d gives way: %v", i, l.cause)
			}
		default:
			if i == 0 {
				t.Error("the oldest stays")
			}
		}
	}
	if s.connect(legs[0]) || !s.connect(legs[1]) || s.connect(legs[2]) {
		t.Error("the one line is not the first's who connects")
	}
	for _, l := range legs {
		l.release()
	}
	if len(s.legs)+len(s.waiting)+s.talking != 0 {
		t.Errorf("%d legs are left, %d wait, %d talk", len(s.legs), len(s.waiting), s.talking)
	}
}

// An offer gives its place back if answering it panics, or if something panics after the answer.
func TestPanicsGiveTheirPlaceBack(t *testing.T) {
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.DiscardHandler))
	s := listening(t, Config{Connect: 200 * time.Millisecond})
	o, err := ReadOffer(call(t).offer())
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a context that isn't there is nothing to panic over")
			}
		}()
		//lint:ignore SA1012 it is to panic
		s.Answer(nil, o, func(*Leg, error) {})
	}()
	if n := s.legsNow(); n != 0 {
		t.Errorf("%d legs are left", n)
	}
	if _, _, err := s.Answer(t.Context(), o, func(*Leg, error) { panic("a test's") }); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); s.legsNow() > 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("its leg is left")
		}
	}
}

// Browsers never reject the certificate of a server that has run for weeks as too old.
func TestCertificateOfWeeks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		for day := range 60 {
			c, err := s.certificate()
			if err != nil {
				t.Fatal(err)
			}
			if left := time.Until(c.Expires()); left < 20*24*time.Hour {
				t.Fatalf("on day %d it is good for %s", day, left)
			}
			time.Sleep(24 * time.Hour)
		}
	})
}

func (s *Server) legsNow() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.legs)
}

func TestExternalAddress(t *testing.T) {
	s := New(Config{Listen: "127.0.0.1:0", External: netip.MustParseAddr("203.0.113.7")})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o, err := ReadOffer(call(t).offer())
	if err != nil {
		t.Fatal(err)
	}
	leg, answer, err := s.Answer(t.Context(), o, func(*Leg, error) {})
	if err != nil || !strings.Contains(answer, " 203.0.113.7 ") || strings.Contains(answer, " 127.0.0.1 ") {
		t.Errorf("%v\n%s", err, answer)
	}
	leg.end(parley.CustomerHangup)
	if err := New(Config{Listen: s.Addr().String()}).Listen(); err == nil {
		t.Error("a port that is taken was opened")
	}
}

// talk keeps a call going until the browser's test is over; p gets what the far end hears.
func (b *browser) talk(s *Server, p *listener) (leg *Leg, ended chan error) {
	b.t.Helper()
	ended = make(chan error, 1)
	leg = b.dial(s, func(l *Leg, err error) {
		if err == nil {
			err = l.Run(context.Background(), p)
		}
		ended <- err
	})
	is(b.t, b.states, webrtc.PeerConnectionStateConnected)
	ctx, quiet := context.WithCancel(context.Background())
	var speaking sync.WaitGroup
	speaking.Go(func() { b.speak(ctx, speech(b.t)) })
	b.t.Cleanup(func() {
		quiet()
		speaking.Wait()
	})
	p.until(b.t, func() bool { return p.frames > 10 })
	return leg, ended
}

// goesOn waits until a listener has heard as much speech again as it has heard so far.
func (p *listener) goesOn(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	before := p.frames
	p.mu.Unlock()
	p.until(t, func() bool { return p.frames > before+25 })
}

// A server without a configured address is reached at each of the machine's addresses.
func TestEveryAddress(t *testing.T) {
	s := New(Config{Listen: "0.0.0.0:0"})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p := newListener()
	call(t).talk(s, p)
	at, err := net.ResolveUDPAddr("udp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	every, err := everyAddress(at)
	if err != nil || len(every) == 0 || len(s.mux.GetListenAddresses()) != len(every) {
		t.Errorf("%v %v; it listens on %v", every, err, s.mux.GetListenAddresses())
	}
	if err := New(Config{Listen: s.Addr().String()}).Listen(); err == nil {
		t.Error("a port that is taken was opened")
	}
}

// sdp is an offer as Chromium makes it, reduced to the relevant lines.
const sdp = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111 9 0\r\n" +
	"c=IN IP4 0.0.0.0\r\na=ice-ufrag:abcd\r\n" +
	"a=ice-pwd:abcdefghijklmnopqrstuvwx\r\n" +
	"a=fingerprint:sha-256 00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF\r\n" +
	"a=setup:actpass\r\na=mid:0\r\n" +
	"a=sendrecv\r\na=rtcp-mux\r\na=rtpmap:111 opus/48000/2\r\na=fmtp:111 minptime=10;useinbandfec=1\r\na=rtpmap:9 G722/8000\r\n" +
	"a=rtpmap:0 PCMU/8000\r\na=ssrc:1 cname:x\r\n"

var offers = []struct{ name, text, want string }{
	{"as Chromium makes it", sdp, ""},
	{"empty", "", "it has no audio"},
	{"no SDP", "hello", "can't be read"},
	{"no audio", strings.Replace(sdp, "m=audio", "m=video", 1), "it has no audio"},
	{"audio that is refused", strings.Replace(sdp, "m=audio 9", "m=audio 0", 1), "it has no audio"},
	{"more media than a call needs", sdp + strings.Repeat("m=audio 9 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 0.0.0.0\r\na=mid:1\r\n", maxMedia),
		"at most 8 media"},
	{"no Opus", strings.Replace(sdp, "opus/48000/2", "opas/48000/2", 1), "must offer Opus"},
	{"no G.722", strings.NewReplacer("a=rtpmap:9 G722/8000\r\n", "", "111 9 0", "111 0").Replace(sdp),
		"must offer Opus"},
}

func TestOffers(t *testing.T) {
	s := listening(t, Config{})
	for _, c := range offers {
		o, err := ReadOffer(c.text)
		if c.want != "" {
			var e *parley.Error
			if !errors.As(err, &e) || e.Kind != parley.Invalid || !strings.Contains(e.Message, c.want) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		leg, _, err := s.Answer(t.Context(), o, func(*Leg, error) {})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		leg.end(parley.CustomerHangup)
	}
	// An offer that parses may still be impossible to answer; that is the sender's fault.
	for _, text := range []string{strings.Replace(sdp, "a=fingerprint", "a=fingerprants", 1),
		strings.Replace(sdp, "a=ice-ufrag", "a=ice-afrag", 1), strings.Replace(sdp, "a=mid:0\r\n", "", 1)} {
		o, err := ReadOffer(text)
		if err != nil {
			t.Fatal(err)
		}
		var e *parley.Error
		if _, _, err := s.Answer(t.Context(), o, nil); !errors.As(err, &e) || e.Kind != parley.Invalid {
			t.Errorf("%v", err)
		}
	}
}

// Whoever offers says who begins the handshake, and may leave the bundle out. What can't be is the sender's fault.
func TestOffersOfOthers(t *testing.T) {
	s := listening(t, Config{})
	bare := strings.Replace(sdp, "a=group:BUNDLE 0\r\n", "", 1)
	for _, c := range []struct{ name, text, setup string }{
		{"actpass", sdp, "passive"}, {"passive", strings.Replace(sdp, "actpass", "passive", 1), "active"},
		{"active", strings.Replace(sdp, "actpass", "active", 1), "passive"},
		{"no bundle", bare, "passive"}, {"passive without a bundle", strings.Replace(bare, "actpass", "passive", 1), "active"},
	} {
		o, err := ReadOffer(c.text)
		if err != nil {
			t.Fatal(err)
		}
		leg, answer, err := s.Answer(t.Context(), o, func(*Leg, error) {})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if !strings.Contains(answer, "a=setup:"+c.setup+"\r\n") || !strings.Contains(answer, "m=audio 9 ") ||
			strings.Contains(answer, "BUNDLE") != strings.Contains(c.text, "BUNDLE") {
			t.Errorf("%s:\n%s", c.name, answer)
		}
		leg.end(parley.CustomerHangup)
	}
	var e *parley.Error
	if _, err := ReadOffer(strings.Replace(sdp, "actpass", "holdconn", 1)); !errors.As(err, &e) || e.Kind != parley.Invalid ||
		!strings.Contains(e.Message, "holdconn") {
		t.Errorf("holdconn: %v", err)
	}
}

// A browser that waits for the handshake, and one without a bundle, are connected.
func TestCallsOfOthers(t *testing.T) {
	s := listening(t, Config{})
	for name, change := range map[string]func(string) string{
		"waits": func(text string) string { return strings.ReplaceAll(text, "a=setup:actpass", "a=setup:passive") },
		"unbundled": func(text string) string {
			return regexp.MustCompile("a=group:BUNDLE[^\r]*\r\n").ReplaceAllString(text, "")
		},
	} {
		b := call(t)
		o, err := ReadOffer(change(b.offer()))
		if err != nil {
			t.Fatal(err)
		}
		leg, answer, err := s.Answer(t.Context(), o, func(*Leg, error) {})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer}); err != nil {
			t.Fatalf("%s: %v in\n%s", name, err, answer)
		}
		for state := webrtc.PeerConnectionStateNew; state != webrtc.PeerConnectionStateConnected; {
			select {
			case state = <-b.states:
			case <-time.After(30 * time.Second):
				t.Fatalf("%s: it is not connected, but %s", name, state)
			}
		}
		leg.end(parley.CustomerHangup)
	}
}

func FuzzOffer(f *testing.F) {
	for _, c := range offers {
		f.Add(c.text)
	}
	s := New(Config{Listen: "127.0.0.1:0"})
	if err := s.Listen(); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	f.Fuzz(func(t *testing.T, text string) {
		o, err := ReadOffer(text)
		if err != nil {
			return
		}
		leg, answer, err := s.Answer(context.Background(), o, func(*Leg, error) {})
		if err != nil {
			return
		}
		if answer == "" {
			t.Error("an empty answer")
		}
		leg.end(parley.CustomerHangup)
	})
}

// A browser answers what its tools did, where its offer says that it has some: nothing of another, and nothing too long, is read.
func TestToolResults(t *testing.T) {
	s := listening(t, Config{})
	for _, tools := range []bool{true, false} {
		b, p := call(t), newListener()
		o, err := ReadOffer(b.offer())
		if err != nil {
			t.Fatal(err)
		}
		o.Tools = tools
		ended := make(chan error, 1)
		leg, answer, err := s.Answer(t.Context(), o, func(l *Leg, err error) {
			if err == nil {
				err = l.Run(context.Background(), p)
			}
			ended <- err
		})
		if err == nil {
			err = b.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer})
		}
		if err != nil {
			t.Fatal(err)
		}
		is(t, b.open, true)
		p.until(t, func() bool { return p.ticks > 0 })
		long := strings.Repeat("x", 60<<10)
		for _, text := range []string{`{"type":"tool_result","id":"1","result":{"shown":true}}`, `{"type":"tool_result","id":5}`,
			`{"type":"tool_result","id":"2","error":"none"}`,
			`{"type":"tool_result","id":"3","result":"` + long + `"}`, `{"type":"digit","key":"#"}`} {
			if err := b.channel.SendText(text); err != nil {
				t.Fatal(err)
			}
		}
		p.until(t, func() bool { return p.digits == "#" }) // they come in order
		var got []string
		for len(leg.Results()) > 0 {
			r := <-leg.Results()
			got = append(got, fmt.Sprintf("%s %.20s %s", r.ID, r.Result, r.Error))
		}
		want := []string{`1 {"shown":true} `, `2  none`, `3 "xxxxxxxxxxxxxxxxxxx `}
		if !tools {
			want = nil
		}
		if !slices.Equal(got, want) {
			t.Errorf("tools %v: got %q, want %q", tools, got, want)
		}
		for range 100 { // more than anybody reads: they don't hold the call up
			if err := b.channel.SendText(`{"type":"tool_result","id":"1"}`); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.channel.SendText(`{"type":"digit","key":"5"}`); err != nil {
			t.Fatal(err)
		}
		p.until(t, func() bool { return p.digits == "#5" })
		if err := b.GracefulClose(); err != nil {
			t.Fatal(err)
		}
		is(t, ended, error(parley.CustomerHangup))
	}
}
