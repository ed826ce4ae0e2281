package rtp

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"

	pion "github.com/pion/rtp"
	"github.com/pion/srtp/v3"
)

// Suite is a way to encrypt audio (RFC 3711, 6188 and 7714), by its name in signalling (RFC 4568).
type Suite string

// The suites that we support.
const (
	AES80  Suite = "AES_CM_128_HMAC_SHA1_80"
	AES32  Suite = "AES_CM_128_HMAC_SHA1_32"
	AESGCM Suite = "AEAD_AES_128_GCM"

	AES256x80 Suite = "AES_256_CM_HMAC_SHA1_80" // RFC 6188
	AES256x32 Suite = "AES_256_CM_HMAC_SHA1_32"
)

var suites = map[Suite]struct {
	profile   srtp.ProtectionProfile
	key, salt int // octets
}{
	AES80:  {srtp.ProtectionProfileAes128CmHmacSha1_80, 16, 14},
	AES32:  {srtp.ProtectionProfileAes128CmHmacSha1_32, 16, 14},
	AESGCM: {srtp.ProtectionProfileAeadAes128Gcm, 16, 12},

	AES256x80: {srtp.ProtectionProfileAes256CmHmacSha1_80, 32, 14},
	AES256x32: {srtp.ProtectionProfileAes256CmHmacSha1_32, 32, 14},
}

// Size is how many octets a key of the suite has, including its salt: 0 for a suite that we don't support.
func (s Suite) Size() int { return suites[s].key + suites[s].salt }

// Key is what one end encrypts its audio with. The zero value means none: plain RTP. Printing it reveals nothing.
type Key struct {
	Suite  Suite
	Secret string // key and salt, as many octets as the suite's Size says
	MKI    string // goes with each packet; mostly ""
}

// NewKey makes a random key.
func NewKey(s Suite) Key {
	b := make([]byte, s.Size())
	_, _ = rand.Read(b) // never fails
	return Key{Suite: s, Secret: string(b)}
}

// Format implements fmt.Formatter.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "["+string(k.Suite)+" key]") }

// LogValue implements slog.LogValuer.
func (k Key) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(k)) }

var errKey = errors.New("not a key of its suite")

// context makes what encrypts or decrypts with the key. Duplicates are detected per source (window), without allocating.
func (k Key) context() (*srtp.Context, error) {
	s, ok := suites[k.Suite]
	if !ok || len(k.Secret) != s.key+s.salt { // the library's own error would show the key
		return nil, errKey
	}
	options := []srtp.ContextOption{srtp.SRTCPReplayProtection(replayWindow)}
	if k.MKI != "" {
		options = append(options, srtp.MasterKeyIndicator([]byte(k.MKI)))
	}
	return srtp.CreateContext([]byte(k.Secret[:s.key]), []byte(k.Secret[s.key:]), s.profile, options...)
}

const (
	replayWindow = 64
	maxSources   = 64  // that one key is used for; more are not heard
	maxTag       = 128 // octets that encrypting adds, MKI included
)

// cover is a session's SRTP. Without keys it is off, and audio is sent in the clear.
type cover struct {
	in, out    Key
	seal       *srtp.Context
	open       *opener
	was        *opener // by the key before: packets are on their way that the far end sent before it knew ours
	header     pion.Header
	plain      []byte
	sealed     []byte
	unreadable int // packets that the keys don't fit, or that came again
}

// opener decrypts what comes under one key.
type opener struct {
	context *srtp.Context
	sources map[uint32]*window
}

// agree adopts keys. Those that stay continue where they are: counting from the beginning again would use a key twice.
func (c *cover) agree(in, out Key) {
	if out != c.out {
		c.seal, _ = out.context() // without one nothing is sent
	}
	if in != c.in {
		c.was, c.open = c.open, nil
		if context, err := in.context(); err == nil {
			c.open = &opener{context, map[uint32]*window{}}
		}
	}
	c.in, c.out = in, out
	if c.on() && c.plain == nil {
		c.plain, c.sealed = make([]byte, maxPacket), make([]byte, headerSize+maxSent+maxTag)
	}
}

// on reports whether audio is encrypted, or must be once the keys are known.
func (c *cover) on() bool { return c.in.Suite != "" || c.out.Suite != "" }

// suite is how audio is encrypted, "" while it is not.
func (c *cover) suite() Suite {
	if c.seal == nil {
		return ""
	}
	return c.out.Suite
}

// packet decrypts a received packet. The result is valid until the next call, and nil for what is not the far end's.
func (c *cover) packet(h *pion.Header, data []byte) []byte {
	for _, o := range [...]*opener{c.open, c.was} {
		if o == nil {
			continue
		}
		if plain := o.packet(c.plain, h, data, &c.header); plain != nil {
			if o == c.open {
				c.was = nil
			}
			return plain
		}
	}
	c.unreadable++
	return nil
}

func (o *opener) packet(plain []byte, h *pion.Header, data []byte, scratch *pion.Header) []byte {
	w := o.sources[h.SSRC]
	if w == nil && len(o.sources) >= maxSources || w != nil && !w.fresh(h.SequenceNumber) {
		return nil
	}
	plain, err := o.context.DecryptRTP(plain[:0], data, scratch)
	if err != nil {
		return nil
	}
	if w == nil {
		w = &window{newest: int64(h.SequenceNumber)}
		o.sources[h.SSRC] = w
	}
	w.take(h.SequenceNumber)
	return plain
}

// send encrypts a packet of ours. The result is valid until the next call, and nil if there is no key: what must be
// encrypted is never sent in the clear.
func (c *cover) send(packet []byte) []byte {
	if c.seal == nil {
		return nil
	}
	sealed, err := c.seal.EncryptRTP(c.sealed[:0], packet, &c.header)
	if err != nil {
		return nil
	}
	return sealed
}

// report decrypts RTCP.
func (c *cover) report(data []byte) []byte {
	for _, o := range [...]*opener{c.open, c.was} {
		if o == nil {
			continue
		}
		if plain, err := o.context.DecryptRTCP(nil, data, nil); err == nil {
			return plain
		}
	}
	return nil
}

// sendReport encrypts RTCP.
func (c *cover) sendReport(data []byte) []byte {
	if c.seal == nil {
		return nil
	}
	sealed, err := c.seal.EncryptRTCP(nil, data, nil)
	if err != nil {
		return nil
	}
	return sealed
}

// window tracks which packets of a source came before (RFC 3711, section 3.3.2). A repeated packet that is older than
// the window is not accepted either.
type window struct {
	newest int64  // by the sequence number and how often that went round
	seen   uint64 // of the 64 packets up to the newest
}

func (w *window) index(seq uint16) int64 { return w.newest + int64(int16(seq-uint16(w.newest))) }

func (w *window) fresh(seq uint16) bool {
	behind := w.newest - w.index(seq)
	return behind < 0 || behind < replayWindow && w.seen>>behind&1 == 0
}

func (w *window) take(seq uint16) {
	index := w.index(seq)
	if ahead := index - w.newest; ahead > 0 {
		w.seen, w.newest = w.seen<<min(ahead, replayWindow), index
	}
	w.seen |= 1 << (w.newest - index)
}
