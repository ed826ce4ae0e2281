package auth

import (
	"context"
	"strings"
	"time"

	"parley/internal/mail"
	"parley/internal/parley"
	"parley/internal/store"
)

// Somebody shows that an e-mail address is theirs by a link that is sent there. Until then it signs them in, and that is all: no
// alerts go to it, and it keeps nobody else from having it.

const (
	confirmFor    = 7 * 24 * time.Hour
	confirmPrefix = "confirm-"
)

var errConfirm = parley.Errorf(parley.NotFound, "This link is no longer valid. Ask for a new one on the page Account.")

// Confirmed says whether the caller's address is known to be theirs.
func (w *Who) Confirmed() bool {
	if w.Member != nil {
		return w.Member.EmailProvenAt > 0
	}
	return w.User.EmailProvenAt > 0
}

// AskConfirmation sends the caller a link that confirms their address. Its address begins with base. sent is false where it is
// confirmed already, where the server sends no e-mail, and where the account or the address has had too many today.
func (d *Authority) AskConfirmation(ctx context.Context, who *Who, base string) (sent bool, err error) {
	if d.Mail == nil || !d.Mail.On() || who.Confirmed() {
		return false, nil
	}
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		sent = false
		if err := tx.DeleteCredentials(ctx, who.User.ID, who.Person(), parley.ConfirmLink); err != nil {
			return err
		}
		_, token, err := d.newKey(ctx, tx, &parley.Key{UserID: who.User.ID, MemberID: who.Person(), Kind: parley.ConfirmLink, Name: who.Email()})
		if err != nil {
			return err
		}
		link := base + "/confirm/" + confirmPrefix + strings.Replace(token, "|", "-", 1)
		sent, err = d.Mail.Queue(ctx, tx, mail.Message{Kind: mail.Confirmation, Account: who.User.ID, To: who.Email(),
			Text: "Open this link to confirm that this e-mail address is yours:\n\n" + link +
				"\n\nIt is valid for seven days. If you did not ask for it, ignore it: nothing else will be sent to you.\n"})
		return err
	})
	return sent, err
}

// Confirming is whose address a link confirms.
func (d *Authority) Confirming(ctx context.Context, token string) (*Who, error) {
	rest, ok := strings.CutPrefix(token, confirmPrefix)
	if !ok {
		return nil, errConfirm
	}
	who, err := d.Authenticate(ctx, strings.Replace(rest, "-", "|", 1), parley.ConfirmLink)
	if err == ErrUnauthenticated || err == nil && who.Key.Name != who.Email() { //nolint:errorlint // our own, never wrapped
		return nil, errConfirm
	}
	return who, err
}

// Confirm notes that the address of a link's bearer is theirs, from a client's address.
func (d *Authority) Confirm(ctx context.Context, from, token string) error {
	if err := d.Logins.Ask(from, "", time.Now()); err != nil {
		return err
	}
	who, err := d.Confirming(ctx, token)
	if err != nil {
		return err
	}
	return d.DB.Write(store.By(ctx, who.Actor(from)), func(ctx context.Context, tx *store.Tx) error {
		if err := tx.DeleteKey(ctx, who.User.ID, parley.ConfirmLink, who.Key.ID); store.IsNotFound(err) {
			return errConfirm // somebody was faster
		} else if err != nil {
			return err
		}
		is, err := tx.ProveEmail(ctx, who.User.ID, who.Person(), who.Key.Name)
		if err == nil && !is {
			err = errConfirm
		}
		return err
	})
}
