package api

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"parley/internal/auth"
	"parley/internal/channel/whatsapp"
	"parley/internal/channel/whatsapp/graph"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/web"
)

func (a *API) whatsAppRoutes() {
	const tag, missing = "WhatsApp", "WhatsApp sender not found"
	handle(a, op{Method: "GET", Path: "/user/whatsapp/senders", Name: "listWhatsAppSenders", Tag: tag,
		Family: whatsApp, Summary: "List WhatsApp senders"}, a.listSenders)
	handle(a, op{Method: "PUT", Path: "/user/whatsapp/senders/{id}", Name: "updateWhatsAppSender", Tag: tag,
		Family: whatsApp, NotFound: missing, Summary: "Choose the assistant that answers for a sender"}, a.updateSender)
	handle(a, op{Method: "GET", Path: "/user/whatsapp/senders/{id}/templates", Name: "listWhatsAppTemplates",
		Tag: tag, Family: whatsApp, NotFound: missing, Summary: "List the templates that a sender can send"},
		a.listTemplates)
	handle(a, op{Method: "POST", Path: "/user/whatsapp/send", Name: "sendWhatsAppTemplate", Tag: tag,
		Family: whatsApp, Idempotent: true, Summary: "Send a template"}, a.sendTemplate)
	handle(a, op{Method: "POST", Path: "/user/whatsapp/send-freeform", Name: "sendWhatsAppText", Tag: tag,
		Family: whatsApp, Idempotent: true, Summary: "Send free text, within 24 hours of the customer's last message"}, a.sendFreeform)
	handle(a, op{Method: "GET", Path: "/user/whatsapp/session-status", Name: "getWhatsAppSession", Tag: tag,
		Family: whatsApp, Summary: "Whether free text may be sent to a customer now"}, a.whatsAppSession)
}

type sender struct {
	parley.WhatsAppSender
	MessagingLimitFormatted string `json:"messaging_limit_formatted"`
}

