package stir

import (
	"context"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/parley"
	"parley/internal/stir/stirtest"
)

// bench is an authority, a server, a signer and a verifier that trusts it.
type bench struct {
	*stirtest.Authority
	server *stirtest.Server
	signer *Signer
	v      *Verifier
	t      testing.TB
}

func newBench(t testing.TB) *bench {
	b := &bench{Authority: stirtest.New(t), server: stirtest.Serve(t), t: t}
	b.signer = b.with("/good.pem", b.Issue(nil))
	b.v = NewVerifier(b.server.Client(), b.Pool(), 5*time.Second)
	t.Cleanup(b.v.Close)
	return b
}

// with is a signer whose certificate is at a path.
func (b *bench) with(path string, i *stirtest.Issued) *Signer {
	s, err := NewSigner(b.server.Put(path, i.Chain), i.KeyPEM())
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

const us, them, other = "+15550001111", "+15550009999", "+15550008888"

// token is the Identity of claims, the usual ones changed.
func (b *bench) token(s *Signer, ppt string, change func(*Claims)) string {
	c := Claims{Attest: "A", Dest: Parties{TN: []string{us[1:]}}, Orig: Party{TN: them[1:]}, OrigID: "o-1", IAT: time.Now().Unix()}
	if change != nil {
		change(&c)
	}
	text, err := sign(s.key, ppt, s.URL, c)
	if err != nil {
		b.t.Fatal(err)
	}
	text += ";info=<" + s.URL + ">;alg=ES256"
	if ppt != "" {
		text += ";ppt=" + ppt
	}
	return text
}

func (b *bench) verify(id string, identities ...string) *parley.CallVerification {
	return b.v.Verify(b.t.Context(), Call{ID: id, From: them, To: []string{us}, Identities: identities})
}

func TestVerify(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	expired := func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
	}
	ours := func(numbers ...string) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{stirtest.TNAuthList(stirtest.Range(numbers[0], 100), stirtest.One(numbers[1]))}
		}
	}
	stranger := stirtest.New(t)
	good := b.signer
	at := func(d time.Duration) func(*Claims) { return func(c *Claims) { c.IAT = time.Now().Add(d).Unix() } }
	to := func(n string) func(*Claims) { return func(c *Claims) { c.Dest.TN = []string{n[1:]} } }
	diverted := func(from, to string) func(*Claims) {
		return func(c *Claims) { c.Attest, c.OrigID, c.Div, c.Dest.TN = "", "", &Party{TN: from[1:]}, []string{to[1:]} }
	}
	forged := b.token(good, Shaken, nil)
	forged = strings.Replace(forged, ".", ".e30", 1) // claims that nobody signed
	other2 := b.token(good, Shaken, nil)
	j := strings.Index(other2, ";info")
	i := strings.LastIndex(other2[:j], ".")
	wrongSignature := other2[:i+1] + base64url.EncodeToString(make([]byte, 64)) + other2[j:]
	for name, c := range map[string]struct {
		identities []string
		want       string
		code       int
	}{
		"none":                  {nil, "none", 0},
		"good":                  {[]string{b.token(good, Shaken, nil)}, "verified A", 0},
		"B":                     {[]string{b.token(good, Shaken, func(c *Claims) { c.Attest = "B" })}, "verified B", 0},
		"without shaken":        {[]string{b.token(good, Base, func(c *Claims) { c.Attest, c.OrigID = "", "" })}, "verified", 0},
		"one good of two":       {[]string{wrongSignature, b.token(good, Shaken, nil)}, "verified A", 0},
		"unknown kind":          {[]string{b.token(good, "msgi", nil)}, "unverified: the call was signed in ways", 0},
		"unknown kind and good": {[]string{b.token(good, "msgi", nil), b.token(good, Shaken, nil)}, "verified A", 0},
		"a minute old":          {[]string{b.token(good, Shaken, at(-62*time.Second))}, "verified A", 0}, // with the skew
		"old":                   {[]string{b.token(good, Shaken, at(-67*time.Second))}, "failed: it was signed too long ago", stale},
		"a little early":        {[]string{b.token(good, Shaken, at(4*time.Second))}, "verified A", 0},
		"early":                 {[]string{b.token(good, Shaken, at(10*time.Second))}, "failed: it was signed in the future", stale},
		"another caller": {[]string{b.token(good, Shaken, func(c *Claims) { c.Orig.TN = other[1:] })},
			"failed: it was signed for another caller", invalid},
		"another number":  {[]string{b.token(good, Shaken, to(other))}, "failed: it was signed for a call to another number", invalid},
		"several numbers": {[]string{b.token(good, Shaken, func(c *Claims) { c.Dest.TN = []string{other[1:], us[1:]} })}, "verified A", 0},
		"forwarded":       {[]string{b.token(good, Shaken, to(other)), b.token(good, Div, diverted(other, us))}, "verified A", 0},
		"forwarded twice": {[]string{b.token(good, Shaken, to(other)), b.token(good, Div, diverted("+15550007777", us)),
			b.token(good, Div, diverted(other, "+15550007777"))}, "verified A", 0},
		"forwarded by nobody": {[]string{b.token(good, Shaken, to(other)), b.token(good, Div, diverted("+15550007777", us))},
			"failed: it was signed for a call to", invalid},
		"div alone":       {[]string{b.token(good, Div, diverted(other, us))}, "unverified: ", 0},
		"forged":          {[]string{forged}, "failed: ", invalid},
		"wrong signature": {[]string{wrongSignature}, "failed: the signature is wrong", invalid},
		"unreadable":      {[]string{"x"}, "failed: it has no info", invalid},
		"two certificates": {[]string{strings.Replace(b.token(good, Shaken, nil), "good.pem>", "x.pem>", 1)},
			"failed: the header and its token", invalid},
		"two kinds": {[]string{strings.Replace(b.token(good, Shaken, nil), "ppt=shaken", "ppt=rcd", 1)},
			"failed: the header is of the kind", invalid},
		"expired": {[]string{b.token(b.with("/expired", b.Issue(expired)), Shaken, nil)},
			"failed: the certificate has expired", unsupported},
		"a stranger's": {[]string{b.token(b.with("/stranger", stranger.Issue(nil)), Shaken, nil)}, "failed: no trusted authority", unsupported},
		"for no numbers": {[]string{b.token(b.with("/web", b.Issue(func(c *x509.Certificate) { c.ExtraExtensions = nil })), Shaken, nil)},
			"failed: the certificate does not say whose", unsupported},
		"for the range":  {[]string{b.token(b.with("/range", b.Issue(ours("15550009950", "1"))), Shaken, nil)}, "verified A", 0},
		"for the number": {[]string{b.token(b.with("/one", b.Issue(ours("1444", them[1:]))), Shaken, nil)}, "verified A", 0},
		"for other numbers": {[]string{b.token(b.with("/others", b.Issue(ours("15550009899", "1"))), Shaken, nil)},
			"failed: the certificate does not speak", unsupported},
		"critical list": {
			[]string{b.token(b.with("/critical", b.Issue(func(c *x509.Certificate) { c.ExtraExtensions[0].Critical = true })), Shaken, nil)},
			"verified A", 0},
		"broken list": {
			[]string{b.token(b.with("/broken", b.Issue(func(c *x509.Certificate) { c.ExtraExtensions[0].Value = []byte{0x30, 0} })), Shaken, nil)},
			"unverified: the certificate's TNAuthList", badInfo},
		"no certificate": {[]string{b.token(&Signer{URL: b.server.URL + "/gone", key: good.key}, Shaken, nil)},
			"unverified: the certificate could not be fetched: the answer was 404", badInfo},
		"by http": {[]string{b.token(&Signer{URL: "http://127.0.0.1/x", key: good.key}, Shaken, nil)},
			"unverified: the certificate's address is no https", badInfo},
	} {
		got := b.verify(name, c.identities...)
		if !strings.HasPrefix(got.String(), c.want) || got != nil && got.Code != c.code {
			t.Errorf("%s: %s, want %s; code %+v", name, got, c.want, got)
		}
	}
	if got := b.verify("words", b.token(good, Shaken, nil)); got.SignedBy != "Example Telecom, SHAKEN 1234" || got.OrigID != "o-1" {
		t.Errorf("%+v", got)
	}
	if n := b.server.Asked("/good.pem"); n != 1 {
		t.Errorf("a certificate that is known was fetched %d times", n)
	}
	p384, err := ParseChain(b.IssueOn(elliptic.P384(), nil).Chain)
	if err == nil {
		t.Errorf("a key of another curve is taken: %+v", p384)
	}
}

