package parley

import "github.com/uptrace/bun"

// LedgerKind says why money moved.
type LedgerKind string

// The kinds of ledger entries.
const (
	Credit         LedgerKind = "credit"   // given by the operator, or paid in
	MessageCharge  LedgerKind = "message"  // a customer's message in a text conversation
	Refund         LedgerKind = "refund"   // a charge taken back
	RentCharge     LedgerKind = "rent"     // a month of a phone number
	SMSCharge      LedgerKind = "sms"      // a text message sent
	WhatsAppCharge LedgerKind = "whatsapp" // a template or a free-form message sent
	CallCharge     LedgerKind = "call"     // a call: what the assistant talked
	CarrierCharge  LedgerKind = "carrier"  // a call: the way there
)

// LedgerEntry is one movement of a user's money. It is written once per (kind, reference), in the transaction that
// moves the balance.
type LedgerEntry struct {
	bun.BaseModel `bun:"ledger" json:"-"`

	ID           int64      `bun:",pk,autoincrement" json:"id"`
	UserID       int64      `json:"-"`
	Kind         LedgerKind `json:"kind"`
	Amount       Money      `json:"amount"` // signed
	BalanceAfter Money      `json:"balance_after"`
	Reference    string     `json:"reference"`
	Description  string     `json:"description"`
	CreatedAt    DateTime   `json:"created_at"`
}
