package parley

import "github.com/uptrace/bun"

// SMSStatus is how far a text message has come.
type SMSStatus string

// The states of a text message.
const (
	SMSQueued      SMSStatus = "queued"      // it stands with us
	SMSSent        SMSStatus = "sent"        // the carrier has taken it
	SMSDelivered   SMSStatus = "delivered"   // the recipient's phone has it
	SMSUndelivered SMSStatus = "undelivered" // the carrier could not deliver it; its price stays charged
	SMSFailed      SMSStatus = "failed"      // the carrier did not take it, as far as we know; nothing is charged
)

// Before says whether a message in state s may still come to state next. Carriers tell states twice and out of order:
// a message never goes back, and what has ended stays as it ended.
func (s SMSStatus) Before(next SMSStatus) bool { return s.rank() < next.rank() }

func (s SMSStatus) rank() int {
	switch s {
	case SMSQueued:
		return 0
	case SMSSent:
		return 1
	}
	return 2
}

// SMS is a text message that was sent, or is to be.
type SMS struct {
	bun.BaseModel `bun:"sms" json:"-"`

	ID            int64     `bun:",pk,autoincrement" json:"id"`
	PhoneNumberID int64     `json:"phone_number_id"`            // it may be gone since
	From          string    `bun:"sender" json:"from_number"`   // E.164
	To            string    `bun:"recipient" json:"to"`         // E.164
	Body          string    `json:"body"`                       //
	UserID        int64     `json:"user_id"`                    //
	Segments      int       `json:"segments"`                   //
	SegmentPrice  Money     `json:"segment_price"`              //
	TotalCost     Money     `json:"total_cost"`                 // not charged where it failed
	Status        SMSStatus `json:"status"`                     //
	SID           string    `bun:"sid,nullzero" json:"sms_sid"` // the carrier's name for it, "" until it has one
	Error         *string   `json:"error"`                      // what the carrier said when it failed
	LeaseUntil    Time      `json:"-"`                          // somebody is sending it until then
	AttemptedAt   Time      `json:"-"`                          // when the carrier was first asked to take it; 0: never
	CreatedAt     DateTime  `json:"created_at"`
	UpdatedAt     DateTime  `json:"updated_at"`
}

// InboundSMS is a text message that came in.
type InboundSMS struct {
	bun.BaseModel `bun:"sms_inbound" json:"-"`

	ID        int64  `bun:",pk,autoincrement"`
	SID       string `bun:"sid"` // the carrier's name for it, unique
	UserID    int64
	NumberID  int64  // the number that it came to
	From      string `bun:"sender"`
	To        string `bun:"recipient"`
	Body      string
	Handled   bool // the assistant has it, or nobody wants it
	CreatedAt Time
}

// OutboxSMS is a message that the sandbox carrier has taken: nobody's phone rings, but it can be read.
type OutboxSMS struct {
	bun.BaseModel `bun:"sandbox_outbox" json:"-"`

	ID        int64     `bun:",pk,autoincrement" json:"id"`
	UserID    int64     `json:"-"`
	Reference string    `json:"reference"` // ours; the same message is taken once
	SID       string    `bun:"sid" json:"sms_sid"`
	From      string    `bun:"sender" json:"from"`
	To        string    `bun:"recipient" json:"to"`
	Body      string    `json:"body"`
	Status    SMSStatus `json:"status"` // what becomes of it
	CreatedAt DateTime  `json:"created_at"`
}
