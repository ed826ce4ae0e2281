package sip

import (
	"encoding/base64"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"parley/internal/rtp"
)

// SRTP keys as session descriptions carry them (RFC 4568). They are only as secret as the signalling: over TLS, to the
// next hop; over UDP and TCP, to anyone listening in.

// secrecy is the encryption of audio that a trunk wants.
type secrecy string

const (
	srtpOff      secrecy = "off"
	srtpOptional secrecy = "optional"
	srtpRequired secrecy = "required"
	srtpDTLS     secrecy = "dtls" // required, with keys that both ends find by themselves
)

// offered are the suites that we offer, beginning with the one that everybody has. From an offer, the far end's first
// choice is taken. The longer keys are offered over streams alone: over UDP the INVITE would be too long for a packet, and
// the keys can be read on the way.
var (
	offered       = []rtp.Suite{rtp.AES80, rtp.AESGCM, rtp.AES32}
	offeredStream = append(offered[:3:3], rtp.AES256x80, rtp.AES256x32)
)

const (
	maxCrypto   = 16      // lines of a stream
	minLifetime = 1 << 18 // packets that a key must be good for: more than an hour's
)

// sdes is an a=crypto line: what its writer encrypts with.
type sdes struct {
	tag int
	key rtp.Key
}

// newKeys are the keys of an offer.
func newKeys(w way) []sdes {
	var list []sdes
	suites := offered
	if w.stream() {
		suites = offeredStream
	}
	for i, s := range suites {
		list = append(list, sdes{i + 1, rtp.NewKey(s)})
	}
	return list
}

func (s sdes) line() string {
	return fmt.Sprintf("a=crypto:%d %s inline:%s\r\n", s.tag, s.key.Suite,
		base64.StdEncoding.EncodeToString([]byte(s.key.Secret)))
}

// parseCrypto parses what follows a=crypto. It is false for what we don't support, which an answer must not choose.
func parseCrypto(value string) (c sdes, ok bool) {
	f := strings.Fields(value)
	if len(f) < 3 {
		return c, false
	}
	tag, err := strconv.ParseUint(f[0], 10, 30)
	if err != nil {
		return c, false
	}
	for _, param := range f[3:] {
		// A window size hint does not bind us, and anything that begins with "-" may be ignored. The others would leave
		// audio unencrypted, or change keys on the way.
		if name, _, _ := strings.Cut(param, "="); name != "WSH" && !strings.HasPrefix(name, "-") {
			return c, false
		}
	}
	c.tag, c.key.Suite = int(tag), rtp.Suite(strings.ToUpper(f[1]))
	method, info, _ := strings.Cut(f[2], ":")
	if !strings.EqualFold(method, "inline") || strings.Contains(info, ";") || c.key.Suite.Size() == 0 {
		return c, false
	}
	parts := strings.Split(info, "|")
	secret, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(parts[0], "="))
	if err != nil || len(secret) != c.key.Suite.Size() || len(parts) > 3 {
		return c, false
	}
	c.key.Secret = string(secret)
	for i, part := range parts[1:] {
		if mki, isMKI := parseMKI(part); isMKI && i == len(parts)-2 {
			c.key.MKI = mki
		} else if i > 0 || !livesLong(part) {
			return c, false
		}
	}
	return c, true
}

// livesLong reports whether the lifetime of a key, "2^31" or a number of packets, is long enough for a call.
func livesLong(s string) bool {
	if exponent, isPower := strings.CutPrefix(s, "2^"); isPower {
		n, err := strconv.ParseUint(exponent, 10, 8)
		return err == nil && n <= 48 && 1<<n >= minLifetime
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return err == nil && n >= minLifetime
}

// parseMKI reads VALUE:LENGTH.
func parseMKI(s string) (mki string, ok bool) {
	value, length, found := strings.Cut(s, ":")
	n, err := strconv.ParseUint(length, 10, 8)
	if !found || err != nil || n < 1 || n > 128 || len(value) > 400 {
		return "", false
	}
	v, isNumber := new(big.Int).SetString(value, 10)
	if !isNumber || v.Sign() < 0 || v.BitLen() > int(8*n) {
		return "", false
	}
	return string(v.FillBytes(make([]byte, n))), true
}

// cryptoFor chooses a line of the stream: the first that we support or, if it answers ours, the one that does.
func (m *stream) cryptoFor(ours []sdes) (theirs, own sdes, ok bool) {
	for _, c := range m.crypto {
		if ours == nil {
			return c, own, true
		}
		for _, o := range ours {
			if o.tag == c.tag && o.key.Suite == c.key.Suite {
				return c, o, true
			}
		}
	}
	return theirs, own, false
}
