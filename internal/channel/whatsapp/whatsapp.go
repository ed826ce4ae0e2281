// Package whatsapp is the channel of WhatsApp messages, over one Business account of Meta's.
package whatsapp

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/riverqueue/river"

	"parley/internal/billing"
	"parley/internal/channel"
	"parley/internal/channel/whatsapp/graph"
	"parley/internal/chat"
	"parley/internal/parley"
	"parley/internal/store"
)

// Channel is where messages go to and come from WhatsApp: one Business account, whose numbers (senders) the operator
// gives to users.
//
// The platform is told the row's name of a message (biz_opaque_callback_data): so an answer that got lost, in the
// network or with a killed server, is made up for by the first status that the platform tells. It knows no message by
// our name before it has taken it, and takes the same one twice: a reply whose answer got lost is sent again, unless
// a status has told meanwhile that it went out; what a user sends is not.
type Channel struct {
	DB     *store.DB
	Prices *billing.Prices
	Chat   *chat.Chat    // answers what comes in; it tells our Replied of replies
	Graph  *graph.Client // nil: WhatsApp is not configured, and there are no senders

	AppSecret   string // signs webhooks; without it none is believed
	VerifyToken string // what the platform proves itself with when a webhook is set up
}

// The codes of failures.
const (
	senderNotFound     = "SENDER_NOT_FOUND"
	senderOffline      = "SENDER_OFFLINE"
	templateNotFound   = "TEMPLATE_NOT_FOUND"
	templateUnapproved = "TEMPLATE_NOT_APPROVED"
	templateMismatch   = "TEMPLATE_MISMATCH"
	sessionExpired     = "SESSION_EXPIRED"
	invalidPhone       = "INVALID_PHONE"
	insufficient       = "INSUFFICIENT_BALANCE"
	noAssistant        = "ASSISTANT_REQUIRED"
	sendFailed         = "SEND_FAILED"
)

func coded(kind parley.Kind, code, format string, a ...any) *parley.Error {
	e := parley.Errorf(kind, format, a...)
	e.Code = code
	return e
}

type (
	syncArgs    struct{} // senders and templates follow the platform
	sweepArgs   struct{}
	deliverArgs struct { // a reply is to be sent
		ID int64 `json:"id"`
	}
)

func (syncArgs) Kind() string    { return "whatsapp_sync" }
func (sweepArgs) Kind() string   { return "whatsapp_sweep" }
func (deliverArgs) Kind() string { return "whatsapp_deliver" }

// AddWorkers registers the workers of WhatsApp's jobs.
func (w *Channel) AddWorkers(to *river.Workers) {
	river.AddWorker(to, channel.Work(func(ctx context.Context, _ syncArgs) error { return w.Sync(ctx) }))
	river.AddWorker(to, channel.Work(func(ctx context.Context,
		_ sweepArgs) error {
		return w.Sweep(ctx, parley.Now())
	}))
	river.AddWorker(to, &postman{w: w})
}

// postman sends replies.
type postman struct {
	river.WorkerDefaults[deliverArgs]
	w *Channel
}

func (p *postman) Work(ctx context.Context, j *river.Job[deliverArgs]) error {
	ctx, cancel := context.WithTimeout(ctx, abandoned)
	defer cancel()
	err := p.w.resume(ctx, j.Args.ID, parley.Now())
	if errors.Is(err, channel.ErrNotYet) {
		return river.JobSnooze(inTurn)
	}
	return err
}

// NextRetry is sooner than usual: somebody waits. After the last attempt the sweep goes on.
func (p *postman) NextRetry(j *river.Job[deliverArgs]) time.Time {
	return time.Now().Add(time.Second << (j.Attempt - 1))
}

// Periodic are the jobs that time causes.
func (w *Channel) Periodic() []*river.PeriodicJob {
	if w.Graph == nil {
		return nil
	}
	return []*river.PeriodicJob{channel.Every(5*time.Minute, syncArgs{}), channel.Every(30*time.Second, sweepArgs{})}
}

// Sync brings senders and templates up to date. Whatever could not be fetched stays as it was.
func (w *Channel) Sync(ctx context.Context) error {
	if w.Graph == nil {
		return nil
	}
	senders, err := w.Graph.Senders(ctx)
	if err == nil {
		err = w.DB.Write(ctx, func(ctx context.Context,
			tx *store.Tx) error {
			return tx.KeepWhatsAppSenders(ctx, senders)
		})
	}
	templates, failed := w.Graph.Templates(ctx)
	if failed == nil {
		failed = w.DB.Write(ctx, func(ctx context.Context,
			tx *store.Tx) error {
			return tx.KeepWhatsAppTemplates(ctx, templates)
		})
	}
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("synchronise WhatsApp: %w", err)
	}
	return nil
}

// Assign gives the sender with a phone number to a user.
func (w *Channel) Assign(ctx context.Context, phone string, userID int64) (*parley.WhatsAppSender, error) {
	find := func() (*parley.WhatsAppSender, error) {
		list, err := w.DB.AllWhatsAppSenders(ctx)
		var known []string
		for i := range list {
			if list[i].PhoneNumber == graph.Phone(phone) {
				return &list[i], nil
			}
			known = append(known, list[i].PhoneNumber)
		}
		if err == nil {
			err = fmt.Errorf("the WhatsApp account has no sender %s (it has: %s)", phone, strings.Join(known, ", "))
		}
		return nil, err
	}
	s, err := find()
	if err != nil && w.Graph != nil { // perhaps no server has looked yet
		if err := w.Sync(ctx); err != nil {
			return nil, err
		}
		s, err = find()
	}
	if err != nil {
		return nil, err
	}
	return s, w.DB.Write(ctx, func(ctx context.Context,
		tx *store.Tx) error {
		return tx.AssignWhatsAppSender(ctx, s.ID, userID)
	})
}

