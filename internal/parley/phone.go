package parley

import (
	"slices"
	"strings"
	"time"

	"github.com/nyaruka/phonenumbers"
	"github.com/uptrace/bun"
)

// NormalizePhone returns the E.164 form of a number in international format, and whether it is a valid one. It is for
// what machines write; ReadPhone is for what people do.
func NormalizePhone(s string) (string, bool) {
	e164, err := ReadPhone(s, "")
	return e164, err == nil
}

// FormatPhone is how an E.164 number is shown to people: as its own country writes it in North America, elsewhere
// with the country code, because a number without it can't be dialled from abroad.
func FormatPhone(e164 string) string {
	n, err := phonenumbers.Parse(e164, "")
	if err != nil {
		return e164
	}
	if n.GetCountryCode() == 1 {
		return phonenumbers.Format(n, phonenumbers.NATIONAL)
	}
	return phonenumbers.Format(n, phonenumbers.INTERNATIONAL)
}

// PhoneCountry is the ISO 3166-1 alpha-2 code of an E.164 number's country, "" for one of no country (satellites,
// freephone).
func PhoneCountry(e164 string) string {
	n, err := phonenumbers.Parse(e164, "")
	if err != nil {
		return ""
	}
	if c := phonenumbers.GetRegionCodeForNumber(n); len(c) == 2 && c != "ZZ" {
		return c
	}
	return ""
}

// CostlyPhone says whether calling an E.164 number pays whoever has it, or costs far more than its country does:
// premium rate, shared cost and personal numbers (UK 070), those of companies that have one for a whole country
// (UAN), and those of no country (satellites, international services).
func CostlyPhone(e164 string) bool {
	n, err := phonenumbers.Parse(e164, "")
	if err != nil || PhoneCountry(e164) == "" {
		return true
	}
	if c := PhoneCountry(e164); (c == "US" || c == "CA") && strings.HasPrefix(e164[min(5, len(e164)):], "976") {
		return true // premium rate in every area code (+1 NPA-976), which the tables count among the others
	}
	switch phonenumbers.GetNumberType(n) {
	case phonenumbers.PREMIUM_RATE, phonenumbers.SHARED_COST, phonenumbers.PAGER, phonenumbers.PERSONAL_NUMBER,
		phonenumbers.UAN:
		return true
	}
	return false
}

// CompanyPhone says whether an E.164 number is one that a company has for a whole country (UAN). Some cost what every
// other number there does (UK 03), some far more, and none pays who is called. country is its calling code, such as
// +44.
func CompanyPhone(e164 string) (country string, ok bool) {
	n, err := phonenumbers.Parse(e164, "")
	if err != nil || phonenumbers.GetNumberType(n) != phonenumbers.UAN {
		return "", false
	}
	return strings.TrimSuffix(e164, phonenumbers.GetNationalSignificantNumber(n)), true
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
	Rent        Money      `json:"-"` // a month's, as it was when the number was bought; 0 where nothing is rented
	PaidUntil   Time       `json:"-"` // end of the paid period; zero where nothing is rented
	ReleasedAt  Time       `json:"-"` // given up: goes at PaidUntil
	TrunkID     *int64     `json:"-"` // the trunk that has it beside its own number
	CreatedAt   Time       `json:"created_at"`

	Route *NumberRoute `bun:"type:json,nullzero" json:"-"` // nil: its assistant takes every call
}

// Subscribed says whether the number is rented and the rent is paid.
func (n *Number) Subscribed(now Time) bool { return n.Type == NumberNormal && n.PaidUntil > now }

// NextRent is when a paid period that begins at from ends: a month later on the day of the month on which the number
// was bought, or on the month's last day where it is shorter.
func (n *Number) NextRent(from Time) Time {
	f, day := from.Time(), n.CreatedAt.Time().Day()
	next := time.Date(f.Year(), f.Month()+1, 1, f.Hour(), f.Minute(), f.Second(), f.Nanosecond(), time.UTC)
	last := next.AddDate(0, 1, -1).Day()
	return At(next.AddDate(0, 0, min(day, last)-1))
}

// NumberOffer is a number that a search found: only such can be bought, at the price that the search showed.
type NumberOffer struct {
	bun.BaseModel `bun:"number_offers" json:"-"`

	UserID      int64
	PhoneNumber string
	CountryCode string
	SMSCapable  bool `bun:"sms_capable"`
	Rent        Money
	CreatedAt   Time
}

// NumberOrder is a purchase under way. It stands from before the carrier is asked until the number is the user's or
// is given back, so that a server that dies in between loses neither the number nor the money.
type NumberOrder struct {
	bun.BaseModel `bun:"number_orders" json:"-"`

	ID          int64 `bun:",pk,autoincrement"`
	UserID      int64
	PhoneNumber string // unique: a number is bought by one at a time
	CountryCode string
	SMSCapable  bool `bun:"sms_capable"`
	Rent        Money
	Cancelled   bool // the buyer was told that it failed: what the carrier may have sold goes back
	CancelledAt Time
	CreatedAt   Time
}

// CallerID is a number that waits to be verified; once it is, it becomes a Number of type caller_id.
type CallerID struct {
	bun.BaseModel `bun:"caller_ids" json:"-"`

	ID          int64  `bun:",pk,autoincrement" json:"id"`
	UserID      int64  `json:"-"`
	PhoneNumber string `json:"phone_number"`
	Code        string `bun:"-" json:"-"`
	Sealed      []byte `bun:"code" json:"-"`
	Tries       int    `json:"-"` // wrong ones so far
	ExpiresAt   Time   `json:"expires_at"`
	CreatedAt   Time   `json:"created_at"`
}

// CallerIDTries is how often a code may be guessed.
const CallerIDTries = 5

// PhoneZones are the IANA time zones that an E.164 number may be in, by its first digits; none where these don't say.
func PhoneZones(e164 string) []string {
	zones, err := phonenumbers.GetTimezonesForPrefix(e164)
	if err != nil || slices.Contains(zones, phonenumbers.UNKNOWN_TIMEZONE) {
		return nil
	}
	return zones
}

// TransferTarget reads where a call may be sent: a number in international format, an extension of 2 to 6 digits, or
// a sip: address. It returns the target as it is kept, and the E.164 number that is reached there, "" where a house
// decides who that is.
func TransferTarget(s string) (target, number string, ok bool) { return ReadTransferTarget(s, "") }

// ReadTransferTarget is TransferTarget for what people write: a national number is read as ReadPhone reads it.
func ReadTransferTarget(s, country string) (target, number string, ok bool) {
	s = strings.TrimSpace(s)
	const digits = "0123456789"
	if len(s) >= 2 && len(s) <= 6 && strings.Trim(s, digits) == "" {
		return s, "", true
	}
	if len(s) < 4 || !strings.EqualFold(s[:4], "sip:") {
		n, err := ReadPhone(s, country)
		return n, n, err == nil
	}
	user, host, _ := strings.Cut(s[4:], "@")
	if user == "" || strings.Trim(user, digits+"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.!~*'()+") != "" ||
		!ValidHostPort(host) {
		return "", "", false
	}
	// A telephone number under the name of an address is a telephone number: separators are none of its digits (RFC
	// 3966, section 3).
	if plain := strings.NewReplacer("-", "", ".", "", "(", "", ")", "", "+", "").Replace(user); strings.Trim(plain,
		digits) == "" && len(plain) > 6 {
		if !strings.HasPrefix(plain, "00") {
			plain = "+" + plain
		}
		if number, ok = NormalizePhone(plain); !ok {
			return "", "", false
		}
	}
	return "sip:" + user + "@" + host, number, true
}
