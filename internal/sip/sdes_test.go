package sip

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pion/srtp/v3"

	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/rtp"
)

const (
	key30 = "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz" // of RFC 4568's own example
	key46 = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLQ=="
	key28 = "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubA=="
)

func TestCryptoLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		suite rtp.Suite
		mki   string
	}{
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + key30:                               {rtp.AES80, ""},
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + "|2^20|1:4":                 {rtp.AES80, "\x00\x00\x00\x01"},
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + "|2^31|1:1":                 {rtp.AES80, "\x01"},
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + "|1066:4":                   {rtp.AES80, "\x00\x00\x04\x2a"},
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + "|1048576":                  {rtp.AES80, ""},
		"2 aes_cm_128_hmac_sha1_32 INLINE:" + key30 + " WSH=64 -X=1":              {rtp.AES32, ""},
		"3 AEAD_AES_128_GCM inline:" + key28:                                      {rtp.AESGCM, ""},
		"3 AEAD_AES_128_GCM inline:" + strings.TrimRight(key28, "="):              {rtp.AESGCM, ""},
		"4 AES_256_CM_HMAC_SHA1_80 inline:" + key46:                               {rtp.AES256x80, ""},
		"5 AES_256_CM_HMAC_SHA1_32 inline:" + key46 + "|2^31|1:4":                 {rtp.AES256x32, "\x00\x00\x00\x01"},
		"4 AES_256_CM_HMAC_SHA1_80 inline:" + key30:                               {},
		"3 AEAD_AES_128_GCM inline:" + key30:                                      {},
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + key28:                               {},
		"1 AES_CM_256_HMAC_SHA1_80 inline:" + key30:                               {},
		"1 F8_128_HMAC_SHA1_80 inline:" + key30:                                   {},
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + " UNENCRYPTED_SRTP":         {},
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + " UNENCRYPTED_SRTCP":        {},
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + " UNAUTHENTICATED_SRTP":     {},
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + " KDR=4":                    {},
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + " FEC_ORDER=FEC_SRTP":       {},
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + "|2^20|1:4;inline:" + key30: {},
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + "|2^10":                     {}, // half a minute
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + "|2^64":                     {},
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + "|1:4|2^31":                 {},
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + "|2^31|300:1":               {},
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + "|2^31|1:129":               {},
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + "|2^31|-1:4":                {},
		"1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + "|2^31|1:4|x":               {},
		"1 AES_CM_128_HMAC_SHA1_80 inline:!" + key30[1:]:                          {},
		"x AES_CM_128_HMAC_SHA1_80 inline:" + key30:                               {},
		"-1 AES_CM_128_HMAC_SHA1_80 inline:" + key30:                              {},
		"1 AES_CM_128_HMAC_SHA1_80 prompt:" + key30:                               {},
		"1 AES_CM_128_HMAC_SHA1_80":                                               {},
		"":                                                                        {},
	} {
		got, ok := parseCrypto(line)
		if ok != (want.suite != "") || ok && (got.key.Suite != want.suite || got.key.MKI != want.mki) {
			t.Errorf("%q: %v, %v, MKI %x", line, ok, got.key.Suite, got.key.MKI)
		}
		if ok && got.key.MKI == "" {
			if back, ok := parseCrypto(strings.TrimSpace(strings.TrimPrefix(got.line(), "a=crypto:"))); !ok || back != got {
				t.Errorf("%q is written as %q", line, got.line())
			}
		}
	}
}

