package stir

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"math/big"
	"strings"
	"testing"
)

// The token of RFC 8225, appendix A. Its signature was made by another key than the one that is printed there.
const (
	rfcHead   = "eyJhbGciOiJFUzI1NiIsInR5cCI6InBhc3Nwb3J0IiwieDV1IjoiaHR0cHM6Ly9jZXJ0LmV4YW1wbGUub3JnL3Bhc3Nwb3J0LmNlciJ9"
	rfcClaims = "eyJkZXN0Ijp7InVyaSI6WyJzaXA6YWxpY2VAZXhhbXBsZS5jb20iXX0sImlhdCI6MTQ3MTM3NTQxOCwib3JpZyI6eyJ0biI6IjEyMTU1NTUxMjEyIn19"
	rfcSigned = "VLBCIVDCaeK6M4hLJb6SHQvacAQVvoiiEOWQ_iUkqk79UD81fHQ0E1b3_GluIkba7UWYRM47ZbNFdOJquE35cw"
	rfcURL    = "https://cert.example.org/passport.cer"
)

// TestExampleOfRFC8225: its token is read, and its claims are written as it writes them.
func TestExampleOfRFC8225(t *testing.T) {
	t.Parallel()
	tok, err := ParseToken(rfcHead + "." + rfcClaims + "." + rfcSigned)
	if err != nil {
		t.Fatal(err)
	}
	if tok.PPT != Base || tok.X5U != rfcURL || tok.Claims.Orig.TN != "12155551212" || tok.Claims.IAT != 1471375418 ||
		!tok.Claims.Dest.has("sip:Alice@example.com;user=x") {
		t.Errorf("%+v", tok)
	}
	if got := input(Base, rfcURL, tok.Claims); got != rfcHead+"."+rfcClaims {
		t.Errorf("written as %s", got)
	}
}

// TestExampleOfRFC7515: the signature by ES256 of its appendix A.3 is right, and no other is.
func TestExampleOfRFC7515(t *testing.T) {
	t.Parallel()
	number := func(s string) *big.Int {
		raw, err := base64url.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return new(big.Int).SetBytes(raw)
	}
	point := append(append([]byte{4}, number("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU").FillBytes(make([]byte, 32))...),
		number("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0").FillBytes(make([]byte, 32))...)
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		t.Fatal(err)
	}
	tok := &Token{
		signed:    "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ",
		signature: number("DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q").FillBytes(make([]byte, 64))}
	if !tok.Verify(key) {
		t.Error("the signature is taken for wrong")
	}
	for i := range tok.signature {
		tok.signature[i] ^= 1
		if tok.Verify(key) {
			t.Errorf("a changed byte %d is not noticed", i)
		}
		tok.signature[i] ^= 1
	}
	if tok.signature = tok.signature[:63]; tok.Verify(key) {
		t.Error("a signature that is too short is right")
	}
}

// TestExampleOfRFC8588: the header and claims of section 4's example, in canonical form.
func TestExampleOfRFC8588(t *testing.T) {
	t.Parallel()
	head, claims, _ :=
		strings.Cut(input(Shaken, "https://cert.example.org/passport.cer", Claims{Attest: "A", Dest: Parties{TN: []string{"12125551213"}},
			IAT: 1443208345, Orig: Party{TN: "12155551212"}, OrigID: "123e4567-e89b-12d3-a456-426655440000"}), ".")
	for part, want := range map[string]string{
		head:   `{"alg":"ES256","ppt":"shaken","typ":"passport","x5u":"https://cert.example.org/passport.cer"}`,
		claims: `{"attest":"A","dest":{"tn":["12125551213"]},"iat":1443208345,"orig":{"tn":"12155551212"},"origid":"123e4567-e89b-12d3-a456-426655440000"}`,
	} {
		if raw, err := base64url.DecodeString(part); err != nil || string(raw) != want {
			t.Errorf("got %s (%v), want %s", raw, err, want)
		}
	}
}

