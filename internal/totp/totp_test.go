package totp_test

import (
	"net/url"
	"testing"
	"time"

	"parley/internal/totp"
)

var secret = []byte("12345678901234567890") // of both RFCs

// The codes of RFC 4226, appendix D.
func TestCodesOfRFC4226(t *testing.T) {
	for step, want := range []string{"755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583",
		"399871", "520489"} {
		if got := totp.Code(secret, int64(step)); got != want {
			t.Errorf("step %d: %s, want %s", step, got, want)
		}
	}
}

// The times of RFC 6238, appendix B, whose eight digits end with ours.
func TestCodesOfRFC6238(t *testing.T) {
	for at, want := range map[int64]string{59: "287082", 1111111109: "081804", 1111111111: "050471",
		1234567890: "005924", 2000000000: "279037", 20000000000: "353130"} {
		if got := totp.Code(secret, totp.Step(time.Unix(at, 0))); got != want {
			t.Errorf("at %d: %s, want %s", at, got, want)
		}
	}
}

func TestFind(t *testing.T) {
	now := time.Unix(1_700_000_010, 0)
	step := totp.Step(now)
	for _, c := range []struct {
		off, last int64
		ok        bool
	}{
		{0, 0, true}, {-1, 0, true}, {1, 0, true}, {-2, 0, false}, {2, 0, false},
		{0, step, false}, {0, step - 1, true}, {-1, step - 1, false}, {1, step, true}, {0, step + 1, false},
	} {
		got, ok := totp.Find(secret, totp.Code(secret, step+c.off), now, c.last)
		if ok != c.ok || ok && got != step+c.off {
			t.Errorf("%+v: %d %v", c, got-step, ok)
		}
	}
	for _, code := range []string{"", "0", "12345", "1234567", "abcdef"} {
		if _, ok := totp.Find(secret, code, now, 0); ok {
			t.Errorf("%q is taken", code)
		}
	}
}

func TestURI(t *testing.T) {
	u, err := url.Parse(totp.URI(secret, "voice.example.com", "ana+1@example.com"))
	if err != nil || u.Scheme != "otpauth" || u.Host != "totp" || u.Path != "/voice.example.com:ana+1@example.com" ||
		u.Query().Get("secret") != "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ" || u.Query().Get("issuer") != "voice.example.com" {
		t.Errorf("%v %v", u, err)
	}
	a, b := totp.NewSecret(), totp.NewSecret()
	if len(a) != 20 || string(a) == string(b) {
		t.Errorf("secrets %x %x", a, b)
	}
}
