package stir

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"parley/internal/parley"
)

// Verifier checks Identity headers. It is safe for concurrent use.
type Verifier struct {
	// Roots are those whose certificates may sign calls; nil: nobody is trusted, and a right signature proves nothing.
	Roots *x509.CertPool
	Skew  time.Duration // by how much clocks may differ

	now   func() time.Time
	certs *cache
	seen  seen
}

const (
	maxIdentities = 6               // of a call: further ones are not looked at
	patience      = time.Second     // for certificates, before the call rings
	maxSeen       = 20000           // signatures that are remembered
	maxText       = 200             // bytes of what a token says, as it is shown
	future        = time.Minute * 5 // which no skew exceeds
)

// NewVerifier makes a verifier that fetches certificates by a client. Close it at the end.
func NewVerifier(client *http.Client, roots *x509.CertPool, skew time.Duration) *Verifier {
	v := &Verifier{Roots: roots, Skew: min(skew, future), now: time.Now}
	v.certs = newCache(client, func() time.Time { return v.now() })
	return v
}

// Close ends what is being fetched, and waits for it.
func (v *Verifier) Close() { v.certs.close() }

// flaw is why a token doesn't count, with the SIP status for it (RFC 8224, section 6.2.2).
type flaw struct {
	code int
	why  string
}

func (f *flaw) Error() string { return f.why }

const (
	stale       = 403 // Stale Date
	badInfo     = 436 // Bad Identity Info
	unsupported = 437 // Unsupported Credential
	invalid     = 438 // Invalid Identity Header
)

func wrong(code int, why error) error { return &flaw{code, why.Error()} }

// unsure are flaws that say nothing about the caller: nobody could decide.
type unsure struct{ flaw }

var (
	errUntrusted = &unsure{
		flaw{0, "the signature is right, but this server has no authorities whose certificates it believes (PARLEY_STIR_ROOTS)"}}
	errKinds = &unsure{flaw{0, "the call was signed in ways alone that are not known"}}
)

// Verify says what a call's Identity headers prove; nil for a call that has none. It waits for certificates for a
// second at most.
func (v *Verifier) Verify(ctx context.Context, c Call) *parley.CallVerification {
	if len(c.Identities) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	all := read(&c)
	var best *parley.CallVerification
	for _, p := range all {
		if p.token != nil && (p.token.PPT == Div || p.token.PPT == RCD) {
			continue
		}
		if got := v.judge(ctx, &c, p, all); best == nil || rank(got) > rank(best) {
			best = got
		}
	}
	if best == nil {
		best = verdict(nil, errKinds)
	}
	if best.Result == parley.Verified {
		v.enrich(ctx, &c, best, all)
	}
	return best
}

// rank orders verdicts: one good signature is enough, and of the others a failure counts.
func rank(v *parley.CallVerification) int {
	switch v.Result {
	case parley.Verified:
		return 3
	case parley.VerificationFailed:
		return 2
	}
	return 1
}

// proof is one Identity header: its token, or why it can't be read.
type proof struct {
	token *Token
	err   error
}

// read reads a call's tokens. Those of unknown kinds are left out.
func read(c *Call) (list []proof) {
	for _, value := range c.Identities[:min(len(c.Identities), maxIdentities)] {
		id, err := parseIdentity(value)
		var t *Token
		if err == nil {
			t, err = id.read(c)
		}
		if err == nil && t.PPT != Base && t.PPT != Shaken && t.PPT != Div && t.PPT != RCD {
			continue
		}
		list = append(list, proof{t, err})
	}
	return list
}

// verdict is what a token and its flaw, nil for none, come to.
func verdict(t *Token, err error) *parley.CallVerification {
	out := &parley.CallVerification{Result: parley.Verified, By: parley.ByServer}
	if t != nil {
		out.Attestation, out.OrigID = t.Claims.Attest, plain(t.Claims.OrigID)
	}
	if open, ok := errors.AsType[*unsure](err); ok {
		out.Result, out.Code, out.Reason = parley.Unverified, open.code, open.why
	} else if f, ok := errors.AsType[*flaw](err); ok {
		out.Result, out.Code, out.Reason = parley.VerificationFailed, f.code, f.why
	}
	return out
}

// judge says what one token proves.
func (v *Verifier) judge(ctx context.Context, c *Call, p proof, all []proof) *parley.CallVerification {
	t := p.token
	if p.err != nil {
		return verdict(nil, wrong(invalid, p.err))
	}
	chain, err := v.authentic(ctx, c, t)
	if err == nil && !v.reaches(ctx, c, t, all) {
		err = wrong(invalid, errors.New("it was signed for a call to another number"))
	}
	out := verdict(t, err)
	if chain != nil {
		out.SignedBy = plain(chain.Names)
	}
	return out
}

