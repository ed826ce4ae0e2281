package sip

import (
	"errors"
	"time"

	sipgo "github.com/emiago/sipgo/sip"
)

// A 2xx to an INVITE is retransmitted until its ACK arrives, by us and not by the transaction (RFC 3261, section
// 13.3.1.4).

// errNoACK ends a call that the far end never confirmed.
var errNoACK = errors.New("the far end didn't confirm the call: no ACK came")

// expect remembers that an ACK is due.
func (l *leg) expect(seq uint32, offer *ours, acked chan struct{}) *pending {
	p := &pending{seq: seq, offer: offer, acked: acked}
	l.state.Lock()
	l.state.pending = p
	l.state.Unlock()
	return p
}

// confirm retransmits a 2xx until its ACK arrives, or ends the call.
func (l *leg) confirm(tx *sipgo.ServerTx, res *sipgo.Response, p *pending) {
	every := sipgo.T1
	again := time.NewTimer(every)
	defer again.Stop()
	give := time.NewTimer(64 * sipgo.T1)
	defer give.Stop()
	done := l.done
	for {
		select {
		case <-p.acked:
			return
		case req := <-tx.Acks(): // by the INVITE's own branch, which is wrong, and done
			l.acknowledge(req)
		case <-again.C:
			_ = tx.Respond(res)
			every = min(2*every, sipgo.T2)
			again.Reset(every)
		case <-give.C:
			l.acknowledged(p)
			l.end(errNoACK, true)
			return
		case <-done:
			if l.left {
				l.acknowledged(p)
				return
			}
			done = nil // we have hung up, and BYE waits for the ACK
		case <-l.server.ctx.Done():
			l.acknowledged(p)
			return
		}
	}
}

// acknowledge takes an ACK, including the answer in it if the 2xx made the offer.
func (l *leg) acknowledge(req *sipgo.Request) {
	l.state.Lock()
	p := l.state.pending
	if p == nil || req.CSeq() == nil || p.seq != req.CSeq().SeqNo {
		l.state.Unlock()
		return
	}
	var bad error
	if p.offer != nil {
		bad = l.answeredLocked(req, p.offer)
	}
	l.state.Unlock()
	l.acknowledged(p)
	if bad != nil {
		l.end(bad, true)
	}
}

// answeredLocked takes the far end's answer to our offer out of a message.
func (l *leg) answeredLocked(m sipgo.Message, offer *ours) error {
	text, _ := sdpOf(m)
	d, err := parseSDP(text)
	if err != nil {
		return err
	}
	c, ok := d.audio(0, offer, l.secrecy())
	if !ok {
		return errNoCodec
	}
	d.streams[c.place].mux = d.streams[c.place].mux && offer.dtls // otherwise we did not offer it
	l.agreeLocked(d, c)
	return nil
}

var errNoCodec = errors.New("the far end chose no codec, or no encryption, of those that were offered")

// acknowledged notes that no ACK is due any more.
func (l *leg) acknowledged(p *pending) {
	l.state.Lock()
	defer l.state.Unlock()
	if l.state.pending == p {
		l.state.pending = nil
		close(p.acked)
	}
}
