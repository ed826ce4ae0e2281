package auth_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/auth"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func TestNetwork(t *testing.T) {
	for address, want := range map[string]string{
		"203.0.113.7": "203.0.113.7", "::ffff:203.0.113.7": "203.0.113.7",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "2001:db8:1:2::": "2001:db8:1:2::/64",
		"2001:db8:1:3::1": "2001:db8:1:3::/64", "fe80::1%eth0": "fe80::/64", "::1": "::/64", "": "",
		"nobody": "nobody", "203.0.113.7:80": "203.0.113.7:80",
	} {
		if got := auth.Network(address); got != want {
			t.Errorf("%q counts as %q, want %q", address, got, want)
		}
	}
}

func TestSlots(t *testing.T) {
	s := auth.NewSlots(2)
	var leave []func()
	for range 2 {
		l, ok := s.Take("a")
		if !ok {
			t.Fatal("refused too early")
		}
		leave = append(leave, l)
	}
	if _, ok := s.Take("a"); ok {
		t.Error("a third is let in")
	}
	if _, ok := s.Take("b"); !ok {
		t.Error("another name is refused")
	}
	leave[0]()
	leave[0]() // calling it twice counts once
	if _, ok := s.Take("a"); !ok {
		t.Error("what was left is not free")
	}
	if _, ok := s.Take("a"); ok {
		t.Error("leaving twice frees two")
	}
	free := auth.NewSlots(0)
	for range 1000 {
		if _, ok := free.Take("a"); !ok {
			t.Fatal("no limit refuses")
		}
	}
	for range 10_000 {
		l, _ := s.Take(fmt.Sprint(len(leave)))
		l()
		leave = append(leave, l)
	}
	if n := s.Names(); n > 2 {
		t.Errorf("%d names are kept of those who left", n)
	}
}

// Three weeks of strangers: each is limited while they try, gets attempts back when they should, and is forgotten
// afterwards.
func TestLimiterForWeeks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := auth.NewLimiter(auth.Rate{PerSecond: 10. / 60, Burst: 10})
		most, refused := 0, 0
		for hour := range 21 * 24 {
			name := fmt.Sprint("stranger ", hour)
			for range 12 {
				if _, err := l.Take(name, time.Now()); err != nil {
					refused++
				}
				if _, err := l.Take("regular", time.Now()); err != nil {
					refused++
				}
			}
			for i := range 50 {
				l.Take(fmt.Sprint(hour, " ", i), time.Now())
			}
			most = max(most, l.Names())
			time.Sleep(30 * time.Second) // half way: five attempts are back, and trying again doesn't reset the count
			for want := 4; want >= 0; want-- {
				if left, err := l.Take("regular", time.Now()); err != nil || left != want {
					t.Fatalf("hour %d: %d left, want %d: %v", hour, left, want, err)
				}
			}
			if _, err := l.Take("regular", time.Now()); err == nil {
				t.Fatalf("hour %d: more came back than the rate gives", hour)
			}
			time.Sleep(time.Hour - 30*time.Second)
		}
		if refused != 2*2*21*24 {
			t.Errorf("%d were refused, want %d", refused, 2*2*21*24)
		}
		if most > 120 {
			t.Errorf("%d names were kept at once", most)
		}
		// Using one bucket alone, without making new ones, lets the others be forgotten too.
		for i := range 1000 {
			l.Take(fmt.Sprint("flood ", i), time.Now())
		}
		for range 5 {
			time.Sleep(time.Minute)
			l.Take("regular", time.Now())
		}
		if n := l.Names(); n > 2 {
			t.Errorf("%d names are kept after a flood", n)
		}
	})
}

// A name that is still limited is not forgotten, however many others come meanwhile.
func TestLimiterForgetsNobodyEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := auth.NewLimiter(auth.Rate{PerSecond: 10. / 600, Burst: 10})
		for range 10 {
			l.Take("a", time.Now())
		}
		time.Sleep(390 * time.Second) // six and a half attempts are back
		l.Take("b", time.Now())
		if left, err := l.Take("a", time.Now()); err != nil || left != 5 {
			t.Errorf("%d are left: %v", left, err)
		}
	})
}

func TestLoginsLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := auth.NewLogins(auth.Rate{PerSecond: 10. / 60, Burst: 10})
		try := func(from, email string) (ok bool) {
			_, err := l.Try(from, email, time.Now())
			var limit *auth.LimitError
			if err != nil && !errors.As(err, &limit) {
				t.Fatal(err)
			}
			return err == nil
		}
		tries := func(n int, from, email string) (let int) {
			for range n {
				if try(from, email) {
					let++
				}
			}
			return let
		}
		if n := tries(20, "192.0.2.1", "ana@example.com"); n != 10 {
			t.Errorf("a pair had %d attempts", n)
		}
		if try("192.0.2.1", " ANA@example.com") {
			t.Error("letters and spaces make another account")
		}
		n := 0
		for i := range 100 {
			n += tries(1, "2001:db8::"+fmt.Sprint(i), fmt.Sprintf("u%d@example.com", i))
		}
		if n != 60 {
			t.Errorf("a /64 had %d attempts", n)
		}
		n = 0
		for i := range 100 {
			n += tries(1, fmt.Sprintf("198.51.100.%d", i), "bo@example.com")
		}
		if n != 60 {
			t.Errorf("an account had %d attempts from everywhere", n)
		}
		time.Sleep(time.Minute)
		n = 0
		for i := range 100 {
			n += tries(1, fmt.Sprintf("203.0.113.%d", i), "bo@example.com")
		}
		if n != 10 {
			t.Errorf("a minute later an account had %d attempts", n)
		}
	})
}

// Logins with the right password don't count as guesses, and other people's guesses don't block them.
func TestLoginsThatSucceed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := auth.NewLogins(auth.Rate{PerSecond: 10. / 60, Burst: 10})
		for i := range 200 { // many offices share one account
			good, err := l.Try(fmt.Sprintf("192.0.2.%d", i), "ana@example.com", time.Now())
			if err != nil {
				t.Fatalf("%d: %v", i, err)
			}
			good()
		}
		for i := range 100 {
			l.Try(fmt.Sprintf("198.51.100.%d", i), "ana@example.com", time.Now())
		}
		// creating an account does not make an address known for it
		if err := l.Ask("203.0.113.1", "ana@example.com", time.Now()); err != nil {
			t.Error(err)
		}
		if _, err := l.Try("203.0.113.1", "ana@example.com", time.Now()); err == nil {
			t.Error("the account is not limited")
		}
		if _, err := l.Try("192.0.2.7", "ana@example.com", time.Now()); err != nil {
			t.Errorf("an address that is known is held up: %v", err)
		}
		// A month later the address is a stranger again, and forgotten.
		time.Sleep(31 * 24 * time.Hour)
		for i := range 100 {
			l.Try(fmt.Sprintf("198.51.100.%d", i), "ana@example.com", time.Now())
		}
		if _, err := l.Try("192.0.2.8", "ana@example.com", time.Now()); err == nil {
			t.Error("an address is known for ever")
		}
		time.Sleep(time.Hour)
		good, err := l.Try("192.0.2.250", "ana@example.com", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		good()
		if n := l.Known(); n != 1 {
			t.Errorf("%d addresses are remembered", n)
		}
	})
}

