package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"parley/internal/blob"
	"parley/internal/detector"
	"parley/internal/egress"
	"parley/internal/keyring"
	"parley/internal/mail"
	"parley/internal/parley"
	"parley/internal/store"
)

type doctorCmd struct{}

// finding is one line of the doctor's report.
type finding struct {
	state string // ok, note, FAIL
	what  string
	text  string
}

// Run looks at everything that a server with these settings would need, and says how to mend what is missing. It
// fails when something would keep the server from working.
func (c *doctorCmd) Run(s *Settings, t *terminal) error {
	ctx, cancel := context.WithTimeout(t, 30*time.Second)
	defer cancel()
	database, keys := checkDatabase(ctx, s)
	found := []finding{checkData(s), database, checkBlob(ctx, s), checkSecret(s), checkPrices(s),
		checkListen(s), checkTLS(s), checkPublicURL(s)}
	found = append(found, keys...)
	found = append(found, checkCarrier(ctx, s))
	for _, c := range s.channels {
		if c.Check != nil {
			for _, f := range c.Check(ctx, s.publicURL()) {
				found = append(found, finding{f.State, f.What, f.Text})
			}
		}
	}
	found = append(found, checkTelephone(s)...)
	found = append(found, checkSTIR(ctx, s)...)
	found = append(found, checkBrowsers(s), checkDetector(ctx, s), checkMail(ctx, s), checkIssuer(ctx, s), checkPayments(ctx, s))
	found = append(found, checkOpen(s)...)
	var failed []string
	for _, f := range found {
		if f.state == "FAIL" {
			failed = append(failed, f.what)
		}
		fmt.Fprintf(t.Out, "%-5s %-15s %s\n", f.state, f.what, f.text)
	}
	if len(failed) > 0 { // by name: the lines above may be cut off where the log is read
		return fmt.Errorf("%d of %d checks failed: %s", len(failed), len(found), strings.Join(failed, ", "))
	}
	return nil
}

// checkVendors asks the vendors, with the keys of the settings and those in the database, and says which one was tried.
func checkVendors(ctx context.Context, s *Settings, db *store.DB) (found []finding) {
	list, err := keyring.CheckStored(ctx, db, s.vendors, s.entered.hide)
	if err != nil {
		found = append(found, finding{parley.DoctorFail, "providers' keys", fmt.Sprintf("the keys that were entered can't be read: %v", err)})
		list, _ = keyring.CheckStored(ctx, nil, s.vendors, s.entered.hide)
	}
	for _, v := range list {
		key := map[string]string{keyring.Environment: " (key from the settings)",
			keyring.Entered: " (key entered in the console)"}[v.Source]
		for _, f := range v.Findings {
			if f.State != parley.DoctorNote { // notes are about what is missing
				f.Text += key
			}
			found = append(found, finding{f.State, f.What, f.Text})
		}
		for _, f := range v.Retiring {
			found = append(found, finding{f.State, f.What, f.Text})
		}
	}
	return found
}

// checkDetector asks the external turn detector something.
func checkDetector(ctx context.Context, s *Settings) finding {
	d, err := detector.Open(s.TurnDetectorURL, s.TurnDetectorKey)
	if err != nil {
		return finding{parley.DoctorFail, "turn detector", err.Error()}
	}
	f := d.Check(ctx)
	return finding{f.State, f.What, f.Text}
}

// checkMail signs in to the mail server.
func checkMail(ctx context.Context, s *Settings) finding {
	m, err := mail.Open(s.SMTPURL, s.SMTPFrom)
	if err != nil {
		return finding{parley.DoctorFail, "e-mail", err.Error()}
	}
	f := m.Check(ctx)
	return finding{f.State, f.What, f.Text}
}

// checkIssuer asks the OpenID Connect issuer who it is.
func checkIssuer(ctx context.Context, s *Settings) finding {
	i, err := s.issuer(nil, egress.New([]netip.Addr{s.ExternalIP}, s.EgressAllow...))
	if err != nil {
		return finding{parley.DoctorFail, "sign-in", err.Error()}
	}
	f := i.Check(ctx)
	return finding{f.State, f.What, f.Text}
}

func checkPayments(ctx context.Context, s *Settings) finding {
	const what = "payments"
	t, err := s.payments(nil)
	switch {
	case err != nil:
		return finding{"FAIL", what, err.Error()}
	case t == nil:
		return finding{"note", what, "nobody can pay by card. Set PARLEY_STRIPE_SECRET_KEY"}
	}
	defer t.Close()
	if err := t.Ping(ctx); err != nil {
		return finding{"FAIL", what, err.Error()}
	}
	if s.StripeWebhookSecret == "" {
		return finding{"note", what,
			"by card, over Stripe. Without PARLEY_STRIPE_WEBHOOK_SECRET, a payment may become credit only within ten minutes"}
	}
	return finding{"ok", what, "by card, over Stripe"}
}

func checkData(s *Settings) finding {
	if err := os.MkdirAll(s.Data, 0o700); err != nil {
		return finding{"FAIL", "data directory", fmt.Sprintf("%v: choose another with PARLEY_DATA", err)}
	}
	probe, err := os.CreateTemp(s.Data, "doctor-*")
	if err != nil {
		return finding{"FAIL", "data directory", fmt.Sprintf("%s can't be written: %v", s.Data, err)}
	}
	probe.Close()
	os.Remove(probe.Name())
	var fs syscall.Statfs_t
	if err := syscall.Statfs(s.Data, &fs); err == nil {
		if free := fs.Bavail * uint64(fs.Bsize) >> 20; free < 500 {
			return finding{"note", "data directory", fmt.Sprintf("%s has only %d MB left on its disk", s.Data, free)}
		}
	}
	abs, _ := filepath.Abs(s.Data)
	return finding{"ok", "data directory", abs}
}