// TestVerifyWithoutRoots: a right signature proves nothing where nobody is trusted; a wrong one is wrong all the same.
func TestVerifyWithoutRoots(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.v.Roots = nil
	if got := b.verify("a", b.token(b.signer, Shaken, nil)); got.Result != parley.Unverified || got.Attestation != "A" ||
		!strings.Contains(got.Reason, "PARLEY_STIR_ROOTS") {
		t.Errorf("%+v", got)
	}
	if got := b.verify("b", b.token(&Signer{URL: b.signer.URL, key: b.with("/x", b.Issue(nil)).key}, Shaken, nil)); !got.Failed() {
		t.Errorf("%+v", got)
	}
}

// TestReplay: a signature belongs to one call, also with its other half that is right.
func TestReplay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	text := b.token(b.signer, Shaken, nil)
	for range 2 { // a call that is repeated, as after a challenge
		if got := b.verify("first", text); !got.Verified() {
			t.Fatalf("%+v", got)
		}
	}
	token, rest, _ := strings.Cut(text, ";")
	cut := strings.LastIndex(token, ".")
	raw, err := base64url.DecodeString(token[cut+1:])
	if err != nil {
		t.Fatal(err)
	}
	s := new(big.Int).SetBytes(raw[32:])
	new(big.Int).Sub(elliptic.P256().Params().N, s).FillBytes(raw[32:])
	for name, again := range map[string]string{"same": text, "other half": token[:cut+1] + base64url.EncodeToString(raw) + ";" + rest} {
		if got := b.verify("second", again); !got.Failed() || !strings.Contains(got.Reason, "replayed") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	b.v.now = func() time.Time { return time.Now().Add(10 * time.Minute) } // it is forgotten when it is too old anyway
	b.v.seen.before(&Token{signed: "x", signature: make([]byte, 64)}, "x", b.v.now(), time.Minute)
	b.v.seen.before(&Token{signed: "y", signature: make([]byte, 64)}, "y", b.v.now().Add(2*time.Minute), time.Minute)
	if n := len(b.v.seen.recent) + len(b.v.seen.old); n != 2 {
		t.Errorf("%d signatures are remembered", n)
	}
}

