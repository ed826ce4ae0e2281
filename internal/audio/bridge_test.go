package audio

import (
	"math"
	"sync"
	"testing"
	"time"
)

// seat is somebody on a pair or a bridge who sends a tone and keeps what they hear.
type seat struct {
	name  string
	rate  Rate
	hz    float64
	peer  Peer
	said  int
	heard []int16
	any   int // ticks in which something was heard
	out   Frame
}

func (s *seat) tick() {
	in := make(Frame, s.rate.FrameSize())
	if s.hz > 0 {
		for i := range in {
			in[i] = int16(3000 * math.Sin(2*math.Pi*s.hz*float64(s.said+i)/float64(s.rate)))
		}
	}
	s.said += len(in)
	if s.out == nil {
		s.out = make(Frame, len(in))
	}
	if s.peer.Tick(in, s.out) {
		s.any++
	}
	s.heard = append(s.heard, s.out...)
}

// loud is how much of what was heard since a frame is another seat's tone: 1 if it is all that was heard.
func (s *seat) loud(of *seat, since int) float64 {
	pcm := s.heard[since*s.rate.FrameSize():]
	var re, im float64
	for i, x := range pcm {
		sin, cos := math.Sincos(2 * math.Pi * of.hz * float64(i) / float64(s.rate))
		re, im = re+float64(x)*cos, im+float64(x)*sin
	}
	return math.Hypot(re, im) * 2 / 3000 / float64(len(pcm))
}

// hears checks who hears whom in the ticks to come.
func hears(t *testing.T, what string, seats []*seat, want map[string]string) {
	t.Helper()
	for range 10 { // let earlier sound pass
		for _, s := range seats {
			s.tick()
		}
	}
	var starts []int
	for _, s := range seats {
		starts = append(starts, len(s.heard)/s.rate.FrameSize())
	}
	for range 50 {
		for _, s := range seats {
			s.tick()
		}
	}
	for i, s := range seats {
		got := ""
		for _, o := range seats {
			switch part := s.loud(o, starts[i]); {
			case part > 0.9 && part < 1.1:
				got += o.name
			case part > 0.02:
				t.Errorf("%s: %s hears %.2f of %s", what, s.name, part, o.name)
			}
		}
		if got != want[s.name] {
			t.Errorf("%s: %s hears %q, not %q", what, s.name, got, want[s.name])
		}
	}
}

func TestBridge(t *testing.T) {
	b := NewBridge()
	join := func(name string, r Rate, hz float64) (*seat, *Member) {
		m := b.Join(r)
		return &seat{name: name, rate: r, hz: hz, peer: m}, m
	}
	a, _ := join("a", Narrow, 400)
	hears(t, "alone", []*seat{a}, map[string]string{})
	c, _ := join("c", Wide, 700)
	hears(t, "two", []*seat{a, c}, map[string]string{"a": "c", "c": "a"})
	d, dm := join("d", Narrow, 1100)
	hears(t, "three", []*seat{a, c, d}, map[string]string{"a": "cd", "c": "ad", "d": "ac"})
	dm.Mute()
	hears(t, "one listens", []*seat{a, c, d}, map[string]string{"a": "c", "c": "a", "d": "ac"})
	dm.Whisper(c.peer.(*Member))
	hears(t, "one whispers", []*seat{a, c, d}, map[string]string{"a": "c", "c": "ad", "d": "ac"})
	dm.Speak()
	hears(t, "one speaks again", []*seat{a, c, d}, map[string]string{"a": "cd", "c": "ad", "d": "ac"})
	dm.Whisper(c.peer.(*Member))
	c.peer.(*Member).Leave()
	hears(t, "who was whispered to leaves", []*seat{a, d}, map[string]string{"a": "", "d": "a"})
	dm.Whisper(c.peer.(*Member))
	hears(t, "whispering to who has left", []*seat{a, d}, map[string]string{"a": "", "d": "a"})
	if c.tick(); c.out[0] != 0 {
		t.Error("who has left hears something")
	}
	dm.Speak()
	hears(t, "the rest", []*seat{a, d}, map[string]string{"a": "d", "d": "a"})
}

