package call

import (
	"context"

	"parley/internal/parley"
	"parley/internal/store"
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

var errNoLine = parley.Errorf(parley.Unavailable,
	"Telephony is not running on this server, so the trunk was not contacted. The server's log or 'parley doctor' says why.")

// Unable says what this server can't do with trunks that use a transport, and how that can change; "" where it can do
// everything.
func (d *Center) Unable(transport string) string {
	switch {
	case d == nil || d.Line == nil:
		return "Telephony is not running on this server, so trunks are not used. Its operator turns it on with PARLEY_SIP_LISTEN."
	case transport == "tls" && !d.Line.Secure():
		return "This server does not listen for SIP over TLS: calls go out, and come in only if it registers with the trunk. " +
			"Its operator can set PARLEY_SIP_TLS_LISTEN."
	}
	return ""
}

// CheckTrunk tests whether a trunk can be reached: one of an account's at a time, as often as it may. The error tells its
// owner what is wrong; err is why it was not tested.
func (d *Center) CheckTrunk(ctx context.Context, t *parley.Trunk) (h Health, wrong, err error) {
	if d == nil || d.Line == nil {
		return Health{}, errNoLine, nil
	}
	leave, err := d.Gate.Enter(t.UserID, parley.DefaultPlan, parley.LimitTrunkChecks)
	if err != nil {
		return Health{}, nil, err
	}
	defer leave()
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Meter(ctx, t.UserID, parley.Now(), parley.LimitTrunkCheckRate)
	})
	if err != nil {
		return Health{}, nil, err
	}
	h, wrong = d.Line.Check(ctx, t)
	return h, wrong, nil
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
