package api

import (
	"context"
	"errors"
	"net/http"

	"parley/internal/channel/sms"
	"parley/internal/parley"
	"parley/internal/store"
)

func (a *API) smsRoutes() {
	const tag, missing = "SMS", "SMS not found"
	handle(a, op{Method: "POST", Path: "/user/sms", Name: "sendSMS", Tag: tag, Idempotent: true,
		Failure: "Failed to send SMS", Summary: "Send a text message from one of your numbers"}, a.sendSMS)
	handle(a, op{Method: "GET", Path: "/user/sms", Name: "listSMS", Tag: tag, Summary: "List text messages"}, a.listSMS)
	handle(a, op{Method: "GET", Path: "/user/sms/{id}", Name: "getSMS", Tag: tag, NotFound: missing,
		Summary: "Read a text message"}, a.getSMS)
	if a.SMS != nil && a.SMS.Sandbox {
		handle(a, op{Method: "GET", Path: "/user/sandbox/outbox", Name: "listOutbox", Tag: tag,
			Summary: "Messages that the sandbox carrier has accepted"}, a.listOutbox)
		handle(a, op{Method: "POST", Path: "/user/sandbox/sms-inbound", Name: "receiveSandboxSMS", Tag: tag,
			Status: 201, Summary: "Simulate an incoming message to one of your numbers"},
			a.receiveSandboxSMS)
	}
}

type newSMS struct {
	Body struct {
		From int64  `json:"from" required:"true" doc:"Id of one of your phone numbers that can send SMS."`
		To   string `json:"to" required:"true" reads:"phone" doc:"Recipient, in international format or as dialled in your country."`
		Body string `json:"body" required:"true" maxLength:"300"`
	}
}

// smsFailure is the answer about a message that the carrier did not take (contract 7.1).
type smsFailure struct {
	Message string `json:"message"`
	Error   string `json:"error"`
}

func (a *API) sendSMS(ctx context.Context, r *request, in *newSMS) (*messageData[*parley.SMS], error) {
	m, err := a.SMS.Send(ctx, r.UserID(), in.Body.From, in.Body.To, in.Body.Body)
	var f *sms.Failure
	if errors.As(err, &f) {
		answer := smsFailure{"Failed to send SMS", f.Reason}
		if f.Unanswered {
			return nil, &unsettled{http.StatusInternalServerError, answer}
		}
		send(r.W, http.StatusInternalServerError, answer)
		return nil, &parley.Undone{Err: errAnswered}
	}
	return &messageData[*parley.SMS]{"SMS sent successfully", m}, err
}

type smsQuery struct {
	pageQuery
	dateQuery
	Status        string `query:"status" enum:"queued,sent,delivered,undelivered,failed"`
	PhoneNumberID int64  `query:"phone_number_id" doc:"Only messages from this number."`
	To            string `query:"to" maxLength:"32" reads:"phone" doc:"Only messages to this number."`
}

// filter is what the store is asked for.
func (q *smsQuery) filter(r *request) store.SMSFilter {
	from, until := q.bounds()
	f := store.SMSFilter{Status: parley.SMSStatus(q.Status), PhoneNumberID: q.PhoneNumberID, To: q.To,
		From: from, Until: until}
	if f.PhoneNumberID == 0 && named(r, "phone_number_id") {
		f.PhoneNumberID = -1 // nobody's
	}
	return f
}

func (a *API) listSMS(ctx context.Context, r *request, in *smsQuery) (*Paginated[parley.SMS], error) {
	p := in.page(15)
	list, total, err := a.DB.SMSPage(ctx, r.UserID(), in.filter(r), p)
	if err != nil {
		return nil, err
	}
	e := envelope(a, r.Request, list, total, p)
	return &e, nil
}

func (a *API) getSMS(ctx context.Context, r *request, in *byID) (*parley.SMS, error) {
	return a.DB.SMS(ctx, r.UserID(), in.ID)
}

func (a *API) listOutbox(ctx context.Context, r *request, in *pageQuery) (*Paginated[parley.OutboxSMS], error) {
	p := in.page(15)
	list, total, err := a.DB.Outbox(ctx, r.UserID(), p)
	if err != nil {
		return nil, err
	}
	e := envelope(a, r.Request, list, total, p)
	return &e, nil
}

type sandboxSMS struct {
	Body struct {
		From string `json:"from" required:"true" maxLength:"32" reads:"phone" doc:"The sender, in international format."`
		To   string `json:"to" required:"true" maxLength:"32" reads:"phone" doc:"One of your rented numbers."`
		Body string `json:"body" required:"true" maxLength:"1600"`
	}
}

type receivedSMS struct {
	SID  string `json:"sms_sid"`
	From string `json:"from"`
	To   string `json:"to"`
	Body string `json:"body"`
}

func (a *API) receiveSandboxSMS(ctx context.Context, r *request, in *sandboxSMS) (*messageData[receivedSMS], error) {
	var f parley.Fields
	from, ok := parley.NormalizePhone(in.Body.From)
	if !ok {
		f.Add("from", "must be a phone number in international format.")
	}
	to, ok := parley.NormalizePhone(in.Body.To)
	if !ok {
		f.Add("to", "must be a phone number in international format.")
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	sid, err := a.SMS.Pretend(ctx, r.UserID(), from, to, in.Body.Body)
	return &messageData[receivedSMS]{"SMS received successfully", receivedSMS{sid, from, to, in.Body.Body}}, err
}
