package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/preset"
	"parley/internal/sip"
	"parley/internal/store"
)

// carrierTrunk is the trunk that rented numbers speak over, nil where there is none.
func (s *Settings) carrierTrunk() (*sip.Trunk, error) {
	if s.CarrierSIPAddress == "" {
		return nil, nil
	}
	if !parley.ValidHostPort(s.CarrierSIPAddress) {
		return nil, fmt.Errorf("PARLEY_CARRIER_SIP_ADDRESS: %q is not a host name or IP address, with a port after a colon where it is not 5060",
			s.CarrierSIPAddress)
	}
	allowed, err := networks(s.CarrierSIPAllowedIPs)
	if err != nil {
		return nil, fmt.Errorf("PARLEY_CARRIER_SIP_ALLOWED_IPS: %w", err)
	}
	return &sip.Trunk{Address: s.CarrierSIPAddress, Transport: "udp", Username: s.CarrierSIPUsername,
		Password: s.CarrierSIPPassword,
		ByIP:     len(allowed) > 0, Allowed: allowed, Manners: sip.Manners{Sign: s.CarrierSIPSign == "on"}}, nil
}

// trunkRules are what these settings allow of users' trunks.
func (s *Settings) trunkRules() (r parley.TrunkRules, err error) {
	four, six, ok := strings.Cut(s.TrunkNetworks, ",")
	a, errA := strconv.ParseUint(strings.TrimSpace(four), 10, 8)
	b, errB := strconv.ParseUint(strings.TrimSpace(six), 10, 8)
	if !ok || errA != nil || errB != nil || a > 32 || b > 128 {
		return r, fmt.Errorf("PARLEY_TRUNK_NETWORKS: %q is not a pair of prefix lengths such as 24,48", s.TrunkNetworks)
	}
	return parley.TrunkRules{Makers: s.Trunks, IPv4: int(a), IPv6: int(b), Carrier: s.CarrierSIPAddress}, nil
}

// networks reads addresses and networks.
func networks(list []string) (out []netip.Prefix, err error) {
	for _, text := range list {
		p, ok := parley.ParseNetwork(text)
		if !ok {
			return nil, fmt.Errorf("%q is neither an IP address nor a network such as 192.0.2.0/24", text)
		}
		out = append(out, p)
	}
	return out, nil
}

// errRented is said of trunks whose number the carrier rents out: whoever rents it has it.
var errRented = parley.Errorf(parley.Unavailable,
	"The trunk is not used: its number is rented from this server's carrier. Give the trunk another number.")

// trunk is a user's trunk as the line knows it. Networks that are too wide are left out: they were stored when they
// might be wider.
func (p *telephone) trunk(t *parley.Trunk) (sip.Trunk, error) {
	if t.Rented {
		return sip.Trunk{}, errRented
	}
	password, err := p.db.TrunkPassword(t)
	if err != nil {
		return sip.Trunk{}, fmt.Errorf("read the password of trunk %d: %w", t.ID, err)
	}
	allowed, err := networks(t.AllowedInboundIPs)
	if err != nil {
		return sip.Trunk{}, fmt.Errorf("read trunk %d: %w", t.ID, err)
	}
	allowed = slices.DeleteFunc(allowed, p.rules.Wide)
	out := sip.Trunk{ID: t.ID, Owner: t.UserID, Number: t.PhoneNumber, Address: t.SIPAddress, Transport: t.Transport,
		CA: t.TLSCA, SRTP: t.SRTP, Username: t.SIPUsername, Password: password,
		Register: t.Register, ByIP: t.InboundAuthorizationType == "ip", Allowed: allowed, Proxy: t.OutboundProxy.Address(),
		Extension: t.Extension(), Country: t.CountryCode, Hosts: t.InboundHosts, Manners: manners(t)}
	for _, name := range t.Codecs {
		for _, f := range []audio.Format{audio.G722, audio.PCMU, audio.PCMA, audio.Opus} {
			if f.String() == name {
				out.Codecs = append(out.Codecs, f)
			}
		}
	}
	return out, nil
}

