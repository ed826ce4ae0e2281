package schema

import (
	"errors"
	"slices"

	"parley/internal/parley"
)

// Both is a schema in its two forms: the short one, and its own where that says more; nil where it doesn't.
type Both[T comparable] struct {
	Short []T
	Own   parley.JSONSchema
}

// Forms are the ways between the two forms of a schema.
type Forms[T comparable] struct {
	Of    func(short []T) []byte
	Short func(own []byte) []T
	Least int // properties
}

// ToolForms are those of a tool's parameters, ItemForms those of what is found out from a conversation.
var (
	ToolForms = Forms[parley.ToolParam]{func(short []parley.ToolParam) []byte { return Of(short) }, Short, 0}
	ItemForms = Forms[parley.ExtractedItem]{OfItems, ShortItems, 1}
)

// Shown is a schema as JSON, whichever form counts.
func (f Forms[T]) Shown(b Both[T]) parley.JSONSchema {
	if len(b.Own) > 0 {
		return b.Own
	}
	return f.Of(b.Short)
}

// More is a schema where it says more than its short form, else nil.
func (f Forms[T]) More(b Both[T]) parley.JSONSchema {
	if len(b.Own) == 0 || Same(b.Own, f.Of(b.Short)) {
		return nil
	}
	return b.Own
}

// Settle decides which form counts after a change: the one that was changed, the schema itself before its short form.
// The other is made of it. A client that sends back all that it was shown may have changed either. short and own say
// which of them were sent; the schema may be sent as null. The error is why a schema is not taken, and then nothing is settled.
func (f Forms[T]) Settle(old, now Both[T], short, own bool) (Both[T], error) {
	own = own && len(now.Own) > 0
	changed := short && !slices.Equal(now.Short, old.Short)
	switch {
	case len(now.Own) == 0:
		now.Own = nil
		return now, nil
	case !own && changed:
		return Both[T]{Short: now.Short}, nil
	case own && changed && (len(now.Short) > 0 || len(old.Own) == 0) && Same(now.Own, f.Shown(old)):
		return Both[T]{Short: now.Short}, nil
	case !own: // it stays as it was
		return Both[T]{Short: old.Short, Own: now.Own}, nil
	case short && Same(now.Own, f.Of(now.Short)): // they say the same
		return Both[T]{Short: now.Short}, nil
	case Same(now.Own, f.Shown(old)): // nothing changed
		return old, nil
	}
	if err := Check(now.Own); err != nil {
		return now, err
	}
	if len(Names(now.Own)) < f.Least {
		return now, errors.New("must have properties: each is a value that is looked for")
	}
	now.Short = f.Short(now.Own)
	now.Own = f.More(now) // the short form may say it all
	return now, nil
}
