package sip

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	sipgo "github.com/emiago/sipgo/sip"
	pion "github.com/pion/rtp"

	"parley/internal/audio"
)

// TestMain makes SIP's timers almost seven times as fast: a timeout of 32 s takes 4.8 s.
func TestMain(m *testing.M) {
	sipgo.SetTimers(75*time.Millisecond, 600*time.Millisecond, time.Second)
	code := m.Run()
	afterwards()
	os.Exit(code)
}

// afterwards runs after the tests: it prints the table of stacks.
var afterwards = func() {}

const hang = 15 * time.Second

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}

// start runs a server on a free port of 127.0.0.1 until the test ends.
func start(t testing.TB, c Config) *Server {
	t.Helper()
	s := prepare(t, c)
	launch(t, s)
	return s
}

func prepare(t testing.TB, c Config) *Server {
	t.Helper()
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	if c.Ports == [2]int{} {
		c.Ports = [2]int{20000, 29999}
	}
	s := New(c)
	s.patient = 300 * time.Millisecond
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	return s
}

// launch runs a server, and returns a function that stops it and waits until it has stopped.
func launch(t testing.TB, s *Server) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- s.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-over:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(hang):
				t.Error("the server doesn't stop")
			}
			if n := s.ports.Used(); n != 0 {
				t.Errorf("%d ports are still taken", n)
			}
			if n := s.calls(); n != 0 {
				t.Errorf("%d calls are still counted", n)
			}
		})
	}
	t.Cleanup(stop)
	select {
	case <-s.ready:
	case <-time.After(hang):
		t.Fatal("the server doesn't start")
	}
	return stop
}

// fixed returns a server's trunks.
func fixed(trunks ...Trunk) func(context.Context) ([]Trunk, error) {
	return func(context.Context) ([]Trunk, error) { return trunks, nil }
}

// phone is a person on a leg: plays a tone, and remembers what it hears.
type phone struct {
	hz      float64                        // 0 for silence
	through func(in, out audio.Frame) bool // another leg, in place of both; guarded by mu

	mu     sync.Mutex
	n      int
	heard  []int16 // by Hear
	played []int16 // by Tick
	ticks  int
	keys   string
	rate   audio.Rate
	change chan struct{} // gets a token when something has changed
	onTick func(n int)
}

func newPhone(hz float64) *phone { return &phone{hz: hz, change: make(chan struct{}, 1)} }

func (p *phone) Hear(f audio.Frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = append(p.heard, f...)
	p.changed()
}

func (p *phone) Tick(in, out audio.Frame) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate = audio.Rate(50 * len(in))
	p.played = append(p.played, in...)
	p.ticks++
	p.changed()
	if p.onTick != nil {
		p.onTick(p.ticks)
	}
	if p.through != nil {
		return p.through(in, out)
	}
	if p.hz == 0 {
		return false
	}
	for i := range out {
		out[i] = int16(8000 * math.Sin(2*math.Pi*p.hz*float64(p.n)/float64(p.rate)))
		p.n++
	}
	return true
}

func (p *phone) Digit(key byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys += string(key)
	p.changed()
}

func (p *phone) changed() {
	select {
	case p.change <- struct{}{}:
	default:
	}
}

// await waits until a condition on the phone is true.
func (p *phone) await(t testing.TB, what string, is func() bool) {
	t.Helper()
	give := time.After(hang)
	for {
		p.mu.Lock()
		ok := is()
		p.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-p.change:
		case <-give:
			p.mu.Lock()
			defer p.mu.Unlock()
			t.Fatalf("waited in vain until %s; %d ticks, heard %d samples, keys %q", what, p.ticks, len(p.heard),
				p.keys)
		}
	}
}

// hears waits until the last 200 ms of what is heard and of what is played are a tone.
func (p *phone) hears(t testing.TB, hz float64) {
	t.Helper()
	p.await(t, fmt.Sprintf("a tone of %g Hz is heard", hz), func() bool {
		n := int(p.rate) / 5
		return n > 0 && len(p.heard) > n && len(p.played) > n &&
			share(p.heard[len(p.heard)-n:], hz, p.rate) > 0.9 && share(p.played[len(p.played)-n:], hz, p.rate) > 0.9
	})
}

