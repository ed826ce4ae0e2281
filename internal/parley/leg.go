package parley

import (
	"errors"
	"time"

	"github.com/uptrace/bun"
)

// ErrNoRefer says that the far end does not send calls elsewhere: whoever is to be reached must be called from here.
var ErrNoRefer = errors.New("the far end does not send calls elsewhere")

// LegKind says what somebody was called into a call for.
type LegKind string

// The kinds.
const (
	LegTransfer   LegKind = "transfer"   // to take the customer over
	LegSupervisor LegKind = "supervisor" // somebody of the user's who looks after the assistant
	LegGuest      LegKind = "guest"      // a third person
	LegRing       LegKind = "ring"       // a telephone that rings for a call to a number
)

// LegMode says what somebody who takes part in a call hears and does. All of them hear everybody.
type LegMode string

// The modes.
const (
	LegListen   LegMode = "listen"    // nobody hears them
	LegWhisper  LegMode = "whisper"   // the assistant is told what they say, and nobody else hears it
	LegTalk     LegMode = "talk"      // everybody hears them, and the assistant goes on
	LegTakeOver LegMode = "take_over" // everybody hears them, and the assistant listens and says nothing
)

// Valid says whether it is one of them.
func (m LegMode) Valid() bool {
	return m == LegListen || m == LegWhisper || m.Heard()
}

// Heard says whether the customer hears them.
func (m LegMode) Heard() bool { return m == LegTalk || m == LegTakeOver }

// Speaker is what a transcript calls who was called in.
func (k LegKind) Speaker() string {
	if k == LegSupervisor {
		return SpeakerSupervisor
	}
	return SpeakerGuest
}

// LegStatus says how far a leg is.
type LegStatus string

// The states of a leg, in their order.
const (
	LegDialing  LegStatus = "dialing"
	LegRinging  LegStatus = "ringing"
	LegBriefing LegStatus = "briefing" // they are told what it is about
	LegJoined   LegStatus = "joined"   // they talk with the customer
	LegEnded    LegStatus = "ended"
)

// CallLeg is somebody who was called into a live call, besides its customer.
type CallLeg struct {
	bun.BaseModel `bun:"call_legs" json:"-"`

	ID          int64       `bun:",pk,autoincrement" json:"id"`
	CallID      int64       `json:"-"`
	UserID      int64       `json:"-"`
	Kind        LegKind     `json:"kind"`
	Mode        LegMode     `json:"mode,omitempty" enum:"listen,whisper,talk,take_over" doc:"What a supervisor or guest hears and does; absent for a transfer."`
	Status      LegStatus   `json:"status" doc:"dialing, ringing, briefing, joined, ended."`
	PhoneNumber string      `json:"phone_number" doc:"Who was called; empty for a browser."`
	Person      string      `json:"person,omitempty" doc:"Who takes part in a browser, or who had the telephone called; absent where the assistant did."`
	CallerID    string      `json:"caller_id" doc:"The number that they saw; empty for a browser."`
	EndedReason EndedReason `json:"ended_reason" doc:"Why they were not connected, or how the call ended; empty while the leg is open."`
	Summary     string      `json:"summary" doc:"The summary of the conversation that they heard."`
	Turns       []CallTurn  `bun:"type:json" json:"turns" doc:"What was said before they were connected: customer is the person called."`

	Recording    string `json:"-"` // its name in blob storage, "" for none
	RecordingURL string `bun:"-" json:"recording_url,omitempty" doc:"A signed link that holds for a week; absent without a recording. Left is what they said, right what they heard."`

	MaxDuration int64 `json:"-"` // seconds
	Rate        Money `json:"-"` // a started minute
	Cost        Money `json:"cost"`
	Reserved    Money `json:"-"` // set aside for it while it is open

	CreatedAt  DateTime `json:"created_at"`
	AnsweredAt DateTime `json:"answered_at"`
	JoinedAt   DateTime `json:"joined_at"`
	EndedAt    DateTime `json:"ended_at"`
}

// Possible is what the leg can cost at most.
func (l *CallLeg) Possible() Money { return l.Rate * Money((l.MaxDuration+59)/60) }

// Minutes are the started minutes of the leg, which are charged.
func (l *CallLeg) Minutes() int64 {
	if l.AnsweredAt == 0 || l.EndedAt <= l.AnsweredAt {
		return 0
	}
	whole := Time(l.EndedAt).Sub(Time(l.AnsweredAt))
	return min(int64((whole+time.Minute-1)/time.Minute), (l.MaxDuration+59)/60)
}

// End ends the leg at a time, and counts what it cost until then.
func (l *CallLeg) End(reason EndedReason, at Time) {
	l.Status, l.EndedReason, l.EndedAt = LegEnded, reason, DateTime(at)
	l.Cost = l.Rate * Money(l.Minutes())
}
