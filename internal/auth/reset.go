package auth

import (
	"context"
	"fmt"
	"strings"
	"time"

	"parley/internal/mail"
	"parley/internal/parley"
	"parley/internal/store"
)

// A member who has forgotten their password gets a link from the account's owner, with which they choose a new one, once.
// Its token is a credential of a kind of its own, written so that it can stand in an address. An owner who has forgotten
// theirs asks whoever runs the server.

const (
	resetFor    = 24 * time.Hour
	resetPrefix = "reset-"
)

var errReset = parley.Errorf(parley.NotFound, "This link is no longer valid. Ask whoever sent it for a new one.")

// Reset says what came of a link for a new password.
type Reset struct {
	Member    *parley.Member
	Token     string // kept nowhere
	Link      string // where the password is chosen, with the token
	Sent      bool   // by e-mail
	ExpiresAt parley.Time
}

// ResetPassword makes a link with which one of the account's members chooses a new password, in place of a former link,
// and sends it as an invitation is sent. Their present password and their sessions stay until then.
func (d *Authority) ResetPassword(ctx context.Context, by *Who, memberID int64, base string) (*Reset, error) {
	u := by.User
	sends, err := d.sends(u)
	if err != nil {
		return nil, err
	}
	out := &Reset{}
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if out.Member, err = tx.MemberForUpdate(ctx, u.ID, memberID); err != nil {
			return err
		}
		if err := by.manages(out.Member.Role); err != nil {
			return err
		}
		if out.Member.DisabledAt != 0 {
			return parley.Errorf(parley.Refused, "%s is disabled. Enable them first.", out.Member.Name)
		}
		if err := tx.DeleteCredentials(ctx, u.ID, memberID, parley.ResetLink); err != nil {
			return err
		}
		k, token, err := d.newKey(ctx, tx, &parley.Key{UserID: u.ID, MemberID: memberID, Kind: parley.ResetLink, Name: "reset"})
		if err != nil {
			return err
		}
		out.Token, out.ExpiresAt = resetPrefix+strings.Replace(token, "|", "-", 1), k.ExpiresAt
		out.Link = base + "/reset/" + out.Token
		if out.Sent = false; sends {
			out.Sent, err = d.Mail.Queue(ctx, tx, out.message(u))
		}
		return err
	})
	return out, err
}

// message is the e-mail of a link.
func (r *Reset) message(u *parley.User) mail.Message {
	text := fmt.Sprintf("%s lets you choose a new password for your access to their account on Parley.\n\n"+
		"Open this link to choose it:\n\n%s\n\n"+
		"It is valid until %s, and works once. If you still know your password, ignore it: nothing has changed.\n", u.Email, r.Link, r.ExpiresAt)
	return mail.Message{Kind: mail.NewPassword, Account: u.ID, To: r.Member.Email, Text: text}
}

// Resetting is the member that a link lets choose a new password.
func (d *Authority) Resetting(ctx context.Context, token string) (*Who, error) {
	rest, ok := strings.CutPrefix(token, resetPrefix)
	if !ok {
		return nil, errReset
	}
	who, err := d.Authenticate(ctx, strings.Replace(rest, "-", "|", 1), parley.ResetLink)
	if err == ErrUnauthenticated || err == nil && who.Member == nil { //nolint:errorlint // our own, never wrapped
		return nil, errReset
	}
	return who, err
}

// SetForgotten gives the member of a link the password that they have chosen, from a client's address. The link and their
// sessions end. Their second factor stays: they sign in with it, as always.
func (d *Authority) SetForgotten(ctx context.Context, from, token, password string) error {
	if err := d.Logins.Ask(from, "", time.Now()); err != nil {
		return err
	}
	who, err := d.Resetting(ctx, token)
	if err != nil {
		return err
	}
	if why := WeakPassword(password, who.Name(), who.Email()); why != "" {
		var wrong parley.Fields
		wrong.Add("password", "%s", why)
		return wrong.Err()
	}
	hash, err := HashPassword(password)
	if err != nil {
		return err
	}
	return d.DB.Write(store.By(ctx, who.Actor(from)), func(ctx context.Context, tx *store.Tx) error {
		if err := tx.DeleteKey(ctx, who.User.ID, parley.ResetLink, who.Key.ID); store.IsNotFound(err) {
			return errReset // somebody was faster
		} else if err != nil {
			return err
		}
		return setMemberPassword(ctx, tx, who.Member, hash)
	})
}

// DropMemberTwoFactor turns the second factor of one of the account's members off: they have lost their device and their
// recovery codes.
func (d *Authority) DropMemberTwoFactor(ctx context.Context, by *Who, memberID int64) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		m, err := tx.MemberForUpdate(ctx, by.User.ID, memberID) // the first owner's takes the password and a code
		if err != nil {
			return err
		}
		if err := by.manages(m.Role); err != nil {
			return err
		}
		return tx.DeleteTwoFactor(ctx, by.User.ID, memberID)
	})
}
