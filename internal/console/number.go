package console

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"parley/internal/channel/sms"
	"parley/internal/form"
	"parley/internal/number"
	"parley/internal/parley"
)

// refusal is why something was refused, in words for its page; "" for errors that are ours to mend.
func refusal(err error) string {
	var e *parley.Error
	var f *sms.Failure
	switch {
	case errors.As(err, &f):
		return "The carrier did not take the message: " + f.Reason + " Nothing was charged."
	case errors.As(err, &e) && e.Kind != parley.NotFound && e.Kind != parley.Invalid && e.Kind != parley.TooMany:
		return e.Message
	}
	return ""
}

func numberPath(id int64, more string) string {
	return "/numbers/" + strconv.FormatInt(id, 10) + more
}

// numbers are the user's own numbers, and who answers them.
type numbers struct {
	list    []parley.Number
	answers map[int64]parley.Assistant // by the number's id
	base    string                     // of the API
}

func (c *Console) numberList(r *request) (*answer, error) {
	list, err := c.DB.Numbers(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	n := &numbers{list: list, base: c.base(r)}
	n.answers, err = c.answers(r)
	return show("Numbers", numberList(n)), err
}

// answers are the user's inbound assistants by the id of the number that they answer.
func (c *Console) answers(r *request) (map[int64]parley.Assistant, error) {
	by := map[int64]parley.Assistant{}
	inbound, err := c.Assistants.All(r.Context(), r.UserID(), "inbound")
	for _, a := range inbound {
		if a.PhoneNumberID != nil {
			by[*a.PhoneNumberID] = a
		}
	}
	return by, err
}

// numberInput is what may change about a number.
type numberInput struct {
	Nickname    *string `json:"nickname" maxLength:"50"`
	AssistantID *int64  `json:"assistant_id"` // the inbound assistant that answers it
}

// numberPageInput is the page's one form.
type numberPageInput struct {
	numberInput
	parley.NumberRoute
}

// numberForm is the page of a number.
type numberForm struct {
	*fields
	*parley.Number
	assistants []option
	trunk      int64             // of a SIP number
	answering  *parley.Assistant // who answers it, as it is stored; nil where nobody does
	route      *routeForm
}

// routeForm is who takes a number's calls, and when.
type routeForm struct {
	*fields
	assistants []option
}

func (n *numberForm) path(more string) string { return numberPath(n.ID, more) }

func (c *Console) numberPage(r *request) (*answer, error) {
	n, err := c.DB.Number(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	f, err := c.numberPageOf(r, n)
	if err != nil {
		return nil, err
	}
	return show(parley.FormatPhone(n.PhoneNumber), numberPage(f)).in(f.text("timezone")), nil
}

// numberPageOf is the page of a number as it stands.
func (c *Console) numberPageOf(r *request, n *parley.Number) (*numberForm, error) {
	answered, err := c.DB.AnsweredNumbers(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	in := numberInput{Nickname: n.Nickname}
	if id, ok := answered[n.ID]; ok {
		in.AssistantID = &id
	}
	tree := treeOf(in)
	route := n.Route
	if route == nil { // one that was never set is that of a number that is open at all hours
		route = parley.NewRoute(r.who.Timezone())
	}
	maps.Copy(tree, treeOf(*route))
	return c.numberForm(r, n, fieldsOf[numberPageInput](tree, nil))
}

func (c *Console) numberForm(r *request, n *parley.Number, f *fields) (*numberForm, error) {
	inbound, err := c.Assistants.All(r.Context(), r.UserID(), "inbound")
	if err != nil {
		return nil, err
	}
	own, err := c.DB.Numbers(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	out := &numberForm{fields: f, Number: n, assistants: []option{{value: "", label: "Nobody"}}}
	for i := range inbound {
		a := &inbound[i]
		o := option{value: strconv.FormatInt(a.ID, 10), label: a.Name}
		if a.Status != "active" {
			o.label += " (inactive)"
		}
		if p := a.PhoneNumberID; p != nil && *p == n.ID {
			out.answering = a
		} else if p != nil {
			if i := slices.IndexFunc(own, func(other parley.Number) bool { return other.ID == *p }); i >= 0 {
				o.label += " (answers " + parley.FormatPhone(own[i].PhoneNumber) + " now)"
			}
		}
		out.assistants = append(out.assistants, o)
	}
	out.route = &routeForm{f, routeOptions(inbound)}
	if n.Type == parley.NumberSIP {
		trunks, err := c.DB.Trunks(r.Context(), r.UserID())
		if err != nil {
			return nil, err
		}
		for _, t := range trunks {
			if t.PhoneNumberID == n.ID || n.TrunkID != nil && *n.TrunkID == t.ID {
				out.trunk = t.ID
			}
		}
	}
	return out, nil
}

// routeOptions are the assistants that may answer outside the hours.
func routeOptions(inbound []parley.Assistant) []option {
	list := []option{{value: "", label: "None"}}
	for _, a := range inbound {
		o := option{value: strconv.FormatInt(a.ID, 10), label: a.Name}
		if a.Status != "active" {
			o.label += " (inactive)"
		}
		list = append(list, o)
	}
	return list
}

// numberSave stores the page's one form: the name, who answers, and the route where the form has it.
func (c *Console) numberSave(r *request) (*answer, error) {
	tree := r.tree(reflect.TypeFor[numberPageInput]())
	var in numberInput
	wrong := form.Bind(tree, &in, false)
	n, err := c.DB.Number(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	var route *parley.NumberRoute
	if _, sent := tree["timezone"]; sent && n.Type != parley.NumberCallerID {
		route = &parley.NumberRoute{}
		wrong = append(wrong, form.Bind(tree, route, true)...)
		wrong = append(wrong, openEnded(tree)...)
	}
	if len(wrong) == 0 {
		answering := c.Assistants.AnswerNumber(r.UserID(), n.ID, in.AssistantID)
		if _, sent := tree["assistant_id"]; !sent {
			answering = nil
		}
		err := c.Numbers.Change(r.Context(), r.UserID(), n.ID, in.Nickname, route, answering)
		failed, ok := fieldErrors(err)
		switch {
		case err == nil:
			return see(numberPath(n.ID, ""), "saved"), nil
		case !ok || len(failed) == 0:
			return nil, err
		}
		wrong = failed
	}
	f, err := c.numberForm(r, n, fieldsOf[numberPageInput](tree, wrong))
	if err != nil {
		return nil, err
	}
	return invalid(parley.FormatPhone(n.PhoneNumber), numberPage(f)).in(f.text("timezone")), nil
}

// openEnded refuses hours whose end was left empty: until midnight is a choice, not a default.
func openEnded(tree map[string]any) (wrong parley.Fields) {
	rows, _ := tree["hours"].([]any)
	for i, row := range rows {
		if hours, _ := row.(map[string]any); textOf(hours["to"]) == "" {
			wrong.AddText("hours."+strconv.Itoa(i)+".to", "Enter when these hours end: 00:00 is midnight.")
		}
	}
	return wrong
}

func (c *Console) numberDelete(r *request) (*answer, error) {
	n, err := c.DB.Number(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	if err := c.Numbers.Give(r.Context(), r.UserID(), n.ID); err != nil {
		return nil, err
	}
	if n.Type == parley.NumberNormal {
		return see("/numbers", "released"), nil
	}
	return see("/numbers", "deleted"), nil
}

// searchQuery is what numbers are searched by: the API's parameters.
type searchQuery struct {
	Country  string `query:"country_code" json:"country_code" enum:"US,CA,GB,AU,IL,PL,FI,NL,DK,IT"`
	Contains string `query:"contains" json:"contains" maxLength:"10" pattern:"^[0-9]*$" must:"contain only digits"`
}

var countryNames = enum("US=United States", "CA=Canada", "GB=United Kingdom", "AU=Australia", "DK=Denmark",
	"FI=Finland", "IL=Israel", "IT=Italy", "NL=Netherlands", "PL=Poland")

func countryName(code string) string {
	for _, o := range countryNames {
		if o.value == code {
			return o.label
		}
	}
	return code
}

// market is the page on which numbers are searched and bought.
type market struct {
	*fields
	query   searchQuery
	offers  []number.Offer
	asked   bool // a search was made
	free    parley.Money
	refused string // why the last purchase failed
	base    string // of the API
	sandbox bool   // no carrier is connected
	prices  func(country string) parley.Money
}

// countries are those that numbers can be rented in, with their price.
func (m *market) countries() (list []option) {
	for _, o := range countryNames {
		list = append(list, option{value: o.value, label: o.label + " · " + dollars(m.prices(o.value)) + " a month"})
	}
	return list
}

func (c *Console) numberSearch(r *request) (*answer, error) {
	q := r.URL.Query()
	return c.market(r, map[string]any{"country_code": q.Get("country_code"), "contains": q.Get("contains")},
		q.Has("country_code"), "")
}

// market searches, where there is something to search by, and shows what was found.
func (c *Console) market(r *request, tree map[string]any, search bool, why string) (*answer, error) {
	m := &market{asked: search, refused: why, base: c.base(r), sandbox: c.SMS != nil && c.SMS.Sandbox,
		prices: func(country string) parley.Money { return c.Prices.Numbers[country].Rent }}
	var wrong parley.Fields
	if search {
		values := map[string][]string{}
		for name, text := range tree {
			values[name] = []string{text.(string)}
		}
		wrong = form.Query(values, &m.query)
	}
	m.fields = fieldsOf[searchQuery](tree, wrong)
	var err error
	if m.free, err = c.DB.Free(r.Context(), r.UserID()); err != nil {
		return nil, err
	}
	if search && len(wrong) == 0 {
		if m.query.Country == "" {
			m.query.Country = "US"
		}
		if m.offers, err = c.Numbers.Search(r.Context(), r.UserID(), m.query.Country, m.query.Contains); err != nil {
			return nil, err
		}
	}
	if len(wrong) > 0 || why != "" {
		return invalid("Find a number", numberMarket(m)), nil
	}
	return show("Find a number", numberMarket(m)), nil
}

func (c *Console) numberBuy(r *request) (*answer, error) {
	n, err := c.Numbers.Buy(r.Context(), r.UserID(), r.PostFormValue("phone_number"))
	if why := refusal(err); why != "" {
		country := r.PostFormValue("country_code")
		return c.market(r, map[string]any{"country_code": country, "contains": r.PostFormValue("contains")},
			country != "", why)
	}
	if err != nil {
		return nil, err
	}
	return see(numberPath(n.ID, ""), "bought"), nil
}

// newCallerID is a number that the user wants to show on outgoing calls.
type newCallerID struct {
	PhoneNumber string `json:"phone_number" required:"true" maxLength:"32" reads:"phone"`
}

func (c *Console) callerIDNew(r *request) (*answer, error) {
	return show("New caller id", callerIDNew(fieldsOf[newCallerID](nil, nil), "")), nil
}

func (c *Console) callerIDAsk(r *request) (*answer, error) {
	tree := r.tree(reflect.TypeFor[newCallerID]())
	var in newCallerID
	wrong := form.Bind(tree, &in, true)
	var asked *parley.CallerID
	err := wrong.Err()
	if err == nil {
		asked, err = c.Numbers.AskCallerID(r.Context(), r.UserID(), in.PhoneNumber)
	}
	if wrong, ok := fieldErrors(err); ok {
		return invalid("New caller id", callerIDNew(fieldsOf[newCallerID](tree, wrong), "")), nil
	}
	if why := refusal(err); why != "" {
		return invalid("New caller id", callerIDNew(fieldsOf[newCallerID](tree, nil), why)), nil
	}
	if err != nil {
		return nil, err
	}
	return see("/numbers/caller-id/" + strconv.FormatInt(asked.ID, 10)), nil
}

// callerIDCode is the code that was sent to a number.
type callerIDCode struct {
	Code string `json:"code" required:"true" maxLength:"16"`
}

func (c *Console) callerIDPage(r *request) (*answer, error) {
	id, err := c.DB.CallerID(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	return show("Verify a caller id", callerIDVerify(fieldsOf[callerIDCode](nil, nil), id, c.SMS.Sandbox)), nil
}

func (c *Console) callerIDVerify(r *request) (*answer, error) {
	id, err := c.DB.CallerID(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	tree := decode(r.PostForm, reflect.TypeFor[callerIDCode]())
	var in callerIDCode
	wrong := form.Bind(tree, &in, true)
	var n *parley.Number
	err = wrong.Err()
	if err == nil {
		n, err = c.Numbers.VerifyCallerID(r.Context(), r.UserID(), id.ID, in.Code)
	}
	wrong, ok := fieldErrors(err)
	switch {
	case err == nil:
		return see(numberPath(n.ID, ""), "verified"), nil
	case !ok:
		return nil, err
	}
	return invalid("Verify a caller id", callerIDVerify(fieldsOf[callerIDCode](tree, wrong), id, c.SMS.Sandbox)), nil
}
