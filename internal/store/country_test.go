package store_test

import (
	"context"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// Accounts without a country get their time zone's when the database is brought up to date; one that has chosen none keeps
// none.
func TestCountriesAreFilledIn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		made := map[string]*parley.User{}
		for zone, country := range map[string]string{"Europe/Berlin": "DE", "Asia/Calcutta": "IN", "UTC": ""} {
			u := storetest.User(t, db, 0)
			u.Timezone, made[country] = zone, u
			if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error { return tx.SaveUser(ctx, u) }); err != nil {
				t.Fatal(err)
			}
		}
		chosen := storetest.User(t, db, 0) // it has said that it wants none
		chosen.Timezone = "Europe/Berlin"
		if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error { return tx.SaveUser(ctx, chosen) }); err != nil {
			t.Fatal(err)
		}
		store.ForgetCountries(t, db, made["DE"].ID, made["IN"].ID, made[""].ID)
		if _, err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		for want, u := range made {
			if got, err := db.User(t.Context(), u.ID); err != nil || got.Country != want {
				t.Errorf("an account in %s is in %q: %v", u.Timezone, got.Country, err)
			}
		}
		if got, err := db.User(t.Context(), chosen.ID); err != nil || got.Country != "" {
			t.Errorf("none was chosen, and it is %q: %v", got.Country, err)
		}
		fresh := &parley.User{Name: "New", Email: "new@example.com", Timezone: "Europe/Vienna", Plan: "default"}
		if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error { return tx.CreateUser(ctx, fresh) }); err != nil ||
			fresh.Country != "AT" {
			t.Errorf("a new account is in %q: %v", fresh.Country, err)
		}
	})
}
