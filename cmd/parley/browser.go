package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"parley/internal/audio"
	"parley/internal/auth"
	"parley/internal/call"
	"parley/internal/parley"
	"parley/internal/rtc"
	"parley/internal/rtp"
)

// webRTCListen is where browsers call when nobody says otherwise.
const webRTCListen = "127.0.0.1:8189"

// browsers opens the port that browsers call; nil where there is none. With the default address, one that is taken is
// no reason not to start.
func (s *Settings) browsers(pace *rtp.Pace) (*rtc.Server, error) {
	if s.WebRTCListen == "off" || !slices.Contains(s.Roles, parley.RoleCalls) {
		return nil, nil
	}
	if _, _, err := net.SplitHostPort(s.WebRTCListen); err != nil {
		return nil, fmt.Errorf("PARLEY_WEBRTC_LISTEN: %q is neither an address such as 0.0.0.0:8189 nor off", s.WebRTCListen)
	}
	turn, err := s.turn()
	if err != nil {
		return nil, err
	}
	line := rtc.New(rtc.Config{Listen: s.WebRTCListen, Pace: pace, External: s.ExternalIP, Relays: s.TLSCert != "" && !s.turnOff(), TURN: turn,
		Bound: func(l net.Listener) net.Listener { return s.front().Listen(l, s.ConnectionsPerAddress) }})
	if err := line.Listen(); err != nil {
		if s.WebRTCListen == webRTCListen && errors.Is(err, syscall.EADDRINUSE) {
			slog.Warn("browsers can't call: their port is in use. Stop the program that uses it, choose another port with PARLEY_WEBRTC_LISTEN, "+
				"or turn calls from browsers off with PARLEY_WEBRTC_LISTEN=off", "address", webRTCListen)
			return nil, nil
		}
		return nil, fmt.Errorf("open the port for browsers on %s (choose another with --webrtc-listen or PARLEY_WEBRTC_LISTEN, or off): %w",
			s.WebRTCListen, err)
	}
	return line, nil
}

// turnOff reports whether browsers may not be relayed at all.
func (s *Settings) turnOff() bool { return slices.Equal(s.TURN, []string{"off"}) }

// turn returns the operator's own TURN servers.
func (s *Settings) turn() (t rtc.TURN, err error) {
	if s.turnOff() {
		return t, nil
	}
	t = rtc.TURN{URLs: s.TURN, User: s.TURNUser, Password: s.TURNPassword, Secret: s.TURNSecret}
	if strings.ContainsAny(t.User+t.Password, "\"\\<>") {
		return t, errors.New("PARLEY_TURN_USER and PARLEY_TURN_PASSWORD can't have the characters \" \\ < >: choose others at the TURN server")
	}
	for _, url := range t.URLs {
		kind, host, ok := strings.Cut(url, ":")
		if !slices.Contains([]string{"stun", "stuns", "turn", "turns"}, kind) || !ok || host == "" || strings.ContainsAny(url, "<>\" ") {
			return t, fmt.Errorf("PARLEY_TURN: %q is not the address of a TURN server, "+
				"such as turn:turn.example.com:3478 or turns:turn.example.com:443?transport=tcp", url)
		}
		if strings.HasPrefix(kind, "turn") && t.Secret == "" && (t.User == "" || t.Password == "") {
			return t, errors.New("PARLEY_TURN needs PARLEY_TURN_SECRET (coturn's static-auth-secret), " +
				"or PARLEY_TURN_USER and PARLEY_TURN_PASSWORD")
		}
	}
	return t, nil
}

// connector has browsers of a server connected to calls (call.Config.Connect); nil where there are none.
func connector(browsers *rtc.Server) func(context.Context, call.Browser, func(audio.Leg, error)) (call.BrowserLine, error) {
	if browsers == nil {
		return nil
	}
	return func(ctx context.Context, b call.Browser, then func(audio.Leg, error)) (line call.BrowserLine, err error) {
		offer, err := rtc.ReadOffer(b.Offer)
		if err != nil {
			return line, err
		}
		offer.From = b.From
		leg, answer, err := browsers.Answer(ctx, offer, func(l *rtc.Leg, err error) {
			if err != nil {
				then(nil, err)
				return
			}
			then(l, nil)
		})
		if errors.Is(err, rtc.ErrMany) {
			err = &auth.LimitError{RetryAfter: int(browsers.Connect / time.Second)}
		}
		if err != nil {
			return line, err
		}
		line.SDP, line.Tag = answer, leg.Connection().Tag()
		for _, server := range leg.Helpers(b.Relay) {
			line.Links = append(line.Links, server.Links()...)
		}
		line.Reconnect = func(ctx context.Context, match, fragment string) (c call.Connection, err error) {
			ours, changed, err := leg.Reconnect(ctx, match, fragment)
			if errors.Is(err, rtc.ErrOver) {
				err = parley.Errorf(parley.NotFound, "Leg not found")
			}
			if err == nil && changed {
				c.SDP, c.Tag = ours.String(), ours.Tag()
			}
			return c, err
		}
		return line, nil
	}
}

// checkBrowsers looks whether browsers could call.
func checkBrowsers(s *Settings) finding {
	const what = "web calls"
	if s.WebRTCListen == "off" {
		return finding{"note", what, "off (PARLEY_WEBRTC_LISTEN): browsers can't call"}
	}
	if _, err := s.turn(); err != nil {
		return finding{"FAIL", what, err.Error()}
	}
	line := rtc.New(rtc.Config{Listen: s.WebRTCListen, External: s.ExternalIP})
	switch err := line.Listen(); {
	case errors.Is(err, syscall.EADDRINUSE):
		return finding{"note", what, s.WebRTCListen +
			" is in use: a server is running there already, or choose another with PARLEY_WEBRTC_LISTEN"}
	case err != nil:
		return finding{"FAIL", what,
			fmt.Sprintf("%v: choose an address of this machine with PARLEY_WEBRTC_LISTEN, such as 0.0.0.0:8189, or off", err)}
	}
	line.Close()
	if loopback(s.WebRTCListen) && !loopback(s.Listen) {
		return finding{"note", what, s.WebRTCListen +
			" is only reachable from this machine: set PARLEY_WEBRTC_LISTEN=0.0.0.0:8189, with PARLEY_EXTERNAL_IP behind NAT, " +
			"and open that port for UDP and TCP"}
	}
	return finding{"ok", what, s.WebRTCListen + " is free, for UDP and TCP"}
}

// loopback says whether an address is reached from this machine alone.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip, bad := netip.ParseAddr(host)
	return err == nil && (host == "localhost" || bad == nil && ip.IsLoopback())
}
