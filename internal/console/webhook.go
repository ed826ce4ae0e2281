package console

import (
	"bytes"
	"encoding/json"
	"net/url"
	"reflect"
	"strconv"
	"time"

	"parley/internal/event"
	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
)

// deliveryQuery is what the list of deliveries is asked for: the API's filters.
type deliveryQuery struct {
	Event  string `query:"event" enum:"call.completed,call.inbound,call.inbound.completed,conversation.ended,balance.low,public_budget.low,campaign.completed,campaign.not_started,alert.raised,alert.resolved"`
	Status string `query:"status" enum:"pending,delivered,failed"`
	Page   int    `query:"page" minimum:"1" maximum:"2147483648"`
}

func (q deliveryQuery) at(n int) string { return address("/webhooks", q.values(), n) }

// sheet is the list as CSV.
func (q deliveryQuery) sheet() string { return address("/webhooks.csv", q.values(), 0) }

func (q deliveryQuery) values() url.Values {
	v := url.Values{}
	set(v, "event", q.Event)
	set(v, "status", q.Status)
	return v
}

// deliveries is a page of deliveries.
type deliveries struct {
	deliveryQuery
	list  []parley.Delivery
	total int
	base  string // of the API
}

func (c *Console) deliveryList(r *request) (*answer, error) {
	d := &deliveries{deliveryQuery: deliveryQuery{Page: 1}, base: c.base(r)}
	if len(form.Query(r.URL.Query(), &d.deliveryQuery)) > 0 {
		return see("/webhooks"), nil
	}
	var err error
	d.list, d.total, err = c.DB.Deliveries(r.Context(), r.UserID(), parley.EventKind(d.Event),
		parley.DeliveryStatus(d.Status), store.Page{Number: d.Page, Size: pageSize})
	if err != nil {
		return nil, err
	}
	if len(d.list) == 0 && d.total > 0 {
		return see(d.at((d.total + pageSize - 1) / pageSize)), nil
	}
	return show("Webhooks", deliveryList(d)), nil
}

// delivery is a delivery with all that is known of it.
type delivery struct {
	*parley.Delivery
	log []parley.DeliveryAttempt
}

func (d *delivery) path(more string) string {
	return "/webhooks/" + strconv.FormatInt(d.ID, 10) + more
}

// payload is the body that is sent, indented for people.
func (d *delivery) payload() string {
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(d.Payload), "", "  "); err != nil {
		return d.Payload
	}
	return b.String()
}

// moving says whether something will happen to the delivery while somebody looks.
func (d *delivery) moving(now parley.Time) bool {
	return d.Status == parley.DeliveryPending && d.NextAttemptAt.Sub(now) < time.Minute
}

func (c *Console) deliveryPage(r *request) (*answer, error) {
	d, err := c.DB.Delivery(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	log, err := c.DB.DeliveryLog(r.Context(), r.UserID(), d.ID)
	return show(string(d.Event), deliveryPage(&delivery{d, log})), err
}

func (c *Console) deliveryResend(r *request) (*answer, error) {
	if _, err := event.Resend(r.Context(), c.DB, r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	return see("/webhooks/"+r.PathValue("id"), "resent"), nil
}

// eventsAddress is where the account's own events go.
type eventsAddress struct {
	URL *string `json:"url" maxLength:"2048" format:"http-url"`
}

// hooked is an assistant's endpoint for a kind of event.
type hooked struct {
	kind parley.EventKind
	url  string
}

// hooks are the endpoints that an assistant has.
func hooks(a *parley.Assistant) (list []hooked) {
	for _, kind := range []parley.EventKind{parley.EventCallCompleted, parley.EventCallInbound,
		parley.EventCallInboundCompleted, parley.EventConversationEnded} {
		if to := kind.WebhookURL(a); to != nil {
			list = append(list, hooked{kind, *to})
		}
	}
	return list
}

// webhooks is what the page of the settings shows.
type webhooks struct {
	*fields
	assistants []parley.Assistant // those that have an endpoint
	secret     string             // "" until it is asked for
}

func (c *Console) webhookSettings(r *request) (*answer, error) {
	u, err := c.DB.User(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	return c.webhookPage(r, &webhooks{fields: fieldsOf[eventsAddress](map[string]any{"url": u.WebhookURL}, nil)})
}

func (c *Console) webhookPage(r *request, w *webhooks) (*answer, error) {
	all, err := c.Assistants.All(r.Context(), r.UserID(), "")
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		if len(hooks(&a)) > 0 {
			w.assistants = append(w.assistants, a)
		}
	}
	if len(w.errors) > 0 {
		return invalid("Webhook settings", webhookSettings(w)), nil
	}
	return show("Webhook settings", webhookSettings(w)), nil
}

func (c *Console) webhookSave(r *request) (*answer, error) {
	tree := decode(r.PostForm, reflect.TypeFor[eventsAddress]())
	var in eventsAddress
	if wrong := form.Bind(tree, &in, false); len(wrong) > 0 {
		return c.webhookPage(r, &webhooks{fields: fieldsOf[eventsAddress](tree, wrong)})
	}
	if err := event.SetEndpoint(r.Context(), c.DB, r.UserID(), in.URL); err != nil {
		return nil, err
	}
	return see("/webhooks/settings", "saved"), nil
}

// webhookSecret shows the settings with the secret, which no address leads to.
func (c *Console) webhookSecret(r *request) (*answer, error) {
	keys, err := event.Keys(r.Context(), c.DB, r.UserID(), parley.Now())
	if err != nil {
		return nil, err
	}
	u, err := c.DB.User(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	return c.webhookPage(r, &webhooks{fields: fieldsOf[eventsAddress](map[string]any{"url": u.WebhookURL}, nil),
		secret: store.WebhookSecretText(keys[0])})
}

func (c *Console) webhookRotate(r *request) (*answer, error) {
	if _, err := event.Rotate(r.Context(), c.DB, r.UserID()); err != nil {
		return nil, err
	}
	return see("/webhooks/settings", "rotated"), nil
}

// webhookTest sends a made-up event to an assistant's endpoint and shows what becomes of it.
func (c *Console) webhookTest(r *request) (*answer, error) {
	a, err := c.DB.Assistant(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	d, err := event.Try(r.Context(), c.DB, a, parley.EventKind(r.PostFormValue("event")))
	if err != nil {
		return nil, err
	}
	return see("/webhooks/"+strconv.FormatInt(d.ID, 10), "tested"), nil
}
