package rtc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/pion/turn/v5"

	"parley/internal/parley"
)

// Fragment is what the ends tell each other when they connect anew (RFC 8840, section 9): the name and the password of
// the connection, and where an end is reached.
type Fragment struct {
	Name, Password string
	Candidates     []string // "candidate:…"
	mid            string   // of the first media
}

// iceText is what names and passwords consist of (RFC 8839, section 5.4).
var iceText = regexp.MustCompile(`^[A-Za-z0-9+/]{4,256}$`)

// ReadFragment reads one, or a whole description. The error is what its sender may read.
func ReadFragment(text string) (f Fragment, err error) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "a="), ":")
		switch {
		case key == "ice-ufrag" && f.Name == "":
			f.Name = value
		case key == "ice-pwd" && f.Password == "":
			f.Password = value
		case key == "mid" && f.mid == "":
			f.mid = value
		case key == "candidate":
			f.Candidates = append(f.Candidates, "candidate:"+value)
		}
	}
	if !iceText.MatchString(f.Name) || !iceText.MatchString(f.Password) || len(f.Password) < 22 {
		return f, parley.Errorf(parley.Invalid, "The fragment needs a=ice-ufrag and a=ice-pwd (RFC 8840, RFC 8839).")
	}
	return f, nil
}

// String is the fragment as it is sent.
func (f Fragment) String() string {
	var b strings.Builder
	b.WriteString("a=ice-lite\r\na=ice-ufrag:" + f.Name + "\r\na=ice-pwd:" + f.Password + "\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:" +
		f.mid + "\r\n")
	for _, c := range f.Candidates {
		b.WriteString("a=" + c + "\r\n")
	}
	b.WriteString("a=end-of-candidates\r\n")
	return b.String()
}

// Tag names the connection, until the next one (RFC 9725, section 4.3.1).
func (f Fragment) Tag() string { return `"` + f.Name + `"` }

// maxRestarts is how often a browser may connect anew: each time costs as much as an answer.
const maxRestarts = 100

// ErrOver is that a call is over.
var ErrOver = errors.New("the call is over")

// Restart connects the browser anew, which has another name and password by now: its network has changed, or it has
// found another way (RFC 8445, section 9). The call goes on meanwhile. A browser whose name is the old one has only told
// where it is reached, which we learn from its packets.
func (l *Leg) Restart(ctx context.Context, f Fragment) (ours Fragment, err error) {
	l.connecting.Lock()
	defer l.connecting.Unlock()
	select {
	case <-l.done:
		return ours, ErrOver
	default:
	}
	if theirs, err := ReadFragment(l.offer.text); err == nil && theirs.Name == f.Name {
		return l.ours, nil
	}
	if l.restarts++; l.restarts > maxRestarts {
		return ours, parley.Errorf(parley.Refused, "This call has been connected anew too often. Call again.")
	}
	next := *l.offer
	next.text = l.offer.renewed(f)
	if _, err := l.negotiate(ctx, &next); err != nil {
		return ours, err
	}
	l.offer = &next
	return l.ours, nil
}

// Reconnect connects the browser anew by the text of a fragment (Restart). match is "", "*", or the tag of the connection
// that the browser knows: one that has been replaced since is refused (RFC 9725, section 4.3.1). changed is false where
// the browser has only told where it is reached.
func (l *Leg) Reconnect(ctx context.Context, match, text string) (ours Fragment, changed bool, err error) {
	was := l.Connection().Tag()
	if match != "" && match != "*" && match != was {
		return ours, false, parley.Errorf(parley.Stale, "The call has been connected anew since: send If-Match: * to connect it again.")
	}
	theirs, err := ReadFragment(text)
	if err != nil {
		return ours, false, err
	}
	ours, err = l.Restart(ctx, theirs)
	return ours, err == nil && ours.Tag() != was, err
}

// Connection is how the leg is connected at present.
func (l *Leg) Connection() Fragment {
	l.connecting.Lock()
	defer l.connecting.Unlock()
	return l.ours
}

// renewed is the offer with another name and password, and no candidates.
func (o *Offer) renewed(f Fragment) string {
	var b strings.Builder
	for line := range strings.Lines(o.text) {
		switch {
		case strings.HasPrefix(line, "a=ice-ufrag:"):
			line = "a=ice-ufrag:" + f.Name + "\r\n"
		case strings.HasPrefix(line, "a=ice-pwd:"):
			line = "a=ice-pwd:" + f.Password + "\r\n"
		case strings.HasPrefix(line, "a=candidate:"):
			continue
		}
		b.WriteString(line)
	}
	return b.String()
}

// helperTime is how long the names last that the operator's TURN servers are told: longer than any call.
const helperTime = 24 * time.Hour

// help prepares what may help the browser to connect.
func (l *Leg) help() {
	s := l.server
	if s.relay != nil {
		name, password := s.relay.admit()
		l.relay = [2]string{name, password}
	}
	t := s.TURN
	if len(t.URLs) == 0 {
		return
	}
	name, password := t.User, t.Password
	if t.Secret != "" {
		name, password, _ = turn.GenerateLongTermTURNRESTCredentials(t.Secret, rand.Text(), helperTime)
	}
	l.helpers = []ICEServer{{URLs: t.URLs, Username: name, Password: password}}
}

// Links tell a browser of a server that helps it to connect, as values of Link headers (RFC 9725, section 4.6).
func (s ICEServer) Links() (list []string) {
	for _, url := range s.URLs {
		link := "<" + url + `>; rel="ice-server"`
		if s.Username != "" {
			link += fmt.Sprintf("; username=%q; credential=%q; credential-type=\"password\"", s.Username, s.Password)
		}
		list = append(list, link)
	}
	return list
}

// Helpers are the servers by which the browser may connect where it doesn't reach our port: the operator's, and our own
// relay at host, host:port of the HTTPS server; "" for none.
func (l *Leg) Helpers(host string) []ICEServer {
	list := l.helpers
	if l.relay[0] != "" && host != "" {
		list = append([]ICEServer{{URLs: []string{"turns:" + host + "?transport=tcp"}, Username: l.relay[0],
			Password: l.relay[1]}}, list...)
	}
	return list
}