// TestRichCallData: the name and the reason that were signed, with the call or beside it.
func TestRichCallData(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	card := func(c *Claims) { c.Card, c.Reason = &Card{Name: "Ana\r\nLtd", URL: "https://x/card"}, "Your parcel" }
	for name, ids := range map[string][]string{"in shaken": {b.token(b.signer, Shaken, card)},
		"rcd": {b.token(b.signer, RCD, card), b.token(b.signer, Shaken, nil)}} {
		if got := b.verify(name, ids...); got.CallerName != "Ana  Ltd" || got.CallReason != "Your parcel" || got.CardURL != "https://x/card" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := b.verify("forged", strings.Replace(b.token(b.signer, RCD, card), ".pem>", ".pem >", 1),
		b.token(b.with("/s", stirtest.New(t).Issue(nil)), RCD, card),
		b.token(b.signer, Shaken, nil)); got.CallerName != "Ana  Ltd" || !got.Verified() {
		t.Errorf("%+v", got)
	}
	stranger := b.with("/t", stirtest.New(t).Issue(nil))
	if got := b.verify("a stranger's", b.token(stranger, RCD, card), b.token(b.signer, Shaken, nil)); got.CallerName != "" || !got.Verified() {
		t.Errorf("%+v", got)
	}
}

// TestCertificateLate: a call does not wait for a certificate for long; the next one finds it, fetched once for all.
func TestCertificateLate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	issued := b.Issue(nil)
	answer := make(chan struct{})
	url := b.server.Do("/late", func(w http.ResponseWriter, _ *http.Request) { <-answer; _, _ = w.Write(issued.Chain) })
	s, err := NewSigner(url, issued.KeyPEM())
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			if i > 0 {
				cancel()
			}
			defer cancel()
			got := b.v.Verify(ctx, Call{ID: "a", From: them, To: []string{us}, Identities: []string{b.token(s, Shaken, nil)}})
			if got.Result != parley.Unverified || got.Reason != errNotInTime.Error() {
				t.Errorf("%+v", got)
			}
		})
	}
	all.Wait()
	close(answer)
	if _, err := b.v.certs.get(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	if got := b.verify("b", b.token(s, Shaken, nil)); !got.Verified() {
		t.Errorf("%+v", got)
	}
	if n := b.server.Asked("/late"); n != 1 {
		t.Errorf("it was fetched %d times", n)
	}
}

