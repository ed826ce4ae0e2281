// Package sip is the telephone line: trunks and their registrations, calls in and out, and the leg that carries a call's sound in RTP.
// It knows nothing of users and assistants: cmd/parley gives it the trunks and takes the calls.
package sip

import (
	"context"
	"net/netip"

	"parley/internal/audio"
)

// Config is what a server needs. Nothing of it changes afterwards.
type Config struct {
	Listen   string     // host:port, for UDP and TCP; "off" for no telephone
	Ports    [2]int     // of RTP: the first and the last
	External netip.Addr // what others reach us by, where it isn't the socket's own address (NAT)
	MaxCalls int        // more are refused with 503; 0: as many as there are ports

	Softphone bool // sip:ASSISTANT_ID@HOST from this machine reaches the assistant
	// Trunks are all trunks that may call us and that we register with. It is asked at the start, now and then, and after Refresh.
	Trunks func(ctx context.Context) ([]Trunk, error)
	// Answer takes an incoming call: it runs in a goroutine of its own, and the call is over when it returns.
	Answer func(ctx context.Context, in *Invite)
}

// Trunk is a way in and out.
type Trunk struct {
	ID        int64  // unique; 0 is the carrier's, which has many numbers
	Number    string // E.164; "" for the carrier's
	Address   string // host[:port]
	Transport string // udp, tcp
	Proxy     string // host[:port], "" for none
	Username  string
	Password  string
	Register  bool
	ByIP      bool           // a caller's address is enough; otherwise they prove that they know the password
	Allowed   []netip.Prefix // with ByIP: whose; otherwise, where there are any: who may try
}

// Dialling is an outgoing call.
type Dialling struct {
	Trunk    Trunk
	To, From string // E.164
	Ringing  func() // is told when the far end rings; may be nil
}

// Health is how a trunk is.
type Health struct {
	Registered bool
	OptionsMS  int64 // how long it took to answer OPTIONS
}

var _ = audio.Leg(nil)

// Invite is an incoming call that was let in: it comes over a trunk, or from a softphone on this machine.
type Invite struct {
	Trunk       *Trunk // nil from a softphone
	AssistantID int64  // from a softphone: whom it calls
	From, To    string // E.164 where they are phone numbers
}
