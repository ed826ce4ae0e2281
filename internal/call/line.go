package call

import (
	"context"

	"parley"
)

// Line is the telephone line of this server, as those see it who look after trunks.
type Line interface {
	// Check asks a trunk whether it is there.
	Check(ctx context.Context, t *parley.Trunk) (Health, error)
	// Registered says whether we are registered with a trunk.
	Registered(id int64) bool
}

// Health is how a trunk is.
type Health struct {
	Registered bool
	OptionsMS  int64 // how long it took to answer
}

var errNoLine = parley.Errorf(parley.Unavailable, "Telephony is not running on this server, so the trunk was not contacted. The server's log or 'parley doctor' says why.")

// CheckTrunk asks a trunk whether it is there. The error says what is wrong with it, in words for its owner.
func (d *Center) CheckTrunk(ctx context.Context, t *parley.Trunk) (Health, error) {
	if d == nil || d.Line == nil {
		return Health{}, errNoLine
	}
	return d.Line.Check(ctx, t)
}

// Registered fills in which of some trunks we are registered with.
func (d *Center) Registered(list ...*parley.Trunk) {
	if d == nil || d.Line == nil {
		return
	}
	for _, t := range list {
		t.Registered = t.Register && d.Line.Registered(t.ID)
	}
}
