package console

import (
	"context"
	"errors"

	"parley"
	"parley/internal/auth"
	"parley/internal/store"
)

type newPassword struct {
	Current  string `json:"current" required:"true" maxLength:"1024" trim:"off"`
	Password string `json:"password" required:"true" minLength:"8" maxLength:"1024" trim:"off"`
}

func (c *Console) accountPage(r *request) (*answer, error) {
	return show("Account", c.account(r, nil, nil)), nil
}

// passwordChange sets a new password. Every session ends, and this browser gets a new one; API keys stay, unless they are to go too.
func (c *Console) passwordChange(r *request) (*answer, error) {
	current, next := r.PostFormValue("current"), r.PostFormValue("password")
	var wrong parley.Fields
	if current == "" {
		wrong.Add("current", "is required.")
	}
	if why := auth.WeakPassword(next, r.who.User.Name, r.who.User.Email); why != "" {
		wrong.Add("password", "%s", why)
	}
	if len(wrong) == 0 {
		token, err := c.changePassword(r, current, next, r.PostFormValue("revoke_keys") == "1")
		var e *parley.Error
		switch {
		case err == nil:
			c.setCookie(r, token)
			return see("/account", "password"), nil
		case !errors.As(err, &e):
			return nil, err
		case e.Kind == parley.Unauthenticated:
			wrong.AddText("current", "This is not your password.")
		default:
			wrong.AddText("current", e.Message)
		}
	}
	return invalid("Account", c.account(r, nil, fieldsOf[newPassword](nil, wrong))), nil
}

func (c *Console) changePassword(r *request, current, next string, revoke bool) (token string, err error) {
	if _, err := c.checkPassword(r, r.who.User.Email, current); err != nil {
		return "", err
	}
	hash, err := auth.HashPassword(next)
	if err != nil {
		return "", err
	}
	err = c.DB.Write(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		u, err := tx.User(ctx, r.UserID())
		if err != nil {
			return err
		}
		u.PasswordHash = hash
		if err := tx.SaveUser(ctx, u); err != nil {
			return err
		}
		if err := tx.DeleteSessions(ctx, u.ID); err != nil {
			return err
		}
		if revoke {
			if _, err := tx.DeleteKeys(ctx, u.ID, 0); err != nil {
				return err
			}
		}
		_, token, err = c.Auth.NewKey(ctx, tx, u.ID, parley.Console, "console")
		return err
	})
	return token, err
}