func TestPair(t *testing.T) {
	for _, r := range [][2]Rate{{Narrow, Narrow}, {Narrow, Wide}, {Wide, Narrow}, {Wide, Wide}} {
		x, y := NewPair(r[0], r[1]).Ends()
		a, b := &seat{name: "a", rate: r[0], hz: 400, peer: x}, &seat{name: "b", rate: r[1], hz: 700, peer: y}
		hears(t, "a pair", []*seat{a, b}, map[string]string{"a": "b", "b": "a"})
	}
}

// When the sum is too loud, it clips at full scale and doesn't wrap.
func TestBridgeSaturates(t *testing.T) {
	b := NewBridge()
	listener, loud, out := b.Join(Narrow), Frame{}, make(Frame, 160)
	for range 160 {
		loud = append(loud, math.MaxInt16)
	}
	speakers := []*Member{b.Join(Narrow), b.Join(Narrow), b.Join(Narrow)}
	for range 5 {
		for _, s := range speakers {
			s.Tick(loud, make(Frame, 160))
		}
		listener.Tick(make(Frame, 160), out)
	}
	for i, s := range out {
		if s != math.MaxInt16 {
			t.Fatalf("sample %d is %d", i, s)
		}
	}
	for i := range loud {
		loud[i] = math.MinInt16
	}
	for range 5 {
		for _, s := range speakers {
			s.Tick(loud, make(Frame, 160))
		}
		listener.Tick(make(Frame, 160), out)
	}
	if out[159] != math.MinInt16 {
		t.Errorf("the other way: %d", out[159])
	}
	if listener.Tick(make(Frame, 160), out); len(out) != 160 {
		t.Error("no frame")
	}
}

// TestPairDrift joins legs whose clocks differ, or stop at times: each hears the other's tone nearly all the time, with
// a delay of at most four frames.
func TestPairDrift(t *testing.T) {
	for name, c := range map[string]struct {
		ppm   int
		stall int // every 5 s one clock stops for this many frames and then catches up
		late  time.Duration
	}{"none": {}, "fast": {ppm: 1000}, "slow": {ppm: -1000}, "stalls": {stall: 3},
		"a jittery clock": {late: 15 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			x, y := NewPair(Narrow, Wide).Ends()
			a, b := &seat{name: "a", rate: Narrow, hz: 400, peer: x}, &seat{name: "b", rate: Wide, hz: 700, peer: y}
			const frames = 9000 // three minutes
			step := FrameTime + FrameTime*time.Duration(c.ppm)/1e6
			var ta, tb time.Duration
			behind := 0
			for a.said < frames*160 {
				if ta <= tb {
					a.tick()
					ta += FrameTime
					continue
				}
				n := b.said / 320
				switch {
				case c.stall > 0 && n%250 == 249 && behind < c.stall:
					behind++
				default:
					for ; behind >= 0; behind-- {
						b.tick()
					}
					behind = 0
				}
				tb += step
				if c.late > 0 { // each tick is at most this late, and the delays don't add up
					tb = time.Duration(n+1)*step + c.late*time.Duration(n*7%10)/10
				}
			}
			for _, s := range []*seat{a, b} {
				of := a
				if s == a {
					of = b
				}
				good, all := 0, 0
				size := s.rate.FrameSize()
				for at := 10 * size; at+5*size <= len(s.heard); at += 5 * size {
					part := seat{rate: s.rate, heard: s.heard[at : at+5*size]}
					if all++; part.loud(of, 0) > 0.9 {
						good++
					}
				}
				t.Logf("%s hears the other in %d of %d stretches of 100 ms", s.name, good, all)
				if good*1000 < all*970 {
					t.Errorf("%s hears the other in %d of %d stretches of 100 ms", s.name, good, all)
				}
			}
			for _, e := range []*End{x, y} {
				if n := e.heard.n / e.voice.rate.FrameSize(); n > maxLink {
					t.Errorf("%d frames wait", n)
				}
			}
		})
	}
}

