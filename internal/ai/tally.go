package ai

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Tally records what vendors did for one conversation: where one stood in for another, and how much of each was used.
// It travels in the context of vendor requests and is safe for concurrent use; a nil Tally records nothing.
type Tally struct {
	// Switched is called with each Switch as it happens; it may be nil. It must not block.
	Switched func(Switch)

	to *Tally // nil: it counts itself; see OwnKey

	mu       sync.Mutex
	acting   map[actor]string
	uses     []Use
	switches []Switch
}

// maxSwitches is how many switches a Tally keeps.
const maxSwitches = 100

// actor identifies a part of a conversation and the vendor meant for it.
type actor struct {
	part   Part
	should string
}

// Switch says that another vendor does a part of a conversation from here on.
type Switch struct {
	At       time.Time
	Part     Part
	From, To string // vendors, with the model where there are several
	Why      Kind   // how From failed; "" when it answers again
}

// Use is how much of a vendor was used.
type Use struct {
	Part              Part
	Vendor, Model     string
	Own               bool // with the user's own key
	Usage                  // tokens
	AudioIn, AudioOut int  // tokens of sound, of a model that hears and speaks; they are not among Usage's
	AudioCached       int  // of AudioIn: those that the vendor had in its cache
	Heard             time.Duration
	Spoken            int // characters
}

type tallyKey struct{}

// Tallied is a context whose vendor use is recorded in a tally.
func Tallied(ctx context.Context, t *Tally) context.Context {
	return context.WithValue(ctx, tallyKey{}, t)
}

// TallyOf is the tally of a context, nil for none.
func TallyOf(ctx context.Context) *Tally {
	t, _ := ctx.Value(tallyKey{}).(*Tally)
	return t
}

// Acts notes who does a part that was meant for should, and why should did not; it reports whether that is news.
func (t *Tally) Acts(part Part, should, who string, why Kind) bool {
	if t == nil {
		return who != should
	}
	t.mu.Lock()
	from, ok := t.acting[actor{part, should}]
	if !ok {
		from = should
	}
	if t.acting == nil {
		t.acting = map[actor]string{}
	}
	t.acting[actor{part, should}] = who
	if who == should {
		why = ""
	}
	s := Switch{time.Now(), part, from, who, why}
	if from != who && len(t.switches) < maxSwitches {
		t.switches = append(t.switches, s)
	}
	t.mu.Unlock()
	if from == who {
		return false
	}
	if t.Switched != nil {
		t.Switched(s)
	}
	return true
}

// Switches lists the switches so far.
func (t *Tally) Switches() []Switch {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.switches)
}

// Acting is who last did a part that was meant for should.
func (t *Tally) Acting(part Part, should string) string {
	if t == nil {
		return should
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if who, ok := t.acting[actor{part, should}]; ok {
		return who
	}
	return should
}

// OwnKey is a tally for a vendor that is asked with a user's own key: what it is told counts as that in this one.
func (t *Tally) OwnKey() *Tally {
	if t == nil {
		return nil
	}
	return &Tally{to: t}
}

// Spend adds vendor usage.
func (t *Tally) Spend(u Use) {
	if t == nil {
		return
	}
	if t.to != nil {
		u.Own = true
		t.to.Spend(u)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.uses, func(o Use) bool {
		return o.Part == u.Part && o.Vendor == u.Vendor && o.Model == u.Model && o.Own == u.Own
	})
	if i < 0 {
		t.uses = append(t.uses, u)
		return
	}
	o := &t.uses[i]
	o.Add(u.Usage)
	o.AudioIn += u.AudioIn
	o.AudioOut += u.AudioOut
	o.AudioCached += u.AudioCached
	o.Heard += u.Heard
	o.Spoken += u.Spoken
}

// Uses lists the usage so far, in the order of first use.
func (t *Tally) Uses() []Use {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.uses)
}
