package keyring

import (
	"context"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/store"
)

// verdict is what a test of a key found.
type verdict struct {
	state, reason string
	at            parley.Time
}

// key is the part of a key's row that a test finds out.
func (v verdict) key() *parley.VendorKey {
	if v.state == "" {
		v.state = parley.KeyUntested
	}
	return &parley.VendorKey{State: v.state, Reason: v.reason, CheckedAt: v.at}
}

// checkTime is how long a vendor may take for a test.
const checkTime = 20 * time.Second

// check asks a vendor what it thinks of the key that it was declared with.
func check(ctx context.Context, v *ai.Vendor, secret string) verdict {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	found := verdict{state: parley.KeyConnected, at: parley.Now()}
	for _, f := range v.Check(ctx) {
		switch {
		case f.State != parley.DoctorFail:
			continue
		case strings.Contains(f.Text, "asks for a key") && secret == "":
			return verdict{parley.KeyRefused, "This server asks for a key. Enter it too.", found.at}
		case strings.Contains(f.Text, "refuses the key"), strings.Contains(f.Text, "asks for a key"):
			return verdict{parley.KeyRefused, v.Name + " refuses this key: " + plain(f.Text, secret) +
				". Copy it again, whole, or make a new one.", found.at}
		case found.state == parley.KeyConnected:
			found.state, found.reason = parley.KeyFailing, plain(f.Text, secret)
		}
	}
	return found
}

// Names of settings in what the doctor says, which are no words for who entered a key in the product.
var (
	orSetting  = regexp.MustCompile(`( \((or )?|, which | or )PARLEY_\w+\)?( names)?`)
	inKey      = regexp.MustCompile(` in PARLEY_\w*KEY`)
	keySetting = regexp.MustCompile(`PARLEY_\w*KEY`)
	userinfo   = regexp.MustCompile(`://[^/@\s]+@`)
	urlSetting = regexp.MustCompile(`PARLEY_\w*BASE_URL`)
)

// plain is what the doctor says in other words than its settings', and without the key.
func plain(text, secret string) string {
	text = orSetting.ReplaceAllString(text, "")
	text = inKey.ReplaceAllString(text, "")
	text = keySetting.ReplaceAllString(text, "the key")
	text = urlSetting.ReplaceAllString(text, "the base URL")
	text = userinfo.ReplaceAllString(text, "://")
	for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
		if form != "" {
			text = strings.ReplaceAll(text, form, "[key]")
		}
	}
	return strings.TrimSuffix(text, ".")
}

// Checked is a vendor as it was checked, and what was found.
type Checked struct {
	*ai.Vendor
	Source   string // of the key it was asked with: None, Environment, Entered, Server or Own
	Findings []parley.Finding
	// Retiring is what settings of the server name and the vendor retires.
	Retiring []parley.Finding

	declared *ai.Vendor // as the settings have it
}

// Check checks every vendor as a user has it, or (0) the server.
func (r *Ring) Check(ctx context.Context, userID int64) []Checked {
	var list []Checked
	for _, v := range r.vendors {
		one := Checked{Vendor: r.as(userID, v), Source: None, declared: v}
		if v.With != nil {
			one.Source = r.shown(userID, v).Source
		}
		list = append(list, one)
	}
	ask(ctx, list)
	return list
}

// CheckStored checks every vendor as a server would have it that has these settings, and this database with the keys
// that were entered for it; nil stands for a database that none could be read from.
func CheckStored(ctx context.Context, db *store.DB, vendors []*ai.Vendor, hide func(userID int64, secret string)) ([]Checked, error) {
	keys := map[string]*parley.VendorKey{}
	if db != nil {
		rows, err := db.AllVendorKeys(ctx, 0)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if k := &rows[i]; k.UserID == 0 && k.Sealed != nil {
				keys[k.Vendor] = k
			}
		}
	}
	var list []Checked
	for _, v := range vendors {
		one := Checked{Vendor: v, Source: None, declared: v}
		switch k := keys[v.Code]; {
		case configured(v):
			one.Source = Environment
		case k != nil && v.With != nil:
			entered, err := rekeyed(db, v, k, ai.Key{BaseURL: k.BaseURL, Models: k.ModelList()}, hide)
			if err != nil {
				one.Source, one.Findings = Entered, []parley.Finding{{State: parley.DoctorFail, What: v.Code,
					Text: "the entered key can't be decrypted: is PARLEY_SECRET_KEY the one that it was entered under? " +
						"Else enter it again on the page Providers"}}
				break
			}
			one.Vendor, one.Source = entered, Entered
		}
		list = append(list, one)
	}
	ask(ctx, list)
	return list, nil
}

