package console

import (
	"reflect"

	"parley"
)

// account is the page of whoever is signed in: their profile and their password, each a form of its own.
func (c *Console) account(r *request, profile, password *fields) (*answer, error) {
	wrong := profile != nil || password != nil
	second, err := c.Auth.TwoFactor(r.Context(), r.UserID(), r.who.Person())
	if err != nil {
		return nil, err
	}
	if profile == nil {
		p := parley.Profile{Name: r.who.Name(), Email: r.who.Email(), Timezone: r.who.Timezone()}
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
	_, err := c.Auth.SetOwn(r.Context(), r.who, tree, c.knowsPassword(r))
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
