package parley

import (
	"slices"
	"strings"

	"github.com/uptrace/bun"
)

// Role is what somebody may do in an account. It is also what something needs: Role.Includes says who may do it.
type Role string

// The roles.
const (
	RoleViewer        Role = "viewer"        // reads, but no secrets
	RoleAgent         Role = "agent"         // also talks with customers: the inbox and live calls
	RoleEditor        Role = "editor"        // also makes and changes assistants, campaigns, numbers and all that belongs to them
	RoleAdministrator Role = "administrator" // all that an owner may but owners, payments and the end of the account
	RoleOwner         Role = "owner"         // everything. The account itself is one; members can be, too
	RoleBilling       Role = "billing"       // beside these: the ledger, payments, prices
	RoleAuditor       Role = "auditor"       // beside these: reads all, with the audit log and the ledger, but no secrets; changes nothing
)

// What some things need, which is no role that anybody has.
const (
	NeedSession Role = "any"     // to be somebody
	NeedLedger  Role = "ledger"  // to read where the money went
	NeedSecrets Role = "secrets" // to read the account's own secrets
)

// Roles are all roles: first those of which each may do what the ones before it may, then those beside them.
var Roles = []Role{RoleViewer, RoleAgent, RoleEditor, RoleAdministrator, RoleOwner, RoleBilling, RoleAuditor}

// includes are what each role may do. RoleBilling stands for payments there, RoleAuditor for the audit log.
var includes = map[Role][]Role{
	RoleViewer:        {NeedSession, RoleViewer},
	RoleAgent:         {NeedSession, RoleViewer, RoleAgent},
	RoleEditor:        {NeedSession, RoleViewer, RoleAgent, RoleEditor},
	RoleAdministrator: {NeedSession, RoleViewer, RoleAgent, RoleEditor, RoleAdministrator, RoleAuditor, NeedLedger, NeedSecrets},
	RoleOwner: {NeedSession, RoleViewer, RoleAgent, RoleEditor, RoleAdministrator, RoleAuditor, NeedLedger, NeedSecrets, RoleBilling,
		RoleOwner},
	RoleBilling: {NeedSession, RoleBilling, NeedLedger},
	RoleAuditor: {NeedSession, RoleViewer, RoleAuditor, NeedLedger},
}

// Includes says whether a role may do what needs least. A role that is unknown, on either side, may nothing.
func (r Role) Includes(least Role) bool { return slices.Contains(includes[r], least) }

// Reads says whether a role may read what needs least. An auditor reads what others change, but no secrets.
func (r Role) Reads(least Role) bool {
	return r.Includes(least) || r == RoleAuditor && RoleAdministrator.Includes(least) && least != NeedSecrets
}

// Covers says whether a role may do all that another may.
func (r Role) Covers(other Role) bool {
	return includes[other] != nil && !slices.ContainsFunc(includes[other], func(need Role) bool { return !r.Includes(need) }) &&
		(other != RoleAuditor || r == RoleAuditor || r.Includes(RoleAdministrator))
}

// Needed is what to ask for who lacks it.
func (r Role) Needed() string {
	switch r {
	case NeedLedger:
		return "billing, auditor or administrator"
	case NeedSecrets:
		return string(RoleAdministrator)
	}
	return string(r)
}

// Least is what two roles both may; one that is unknown is the least.
func Least(a, b Role) Role {
	switch {
	case includes[a] == nil || b.Covers(a):
		return a
	case includes[b] == nil || a.Covers(b):
		return b
	case a.Includes(RoleViewer) && b.Includes(RoleViewer):
		return RoleViewer
	}
	return "none"
}

// MinRoles makes a table of routes ("GET /calls") and the least roles that they need, from a list of routes for each
// role, one to a line.
func MinRoles(lists map[Role]string) map[string]Role {
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

	ID     int64  `bun:",pk,autoincrement" json:"id"`
	UserID int64  `json:"-"`
	Name   string `json:"name"`
	Email  string `json:"email"` // lower case; once it is proven, unique over users and members
	// when they have shown that it is theirs; 0: not yet
	EmailProvenAt Time   `json:"email_confirmed_at" doc:"When they have shown, by a link that was sent there, that the address is theirs; null: not yet."`
	PasswordHash  string `json:"-"`
	Role          Role   `json:"role"`
	Language      string `json:"-"` // not used any more; the table must have one
	Timezone      string `json:"timezone"`
	DisabledAt    Time   `json:"disabled_at"` // zero: may sign in
	LastSeenAt    Time   `json:"last_seen_at"`
	TwoFactor     bool   `bun:",scanonly" json:"two_factor" doc:"Signing in takes a code too."`
	CreatedAt     Time   `json:"created_at"`
	UpdatedAt     Time   `json:"updated_at"`
}

// MaxMembers is how many members and open invitations an account may have.
const MaxMembers = 200

// MemberChange is what those who manage an account may change of a member.
type MemberChange struct {
	Role     Role `json:"role" required:"true" enum:"owner,administrator,editor,agent,viewer,billing,auditor"`
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
	MailHash  []byte `json:"-"` // of the token that was sent to the address; nil: none was
	ExpiresAt Time   `json:"expires_at"`
	CreatedAt Time   `json:"created_at"`
}

// InvitationInput is what an invitation is made of.
type InvitationInput struct {
	Email string `json:"email" required:"true" maxLength:"255" format:"email"`
	Name  string `json:"name" required:"true" maxLength:"255"`
	Role  Role   `json:"role" required:"true" enum:"owner,administrator,editor,agent,viewer,billing,auditor"`
}
