//go:build stacks

package sip

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/internal/audio"
	"parley/internal/rtp"
)

// call is a kind of call: a row of the table that every stack may try.
type call struct {
	row             string
	transport, srtp string // "" is udp, and off
	suite           rtp.Suite
	codec           audio.Format  // 0 is PCMU
	packet          time.Duration // of the stack's packets; 0 is 20 ms
	six             bool          // over IPv6
}

const (
	timed    = "session timer"
	reliably = "reliable ringing (100rel)"
	muxed    = "RTCP on the port of the sound"
	reported = "reports of what they hear (RTCP)"

	anySuite rtp.Suite = "any"
)

var calls = []call{
	{row: "plain call, µ-law"},
	{row: "A-law", codec: audio.PCMA},
	{row: "G.722", codec: audio.G722},
	{row: "Opus", codec: audio.Opus},
	{row: "packets of 10 ms", packet: 10 * time.Millisecond},
	{row: "packets of 40 ms", packet: 40 * time.Millisecond},
	{row: "packets of 60 ms", packet: 60 * time.Millisecond},
	{row: "TCP", transport: "tcp"},
	{row: "TLS", transport: "tls"},
	{row: "IPv6", six: true},
	{row: "SRTP optional", srtp: "optional", suite: anySuite},
	{row: "SRTP required, over TLS", transport: "tls", srtp: "required", suite: anySuite},
	{row: "SRTP by AES_CM_128_HMAC_SHA1_32", srtp: "required", suite: rtp.AES32},
	{row: "SRTP by AEAD_AES_128_GCM", srtp: "required", suite: rtp.AESGCM},
	{row: "DTLS-SRTP", srtp: "dtls", suite: anySuite},
	{row: timed},
	{row: reliably},
	{row: muxed},
	{row: reported},
}

func (c *call) host() string {
	if c.six {
		return "::1"
	}
	return "127.0.0.1"
}

// config is that of a server of ours which makes or takes such a call.
func (c *call) config() Config {
	if c.six {
		return Config{Listen: "[::1]:0"}
	}
	return Config{}
}

// trunk leads to a stack.
func (c *call) trunk(number string, port int, ca string) Trunk {
	t := Trunk{ID: 7, Number: number, Address: fmt.Sprintf("127.0.0.1:%d", port), Transport: c.transport, SRTP: c.srtp, CA: ca}
	if c.six {
		t.Address = fmt.Sprintf("[::1]:%d", port)
	}
	if c.codec == audio.Opus {
		t.Codecs = []audio.Format{audio.Opus, audio.PCMU}
	}
	return t
}

// reaches is the address of a server of ours by the call's transport.
func (c *call) reaches(s *Server) string {
	switch c.transport {
	case "tcp":
		return s.Addr().String() + ";transport=tcp"
	case "tls":
		return s.over() + ";transport=tls"
	}
	return s.Addr().String()
}

// proves asserts that a tone is heard in a call, and that it is of its kind.
func (c *call) proves(t *testing.T, r *running, hz float64) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Log(r.said())
		}
	}()
	r.phone.hears(t, hz)
	// A busy machine sends and takes packets in fits: within some seconds there is one with as many as there should be.
	var before, got rtp.Stats
	since, now := 0, 0
	counted := func() bool {
		before = r.own().Stats()
		r.phone.mu.Lock()
		since = r.phone.ticks
		r.phone.mu.Unlock()
		r.phone.await(t, "a second is heard", func() bool { now = r.phone.ticks; return now >= since+50 })
		got = r.own().Stats()
		came, went := c.lasting(got.Received-before.Received, now-since), c.lasting(got.Sent-before.Sent, now-since)
		return came && went || c.packet != 0 && (came || went) // some only send such packets, and some only want them
	}
	right := counted()
	for tries := 0; !right && tries < 10; tries++ {
		right = counted()
	}
	if c.suite == rtp.AESGCM && !strings.Contains(r.said(), string(rtp.AESGCM)) {
		t.Skip("it was built without it")
	}
	if got.Suite != c.suite && (c.suite != anySuite || got.Suite == "") || got.Unreadable > 2 {
		t.Errorf("%+v, want suite %q", got, c.suite)
	}
	if codec := r.own().Media().Codec; codec != cmp.Or(c.codec, audio.PCMU).String() {
		t.Errorf("they speak %s", codec)
	}
	if !right {
		t.Errorf("in %d ms there came %d packets, and %d went", 20*(now-since), got.Received-before.Received, got.Sent-before.Sent)
	}
	switch c.row {
	case timed:
		if r.own().session.Load() == nil {
			t.Error("no session timer")
		}
	case reliably:
		if !strings.Contains(r.said(), "\nPRACK ") {
			t.Error("no PRACK")
		}
	case muxed:
		r.own().state.Lock()
		defer r.own().state.Unlock()
		if !r.own().state.agreed.Mux {
			t.Error("RTCP has a port of its own")
		}
	case reported:
		awaits(t, "reports", func() bool { s := r.own().Stats(); return s.Reports > 0 && s.RoundTrip > 0 })
		if s := r.own().Stats(); s.FarLost > 5 {
			t.Errorf("it tells of losses: %+v", s)
		}
	}
}

