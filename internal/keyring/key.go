package keyring

import (
	"cmp"
	"context"
	"log/slog"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"parley/internal/ai"
	"parley/internal/parley"
	"parley/internal/store"
)

// Vendor is a vendor that takes a key, as the server or a user has it.
type Vendor struct {
	Code    string            `json:"code"`
	Name    string            `json:"name"`
	UsedFor []string          `json:"used_for" enum:"thinking,speaking,listening,realtime" doc:"What it can do; realtime is a speech-to-speech model."`
	Models  []string          `json:"models" doc:"Its language models."`
	KeyPage string            `json:"key_page" doc:"Where to get a key."`
	ByURL   bool              `json:"by_url" doc:"True for a server of the operator's own: it needs a base URL, and a key only if it asks for one."`
	BaseURL string            `json:"-"`
	Host    *string           `json:"host" doc:"The host of the API; null for the provider's own."`
	Source  string            `json:"source" enum:"own,server,environment,entered,none" doc:"Whose key is used. Of an account: its own, the server's, or none. Of the server: from the environment, which takes precedence, or entered, or none."`
	Setting *string           `json:"setting" doc:"Only for the server: the environment variable that sets the key."`
	Key     *parley.VendorKey `json:"key" doc:"The account's own key, or the server's, without the key itself; null for none."`
}

// The sources of keys.
const (
	Own         = "own"
	Server      = "server"
	Environment = "environment"
	Entered     = "entered"
	None        = "none"
)

const notThere = "Provider not found."

// List lists the vendors that take a key, as a user has them; 0 stands for the server.
func (r *Ring) List(userID int64) []Vendor {
	list := []Vendor{}
	for _, v := range r.vendors {
		if v.With != nil && (userID == 0 || !v.ByURL) {
			list = append(list, *r.shown(userID, v))
		}
	}
	return list
}

// Get is one of the list.
func (r *Ring) Get(userID int64, code string) (*Vendor, error) {
	v, err := r.vendor(userID, code)
	if err != nil {
		return nil, err
	}
	return r.shown(userID, v), nil
}

// vendor returns a vendor that takes a key of the user, or (0) of the server, as the settings declare it. Only the
// operator names a server by its URL.
func (r *Ring) vendor(userID int64, code string) (*ai.Vendor, error) {
	for _, v := range r.vendors {
		if v.Code == code && v.With != nil && (userID == 0 || !v.ByURL) {
			return v, nil
		}
	}
	return nil, parley.Errorf(parley.NotFound, notThere)
}

func (r *Ring) shown(userID int64, declared *ai.Vendor) *Vendor {
	server := r.as(0, declared)
	v := server
	if userID != 0 {
		v = r.as(userID, declared)
	}
	h, _ := r.known(userID)
	any := declared.With(ai.Key{Secret: "any", BaseURL: anyURL(declared), Own: userID != 0, Models: []string{"any"}})
	s := &Vendor{Code: v.Code, Name: v.Name, KeyPage: v.KeyPage, ByURL: v.ByURL, Source: None, UsedFor: []string{}, Models: []string{}}
	for _, one := range []struct {
		does bool
		what string
	}{
		{any.Thinks(parley.LLM), "thinking"}, {len(any.Speakers) > 0, "speaking"}, {len(any.Listeners) > 0, "listening"},
		{any.Thinks(parley.Multimodal), "realtime"},
	} {
		if one.does {
			s.UsedFor = append(s.UsedFor, one.what)
		}
	}
	if able(v) {
		any = v
	}
	if any.Models != nil && (any == v || !v.ByURL) {
		for _, m := range any.Models() {
			if m.Kind == parley.LLM {
				s.Models = append(s.Models, m.Code)
			}
		}
	}
	if u, err := url.Parse(v.Key().BaseURL); err == nil && u.Host != "" {
		host := u.Scheme + "://" + u.Host // without what may be secret in it
		s.Host = &host
		if u.User == nil && userID == 0 {
			s.BaseURL = u.String()
		}
	}
	k, entered := h.keys[v.Code]
	switch {
	case userID != 0 && entered:
		s.Source, s.Key = Own, &k
	case userID != 0 && able(server):
		s.Source = Server
	case userID == 0 && able(declared):
		s.Source = Environment
		r.mu.Lock()
		if c, ok := r.checked[v.Code]; ok || configured(declared) {
			s.Key = c.key()
		}
		r.mu.Unlock()
	}
	if userID == 0 {
		name := settingOf(declared)
		s.Setting = &name
		if entered && !configured(declared) {
			s.Source, s.Key = Entered, &k
		}
	}
	return s
}

