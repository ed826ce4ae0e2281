package auth

import (
	"context"
	"maps"
	"strings"

	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
)

// SetProfile changes what body names of a user's own account. A new email address, which is what one signs in with,
// needs the present password: check tries it.
func (d *Authority) SetProfile(ctx context.Context, u *parley.User, body map[string]any,
	check func(password string) error) (*parley.User, error) {
	// the first start's has no domain, as a new one must
	if email, _ := body["email"].(string); strings.EqualFold(strings.TrimSpace(email), u.Email) {
		body = maps.Clone(body)
		delete(body, "email")
	}
	p := parley.Profile{Name: u.Name, Email: u.Email, Timezone: u.Timezone, Country: u.Country}
	if err := checkProfile(form.Bind(body, &p, false), &p, u.Email, check); err != nil {
		return nil, err
	}
	var changed *parley.User
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if err := tx.LockUser(ctx, u.ID); err != nil {
			return err
		}
		if changed, err = tx.User(ctx, u.ID); err != nil {
			return err
		}
		changed.Name, changed.Timezone, changed.Country = p.Name, p.Timezone, p.Country
		if p.Country == "" && u.Country == "" && p.Timezone != u.Timezone { // none was ever chosen
			changed.Country = parley.ZoneCountry(p.Timezone)
		}
		if _, sent := body["timezone"]; sent {
			changed.ZoneAssumed = false
		}
		if p.Email != u.Email {
			changed.Email, changed.EmailProvenAt = p.Email, 0
		}
		return tx.SaveUser(ctx, changed)
	})
	return changed, err
}

// SettleZone gives the account of its first owner, who signs in, the time zone of their browser if nobody has chosen one.
func (d *Authority) SettleZone(ctx context.Context, who *Who, zone string) error {
	if who.Member != nil || !who.User.ZoneAssumed || !parley.ValidTimezone(zone) {
		return nil
	}
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.SettleZone(ctx, who.User.ID, zone)
		return err
	})
}

// checkProfile judges a profile that was bound: a new address needs the present password.
func checkProfile(wrong parley.Fields, p *parley.Profile, email string, check func(password string) error) error {
	p.Email = strings.ToLower(p.Email)
	moves := p.Email != email
	if moves && p.CurrentPassword == "" && !wrong.Has("email") && !wrong.Has("current_password") {
		wrong.Add("current_password", "is required to change the email.")
	}
	if err := wrong.Err(); err != nil || !moves {
		return err
	}
	return notYours(check(p.CurrentPassword), "current_password")
}
