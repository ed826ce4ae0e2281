package console

import (
	"fmt"
	"reflect"
	"strings"

	"parley/internal/form"
	"parley/internal/parley"
)

// unwanted is what a number is added to the do-not-call list by.
type unwanted struct {
	PhoneNumber string `json:"phone_number" required:"true" maxLength:"32" format:"phone"`
}

// refusals is the page of those who are not to be called, and of those who want to be forgotten.
type refusals struct {
	list    []parley.BlacklistEntry
	add     *fields
	said    string // what was erased, or why it was not
	refused bool
}

func (c *Console) refuseList(r *request) (*answer, error) { return c.refusePage(r, &refusals{}) }

func (c *Console) refusePage(r *request, p *refusals) (*answer, error) {
	var err error
	if p.list, err = c.DB.Blacklist(r.Context(), r.UserID()); err != nil {
		return nil, err
	}
	bad := p.refused || p.add != nil
	if p.add == nil {
		p.add = fieldsOf[unwanted](nil, nil)
	}
	if bad {
		return invalid("Do not call", refusePage(p)), nil
	}
	return show("Do not call", refusePage(p)), nil
}

func (c *Console) refuseAdd(r *request) (*answer, error) {
	tree := r.tree(reflect.TypeFor[unwanted]())
	var in unwanted
	if wrong := form.Bind(tree, &in, true); len(wrong) > 0 {
		return c.refusePage(r, &refusals{add: fieldsOf[unwanted](tree, wrong)})
	}
	if _, err := c.Campaigns.Blacklist(r.Context(), r.UserID(), in.PhoneNumber); err != nil {
		return nil, err
	}
	return see("/do-not-call", "listed"), nil
}

func (c *Console) refuseDelete(r *request) (*answer, error) {
	if err := c.Campaigns.Unlist(r.Context(), r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	return see("/do-not-call", "unlisted"), nil
}

// customerErase removes everything about a customer.
func (c *Console) customerErase(r *request) (*answer, error) {
	who := strings.TrimSpace(r.PostFormValue("customer"))
	if who == "" {
		return c.refusePage(r, &refusals{said: "Nothing was erased: say whose data.", refused: true})
	}
	gone, err := c.Calls.EraseCustomer(r.Context(), r.UserID(), who, r.who.User.Country)
	if text := refusal(err); text != "" {
		return c.refusePage(r, &refusals{said: text, refused: true})
	}
	if err != nil {
		return nil, err
	}
	return c.refusePage(r, &refusals{said: fmt.Sprintf("Erased: %s.", strings.Join([]string{count(gone.Calls, "call", "calls"),
		count(gone.Conversations, "conversation", "conversations"), count(gone.Messages, "text message", "text messages")}, ", "))})
}
