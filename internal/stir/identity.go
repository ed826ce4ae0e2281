package stir

import (
	"errors"
	"fmt"
	"net/mail"
	"strings"
	"time"
)

// identity is the value of an Identity header (RFC 8224, section 4).
type identity struct {
	token  string
	info   string // where the certificate is
	ppt    string
	hasPPT bool
}

// parseIdentity reads the value of an Identity header. Blanks in its token are where a long line was folded.
func parseIdentity(value string) (id identity, err error) {
	if len(value) > maxToken {
		return id, errors.New("the header is too long")
	}
	token, rest, _ := strings.Cut(value, ";")
	id.token = strings.Join(strings.Fields(token), "")
	for rest != "" {
		rest = strings.TrimSpace(rest)
		var one string
		if i := parameterEnd(rest); i < len(rest) {
			one, rest = rest[:i], rest[i+1:]
		} else {
			one, rest = rest, ""
		}
		name, v, _ := strings.Cut(one, "=")
		v = strings.Trim(strings.TrimSpace(v), `"`)
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "info":
			if !strings.HasPrefix(v, "<") || !strings.HasSuffix(v, ">") || len(v) > maxURI {
				return id, errors.New("info is no address in angle brackets")
			}
			id.info = strings.TrimSpace(v[1 : len(v)-1])
			if strings.ContainsFunc(id.info, func(c rune) bool { return c <= ' ' || c > '~' }) {
				return id, errors.New("info is no address")
			}
		case "alg":
			if v != "ES256" {
				return id, fmt.Errorf("it is signed by %q, not by ES256", short(v))
			}
		case "ppt":
			id.ppt, id.hasPPT = strings.ToLower(v), true
		}
	}
	if id.info == "" { // it is mandatory: it names the credential
		return id, errors.New("it has no info")
	}
	return id, nil
}

// parameterEnd is where a parameter ends: at the next semicolon that is not between angle brackets.
func parameterEnd(s string) int {
	inside := false
	for i := range len(s) {
		switch s[i] {
		case '<':
			inside = true
		case '>':
			inside = false
		case ';':
			if !inside {
				return i
			}
		}
	}
	return len(s)
}

// read is the token of the header. That of the compact form is put together from the call (RFC 8224, section 4; RFC 8225,
// section 7), which can be done for tokens without further claims alone.
func (id identity) read(c *Call) (*Token, error) {
	signature, compact := strings.CutPrefix(id.token, "..")
	if !compact {
		t, err := ParseToken(id.token)
		switch {
		case err != nil:
			return nil, err
		case id.hasPPT && id.ppt != t.PPT:
			return nil, fmt.Errorf("the header is of the kind %q, its token of the kind %q", short(id.ppt), short(t.PPT))
		case t.X5U != id.info:
			return nil, errors.New("the header and its token name different certificates")
		}
		return t, nil
	}
	if id.ppt != Base {
		return nil, fmt.Errorf("a token of the kind %q must be in full", short(id.ppt))
	}
	at, err := mail.ParseDate(c.Date)
	if err != nil {
		return nil, errors.New("a token in the compact form needs the header Date")
	}
	if len(c.To) == 0 {
		return nil, errors.New("a token in the compact form needs who is called")
	}
	claims := Claims{IAT: at.Unix(), Orig: partyOf(c.From)}
	if to := partyOf(c.To[0]); to.TN != "" {
		claims.Dest.TN = []string{to.TN}
	} else {
		claims.Dest.URI = []string{to.URI}
	}
	return ParseToken(input(Base, id.info, claims) + "." + signature)
}

// partyOf is somebody as tokens name them: a number by its digits (RFC 8224, section 8.3), an address without what may
// change on its way (section 8.5).
func partyOf(who string) Party {
	if n := canonicalNumber(who); n != "" {
		return Party{TN: n}
	}
	return Party{URI: canonicalURI(who)}
}

// canonicalNumber is a telephone number by its digits, "" for what is none.
func canonicalNumber(s string) string {
	digits := strings.Map(func(r rune) rune {
		if strings.ContainsRune("+-. ()", r) {
			return -1
		}
		return r
	}, s)
	if digits == "" || strings.Trim(digits, "0123456789*#") != "" {
		return ""
	}
	return digits
}

// canonicalURI is a sip: address by its user and host alone.
func canonicalURI(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if i := strings.IndexAny(s, ";?"); i >= 0 {
		s = s[:i]
	}
	if rest, ok := strings.CutPrefix(s, "sips:"); ok {
		s = "sip:" + rest
	}
	if !strings.HasPrefix(s, "sip:") {
		s = "sip:" + s
	}
	return s
}

// is reports whether a token's party is who a call names.
func (p Party) is(who string) bool {
	w := partyOf(who)
	if p.TN != "" {
		return w.TN != "" && canonicalNumber(p.TN) == w.TN
	}
	return p.URI != "" && w.URI != "" && canonicalURI(p.URI) == w.URI
}

// has reports whether somebody is among those whom a token is for.
func (p Parties) has(who string) bool {
	for _, tn := range p.TN {
		if (Party{TN: tn}).is(who) {
			return true
		}
	}
	for _, uri := range p.URI {
		if (Party{URI: uri}).is(who) {
			return true
		}
	}
	return false
}

// Call is what the Identity headers of a call are compared with.
type Call struct {
	ID         string   // its Call-ID
	From       string   // who calls, as it is shown: E.164, or an address
	To         []string // who is called: E.164, or addresses; the header To first
	Date       string   // the header Date
	Identities []string // the values of its Identity headers
}

// freshness is how old a token may be (RFC 8224, section 6.2.2: 60 seconds are recommended).
const freshness = 60 * time.Second
