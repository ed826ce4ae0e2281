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
		l.begin(l.tellKeys)
	}
	return true
}

// tellKeys sends what is to be sent by INFO. What the far end doesn't take goes as tones.
func (l *leg) tellKeys() {
	st := &l.state
	for {
		st.Lock()
		left := st.telling
		if st.ended {
			left, st.telling = "", ""
		}
		st.Unlock()
		if left == "" {
			return
		}
		req := l.request(sipgo.INFO)
		req.AppendHeader(sipgo.NewHeader("Content-Type", "application/dtmf-relay"))
		req.SetBody(fmt.Appendf(nil, "Signal=%c\r\nDuration=160\r\n", left[0]))
		res, err := l.ask(l.server.ctx, req)
		st.Lock()
		if err == nil && res.IsSuccess() {
			st.telling = st.telling[1:]
			st.Unlock()
			continue
		}
		left, st.telling = st.telling, ""
		st.byInfo = false
		st.Unlock()
		if m := l.sound.Load(); m != nil {
			m.Dial(left)
		}
		return
	}
}
