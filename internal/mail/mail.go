// Package mail sends e-mail by SMTP (RFC 5321), over the mail server that the operator names.
//
// A message is a job: it is queued in the transaction that causes it, and tried again while the mail server can't take it.
// Its text is encrypted while it waits, because it may hold the link of an invitation.
package mail

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/riverqueue/river"
	smtp "github.com/wneessen/go-mail"

	"parley/internal/parley"
	"parley/internal/store"
)

// ErrOff is what a server without a mail server answers.
var ErrOff = errors.New("this server can't send e-mail: set PARLEY_SMTP_URL")

// Message is a text for one reader.
type Message struct {
	Kind    Kind   `json:"-"`
	Account int64  `json:"-"`  // that causes it
	To      string `json:"to"` // an address, as RFC 5322 has it
	Subject string `json:"subject"`
	Text    string `json:"text"`
	ID      string `json:"id"` // the same at every attempt, so that a mailbox can tell a repetition; letters and digits
}

// Sender sends messages. The zero Sender has no mail server.
type Sender struct {
	host string
	from *mail.Address
	how  []smtp.Option
}

// patience bounds a session with the mail server.
const patience = 30 * time.Second

// Open reads the address of a mail server: smtp://USER:PASSWORD@HOST:587, which must offer STARTTLS, or smtps://…:465,
// or smtp://HOST:25?tls=off for one that is reached over a network that can be trusted. An empty address has none.
func Open(address, from string) (*Sender, error) {
	if address == "" {
		return &Sender{}, nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("PARLEY_SMTP_URL is not a URL: use smtp://USER:PASSWORD@HOST:587") // not the reason: it quotes the password
	}
	port := map[string]int{"smtp": 587, "smtps": 465}[u.Scheme]
	if port == 0 || u.Hostname() == "" {
		return nil, errors.New("PARLEY_SMTP_URL must begin with smtp:// or smtps:// and name a host")
	}
	if p := u.Port(); p != "" {
		if port, err = strconv.Atoi(p); err != nil {
			return nil, fmt.Errorf("PARLEY_SMTP_URL: port %s: %w", p, err)
		}
	}
	s := &Sender{host: u.Hostname()}
	if s.from, err = mail.ParseAddress(from); err != nil {
		return nil, fmt.Errorf("PARLEY_SMTP_FROM must be the address that e-mail comes from, such as Parley <parley@example.com>: %w", err)
	}
	s.how = []smtp.Option{smtp.WithPort(port), smtp.WithTimeout(patience)}
	switch off := u.Query().Get("tls") == "off"; {
	case u.Scheme == "smtps":
		s.how = append(s.how, smtp.WithSSL())
	case off:
		s.how = append(s.how, smtp.WithTLSPolicy(smtp.NoTLS))
	default:
		s.how = append(s.how, smtp.WithTLSPolicy(smtp.TLSMandatory))
	}
	if password, ok := u.User.Password(); ok {
		kind := smtp.SMTPAuthAutoDiscover
		if u.Query().Get("tls") == "off" {
			kind = smtp.SMTPAuthPlainNoEnc // autodiscovery sends no password over a plain connection; here that was asked for
		}
		s.how = append(s.how, smtp.WithSMTPAuth(kind), smtp.WithUsername(u.User.Username()), smtp.WithPassword(password))
	}
	return s, nil
}

// On tells whether there is a mail server.
func (s *Sender) On() bool { return s.host != "" }

