package console

import (
	"context"
	"errors"
	"unicode/utf8"

	"parley"
	"parley/internal/auth"
	"parley/internal/store"
)

type newPassword struct {
	Current  string `json:"current" required:"true" maxLength:"1024" trim:"off"`
	Password string `json:"password" required:"true" minLength:"8" maxLength:"1024" trim:"off"`
}

func (c *Console) accountPage(r *request) (*answer, error) {
	u := r.who.User
	return show("Account", accountPage(u, c.Prices.Plan(u.Plan), fieldsOf[newPassword](nil, nil))), nil
}

// passwordChange sets a new password. Every session ends, and this browser gets a new one.
func (c *Console) passwordChange(r *request) (*answer, error) {
	current, next := r.PostFormValue("current"), r.PostFormValue("password")
	var wrong parley.Fields
	if current == "" {
		wrong.Add("current", "is required.")
	}
	if n := utf8.RuneCountInString(next); n < 8 {
		wrong.Add("password", "must be at least 8 characters.")
	} else if n > 1024 {
		wrong.Add("password", "must not be greater than 1024 characters.")
	}
	if len(wrong) == 0 {
		token, err := c.changePassword(r, current, next)
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
	u := r.who.User
	return invalid("Account", accountPage(u, c.Prices.Plan(u.Plan), fieldsOf[newPassword](nil, wrong))), nil
}

func (c *Console) changePassword(r *request, current, next string) (token string, err error) {
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
		_, token, err = c.Auth.NewKey(ctx, tx, u.ID, parley.Console, "console")
		return err
	})
	return token, err
}
