package ai

import (
	"reflect"

	"parley/internal/parley"
)

// Key is a vendor's key.
type Key struct {
	Secret  string
	BaseURL string // of the vendor's API; "" leaves it as the settings have it
	// Own says that it is a user's own: abilities that the settings give a server and a key of their own are left out.
	Own bool
	// Models are the models that the server lists, for a vendor that is known by its URL.
	Models []string
}

// The names of the fields that every vendor's settings have for its key.
const (
	keyField  = "APIKey"
	baseField = "BaseURL"
)

// Rekeyed is a Vendor's With, for settings that have their key in APIKey and its server in BaseURL.
func Rekeyed[S any](s *S, declare func(*S) *Vendor) func(Key) *Vendor {
	return func(k Key) *Vendor {
		other := *s
		v := reflect.ValueOf(&other).Elem()
		v.FieldByName(keyField).SetString(k.Secret)
		if k.BaseURL != "" {
			v.FieldByName(baseField).SetString(k.BaseURL)
		}
		return declare(&other)
	}
}

// Key is what the vendor's settings have for a key.
func (v *Vendor) Key() (k Key) {
	if v.With == nil {
		return k
	}
	s := reflect.ValueOf(v.Settings).Elem()
	return Key{Secret: s.FieldByName(keyField).String(), BaseURL: s.FieldByName(baseField).String()}
}

// Thinks reports whether the vendor has models of a kind.
func (v *Vendor) Thinks(kind parley.ModelKind) bool {
	if v.Models == nil {
		return false
	}
	for _, m := range v.Models() {
		if m.Kind == kind {
			return true
		}
	}
	return false
}
