package parley

import (
	"slices"
	"strings"

	"github.com/uptrace/bun"
)

// Node is a process of the program among those that share a database.
type Node struct {
	bun.BaseModel `bun:"nodes,alias:n"`

	ID        string `bun:",pk"`
	Name      string // of its machine
	Roles     string // Roles, separated by commas
	Version   string
	Live      int64 // calls that it has
	Leaving   bool  // it takes nothing new
	StartedAt Time  // by the database's clock
	SeenAt    Time  // its last sign of life, likewise
}

// The roles that a node can have.
const (
	RoleAPI   = "api"   // it serves the API, the console, the widget and webhooks
	RoleCalls = "calls" // it takes, makes and holds calls, and is registered with trunks
)

// Does says whether it has a role and takes on something new.
func (n *Node) Does(role string) bool {
	return !n.Leaving && slices.Contains(strings.Split(n.Roles, ","), role)
}

// TrunkHolder says which node is registered with a trunk that wants it.
type TrunkHolder struct {
	TrunkID    int64
	Node       string // "": none yet
	Registered bool
}
