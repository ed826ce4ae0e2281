package console

import (
	"reflect"

	"parley"
)

// account is the page of the account: its profile and its password, each a form of its own.
func (c *Console) account(r *request, profile, password *fields) (*answer, error) {
	u, wrong := r.who.User, profile != nil || password != nil
	second, err := c.Auth.TwoFactor(r.Context(), u.ID, r.who.MemberID())
	if err != nil {
		return nil, err
	}
	if profile == nil {
		profile = fieldsOf[parley.Profile](treeOf(parley.Profile{Name: u.Name, Email: u.Email,
			Timezone: u.Timezone}), nil)
	}
	if password == nil {
		password = fieldsOf[newPassword](nil, nil)
	}
	body := accountPage(u, c.Prices.Plan(u.Plan), second, profile, password)
	if wrong {
		return invalid("Account", body), nil
	}
	return show("Account", body), nil
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
	return c.account(r, fieldsOf[parley.Profile](tree, wrong), nil)
}
