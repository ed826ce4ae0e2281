package auth_test

import (
	"context"
	"strings"
	"testing"

	"github.com/riverqueue/river"

	"parley/internal/auth"
	"parley/internal/mail"
	"parley/internal/mail/mailtest"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// An invitation is sent where the server can, to the one who is invited, and not without end. An account that only made
// itself sends nothing.
func TestInvitationByEmail(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		server := mailtest.Serve(t)
		m, err := mail.Open(server.URL(), "Parley <parley@example.com>")
		if err != nil {
			t.Fatal(err)
		}
		d, u := authority(t, db)
		d.Mail, d.Invites = m, auth.NewLimiter(auth.Rate{PerSecond: 1. / 3600, Burst: 1})
		jobs := river.NewWorkers()
		m.AddWorkers(jobs, db)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- db.Work(ctx, t.Context(), store.Jobs{Workers: jobs,
				Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}}})
		}()
		invite := func(email string) (*auth.Invited, error) {
			return d.Invite(t.Context(), &auth.Who{User: u}, "https://voice.example.com",
				map[string]any{"email": email, "name": "Bo", "role": "agent"})
		}
		i, err := invite("bo@example.com")
		if err != nil || !i.Sent {
			t.Fatalf("%+v %v", i, err)
		}
		list := server.Wait(1)
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if len(list) != 1 || list[0].To != "bo@example.com" || !strings.Contains(list[0].Text, "https://voice.example.com/join/invite-") ||
			strings.Contains(list[0].Text, i.Token) || i.Link != "https://voice.example.com/join/"+i.Token {
			t.Fatalf("%+v", list)
		}
		if _, err := invite("al@example.com"); err == nil {
			t.Error("e-mails without end")
		}
		u.SignedUpAt = parley.Now()
		if i, err := invite("al@example.com"); err != nil || i.Sent {
			t.Errorf("an account that only made itself: %+v %v", i, err)
		}
	})
}
