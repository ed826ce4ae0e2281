//go:build stacks

package sip

import (
	"context"
	"errors"
	"testing"
	"time"

	"parley/internal/parley"
)

// TestStackSipp: sipp plays scenarios, of signalling alone: it neither speaks nor listens.
func TestStackSipp(t *testing.T) {
	installed(t, "sipp", "-v")
	const stack = signalling
	trunks := fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback},
		Trunk{ID: 2, Number: "+15550001112", Username: "bob", Password: "right"})
	for _, c := range []struct{ row, scenario, transport, to string }{
		{"plain call, µ-law", "uac", "udp", "+15550001111"}, {"TCP", "uac", "tcp", "+15550001111"},
		{reliably, "uac_100rel", "udp", "+15550001111"},
		{timed, "uac_100rel", "udp", "+15550001111"}, {"late offer", "uac_100rel", "udp", "+15550001111"},
		{"UPDATE in an answered call", "uac_100rel", "udp", "+15550001111"},
		{"fax (T.38) refused, the call goes on", "uac_100rel", "udp", "+15550001111"},
		{"password, theirs asked for", "uac_login", "udp", "+15550001112"}, {"they hang up", "uac", "udp", "+15550001111"},
		{"keys (INFO)", "uac", "udp", "+15550001111"},
	} {
		try(t, stack, c.row, "in", func(t *testing.T) {
			a := newAnswerer(0)
			s := start(t, Config{Answer: a.answer, Trunks: trunks})
			_, over := sipp(t, c.scenario, c.transport, "-s", c.to, s.Addr().String())
			in := a.next(t)
			in.ends(t, parley.CustomerHangup)
			succeeds(t, over)
			if c.scenario == "uac" {
				in.phone.await(t, "keys came", func() bool { return in.phone.keys == "5#" })
			}
		})
	}
	try(t, stack, "they give up while it rings", "in", func(t *testing.T) {
		ended := make(chan error, 1)
		s := start(t, Config{Trunks: trunks, Answer: func(ctx context.Context, in *Invite) {
			_ = in.Ring()
			<-ctx.Done()
			ended <- context.Cause(ctx)
		}})
		_, over := sipp(t, "uac_cancel", "udp", "-s", "+15550001111", s.Addr().String())
		if err := get(t, ended); err != error(parley.CustomerHangup) {
			t.Errorf("ended with %v", err)
		}
		succeeds(t, over)
	})
	for _, c := range []struct {
		row, scenario string
		refused       error
	}{{"plain call, µ-law", "uas", nil}, {reliably, "uas_100rel", nil}, {timed, "uas_100rel", nil},
		{"UPDATE before the answer", "uas_100rel", nil},
		{"password, ours asked for", "uas_login", nil}, {"they hang up", "uas_hangup", nil}, {"busy", "uas_busy", parley.LineBusy},
		{"we give up while it rings", "uas_silent", parley.NoAnswer}} {
		try(t, stack, c.row, "out", func(t *testing.T) {
			at, over := sipp(t, c.scenario, "udp")
			ctx, cancel := context.WithTimeoutCause(soon(t), 2*time.Second, parley.NoAnswer)
			defer cancel()
			l, err := start(t, Config{}).
				Dial(ctx, Dialling{Trunk: Trunk{Address: at.String(), Username: "bob", Password: "right"}, To: "+15550001111", From: "+15550002222"})
			if !errors.Is(err, c.refused) {
				t.Fatalf("got %v", err)
			}
			if err == nil {
				r := run(l, newPhone(440))
				if c.scenario == "uas_hangup" {
					r.ends(t, parley.CustomerHangup)
				} else {
					r.phone.await(t, "the call goes on for a while", func() bool { return r.phone.ticks > 5 })
					r.hangUp(t)
				}
			}
			succeeds(t, over)
		})
	}
}
