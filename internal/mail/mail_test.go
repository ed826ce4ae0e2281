package mail_test

import (
	"context"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/riverqueue/river"

	"parley/internal/mail"
	"parley/internal/mail/mailtest"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// TestMain has the test server's certificate trusted, as that of a mail server is.
func TestMain(m *testing.M) {
	h := httptest.NewTLSServer(nil)
	h.Close()
	dir, err := os.MkdirTemp("", "mail")
	if err != nil {
		panic(err)
	}
	path := filepath.Join(dir, "root.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
	if err := os.WriteFile(path, block, 0o600); err != nil {
		panic(err)
	}
	os.Setenv("SSL_CERT_FILE", path)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

const from = "Parley <parley@example.com>"

func open(t *testing.T, address string) *mail.Sender {
	t.Helper()
	s, err := mail.Open(address, from)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSend(t *testing.T) {
	server := mailtest.Serve(t)
	server.User, server.Password = "bob", "p w/ö"
	s := open(t, "smtp://bob:p%20w%2F%C3%B6@"+server.Address)
	m := mail.Message{To: "Ann Ö <ann@example.org>", Subject: "Zwölf Anrufe", ID: "alert7",
		Text: "Line one is äöü.\n.\nA line after a dot, and a long one: " + strings.Repeat("word ", 60) + "end."}
	if err := s.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	got := server.Wait(1)[0]
	if !got.TLS || got.User != "bob" || got.From != "parley@example.com" || got.To != "ann@example.org" || got.Text != m.Text {
		t.Errorf("got %+v", got)
	}
	if id := got.Header.Get("Message-Id"); !strings.HasPrefix(id, "<alert7@") {
		t.Errorf("the id is %s", id)
	}
	if f := s.Check(t.Context()); f.State != parley.DoctorOK {
		t.Errorf("the check finds %+v", f)
	}
}

// A password never goes over a connection that others can read, unless that was asked for.
func TestEncrypted(t *testing.T) {
	server := mailtest.Serve(t)
	server.Plain = true
	server.User, server.Password = "bob", "secret-password"
	s := open(t, "smtp://bob:secret-password@"+server.Address)
	if err := s.Send(t.Context(), mail.Message{To: "a@example.org"}); err == nil || len(server.Messages()) > 0 {
		t.Errorf("sent without TLS: %v", err)
	}
	if f := s.Check(t.Context()); f.State != parley.DoctorFail || strings.Contains(f.Text, "secret-password") {
		t.Errorf("the check finds %+v", f)
	}
	if err := open(t, server.URL()).Send(t.Context(), mail.Message{To: "a@example.org", Text: "x"}); err != nil {
		t.Errorf("with tls=off: %v", err)
	}
}

func TestOpen(t *testing.T) {
	for address, want := range map[string]string{"": "", "smtp://h": "", "smtps://u:p@h:4650": "", "http://h": "smtp://",
		"smtp://": "name a host", "smtp://u:p%zz@h": "not a URL", "h:25": "smtp"} {
		_, err := mail.Open(address, from)
		if got := err != nil; got != (want != "") || got && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
		if err != nil && strings.Contains(err.Error(), "zz") {
			t.Errorf("the error tells the password: %v", err)
		}
	}
	if _, err := mail.Open("smtp://h", ""); err == nil || !strings.Contains(err.Error(), "PARLEY_SMTP_FROM") {
		t.Errorf("without a sender's address: %v", err)
	}
	if err := new(mail.Sender).Send(t.Context(), mail.Message{To: "a@example.org"}); err != mail.ErrOff {
		t.Errorf("without a mail server: %v", err)
	}
}

// work works the queue until stop is called, or the test ends.
func work(t *testing.T, db *store.DB, s *mail.Sender) (stop func()) {
	workers := river.NewWorkers()
	s.AddWorkers(workers, db)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error)
	go func() {
		done <- db.Work(ctx, context.Background(), store.Jobs{Workers: workers,
			Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}}})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// A queued message is sent if its transaction was committed, and again while the server can't take it. One that is
// refused for good doesn't hold up the others.
func TestQueue(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		server := mailtest.Serve(t)
		server.Deferred, server.Refused = 1, "gone@example.org"
		s := open(t, server.URL())
		queue := func(to, text string, fail error) {
			t.Helper()
			err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				if sent, err := s.Queue(ctx, tx, mail.Message{Kind: mail.Confirmation, To: to, Text: text}); err != nil || !sent {
					t.Errorf("sent: %v, %v", sent, err)
				}
				return fail
			})
			if err != fail {
				t.Fatal(err)
			}
		}
		queue("gone@example.org", "refused", nil)
		queue("ann@example.org", "never", context.Canceled)
		queue("ann@example.org", "the text", nil)
		stop := work(t, db, s)
		got := server.Wait(1)
		stop()
		if len(got) != 1 || got[0].To != "ann@example.org" || got[0].Text != "the text" {
			t.Errorf("got %+v", got)
		}
		if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := s.Queue(ctx, tx, mail.Message{To: "not an address"})
			return err
		}); err == nil {
			t.Error("an address that is none is queued")
		}
	})
}
