package sip

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"time"

	sipgo "github.com/emiago/sipgo/sip"
	"github.com/icholy/digest"
)

const (
	realm     = "parley"
	nonceTime = 5 * time.Minute
)

// digestAuth asks callers for passwords (RFC 3261, section 22; RFC 7616). A challenge needs no memory: it proves by
// itself that we made it, when, and for which address. Only correct answers are remembered, so that none can be used
// twice.
type digestAuth struct {
	key [32]byte

	mu   sync.Mutex
	used map[string]answered // by nonce
}

type answered struct {
	count   int    // the client's: it grows
	request string // that brought it: a repetition is no second use
	until   time.Time
}

func newDigestAuth() *digestAuth {
	l := &digestAuth{used: map[string]answered{}}
	rand.Read(l.key[:])
	return l
}

// nonce makes the text against which a password is proved.
func (l *digestAuth) nonce(a netip.Addr, now time.Time) string {
	b := make([]byte, 16, 32)
	binary.BigEndian.PutUint64(b, uint64(now.Unix()))
	rand.Read(b[8:])
	return base64.RawURLEncoding.EncodeToString(append(b, l.sign(b, a)...))
}

func (l *digestAuth) sign(b []byte, a netip.Addr) []byte {
	h := hmac.New(sha256.New, l.key[:])
	h.Write(b)
	h.Write(a.AsSlice())
	return h.Sum(nil)[:16]
}

// fresh reports whether a nonce is ours, was made for that address, and is not old.
func (l *digestAuth) fresh(nonce string, a netip.Addr, now time.Time) bool {
	b, err := base64.RawURLEncoding.DecodeString(nonce)
	if err != nil || len(b) != 32 || !hmac.Equal(b[16:], l.sign(b[:16], a)) {
		return false
	}
	age := now.Sub(time.Unix(int64(binary.BigEndian.Uint64(b)), 0))
	return age < nonceTime
}

// challenge is the value of WWW-Authenticate.
func (l *digestAuth) challenge(a netip.Addr, stale bool) string {
	c := digest.Challenge{Realm: realm, Nonce: l.nonce(a, time.Now()), Algorithm: "MD5", QOP: []string{"auth"},
		Stale: stale}
	return c.String()
}

// proof is what a request proves about its sender.
type proof int

const (
	noProof    proof = iota
	staleProof       // right or wrong, it is for an old challenge
	wrongProof
	rightProof
)

// check examines a request's credentials. It returns the trunk whose password they prove.
func (l *digestAuth) check(req *sipgo.Request, a netip.Addr, trunks []*Trunk) (proof, *Trunk) {
	h := req.GetHeader("Authorization")
	if h == nil {
		return noProof, nil
	}
	c, err := digest.ParseCredentials(h.Value())
	if err != nil || c.Realm != realm || c.Algorithm != "" && !strings.EqualFold(c.Algorithm, "MD5") ||
		c.QOP != "" && c.QOP != "auth" {
		return noProof, nil
	}
	now := time.Now()
	if !l.fresh(c.Nonce, a, now) {
		return staleProof, nil
	}
	for _, t := range trunks {
		if c.Username != t.Username || t.Password == "" {
			continue
		}
		chal := digest.Challenge{Realm: realm, Nonce: c.Nonce, Algorithm: c.Algorithm}
		if c.QOP != "" {
			chal.QOP = []string{c.QOP}
		}
		want, err := digest.Digest(&chal, digest.Options{Method: string(req.Method), URI: c.URI,
			Username: t.Username, Password: t.Password, Count: c.Nc, Cnonce: c.Cnonce})
		if err != nil || subtle.ConstantTimeCompare([]byte(want.Response), []byte(strings.ToLower(c.Response))) != 1 {
			continue
		}
		if !l.use(c.Nonce, c.Nc, req, now) {
			return staleProof, nil
		}
		return rightProof, t
	}
	return wrongProof, nil
}

// use notes a correct answer; it is false if the answer was used before.
func (l *digestAuth) use(nonce string, count int, req *sipgo.Request, now time.Time) bool {
	branch, _ := req.Via().Params.Get("branch")
	request := req.CallID().Value() + " " + req.CSeq().Value() + " " + branch
	l.mu.Lock()
	defer l.mu.Unlock()
	u, known := l.used[nonce]
	if known && u.request == request && u.count == count {
		return true
	}
	if known && count <= u.count {
		return false
	}
	l.used[nonce] = answered{count: count, request: request, until: now.Add(nonceTime)}
	return true
}

// sweep forgets what is too old to be used again anyway.
func (l *digestAuth) sweep(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, u := range l.used {
		if now.After(u.until) {
			delete(l.used, n)
		}
	}
}

// login answers the challenges to one request and its repetitions: once per realm, and once more if the far end says
// that its nonce was old. So a wrong password is not tried twice, for which some would ban us.
type login struct {
	username, password string
	number             func() uint32  // gives the requests of a dialog their numbers; nil: the next one
	tried              map[string]int // by header and realm
}

// renumber gives a request that is repeated its new sequence number.
func (l *login) renumber(req *sipgo.Request) {
	if l.number != nil {
		req.CSeq().SeqNo = l.number()
	} else {
		req.CSeq().SeqNo++
	}
}

var (
	errPassword = errors.New("the password was refused")
	errNoLogin  = errors.New("a password is asked for, and the trunk has none")
)

// answer adds credentials to a request that got a 401 or 407.
func (l *login) answer(req *sipgo.Request, res *sipgo.Response) error {
	ask, reply := "WWW-Authenticate", "Authorization"
	if res.StatusCode == sipgo.StatusProxyAuthRequired {
		ask, reply = "Proxy-Authenticate", "Proxy-Authorization"
	}
	if l.username == "" || l.password == "" {
		return errNoLogin
	}
	for _, h := range res.GetHeaders(ask) {
		c, err := digest.ParseChallenge(h.Value())
		if err != nil {
			continue
		}
		for i, q := range c.QOP {
			c.QOP[i] = strings.TrimSpace(q)
		}
		if !digest.CanDigest(c) || len(c.QOP) > 0 && !c.SupportsQOP("auth") {
			continue
		}
		place := ask + " " + c.Realm
		if n := l.tried[place]; n > 1 || n == 1 && !c.Stale {
			return errPassword
		}
		if l.tried == nil {
			l.tried = map[string]int{}
		}
		l.tried[place]++
		credentials, err := digest.Digest(c, digest.Options{Method: string(req.Method), URI: req.Recipient.String(),
			Username: l.username, Password: l.password})
		if err != nil {
			return err
		}
		req.RemoveHeader(reply)
		req.AppendHeader(sipgo.NewHeader(reply, credentials.String()))
		return nil
	}
	return errors.New("a password is asked for in a way that is not known here")
}
