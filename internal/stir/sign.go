package stir

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Signer signs calls with the operator's certificate. It is safe for concurrent use.
type Signer struct {
	URL string // where others find the certificate

	key    *ecdsa.PrivateKey
	secret uuid.UUID // names origins
	now    func() time.Time
}

// NewSigner makes a signer of a private key in PEM (P-256) and the https address of its certificate.
func NewSigner(where string, key []byte) (*Signer, error) {
	u, err := url.Parse(where)
	if err != nil || u.Scheme != "https" || u.Host == "" || strings.ContainsAny(where, "<>\"; \r\n") || len(where) > maxURI {
		return nil, errors.New("the certificate's address must be an https address at which others can fetch it")
	}
	for rest := key; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, errors.New("the key file has no private key in PEM")
		}
		k := privateKey(block)
		if k == nil {
			continue
		}
		if k.Curve != elliptic.P256() {
			return nil, errors.New("the private key is not of the curve P-256, which calls are signed with")
		}
		raw, err := k.Bytes()
		secret := sha256.Sum256(raw)
		return &Signer{URL: where, key: k, secret: uuid.UUID(secret[:16]), now: time.Now}, err
	}
}

// privateKey is the elliptic-curve key of a block; nil if it is none.
func privateKey(block *pem.Block) *ecdsa.PrivateKey {
	if k, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return k
	}
	k, _ := x509.ParsePKCS8PrivateKey(block.Bytes)
	out, _ := k.(*ecdsa.PrivateKey)
	return out
}

// Statement is what is said of a call that is signed.
type Statement struct {
	From, To string // E.164
	Attest   string // A, B, C
	Origin   string // whose call it is; of it the origid is made
	Name     string // the caller's; "" for none
}

// Sign is the value of an Identity header for a call (RFC 8588), with the caller's name (RFC 9795) where there is one. "" is for a call
// between parties that are no telephone numbers.
func (s *Signer) Sign(st Statement) (string, error) {
	from, to := canonicalNumber(st.From), canonicalNumber(st.To)
	if from == "" || to == "" {
		return "", nil
	}
	c := Claims{Attest: st.Attest, Dest: Parties{TN: []string{to}}, IAT: s.now().Unix(), Orig: Party{TN: from}, OrigID: s.origid(st.Origin)}
	if st.Name != "" {
		c.Card = &Card{Name: st.Name}
	}
	token, err := sign(s.key, Shaken, s.URL, c)
	if err != nil {
		return "", err
	}
	return token + ";info=<" + s.URL + ">;alg=ES256;ppt=" + Shaken, nil
}

// origid is a UUID that is the same for all calls of an origin, and tells nobody else which it is.
func (s *Signer) origid(origin string) string {
	return uuid.NewHash(sha256.New(), s.secret, []byte(origin), 8).String()
}

// Agrees says what is wrong with the certificate at the signer's address: it must be the key's, valid, and say whose
// numbers it speaks for.
func (s *Signer) Agrees(c *Chain) error {
	switch {
	case !s.key.PublicKey.Equal(c.Key):
		return errors.New("the certificate is another key's")
	case c.Authority == nil:
		return errors.New("the certificate does not say whose numbers it speaks for (TNAuthList): get one from an authority of STIR/SHAKEN")
	}
	return c.valid(s.now())
}