// TestSecrecy: what a trunk's srtp setting means for an offer.
func TestSecrecy(t *testing.T) {
	t.Parallel()
	const plain = "m=audio 4000 RTP/AVP 0\r\n"
	const key = "a=crypto:7 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + "\r\n"
	strange := "a=crypto:1 AES_256_CM_HMAC_SHA1_80 inline:" + key30 + key30[:24] + "\r\n"
	saved := strings.Replace(plain, "AVP", "SAVP", 1)
	dtls := "m=audio 4000 UDP/TLS/RTP/SAVPF 0\r\na=fingerprint:sha-256 AA\r\n"
	// For each offer, the result with srtp off, optional, and required: "" for refused, "plain", or the suite's tag.
	for text, want := range map[string][3]string{
		plain:                            {"plain 0", "plain 0", ""},
		plain + key:                      {"plain 0", "7 0", "7 0"},
		plain + strange + key:            {"plain 0", "7 0", "7 0"},
		plain + strange:                  {"plain 0", "plain 0", ""},
		saved + key:                      {"", "7 0", "7 0"},
		saved + strange:                  {"", "", ""},
		saved:                            {"", "", ""},
		plain + saved + key:              {"plain 0", "7 1", "7 1"},
		saved + key + plain:              {"plain 1", "7 0", "7 0"},
		saved + strange + plain:          {"plain 1", "plain 1", ""},
		dtls + key:                       {"", "", ""},
		dtls + plain:                     {"plain 1", "plain 1", ""},
		"a=crypto:1 x\r\n" + plain + key: {"plain 0", "7 0", "7 0"},
	} {
		d, err := parseSDP([]byte("v=0\r\nc=IN IP4 192.0.2.1\r\n" + text))
		if err != nil {
			t.Fatal(err)
		}
		for i, srtp := range []secrecy{srtpOff, srtpOptional, srtpRequired} {
			got := ""
			if c, ok := d.audio(0, nil, srtp); ok && c.theirs.key.Suite != "" {
				got = fmt.Sprint(c.theirs.tag, " ", c.place)
			} else if ok {
				got = fmt.Sprint("plain ", c.place)
			}
			if got != want[i] {
				t.Errorf("%s with srtp %s: %q, want %q", text, srtp, got, want[i])
			}
		}
	}
	// An answer must choose one of ours.
	own := &ours{codecs: narrowCodecs, keys: newKeys(overUDP)}
	for line, fits := range map[string]bool{"1 AES_CM_128_HMAC_SHA1_80 inline:" + key30: true,
		"2 AEAD_AES_128_GCM inline:" + key28: true, "2 AES_CM_128_HMAC_SHA1_80 inline:" + key30: false,
		"4 AES_CM_128_HMAC_SHA1_80 inline:" + key30: false} {
		d, err := parseSDP([]byte("v=0\r\nc=IN IP4 192.0.2.1\r\n" + saved + "a=crypto:" + line + "\r\n"))
		if err != nil {
			t.Fatal(err)
		}
		c, ok := d.audio(0, own, srtpRequired)
		if ok != fits || ok && c.ours.key != own.keys[c.ours.tag-1].key {
			t.Errorf("%s: %v, %+v", line, ok, c)
		}
	}
}

// TestEncryptedCalls: what srtp means between two servers, for each setting of either.
func TestEncryptedCalls(t *testing.T) {
	t.Parallel()
	for _, from := range []secrecy{srtpOff, srtpOptional, srtpRequired} {
		for _, to := range []secrecy{srtpOff, srtpOptional, srtpRequired} {
			t.Run(string(from+" to "+to), func(t *testing.T) {
				t.Parallel()
				a := newAnswerer(1000)
				callee := start(t, Config{Answer: a.answer, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true,
					Allowed: loopback, SRTP: string(to)})})
				caller := start(t, Config{})
				l, err := caller.Dial(soon(t), Dialling{To: "+15550001111", From: "+15550002222", Trunk: Trunk{ID: 7,
					Number: "+15550002222", Address: callee.Addr().String(), SRTP: string(from)}})
				if from == srtpOff && to == srtpRequired || from == srtpRequired && to == srtpOff {
					if codeOf(err) != "488" {
						t.Fatalf("the call ended with %v, want 488", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				want := rtp.AES80
				if from == srtpOff || to == srtpOff {
					want = ""
				}
				out, in := run(l, newPhone(440)), a.next(t)
				out.phone.hears(t, 1000)
				in.phone.hears(t, 440)
				for _, r := range []*running{out, in.running} {
					if s := r.leg.(*leg).Stats(); s.Suite != want || s.Unreadable > 2 {
						t.Errorf("%+v, want suite %q", s, want)
					}
				}
				out.hangUp(t)
				in.ends(t, parley.CustomerHangup)
			})
		}
	}
}

// TestUnencryptedAnswer: a far end that was only offered encryption and answers without it is hung up on, with a
// reason.
func TestUnencryptedAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, Config{})
	f := newFar(t)
	over := make(chan error, 1)
	go func() {
		trunk := f.trunk()
		trunk.SRTP = "required"
		_, err := s.Dial(soon(t), Dialling{To: "+15550001111", From: "+15550002222", Trunk: trunk})
		over <- err
	}()
	invite := f.take("INVITE")
	if !strings.Contains(invite, " RTP/SAVP 9 0 8 101\r\n") || strings.Count(invite, "a=crypto:") != len(offered) {
		t.Errorf("the offer:\n%s", invite)
	}
	f.reply(invite, "200 OK", sdp(f.rtp.addr()))
	if err := get(t, over); !errors.Is(err, parley.Unreachable) || !strings.Contains(parley.Explanation(err), "SDES") {
		t.Errorf("ended with %v: %s", err, parley.Explanation(err))
	}
	f.reply(f.take("BYE"), "200 OK", "")
}

