package console

import (
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"parley/internal/channel/sms"
	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
)

// smsQuery is what the list of text messages is asked for: the API's filters.
type smsQuery struct {
	dates
	Status    string `query:"status" enum:"queued,sent,delivered,undelivered,failed"`
	NumberID  int64  `query:"phone_number_id" minimum:"1"`
	Recipient string `query:"to" maxLength:"32" reads:"phone"`
	Page      int    `query:"page" minimum:"1" maximum:"2147483648"`
}

func (q smsQuery) values() url.Values {
	v := q.dates.values()
	set(v, "status", q.Status)
	set(v, "to", q.Recipient)
	if q.NumberID != 0 {
		v.Set("phone_number_id", strconv.FormatInt(q.NumberID, 10))
	}
	return v
}

func (q smsQuery) at(n int) string { return address("/messages", q.values(), n) }

// messages is a page of text messages.
type messages struct {
	smsQuery
	list    []parley.SMS
	total   int
	numbers []option
	sandbox bool
	base    string // of the API
}

// moving says whether a message's status will change while somebody looks: carriers tell it within moments.
func (m *messages) moving(now parley.Time) bool {
	for _, one := range m.list {
		if (one.Status == parley.SMSQueued || one.Status == parley.SMSSent) &&
			now.Sub(parley.Time(one.CreatedAt)) < time.Minute {
			return true
		}
	}
	return false
}

// numberOptions are the user's numbers that some condition holds for.
func (c *Console) numberOptions(r *request, want func(*parley.Number) bool) (list []option, err error) {
	own, err := c.DB.Numbers(r.Context(), r.UserID())
	for _, n := range own {
		if want(&n) {
			o := option{value: strconv.FormatInt(n.ID, 10), label: parley.FormatPhone(n.PhoneNumber)}
			if n.Nickname != nil {
				o.label += " · " + *n.Nickname
			}
			list = append(list, o)
		}
	}
	return list, err
}

// filter is what the store is asked for.
func (q smsQuery) filter(zone *time.Location) store.SMSFilter {
	from, until := q.bounds(zone)
	f := store.SMSFilter{Status: parley.SMSStatus(q.Status), PhoneNumberID: q.NumberID, To: q.Recipient, From: from,
		Until: until}
	return f
}

func (c *Console) smsList(r *request) (*answer, error) {
	m := &messages{smsQuery: smsQuery{Page: 1}, sandbox: c.SMS.Sandbox, base: c.base(r)}
	if len(r.query(&m.smsQuery)) > 0 {
		return see("/messages"), nil
	}
	var err error
	if m.list, m.total, err = c.DB.SMSPage(r.Context(), r.UserID(), m.filter(r.zone()),
		store.Page{Number: m.Page, Size: pageSize}); err != nil {
		return nil, err
	}
	if len(m.list) == 0 && m.total > 0 {
		return see(m.at((m.total + pageSize - 1) / pageSize)), nil
	}
	some, err := c.numberOptions(r, func(n *parley.Number) bool { return n.SMSCapable })
	m.numbers = append([]option{{value: "", label: "All numbers"}}, some...)
	return show("Messages", smsList(m)), err
}

// newSMS is a text message that is to be sent: the API's fields.
type newSMS struct {
	From int64  `json:"from" required:"true"`
	To   string `json:"to" required:"true" maxLength:"32" reads:"phone"`
	Body string `json:"body" required:"true" maxLength:"300"`
}

// smsForm is the page on which a text message is written.
type smsForm struct {
	*fields
	numbers []option
	refused string // why it was not sent, where no field is to blame
	cost    string
	sandbox bool
	base    string // of the API
}

// smsForm shows what was written, and in how many segments it would be sent for which price.
func (c *Console) smsForm(r *request, tree map[string]any, wrong parley.Fields, why string) (*smsForm, error) {
	now := parley.Now()
	able, err := c.numberOptions(r, func(n *parley.Number) bool { return n.SMSCapable && n.Subscribed(now) })
	f := &smsForm{fields: fieldsOf[newSMS](tree, wrong), numbers: able, refused: why, sandbox: c.SMS.Sandbox,
		base: c.base(r)}
	f.cost = c.smsCost(f.text("to"), f.text("body"))
	return f, err
}

func (c *Console) smsCost(to, body string) string {
	if body == "" {
		return "0 of 300"
	}
	n := len(sms.Segments(body))
	cost := strconv.Itoa(n) + " segments"
	if n == 1 {
		cost = "1 segment"
	}
	number, ok := parley.NormalizePhone(to)
	if !ok {
		return cost + "."
	}
	each := c.Prices.Segment(parley.PhoneCountry(number))
	return cost + " to " + parley.FormatPhone(number) + ": " + dollars(each*parley.Money(n)) + "."
}

