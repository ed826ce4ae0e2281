package audio

import "sync"

// Pair is two legs that are joined: each hears the other. Its ends are ticked by their legs' own clocks, at once.
type Pair struct {
	mu   sync.Mutex
	ends [2]End
}

// End is one side of a pair: the Peer of a leg, or a part of one.
type End struct {
	pair  *Pair
	voice voice
	heard link // of the other side, at this one's rate
	other *End
}

// NewPair joins legs of two rates.
func NewPair(a, b Rate) *Pair {
	p := &Pair{}
	for i, r := range []Rate{a, b} {
		p.ends[i] = End{pair: p, voice: voice{rate: r}, heard: newLink(r), other: &p.ends[1-i]}
	}
	p.ends[0].voice.serve(b)
	p.ends[1].voice.serve(a)
	return p
}

// Ends are the two sides, in the order of their rates in NewPair.
func (p *Pair) Ends() (a, b *End) { return &p.ends[0], &p.ends[1] }

// Tick takes what this side's leg has said, and fills out with what the other's has.
func (e *End) Tick(in, out Frame) bool {
	e.pair.mu.Lock()
	defer e.pair.mu.Unlock()
	e.voice.say(in)
	e.other.heard.put(e.voice.at(e.other.voice.rate))
	return e.heard.pull(out)
}

// Hear needs nothing ahead of time.
func (e *End) Hear(Frame) {}

// Digit keeps keys from the other side: whether they may be pressed there is not decided here.
func (e *End) Digit(byte) {}