func senderOf(s parley.WhatsAppSender) sender {
	if s.MessagingLimit == nil {
		return sender{s, "Unlimited"}
	}
	digits := strconv.FormatInt(*s.MessagingLimit, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sender{s, digits + " / 24hr"}
}

type senderQuery struct {
	Status string `query:"status" enum:"online,offline,all" default:"online"`
}

type dataList[T any] struct {
	Data []T `json:"data"`
}

func (a *API) listSenders(ctx context.Context, r *request, in *senderQuery) (*dataList[sender], error) {
	status := in.Status
	switch status {
	case "":
		status = parley.SenderOnline
	case "all":
		status = ""
	}
	list, err := a.WhatsApp.Senders(ctx, r.UserID(), status)
	out := &dataList[sender]{Data: make([]sender, len(list))}
	for i, s := range list {
		out.Data[i] = senderOf(s)
	}
	return out, err
}

type senderChange struct {
	byID
	Body struct {
		AssistantID *int64 `json:"assistant_id" format:"assistant" doc:"null: nobody answers."`
	}
}

func (a *API) updateSender(ctx context.Context, r *request, in *senderChange) (*messageData[sender], error) {
	if _, sent := r.Body["assistant_id"]; !sent {
		var f parley.Fields
		f.Add("assistant_id", "is required.")
		return nil, f.Err()
	}
	s, err := a.WhatsApp.SetAssistant(ctx, r.UserID(), in.ID, in.Body.AssistantID)
	if err != nil {
		return nil, err
	}
	return &messageData[sender]{"WhatsApp sender updated successfully", senderOf(*s)}, nil
}

type templateQuery struct {
	byID
	Status string `query:"status" enum:"approved,all" default:"approved"`
}

type whatsAppTemplate struct {
	parley.WhatsAppTemplate
	Variables    []string `json:"variables"`
	HasVariables bool     `json:"has_variables"`
}

func (a *API) listTemplates(ctx context.Context, r *request, in *templateQuery) (*dataList[whatsAppTemplate], error) {
	if _, err := a.WhatsApp.Sender(ctx, r.UserID(), in.ID); err != nil {
		return nil, err
	}
	status := parley.TemplateApproved
	if in.Status == "all" {
		status = ""
	}
	list, err := a.DB.WhatsAppTemplates(ctx, status)
	slices.SortFunc(list, func(x, y parley.WhatsAppTemplate) int { return cmp.Compare(y.ID, x.ID) }) // the newest first
	out := &dataList[whatsAppTemplate]{Data: make([]whatsAppTemplate, len(list))}
	for i, t := range list {
		names := t.Variables()
		out.Data[i] = whatsAppTemplate{t, names, len(names) > 0}
	}
	return out, err
}

type templateSend struct {
	Body struct {
		SenderID       int64             `json:"sender_id" required:"true"`
		TemplateID     int64             `json:"template_id" required:"true"`
		RecipientPhone string            `json:"recipient_phone" required:"true" maxLength:"255" reads:"phone" doc:"International format, such as +14155552671."`
		RecipientName  string            `json:"recipient_name" maxLength:"255" doc:"Becomes {{customer_name}} in the conversation."`
		Variables      map[string]string `json:"variables" maxProperties:"100" format:"variables" doc:"A value for each of the template's variables."`
	}
}

type textSend struct {
	Body struct {
		SenderID       int64  `json:"sender_id" required:"true"`
		RecipientPhone string `json:"recipient_phone" required:"true" maxLength:"255" reads:"phone" doc:"International format, such as +14155552671."`
		Message        string `json:"message" required:"true" maxLength:"4096"`
	}
}

type sentMessage struct {
	Success           bool   `json:"success"`
	ConversationID    string `json:"conversation_id"`
	MessageID         int64  `json:"message_id"`
	WhatsAppMessageID string `json:"whatsapp_message_id"`
	Status            string `json:"status"`
}

func (a *API) sendTemplate(ctx context.Context, r *request, in *templateSend) (*sentMessage, error) {
	b := in.Body
	if b.TemplateID == 0 { // what the channel takes for a text
		b.TemplateID = -1
	}
	return a.sendWhatsApp(ctx, r, whatsapp.Outgoing{SenderID: b.SenderID, TemplateID: b.TemplateID,
		Phone: b.RecipientPhone, Name: b.RecipientName, Variables: b.Variables})
}

func (a *API) sendFreeform(ctx context.Context, r *request, in *textSend) (*sentMessage, error) {
	return a.sendWhatsApp(ctx, r, whatsapp.Outgoing{SenderID: in.Body.SenderID, Phone: in.Body.RecipientPhone,
		Text: in.Body.Message})
}

func (a *API) sendWhatsApp(ctx context.Context, r *request, o whatsapp.Outgoing) (*sentMessage, error) {
	if _, err := a.limitWhatsApp.Take(strconv.FormatInt(r.Who.Key.ID, 10), time.Now()); err != nil {
		return nil, err
	}
	m, err := a.WhatsApp.Send(ctx, r.UserID(), o)
	var busy *whatsapp.Busy
	if errors.As(err, &busy) {
		return nil, &parley.Undone{Err: &auth.LimitError{RetryAfter: int(math.Ceil(busy.After.Seconds()))}}
	}
	var e *parley.Error
	if errors.As(err, &e) && e.Kind == parley.Upstream {
		return nil, &unsettled{web.Status(e.Kind), whatsApp.shape(e)}
	}
	if err != nil {
		return nil, err
	}
	return &sentMessage{true, m.ConversationID, m.MessageID, m.WAMID, m.Status}, nil
}

type sessionQuery struct {
	SenderID       int64  `query:"sender_id" doc:"Required."`
	RecipientPhone string `query:"recipient_phone" maxLength:"255" reads:"phone" doc:"Required; international format."`
}

type sessionAnswer struct {
	Success         bool                   `json:"success"`
	HasConversation bool                   `json:"has_conversation"`
	SessionStatus   parley.WhatsAppSession `json:"session_status"`
}

func (a *API) whatsAppSession(ctx context.Context, r *request, in *sessionQuery) (*sessionAnswer, error) {
	var f parley.Fields
	for _, name := range []string{"sender_id", "recipient_phone"} {
		if !named(r, name) {
			f.Add(name, "is required.")
		}
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	session, talked, err := a.WhatsApp.Session(ctx, r.UserID(), in.SenderID, in.RecipientPhone)
	return &sessionAnswer{true, talked, session}, err
}

// webhookLimit bounds what the platform may tell at once; it says 3 MB.
const webhookLimit = 4 << 20

// WhatsAppWebhook is what the platform calls: GET once, to see that it is we, POST with what happened. A POST is
// answered 200 when what it told is stored; otherwise the platform tells it again.
func (a *API) WhatsAppWebhook(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int) { send(w, status, errorBody{Message: http.StatusText(status)}) }
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		q := r.URL.Query()
		if q.Get("hub.mode") != "subscribe" || !a.WhatsApp.Verifies(q.Get("hub.verify_token")) {
			refuse(http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("X-Content-Type-Options", "nosniff")
		io.WriteString(w, q.Get("hub.challenge"))
		return
	case http.MethodPost:
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		refuse(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, webhookLimit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		refuse(http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		refuse(http.StatusBadRequest)
		return
	case !graph.Verify(a.WhatsApp.AppSecret, body, r.Header.Get("X-Hub-Signature-256")):
		refuse(http.StatusForbidden)
		return
	}
	told, err := graph.Read(body)
	if err != nil { // signed, and still no JSON: it would be none the next time
		slog.WarnContext(r.Context(), "a WhatsApp webhook can't be read", "error", err)
	} else if err := a.WhatsApp.Receive(context.WithoutCancel(r.Context()), told); err != nil {
		web.NotTaken(w, r, store.Told(err))
		return
	}
	send(w, http.StatusOK, struct{}{})
}
