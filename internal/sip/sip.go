// Package sip is the telephone line: trunks and their registrations, calls in and out, and the leg that carries a
// call's audio over RTP. It knows nothing of users and assistants: cmd/parley supplies the trunks and takes the calls.
package sip

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/netip"
	"time"

	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/rtp"
	"parley/internal/stir"
)

// Config is what a server needs. Nothing in it changes afterwards.
type Config struct {
	Listen string // host:port, for UDP and TCP; "off" for no telephone
	Secure string // host:port, for TLS; "" for none
	// TLS is how we prove who we are, with GetCertificate alone: to those who connect, and to trunks that ask for it.
	// nil means not at all. With ClientCAs set, those who connect must prove their identity too.
	TLS      *tls.Config
	Ports    [2]int     // of RTP: the first and the last
	External netip.Addr // what others reach us by, where it isn't the socket's own address (NAT)
	MaxCalls int        // more are refused with 503; 0: as many as there are ports
	Pace     *rtp.Pace  // of the sound of all calls: while it is behind, new ones are refused likewise; nil: nobody measures

	// Contact is the user part of our contact at a trunk's registrar, which nobody can guess. One that is the same after a restart
	// takes the place of the former one there. nil: it is another one each time.
	Contact func(trunk int64) string

	Session time.Duration // after which a call ends that nobody refreshes, as we ask for it; 0: we don't ask

	Loose bool // sound is taken from addresses that the signalling does not name, where no other comes

	Verifier *stir.Verifier // of who calls; nil: nobody looks
	Signer   *stir.Signer   // of calls that ask for it; nil: none is signed

	Softphone bool // sip:ASSISTANT_ID@HOST from this machine reaches the assistant
	// Reach says why a user's trunk may not be at an address; nil means that it may be anywhere but at the carrier and
	// at this server.
	Reach func(netip.Addr) error
	// Trunks lists all trunks that may call us and that we register with. It is called at the start, periodically, and
	// after Refresh.
	Trunks func(ctx context.Context) ([]Trunk, error)
	// Refused is told, by one goroutine, of calls over users' trunks that were refused before Answer had them. It may be nil.
	Refused func(ctx context.Context, list []parley.TrunkRefusal)
	// Answer takes an incoming call. It runs in its own goroutine, and the call is over when it returns. ctx is the
	// Invite's own: it ends when the caller gives up, and when the server stops.
	Answer func(ctx context.Context, in *Invite)
}

// Trunk is a route in and out.
type Trunk struct {
	ID        int64          // unique; 0 is the carrier's, which has many numbers
	Owner     int64          // whose account's it is
	Number    string         // E.164, or an extension; "" for the carrier's
	Extension bool           // Number is an extension of a telephone system
	Further   []string       // more numbers, E.164
	Country   string         // ISO 3166-1 alpha-2, in which numbers in short are dialled; "": that of Number
	Address   string         // host[:port]
	Transport string         // udp, tcp, tls
	CA        string         // PEM: over TLS, the authorities that are believed; "" for the system's
	SRTP      string         // off, optional, required; "" is off
	Codecs    []audio.Format // of sound, the preferred one first; none: all, as we or the far end prefer
	Proxy     string         // host[:port], "" for none
	Username  string
	Password  string
	Register  bool
	ByIP      bool           // a caller's address is enough; otherwise they prove that they know the password
	Allowed   []netip.Prefix // with ByIP: whose; otherwise, where there are any: who may try
	Hosts     []string       // names whose addresses are allowed too

	Manners

	provider []netip.Addr // where the names of its address and its proxy lead
	at       []netip.Addr // of its own address and its proxy's, where these are no names
}

// place is the address at which the trunk is reached.
func (t *Trunk) place() string {
	if t.Proxy != "" {
		return t.Proxy
	}
	return t.Address
}

// way is the trunk's transport; hops reports one that we don't support.
func (t *Trunk) way() way {
	w, _ := wayOf(t.Transport)
	return w
}

// Dialling is an outgoing call.
type Dialling struct {
	Trunk    Trunk
	To, From string            // E.164
	Withheld bool              // who calls is not shown to the person called
	Headers  map[string]string // X- headers that go with the call
	// Attest is how the call is signed where its trunk's are: A, B or C (RFC 8588); "": not at all. Origin is whose call it is.
	Attest, Origin string
	Ringing        func() // is told, once, when the far end rings; may be nil
	// Early gives who hears the sound that comes before an answer, at a rate: ringback or an announcement. It may be
	// nil, and give nil. What that peer says goes nowhere.
	Early func(audio.Rate) audio.Peer
	// May says why a call may not be sent on (3xx) to an E.164 number or a sip: address. If it is nil, none is.
	May func(to string) error
}

// Health is the state of a trunk.
type Health struct {
	Registered bool
	OptionsMS  int64                 // how long it took to answer OPTIONS
	Findings   []parley.TrunkFinding // of one that has answered
}

// Refused is the far end's refusal of a call or another request.
type Refused struct {
	Code    int    // the SIP status, 300 to 699
	Reason  string // its phrase
	Because string // what its Reason and Warning headers say, "" for nothing
	Secrecy string // what the trunk asked for when it offered sound: off, optional, required, dtls; "" where it offered none
}

func (r *Refused) Error() string { return fmt.Sprintf("the far end refused: %d %s", r.Code, r.Reason) }

// Ended is the reason why a call refused like this is over.
func (r *Refused) Ended() parley.EndedReason { return parley.ReasonOfSIP(r.Code) }

// Unwrap makes errors.Is and errors.As find the parley.EndedReason.
func (r *Refused) Unwrap() error { return r.Ended() }