func TestTokensRefused(t *testing.T) {
	t.Parallel()
	b := func(s string) string { return base64url.EncodeToString([]byte(s)) }
	const head = `{"alg":"ES256","ppt":"shaken","typ":"passport","x5u":"https://a/b"}`
	const claims = `{"attest":"A","dest":{"tn":["1"]},"iat":1,"orig":{"tn":"2"},"origid":"o"}`
	if _, err := ParseToken(b(head) + "." + b(claims) + "." + b("s")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ head, claims, says string }{
		"another algorithm":  {strings.Replace(head, "ES256", "RS256", 1), claims, "ES256"},
		"none":               {strings.Replace(head, "ES256", "none", 1), claims, "ES256"},
		"no passport":        {strings.Replace(head, "passport", "JWT", 1), claims, "passport"},
		"critical":           {`{"crit":["x"],` + head[1:], claims, "crit"},
		"long address":       {strings.Replace(head, "https://a/b", "https://a/"+strings.Repeat("b", maxURI), 1), claims, "too long"},
		"no JSON":            {"{", claims, "part 1"},
		"claims as a list":   {head, "[]", "part 2"},
		"attested D":         {head, strings.Replace(claims, `"A"`, `"D"`, 1), "attestation"},
		"attested AB":        {head, strings.Replace(claims, `"A"`, `"AB"`, 1), "attestation"},
		"without origid":     {head, strings.Replace(claims, `"origid":"o"`, `"x":1`, 1), "origid"},
		"for nobody":         {head, strings.Replace(claims, `["1"]`, `[]`, 1), "nobody"},
		"for too many":       {head, strings.Replace(claims, `["1"]`, `["1"`+strings.Repeat(`,"1"`, maxAddressed)+`]`, 1), "too many"},
		"by nobody":          {head, strings.Replace(claims, `{"tn":"2"}`, `{}`, 1), "caller"},
		"by two":             {head, strings.Replace(claims, `{"tn":"2"}`, `{"tn":"2","uri":"sip:a@b"}`, 1), "caller"},
		"without a time":     {head, strings.Replace(claims, `"iat":1`, `"iat":0`, 1), "time"},
		"the time as text":   {head, strings.Replace(claims, `"iat":1`, `"iat":"1"`, 1), "part 2"},
		"div without whom":   {strings.Replace(head, "shaken", "div", 1), claims, "forwarded"},
		"too long as a text": {head, `{"x":"` + strings.Repeat("x", maxToken) + `"}`, "too long"},
	} {
		if _, err := ParseToken(b(c.head) + "." + b(c.claims) + "." + b("s")); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"", ".", "..", "a.b", "a.b.c.d", b(head) + "=." + b(claims) + ".", b(head) + "." + b(claims) + ".*"} {
		if _, err := ParseToken(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

func TestIdentityHeaders(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]identity{
		"a.b.c;info=<https://x/y>;alg=ES256;ppt=shaken":              {"a.b.c", "https://x/y", "shaken", true},
		"a.\r\n b .c ; info = <https://x/y;z=1> ; ppt = \"SHAKEN\" ": {"a.b.c", "https://x/y;z=1", "shaken", true},
		"..c;info=<https://x/y>":                                     {"..c", "https://x/y", "", false},
		"a.b.c;x=y;INFO=< https://x/y >;alg=ES256":                   {"a.b.c", "https://x/y", "", false},
	} {
		if got, err := parseIdentity(value); err != nil || got != want {
			t.Errorf("%q: %+v, %v", value, got, err)
		}
	}
	for value, says := range map[string]string{"a.b.c": "no info", "a.b.c;info=https://x/y": "angle",
		"a.b.c;info=<https://x>;alg=RS256":                 "ES256",
		"a.b.c;info=<" + strings.Repeat("x", maxURI) + ">": "angle", strings.Repeat("x", maxToken+1): "too long"} {
		if _, err := parseIdentity(value); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40q: %v", value, err)
		}
	}
}

// TestCompactForm: a token in the compact form is that of the call's own numbers and Date (RFC 8225, section 7).
func TestCompactForm(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	full, err := sign(key, Base, rfcURL,
		Claims{Dest: Parties{URI: []string{"sip:alice@example.com"}}, IAT: 1471375418, Orig: Party{TN: "12155551212"}})
	if err != nil {
		t.Fatal(err)
	}
	signature, ok := strings.CutPrefix(full, rfcHead+"."+rfcClaims+".")
	id := identity{token: ".." + signature, info: rfcURL}
	c := Call{From: "+12155551212", To: []string{"sip:alice@example.com"}, Date: "Tue, 16 Aug 2016 19:23:38 GMT"}
	tok, err := id.read(&c)
	if err != nil || !ok || !tok.Verify(&key.PublicKey) {
		t.Errorf("%+v, %v", tok, err)
	}
	stranger := c
	stranger.From = "+12155551213"
	if tok, err := id.read(&stranger); err != nil || tok.Verify(&key.PublicKey) {
		t.Errorf("another caller: %v", err)
	}
	for name, bad := range map[string]struct {
		c   Call
		ppt string
	}{"no date": {Call{From: c.From, To: c.To}, ""}, "nobody called": {Call{From: c.From, Date: c.Date}, ""}, "shaken": {c, Shaken}} {
		if _, err := (identity{token: id.token, info: id.info, ppt: bad.ppt}).read(&bad.c); err == nil {
			t.Errorf("%s is read", name)
		}
	}
}

func TestParties(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		p   Party
		who string
		is  bool
	}{
		"number":             {Party{TN: "12155551212"}, "+12155551212", true},
		"with a plus":        {Party{TN: "+1 215-555.1212"}, "+12155551212", true},
		"another":            {Party{TN: "12155551213"}, "+12155551212", false},
		"address":            {Party{URI: "sip:Ana@Example.com;x=y"}, "sips:ana@example.com", true},
		"another address":    {Party{URI: "sip:ana@example.org"}, "sip:ana@example.com", false},
		"number and address": {Party{TN: "12155551212"}, "sip:12155551212@example.com", false},
		"nobody":             {Party{}, "", false},
		"nobody's number":    {Party{TN: "x"}, "", false},
	} {
		if c.p.is(c.who) != c.is {
			t.Errorf("%s: %v", name, !c.is)
		}
	}
}