// as is a vendor as the server or a user has it.
func (r *Ring) as(userID int64, declared *ai.Vendor) *ai.Vendor {
	h := r.of(userID)
	for h != nil {
		for _, v := range h.vendors {
			if v.Code == declared.Code {
				return v
			}
		}
		h = h.over
	}
	return declared
}

// able reports whether a vendor can be used for anything.
func able(v *ai.Vendor) bool {
	for _, s := range v.Speakers {
		if s.Configured() {
			return true
		}
	}
	for _, l := range v.Listeners {
		if l.Configured() {
			return true
		}
	}
	return v.Models != nil && len(v.Models()) > 0
}

// anyURL is a base URL for a vendor that has none of its own.
func anyURL(v *ai.Vendor) string {
	if v.ByURL {
		return "http://localhost/v1"
	}
	return ""
}

// configured reports whether the server's settings name the vendor's key, or its URL where that is what counts.
func configured(v *ai.Vendor) bool {
	k := v.Key()
	return k.Secret != "" || v.ByURL && k.BaseURL != ""
}

// settingOf is the environment variable of a vendor's key.
func settingOf(v *ai.Vendor) string {
	field := "APIKey"
	if v.ByURL {
		field = "BaseURL"
	}
	f, _ := reflect.TypeOf(v.Settings).Elem().FieldByName(field)
	return "PARLEY_" + strings.ToUpper(strings.ReplaceAll(f.Tag.Get("name"), "-", "_"))
}