// Send hands a message to the mail server now.
func (s *Sender) Send(ctx context.Context, m Message) error {
	if !s.On() {
		return ErrOff
	}
	c, err := smtp.NewClient(s.host, s.how...)
	if err != nil {
		return fmt.Errorf("send e-mail: %w", err)
	}
	out := smtp.NewMsg()
	out.FromMailAddress(s.from)
	if err := out.To(m.To); err != nil {
		return fmt.Errorf("send e-mail: %w", permanent{err})
	}
	out.Subject(m.Subject)
	out.SetDate()
	if m.ID != "" {
		out.SetMessageIDWithValue(m.ID + "@" + s.host)
	}
	out.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no out-of-office answers
	out.SetBodyString(smtp.TypeTextPlain, m.Text)
	if err := c.DialAndSendWithContext(ctx, out); err != nil {
		if refused := new(smtp.SendError); errors.As(err, &refused) && !refused.IsTemp() && refused.ErrorCode() >= 500 {
			err = permanent{err}
		}
		return fmt.Errorf("send e-mail: %w", err)
	}
	return nil
}

// permanent is a refusal that another attempt won't change.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Check signs in to the mail server and leaves it again.
func (s *Sender) Check(ctx context.Context) parley.Finding {
	const what = "e-mail"
	if !s.On() {
		return parley.Finding{State: parley.DoctorNote, What: what,
			Text: "no mail server: alerts and invitations are not sent by e-mail. Set PARLEY_SMTP_URL and PARLEY_SMTP_FROM"}
	}
	c, err := smtp.NewClient(s.host, s.how...)
	if err == nil {
		if err = c.DialWithContext(ctx); err == nil {
			err = c.Close()
		}
	}
	if err != nil {
		return parley.Finding{State: parley.DoctorFail, What: what,
			Text: fmt.Sprintf("%s: %v: check PARLEY_SMTP_URL", s.host, err)}
	}
	return parley.Finding{State: parley.DoctorOK, What: what, Text: s.host + " takes messages from " + s.from.Address}
}

// jobArgs hold a message, encrypted.
type jobArgs struct {
	Sealed []byte `json:"sealed"`
}

func (jobArgs) Kind() string { return "mail" }

// InsertOpts end the attempts after about a day: river waits attempt⁴ seconds between them.
func (jobArgs) InsertOpts() river.InsertOpts { return river.InsertOpts{MaxAttempts: 14} }

// what a sealed message is bound to.
const secret = "e-mail"

// Queue has a message sent once the transaction is committed, if the rule for all e-mail lets it out (Kind.may); its subject and its id
// are made here. sent is false where the rule keeps it back.
func (s *Sender) Queue(ctx context.Context, tx *store.Tx, m Message) (sent bool, err error) {
	if !s.On() {
		return false, ErrOff
	}
	address, err := mail.ParseAddress(m.To)
	if err != nil {
		return false, fmt.Errorf("queue e-mail: %w", err)
	}
	if may, err := m.Kind.may(ctx, tx, m.Account, strings.ToLower(address.Address)); err != nil || !may {
		return false, err
	}
	m.Subject, m.ID = subjects[m.Kind], rand.Text()
	plain, err := json.Marshal(m)
	if err != nil {
		return false, fmt.Errorf("queue e-mail: %w", err)
	}
	return true, tx.Enqueue(ctx, jobArgs{tx.Seal(secret, plain)}, nil)
}

// AddWorkers registers what sends queued messages.
func (s *Sender) AddWorkers(to *river.Workers, db *store.DB) {
	river.AddWorker(to, &postman{sender: s, db: db})
}

type postman struct {
	river.WorkerDefaults[jobArgs]
	sender *Sender
	db     *store.DB
}

func (p *postman) Work(ctx context.Context, j *river.Job[jobArgs]) error {
	plain, err := p.db.Unseal(secret, j.Args.Sealed)
	if err != nil {
		return river.JobCancel(fmt.Errorf("send e-mail: %w", err))
	}
	var m Message
	if err := json.Unmarshal(plain, &m); err != nil {
		return river.JobCancel(fmt.Errorf("send e-mail: %w", err))
	}
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	err = p.sender.Send(ctx, m)
	if final := (permanent{}); errors.As(err, &final) || errors.Is(err, ErrOff) {
		return river.JobCancel(err)
	}
	return err
}