// authentic says what is wrong with a token, whoever it is for.
func (v *Verifier) authentic(ctx context.Context, c *Call, t *Token) (*Chain, error) {
	if !t.Claims.Orig.is(c.From) {
		return nil, wrong(invalid, errors.New("it was signed for another caller than the one who is shown"))
	}
	now := v.now()
	switch made := time.Unix(t.Claims.IAT, 0); {
	case now.Sub(made) > freshness+v.Skew:
		return nil, wrong(stale, errors.New("it was signed too long ago"))
	case made.Sub(now) > v.Skew+time.Second: // whose fraction is not told
		return nil, wrong(stale, errors.New("it was signed in the future"))
	}
	chain, err := v.certs.get(ctx, t.X5U)
	if err != nil {
		return nil, &unsure{flaw{badInfo, err.Error()}}
	}
	if err := chain.valid(now); err != nil {
		return chain, wrong(unsupported, err)
	}
	if !t.Verify(chain.Key) {
		return chain, wrong(invalid, errors.New("the signature is wrong"))
	}
	if v.seen.before(t, c.ID, now, freshness+2*v.Skew) {
		return chain, wrong(invalid, errors.New("it was signed for another call before: it is replayed"))
	}
	if v.Roots == nil {
		return chain, errUntrusted
	}
	if err := chain.trusted(v.Roots, t.Claims.Orig, now); err != nil {
		return chain, wrong(unsupported, err)
	}
	return chain, nil
}

// reaches reports whether a token is for who is called: by itself, or by tokens of those who forwarded the call
// (RFC 8946, section 6).
func (v *Verifier) reaches(ctx context.Context, c *Call, t *Token, all []proof) bool {
	for range maxIdentities {
		if slices.ContainsFunc(c.To, t.Claims.Dest.has) {
			return true
		}
		next := slices.IndexFunc(all, func(p proof) bool {
			d := p.token
			if d == nil || d.PPT != Div || !(t.Claims.Dest.has(d.Claims.Div.TN) || t.Claims.Dest.has(d.Claims.Div.URI)) {
				return false
			}
			_, err := v.authentic(ctx, c, d)
			return err == nil
		})
		if next < 0 {
			return false
		}
		t = all[next].token
	}
	return false
}

// enrich adds what was signed of the caller: by the same token, or by one of the kind rcd.
func (v *Verifier) enrich(ctx context.Context, c *Call, out *parley.CallVerification, all []proof) {
	for _, p := range all {
		t := p.token
		if t == nil || t.Claims.Card == nil && t.Claims.Reason == "" || t.PPT == Div || !slices.ContainsFunc(c.To, t.Claims.Dest.has) {
			continue
		}
		if _, err := v.authentic(ctx, c, t); err != nil {
			continue
		}
		out.CallReason = cmp.Or(out.CallReason, plain(t.Claims.Reason))
		if card := t.Claims.Card; card != nil {
			out.CallerName = cmp.Or(out.CallerName, plain(card.Name))
			if u, err := url.Parse(card.URL); out.CardURL == "" && err == nil && u.Scheme == "https" && len(card.URL) <= maxText {
				out.CardURL = card.URL
			}
		}
	}
}

// plain is a text of a stranger's as it is kept.
func plain(s string) string { return cut(parley.VisitorText(s, false), maxText) }

// cut keeps the first bytes of a text, in whole characters.
func cut(s string, most int) string {
	for len(s) > most {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s
}

// seen remembers which signatures came with which calls, so that none comes with two (RFC 8224, section 12.1). It is this
// node's alone.
type seen struct {
	mu          sync.Mutex
	recent, old map[[sha256.Size]byte]string
	turned      time.Time
}

// before reports whether a token came with another call within a time, and remembers it.
func (s *seen) before(t *Token, call string, now time.Time, keep time.Duration) bool {
	// The second half of a signature can be replaced by another that is right, too.
	key := sha256.Sum256(append([]byte(t.signed), t.signature[:32]...))
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.turned) > keep || len(s.recent) >= maxSeen {
		s.old, s.recent, s.turned = s.recent, map[[sha256.Size]byte]string{}, now
	}
	for _, known := range []map[[sha256.Size]byte]string{s.recent, s.old} {
		if first, ok := known[key]; ok {
			return first != call
		}
	}
	s.recent[key] = call
	return false
}