// TestReinviteKeys re-invites with the same keys, with others, and without any.
func TestReinviteKeys(t *testing.T) {
	t.Parallel()
	a := newAnswerer(0)
	s := start(t, Config{Answer: a.answer, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true,
		Allowed: loopback, SRTP: "optional"})})
	w, media := newWire(t, "127.0.0.1"), newWire(t, "127.0.0.1")
	line := func(tag int, k rtp.Key) string { return strings.TrimSpace(sdes{tag, k}.line()) }
	first := rtp.NewKey(rtp.AES80)
	c := w.call(s, "+15550001111", sdp(media.addr(), line(1, first)))
	in := a.next(t)
	chosen := func() sdes {
		t.Helper()
		d, err := parseSDP([]byte(c.sdp))
		if err != nil || len(d.streams) != 1 || len(d.streams[0].crypto) > 1 {
			t.Fatalf("%v\n%s", err, c.sdp)
		}
		if len(d.streams[0].crypto) == 0 {
			return sdes{}
		}
		return d.streams[0].crypto[0]
	}
	one := chosen()
	again := func(lines ...string) sdes {
		t.Helper()
		if res := c.ask("INVITE", sdp(media.addr(), lines...)); !strings.HasPrefix(res, "SIP/2.0 200") {
			t.Fatal(res)
		}
		c.ack("")
		return chosen()
	}
	if two := again(line(1, first)); two != one {
		t.Error("with the same key of theirs ours has changed")
	}
	if two := again(line(2, rtp.NewKey(rtp.AES80))); two.tag != 2 || two.key == one.key || two.key.Suite != rtp.AES80 {
		t.Error("with another key of theirs ours stays")
	}
	if two := again(line(5, rtp.NewKey(rtp.AESGCM))); two.tag != 5 || two.key.Suite != rtp.AESGCM {
		t.Errorf("another suite: %+v", two)
	}
	if two := again(); two != (sdes{}) {
		t.Errorf("without a key: %+v", two)
	}
	if got := in.leg.(*leg).Stats().Suite; got != "" {
		t.Errorf("the sound is encrypted by %s", got)
	}
	c.ask("BYE", "")
	in.ends(t, parley.CustomerHangup)
}

