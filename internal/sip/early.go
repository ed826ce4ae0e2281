package sip

import (
	"parley/internal/audio"
	"parley/internal/crash"
	"parley/internal/rtp"
)

// overture is the sound of a call of ours before somebody answers: ringback, or an announcement (early media, RFC 3960).
// It is heard only where somebody wants to hear it; otherwise it is thrown away.
type overture struct{ done, over chan struct{} }

// silent is a peer that is not heard.
type silent struct{ audio.Peer }

// Tick implements audio.Peer.
func (s silent) Tick(in, out audio.Frame) bool {
	s.Peer.Tick(in, out)
	return false
}

// listen begins it with the first description of the far end's that fits, if somebody wants to hear it.
func (a *attempt) listen(d *description) {
	if a.early == nil || a.heard != nil {
		return
	}
	l := a.leg
	c, ok := d.audio(0, a.offer, l.secrecy())
	if !ok {
		return
	}
	rate := c.codec.Format.Rate()
	var p audio.Peer
	if p = a.early(rate); p == nil {
		return
	}
	a.drained()
	m := rtp.NewSession(l.socket, rate, l.loose(), silent{p})
	l.state.Lock()
	agreed := l.agree(d, l.shake(d, c))
	l.state.Unlock()
	agreed.Mux, agreed.Signal = agreed.Mux && a.offer.dtls, l.peer()
	m.Agree(agreed)
	o := &overture{make(chan struct{}), make(chan struct{})}
	a.heard = o
	go func() {
		defer close(o.over)
		defer crash.Contain(crash.Log("the sound before an answer", "trunk", l.trunkID()))
		m.Run(o.done, func() {})
	}()
}

// hush ends what is heard or thrown away before an answer.
func (a *attempt) hush() {
	if o := a.heard; o != nil {
		a.heard = nil
		close(o.done)
		<-o.over
	}
	a.drained()
}
