package sip

import (
	"fmt"

	sipgo "github.com/emiago/sipgo/sip"
)

// dialByInfo sends keys by SIP INFO, one after the other. It is false where they go with the sound: by RFC 4733 if that
// was agreed on, and as tones if the far end hasn't pressed keys by INFO itself.
func (l *leg) dialByInfo(keys string) bool {
	st := &l.state
	st.Lock()
	defer st.Unlock()
	if st.agreed.Codec.Event || !st.byInfo || st.ended {
		return false
	}
	idle := st.telling == ""
	st.telling += keys
	if idle {
		l.begin(func() { l.tellKeys(keys) })
	}
	return true
}

// tellKeys sends keys by INFO until none are left.
func (l *leg) tellKeys(left string) {
	for left != "" {
		req := l.request(sipgo.INFO)
		req.AppendHeader(sipgo.NewHeader("Content-Type", "application/dtmf-relay"))
		req.SetBody(fmt.Appendf(nil, "Signal=%c\r\nDuration=160\r\n", left[0]))
		res, err := l.ask(l.server.ctx, req)
		left = l.sent(err == nil && res.IsSuccess())
	}
}

// sent notes whether the far end has taken a key by INFO, and returns those that are left to be sent; the next keys that are dialled after
// the last have a sender of their own. What the far end doesn't take goes as tones.
func (l *leg) sent(taken bool) (left string) {
	st := &l.state
	st.Lock()
	defer st.Unlock()
	switch {
	case st.ended:
		st.telling = ""
	case taken:
		st.telling = st.telling[1:]
	default:
		if m := l.sound.Load(); m != nil {
			m.Dial(st.telling)
		}
		st.telling, st.byInfo = "", false
	}
	return st.telling
}
