package sip

import (
	"bytes"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"time"

	"parley/internal/parley"
)

// Each call over a user's own trunk keeps its SIP messages, as they went over the wire. Calls over the carrier don't:
// where the carrier is, is only the operator's business.

const (
	maxMessages = 80      // of a call; later ones are left out
	maxText     = 8 << 10 // octets of one
	laddersKept = 40 * time.Second
	ladderWait  = time.Second
)

// ladder is the messages of one call, that is, of one Call-ID.
type ladder struct {
	mu   sync.Mutex
	list []parley.SIPMessage
	last time.Time
}

func (l *ladder) messages() []parley.SIPMessage {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]parley.SIPMessage(nil), l.list...)
}

// ladders holds a server's ladders, by Call-ID.
type ladders struct {
	mu  sync.Mutex
	all map[string]*ladder
}

// begin records the messages of a Call-ID from now on, unless it already does.
func (a *ladders) begin(callID string) *ladder {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.all[callID]
	if l == nil {
		l = &ladder{last: time.Now()}
		a.all[callID] = l
	}
	return l
}

func (a *ladders) find(callID string) *ladder {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all[callID]
}

// share records the messages of another Call-ID with a call's.
func (a *ladders) share(callID string, l *ladder) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all[callID] = l
}

// join adds the messages of another Call-ID to a call's.
func (a *ladders) join(callID string, l *ladder) {
	a.mu.Lock()
	defer a.mu.Unlock()
	from := a.all[callID]
	if l == nil || from == nil || from == l {
		return
	}
	a.all[callID] = l
	list := from.messages()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, list[:min(len(list), max(0, maxMessages-len(l.list)))]...)
}

// send records a message of ours if it belongs to a recorded call.
func (a *ladders) send(data []byte, peer netip.AddrPort, w way) {
	a.note(callIDOf(data), "out", data, peer, w)
}

// take records a message as it came if it belongs to a recorded call.
func (a *ladders) take(callID string, data []byte, peer netip.AddrPort, w way) {
	a.note(callID, "in", data, peer, w)
}

func (a *ladders) note(callID, direction string, data []byte, peer netip.AddrPort, w way) {
	l := a.find(callID)
	if l == nil {
		return
	}
	m := parley.SIPMessage{At: parley.Now(), Direction: direction, Transport: strings.ToLower(string(w)), Peer: peer.String(),
		Text: redacted(data)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = time.Now()
	if len(l.list) < maxMessages {
		l.list = append(l.list, m)
	}
}

// sweep drops the ladders of calls that are over: whoever needs one has it.
func (a *ladders) sweep(live map[string]bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, l := range a.all {
		l.mu.Lock()
		idle := time.Since(l.last) > laddersKept
		l.mu.Unlock()
		if idle && !live[id] {
			delete(a.all, id)
		}
	}
}

// sweepLadders drops the ladders of calls that are over.
func (s *Server) sweepLadders() {
	live := map[string]bool{}
	s.mu.Lock()
	for _, l := range s.legs {
		live[l.callID] = true
	}
	s.mu.Unlock()
	s.ladders.sweep(live)
}

// kept reports whether a trunk's calls keep their messages.
func (t *Trunk) kept() bool { return t == nil || t.Number != "" }

// callIDOf is a message's Call-ID, "" if it has none.
func callIDOf(data []byte) string {
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, []byte("\r\n"))
		if len(line) == 0 {
			return "" // the body begins
		}
		if name, value, ok := bytes.Cut(line, []byte(":")); ok {
			if name = bytes.TrimSpace(name); bytes.EqualFold(name, []byte("Call-ID")) || bytes.EqualFold(name, []byte("i")) {
				return string(bytes.TrimSpace(value))
			}
		}
		data = rest
	}
	return ""
}

var (
	inline   = regexp.MustCompile(`(?i)(inline\s*:)[^\r\n]*`)
	password = regexp.MustCompile(`(?i)(sips?:[^\s:@<>;]*):[^\s@<>]*@`)
)

const hidden = "[hidden]"

// redacted is a message without password proofs, without keys, and without the digits that a person pressed: they may
// be a card number.
func redacted(data []byte) string {
	data = bytes.TrimLeft(data, " \t\r\n\x00")
	if bareLines(data) {
		data = bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
	}
	head, body, _ := strings.Cut(strings.ToValidUTF8(string(data), "\uFFFD"), "\r\n\r\n")
	var b strings.Builder
	method, _ := cutBlank(data)
	secret, digits := false, bytes.EqualFold(method, []byte("INFO"))
	for i, line := range strings.Split(head, "\r\n") {
		goesOn := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
		if i > 0 && !(goesOn && secret) {
			b.WriteString("\r\n")
		}
		if goesOn {
			if !secret {
				b.WriteString(password.ReplaceAllString(line, "$1:"+hidden+"@"))
			}
			continue
		}
		name, _, _ := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		secret = strings.EqualFold(name, "Authorization") || strings.EqualFold(name, "Proxy-Authorization")
		if secret {
			b.WriteString(name + ": " + hidden)
		} else {
			b.WriteString(password.ReplaceAllString(line, "$1:"+hidden+"@"))
		}
	}
	b.WriteString("\r\n\r\n")
	if digits && body != "" {
		b.WriteString(hidden)
	} else {
		b.WriteString(inline.ReplaceAllString(body, "$1"+hidden))
	}
	text := strings.ReplaceAll(b.String(), "\x00", "\uFFFD")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}

// Ladder returns the call's messages. It waits briefly for those of its end.
func (l *leg) Ladder() []parley.SIPMessage {
	give := time.NewTimer(ladderWait)
	defer give.Stop()
	select {
	case <-l.gone:
	case <-give.C:
	}
	return l.ladder.messages()
}

// unreached is the error of an unanswered call, with its messages.
type unreached struct {
	error
	ladder *ladder
}

func (u unreached) Unwrap() error               { return u.error }
func (u unreached) Ladder() []parley.SIPMessage { return u.ladder.messages() }
