package parley

import "github.com/uptrace/bun"

// The most refusals that are kept of a trunk's calls: from its own addresses, from others together, and from one of these.
// What is kept of a message has at most so many bytes.
const (
	MaxRefusals        = 25
	MaxRefusalsOfPlace = 5
	MaxRefusedReason   = 500
	MaxRefusedText     = 4 << 10
)

// TrunkRefusal is a call that came over a trunk and was refused before it became a call.
type TrunkRefusal struct {
	bun.BaseModel `bun:"table:trunk_refusals" json:"-"`
	ID            int64  `bun:"id,pk,autoincrement" json:"id"`
	UserID        int64  `json:"-"`
	TrunkID       int64  `json:"-"`
	At            Time   `json:"at"`
	Status        int    `json:"status" doc:"The SIP status with which it was refused."`
	Reason        string `json:"reason" doc:"Why, and what to change."`
	Known         bool   `json:"from_trunk" doc:"It came from an address of the trunk; false: from one that nothing names."`
	Place         string `json:"-"` // of Peer, as the line counts places
	Caller        string `json:"-"` // who called, as a number in full where it is one
	Transport     string `json:"transport" enum:"udp,tcp,tls"`
	Peer          string `json:"peer" doc:"The address it came from."`
	Text          string `json:"text" doc:"The INVITE, without passwords and keys."`
}

// Message is the INVITE.
func (r *TrunkRefusal) Message() SIPMessage {
	return SIPMessage{At: r.At, Direction: "in", Transport: r.Transport, Peer: r.Peer, Text: r.Text}
}
