package audio

import (
	"math"
	"slices"
	"sync"
)

// Bridge is any number of legs that are joined: each hears all others that may be heard by it, and never itself. Its
// members are ticked by their legs' own clocks, at once, and may come and go meanwhile.
type Bridge struct {
	mu      sync.Mutex
	members []*Member
}

// Member is one leg on a bridge: its Peer, or a part of one. A member that joins is heard by all.
type Member struct {
	bridge *Bridge
	voice  voice
	others []other
	quiet  bool    // heard by nobody
	to     *Member // heard by this one alone; nil: by all
	sum    []int32
	part   Frame
}

// other is another member, as one sees it.
type other struct {
	member   *Member
	in, back *link // what is heard of it, and what it hears
}

// NewBridge has nobody on it.
func NewBridge() *Bridge { return &Bridge{} }

// Join adds a leg of a rate.
func (b *Bridge) Join(r Rate) *Member {
	m := &Member{bridge: b, voice: voice{rate: r}, sum: make([]int32, r.FrameSize()), part: make(Frame, r.FrameSize())}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range b.members {
		o.voice.serve(r)
		m.voice.serve(o.voice.rate)
		in, back := newLink(r), newLink(o.voice.rate)
		m.others = append(m.others, other{o, &in, &back})
		o.others = append(o.others, other{m, &back, &in})
	}
	b.members = append(b.members, m)
	return m
}

// Leave takes this member off the bridge: nobody hears it, and it hears nobody. A member that whispered to it is then
// heard by nobody, and not by all.
func (m *Member) Leave() {
	b := m.bridge
	b.mu.Lock()
	defer b.mu.Unlock()
	b.members = slices.DeleteFunc(b.members, func(o *Member) bool { return o == m })
	for _, o := range b.members {
		o.others = slices.DeleteFunc(o.others, func(x other) bool { return x.member == m })
		if o.to == m {
			o.quiet, o.to = true, nil
		}
	}
	m.others = nil
}

// Speak has the member heard by all.
func (m *Member) Speak() { m.set(false, nil) }

// Mute has it heard by nobody: one who joins and is muted listens in.
func (m *Member) Mute() { m.set(true, nil) }

// Whisper has it heard by one other alone; where that one has left, by nobody.
func (m *Member) Whisper(to *Member) { m.set(false, to) }

func (m *Member) set(quiet bool, to *Member) {
	m.bridge.mu.Lock()
	defer m.bridge.mu.Unlock()
	if to != nil && !slices.Contains(m.bridge.members, to) {
		quiet, to = true, nil
	}
	m.quiet, m.to = quiet, to
}

// reaches says whether another hears the member.
func (m *Member) reaches(other *Member) bool { return !m.quiet && (m.to == nil || m.to == other) }

// Tick takes what the member's leg has said, and fills out with what the member is to hear. The sum is clipped at full
// scale.
func (m *Member) Tick(in, out Frame) bool {
	m.bridge.mu.Lock()
	defer m.bridge.mu.Unlock()
	m.voice.say(in)
	clear(m.sum)
	for i := range m.others {
		o := &m.others[i]
		if rate := o.member.voice.rate; m.reaches(o.member) {
			o.back.put(m.voice.at(rate))
		} else {
			o.back.put(silence[:rate.FrameSize()]) // so that their time goes on
		}
		if o.in.pull(m.part) {
			for k, s := range m.part {
				m.sum[k] += int32(s)
			}
		}
	}
	heard := int32(0)
	for k, s := range m.sum {
		heard |= s
		out[k] = int16(min(max(s, math.MinInt16), math.MaxInt16))
	}
	return heard != 0
}

var silence [MaxFrame]int16

// Hear needs nothing ahead of time.
func (m *Member) Hear(Frame) {}

// Digit keeps keys from the others.
func (m *Member) Digit(byte) {}