// share returns how much of a sound's power is at a frequency.
func share(pcm []int16, hz float64, rate audio.Rate) float64 {
	var re, im, all float64
	for i, s := range pcm {
		sin, cos := math.Sincos(2 * math.Pi * hz * float64(i) / float64(rate))
		re, im, all = re+float64(s)*cos, im+float64(s)*sin, all+float64(s)*float64(s)
	}
	if all < float64(len(pcm))*100*100 {
		return 0
	}
	return 2 * (re*re + im*im) / float64(len(pcm)) / all
}

// running is a leg that is running.
type running struct {
	leg   audio.Leg
	phone *phone
	stop  context.CancelCauseFunc
	over  chan error
}

func run(l audio.Leg, p *phone) *running {
	ctx, stop := context.WithCancelCause(context.Background())
	r := &running{l, p, stop, make(chan error, 1)}
	go func() { r.over <- l.Run(ctx, p) }()
	return r
}

var errDone = errors.New("the test has heard enough")

// hangUp ends a leg and waits for it.
func (r *running) hangUp(t testing.TB) {
	t.Helper()
	r.stop(errDone)
	r.ends(t, errDone)
}

// ends waits for a leg's end, which must have a cause.
func (r *running) ends(t testing.TB, want error) {
	t.Helper()
	select {
	case err := <-r.over:
		if want != nil && !errors.Is(err, want) {
			t.Fatalf("the leg ended with %v, want %v", err, want)
		}
	case <-time.After(hang):
		t.Fatalf("the leg doesn't end, want %v", want)
	}
}

// answerer answers every call with a new phone.
type answerer struct {
	hz    float64
	calls chan *taken
	ring  chan struct{} // rings until it is closed; nil for no ringing
}

type taken struct {
	in *Invite
	*running
}

func newAnswerer(hz float64) *answerer { return &answerer{hz: hz, calls: make(chan *taken, 1024)} }

func (a *answerer) answer(ctx context.Context, in *Invite) {
	if a.ring != nil {
		_ = in.Ring()
		select {
		case <-a.ring:
		case <-ctx.Done():
		}
	}
	l, err := in.Answer(ctx)
	if err != nil {
		return
	}
	r := &running{leg: l, phone: newPhone(a.hz), over: make(chan error, 1)}
	ctx, r.stop = context.WithCancelCause(ctx)
	a.calls <- &taken{in, r}
	r.over <- l.Run(ctx, r.phone)
}

func (a *answerer) next(t testing.TB) *taken {
	t.Helper()
	select {
	case c := <-a.calls:
		return c
	case <-time.After(hang):
		t.Fatal("no call came")
		return nil
	}
}

// soon returns a context with a timeout, for things that mustn't hang.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	t.Cleanup(cancel)
	return ctx
}

// wire is a plain UDP socket that can send what no telephone would.
type wire struct {
	*net.UDPConn
	control *net.UDPConn // on the next port: for RTCP, if the wire is for sound
	t       testing.TB
}

func newWire(t testing.TB, ip string) *wire {
	t.Helper()
	for {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(ip)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		control, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(ip),
			Port: c.LocalAddr().(*net.UDPAddr).Port + 1})
		if err == nil {
			t.Cleanup(func() { control.Close() })
			return &wire{c, control, t}
		}
	}
}

func (w *wire) addr() netip.AddrPort { return w.LocalAddr().(*net.UDPAddr).AddrPort() }

func (w *wire) send(to netip.AddrPort, text string) {
	w.t.Helper()
	if _, err := w.WriteToUDPAddrPort([]byte(text), to); err != nil && !errors.Is(err, net.ErrClosed) { // a station at the test's end
		w.t.Fatal(err)
	}
}

