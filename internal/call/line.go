package call

import (
	"context"

	"parley"
)

// Line is this server's telephone line, as seen by code that manages trunks.
type Line interface {
	// Check tests whether a trunk can be reached.
	Check(ctx context.Context, t *parley.Trunk) (Health, error)
	// Registered reports whether we are registered with a trunk.
	Registered(id int64) bool
	// Secure reports whether trunks can connect to us over TLS.
	Secure() bool
}

// Health is the state of a trunk.
type Health struct {
	Registered bool
	OptionsMS  int64                 // how long it took to answer
	Findings   []parley.TrunkFinding // of one that has answered
}

var errNoLine = parley.Errorf(parley.Unavailable, "Telephony is not running on this server, so the trunk was not contacted. The server's log or 'parley doctor' says why.")

// Unable says what this server can't do with trunks that use a transport, and how that can change; "" where it can do
// everything.
func (d *Center) Unable(transport string) string {
	switch {
	case d == nil || d.Line == nil:
		return "Telephony is not running on this server, so trunks are not used. Its operator turns it on with PARLEY_SIP_LISTEN."
	case transport == "tls" && !d.Line.Secure():
		return "This server does not listen for SIP over TLS: calls go out, and come in only if it registers with the trunk. Its operator can set PARLEY_SIP_TLS_LISTEN."
	}
	return ""
}

// CheckTrunk tests whether a trunk can be reached. The error tells its owner what is wrong.
func (d *Center) CheckTrunk(ctx context.Context, t *parley.Trunk) (Health, error) {
	if d == nil || d.Line == nil {
		return Health{}, errNoLine
	}
	return d.Line.Check(ctx, t)
}

// Registered fills in which of the given trunks we are registered with.
func (d *Center) Registered(list ...*parley.Trunk) {
	if d == nil || d.Line == nil {
		return
	}
	for _, t := range list {
		t.Registered = t.Register && d.Line.Registered(t.ID)
	}
}
