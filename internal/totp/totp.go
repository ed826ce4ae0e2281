// Package totp makes and checks the codes of authenticator apps: RFC 6238 with HMAC-SHA-1, six digits and steps of 30
// seconds, which is what all of them know.
package totp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"time"
)

const (
	digits   = 6
	stepTime = 30 // seconds
	drift    = 1  // steps that a clock may be wrong, either way
)

// NewSecret is a secret of the length that RFC 4226 recommends, 160 bits.
func NewSecret() []byte {
	secret := make([]byte, sha1.Size)
	rand.Read(secret)
	return secret
}

// Text is a secret as people type it into an app.
func Text(secret []byte) string {
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret)
}

// URI is what the QR code of a secret says: for whom it is, and on which server.
func URI(secret []byte, issuer, account string) string {
	q := url.Values{"secret": {Text(secret)}, "issuer": {issuer}}
	return "otpauth://totp/" + url.PathEscape(issuer) + ":" + url.PathEscape(account) + "?" + q.Encode()
}

// Step is the number of the step that a time is in.
func Step(at time.Time) int64 { return at.Unix() / stepTime }

// Code is the code of a step (RFC 4226, 5.3).
func Code(secret []byte, step int64) string {
	mac := hmac.New(sha1.New, secret)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(step)))
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 0xf
	n := binary.BigEndian.Uint32(sum[at:]) & 0x7fffffff
	return fmt.Sprintf("%0*d", digits, n%1_000_000)
}

// Find is the step around a time that a code is of, among those after the last one that was used: a code counts once.
func Find(secret []byte, code string, now time.Time, last int64) (step int64, ok bool) {
	for s := Step(now) - drift; s <= Step(now)+drift; s++ {
		if s > last && subtle.ConstantTimeCompare([]byte(Code(secret, s)), []byte(code)) == 1 {
			return s, true
		}
	}
	return 0, false
}