// TestCacheBounded: what is kept, how long, and how much of what is at an address is read.
func TestCacheBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	now := time.Now()
	var mu sync.Mutex
	c := newCache(b.server.Client(), func() time.Time { mu.Lock(); defer mu.Unlock(); return now })
	t.Cleanup(c.close)
	later := func(d time.Duration) { mu.Lock(); now = now.Add(d); mu.Unlock() }
	chain := b.Issue(nil).Chain
	short := b.server.Do("/short", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=300")
		_, _ = w.Write(chain)
	})
	get := func(url string) error { _, err := c.get(t.Context(), url); return err }
	for i, wait := range []time.Duration{0, 299 * time.Second, 2 * time.Second} {
		later(wait)
		if err := get(short); err != nil || b.server.Asked("/short") != []int{1, 1, 2}[i] {
			t.Errorf("%d: %v, asked %d times", i, err, b.server.Asked("/short"))
		}
	}
	gone := b.server.URL + "/gone"
	for i, wait := range []time.Duration{0, 29 * time.Second, 2 * time.Second} {
		later(wait)
		if err := get(gone); err == nil || b.server.Asked("/gone") != []int{1, 1, 2}[i] {
			t.Errorf("%d: %v, asked %d times", i, err, b.server.Asked("/gone"))
		}
	}
	if err := get(b.server.Put("/long", append(chain, make([]byte, maxChain)...))); err == nil ||
		!strings.Contains(err.Error(), "too long") {
		t.Error(err)
	}
	for _, bad := range []string{"", "https:///x", "ftp://a/b", "https://a/" + strings.Repeat("x", maxURI)} {
		if err := get(bad); err == nil {
			t.Errorf("%.30q is fetched", bad)
		}
	}
	c.mu.Lock()
	c.at = map[string]*entry{}
	for i := range maxCached {
		done := make(chan struct{})
		close(done)
		c.at[strings.Repeat("x", i+1)] = &entry{done: done, until: now.Add(time.Duration(i+1) * time.Hour)}
	}
	c.mu.Unlock()
	if err := get(b.server.Put("/one-more", chain)); err != nil {
		t.Error(err)
	}
	c.mu.Lock()
	if n := len(c.at); n > maxCached {
		t.Errorf("%d addresses are kept", n)
	}
	c.fetches = maxFetches
	c.mu.Unlock()
	if err := get(b.server.Put("/crowd", chain)); err == nil {
		t.Error("more are fetched at once than may be")
	}
	c.mu.Lock()
	c.fetches = 0
	c.mu.Unlock()
	for control, want := range map[string]time.Duration{"": usualAge, "max-age=600": 10 * time.Minute, "no-store": minAge,
		"max-age=1":        minAge,
		"max-age=99999999": maxAge, "Private, Max-Age=\"600\"": 10 * time.Minute, "max-age=x": usualAge, "max-age=600, no-cache": minAge} {
		if got := ageOf(control); got != want {
			t.Errorf("%q: %s, want %s", control, got, want)
		}
	}
}

