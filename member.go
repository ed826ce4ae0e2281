package parley

import (
	"slices"
	"strings"

	"github.com/uptrace/bun"
)

// Role is what somebody may do in an account. Each role may do what those before it in Roles may.
type Role string

// The roles.
const (
	RoleViewer Role = "viewer" // reads, but no secrets
	RoleAgent  Role = "agent"  // also talks with customers: the inbox and live calls
	RoleEditor Role = "editor" // also makes and changes assistants, campaigns, numbers and all that belongs to them
	RoleOwner  Role = "owner"  // everything: people, money, keys, the account. It is the account itself, no member
)

// Roles are all roles, the least first.
var Roles = []Role{RoleViewer, RoleAgent, RoleEditor, RoleOwner}

// Includes says whether a role may do what needs least. A role that is unknown, on either side, may nothing.
func (r Role) Includes(least Role) bool {
	have, need := slices.Index(Roles, r), slices.Index(Roles, least)
	return need >= 0 && have >= need
}

// Least is the lesser of two roles; one that is unknown is the least.
func Least(a, b Role) Role {
	if slices.Index(Roles, a) < slices.Index(Roles, b) {
		return a
	}
	return b
}

// LeastRoles makes a table of routes ("GET /calls") and the least roles that they need, from a list of routes for each
// role, one to a line.
func LeastRoles(lists map[Role]string) map[string]Role {
	all := map[string]Role{}
	for role, list := range lists {
		for line := range strings.Lines(list) {
			if line = strings.TrimSpace(line); line != "" {
				all[line] = role
			}
		}
	}
	return all
}

// Member is a person who works in another's account.
type Member struct {
	bun.BaseModel `bun:"members" json:"-"`

	ID           int64  `bun:",pk,autoincrement" json:"id"`
	UserID       int64  `json:"-"`
	Name         string `json:"name"`
	Email        string `json:"email"` // lower case, unique over users and members
	PasswordHash string `json:"-"`
	Role         Role   `json:"role"`
	Language     string `json:"-"` // not used any more; the table must have one
	Timezone     string `json:"timezone"`
	DisabledAt   Time   `json:"disabled_at"` // zero: may sign in
	LastSeenAt   Time   `json:"last_seen_at"`
	TwoFactor    bool   `bun:",scanonly" json:"two_factor" doc:"Signing in takes a code too."`
	CreatedAt    Time   `json:"created_at"`
	UpdatedAt    Time   `json:"updated_at"`
}

// MostMembers is how many members and open invitations an account may have.
const MostMembers = 200

// MemberChange is what an account's owner may change of a member.
type MemberChange struct {
	Role     Role `json:"role" required:"true" enum:"editor,agent,viewer"`
	Disabled bool `json:"disabled" doc:"A disabled member's sessions end at once, and their API keys are refused."`
}

// Invitation lets somebody become a member, once, until it expires. Only the SHA-256 of its secret is kept.
type Invitation struct {
	bun.BaseModel `bun:"invitations" json:"-"`

	ID        int64  `bun:",pk,autoincrement" json:"id"`
	UserID    int64  `json:"-"`
	Email     string `json:"email"`
	Name      string `json:"name"`
	Role      Role   `json:"role"`
	Hash      []byte `json:"-"`
	ExpiresAt Time   `json:"expires_at"`
	CreatedAt Time   `json:"created_at"`
}

// InvitationInput is what an invitation is made of.
type InvitationInput struct {
	Email string `json:"email" required:"true" maxLength:"255" format:"email"`
	Name  string `json:"name" required:"true" maxLength:"255"`
	Role  Role   `json:"role" required:"true" enum:"editor,agent,viewer"`
}