func (c *Console) smsNew(r *request) (*answer, error) {
	q := r.URL.Query()
	f, err := c.smsForm(r, map[string]any{"from": q.Get("from"), "to": r.phone(q.Get("to"))}, nil, "")
	return show("New message", smsEditor(f)), err
}

// smsCount shows the form as it is with what it would cost; a script puts only that in place.
func (c *Console) smsCount(r *request) (*answer, error) {
	f, err := c.smsForm(r, r.tree(reflect.TypeFor[newSMS]()), nil, "")
	return show("New message", smsEditor(f)), err
}

func (c *Console) smsSend(r *request) (*answer, error) {
	tree := r.tree(reflect.TypeFor[newSMS]())
	var in newSMS
	wrong := form.Bind(tree, &in, true)
	why := ""
	if len(wrong) == 0 {
		_, err := c.SMS.Send(r.Context(), r.UserID(), in.From, in.To, in.Body)
		if err == nil {
			return see("/messages", "sent"), nil
		}
		if why = refusal(err); why == "" {
			return nil, err
		}
		if field := smsField(why); field != "" {
			wrong.AddText(field, why)
			why = ""
		}
	}
	f, err := c.smsForm(r, tree, wrong, why)
	if err != nil {
		return nil, err
	}
	return invalid("New message", smsEditor(f)), nil
}

// smsField is the field that a refusal (contract 7.2) is about, "" when it is about none.
func smsField(why string) string {
	switch {
	case strings.HasPrefix(why, "From number "):
		return "from"
	case strings.HasPrefix(why, "Invalid to "), strings.HasPrefix(why, "The recipient "):
		return "to"
	}
	return ""
}

// sandboxSMS is a message that is made to come in: the API's fields.
type sandboxSMS struct {
	From string `json:"from" required:"true" maxLength:"32" reads:"phone"`
	To   string `json:"to" required:"true" maxLength:"32" reads:"phone"`
	Body string `json:"body" required:"true" maxLength:"1600"`
}

// outbox is a page of what the sandbox carrier has taken.
type outbox struct {
	*fields
	list    []parley.OutboxSMS
	total   int
	page    int
	numbers []option
}

func (o *outbox) at(n int) string { return address("/messages/outbox", url.Values{}, n) }

func (c *Console) outboxPage(r *request) (*answer, error) {
	q := struct {
		Page int `query:"page" minimum:"1" maximum:"2147483648"`
	}{Page: 1}
	if len(form.Query(r.URL.Query(), &q)) > 0 {
		return see("/messages/outbox"), nil
	}
	return c.outbox(r, q.Page, nil, nil)
}

func (c *Console) outbox(r *request, page int, tree map[string]any, wrong parley.Fields) (*answer, error) {
	o := &outbox{fields: fieldsOf[sandboxSMS](tree, wrong), page: page}
	own, err := c.DB.Numbers(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	for _, n := range own {
		if n.Type == parley.NumberNormal {
			o.numbers = append(o.numbers, option{value: n.PhoneNumber, label: parley.FormatPhone(n.PhoneNumber)})
		}
	}
	if o.list, o.total, err = c.DB.Outbox(r.Context(), r.UserID(),
		store.Page{Number: page, Size: pageSize}); err != nil {
		return nil, err
	}
	if len(o.list) == 0 && o.total > 0 {
		return see(o.at((o.total + pageSize - 1) / pageSize)), nil
	}
	if len(wrong) > 0 {
		return invalid("Outbox", outboxPage(o)), nil
	}
	return show("Outbox", outboxPage(o)), nil
}

// outboxReceive has a message come in, as from a person's phone.
func (c *Console) outboxReceive(r *request) (*answer, error) {
	tree := r.tree(reflect.TypeFor[sandboxSMS]())
	var in sandboxSMS
	wrong := form.Bind(tree, &in, true)
	from, ok := parley.NormalizePhone(in.From)
	if !ok && !wrong.Has("from") {
		wrong.Add("from", "must be a phone number in international format.")
	}
	to, ok := parley.NormalizePhone(in.To)
	if !ok && !wrong.Has("to") {
		wrong.Add("to", "must be a phone number in international format.")
	}
	if len(wrong) == 0 {
		_, err := c.SMS.Pretend(r.Context(), r.UserID(), from, to, in.Body)
		switch {
		case err == nil:
			return see("/messages/outbox", "received"), nil
		case !store.IsNotFound(err):
			return nil, err
		}
		wrong.AddText("to", "Choose one of your rented numbers.")
	}
	return c.outbox(r, 1, tree, wrong)
}