// receive returns the next message, "" when none comes within a time.
func (w *wire) receive(within time.Duration) string {
	w.t.Helper()
	buf := make([]byte, 65536)
	_ = w.SetReadDeadline(time.Now().Add(within))
	n, _, err := w.ReadFromUDPAddrPort(buf)
	if err != nil {
		return ""
	}
	return string(buf[:n])
}

// final returns the next answer that is not provisional.
func (w *wire) final() string {
	w.t.Helper()
	for {
		m := w.receive(hang)
		if m == "" {
			w.t.Fatal("no answer")
		}
		if strings.HasPrefix(m, "SIP/2.0 ") && !strings.HasPrefix(m, "SIP/2.0 1") {
			return m
		}
	}
}

// finalOf is final for one request.
func (w *wire) finalOf(callID string, seq int) string {
	w.t.Helper()
	for {
		if m := w.final(); field(m, "Call-ID") == callID && strings.HasPrefix(field(m, "CSeq"), fmt.Sprint(seq, " ")) {
			return m
		}
	}
}

// message writes a request from the wire, with CRLF line ends.
func (w *wire) message(method, uri, to, callID string, seq int, body string, headers ...string) string {
	branch := "z9hG4bK" + token(16)
	lines := []string{method + " " + uri + " SIP/2.0", "Via: SIP/2.0/UDP " + w.addr().String() + ";rport;branch=" +
		branch, "Max-Forwards: 70",
		"From: <sip:+15550009999@" + w.addr().String() + ">;tag=wire", "To: " + to, "Call-ID: " + callID,
		fmt.Sprintf("CSeq: %d %s", seq, method),
		"Contact: <sip:wire@" + w.addr().String() + ">"}
	lines = append(lines, headers...)
	if body != "" {
		lines = append(lines, "Content-Type: application/sdp")
	}
	lines = append(lines, fmt.Sprintf("Content-Length: %d", len(body)), "", body)
	return strings.Join(lines, "\r\n")
}

func sdp(addr netip.AddrPort, rest ...string) string {
	return fmt.Sprintf("v=0\r\no=- 1 1 IN IP4 %s\r\ns=-\r\nc=IN IP4 %s\r\nt=0 0\r\nm=audio %d RTP/AVP 0 101\r\n"+
		"a=rtpmap:101 telephone-event/8000\r\n", addr.Addr(), addr.Addr(), addr.Port()) +
		strings.Join(append(rest, ""), "\r\n")
}

// caller is a wire whose call to a server was answered.
type caller struct {
	*wire
	server *Server
	rtp    *wire
	callID string
	to     string // with the server's tag
	seq    int
	sdp    string // the server's
}

