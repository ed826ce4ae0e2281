// Package keyring knows the keys of vendors: those of the settings, those that the operator entered in the product, and
// users' own. It says what the server, and each user, can think, speak and listen with now; a change counts at once,
// and within a second on other nodes.
//
// What the settings say counts before what was entered for the server, and a user's own key before the server's.
package keyring

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/catalog"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/store"
)

// Ring holds the keys. It is safe for concurrent use.
type Ring struct {
	// Catalog and Providers are those of the settings; their For gives what the entered keys make of them.
	Catalog   *catalog.Catalog
	Providers *provider.Set

	db        *store.DB
	publicURL string
	hide      func(userID int64, secret string)
	vendors   []*ai.Vendor // as the settings declare them

	loading sync.Mutex // one load at a time
	// Guarded by mu. Nobody waits for both locks.
	mu         sync.Mutex
	models     []parley.Model       // replaced, never changed
	revision   int64                // of the keys that are known
	holders    map[int64]holder     // by user; 0: the server
	vendorSets map[int64]*vendorSet // that were asked for
	checked    map[string]verdict   // what tests of keys in the settings found, by vendor
}

// holder is what was entered for the server or by a user. It is replaced, never changed.
type holder struct {
	revision int64
	keys     map[string]parley.VendorKey      // by vendor
	voices   map[string][]parley.AccountVoice // in the user's accounts
}

// vendorSet is what the server, or a user with own keys, works with. It doesn't change.
type vendorSet struct {
	revision  int64 // of what it was made of
	catalog   *catalog.Catalog
	providers *provider.Set
	vendors   []*ai.Vendor    // the server's as they are with entered keys, or a user's own
	made      map[string]made // those of vendors that have entered keys, by vendor
	over      *vendorSet      // a user's: the server's
}

// made is a vendor with an entered key.
type made struct {
	sealed []byte
	models string
	base   *ai.Vendor // that it was made from
	vendor *ai.Vendor
}

// accountVoices is what the numbers of voices in accounts are counted from, beyond those of the declared voices.
const accountVoices = 1_000_000

// Open reads the keys. Links start with publicURL. hide is told each key and whose it is, 0 for the server, before it is used, so that
// no log shows it; a user's own only once its vendor has not refused it. Close the ring.
func Open(ctx context.Context, db *store.DB, vendors []*ai.Vendor, publicURL string, hide func(userID int64, secret string)) (*Ring,
	error) {
	r := &Ring{db: db, publicURL: publicURL, hide: hide, vendors: vendors, holders: map[int64]holder{}, vendorSets: map[int64]*vendorSet{},
		checked: map[string]verdict{}, Catalog: catalog.New(publicURL, vendors)}
	err := db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.KeepModels(ctx, possible(r.Catalog.Models(), vendors))
	})
	if err != nil {
		return nil, fmt.Errorf("keep the models: %w", err)
	}
	if r.models, err = db.Models(ctx); err != nil {
		return nil, err
	}
	if err := r.Catalog.SetModels(r.models); err != nil {
		return nil, err
	}
	if r.Providers, err = provider.Open(vendors); err != nil {
		return nil, err
	}
	r.vendorSets[0] = &vendorSet{catalog: r.Catalog, providers: r.Providers, vendors: vendors}
	if err := r.load(ctx); err != nil {
		r.Close()
		return nil, fmt.Errorf("read the providers' keys: %w", err)
	}
	r.Catalog.Personal(func(userID int64) *catalog.Catalog { return r.of(userID).catalog })
	r.Providers.Personal(func(userID int64) *provider.Set { return r.of(userID).providers })
	return r, nil
}

// possible lists the configured models, and those that keys could bring: all of them have ids.
func possible(configured []parley.Model, vendors []*ai.Vendor) []parley.Model {
	list := slices.Clone(configured)
	for _, v := range vendors {
		if v.With == nil {
			continue
		}
		w := v.With(ai.Key{Secret: "any"})
		if w.Models == nil {
			continue
		}
		for _, m := range w.Models() {
			m.Provider = v.Code
			if !slices.ContainsFunc(list, func(o parley.Model) bool { return o.Kind == m.Kind && o.Code == m.Code }) {
				list = append(list, m)
			}
		}
	}
	return list
}

// Possible is the catalog of this server if every vendor had a key.
func (r *Ring) Possible() *catalog.Catalog {
	var all []*ai.Vendor
	for _, v := range r.of(0).vendors {
		if v.With != nil && !able(v) {
			v = v.With(ai.Key{Secret: "any"})
		}
		all = append(all, v)
	}
	return r.shelves(all)
}

// Close closes all vendors.
func (r *Ring) Close() { r.Providers.Close() }

// lookTime is how often a node looks for changes by others.
const lookTime = time.Second

// Run learns of what other nodes change, until ctx ends.
func (r *Ring) Run(ctx context.Context) error {
	tick := time.NewTicker(lookTime)
	defer tick.Stop()
	failed := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := r.load(ctx)
		if err != nil && ctx.Err() == nil && !failed {
			slog.Warn("changes of providers' keys are not seen", "error", err)
		}
		failed = err != nil
	}
}

// Revision changes when the keys do that a user's assistants work with.
type Revision struct{ server, own int64 }

// Revision is that of a user's keys now.
func (r *Ring) Revision(userID int64) Revision {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Revision{r.holders[0].revision, r.holders[userID].revision}
}

// load learns what has changed.
func (r *Ring) load(ctx context.Context) error {
	r.loading.Lock()
	defer r.loading.Unlock()
	r.mu.Lock()
	known := r.revision
	r.mu.Unlock()
	latest, err := r.db.VendorRevision(ctx)
	if err != nil || latest == known {
		return err
	}
	rows, err := r.db.AllVendorKeys(ctx, known)
	if err != nil {
		return err
	}
	news := map[int64]holder{}
	for _, k := range rows {
		h, ok := news[k.UserID]
		if !ok {
			if h, err = r.holder(ctx, k.UserID, latest); err != nil {
				return err
			}
			news[k.UserID] = h
		}
		if h.keys[k.Vendor] = k; k.Sealed == nil {
			delete(h.keys, k.Vendor)
		}
	}
	var models []parley.Model
	if slices.ContainsFunc(rows, func(k parley.VendorKey) bool { return k.Models != "" }) {
		if models, err = r.db.Models(ctx); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.revision = latest; models != nil {
		r.models = models
	}
	maps.Copy(r.holders, news)
	return nil
}

// holder is a copy of what is known of a user, to be changed, with the voices as they are now.
func (r *Ring) holder(ctx context.Context, userID, revision int64) (h holder, err error) {
	r.mu.Lock()
	h = holder{revision: revision, keys: maps.Clone(r.holders[userID].keys), voices: map[string][]parley.AccountVoice{}}
	r.mu.Unlock()
	if h.keys == nil {
		h.keys = map[string]parley.VendorKey{}
	}
	if userID == 0 {
		return h, nil
	}
	list, err := r.db.AccountVoices(ctx, userID)
	for _, v := range list {
		h.voices[v.Vendor] = append(h.voices[v.Vendor], v)
	}
	return h, err
}
