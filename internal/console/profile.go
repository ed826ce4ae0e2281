package console

import (
	"reflect"
	"slices"
	"strings"

	"parley/internal/auth"
	"parley/internal/parley"
)

// account is the page of whoever is signed in: their profile and their password, each a form of its own.
func (c *Console) account(r *request, profile, password *fields) (*answer, error) {
	wrong := profile != nil || password != nil
	second, err := c.Auth.TwoFactor(r.Context(), r.UserID(), r.who.Person())
	if err != nil {
		return nil, err
	}
	if profile == nil {
		p := parley.Profile{Name: r.who.Name(), Email: r.who.Email(), Timezone: r.who.Timezone(), Country: r.who.User.Country}
		profile = fieldsOf[parley.Profile](treeOf(p), nil)
	}
	if password == nil {
		password = fieldsOf[newPassword](nil, nil)
	}
	body := accountPage(r.who, c.Prices.Plan(r.who.User.Plan), second, profile, password)
	if wrong {
		return invalid("Account", body), nil
	}
	return show("Account", body), nil
}

func (c *Console) profileSave(r *request) (*answer, error) {
	tree := decode(r.PostForm, reflect.TypeFor[parley.Profile]())
	changed, err := c.Auth.SetOwn(r.Context(), r.who, tree, c.knowsPassword(r))
	if err == nil && changed.Email() != r.who.Email() {
		return c.sendConfirmation(r, changed, "saved")
	}
	if err == nil {
		return see("/account", "saved"), nil
	}
	wrong, ok := passwordErrors(err, "current_password")
	if !ok {
		return nil, err
	}
	delete(tree, "current_password") // it does not go back into the page
	return c.account(r, fieldsOf[parley.Profile](tree, wrong), nil)
}

// sendConfirmation sends somebody the link that confirms their address; otherwise is the notice where none is sent.
func (c *Console) sendConfirmation(r *request, who *auth.Who, otherwise string) (*answer, error) {
	sent, err := c.Auth.AskConfirmation(r.Context(), who, c.Front.Base(r.Request))
	if sent {
		otherwise = "confirming"
	}
	return see("/account", otherwise), err
}

func (c *Console) confirmAsk(r *request) (*answer, error) {
	return c.sendConfirmation(r, r.who, "unsent")
}

// confirmPage is where the link leads that confirms an address. A program that follows links confirms nothing: a button does.
func (c *Console) confirmPage(r *request) (*answer, error) {
	who, err := c.Auth.Confirming(r.Context(), r.PathValue("token"))
	if err != nil {
		return nil, err
	}
	return show("Confirm your e-mail address", confirmForm(who.Email(), "/confirm/"+r.PathValue("token"))), nil
}

func (c *Console) confirm(r *request) (*answer, error) {
	err := c.Auth.Confirm(r.Context(), c.Front.Address(r.Request), r.PathValue("token"))
	if err != nil {
		return nil, c.tooMany(r, err)
	}
	return see("/account", "confirmed"), nil
}

// countries are the choices of a country; the first is none.
func countries() []option {
	list := []option{{label: "None: every number needs its country code"}}
	for _, c := range parley.Countries {
		list = append(list, option{value: c.Code, label: c.Name})
	}
	slices.SortFunc(list[1:], func(a, b option) int { return strings.Compare(a.label, b.label) })
	return list
}
