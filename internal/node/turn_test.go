package node

import (
	"testing"
	"time"

	"parley/internal/parley"
)

func TestTurn(t *testing.T) {
	for _, c := range []struct {
		calls, others int // nodes that have calls, and those that don't
		want          time.Duration
	}{{1, 0, time.Second}, {10, 40, time.Second}, {11, 0, 1100 * time.Millisecond}, {30, 5, 3 * time.Second}, {50, 0, 5 * time.Second},
		{200, 0, 5 * time.Second}} {
		n := &Node{}
		for i := range c.calls + c.others {
			roles := parley.RoleAPI
			if i < c.calls {
				roles += "," + parley.RoleCalls
			}
			n.others = append(n.others, parley.Node{Roles: roles})
		}
		if got := n.Turn(); got != c.want {
			t.Errorf("of %d nodes with calls and %d without, each looks every %v, want %v", c.calls, c.others, got, c.want)
		}
	}
	var alone *Node
	if got := alone.Turn(); got != time.Second {
		t.Errorf("alone it looks every %v", got)
	}
}