// A leg that falls silent without notice, as when it is on hold, is not heard any more. When it comes back it is heard
// again, but not what it said before.
func TestBridgeHold(t *testing.T) {
	b := NewBridge()
	a := &seat{name: "a", rate: Narrow, hz: 400, peer: b.Join(Narrow)}
	c := &seat{name: "c", rate: Narrow, hz: 700, peer: b.Join(Narrow)}
	for range 10 {
		a.tick()
		c.tick()
	}
	for range 10 {
		a.tick()
	}
	before := a.any
	if a.tick(); a.any != before || a.out[0] != 0 {
		t.Error("who is not there is heard")
	}
	for i := range 50 { // the other still hears up to four earlier frames
		c.tick()
		a.tick()
		if i == 10 {
			c.heard, a.heard = nil, nil
		}
	}
	if a.loud(c, 0) < 0.9 || c.loud(a, 0) < 0.9 {
		t.Errorf("after a hold they hear %.2f and %.2f of each other", a.loud(c, 0), c.loud(a, 0))
	}
}

// Legs tick at the same time, while others come and go.
func TestBridgeAtOnce(t *testing.T) {
	b := NewBridge()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			rate := []Rate{Narrow, Wide}[i%2]
			for range 20 {
				m := b.Join(rate)
				in, out := make(Frame, rate.FrameSize()), make(Frame, rate.FrameSize())
				for k := range 20 {
					switch k {
					case 5:
						m.Mute()
					case 10:
						m.Whisper(m)
					case 15:
						m.Speak()
					}
					m.Tick(in, out)
				}
				m.Leave()
			}
		})
	}
	wg.Wait()
	if len(b.members) != 0 {
		t.Errorf("%d are left", len(b.members))
	}
}

func TestBridgeAllocates(t *testing.T) {
	b := NewBridge()
	var members []*Member
	for i := range 6 {
		members = append(members, b.Join([]Rate{Narrow, Wide}[i%2]))
	}
	members[0].Mute()
	members[1].Whisper(members[2])
	in, out := make(Frame, MaxFrame), make(Frame, MaxFrame)
	quiet(t, "a bridge", func() {
		for _, m := range members {
			n := m.voice.rate.FrameSize()
			m.Tick(in[:n], out[:n])
		}
	})
	x, y := NewPair(Narrow, Wide).Ends()
	quiet(t, "a pair", func() { x.Tick(in[:160], out[:160]); y.Tick(in, out) })
}

// BenchmarkPair is 20 ms of a pair of legs.
func BenchmarkPair(b *testing.B) {
	for name, r := range map[string][2]Rate{"one rate": {Wide, Wide}, "two": {Narrow, Wide}} {
		b.Run(name, func(b *testing.B) {
			x, y := NewPair(r[0], r[1]).Ends()
			in, out := whiteNoise(1, 3000, 320), make(Frame, 320)
			n, m := r[0].FrameSize(), r[1].FrameSize()
			for b.Loop() {
				x.Tick(in[:n], out[:n])
				y.Tick(in[:m], out[:m])
			}
		})
	}
}

// BenchmarkBridge is 20 ms of three legs, one of which listens.
func BenchmarkBridge(b *testing.B) {
	bridge := NewBridge()
	members := []*Member{bridge.Join(Wide), bridge.Join(Wide), bridge.Join(Wide)}
	members[2].Mute()
	in, out := whiteNoise(1, 3000, 320), make(Frame, 320)
	for b.Loop() {
		for _, m := range members {
			m.Tick(in, out)
		}
	}
}
