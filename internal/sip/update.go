package sip

import (
	"slices"
	"strconv"
	"strings"
	"time"

	sipgo "github.com/emiago/sipgo/sip"
)

// supported are the extensions that others may require of us.
const supported = "100rel, replaces, timer"

// able adds to a message what we can do.
func able(m sipgo.Message) {
	m.AppendHeader(sipgo.NewHeader("Allow", allowed))
	m.AppendHeader(sipgo.NewHeader("Supported", supported))
}

// valuesOf lists the values of a header, which may have several in a line, under any of its names.
func valuesOf(m sipgo.Message, names ...string) (list []string) {
	for _, name := range names {
		for _, h := range m.GetHeaders(name) {
			for v := range strings.SplitSeq(h.Value(), ",") {
				if v = strings.TrimSpace(v); v != "" {
					list = append(list, v)
				}
			}
		}
	}
	return list
}

// supports reports whether a message says that its sender has an extension, or insists on it.
func supports(m sipgo.Message, option string) bool {
	return slices.ContainsFunc(valuesOf(m, "Supported", "k", "Require"), func(v string) bool {
		return strings.EqualFold(v, option)
	})
}

// required lists the extensions that a request insists on and that we don't have (RFC 3261, section 8.2.2.3).
func required(req *sipgo.Request) string {
	list := slices.DeleteFunc(valuesOf(req, "Require"), func(v string) bool {
		return slices.ContainsFunc(strings.Split(supported, ", "), func(s string) bool { return strings.EqualFold(s, v) })
	})
	return strings.Join(list, ", ")
}

// updated changes the session as an INVITE does, but at once (RFC 3311), or only refreshes it.
func (l *leg) updated(req *sipgo.Request, tx *sipgo.ServerTx) {
	st := &l.state
	st.Lock()
	defer st.Unlock()
	text, ok := sdpOf(req)
	g := timerOf(req).grant(l.server.config.Session, l.server.least)
	switch {
	case st.ended:
		_ = tx.Respond(respond(req, 481))
		return
	case g.tooShort:
		_ = tx.Respond(respond(req, 422, "Min-SE", seconds(l.server.least)))
		return
	case !ok:
		_ = tx.Respond(respond(req, 415, "Accept", "application/sdp"))
		return
	case len(text) > 0 && (st.offering || st.pending != nil && st.pending.offer != nil ||
		st.reliable != nil && st.reliable.offer != nil && !acked(st.reliable)): // ours is not answered yet
		_ = tx.Respond(respond(req, 491))
		return
	case len(text) > 0 && l.early && !st.reliable.settled(): // nor is theirs
		_ = tx.Respond(respond(req, 500, "Retry-After", "1"))
		return
	}
	res := respond(req, 200, g.headers...)
	able(res)
	res.AppendHeader(l.ownContact())
	if len(text) > 0 {
		d, c, code := l.read(text)
		if code != 0 {
			_ = tx.Respond(respond(req, code, unfit(code, text, l.secrecy())...))
			return
		}
		withSDP(res, l.answerLocked(d, c))
	}
	l.learn(req)
	if l.early { // the answer to the INVITE decides about the timer
		_ = tx.Respond(res)
		return
	}
	l.session.Store(newSession(g.every, g.least, g.ours, time.Now()))
	_ = tx.Respond(res)
}

// read examines an offer within the call; code is the status to refuse it with, or 0.
func (l *leg) read(text []byte) (d *description, c choice, code int) {
	d, err := parseSDP(text)
	if err != nil {
		return nil, c, 400
	}
	if own := l.trunk.codecs(); len(own) > 0 {
		d.prefer(own)
	}
	c, ok := d.audio(l.Rate(), nil, l.secrecy()) // as it began, if that can be
	if !ok {
		c, ok = d.audio(0, nil, l.secrecy())
	}
	if !ok {
		return nil, c, 488
	}
	return d, c, 0
}

// unfit is a Warning that says why an offer was refused with 488 (RFC 3261, section 20.43). A fax is the most frequent
// reason in a call; encryption that the trunk's srtp forbids or asks for is another.
func unfit(code int, text []byte, srtp secrecy) []string {
	if code != 488 {
		return nil
	}
	number, why := 305, "the call's sound is G.722, Opus or G.711, of those that the trunk's codecs name"
	d, err := parseSDP(text)
	switch {
	case err != nil || len(d.streams) == 0:
	case !slices.ContainsFunc(d.streams, func(m stream) bool { return m.kind == "audio" && m.port != 0 }):
		number, why = 304, "this call carries sound alone"
		if slices.ContainsFunc(d.streams, func(m stream) bool { return m.kind == "image" }) {
			why = "fax (T.38) is not spoken here; the call goes on as it was"
		}
	case srtp != srtpOff && slices.ContainsFunc(d.streams, func(m stream) bool {
		_, fits := m.handshake()
		return m.overDTLS() && !fits
	}):
		why = "DTLS-SRTP needs a=fingerprint by SHA-256, SHA-384 or SHA-512, and a=setup: active, passive or actpass"
	case !fits(text, srtp) && fits(text, srtpOptional):
		if why = "the sound must be encrypted here (SRTP): the trunk's srtp is " + string(srtp); srtp == srtpOff {
			why = "the sound is not encrypted here: offer RTP/AVP, or set the trunk's srtp to optional"
		}
	}
	return []string{"Warning", strconv.Itoa(number) + " " + agent + " \"" + why + "\""}
}

// fits reports whether something in an offer can be taken.
func fits(offer []byte, srtp secrecy) bool {
	d, err := parseSDP(offer) // choosing changes it
	if err != nil {
		return false
	}
	_, ok := d.audio(0, nil, srtp)
	return ok
}
