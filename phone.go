package parley

import (
	"strings"

	"github.com/nyaruka/phonenumbers"
	"github.com/uptrace/bun"
)

// NormalizePhone gives the E.164 form of a number in international format, and whether it is a valid one.
func NormalizePhone(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if digits, ok := strings.CutPrefix(s, "00"); ok {
		s = "+" + digits
	}
	if !strings.HasPrefix(s, "+") || len(s) > 32 {
		return "", false
	}
	n, err := phonenumbers.Parse(s, "")
	if err != nil || !phonenumbers.IsValidNumber(n) {
		return "", false
	}
	return phonenumbers.Format(n, phonenumbers.E164), true
}

// NumberType says where an owned number comes from.
type NumberType string

// The types of owned numbers.
const (
	NumberNormal   NumberType = "normal"    // rented from the carrier
	NumberSIP      NumberType = "sip"       // of the user's own trunk
	NumberCallerID NumberType = "caller_id" // verified, shown on outgoing calls only
)

// Label is the contract's type_label.
func (t NumberType) Label() string {
	switch t {
	case NumberSIP:
		return "SIP"
	case NumberCallerID:
		return "Caller ID"
	}
	return "Normal"
}

// Number is an owned phone number.
type Number struct {
	bun.BaseModel `bun:"numbers" json:"-"`

	ID          int64      `bun:",pk,autoincrement" json:"id"`
	UserID      int64      `json:"-"`
	PhoneNumber string     `json:"phone_number"` // E.164
	Nickname    *string    `json:"nickname"`
	CountryCode string     `json:"country_code"` // ISO 3166-1 alpha-2
	Type        NumberType `json:"type"`
	SMSCapable  bool       `bun:"sms_capable" json:"sms_capable"`
	PaidUntil   Time       `json:"-"` // end of the paid period; zero where nothing is rented
	ReleasedAt  Time       `json:"-"` // given up: goes at PaidUntil
	CreatedAt   Time       `json:"created_at"`
}
