// Package stir proves who calls, and checks such proofs (STIR/SHAKEN): the Identity header of SIP (RFC 8224) with its
// tokens (PASSporT, RFC 8225; shaken, RFC 8588; div, RFC 8946; rcd, RFC 9795), the certificates of those who sign
// (RFC 8226), and what carriers say of calls that they have checked themselves.
package stir

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"bytes"
)

// The kinds of tokens that are read (ppt). Those of other kinds are as good as absent (RFC 8224, section 4.1).
const (
	Base   = ""
	Shaken = "shaken"
	Div    = "div"
	RCD    = "rcd"
)

const (
	maxToken     = 16 << 10 // bytes of an Identity header's value
	maxAddressed = 16       // numbers and addresses in dest
	maxURI       = 2048     // bytes of x5u and of other addresses
)

// Party is somebody in a token: a telephone number (digits, without a plus) or an address.
type Party struct {
	TN  string `json:"tn,omitempty"`
	URI string `json:"uri,omitempty"`
}

// Parties are those who are called.
type Parties struct {
	TN  []string `json:"tn,omitempty"`
	URI []string `json:"uri,omitempty"`
}

// Card is rich call data: the caller's name, and where there is more about the caller.
type Card struct {
	Name string          `json:"nam,omitempty"`
	Icon string          `json:"icn,omitempty"`
	URL  string          `json:"jcl,omitempty"` // of a jCard
	Card json.RawMessage `json:"jcd,omitempty"`
}

// Claims are what a token says. Its fields are in the order of their names, as the canonical form has them (RFC 8225, section 9).
type Claims struct {
	Attest string  `json:"attest,omitempty"` // A, B, C
	Reason string  `json:"crn,omitempty"`    // why somebody calls
	Dest   Parties `json:"dest"`
	Div    *Party  `json:"div,omitempty"` // who was called before
	IAT    int64   `json:"iat"`           // when it was made, in seconds since 1970
	Orig   Party   `json:"orig"`
	OrigID string  `json:"origid,omitempty"`
	Card   *Card   `json:"rcd,omitempty"`
}

// header is the first part of a token, in the order of its names.
type header struct {
	Alg  string   `json:"alg"`
	Crit []string `json:"crit,omitempty"`
	PPT  string   `json:"ppt,omitempty"`
	Typ  string   `json:"typ"`
	X5U  string   `json:"x5u"`
}

// Token is a PASSporT as it was read: nothing of it has been checked.
type Token struct {
	PPT    string
	X5U    string // where the certificate is
	Claims Claims

	signed    string // header and claims, as they are signed
	signature []byte
}

// canonical is the JSON of RFC 8225, section 9: names in order, no blanks, nothing escaped that need not be.
func canonical(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // of values that are always written
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

var base64url = base64.RawURLEncoding.Strict()

// input is what is signed of a token.
func input(ppt, x5u string, c Claims) string {
	return base64url.EncodeToString(canonical(header{Alg: "ES256", PPT: ppt, Typ: "passport", X5U: x5u})) + "." +
		base64url.EncodeToString(canonical(c))
}

// ParseToken reads a token in full form: header.claims.signature.
func ParseToken(text string) (*Token, error) {
	if len(text) > maxToken {
		return nil, errors.New("the token is too long")
	}
	part := strings.Split(text, ".")
	if len(part) != 3 {
		return nil, errors.New("the token has not three parts")
	}
	var h header
	var t Token
	for i, into := range []any{&h, &t.Claims} {
		raw, err := base64url.DecodeString(part[i])
		if err == nil {
			err = json.Unmarshal(raw, into)
		}
		if err != nil {
			return nil, fmt.Errorf("part %d of the token can't be read: %w", i+1, err)
		}
	}
	var err error
	if t.signature, err = base64url.DecodeString(part[2]); err != nil {
		return nil, fmt.Errorf("the signature can't be read: %w", err)
	}
	switch {
	case h.Alg != "ES256":
		return nil, fmt.Errorf("the token is signed by %q, not by ES256", short(h.Alg))
	case h.Typ != "passport":
		return nil, fmt.Errorf("the token is a %q, no passport", short(h.Typ))
	case len(h.Crit) > 0:
		return nil, errors.New("the token has extensions that must be understood (crit)")
	case len(h.X5U) > maxURI:
		return nil, errors.New("the address of the certificate is too long")
	}
	t.PPT, t.X5U, t.signed = strings.ToLower(h.PPT), h.X5U, part[0]+"."+part[1]
	return &t, t.Claims.check(t.PPT)
}

// check says what is wrong with claims of a kind.
func (c *Claims) check(ppt string) error {
	switch {
	case len(c.Dest.TN)+len(c.Dest.URI) == 0 || len(c.Dest.TN)+len(c.Dest.URI) > maxAddressed:
		return errors.New("the token is for nobody, or for too many")
	case (c.Orig.TN == "") == (c.Orig.URI == ""):
		return errors.New("the token names not one caller")
	case c.IAT <= 0:
		return errors.New("the token has no time")
	case (ppt == Shaken || c.Attest != "") && (len(c.Attest) != 1 || !strings.Contains("ABC", c.Attest)):
		return fmt.Errorf("the token's attestation is %q, not A, B or C", short(c.Attest))
	case ppt == Shaken && c.OrigID == "":
		return errors.New("the token has no origid")
	case ppt == Div && (c.Div == nil || (c.Div.TN == "") == (c.Div.URI == "")):
		return errors.New("the token names not one who forwarded the call")
	}
	return nil
}

func short(s string) string { return s[:min(len(s), 40)] }

// Verify reports whether a key signed the token.
func (t *Token) Verify(key *ecdsa.PublicKey) bool {
	if len(t.signature) != 64 {
		return false
	}
	sum := sha256.Sum256([]byte(t.signed))
	r, s := new(big.Int).SetBytes(t.signature[:32]), new(big.Int).SetBytes(t.signature[32:])
	return ecdsa.Verify(key, sum[:], r, s)
}

// sign is the token of claims in full form (RFC 7515, section 3.1; RFC 7518, section 3.4).
func sign(key *ecdsa.PrivateKey, ppt, x5u string, c Claims) (string, error) {
	text := input(ppt, x5u, c)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		return "", fmt.Errorf("sign a call: %w", err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + base64url.EncodeToString(signature), nil
}
