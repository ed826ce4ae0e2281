package console

import (
	"errors"

	"parley/internal/parley"
)

type newPassword struct {
	Current  string `json:"current" required:"true" maxLength:"1024" trim:"off"`
	Password string `json:"password" required:"true" minLength:"8" maxLength:"1024" trim:"off"`
}

func (c *Console) accountPage(r *request) (*answer, error) {
	return c.account(r, nil, nil)
}

// passwordChange sets a new password. Every session ends, and this browser gets a new one; API keys stay, unless they
// are to go too.
func (c *Console) passwordChange(r *request) (*answer, error) {
	token, err := c.Auth.ChangePassword(r.Context(), r.who, r.PostFormValue("current"),
		r.PostFormValue("password"), r.PostFormValue("revoke_keys") == "1", c.knowsPassword(r))
	if err == nil {
		c.setCookie(r, token)
		return see("/account", "password"), nil
	}
	wrong, ok := passwordErrors(err, "current")
	if !ok {
		return nil, err
	}
	return c.account(r, nil, fieldsOf[newPassword](nil, wrong))
}

// knowsPassword tries the password of whoever is signed in, and counts it against the limits.
func (c *Console) knowsPassword(r *request) func(password string) error {
	return func(password string) error {
		_, err := c.checkPassword(r, r.who.Email(), password)
		return err
	}
}

// passwordErrors are the fields of a form that fail; that there were too many tries stands beside the password.
func passwordErrors(err error, field string) (parley.Fields, bool) {
	wrong, ok := fieldErrors(err)
	if e := (*parley.Error)(nil); errors.As(err, &e) && e.Kind == parley.TooMany {
		wrong.AddText(field, e.Message)
		return wrong, true
	}
	return wrong, ok
}
