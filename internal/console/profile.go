package console

import (
	"reflect"

	"parley"
)

// account is the page of the account: its profile and its password, each a form of its own.
func (c *Console) account(r *request, profile, password *fields) component {
	u := r.who.User
	if profile == nil {
		profile = fieldsOf[parley.Profile](treeOf(parley.Profile{Name: u.Name, Email: u.Email,
			Timezone: u.Timezone}), nil)
	}
	if password == nil {
		password = fieldsOf[newPassword](nil, nil)
	}
	return accountPage(u, c.Prices.Plan(u.Plan), profile, password)
}

func (c *Console) profileSave(r *request) (*answer, error) {
	tree := decode(r.PostForm, reflect.TypeFor[parley.Profile]())
	_, err := c.Auth.SetProfile(r.Context(), r.who.User, tree, c.knowsPassword(r))
	if err == nil {
		return see("/account", "saved"), nil
	}
	wrong, ok := passwordErrors(err, "current_password")
	if !ok {
		return nil, err
	}
	delete(tree, "current_password") // it does not go back into the page
	return invalid("Account", c.account(r, fieldsOf[parley.Profile](tree, wrong), nil)), nil
}