// lasting reports whether so many packets in so many frames have about the length that they should have.
func (c *call) lasting(packets, frames int) bool {
	want := float64(frames) * 20 / float64(cmp.Or(c.packet, 20*time.Millisecond).Milliseconds())
	return float64(packets) > 0.7*want && float64(packets) < 1.4*want
}

// renewed waits until either end has refreshed a session of 90 seconds, and the call goes on.
func renewed(t *testing.T, r *running, hz float64) {
	t.Helper()
	requests := func() int { return strings.Count(r.said(), "\nINVITE ") + strings.Count(r.said(), "\nUPDATE ") }
	r.phone.hears(t, hz)
	was := requests()
	for give := time.Now().Add(time.Minute); requests() == was; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(give) {
			t.Fatal("nobody refreshes it")
		}
	}
	(&call{}).proves(t, r, hz)
	r.hangUp(t)
}

// said is all messages of a call until now.
func (r *running) said() string {
	var b strings.Builder
	for _, m := range r.own().ladder.messages() {
		b.WriteString("\n" + m.Text)
	}
	return b.String()
}

// telephone is a stack's softphone.
type telephone struct {
	stack string
	can   map[string][]string // by row: what it needs for such a call
	only  map[string]string   // by row: the one direction that it can try
	// start runs it. It calls an address, or waits for a call, on the port that is returned, and takes it at once. It
	// plays 440 Hz.
	start func(t *testing.T, ca *authority, c call, settings []string, to string) (f *otherStack, port int)
	quit  string // is typed to end it
	sound string // the pattern of the file that it records to
}

// try tries all kinds of calls.
func (p *telephone) try(t *testing.T) {
	for _, c := range calls {
		settings, ok := p.can[c.row]
		if !ok {
			continue
		}
		if p.only[c.row] != "out" {
			try(t, p.stack, c.row, "in", func(t *testing.T) {
				s, a, ca := answering(t, c.config())
				f, _ := p.start(t, ca, c, settings, "sip:7@"+c.reaches(s))
				p.proves(t, &c, f, a.next(t).running)
			})
		}
		if p.only[c.row] != "in" {
			try(t, p.stack, c.row, "out", func(t *testing.T) {
				s, _, ca := answering(t, c.config())
				f, port := p.start(t, ca, c, settings, "")
				p.proves(t, &c, f, dials(t, s, c.trunk("+15550002222", port, ca.pem), "+15550001111"))
			})
		}
	}
}

// proves asserts that both ends hear each other, and ends the call and the telephone.
func (p *telephone) proves(t *testing.T, c *call, f *otherStack, r *running) {
	t.Helper()
	c.proves(t, r, 440)
	r.hangUp(t)
	p.heard(t, f, 1000)
}

// heard ends the telephone, and asserts that it has heard a tone.
func (p *telephone) heard(t *testing.T, f *otherStack, hz float64) {
	t.Helper()
	f.types(p.quit)
	f.quits()
	list, _ := filepath.Glob(filepath.Join(f.dir, p.sound))
	if len(list) != 1 {
		t.Fatalf("recordings %v", list)
	}
	recorded(t, list[0], hz)
}

// called starts the telephone, which calls us.
func (p *telephone) called(t *testing.T, settings ...string) (f *otherStack, s *Server, a *answerer, r *running) {
	t.Helper()
	s, a, ca := answering(t, Config{})
	f, _ = p.start(t, ca, call{}, settings, "sip:7@"+s.Addr().String())
	return f, s, a, a.next(t).running
}

// calling starts the telephone, and calls it.
func (p *telephone) calling(t *testing.T, settings ...string) (f *otherStack, s *Server, a *answerer, r *running) {
	t.Helper()
	s, a, ca := answering(t, Config{})
	f, port := p.start(t, ca, call{}, settings, "")
	return f, s, a, dials(t, s, (&call{}).trunk("+15550002222", port, ca.pem), "+15550001111")
}

// both tries something in calls of both directions.
func (p *telephone) both(t *testing.T, row string, settings []string,
	test func(t *testing.T, f *otherStack, s *Server, a *answerer, r *running)) {
	try(t, p.stack, row, "in", func(t *testing.T) {
		f, s, a, r := p.called(t, settings...)
		test(t, f, s, a, r)
	})
	try(t, p.stack, row, "out", func(t *testing.T) {
		f, s, a, r := p.calling(t, settings...)
		test(t, f, s, a, r)
	})
}

// holds has the far end hold a call by typing a line, and resume it by typing another.
func holds(t *testing.T, f *otherStack, r *running, hold, resume string) {
	t.Helper()
	r.phone.hears(t, 440)
	f.types(hold)
	awaits(t, "the conversation to stand still", r.still)
	f.types(resume)
	awaits(t, "the conversation to go on", func() bool { return !r.still() })
	r.phone.hears(t, 440)
	r.hangUp(t)
}

// transfers sends the far end of a call to assistant 8, by REFER.
func transfers(t *testing.T, s *Server, a *answerer, r *running) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- r.own().Transfer(soon(t), "sip:8@"+s.Addr().String()) }()
	second := a.next(t)
	if second.in.AssistantID != 8 {
		t.Errorf("it called %d", second.in.AssistantID)
	}
	second.phone.hears(t, 440)
	if err := get(t, done); err != nil {
		t.Errorf("the transfer: %v", err)
	}
	second.hangUp(t)
}
