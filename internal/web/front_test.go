package web_test

import (
	"crypto/tls"
	"net/http/httptest"
	"net/netip"
	"testing"

	"parley/internal/web"
)

func TestOrigin(t *testing.T) {
	for text, want := range map[string]string{
		"https://example.com": "https://example.com", "HTTPS://Example.COM": "https://example.com",
		"https://example.com/": "https://example.com", "https://example.com:443": "https://example.com",
		"http://example.com:80/a?b": "http://example.com", "http://example.com:443": "http://example.com:443",
		"https://example.com:8443":  "https://example.com:8443",
		"http://[2001:DB8::1]:8080": "http://[2001:db8::1]:8080",
		"null":                      "", "": "", "example.com": "", "//example.com": "", "file:///x": "",
		"ftp://example.com": "",
		"https://":          "", "https:example.com": "", "https://a@example.com": "", "javascript:alert(1)": "",
		"chrome-extension://abc": "", "https://exa mple.com": "",
	} {
		if got := web.Origin(text); got != want {
			t.Errorf("%q has the origin %q, want %q", text, got, want)
		}
	}
}

func TestOwnPages(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	public := web.Front{PublicURL: "https://voice.example.com/sub"}
	for _, c := range []struct {
		front          web.Front
		host, origin   string
		peer, forwards string
		tls, want      bool
	}{
		{web.Front{}, "voice.example.com", "http://voice.example.com", "192.0.2.1:9", "", false, true},
		{web.Front{}, "voice.example.com:8080", "http://voice.example.com:8080", "192.0.2.1:9", "", false, true},
		{web.Front{}, "Voice.example.com:80", "http://voice.example.com", "192.0.2.1:9", "", false, true},
		{web.Front{}, "voice.example.com:8080", "http://voice.example.com", "192.0.2.1:9", "", false, false},
		{web.Front{}, "voice.example.com", "https://voice.example.com", "192.0.2.1:9", "", false, false},
		{web.Front{}, "voice.example.com", "http://voice.example.com", "192.0.2.1:9", "", true, false},
		{web.Front{}, "voice.example.com", "https://voice.example.com", "192.0.2.1:9", "", true, true},
		{web.Front{}, "voice.example.com", "null", "192.0.2.1:9", "", false, false},
		{web.Front{}, "voice.example.com", "", "192.0.2.1:9", "", false, false},
		{web.Front{}, "", "null", "192.0.2.1:9", "", false, false},
		{web.Front{}, "voice.example.com", "http://voice.example.com.evil.example", "192.0.2.1:9", "", false, false},
		{web.Front{}, "voice.example.com", "http://evil-voice.example.com", "192.0.2.1:9", "", false, false},
		{web.Front{Proxies: proxies}, "voice.example.com", "https://voice.example.com", "10.1.1.1:9", "https",
			false, true},
		{web.Front{Proxies: proxies}, "voice.example.com", "https://voice.example.com", "192.0.2.1:9", "https",
			false, false},
		{public, "10.0.0.3:8080", "https://voice.example.com", "192.0.2.1:9", "", false, true},
		{public, "10.0.0.3:8080", "http://voice.example.com", "192.0.2.1:9", "", false, false},
		{public, "10.0.0.3:8080", "https://voice.example.com:8443", "192.0.2.1:9", "", false, false},
		{public, "voice.example.com", "https://voice.example.com", "192.0.2.1:9", "", false, true},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Host, r.RemoteAddr = c.host, c.peer
		r.Header.Set("Origin", c.origin)
		r.Header.Set("X-Forwarded-Proto", c.forwards)
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		if got := c.front.Own(r); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

func TestBase(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.Host = "voice.example.com"
	if got := (web.Front{}).Base(r); got != "http://voice.example.com" {
		t.Error(got)
	}
	r.TLS = &tls.ConnectionState{}
	if got := (web.Front{}).Base(r); got != "https://voice.example.com" {
		t.Error(got)
	}
	if got := (web.Front{PublicURL: "https://x.example/sub"}).Base(r); got != "https://x.example/sub" {
		t.Error(got)
	}
}
