package parley

import "github.com/uptrace/bun"

// SavedFilter is a filter of a list under a name of its user's.
type SavedFilter struct {
	bun.BaseModel `bun:"saved_filters" json:"-"`

	ID        int64  `bun:",pk,autoincrement" json:"id" readOnly:"true"`
	UserID    int64  `json:"-"`
	Page      string `json:"page" required:"true" enum:"calls,analytics"`
	Name      string `json:"name" required:"true" maxLength:"100"`
	Query     string `json:"query" required:"true" maxLength:"2000" doc:"The filters, as in the address of the console's page."`
	CreatedAt Time   `json:"created_at" readOnly:"true"`
}

// MaxFilters is how many an account may save.
const MaxFilters = 50
