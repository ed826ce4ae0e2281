package sip

import (
	"bytes"
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/netip"
	"slices"
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

// challenges are the headers that ask for a password (RFC 8760). Both algorithms have the same nonce. MD5 comes first: many
// PBXs read only the first header, and give up if they don't know its algorithm; and they take "auth" alone for a qop.
func (l *digestAuth) challenges(a netip.Addr, stale bool) (headers []string) {
	nonce := l.nonce(a, time.Now())
	for _, c := range []digest.Challenge{{Algorithm: "MD5", QOP: []string{"auth"}},
		{Algorithm: "SHA-256", QOP: []string{"auth", "auth-int"}}} {
		c.Realm, c.Nonce, c.Stale = realm, nonce, stale
		headers = append(headers, "WWW-Authenticate", c.String())
	}
	return headers
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
	c := credentialsOf(req)
	if c == nil {
		return noProof, nil
	}
	now := time.Now()
	if !l.fresh(c.Nonce, a, now) {
		return staleProof, nil
	}
	for _, t := range trunks {
		if c.Username != t.authName() || t.Password == "" {
			continue
		}
		chal := digest.Challenge{Realm: realm, Nonce: c.Nonce, Algorithm: c.Algorithm}
		if c.QOP != "" {
			chal.QOP = []string{c.QOP}
		}
		want, err := digest.Digest(&chal, digest.Options{Method: string(req.Method), URI: c.URI,
			GetBody: bodyReader(req), Username: c.Username, Password: t.Password, Count: c.Nc, Cnonce: c.Cnonce})
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

// credentialsOf are the credentials for our realm in a request, nil if there are none: it may bring those of other realms
// too.
func credentialsOf(req *sipgo.Request) *digest.Credentials {
	for _, h := range req.GetHeaders("Authorization") {
		c, err := digest.ParseCredentials(h.Value())
		if err == nil && c.Realm == realm && slices.Contains([]string{"", "MD5", "SHA-256"}, strings.ToUpper(c.Algorithm)) &&
			slices.Contains([]string{"", "auth", "auth-int"}, c.QOP) {
			return c
		}
	}
	return nil
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
	number             func() uint32 // gives the requests of a dialog their numbers; nil: the next one
	asked              []*asked      // in the order in which they came
}

// asked is the challenge of one realm, as it came last.
type asked struct {
	challenge *digest.Challenge
	header    string // that it came in
	times     int    // how often it came
	count     int    // of the answers to its nonce
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
	errPassword  = errors.New("the password was refused")
	errForbidden = errors.New("the registration is forbidden")
	errNoLogin   = errors.New("a password is asked for, and the trunk has none")
	errScheme    = errors.New("a password is asked for in a way that is not known here")
)

// answer adds credentials to a request that got a 401 or 407: for every realm that has asked so far, by which proxies on
// the way and the server behind them all get theirs.
func (l *login) answer(req *sipgo.Request, res *sipgo.Response) error {
	header := "WWW-Authenticate"
	if res.StatusCode == sipgo.StatusProxyAuthRequired {
		header = "Proxy-Authenticate"
	}
	if l.username == "" || l.password == "" {
		return errNoLogin
	}
	if err := l.challenged(header, res); err != nil {
		return err
	}
	for _, name := range []string{"Authorization", "Proxy-Authorization"} {
		for req.RemoveHeader(name) {
		}
	}
	for _, a := range l.asked {
		a.count++
		credentials, err := digested(*a.challenge, digest.Options{Method: string(req.Method),
			URI: req.Recipient.String(), GetBody: bodyReader(req), Username: l.username, Password: l.password, Count: a.count})
		if err != nil {
			return err
		}
		name := "Authorization"
		if a.header == "Proxy-Authenticate" {
			name = "Proxy-Authorization"
		}
		text := credentials.String()
		if credentials.QOP == "" && credentials.Cnonce != "" { // its key is made of it
			text += `, cnonce="` + credentials.Cnonce + `"`
		}
		req.AppendHeader(sipgo.NewHeader(name, text))
	}
	return nil
}

// challenged notes the challenges of an answer. If a realm offers several, the first that we know is taken: they come in
// the order of the far end's preference (RFC 8760, section 2.4).
func (l *login) challenged(header string, res *sipgo.Response) error {
	var taken []string
	for _, h := range res.GetHeaders(header) {
		c, err := digest.ParseChallenge(h.Value())
		if err != nil {
			continue
		}
		for i, q := range c.QOP {
			c.QOP[i] = strings.ToLower(strings.TrimSpace(q))
		}
		if !canDigest(*c) || slices.Contains(taken, c.Realm) {
			continue
		}
		taken = append(taken, c.Realm)
		i := slices.IndexFunc(l.asked, func(a *asked) bool { return a.header == header && a.challenge.Realm == c.Realm })
		if i < 0 {
			if len(l.asked) == maxRealms {
				return errScheme
			}
			i = len(l.asked)
			l.asked = append(l.asked, &asked{header: header})
		}
		a := l.asked[i]
		if a.times > 1 || a.times == 1 && !c.Stale {
			return errPassword
		}
		a.challenge, a.times, a.count = c, a.times+1, 0
	}
	if taken == nil {
		return errScheme
	}
	return nil
}

// sess is the end of the algorithms whose key is made of the nonces too (RFC 7616, section 3.4.2).
const sess = "-SESS"

// canDigest reports whether a challenge can be answered.
func canDigest(c digest.Challenge) bool {
	c.Algorithm = strings.TrimSuffix(strings.ToUpper(c.Algorithm), sess)
	return digest.CanDigest(&c)
}

// digested makes the credentials for a challenge. The library knows only the algorithms without nonces in their keys.
func digested(c digest.Challenge, o digest.Options) (*digest.Credentials, error) {
	named := c.Algorithm
	base, ok := strings.CutSuffix(strings.ToUpper(named), sess)
	if !ok {
		return digest.Digest(&c, o)
	}
	hash := map[string]func() hash.Hash{"MD5": md5.New, "SHA-256": sha256.New, "SHA-512": sha512.New, "SHA-512-256": sha512.New512_256}[base]
	if hash == nil {
		return nil, errScheme
	}
	if o.Cnonce == "" {
		o.Cnonce = token(16)
	}
	joined := func(parts ...string) string {
		h := hash()
		h.Write([]byte(strings.Join(parts, ":")))
		return hex.EncodeToString(h.Sum(nil))
	}
	o.A1 = joined(joined(o.Username, c.Realm, o.Password), c.Nonce, o.Cnonce)
	c.Algorithm = base
	credentials, err := digest.Digest(&c, o)
	if err == nil {
		credentials.Algorithm, credentials.Cnonce = named, o.Cnonce
	}
	return credentials, err
}

// maxRealms is how many may ask for a password on the way of one request.
const maxRealms = 4

// bodyReader gives a request's body to those who prove it along with the password (auth-int).
func bodyReader(req *sipgo.Request) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(req.Body())), nil }
}