func field(message, name string) string {
	for line := range strings.SplitSeq(message, "\r\n") {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.EqualFold(k, name) {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// requestOf reads a request.
func requestOf(t testing.TB, text string) *sipgo.Request {
	t.Helper()
	m, err := sipgo.ParseMessage([]byte(text))
	req, ok := m.(*sipgo.Request)
	if err != nil || !ok {
		t.Fatalf("%v:\n%s", err, text)
	}
	return req
}

func bodyOf(message string) string {
	_, b, _ := strings.Cut(message, "\r\n\r\n")
	return b
}

// call calls a server's number and confirms the answer.
func (w *wire) call(s *Server, number string, description ...string) *caller {
	w.t.Helper()
	c := &caller{wire: w, server: s, rtp: newWire(w.t, w.addr().Addr().String()), callID: token(20), seq: 1}
	offer := sdp(c.rtp.addr())
	if len(description) > 0 {
		offer = description[0]
	}
	res := c.ask("INVITE", offer)
	if !strings.HasPrefix(res, "SIP/2.0 200") {
		w.t.Fatalf("the call was not answered:\n%s", res)
	}
	c.ack("")
	return c
}

func (c *caller) number() string { return "sip:+15550001111@" + c.server.Addr().String() }

// ask sends a request within the call and returns the final answer.
func (c *caller) ask(method, body string, headers ...string) string {
	c.t.Helper()
	to := c.to
	if to == "" {
		to = "<" + c.number() + ">"
	} else {
		c.seq++
	}
	c.send(c.server.Addr(), c.message(method, c.number(), to, c.callID, c.seq, body, headers...))
	res := c.finalOf(c.callID, c.seq)
	if method == "INVITE" {
		c.to, c.sdp = field(res, "To"), bodyOf(res)
	}
	return res
}

func (c *caller) ack(body string) {
	c.send(c.server.Addr(), c.message("ACK", c.number(), c.to, c.callID, c.seq, body))
}

// media returns the address of the server's sound.
func (c *caller) media() netip.AddrPort {
	d, err := parseSDP([]byte(c.sdp))
	if err != nil || len(d.streams) == 0 {
		c.t.Fatalf("no description: %v\n%s", err, c.sdp)
	}
	return netip.AddrPortFrom(d.streams[0].addr, uint16(d.streams[0].port))
}

// packet makes an RTP packet.
func packet(pt uint8, marker bool, seq uint16, ts, ssrc uint32, payload []byte) []byte {
	h := pion.Header{Version: 2, PayloadType: pt, Marker: marker, SequenceNumber: seq, Timestamp: ts, SSRC: ssrc}
	b, err := h.Marshal()
	if err != nil {
		panic(err)
	}
	return append(b, payload...)
}

// say sends n packets of a tone in µ-law, one every 20 ms.
func (w *wire) say(to netip.AddrPort, hz float64, first uint16, n int, ssrc uint32) {
	w.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := range n {
		w.sendPacket(to, hz, first, i, ssrc)
		<-tick.C
	}
}

// talk plays a tone until it is stopped.
func (w *wire) talk(to netip.AddrPort, hz float64, ssrc uint32) (stop func()) {
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			w.sendPacket(to, hz, 1, i, ssrc)
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	}()
	var once sync.Once
	stop = func() { once.Do(func() { close(done); <-over }) }
	w.t.Cleanup(stop)
	return stop
}

func (w *wire) sendPacket(to netip.AddrPort, hz float64, first uint16, i int, ssrc uint32) {
	pcm := make([]int16, 160)
	for k := range pcm {
		pcm[k] = int16(8000 * math.Sin(2*math.Pi*hz*float64(i*160+k)/8000))
	}
	if _, err := w.WriteToUDPAddrPort(packet(0, i == 0, first+uint16(i), uint32(i)*160, ssrc,
		audio.EncodeULaw(nil, pcm)), to); err != nil && !errors.Is(err, net.ErrClosed) {
		w.t.Error(err)
	}
}

// listen returns the next RTP packet.
func (w *wire) listen(within time.Duration) (*pion.Packet, netip.AddrPort) {
	buf := make([]byte, 2048)
	_ = w.SetReadDeadline(time.Now().Add(within))
	n, from, err := w.ReadFromUDPAddrPort(buf)
	if err != nil {
		return nil, from
	}
	p := &pion.Packet{}
	if err := p.Unmarshal(buf[:n]); err != nil {
		w.t.Fatalf("no RTP packet: %v", err)
	}
	return p, from
}

type ctxType = context.Context

// codeOf returns the status in an error.
func codeOf(err error) string {
	var r *Refused
	if !errors.As(err, &r) {
		return fmt.Sprint(err)
	}
	return fmt.Sprint(r.Code)
}

// tones returns the µ-law payloads of packets with keys as in-band tones.
func tones(keys string) (frames [][]byte) {
	d := audio.NewDigits(audio.Narrow)
	d.Dial(keys)
	for f := make(audio.Frame, 160); d.Fill(f); {
		frames = append(frames, audio.EncodeULaw(nil, f))
	}
	return frames
}

// byTCP sends text from an address and returns what comes back within a time, or until the connection is closed.
func byTCP(t testing.TB, from string, to netip.AddrPort, text string, within time.Duration) string {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(soon(t), "tcp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(within))
	b, _ := io.ReadAll(c)
	return string(b)
}
