package parley

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Kind says what sort of failure an Error is; the API turns it into a status.
type Kind int

// The kinds, named as HTTP names them.
const (
	Internal        Kind = iota // 500
	Refused                     // 400
	Unauthenticated             // 401
	Payment                     // 402
	Forbidden                   // 403
	NotFound                    // 404
	Conflict                    // 409
	Stale                       // 412
	TooLarge                    // 413
	Unsupported                 // 415
	Invalid                     // 422
	TooMany                     // 429
	Upstream                    // 502
	Unavailable                 // 503
)

// Error is a failure that its causer may read: the message is meant for a person and holds no internals.
type Error struct {
	Kind    Kind
	Message string
	Code    string // machine-readable, where the contract has one (WhatsApp)
	Detail  string // more than the message may say, where the contract has its words (429)
	Fields  Fields // every failing field, when Kind is Invalid
}

func (e *Error) Error() string { return e.Message }

// Errorf makes an Error of a kind.
func Errorf(k Kind, format string, a ...any) *Error {
	return &Error{Kind: k, Message: fmt.Sprintf(format, a...)}
}

// Undone marks the error of a request that had begun, and of which certainly nothing stands: it may be made again as
// if it had never been.
type Undone struct{ Err error }

func (u *Undone) Error() string { return u.Err.Error() }

func (u *Undone) Unwrap() error { return u.Err }

// Field is one failing field of a request with what is wrong with it.
type Field struct {
	Name     string // dotted for nested ones: links.0.link
	Messages []string
}

// Fields are the failing fields of a request in the order in which the request's shape names them.
type Fields []Field

// Add notes that a field fails. The message is what follows "The <name> field ".
func (f *Fields) Add(name, format string, a ...any) {
	f.AddText(name, "The "+name+" field "+fmt.Sprintf(format, a...))
}

// AddText notes that a field fails, with a whole sentence.
func (f *Fields) AddText(name, message string) {
	for i := range *f {
		if (*f)[i].Name == name {
			(*f)[i].Messages = append((*f)[i].Messages, message)
			return
		}
	}
	*f = append(*f, Field{name, []string{message}})
}

// Explained is what is wrong with fields, and beside it why the numbers in them could not be read.
func (f Fields) Explained(why Fields) Fields {
	if len(why) == 0 {
		return f
	}
	f = slices.Clone(f)
	for _, e := range why {
		for i := range f {
			if f[i].Name == e.Name {
				f[i].Messages = slices.Concat(f[i].Messages, e.Messages)
			}
		}
	}
	return f
}

// Has says whether a field, or a field inside it, has failed already.
func (f Fields) Has(name string) bool {
	for _, e := range f {
		if e.Name == name || len(e.Name) > len(name) && e.Name[:len(name)] == name && e.Name[len(name)] == '.' {
			return true
		}
	}
	return false
}

// Err is the validation error of these fields, nil when there are none.
func (f Fields) Err() error {
	if len(f) == 0 {
		return nil
	}
	n := -1
	for _, e := range f {
		n += len(e.Messages)
	}
	msg := f[0].Messages[0]
	switch {
	case n == 1:
		msg += " (and 1 more error)"
	case n > 1:
		msg += fmt.Sprintf(" (and %d more errors)", n)
	}
	return &Error{Kind: Invalid, Message: msg, Fields: f}
}

// MarshalJSON writes {"field":["message"]} in order.
func (f Fields) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, e := range f {
		if i > 0 {
			b.WriteByte(',')
		}
		k, err := json.Marshal(e.Name)
		if err != nil {
			return nil, err
		}
		v, err := json.Marshal(e.Messages)
		if err != nil {
			return nil, err
		}
		b.Write(k)
		b.WriteByte(':')
		b.Write(v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