// TestEncryptedLateOffer: if encryption is required, an INVITE without a description is offered keys, and nothing is
// sent unencrypted until the ACK has brought the caller's keys.
func TestEncryptedLateOffer(t *testing.T) {
	t.Parallel()
	a := newAnswerer(1000)
	s := start(t, Config{Answer: a.answer, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true,
		Allowed: loopback, SRTP: "required"})})
	w, media := newWire(t, "127.0.0.1"), newWire(t, "127.0.0.1")
	c := &caller{wire: w, server: s, rtp: media, callID: token(20), seq: 1}
	res := c.ask("INVITE", "")
	d, err := parseSDP([]byte(bodyOf(res)))
	if err != nil || len(d.streams) != 1 || d.streams[0].proto != "RTP/SAVP" || len(d.streams[0].crypto) != len(offered) {
		t.Fatalf("%v\n%s", err, res)
	}
	theirs := rtp.NewKey(rtp.AESGCM)
	answer := strings.Replace(sdp(media.addr(), strings.TrimSpace(sdes{2, theirs}.line())), "RTP/AVP", "RTP/SAVP", 1)
	c.ack(answer)
	in := a.next(t)
	in.phone.await(t, "a packet is sent", func() bool { return in.phone.ticks > 20 })
	if got := in.leg.(*leg).Stats(); got.Suite != rtp.AESGCM || got.Sent == 0 {
		t.Errorf("%+v", got)
	}
	c.ask("BYE", "")
	in.ends(t, parley.CustomerHangup)
}

// TestEverySuite: each suite is taken from an offer, and both ends hear.
func TestEverySuite(t *testing.T) {
	t.Parallel()
	profiles := map[rtp.Suite]srtp.ProtectionProfile{rtp.AES80: srtp.ProtectionProfileAes128CmHmacSha1_80,
		rtp.AES32: srtp.ProtectionProfileAes128CmHmacSha1_32, rtp.AESGCM: srtp.ProtectionProfileAeadAes128Gcm,
		rtp.AES256x80: srtp.ProtectionProfileAes256CmHmacSha1_80, rtp.AES256x32: srtp.ProtectionProfileAes256CmHmacSha1_32}
	context := func(k rtp.Key) *srtp.Context {
		n := map[bool]int{true: 32, false: 16}[strings.Contains(string(k.Suite), "256")]
		c, err := srtp.CreateContext([]byte(k.Secret[:n]), []byte(k.Secret[n:]), profiles[k.Suite])
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	a := newAnswerer(1000)
	s := start(t,
		Config{Answer: a.answer, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback, SRTP: "required"})})
	for _, suite := range offeredStream {
		theirs, media := rtp.NewKey(suite), newWire(t, "127.0.0.1")
		c := newWire(t, "127.0.0.1").call(s, "+15550001111",
			strings.Replace(sdp(media.addr(), strings.TrimSpace(sdes{3, theirs}.line())), "RTP/AVP", "RTP/SAVP", 1))
		in := a.next(t)
		d, err := parseSDP([]byte(c.sdp))
		if err != nil || len(d.streams[0].crypto) != 1 {
			t.Fatalf("%s: %v\n%s", suite, err, c.sdp)
		}
		own := d.streams[0].crypto[0]
		seal, open := context(theirs), context(own.key)
		var heard []int16
		buf := make([]byte, 2048)
		for n := range 60 {
			pcm := make([]int16, 160)
			for k := range pcm {
				pcm[k] = int16(8000 * math.Sin(2*math.Pi*440*float64(n*160+k)/8000))
			}
			sealed, err := seal.EncryptRTP(nil, packet(0, n == 0, uint16(n), uint32(n)*160, 3, audio.EncodeULaw(nil, pcm)), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = media.WriteToUDPAddrPort(sealed, netip.AddrPortFrom(d.streams[0].addr, uint16(d.streams[0].port)))
			_ = media.SetReadDeadline(time.Now().Add(hang))
			size, err := media.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			plain, err := open.DecryptRTP(nil, buf[:size], nil)
			if err != nil {
				t.Fatalf("%s: %v", suite, err)
			}
			heard = audio.DecodeULaw(heard, plain[12:])
		}
		if share(heard[len(heard)-4000:], 1000, audio.Narrow) < 0.9 {
			t.Errorf("%s: the far end does not hear the tone", suite)
		}
		p := in.phone
		p.await(t, "a tone of 440 Hz is heard",
			func() bool { n := len(p.heard) - 1600; return n > 0 && share(p.heard[n:], 440, audio.Narrow) > 0.9 })
		in.stop(errDone)
		in.ends(t, errDone)
	}
}
