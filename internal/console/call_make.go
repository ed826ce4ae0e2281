package console

import (
	"net/url"
	"reflect"
	"strconv"

	"parley/internal/call"
	"parley/internal/form"
	"parley/internal/parley"
)

// newCall is what is asked before an assistant calls somebody.
type newCall struct {
	PhoneNumber string            `json:"phone_number" required:"true" maxLength:"32" format:"phone"`
	Variables   map[string]string `json:"variables" maxProperties:"200"`
}

// callForm is the page that has an assistant call somebody.
type callForm struct {
	*fields
	*beginning
	from    string // the number that the assistant calls from, "" when there is none
	fromID  int64
	toSelf  bool // it calls nobody but who tries it
	refused string
	sandbox bool
}

func (f *callForm) path(more string) string {
	return assistantPath(f.assistant.ID, more)
}

// callsPeople says whether an assistant may call anybody; one that may not calls only who tries it.
func callsPeople(a *parley.Assistant) bool { return a.Type == "outbound" && a.Status == "active" }

// title is what the page is called.
func (f *callForm) title() string {
	if f.toSelf {
		return "Call me"
	}
	return "Call somebody"
}

// chosen is what was written for a variable before, "" for the first time.
func (f *callForm) chosen(name string) string {
	m, _ := f.get("variables").(map[string]any)
	text, _ := m[name].(string)
	return text
}

func (c *Console) callForm(r *request, tree map[string]any, wrong parley.Fields) (*callForm, error) {
	a, err := c.DB.Assistant(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	f := &callForm{fields: fieldsOf[newCall](tree, wrong), beginning: c.begin(a), sandbox: c.SMS != nil && c.SMS.Sandbox,
		toSelf: !callsPeople(a)}
	return f, c.callFrom(r, f)
}

// callFrom finds the number that an assistant calls from: its own. Who tries an assistant without one is called from the
// account's first number.
func (c *Console) callFrom(r *request, f *callForm) error {
	list, err := c.DB.Numbers(r.Context(), r.UserID())
	if err != nil {
		return err
	}
	own := f.assistant.PhoneNumberID
	for _, n := range list {
		if own != nil && n.ID == *own || own == nil && f.toSelf && n.ReleasedAt == 0 {
			f.from, f.fromID = n.PhoneNumber, n.ID
			break
		}
	}
	return nil
}

func (c *Console) callNew(r *request) (*answer, error) {
	f, err := c.callForm(r, map[string]any{"phone_number": r.URL.Query().Get("to")}, nil)
	if err != nil {
		return nil, err
	}
	return show("Call with "+f.assistant.Name, callNewPage(f)), nil
}

// callStart has the assistant call somebody, as the API's make_call does.
func (c *Console) callStart(r *request) (*answer, error) {
	tree := r.tree(reflect.TypeFor[newCall]())
	var in newCall
	wrong := form.Bind(tree, &in, true)
	f, err := c.callForm(r, tree, wrong)
	if err != nil {
		return nil, err
	}
	if len(wrong) == 0 {
		for name, value := range in.Variables {
			if value == "" { // left empty: the assistant's own
				delete(in.Variables, name)
			}
		}
		made, err := c.Calls.Start(r.Context(), call.Order{UserID: r.UserID(), AssistantID: f.assistant.ID, To: in.PhoneNumber,
			Variables: in.Variables, NumberID: f.fromID, ToSelf: f.toSelf})
		if err == nil {
			return see("/calls/" + strconv.FormatInt(made.ID, 10)), nil
		}
		if f.refused = callRefusal(err); f.refused == "" {
			return nil, err
		}
	}
	return invalid("Call with "+f.assistant.Name, callNewPage(f)), nil
}

// callRefusal is why a call was not made, in words for its page; "" for errors that are ours to mend.
func callRefusal(err error) string {
	if why := refusal(err); why != "" {
		return why
	}
	if wrong, ok := fieldErrors(err); ok && len(wrong) == 0 {
		return err.Error()
	}
	return ""
}

// callChoose asks which assistant is to call somebody.
func (c *Console) callChoose(r *request) (*answer, error) {
	all, err := c.Assistants.All(r.Context(), r.UserID(), "outbound")
	if err != nil {
		return nil, err
	}
	var able []parley.Assistant
	for _, a := range all {
		if a.Status == "active" {
			able = append(able, a)
		}
	}
	to := url.Values{}
	set(to, "to", r.URL.Query().Get("to"))
	if len(able) == 1 {
		return see(address(assistantPath(able[0].ID, "/call"), to, 1)), nil
	}
	return show("Make a call", callChoosePage(able, to)), nil
}
