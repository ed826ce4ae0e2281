package mail_test

import (
	"context"
	"strings"
	"testing"

	"parley/internal/mail"
	"parley/internal/mail/mailtest"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// One rule holds for every e-mail that leaves. Nothing but a link that asks goes to an address that nobody in the account has
// confirmed, and few of these; both an account and an address have a daily count.
func TestRule(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := open(t, mailtest.Serve(t).URL())
		prove := func(u *parley.User) {
			t.Helper()
			if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.ProveEmail(ctx, u.ID, 0, u.Email)
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		queue := func(k mail.Kind, u *parley.User, to string) (sent bool) {
			t.Helper()
			if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
				sent, err = s.Queue(ctx, tx, mail.Message{Kind: k, Account: u.ID, To: to, Text: "x"})
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return sent
		}
		news := []mail.Kind{mail.AlertRaised, mail.AlertResolved, mail.AlertTest, mail.NotStarted, mail.NewPassword}
		unproven := func() *parley.User {
			u := storetest.User(t, db, 0)
			u.EmailProvenAt = 0
			if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error { return tx.SaveUser(ctx, u) }); err != nil {
				t.Fatal(err)
			}
			return u
		}
		u, other := unproven(), unproven()
		const victim = "victim@example.com"
		for _, k := range news {
			if queue(k, u, u.Email) || queue(k, u, victim) {
				t.Errorf("kind %d goes to an address that is not confirmed", k)
			}
		}
		prove(u)
		for _, k := range news {
			if !queue(k, u, strings.ToUpper(u.Email)) || queue(k, u, victim) || queue(k, other, u.Email) {
				t.Errorf("kind %d: to its own confirmed address, to another, or another account's to it", k)
			}
		}
		sent := 0
		for i := range 20 {
			from := u
			if i%2 == 0 {
				from = other
			}
			if queue(mail.Invitation, from, victim) {
				sent++
			}
		}
		if sent != 3 {
			t.Errorf("%d invitations in a day went to an address that never asked for any", sent)
		}
		sent = 0
		for range 300 {
			if queue(mail.AlertTest, u, u.Email) {
				sent++
			}
		}
		if sent != 100-len(news) {
			t.Errorf("%d e-mails more went to one address in a day", sent)
		}
		sent = 0
		for i := range 300 {
			if queue(mail.Invitation, other, strings.Repeat("a", i%50+1)+string(rune('a'+i/50))+"@example.com") {
				sent++
			}
		}
		if sent != 200-2 && sent != 200-1 {
			t.Errorf("%d e-mails went out for one account in a day", sent)
		}
	})
}

// Subjects have nobody's words in them, whatever a message brings.
func TestSubjects(t *testing.T) {
	db := storetest.SQLite(t, store.Rules{})
	server := mailtest.Serve(t)
	s := open(t, server.URL())
	u := storetest.User(t, db, 0)
	seen := map[string]bool{}
	kinds := []mail.Kind{mail.AlertRaised, mail.AlertResolved, mail.AlertTest, mail.NotStarted, mail.NewPassword, mail.Invitation,
		mail.Confirmation}
	for _, k := range kinds {
		if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := s.Queue(ctx, tx, mail.Message{Kind: k, Account: u.ID, To: u.Email, Subject: "WIN 1,000,000 NOW", Text: "x"})
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	work(t, db, s)
	for _, m := range server.Wait(len(kinds)) {
		subject := m.Header.Get("Subject")
		if subject == "" || strings.Contains(subject, "WIN") || seen[subject] {
			t.Errorf("the subject is %q", subject)
		}
		seen[subject] = true
	}
}