// ask asks all vendors at once that nothing is known of yet: one that hangs keeps no other from being heard.
func ask(ctx context.Context, list []Checked) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	var wg sync.WaitGroup
	for i := range list {
		v := &list[i]
		v.Retiring = v.Vendor.Retiring(v.declared, time.Now())
		if v.Vendor.Check == nil || v.Findings != nil {
			continue
		}
		crash.Go(&wg, func() {
			v.Findings = v.Vendor.Check(ctx)
			if v.Source != Entered && v.Source != Own {
				return
			}
			for n := range v.Findings {
				v.Findings[n].Text = plain(v.Findings[n].Text, v.Key().Secret)
			}
		}, crash.Log("the check of a vendor", "vendor", v.Vendor.Code))
	}
	wg.Wait()
}

// Test tests a vendor's key of a user, or (0) of the server: k if it has a secret, and then nothing is stored, else the
// one that is there.
func (r *Ring) Test(ctx context.Context, userID int64, code string, k ai.Key) (*parley.VendorKey, error) {
	declared, err := r.vendor(userID, code)
	if err != nil {
		return nil, err
	}
	h, _ := r.known(userID)
	row, entered := h.keys[code]
	if k.Secret != "" || declared.ByURL && k.BaseURL != "" || !entered && (userID != 0 || !able(declared)) {
		v, err := r.candidate(userID, code, &k)
		if err != nil {
			return nil, err
		}
		return check(ctx, v, k.Secret).key(), nil
	}
	if userID == 0 && (configured(declared) || !entered) {
		found := check(ctx, declared, declared.Key().Secret)
		r.mu.Lock()
		r.checked[code] = found
		r.mu.Unlock()
		return found.key(), nil
	}
	return r.retest(ctx, userID, r.as(userID, declared), row)
}

// retest tests a stored key, notes what it finds, and looks which voices are in the account now.
func (r *Ring) retest(ctx context.Context, userID int64, v *ai.Vendor, row parley.VendorKey) (*parley.VendorKey,
	error) {
	secret, err := r.db.VendorSecret(&row)
	if err != nil {
		return nil, err
	}
	found := check(ctx, v, secret)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	row.State, row.Reason, row.CheckedAt = found.state, found.reason, found.at
	if v.ByURL && row.State == parley.KeyConnected {
		k := ai.Key{Secret: secret, BaseURL: row.BaseURL}
		if v, err = r.withListed(ctx, row.Vendor, v, &k); err != nil {
			return nil, err
		}
		if len(k.Models) > 0 {
			row.Models = strings.Join(k.Models, "\n")
		}
	}
	voices, listed := r.listVoices(ctx, userID, v, secret)
	err = r.change(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.CheckedVendorKey(ctx, userID, &row); err != nil {
			return err
		}
		if v.ByURL {
			return tx.KeepModels(ctx, modelsOf(v))
		}
		if !listed {
			return nil
		}
		return tx.KeepAccountVoices(ctx, userID, row.Vendor, voices)
	})
	return &row, err
}

// listVoices asks a vendor for the voices in a user's account; listed is false where that can't be known.
func (r *Ring) listVoices(ctx context.Context, userID int64, v *ai.Vendor, secret string) (list []parley.AccountVoice,
	listed bool) {
	if userID == 0 || len(v.Speakers) == 0 {
		return nil, false
	}
	o, err := v.Open()
	if err != nil {
		return nil, false
	}
	if o.Close != nil {
		defer o.Close()
	}
	if o.Voices == nil {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	all, err := o.Voices(ctx, secret)
	if err != nil {
		slog.WarnContext(ctx, "the voices of an account can't be listed", "provider", v.Code, "user", userID, "kind",
			ai.KindOf(err))
		return nil, false
	}
	declared := map[string]bool{}
	for _, one := range v.Speakers[0].Voices {
		declared[one.Code] = true
	}
	for _, one := range all {
		if !declared[one.Code] {
			list = append(list, parley.AccountVoice{Code: clean(one.Code), Name: clean(one.Name), Languages: one.Languages,
				Gender: one.Gender, Accent: clean(one.Accent), Age: clean(one.Age)})
		}
	}
	return list, true
}

// clean is a text of a vendor's as it can be stored.
func clean(text string) string {
	const longest = 255
	text = strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")
	if r := []rune(text); len(r) > longest {
		text = string(r[:longest])
	}
	return text
}
