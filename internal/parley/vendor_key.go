package parley

import (
	"strings"

	"github.com/uptrace/bun"
)

// VendorKey is a vendor's key that was entered in the product: the server's, or a user's own.
type VendorKey struct {
	bun.BaseModel `bun:"vendor_keys" json:"-"`

	UserID    int64  `bun:",pk" json:"-"` // 0: the server's
	Vendor    string `bun:",pk" json:"-"`
	Sealed    []byte `json:"-"` // nil: it was removed
	Hint      string `json:"hint" doc:"The key's last characters; the key itself is never returned."`
	BaseURL   string `json:"-"`
	Models    string `json:"-"` // those that the server listed, one a line, for a vendor that is known by its URL
	State     string `json:"state" enum:"connected,refused,failing,untested" doc:"What the last test found: connected; refused: the provider does not accept the key; failing for another reason; untested."`
	Reason    string `json:"reason" doc:"Why it is refused or failing, and what to do; otherwise empty."`
	CheckedAt Time   `json:"checked_at" doc:"When it was last tested."`
	CreatedAt Time   `json:"created_at"`
	UpdatedAt Time   `json:"updated_at"`
	Revision  int64  `json:"-"`
}

// ModelList returns the models that the vendor's server listed.
func (k *VendorKey) ModelList() []string {
	if k.Models == "" {
		return nil
	}
	return strings.Split(k.Models, "\n")
}

// The states of a vendor's key.
const (
	KeyConnected = "connected"
	KeyRefused   = "refused" // by the vendor
	KeyFailing   = "failing" // for another reason
	KeyUntested  = "untested"
)

// AccountVoice is a voice in a user's account at a vendor, such as a cloned one.
type AccountVoice struct {
	bun.BaseModel `bun:"account_voices"`

	Number    int64 `bun:",pk,autoincrement"`
	UserID    int64
	Vendor    string
	Code      string // the vendor's own name of it
	Name      string
	Languages string // ISO 639-1, separated by spaces
	Gender    string
	Accent    string
	Age       string
	Gone      bool // it is no longer in the account
}
