package call

import (
	"context"
	"sync/atomic"

	"parley/internal/audio"
	"parley/internal/crash"
)

// patch is an answered leg that runs by itself, and whose peer can be changed: it is lent to the conversation that
// tells somebody about a caller, and then joined with that caller. As long as nobody is connected it is silent.
type patch struct {
	leg    audio.Leg
	tape   *tape // nil: it is not recorded
	cancel context.CancelFunc
	peer   atomic.Pointer[audio.Peer]
	busy   atomic.Int32  // the peer is being called
	idle   chan struct{} // has a token when it may not be any more
	done   chan struct{} // closed when the leg is over
	err    error         // why, once it is
}

// runPatch runs a leg until ctx ends or the far end hangs up, and then ends its recording, if there is one.
func runPatch(ctx context.Context, leg audio.Leg, tape *tape) *patch {
	p := &patch{leg: leg, tape: tape, idle: make(chan struct{}, 1), done: make(chan struct{})}
	ctx, p.cancel = context.WithCancel(ctx)
	go func() {
		defer close(p.done)
		defer tape.end()
		defer leg.Hangup()
		p.err = crash.Run(func() error { return leg.Run(ctx, p) })
	}()
	return p
}

// Rate implements voice.Line.
func (p *patch) Rate() audio.Rate { return p.leg.Rate() }

// Dial implements voice.Line.
func (p *patch) Dial(digits string) error { return p.leg.Dial(digits) }

// Done implements voice.Line.
func (p *patch) Done() <-chan struct{} { return p.done }

// Close implements voice.Line.
func (p *patch) Close() {
	p.cancel()
	<-p.done
}

// Connect implements voice.Line. It must not be called by a peer.
func (p *patch) Connect(peer audio.Peer) {
	if peer == nil {
		p.peer.Store(nil)
	} else {
		p.peer.Store(&peer)
	}
	for p.busy.Load() > 0 {
		select {
		case <-p.idle:
		case <-p.done:
			return
		}
	}
}

// enter returns the connected peer, nil for none; leave follows.
func (p *patch) enter() audio.Peer {
	p.busy.Add(1)
	if peer := p.peer.Load(); peer != nil {
		return *peer
	}
	return nil
}

func (p *patch) leave() {
	if p.busy.Add(-1) == 0 {
		select {
		case p.idle <- struct{}{}:
		default:
		}
	}
}

// Hear implements audio.Peer.
func (p *patch) Hear(f audio.Frame) {
	defer p.leave()
	if peer := p.enter(); peer != nil {
		peer.Hear(f)
	}
}

// Tick implements audio.Peer.
func (p *patch) Tick(in, out audio.Frame) bool {
	defer p.leave()
	heard := false
	if peer := p.enter(); peer != nil {
		heard = peer.Tick(in, out)
	} else {
		clear(out)
	}
	if p.tape != nil {
		p.tape.Put(in, out)
	}
	return heard
}

// Digit implements audio.Peer.
func (p *patch) Digit(key byte) {
	defer p.leave()
	if peer := p.enter(); peer != nil {
		peer.Digit(key)
	}
}

// lent is a patch as the leg of a conversation. The keys that are pressed go elsewhere.
type lent struct {
	*patch
	keys func(key byte)
}

// Run implements audio.Leg: it connects the peer until ctx ends or the far end hangs up, and leaves the leg running.
func (l lent) Run(ctx context.Context, peer audio.Peer) error {
	l.Connect(keyed{peer, l.keys})
	defer l.Connect(nil)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.done:
		return l.err
	}
}

// Hangup implements audio.Leg. Whoever lent it hangs up.
func (lent) Hangup() {}

// keyed is a peer whose keys go elsewhere.
type keyed struct {
	audio.Peer
	keys func(key byte)
}

// Digit implements audio.Peer.
func (k keyed) Digit(key byte) { k.keys(key) }