// checkBlob stores something and reads it back.
func checkBlob(ctx context.Context, s *Settings) finding {
	const what = "uploads"
	where := cmp.Or(s.Blob, filepath.Join(s.Data, "blobs"))
	fail := func(err error) finding {
		return finding{"FAIL", what, fmt.Sprintf("it can't be written to: %v; choose another place with PARLEY_BLOB", err)}
	}
	store, err := blob.Open(where)
	if err != nil {
		return fail(err)
	}
	name := "doctor/" + rand.Text()
	if _, err := store.Put(ctx, name, strings.NewReader(name)); err != nil {
		return fail(err)
	}
	defer store.Delete(ctx, name) //nolint:errcheck // it is a few bytes
	o, err := store.Open(ctx, name)
	if err != nil {
		return fail(err)
	}
	defer o.Close()
	if got, err := io.ReadAll(o); err != nil || string(got) != name {
		return fail(fmt.Errorf("what was written is read back as %q, %v", got, err))
	}
	if strings.HasPrefix(where, "s3://") {
		return finding{"ok", what, "S3 can be written and read"} // its address holds a secret
	}
	return finding{"ok", what, where + " takes and gives"}
}

// checkDatabase looks at the database, and asks the vendors with the keys that are in it.
func checkDatabase(ctx context.Context, s *Settings) (f finding, vendors []finding) {
	fail := func(err error) (finding, []finding) {
		return finding{parley.DoctorFail, "database", err.Error()}, checkVendors(ctx, s, nil)
	}
	o, err := s.dbOptions()
	if err != nil {
		return fail(err)
	}
	db, err := store.Open(ctx, o)
	if err != nil {
		return fail(err)
	}
	defer db.Close()
	switch done, err := db.Migrated(ctx); {
	case err != nil:
		return fail(err)
	case !done: // a former version's may have no table of keys
		return finding{parley.DoctorNote, "database", engine(db) +
			" answers; the next start (or 'parley migrate') updates its schema"}, checkVendors(ctx, s, nil)
	}
	f = finding{parley.DoctorOK, "database", engine(db) + " answers, schema up to date"}
	if s.Database != "" && store.Plain(s.Database) {
		f = finding{parley.DoctorNote, "database",
			f.text + "; it is on another machine, and sslmode lets what is said to it be read on the way: sslmode=verify-full does not"}
	}
	return f,
		append(checkVendors(ctx, s, db), checkPresets(ctx, s, db)...)
}

func checkSecret(s *Settings) finding {
	switch _, err := s.secret(); {
	case err != nil:
		return finding{"FAIL", "secret key", err.Error()}
	case s.SecretKey == "" && s.Database != "":
		return finding{"note", "secret key",
			"generated in the data directory: set PARLEY_SECRET_KEY to the same value on all nodes that share the database"}
	case s.SecretKey == "":
		return finding{"ok", "secret key", filepath.Join(s.Data, "secret.key") + " (keep a copy with your backups)"}
	}
	return finding{"ok", "secret key", "from PARLEY_SECRET_KEY"}
}

func checkPrices(s *Settings) finding {
	switch _, err := s.prices(); {
	case err != nil:
		return finding{"FAIL", "prices", err.Error()}
	case s.Prices == "":
		return finding{"ok", "prices", "embedded defaults ('parley prices' prints them)"}
	}
	return finding{"ok", "prices", s.Prices}
}

func checkListen(s *Settings) finding {
	l, err := net.Listen("tcp", s.Listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return finding{"note", "listen", s.Listen +
			" is in use: a server is running there already, or choose another with PARLEY_LISTEN"}
	case err != nil:
		return finding{"FAIL", "listen", err.Error()}
	}
	l.Close()
	return finding{"ok", "listen", s.Listen + " is free"}
}

func checkTLS(s *Settings) finding {
	switch {
	case s.TLSCert == "" && s.TLSKey == "":
		return finding{"ok", "tls", "off (put a proxy in front, or set PARLEY_TLS_CERT and PARLEY_TLS_KEY)"}
	case s.TLSCert == "" || s.TLSKey == "":
		return finding{"FAIL", "tls", "set both PARLEY_TLS_CERT and PARLEY_TLS_KEY, or neither"}
	}
	for _, path := range []string{s.TLSCert, s.TLSKey} {
		if _, err := os.ReadFile(path); err != nil {
			return finding{"FAIL", "tls", err.Error()}
		}
	}
	return finding{"ok", "tls", s.TLSCert}
}

func checkPublicURL(s *Settings) finding {
	host, _, _ := net.SplitHostPort(s.Listen)
	switch ip := net.ParseIP(host); {
	case s.PublicURL != "" && !strings.HasPrefix(s.PublicURL, "http://") && !strings.HasPrefix(s.PublicURL, "https://"):
		return finding{"FAIL", "public url", "PARLEY_PUBLIC_URL must begin with http:// or https://"}
	case s.prefixed() != nil:
		return finding{"FAIL", "public url", s.prefixed().Error()}
	case s.PublicURL == "" && ip != nil && !ip.IsLoopback():
		return finding{"note", "public url",
			"not set: links use the address of the request; set PARLEY_PUBLIC_URL if others must reach this server"}
	case s.PublicURL == "":
		return finding{"ok", "public url", "not set; fine on one machine"}
	}
	return finding{"ok", "public url", s.PublicURL}
}
