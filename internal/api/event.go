package api

import (
	"cmp"
	"context"
	"encoding/json"

	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/store"
)

func (a *API) eventRoutes() {
	const tag, missing = "Webhooks", "Webhook delivery not found"
	handle(a, op{Method: "GET", Path: "/user/webhook-secret", Name: "getWebhookSecret", Tag: tag,
		Summary: "Read the secret that signs your webhooks"}, a.getWebhookSecret)
	handle(a, op{Method: "POST", Path: "/user/webhook-secret/rotate", Name: "rotateWebhookSecret", Tag: tag,
		Summary: "Rotate the secret; the old one also signs for 24 hours more"}, a.rotateWebhookSecret)
	handle(a, op{Method: "GET", Path: "/user/webhook-endpoint", Name: "getWebhookEndpoint", Tag: tag,
		Summary: "Read the URL for the account's own events"}, a.getWebhookEndpoint)
	handle(a, op{Method: "PUT", Path: "/user/webhook-endpoint", Name: "updateWebhookEndpoint", Tag: tag,
		Body: webhookEndpoint{}, Partial: true, Summary: "Set the URL for the account's own events; null turns them off"},
		a.updateWebhookEndpoint)
	handle(a, op{Method: "GET", Path: "/user/webhook-deliveries", Name: "listWebhookDeliveries", Tag: tag,
		Summary: "List deliveries, newest first"}, a.listDeliveries)
	handle(a, op{Method: "GET", Path: "/user/webhook-deliveries/{id}", Name: "getWebhookDelivery", Tag: tag,
		NotFound: missing, Summary: "Read a delivery with its payload and every attempt"}, a.getDelivery)
	handle(a, op{Method: "POST", Path: "/user/webhook-deliveries/{id}/resend", Name: "resendWebhookDelivery",
		Tag: tag, NotFound: missing, Summary: "Resend a delivery at once, with the full schedule of retries"},
		a.resendDelivery)
	handle(a, op{Method: "POST", Path: "/user/assistants/{id}/webhook-test", Name: "testWebhook", Tag: tag,
		NotFound: "Assistant not found", Status: 201, Summary: "Send a made-up event to an assistant's endpoint"},
		a.testWebhook)
}

type secret struct {
	Secret string `json:"secret" doc:"whsec_ and the key in base64, as the Standard Webhooks libraries take it."`
}

func (a *API) getWebhookSecret(ctx context.Context, r *request, _ *none) (*secret, error) {
	keys, err := event.Keys(ctx, a.DB, r.UserID(), parley.Now())
	if err != nil {
		return nil, err
	}
	return &secret{store.WebhookSecretText(keys[0])}, nil
}

type rotated struct {
	notice
	secret
}

func (a *API) rotateWebhookSecret(ctx context.Context, r *request, _ *none) (*rotated, error) {
	key, err := event.Rotate(ctx, a.DB, r.UserID())
	return &rotated{notice{"Webhook secret rotated successfully"}, secret{store.WebhookSecretText(key)}}, err
}

type webhookEndpoint struct {
	URL *string `json:"url" maxLength:"2048" format:"http-url" doc:"null: nowhere."`
}

func (a *API) getWebhookEndpoint(ctx context.Context, r *request, _ *none) (*webhookEndpoint, error) {
	u, err := a.DB.User(ctx, r.UserID())
	if err != nil || u.WebhookURL == "" {
		return &webhookEndpoint{}, err
	}
	return &webhookEndpoint{&u.WebhookURL}, nil
}

type savedEndpoint struct {
	notice
	webhookEndpoint
}

func (a *API) updateWebhookEndpoint(ctx context.Context, r *request, in *struct{ Body webhookEndpoint }) (*savedEndpoint,
	error) {
	if _, sent := r.Body["url"]; sent {
		if err := event.SetEndpoint(ctx, a.DB, r.UserID(), in.Body.URL); err != nil {
			return nil, err
		}
	}
	now, err := a.getWebhookEndpoint(ctx, r, nil)
	return &savedEndpoint{notice{"Webhook endpoint updated successfully"}, *now}, err
}

type deliveryQuery struct {
	pageQuery
	Event  string `query:"event" enum:"call.completed,call.inbound,call.inbound.completed,conversation.ended,balance.low,public_budget.low,campaign.completed,campaign.not_started,alert.raised,alert.resolved"`
	Status string `query:"status" enum:"pending,delivered,failed"`
}

func (a *API) listDeliveries(ctx context.Context, r *request, in *deliveryQuery) (*Paginated[parley.Delivery], error) {
	p := in.page(15)
	list, total, err := a.DB.Deliveries(ctx, r.UserID(), parley.EventKind(in.Event),
		parley.DeliveryStatus(in.Status), p)
	if err != nil {
		return nil, err
	}
	e := envelope(a, r.Request, list, total, p)
	return &e, nil
}

type fullDelivery struct {
	parley.Delivery
	Payload  eventPayload             `json:"payload" doc:"The body that is sent: that of its event under webhooks."`
	Response *parley.WebhookResponse  `json:"response" doc:"The last answer, at most 4 KiB of it; null when none came."`
	Log      []parley.DeliveryAttempt `json:"log" doc:"Every attempt."`
}

func (a *API) getDelivery(ctx context.Context, r *request, in *byID) (*fullDelivery, error) {
	d, err := a.DB.Delivery(ctx, r.UserID(), in.ID)
	if err != nil {
		return nil, err
	}
	out := &fullDelivery{Delivery: *d, Payload: eventPayload{json.RawMessage(d.Payload)}}
	if d.LastStatus != nil {
		out.Response = &parley.WebhookResponse{Status: *d.LastStatus, Body: d.Answer}
	}
	out.Log, err = a.DB.DeliveryLog(ctx, r.UserID(), d.ID)
	return out, err
}

func (a *API) resendDelivery(ctx context.Context, r *request, in *byID) (*messageData[*parley.Delivery], error) {
	d, err := event.Resend(ctx, a.DB, r.UserID(), in.ID)
	return &messageData[*parley.Delivery]{"Webhook delivery is being sent again", d}, err
}

func (a *API) testWebhook(ctx context.Context, r *request, in *struct {
	byID
	Body struct {
		Event string `json:"event" enum:"call.completed,call.inbound,call.inbound.completed,conversation.ended" doc:"Absent: the first of call.completed, call.inbound.completed and conversation.ended that the assistant has an endpoint for."`
	}
}) (*messageData[*parley.Delivery], error) {
	s, err := a.DB.Assistant(ctx, r.UserID(), in.ID)
	if err != nil {
		return nil, err
	}
	d, err := event.Try(ctx, a.DB, s, cmp.Or(parley.EventKind(in.Body.Event), event.FirstKind(s)))
	return &messageData[*parley.Delivery]{"Test webhook is being sent", d}, err
}