// The limit is checked before the password: after too many attempts the right one does not help.
func TestLoginIsLimited(t *testing.T) {
	d, u := authority(t, storetest.SQLite(t))
	d.Logins = auth.NewLogins(auth.Rate{PerSecond: 1e-9, Burst: 2})
	for range 2 {
		if _, err := d.Login(t.Context(), "192.0.2.1", u.Email, "wrong"); errors.As(err, new(*auth.LimitError)) ||
			err == nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Login(t.Context(), "192.0.2.1", u.Email, "correct horse"); !errors.As(err, new(*auth.LimitError)) {
		t.Errorf("the third attempt: %v", err)
	}
	if _, err := d.Login(t.Context(), "192.0.2.2", u.Email, "correct horse"); err != nil {
		t.Errorf("from elsewhere: %v", err)
	}
}

func TestWeakPasswords(t *testing.T) {
	about := []string{"Ana María Lopez", "ana.lopez@example.com"}
	for password, want := range map[string]string{
		"": "at least 8", "short": "at least 8", "ééééééé": "at least 8", strings.Repeat("correct horse", 100): "1024",
		"aaaaaaaa": "too few different", "abababab": "too few different", "abcdabcd": "too few different", "11112222": "too few different",
		"        ": "too few different",
		"12345678": "in a row", "87654321": "in a row", "abcdefgh": "in a row", "qwertyui": "in a row",
		"QWERTY123": "in a row", "abcd1234": "in a row", "1q2w3e4r": "in a row", "1qaz2wsx": "in a row",
		"password": "a common password", "Password1!": "a common password", "P@ssw0rd": "a common password",
		"passw0rd2024": "a common password", "12password": "a common password", "pass-word": "a common password",
		"Welcome123": "a common password", "letmein!": "a common password", "iloveyou": "a common password",
		"Summer2026": "a common password", "@dmin1234": "a common password", "administrator": "a common password",
		"19831204": "a number or a date", "!!??!!..": "too few different", "+49 30 90": "a number or a date",
		"ana.lopez": "your name", "AnaLopez2024": "your name", "analopez@example.com": "your name",
		"lopez12345":    "your name",
		"correct horse": "", "battery staple": "", "a good password": "", "new password": "",
		"another password": "", "eight888": "", "päss wörter": "", "Tr0ub4dor&3": "", "xk7-pq2v": "",
		"пароль-река-9": "", "8301 2249 7741 0935": "", "superkalifragilistik": "",
	} {
		why := auth.WeakPassword(password, about...)
		if want == "" && why != "" || !strings.Contains(why, want) {
			t.Errorf("%q: %q, want %q", password, why, want)
		}
		if why != "" && !strings.HasSuffix(why, ".") {
			t.Errorf("%q: %q is no sentence", password, why)
		}
	}
}

func FuzzWeakPassword(f *testing.F) {
	for _, s := range []string{"password", "", "\xff\xfe", "ééé12345", "123456789012"} {
		f.Add(s, "Ana")
	}
	f.Fuzz(func(t *testing.T, password, about string) {
		if auth.WeakPassword(password, about) == "" && len([]rune(password)) < auth.MinPassword {
			t.Errorf("%q is taken", password)
		}
	})
}

// Sessions expire, keys do not, and after the sweep what has expired is gone from the database.
func TestCredentialsForWeeks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := storetest.SQLite(t)
		d, u := authority(t, db)
		d.SessionFor = 14 * 24 * time.Hour
		_, apiKey := key(t, d, u, parley.APIKey)
		_, session := key(t, d, u, parley.Session)
		_, cookie := key(t, d, u, parley.Console)
		stands := func(token string) bool {
			t.Helper()
			_, err := d.Authenticate(t.Context(), token, parley.APIKey, parley.Session, parley.Console)
			if err != nil && !errors.Is(err, auth.ErrUnauthenticated) {
				t.Fatal(err)
			}
			return err == nil
		}
		rows := func() (n int) {
			for _, token := range []string{apiKey, session, cookie} {
				id, _, _ := auth.ParseToken(token)
				if _, _, _, err := db.Credential(t.Context(), id); err == nil {
					n++
				}
			}
			return n
		}
		for day := range 42 {
			live := day < 14
			if !stands(apiKey) || stands(session) != live || stands(cookie) != live {
				t.Fatalf("day %d: key %t, session %t, console %t", day, stands(apiKey), stands(session), stands(cookie))
			}
			if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Expire(ctx, parley.Now())
				return err
			}); err != nil {
				t.Fatal(err)
			}
			// they end at day 14 exactly; the sweep comes after that
			if want := map[bool]int{true: 3, false: 1}[day <= 14]; rows() != want {
				t.Fatalf("day %d: %d rows, want %d", day, rows(), want)
			}
			time.Sleep(24 * time.Hour)
		}
	})
}

// Codes of a second factor keep their limit where passwords have none.
func TestCodesAlwaysLimited(t *testing.T) {
	l, now := auth.NewLogins(auth.Rate{}), time.Now()
	for i := range 1000 {
		if _, err := l.Try("192.0.2.1", "ann@example.com", now); err != nil {
			t.Fatalf("the password %d was refused: %v", i, err)
		}
	}
	wrong := 0
	for range 1000 {
		if _, err := l.TryCode("1/0", now); err == nil {
			wrong++
		}
	}
	if wrong != 10 {
		t.Errorf("%d wrong codes were taken", wrong)
	}
}
