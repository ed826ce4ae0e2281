package parley

import "github.com/uptrace/bun"

// User is an account: everything else belongs to one.
type User struct {
	bun.BaseModel `bun:"users" json:"-"`

	ID           int64  `bun:",pk,autoincrement" json:"id"`
	Name         string `json:"name"`
	Email        string `json:"email"` // lower case, unique
	PasswordHash string `json:"-"`     // argon2id
	Timezone     string `json:"timezone"`
	Plan         string `json:"plan"`
	Balance      Money  `json:"total_balance"` // the cached sum of the user's ledger
	WebhookURL   string `json:"-"`             // the account's own endpoint for balance.low and campaign.completed
	CreatedAt    Time   `json:"-"`
	UpdatedAt    Time   `json:"-"`
	DisabledAt   Time   `json:"-"`
}

// Key is a credential: an API key, or a session made by a login. Only the SHA-256 of its secret is kept.
type Key struct {
	bun.BaseModel `bun:"keys" json:"-"`

	ID         int64   `bun:",pk,autoincrement" json:"id"`
	UserID     int64   `json:"-"`
	Kind       KeyKind `json:"-"`
	Name       string  `json:"name"`
	Hash       []byte  `json:"-"`
	LastUsedAt Time    `json:"last_used_at"`
	ExpiresAt  Time    `json:"-"` // zero: never
	CreatedAt  Time    `json:"created_at"`
}

// KeyKind tells an API key from the sessions.
type KeyKind string

// The kinds of credential.
const (
	APIKey  KeyKind = "api"     // made by hand, lives until deleted
	Session KeyKind = "session" // made by POST /login, expires
	Console KeyKind = "console" // made by signing in to the console, lives in a cookie, expires
)

// Plan is what an account may have at once.
type Plan struct {
	Campaigns     int `json:"campaigns"`
	ParallelCalls int `json:"parallel_calls"`
	Tools         int `json:"tools"`
}
