package auth_test

import (
	"context"
	"regexp"
	"testing"

	"github.com/riverqueue/river"

	"parley/internal/auth"
	"parley/internal/mail"
	"parley/internal/mail/mailtest"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// post has an authority send e-mail, and returns what waits for the n-th one that it has sent.
func post(t *testing.T, db *store.DB, d *auth.Authority) (letter func(n int) mailtest.Message) {
	t.Helper()
	server := mailtest.Serve(t)
	m, err := mail.Open(server.URL(), "Parley <parley@example.com>")
	if err != nil {
		t.Fatal(err)
	}
	d.Mail, d.Invites = m, auth.NewLimiter(auth.Rate{PerSecond: 100, Burst: 100})
	jobs := river.NewWorkers()
	m.AddWorkers(jobs, db)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error)
	go func() {
		done <- db.Work(ctx, context.Background(), store.Jobs{Workers: jobs,
			Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}}})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return func(n int) mailtest.Message { t.Helper(); return server.Wait(n)[n-1] }
}

// tokenIn is the token of a link in an e-mail.
func tokenIn(t *testing.T, m mailtest.Message) string {
	t.Helper()
	found := regexp.MustCompile(`https://voice\.example\.com/[a-z]+/(\S+)`).FindStringSubmatch(m.Text)
	if found == nil {
		t.Fatalf("no link in %q", m.Text)
	}
	return found[1]
}

// Somebody who signs up confirms their address by the link that is sent there, once. A link to a former address confirms nothing, and
// a new address is not confirmed.
func TestConfirmation(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d, _ := authority(t, db)
		letter := post(t, db, d)
		u := &parley.User{Name: "Ana", Email: "ana@example.org", Timezone: "UTC"}
		if _, err := d.Register(t.Context(), u, "correct horse battery", func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		now := func() *auth.Who {
			t.Helper()
			u, err := db.User(t.Context(), u.ID)
			if err != nil {
				t.Fatal(err)
			}
			return &auth.Who{User: u, Key: &parley.Key{}}
		}
		ask := func(want bool) {
			t.Helper()
			if sent, err := d.AskConfirmation(t.Context(), now(), "https://voice.example.com"); err != nil || sent != want {
				t.Fatalf("sent: %v, %v", sent, err)
			}
		}
		confirm := func(token string, want bool) {
			t.Helper()
			if err := d.Confirm(t.Context(), "192.0.2.1", token); (err == nil) != want {
				t.Errorf("confirmed by %q: %v", token, err)
			}
		}
		ask(true)
		old := tokenIn(t, letter(1))
		confirm("confirm-1-nonsense", false)
		confirm(old[:len(old)-1]+"_", false)
		ask(true) // the former link ends
		token := tokenIn(t, letter(2))
		confirm(old, false)
		confirm(token, true)
		confirm(token, false)
		if !now().Confirmed() {
			t.Error("it is not confirmed")
		}
		ask(false)
		right := func(string) error { return nil }
		if _, err := d.SetOwn(t.Context(), now(), map[string]any{"email": "ana@example.net", "current_password": "x"}, right); err != nil {
			t.Fatal(err)
		}
		if now().Confirmed() {
			t.Error("a new address is confirmed by the former one's link")
		}
		ask(true)
		token = tokenIn(t, letter(3))
		if _, err := d.SetOwn(t.Context(), now(), map[string]any{"email": "ana@example.com", "current_password": "x"}, right); err != nil {
			t.Fatal(err)
		}
		confirm(token, false)
	})
}

// Whoever invites an address and accepts with the link that is shown to them has it, and keeps nobody else from it: they give it up to
// whoever can read what is sent there.
func TestSquattedAddress(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d, u := authority(t, db)
		letter := post(t, db, d)
		const victim = "victim@example.org"
		invite := func(u *parley.User) (*auth.Invited, error) {
			return d.Invite(t.Context(), &auth.Who{User: u}, "https://voice.example.com",
				map[string]any{"email": victim, "name": "Vic", "role": "agent"})
		}
		accept := func(token, password string) *auth.Who {
			t.Helper()
			who, _, err := d.Accept(t.Context(), "192.0.2.1", token, &auth.Acceptance{Password: password, Timezone: "UTC"}, parley.Session)
			if err != nil {
				t.Fatal(err)
			}
			return who
		}
		squat, err := invite(u)
		if err != nil || !squat.Sent {
			t.Fatalf("%+v %v", squat, err)
		}
		if tokenIn(t, letter(1)) == squat.Token {
			t.Fatal("whoever invites sees the link that proves the address")
		}
		squatter := accept(squat.Token, "squatter's password")
		if squatter.Confirmed() {
			t.Error("the address is proven by the link that was shown")
		}
		other := storetest.User(t, db, 0)
		if _, err := invite(other); err != nil {
			t.Fatalf("another account can't invite the address: %v", err)
		}
		real := accept(tokenIn(t, letter(2)), "the real one's password")
		if !real.Confirmed() || real.Member.UserID != other.ID {
			t.Errorf("%+v", real.Member)
		}
		if _, err := invite(storetest.User(t, db, 0)); err == nil {
			t.Error("an address that is proven can be invited elsewhere")
		}
		if who, err := d.Login(t.Context(), "192.0.2.1", victim, "the real one's password"); err != nil || who.Person() != real.Member.ID {
			t.Errorf("signs in %+v, %v", who, err)
		}
		if who, err := d.Login(t.Context(), "192.0.2.1", victim, "squatter's password"); err == nil {
			t.Errorf("the squatter still has the address: %+v", who)
		}
		// who has not proven it can still be changed
		for name, change := range map[string]map[string]any{"role": {"role": "viewer"}, "disabled": {"disabled": true}} {
			if _, err := d.ChangeMember(t.Context(), &auth.Who{User: u}, squatter.Member.ID, change); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// An account that has signed up with somebody's address gives it up to whoever proves it.
func TestSquattedBySignUp(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d, u := authority(t, db)
		letter := post(t, db, d)
		squatter := &parley.User{Name: "S", Email: "victim@example.org", Timezone: "UTC"}
		if _, err := d.Register(t.Context(), squatter, "squatter's password", func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Invite(t.Context(), &auth.Who{User: u}, "https://voice.example.com",
			map[string]any{"email": squatter.Email, "name": "Vic", "role": "agent"}); err != nil {
			t.Fatal(err)
		}
		who, _, err := d.Accept(t.Context(), "192.0.2.1", tokenIn(t, letter(1)),
			&auth.Acceptance{Password: "the real one's password", Timezone: "UTC"}, parley.Session)
		if err != nil || !who.Confirmed() {
			t.Fatalf("%+v %v", who, err)
		}
		if u, err := db.User(t.Context(), squatter.ID); err != nil || u.Email == "victim@example.org" {
			t.Errorf("the squatter has %+v, %v", u, err)
		}
		if who, err := d.Login(t.Context(), "192.0.2.1", "victim@example.org", "the real one's password"); err != nil || who.Member == nil {
			t.Errorf("%+v %v", who, err)
		}
	})
}