// manners is how a trunk's provider wants to be talked to, as the line knows it.
func manners(t *parley.Trunk) sip.Manners {
	m := sip.Manners{Format: t.SIPCallingFormat, Prefix: t.Prefix, FromUser: t.FromUser, UserPhone: t.UserPhone,
		Identity: t.IdentityHeader, Privacy: t.Privacy, AuthName: t.AuthUsername, NoEarly: t.EarlyMedia == "ignore",
		CalledFrom: t.CalledNumberFrom, Silent: !t.Options, Name: t.CallerName, Sign: t.SignCalls}
	if t.FromDomain != nil {
		m.FromDomain = *t.FromDomain
	}
	if t.ContactDomain != nil {
		m.ContactDomain = *t.ContactDomain
	}
	if t.RTPSource != nil {
		m.RTPSource = *t.RTPSource
	}
	return m
}

// trunks are all that the line lets in and registers with. One that can't be used is left out: it is its owner's to
// mend, who is told by checking it.
func (p *telephone) trunks(ctx context.Context) ([]sip.Trunk, error) {
	rows, err := p.db.AllTrunks(ctx)
	if err != nil {
		return nil, err
	}
	further, err := p.db.FurtherNumbers(ctx)
	if err != nil {
		return nil, err
	}
	var list []sip.Trunk
	if p.carrier != nil {
		list = append(list, *p.carrier)
	}
	for i := range rows {
		t, err := p.trunk(&rows[i])
		if err != nil {
			slog.Debug("a trunk is not used", "trunk", rows[i].ID, "error", err)
			continue
		}
		t.Further = further[t.ID]
		t.Register = t.Register && p.node.Holds(t.ID)
		list = append(list, t)
	}
	return list, nil
}

// place says why a trunk must not be where it is.
func (p *telephone) place(ctx context.Context, t *parley.Trunk) error {
	if p.line == nil {
		return nil
	}
	to, err := p.trunk(t)
	if err != nil {
		return nil // it says so when it is used
	}
	return p.line.Place(ctx, to)
}

func (s *Settings) checkCarrierTrunk() finding {
	const what = "carrier trunk"
	switch {
	case s.CarrierSIPAddress != "" && len(s.CarrierSIPAllowedIPs) == 0 && s.CarrierSIPPassword == "":
		return finding{"note", what, s.CarrierSIPAddress +
			": calls go out, and none come in. Set PARLEY_CARRIER_SIP_ALLOWED_IPS to the carrier's addresses"}
	case s.CarrierSIPAddress != "":
		return finding{"ok", what, s.CarrierSIPAddress}
	case s.TwilioAccountSID != "":
		return finding{"note", what, "none: numbers of the carrier can't call or be called. Set PARLEY_CARRIER_SIP_ADDRESS"}
	}
	return finding{"note", what, "none: calls from the sandbox's numbers reach a simulated far end inside this program. " +
		"Set PARLEY_CARRIER_SIP_ADDRESS for real ones"}
}

// checkTrunks says what users may do with trunks of their own.
func (s *Settings) checkTrunks() finding {
	const what = "users' trunks"
	if s.Signup == "on" && slices.Contains(s.Trunks, "all") && (s.TrunkPrivate == "on" || s.TrunkCallerID == "any") {
		return finding{"note", what, "anybody who signs up may create SIP trunks, even to private addresses, and call from any number: " +
			"set PARLEY_TRUNKS, or PARLEY_TRUNK_PRIVATE=off and PARLEY_TRUNK_CALLER_ID=verified"}
	}
	return finding{"ok", what, "made by " + strings.Join(s.Trunks, ", ")}
}

// checkPresets says what of users' trunks is otherwise than the documents of their carriers and systems have it, and what
// of these settings is.
func checkPresets(ctx context.Context, s *Settings, db *store.DB) (found []finding) {
	list, err := db.AllTrunks(ctx)
	if err != nil {
		return []finding{{"FAIL", "users' trunks", fmt.Sprintf("they can't be read: %v", err)}}
	}
	for i := range list {
		t := &list[i]
		what := "trunk " + strconv.FormatInt(t.ID, 10)
		hints := preset.Hints(t)
		if t.Preset != nil && t.Transport == "tls" && (s.SIPTLSListen == "off" || s.SIPTLSListen == "") {
			hints = append(hints, "Calls come in over TLS, and this server does not listen for it: set PARLEY_SIP_TLS_LISTEN.")
		}
		for _, hint := range hints {
			found = append(found, finding{"note", what, hint + " See docs/" + preset.Of(*t.Preset).Page()})
		}
	}
	return found
}