// Senders are the user's senders; status "" is any.
func (w *Channel) Senders(ctx context.Context, userID int64, status string) ([]parley.WhatsAppSender, error) {
	if w.Graph == nil {
		return []parley.WhatsAppSender{}, nil
	}
	return w.DB.WhatsAppSenders(ctx, userID, status)
}

// Sender is one of the user's senders.
func (w *Channel) Sender(ctx context.Context, userID, id int64) (*parley.WhatsAppSender, error) {
	missing := coded(parley.NotFound, senderNotFound, "WhatsApp sender not found")
	if w.Graph == nil {
		return nil, missing
	}
	s, err := w.DB.WhatsAppSender(ctx, userID, id)
	if store.IsNotFound(err) {
		return nil, missing
	}
	return s, err
}

// SetAssistant has one of the user's assistants answer a sender, or nobody (nil). A foreign assistant is the field's
// error.
func (w *Channel) SetAssistant(ctx context.Context, userID, id int64, assistantID *int64) (*parley.WhatsAppSender,
	error) {
	s, err := w.Sender(ctx, userID, id)
	if err != nil {
		return nil, err
	}
	if assistantID != nil {
		_, err := w.DB.Assistant(ctx, userID, *assistantID)
		if store.IsNotFound(err) {
			return nil, parley.Fields{{Name: "assistant_id",
				Messages: []string{"The selected assistant_id is invalid."}}}.Err()
		}
		if err != nil {
			return nil, err
		}
	}
	s.AssistantID = assistantID
	return s, w.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.SetSenderAssistant(ctx, userID, id, assistantID)
	})
}

// keeper is the assistant in whose name a sender's conversations are kept, and whether it answers them: the sender's
// own does, when it is active; without one the user's oldest only keeps them, so that nothing is lost.
func (w *Channel) keeper(ctx context.Context, userID int64, s *parley.WhatsAppSender) (a *parley.Assistant,
	answers bool, err error) {
	if s.AssistantID != nil {
		a, err = w.DB.Assistant(ctx, userID, *s.AssistantID)
		if err == nil || !store.IsNotFound(err) {
			return a, err == nil && a.Status == "active", err
		}
	}
	a, err = w.DB.OldestAssistant(ctx, userID)
	if store.IsNotFound(err) {
		return nil, false, nil
	}
	return a, false, err
}

// phone is a customer's number in E.164: a valid one, or one that has written to the sender already.
func (w *Channel) phone(ctx context.Context, userID int64, s *parley.WhatsAppSender, text string) (string, error) {
	if phone, ok := parley.NormalizePhone(text); ok {
		return phone, nil
	}
	if user := graph.UserID(text); user != "" {
		last, err := w.DB.LastWhatsApp(ctx, userID, s.ID, user)
		if err != nil || last != 0 {
			return user, err
		}
	}
	if phone := graph.Phone(text); phone != "" && strings.HasPrefix(strings.TrimSpace(text), "+") {
		last, err := w.DB.LastWhatsApp(ctx, userID, s.ID, phone)
		if err != nil || last != 0 {
			return phone, err
		}
	}
	return "", coded(parley.Invalid, invalidPhone,
		"The recipient's phone number is not valid. Write it in international format, such as +14155552671.")
}

// Session says what may be sent to a customer now, and whether there is a conversation with them.
func (w *Channel) Session(ctx context.Context, userID, senderID int64, phone string) (s parley.WhatsAppSession,
	talked bool, err error) {
	sender, err := w.Sender(ctx, userID, senderID)
	if err != nil {
		return s, false, err
	}
	if phone, err = w.phone(ctx, userID, sender, phone); err != nil {
		return s, false, err
	}
	last, err := w.DB.LastWhatsApp(ctx, userID, senderID, phone)
	if err != nil {
		return s, false, err
	}
	if a, _, err := w.keeper(ctx, userID, sender); err != nil {
		return s, false, err
	} else if a != nil {
		_, err := w.DB.CustomerConversation(ctx, a.ID, parley.WhatsAppConversation, phone)
		if talked = err == nil; err != nil && !store.IsNotFound(err) {
			return s, false, err
		}
	}
	return parley.SessionAt(last, parley.Now()), talked, nil
}

// Sweep sends the replies that a dead server, or the platform's bad hour, has left behind, and ends what stands too
// long.
func (w *Channel) Sweep(ctx context.Context, now parley.Time) error {
	list, err := w.DB.StrandedWhatsApp(ctx, now.Add(-abandoned), 200)
	if err != nil {
		return err
	}
	var failed []error
	for i := range list {
		m := &list[i]
		switch old := now.Sub(m.UpdatedAt); {
		case m.MessageID != 0:
			if err := w.resume(ctx, m.ID, now); err != nil && !errors.Is(err, channel.ErrNotYet) {
				slog.WarnContext(ctx, "a WhatsApp reply is still not sent", "message", m.ID, "error", err)
			}
		case old > hopeless:
			failed = append(failed, w.end(ctx, m.ID, "WhatsApp did not answer"))
		}
	}
	return errors.Join(failed...)
}

const (
	abandoned = time.Minute      // a request to the platform takes a third of it
	inTurn    = time.Second      // when a reply looks again whether those before it are sent
	hopeless  = 15 * time.Minute // no status has come for what the platform was asked to send
)

// Verifies says whether a token is the one that the webhook was set up with.
func (w *Channel) Verifies(token string) bool {
	return w.VerifyToken != "" && subtle.ConstantTimeCompare([]byte(token), []byte(w.VerifyToken)) == 1
}