func TestCarriersWords(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"TN-Validation-Passed": "carrier: verified A", "TN-Validation-Passed-A": "carrier: verified A",
		"tn-validation-passed-b": "carrier: verified B", "TN-Validation-Passed-C-Diverted": "carrier: verified C",
		"TN-Validation-Passed-X": "carrier: verified",
		"TN-Validation-Failed":   "carrier: failed: the carrier could not", "TN-Validation-Failed-A": "carrier: failed: ",
		"No-TN-Validation": "carrier: unverified: ",
		"Verified":         "carrier: verified", "Not Verified": "carrier: unverified: ", "Not Applicable": "carrier: unverified: ",
		"what?": "carrier: unverified: ", " ": "none"} {
		if got := Carrier(word); !strings.HasPrefix(got.String(), want) || got != nil && got.Carrier != word {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}

// TestSigner: what is signed is verified; certificates that don't fit the key, or no numbers, are noticed.
func TestSigner(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	text, err := b.signer.Sign(Statement{From: them, To: us, Attest: "B", Origin: "7", Name: "Ana & Söhne <Ltd>"})
	if err != nil {
		t.Fatal(err)
	}
	got := b.verify("a", text)
	if !got.Verified() || got.Attestation != "B" || got.CallerName != "Ana & Söhne <Ltd>" || len(got.OrigID) != 36 {
		t.Errorf("%+v", got)
	}
	if a, c := b.signer.origid("7"), b.signer.origid("8"); a != got.OrigID || a == c {
		t.Errorf("origins %s, %s", a, c)
	}
	for _, who := range []string{"anonymous", "sip:ana@example.com"} {
		if text, err := b.signer.Sign(Statement{From: who, To: us, Attest: "A"}); text != "" || err != nil {
			t.Errorf("%s: %q, %v", who, text, err)
		}
	}
	issued := b.Issue(nil)
	for name, c := range map[string]struct {
		url, says string
		key       []byte
	}{
		"http":        {"http://a/b", "https", issued.KeyPEM()},
		"no host":     {"https:///b", "https", issued.KeyPEM()},
		"breaks out":  {"https://a/b>;x=<", "https", issued.KeyPEM()},
		"no key":      {"https://a/b", "no private key", issued.Chain},
		"another one": {"https://a/b", "P-256", b.IssueOn(elliptic.P384(), nil).KeyPEM()},
	} {
		if _, err := NewSigner(c.url, c.key); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := b.with("/own", issued)
	for name, c := range map[string]struct {
		chain []byte
		says  string // "" for nothing
	}{
		"its own":   {issued.Chain, ""},
		"another's": {b.Issue(nil).Chain, "another key's"},
	} {
		chain, err := ParseChain(c.chain)
		if err == nil {
			err = s.Agrees(chain)
		}
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	web := b.Issue(func(c *x509.Certificate) { c.ExtraExtensions = nil })
	chain, err := ParseChain(web.Chain)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.with("/web2", web).Agrees(chain); err == nil || !strings.Contains(err.Error(), "TNAuthList") {
		t.Error(err)
	}
}