func FuzzToken(f *testing.F) {
	f.Add(rfcHead + "." + rfcClaims + "." + rfcSigned)
	f.Add("..")
	f.Fuzz(func(t *testing.T, text string) {
		tok, err := ParseToken(text)
		if err != nil {
			return
		}
		if !strings.HasPrefix(text, tok.signed+".") || tok.Claims.IAT <= 0 || len(tok.X5U) > maxURI {
			t.Errorf("%+v", tok)
		}
		if again, err := ParseToken(input(tok.PPT, tok.X5U, tok.Claims) + ".AA"); err != nil || again.Claims.Orig != tok.Claims.Orig {
			t.Errorf("%+v is written as %+v: %v", tok, again, err)
		}
	})
}

func FuzzIdentity(f *testing.F) {
	f.Add(rfcHead+"."+rfcClaims+"."+rfcSigned+";info=<"+rfcURL+">;alg=ES256", "+12155551212", "Tue, 16 Aug 2016 19:23:38 GMT")
	f.Add(".."+rfcSigned+";info=<"+rfcURL+">", "+12155551212", "Tue, 16 Aug 2016 19:23:38 GMT")
	f.Fuzz(func(t *testing.T, value, from, date string) {
		id, err := parseIdentity(value)
		if err != nil {
			return
		}
		tok, err := id.read(&Call{From: from, To: []string{"sip:alice@example.com"}, Date: date})
		if err == nil && tok.X5U != id.info {
			t.Errorf("%q: the certificate of %q, not of %q", value, tok.X5U, id.info)
		}
	})
}

func FuzzChain(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Add([]byte{0x30, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := ParseChain(data); err == nil && (c.Leaf == nil || c.Key == nil) {
			t.Error("a chain without a certificate")
		}
		if a, err := parseAuthority(data); err == nil && len(a.Codes)+len(a.Ranges) == 0 {
			t.Error("an empty list is read")
		}
	})
}
