package keyring

import (
	"bytes"
	"log/slog"
	"slices"

	"parley/internal/ai"
	"parley/internal/catalog"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/store"
)

// maxVendorSets are kept; those of users who come back are made again.
const maxVendorSets = 1000

// of is a user's vendor set: the server's for 0, and for users who never had own keys.
func (r *Ring) of(userID int64) *vendorSet {
	h, former := r.known(0)
	server := former
	if former.revision != h.revision {
		server = r.keep(0, r.entered(h, former))
	}
	if userID == 0 {
		return server
	}
	h, former = r.known(userID)
	if h.revision == 0 || former != nil && former.revision == h.revision && former.over == server {
		if former == nil {
			return server
		}
		return former
	}
	return r.keep(userID, r.personal(server, h, former))
}

func (r *Ring) known(userID int64) (holder, *vendorSet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holders[userID], r.vendorSets[userID]
}

// keep keeps a vendor set that was made, unless another goroutine was faster.
func (r *Ring) keep(userID int64, h *vendorSet) *vendorSet {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.vendorSets[userID]; o != nil && o.revision == h.revision && o.over == h.over {
		return o
	}
	if len(r.vendorSets) > maxVendorSets {
		r.vendorSets = map[int64]*vendorSet{0: r.vendorSets[0]}
	}
	r.vendorSets[userID] = h
	return h
}

// entered makes the server's vendor set, with what was entered for it.
func (r *Ring) entered(h holder, former *vendorSet) *vendorSet {
	now := &vendorSet{revision: h.revision, made: map[string]made{}}
	for _, v := range r.vendors {
		if k, ok := h.keys[v.Code]; ok && !configured(v) {
			v = r.with(now, former, v, &k, ai.Key{BaseURL: k.BaseURL, Models: k.ModelList()})
		}
		now.vendors = append(now.vendors, v)
	}
	var err error
	if now.providers, err = former.providers.Renew(now.vendors); err != nil {
		slog.Error("the server's entered keys of providers can't be used", "error", err)
		now.vendors, now.providers = r.vendors, r.Providers
	}
	now.catalog = r.shelves(now.vendors)
	return now
}

// personal makes a user's vendor set.
func (r *Ring) personal(server *vendorSet, h holder, former *vendorSet) *vendorSet {
	now := &vendorSet{revision: h.revision, over: server, made: map[string]made{}}
	var shown []*ai.Vendor
	for _, v := range server.vendors {
		own := v
		if k, ok := h.keys[v.Code]; ok {
			if own = r.with(now, former, v, &k, ai.Key{Own: true}); own != v {
				now.vendors = append(now.vendors, own)
			}
		}
		shown = append(shown, both(v, own, h.voices[v.Code]))
	}
	var before *provider.Set
	if former != nil {
		before = former.providers
	}
	var err error
	if now.providers, err = server.providers.Own(now.vendors, before); err != nil {
		slog.Error("a user's own keys of providers can't be used", "error", err)
		now.vendors, now.providers, shown = nil, server.providers, server.vendors
	}
	now.catalog = r.shelves(shown)
	return now
}

// with is a vendor with an entered key, as it was made before if nothing has changed; the vendor itself if the key
// can't be read.
func (r *Ring) with(now, former *vendorSet, v *ai.Vendor, k *parley.VendorKey, as ai.Key) *ai.Vendor {
	if v.With == nil {
		return v
	}
	m := made{base: v}
	if former != nil {
		m = former.made[v.Code]
	}
	if m.vendor == nil || m.base != v || m.models != k.Models || !bytes.Equal(m.sealed, k.Sealed) {
		entered, err := rekeyed(r.db, v, k, as, r.hide)
		if err != nil {
			slog.Error("a provider's key can't be read", "provider", v.Code, "user", k.UserID, "error", err)
			return v
		}
		m = made{k.Sealed, k.Models, v, entered}
	}
	now.made[v.Code] = m
	return m.vendor
}

// rekeyed is a vendor with an entered key. The base URL of the settings counts before an entered one.
func rekeyed(db *store.DB, v *ai.Vendor, k *parley.VendorKey, as ai.Key, hide func(int64, string)) (*ai.Vendor, error) {
	secret, err := db.VendorSecret(k)
	if err != nil {
		return nil, err
	}
	if secret != "" {
		hide(k.UserID, secret)
	}
	if as.Secret = secret; v.Key().BaseURL != "" {
		as.BaseURL = ""
	}
	return v.With(as), nil
}

// shelves is the catalog of these vendors.
func (r *Ring) shelves(vendors []*ai.Vendor) *catalog.Catalog {
	r.mu.Lock()
	models := r.models
	r.mu.Unlock()
	c := catalog.New(r.publicURL, vendors)
	if err := c.SetModels(models); err != nil {
		slog.Error("the catalog lacks models", "error", err)
	}
	return c
}

// both is what a user can choose of a vendor: what the server's key gives, what their own gives, and the voices in their
// account. own is the vendor itself for a user without a key of theirs.
func both(v, own *ai.Vendor, voices []parley.AccountVoice) *ai.Vendor {
	if own == v && len(voices) == 0 {
		return v
	}
	b := *v
	b.Speakers, b.Listeners = slices.Clone(v.Speakers), slices.Clone(v.Listeners)
	either := func(a, b func() bool) func() bool { return func() bool { return a() || b() } }
	for i := range b.Speakers {
		s, o := &b.Speakers[i], own.Speakers[i]
		if s.Configured = either(s.Configured, o.Configured); own != v && o.Configured() {
			s.Model, s.Private = o.Model, !v.Speakers[i].Configured()
		}
		if i == 0 {
			s.Voices = slices.Concat(s.Voices, inAccount(voices, own != v))
		}
	}
	for i := range b.Listeners {
		b.Listeners[i].Configured = either(b.Listeners[i].Configured, own.Listeners[i].Configured)
	}
	if v.Realtime != nil {
		both := *v.Realtime
		both.Configured = either(v.Realtime.Configured, own.Realtime.Configured)
		b.Realtime = &both
	}
	if own != v {
		b.Retired = own.Retired
	}
	if v.Models != nil && own != v {
		b.Models = func() []parley.Model {
			list := own.Models()
			for _, m := range v.Models() {
				if !slices.ContainsFunc(list, func(o parley.Model) bool { return o.Kind == m.Kind && o.Code == m.Code }) {
					list = append(list, m)
				}
			}
			return list
		}
	}
	return &b
}

// inAccount are voices of a user's account in the catalog's form; there says whether its key is.
func inAccount(voices []parley.AccountVoice, there bool) (list []ai.Voice) {
	for _, v := range voices {
		list = append(list, ai.Voice{Number: accountVoices + v.Number, Languages: v.Languages, Code: v.Code, Name: v.Name,
			Gender: v.Gender, Accent: v.Accent, Age: v.Age, Private: true, Gone: v.Gone || !there})
	}
	return list
}
