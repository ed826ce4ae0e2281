package main

import (
	"net/netip"
	"strings"
	"testing"

	"parley/internal/auth"
)

// closed are settings as they are by default, which open nothing.
func closed() Settings {
	r := auth.Rate{PerSecond: 1, Burst: 1}
	return Settings{Listen: "127.0.0.1:8080", Signup: "off", RateAPI: r, RateLogin: r, RateCreate: r, RateMessage: r, RateReply: r,
		RateWhatsApp: r, RatePublic: "on", ConnectionsPerAddress: 500, StreamsPerAddress: 100, CallDailySpend: "50",
		PublicDailySpend: "20", CallPrefixes: []string{"US"}, RTPSource: "signalled", Trunks: []string{"all"}, TrunkPrivate: "on"}
}

func TestDoctorOnOpenSettings(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(s *Settings)
		want []string
	}{
		"defaults": {func(*Settings) {}, nil},
		"no limits": {func(s *Settings) { s.RateLogin, s.RatePublic = auth.Rate{}, "off" },
			[]string{"PARLEY_RATE_LOGIN, PARLEY_RATE_PUBLIC: off"}},
		"no connections": {func(s *Settings) { s.StreamsPerAddress = 0 }, []string{"PARLEY_STREAMS_PER_ADDRESS is 0"}},
		"all networks": {func(s *Settings) { s.EgressAllow = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")} },
			[]string{"every network"}},
		"private networks": {func(s *Settings) {
			s.EgressAllow = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"),
				netip.MustParsePrefix("169.254.0.0/16")}
		}, []string{"10.0.0.0/8: every tenant's", "services of this machine", "cloud metadata"}},
		"private endpoints": {func(s *Settings) { s.UserEndpoints = "private" }, []string{"PARLEY_USER_ENDPOINTS is private"}},
		"all proxies": {func(s *Settings) { s.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("::/0")} },
			[]string{"claim any address"}},
		"spending":  {func(s *Settings) { s.CallDailySpend = "0" }, []string{"PARLEY_CALL_DAILY_SPEND"}},
		"the world": {func(s *Settings) { s.CallPrefixes = []string{"US", "+"} }, []string{"PARLEY_CALL_PREFIXES has +"}},
		"sound":     {func(s *Settings) { s.RTPSource = "any" }, []string{"PARLEY_RTP_SOURCE"}},
		"sign-up": {func(s *Settings) { s.Signup = "on" },
			[]string{"test calls", "without PARLEY_SMTP_URL", "anybody can connect a SIP trunk, to private addresses too"}},
		"sign-up with mail, without trunks": {func(s *Settings) {
			s.Signup, s.SMTPURL, s.Trunks = "on", "smtps://mail.example.com", []string{"none"}
		}, []string{"test calls"}},
		"open port":        {func(s *Settings) { s.Listen = "0.0.0.0:8080" }, []string{"without TLS"}},
		"open port by TLS": {func(s *Settings) { s.Listen, s.TLSCert = ":8443", "c.pem" }, nil},
		"open metrics":     {func(s *Settings) { s.MetricsListen = "0.0.0.0:9100" }, []string{"whoever reaches it"}},
		"metrics with a token": {func(s *Settings) {
			s.MetricsListen, s.MetricsToken = "0.0.0.0:9100", "0123456789abcdef"
		}, nil},
		"a short token": {func(s *Settings) { s.MetricsToken = "short" }, []string{"PARLEY_METRICS_TOKEN is short"}},
		"mail in the clear": {func(s *Settings) { s.SMTPURL = "smtp://mail.example.com:25?tls=off" },
			[]string{"PARLEY_SMTP_URL has tls=off"}},
		"mail on this machine": {func(s *Settings) { s.SMTPURL = "smtp://127.0.0.1:25?tls=off" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := closed()
			c.set(&s)
			found := checkOpen(&s)
			if len(found) != len(c.want) {
				t.Fatalf("got %+v, want %q", found, c.want)
			}
			for i, f := range found {
				if f.state != "note" || !strings.Contains(f.text, c.want[i]) {
					t.Errorf("got %+v, want %q", f, c.want[i])
				}
			}
		})
	}
}