// candidate is a vendor with a key that is to be tried for the server or a user.
func (r *Ring) candidate(userID int64, code string, k *ai.Key) (*ai.Vendor, error) {
	declared, err := r.vendor(userID, code)
	if err != nil {
		return nil, err
	}
	var wrong parley.Fields
	k.Secret = strings.TrimSpace(k.Secret)
	const longest = 1000
	switch {
	case k.Secret == "" && declared.ByURL:
	case k.Secret == "":
		wrong.Add("key", "is required.")
	case len(k.Secret) > longest || strings.ContainsFunc(k.Secret, func(c rune) bool { return c <= ' ' || c > '~' }):
		wrong.AddText("key", "This is not a key: it has spaces, line breaks or letters that keys don't have, or is too long.")
	}
	k.BaseURL = strings.TrimSpace(k.BaseURL)
	if k.BaseURL == "" && declared.ByURL && !configured(declared) {
		wrong.AddText("base_url", "Enter the base URL of the server, such as http://127.0.0.1:11434/v1.")
	}
	if u, err := url.Parse(k.BaseURL); k.BaseURL != "" && (err != nil || u.Host == "" ||
		u.Scheme != "http" && u.Scheme != "https" || len(k.BaseURL) > longest) {
		wrong.AddText("base_url", "The base URL must begin with http:// or https://.")
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if k.Secret != "" && userID == 0 {
		r.hide(userID, k.Secret)
	}
	if k.Own = userID != 0; k.Own {
		k.BaseURL = ""
		return r.as(0, declared).With(*k), nil
	}
	if configured(declared) {
		return nil, parley.Errorf(parley.Conflict, "The key of %s is set by %s in the server's environment, which takes precedence. "+
			"Remove it there to enter one here.",
			declared.Name, settingOf(declared))
	}
	if declared.Key().BaseURL != "" {
		k.BaseURL = ""
	}
	return declared.With(*k), nil
}

// Set tests a vendor's key and stores it, for a user or (0) for the server. A key that the vendor refuses is not stored.
func (r *Ring) Set(ctx context.Context, userID int64, code string, k ai.Key) (*Vendor, error) {
	v, err := r.candidate(userID, code, &k)
	if err != nil {
		return nil, err
	}
	found := check(ctx, v, k.Secret)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if found.state == parley.KeyRefused {
		var wrong parley.Fields
		wrong.AddText("key", found.reason)
		return nil, wrong.Err()
	}
	if userID != 0 { // not before: whoever enters it chooses what the log is to lack
		r.hide(userID, k.Secret)
	}
	if v.ByURL {
		if v, err = r.withListed(ctx, code, v, &k); err != nil {
			return nil, err
		}
		if len(k.Models) == 0 {
			var wrong parley.Fields
			wrong.AddText("base_url", cmp.Or(found.reason, "The server lists no model that can hold a conversation")+".")
			return nil, wrong.Err()
		}
	}
	if o, err := v.Open(); err != nil {
		var wrong parley.Fields
		wrong.AddText("base_url", plain(err.Error(), k.Secret))
		return nil, wrong.Err()
	} else if o.Close != nil {
		o.Close()
	}
	voices, listed := r.listVoices(ctx, userID, v, k.Secret)
	row := found.key()
	row.Vendor, row.BaseURL, row.Models = code, k.BaseURL, strings.Join(k.Models, "\n")
	err = r.change(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.SaveVendorKey(ctx, userID, row, k.Secret); err != nil {
			return err
		}
		if v.ByURL {
			return tx.KeepModels(ctx, modelsOf(v))
		}
		if !listed {
			return nil
		}
		return tx.KeepAccountVoices(ctx, userID, code, voices)
	})
	if err != nil {
		return nil, err
	}
	slog.InfoContext(ctx, "a provider's key was entered", "provider", code, "user", userID, "state", found.state)
	return r.Get(userID, code)
}

// withListed returns the vendor with the models that its server lists now, which it also puts into k. A model whose code
// another vendor has stays the other's: codes are what assistants' models are known by.
func (r *Ring) withListed(ctx context.Context, code string, v *ai.Vendor, k *ai.Key) (*ai.Vendor, error) {
	declared, err := r.vendor(0, code)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	r.mu.Lock()
	known := r.models
	r.mu.Unlock()
	k.Models = slices.DeleteFunc(v.Listed(ctx), func(code string) bool {
		return clean(code) != code || strings.Contains(code, "\n") || slices.ContainsFunc(known, func(m parley.Model) bool {
			return m.Kind == parley.LLM && m.Code == code && m.Provider != v.Code
		})
	})
	return declared.With(*k), context.Cause(ctx)
}

// modelsOf returns a vendor's models with its code.
func modelsOf(v *ai.Vendor) []parley.Model {
	list := v.Models()
	for i := range list {
		list[i].Provider = v.Code
	}
	return list
}

// Remove removes a vendor's key of a user, or (0) of the server.
func (r *Ring) Remove(ctx context.Context, userID int64, code string) error {
	if _, err := r.vendor(userID, code); err != nil {
		return err
	}
	err := r.change(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteVendorKey(ctx, userID, code) })
	if err == nil {
		slog.InfoContext(ctx, "a provider's key was removed", "provider", code, "user", userID)
	}
	return err
}

// change writes, and learns what was written.
func (r *Ring) change(ctx context.Context, fn func(context.Context, *store.Tx) error) error {
	if err := r.db.Write(ctx, fn); err != nil {
		return err
	}
	return r.load(context.WithoutCancel(ctx))
}
