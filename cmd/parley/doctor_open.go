package main

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"parley/internal/parley"
)

// checkOpen warns of settings that open the server wider than most want: each is allowed, and each has cost somebody something.
func checkOpen(s *Settings) (found []finding) {
	warn := func(what, format string, a ...any) {
		found = append(found, finding{parley.DoctorNote, what, fmt.Sprintf(format, a...)})
	}
	var off []string
	for _, r := range []struct {
		name string
		off  bool
	}{
		{"PARLEY_RATE_API", s.RateAPI.Burst == 0}, {"PARLEY_RATE_LOGIN", s.RateLogin.Burst == 0},
		{"PARLEY_RATE_CREATE", s.RateCreate.Burst == 0}, {"PARLEY_RATE_MESSAGE", s.RateMessage.Burst == 0},
		{"PARLEY_RATE_REPLY", s.RateReply.Burst == 0}, {"PARLEY_RATE_WHATSAPP", s.RateWhatsApp.Burst == 0},
		{"PARLEY_RATE_PUBLIC", s.RatePublic == "off"},
	} {
		if r.off {
			off = append(off, r.name)
		}
	}
	if len(off) > 0 {
		warn("limits", "%s: off, so nothing limits how often strangers ask or guess", strings.Join(off, ", "))
	}
	if s.ConnectionsPerAddress == 0 || s.StreamsPerAddress == 0 {
		warn("limits", "PARLEY_CONNECTIONS_PER_ADDRESS or PARLEY_STREAMS_PER_ADDRESS is 0, so one client can hold all connections")
	}
	for _, p := range s.EgressAllow {
		switch {
		case p.Bits() == 0:
			warn("egress", "PARLEY_EGRESS_ALLOW has %s: tenants' URLs reach every network, this machine's own services and cloud metadata included",
				p)
		case p.Addr().IsLoopback():
			warn("egress", "PARLEY_EGRESS_ALLOW has %s: tenants' URLs reach the services of this machine", p)
		case p.Addr().IsLinkLocalUnicast():
			warn("egress", "PARLEY_EGRESS_ALLOW has %s: tenants' URLs reach cloud metadata, which often holds credentials", p)
		default:
			warn("egress", "PARLEY_EGRESS_ALLOW has %s: every tenant's URLs reach that network", p)
		}
	}
	if s.UserEndpoints == "private" {
		warn("egress", "PARLEY_USER_ENDPOINTS is private: every account's endpoints reach the private networks of this machine")
	}
	for _, p := range s.TrustedProxies {
		if p.Bits() == 0 {
			warn("proxies", "PARLEY_TRUSTED_PROXIES has %s: every client can claim any address, and no limit per address holds", p)
		}
	}
	if s.CallDailySpend == "0" || s.PublicDailySpend == "0" {
		warn("spending", "PARLEY_CALL_DAILY_SPEND or PARLEY_PUBLIC_DAILY_SPEND is 0, so one account can spend without end in a day")
	}
	if slices.Contains(s.CallPrefixes, "+") {
		warn("destinations", "PARLEY_CALL_PREFIXES has +: calls to the whole world, to countries that fraud prefers too")
	}
	if s.RTPSource == "any" {
		warn("sound", "PARLEY_RTP_SOURCE is any: who knows a call's port can speak into it")
	}
	return append(append(found, checkSignupOpen(s)...), checkListenOpen(s)...)
}

// checkSignupOpen warns of what anybody gets by signing up.
func checkSignupOpen(s *Settings) (found []finding) {
	if s.Signup != "on" {
		return nil
	}
	warn := func(text string) { found = append(found, finding{parley.DoctorNote, "sign-up", text}) }
	if prices, err := s.prices(); err == nil {
		trial := prices.Plan(parley.TrialPlan)
		warn(fmt.Sprintf("PARLEY_SIGNUP is on: anybody who makes an account has %d test calls, "+
			"%d test messages and %d test conversations a day on this server's keys before paying. PARLEY_PRICES sets the plan %s",
			trial.TestCalls, trial.TestMessages, trial.TestConversations, parley.TrialPlan))
	}
	if s.SMTPURL == "" {
		warn("PARLEY_SIGNUP is on without PARLEY_SMTP_URL: nobody's e-mail address can be confirmed")
	}
	if slices.Contains(s.Trunks, "all") {
		text := "PARLEY_TRUNKS is all and PARLEY_SIGNUP on: anybody can connect a SIP trunk"
		if s.TrunkPrivate == "on" {
			text += ", to private addresses too (PARLEY_TRUNK_PRIVATE)"
		}
		warn(text)
	}
	return found
}

// checkListenOpen warns of ports that tell or take too much.
func checkListenOpen(s *Settings) (found []finding) {
	warn := func(what, format string, a ...any) {
		found = append(found, finding{parley.DoctorNote, what, fmt.Sprintf(format, a...)})
	}
	if outside(s.Listen) && s.TLSCert == "" {
		warn("listen", "%s is open to others without TLS: passwords and keys cross the network in the clear. "+
			"Set PARLEY_TLS_CERT and PARLEY_TLS_KEY, or listen on 127.0.0.1 behind a proxy", s.Listen)
	}
	switch {
	case s.MetricsListen != "" && outside(s.MetricsListen) && s.MetricsToken == "":
		warn("metrics", "PARLEY_METRICS_LISTEN is %s without PARLEY_METRICS_TOKEN: whoever reaches it reads the metrics", s.MetricsListen)
	case s.MetricsToken != "" && len(s.MetricsToken) < 16:
		warn("metrics", "PARLEY_METRICS_TOKEN is short: use 16 characters or more, such as the output of 'openssl rand -base64 32'")
	}
	if u, err := url.Parse(s.SMTPURL); err == nil && s.SMTPURL != "" && u.Query().Get("tls") == "off" &&
		outside(net.JoinHostPort(u.Hostname(), "25")) {
		warn("e-mail", "PARLEY_SMTP_URL has tls=off: links that sign people in cross the network in the clear")
	}
	return found
}

// outside says whether an address to listen on, or to reach, is not on this machine alone.
func outside(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err != nil || !ip.Unmap().IsLoopback()
}
