package parley

import (
	"slices"
	"strings"

	"github.com/uptrace/bun"
)

// User is an account: everything else belongs to one.
type User struct {
	bun.BaseModel `bun:"users" json:"-"`

	ID    int64  `bun:",pk,autoincrement" json:"id"`
	Name  string `json:"name"`
	Email string `json:"email"` // lower case, unique
	// when they have shown that it is theirs; 0: not yet
	EmailProvenAt Time   `json:"-"`
	PasswordHash  string `json:"-"` // argon2id
	Timezone      string `json:"timezone"`
	ZoneAssumed   bool   `json:"-"`       // nobody has chosen Timezone
	Country       string `json:"country"` // ISO 3166-1 alpha-2: where national telephone numbers are read; "": nowhere
	Plan          string `json:"plan"`
	Balance       Money  `json:"total_balance"` // the cached sum of the user's ledger
	// when the account made itself; 0 once it has had a credit, and for those that the operator made
	SignedUpAt Time `json:"-"`
	// may set what all users share, such as the server's keys of vendors
	Operator bool `json:"-"`
	// the account's own endpoint: balance.low, public_budget.low, campaign.completed, alerts
	WebhookURL string `json:"-"`
	CreatedAt  Time   `json:"-"`
	UpdatedAt  Time   `json:"-"`
	DisabledAt Time   `json:"-"`
}

// Profile is what a user may change of their own account.
type Profile struct {
	Name            string `json:"name" required:"true" maxLength:"255"`
	Email           string `json:"email" required:"true" maxLength:"255" format:"email"`
	Timezone        string `json:"timezone" required:"true" maxLength:"64" format:"timezone" doc:"IANA time zone."`
	Country         string `json:"country" maxLength:"2" format:"country" doc:"Of the account: ISO 3166-1 alpha-2, such as DE. National telephone numbers are read as they are dialled there; empty: all numbers need their country code. Owners and administrators can change it."`
	CurrentPassword string `json:"current_password" maxLength:"1024" trim:"off" doc:"The present password: required to change the email."`
}

// Key is a credential: an API key, or a session made by a login. Only the SHA-256 of its secret is kept.
type Key struct {
	bun.BaseModel `bun:"keys" json:"-"`

	ID         int64   `bun:",pk,autoincrement" json:"id"`
	UserID     int64   `json:"-"`
	Kind       KeyKind `json:"-"`
	Name       string  `json:"name"`
	MemberID   int64   `json:"member_id,omitempty" doc:"The member whose key it is; absent for the account owner's."`
	Scope      Role    `json:"scope,omitempty" enum:"owner,administrator,editor,agent,viewer,billing,auditor" doc:"The role that the key is limited to; by default its holder's."`
	Hash       []byte  `json:"-"`
	LastUsedAt Time    `json:"last_used_at"`
	ExpiresAt  Time    `json:"-"` // zero: never
	CreatedAt  Time    `json:"created_at"`
	GrantID    int64   `json:"-"` // of an access token: the grant that it is of
}

// KeyKind tells an API key from the sessions.
type KeyKind string

// The kinds of credential.
const (
	APIKey  KeyKind = "api"     // made by hand, lives until deleted
	Session KeyKind = "session" // made by POST /login, expires
	Console KeyKind = "console" // made by signing in to the console, lives in a cookie, expires
	// made when a password was right and a code is needed too: it lives in a cookie, for minutes, and lets one enter the code
	HalfSession KeyKind = "half"
	// made by an account's owner for a member, who chooses a new password with it, once
	ResetLink KeyKind = "reset"
	// sent to an address, shows that it is its holder's; its name is the address
	ConfirmLink KeyKind = "confirm"
	// made for a draft, lets somebody without an account talk to it, expires after a day; its name is the assistant's id
	ShareLink KeyKind = "share"
	// made when somebody lets an app into their account by OAuth, lives for minutes, and becomes a grant when the app exchanges it
	OAuthCode KeyKind = "oauth_code"
	// what an app was granted: its token is the app's refresh token, and another one after each use
	OAuthGrant KeyKind = "oauth"
	// made of a grant, for /mcp alone, expires after an hour
	OAuthAccess KeyKind = "oauth_access"
)

// How many sessions of a kind an account's owner has, and a member; their oldest ends for another.
const (
	MaxSessions       = 1000
	MaxMemberSessions = 100
)

// Plan is what an account may have at once, and what it may begin in a day.
type Plan struct {
	Campaigns, ParallelCalls, Tools, Assistants int
	Knowledgebases, Documents, DocumentMB       int // DocumentMB: of their files together
	Numbers                                     int // rented ones and caller ids
	Trunks, Leads, Blacklist, APIKeys, Tests    int
	StoredMB                                    int // of its assistants, their versions, tests and tools together
	Folders, Labels                             int // of assistants

	// By the day (UTC).
	DocumentReadings, Conversations, TestConversations, TestMessages, TestCalls, WebhookTests int
	TestMinutes, ToolTests, WebhookResends                                                    int

	// At the same time.
	RequestsTogether, Streams int
}

// Limits are a plan's limits by their names in the prices file.
func (p *Plan) Limits() map[string]*int {
	return map[string]*int{"campaigns": &p.Campaigns, "parallel_calls": &p.ParallelCalls, "tools": &p.Tools,
		"assistants":     &p.Assistants,
		"knowledgebases": &p.Knowledgebases, "documents": &p.Documents, "document_mb": &p.DocumentMB,
		"numbers": &p.Numbers, "trunks": &p.Trunks, "folders": &p.Folders, "labels": &p.Labels,
		"leads": &p.Leads, "blacklist": &p.Blacklist, "api_keys": &p.APIKeys, "document_readings": &p.DocumentReadings,
		"conversations": &p.Conversations, "test_conversations": &p.TestConversations, "test_messages": &p.TestMessages,
		"tests": &p.Tests, "stored_mb": &p.StoredMB, "test_calls": &p.TestCalls, "webhook_tests": &p.WebhookTests,
		"test_minutes": &p.TestMinutes, "tool_tests": &p.ToolTests, "webhook_resends": &p.WebhookResends,
		"requests_together": &p.RequestsTogether, "streams": &p.Streams}
}

// The plans that every server has.
const (
	DefaultPlan = "default"
	TrialPlan   = "trial" // of accounts that made themselves, until their first credit
)

// Among says whether a list of plans and accounts (e-mail addresses) names the user; "all" names everybody.
func (u *User) Among(list []string) bool {
	return slices.ContainsFunc(list, func(m string) bool { return m == "all" || m == u.Plan || strings.EqualFold(m, u.Email) })
}
