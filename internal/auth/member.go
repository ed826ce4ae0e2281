package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"parley/internal/form"
	"parley/internal/mail"
	"parley/internal/parley"
	"parley/internal/store"
)

// People work in another's account as its members. They come by invitation: a token, written so that it can stand in an
// address, is good for one acceptance within a week.

const (
	invitedFor   = 7 * 24 * time.Hour
	invitePrefix = "invite-"
)

var errInvitation = parley.Errorf(parley.NotFound, "This invitation is no longer valid. Ask the person who sent it for a new one.")

// Invited says what came of an invitation.
type Invited struct {
	*parley.Invitation
	Token string // kept nowhere
	Link  string // where it is accepted, with the token
	Sent  bool   // by e-mail
}

// Invite has somebody make an invitation to their account, in place of a former one to the same address, and sends it where this
// server can. Its link begins with base. An account that only made itself sends nothing to others.
func (d *Authority) Invite(ctx context.Context, by *Who, base string, body map[string]any) (*Invited, error) {
	u := by.User
	var in parley.InvitationInput
	if err := form.Bind(body, &in, true).Err(); err != nil {
		return nil, err
	}
	if err := by.manages(in.Role); err != nil {
		return nil, err
	}
	secret, hash := newSecret()
	mailed, mailHash := newSecret()
	out := &Invited{Invitation: &parley.Invitation{UserID: u.ID, Email: strings.ToLower(in.Email), Name: in.Name,
		Role: in.Role, Hash: hash, ExpiresAt: parley.Now().Add(invitedFor)}}
	sends, err := d.sends(u)
	if err != nil {
		return nil, err
	}
	if sends {
		out.MailHash = mailHash
	}
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		out.ID, out.Sent = 0, false
		if err := tx.CreateInvitation(ctx, out.Invitation); err != nil {
			return err
		}
		token := invitePrefix + strconv.FormatInt(out.ID, 10) + "-"
		out.Token = token + secret
		out.Link = base + "/join/" + out.Token
		if sends {
			out.Sent, err = d.Mail.Queue(ctx, tx, out.message(u, base+"/join/"+token+mailed))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// sends says whether an account's links are sent by e-mail, and counts one: a server without mail and an account that
// only made itself send none.
func (d *Authority) sends(u *parley.User) (bool, error) {
	if d.Mail == nil || !d.Mail.On() || u.SignedUpAt != 0 {
		return false, nil
	}
	_, err := d.Invites.Take(strconv.FormatInt(u.ID, 10), time.Now())
	return err == nil, err
}

// message is the e-mail of an invitation. Its link is not the one that is shown to whoever invites: who uses it can read what is sent
// to the address.
func (i *Invited) message(u *parley.User, link string) mail.Message {
	text := fmt.Sprintf("%s invites you to work in their account on Parley, as %s.\n\nOpen this link to choose a password:\n\n%s\n\n"+
		"It is valid until %s, and for one person. If you did not expect this, ignore it.\n", u.Email, i.Role, link, i.ExpiresAt)
	return mail.Message{Kind: mail.Invitation, Account: u.ID, To: i.Email, Text: text}
}

func newSecret() (secret string, hash []byte) {
	raw := make([]byte, 32)
	rand.Read(raw)
	secret = base64.RawURLEncoding.EncodeToString(raw) // 43 characters
	sum := sha256.Sum256([]byte(secret))
	return secret, sum[:]
}

// isSecret says whether a hash is that of a secret.
func isSecret(secret string, hash []byte) bool {
	sum := sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(sum[:], hash) == 1
}

// Withdraw ends an invitation.
func (d *Authority) Withdraw(ctx context.Context, by *Who, id int64) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		i, err := tx.InvitationByID(ctx, id)
		if err == nil && i.UserID == by.User.ID {
			err = by.manages(i.Role)
		}
		if err != nil && !store.IsNotFound(err) {
			return err
		}
		return tx.DeleteInvitation(ctx, by.User.ID, id)
	})
}

// Invited is the invitation that a token is of, and the account that it leads to.
func (d *Authority) Invited(ctx context.Context, token string) (*parley.Invitation, *parley.User, error) {
	rest, ok := strings.CutPrefix(token, invitePrefix)
	id, secret, good := parseToken(strings.Replace(rest, "-", "|", 1))
	if !ok || !good {
		return nil, nil, errInvitation
	}
	i, err := d.DB.InvitationByID(ctx, id)
	if err != nil && !store.IsNotFound(err) {
		return nil, nil, err
	}
	if err != nil || !isSecret(secret, i.Hash) && !isSecret(secret, i.MailHash) || parley.Now() >= i.ExpiresAt {
		return nil, nil, errInvitation
	}
	u, err := d.DB.User(ctx, i.UserID)
	if err == nil && u.DisabledAt != 0 {
		err = errInvitation
	}
	return i, u, err
}

// Acceptance is what somebody who accepts an invitation says of themselves.
type Acceptance struct {
	Name     string `json:"name" maxLength:"255" doc:"Without it, the name in the invitation."`
	Password string `json:"password" required:"true" minLength:"8" maxLength:"1024" trim:"off"`
	Timezone string `json:"timezone" default:"UTC" maxLength:"64" format:"timezone" doc:"IANA time zone."`
}

// Accept makes the member that an invitation is for, and begins a session of theirs of that kind. from, a client's
// address, tries a token as it would a password.
func (d *Authority) Accept(ctx context.Context, from, token string, in *Acceptance, kind parley.KeyKind) (who *Who,
	session string, err error) {
	if err := d.Logins.Ask(from, "", time.Now()); err != nil {
		return nil, "", err
	}
	i, u, err := d.Invited(ctx, token)
	if err != nil {
		return nil, "", err
	}
	m := &parley.Member{UserID: i.UserID, Name: in.Name, Email: i.Email, Role: i.Role, Timezone: in.Timezone}
	if _, secret, ok := strings.Cut(strings.TrimPrefix(token, invitePrefix), "-"); ok && isSecret(secret, i.MailHash) {
		m.EmailProvenAt = parley.Now()
	}
	if m.Name == "" {
		m.Name = i.Name
	}
	if why := WeakPassword(in.Password, m.Name, m.Email); why != "" {
		var wrong parley.Fields
		wrong.Add("password", "%s", why)
		return nil, "", wrong.Err()
	}
	if m.PasswordHash, err = HashPassword(in.Password); err != nil {
		return nil, "", err
	}
	who = &Who{User: u, Member: m}
	ctx = store.By(ctx, store.Actor{UserID: u.ID, Who: "invitation:" + strconv.FormatInt(i.ID, 10), Name: i.Email, Address: from})
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.DeleteInvitation(ctx, i.UserID, i.ID); store.IsNotFound(err) {
			return errInvitation // somebody was faster
		} else if err != nil {
			return err
		}
		m.ID = 0
		if err := tx.CreateMember(ctx, m); err != nil {
			return err
		}
		who.Key, session, err = d.newKey(ctx, tx, &parley.Key{UserID: u.ID, MemberID: m.ID, Kind: kind, Name: string(kind)})
		return err
	})
	return who, session, err
}

// Join is Accept with what a form or a body says.
func (d *Authority) Join(ctx context.Context, from, token string, body map[string]any, kind parley.KeyKind) (*Who, string, error) {
	var in Acceptance
	form.Defaults(&in)
	if err := form.Bind(body, &in, true).Err(); err != nil {
		return nil, "", err
	}
	return d.Accept(ctx, from, token, &in, kind)
}

// ChangeMember changes what body names of a member: the role, and whether they may sign in. A disabled member's sessions
// end at once. A link for a new password ends with a role that has less than the new one: who made it could not do so now.
func (d *Authority) ChangeMember(ctx context.Context, by *Who, id int64, body map[string]any) (m *parley.Member, err error) {
	userID := by.User.ID
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if m, err = tx.MemberForUpdate(ctx, userID, id); err != nil {
			return err
		}
		in := parley.MemberChange{Role: m.Role, Disabled: m.DisabledAt != 0}
		if err := form.Bind(body, &in, false).Err(); err != nil {
			return err
		}
		for _, role := range []parley.Role{m.Role, in.Role} {
			if err := by.manages(role); err != nil {
				return err
			}
		}
		if !m.Role.Covers(in.Role) {
			if err := tx.DeleteCredentials(ctx, userID, id, parley.ResetLink); err != nil {
				return err
			}
		}
		m.Role = in.Role
		switch {
		case !in.Disabled:
			m.DisabledAt = 0
		case m.DisabledAt == 0:
			m.DisabledAt = parley.Now()
			if err := tx.DeleteSessions(ctx, userID, id); err != nil {
				return err
			}
		}
		return tx.SaveMember(ctx, m)
	})
	return m, err
}

// RemoveMember removes a member with their sessions and keys.
func (d *Authority) RemoveMember(ctx context.Context, by *Who, id int64) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		m, err := tx.MemberForUpdate(ctx, by.User.ID, id)
		if err != nil {
			return err
		}
		if err := by.manages(m.Role); err != nil {
			return err
		}
		return tx.DeleteMember(ctx, by.User.ID, id)
	})
}

// SetOwn changes what body names of the caller's own: of the account, or of the member who works in it.
func (d *Authority) SetOwn(ctx context.Context, who *Who, body map[string]any, check func(password string) error) (*Who, error) {
	changed := *who
	var err error
	if who.Member != nil {
		changed.Member, changed.User, err = d.setMember(ctx, who, body, check)
	} else {
		changed.User, err = d.SetProfile(ctx, who.User, body, check)
	}
	return &changed, err
}

// setMember changes what body names of a member, as SetProfile does of a user; the account's country too, where their role lets them.
func (d *Authority) setMember(ctx context.Context, who *Who, body map[string]any,
	check func(password string) error) (changed *parley.Member, u *parley.User, err error) {
	m := who.Member
	if email, _ := body["email"].(string); strings.EqualFold(strings.TrimSpace(email), m.Email) {
		body = maps.Clone(body)
		delete(body, "email")
	}
	u = who.User
	p := parley.Profile{Name: m.Name, Email: m.Email, Timezone: m.Timezone, Country: u.Country}
	if err := checkProfile(form.Bind(body, &p, false), &p, m.Email, check); err != nil {
		return nil, nil, err
	}
	moves := p.Country != u.Country
	if moves && !who.Role().Includes(parley.RoleAdministrator) {
		return nil, nil, parley.Errorf(parley.Forbidden, "Only owners and administrators can change the account's country.")
	}
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if changed, err = tx.MemberForUpdate(ctx, m.UserID, m.ID); err != nil {
			return err
		}
		if p.Email != m.Email {
			changed.Email, changed.EmailProvenAt = p.Email, 0
		}
		changed.Name, changed.Timezone = p.Name, p.Timezone
		if err := tx.SaveMember(ctx, changed); err != nil || !moves {
			return err
		}
		if err := tx.LockUser(ctx, m.UserID); err != nil {
			return err
		}
		if u, err = tx.User(ctx, m.UserID); err != nil {
			return err
		}
		u.Country = p.Country
		return tx.SaveUser(ctx, u)
	})
	return changed, u, err
}

func setMemberPassword(ctx context.Context, tx *store.Tx, m *parley.Member, hash string) error {
	now, err := tx.MemberForUpdate(ctx, m.UserID, m.ID)
	if err != nil {
		return err
	}
	now.PasswordHash = hash
	if err := tx.SaveMember(ctx, now); err != nil {
		return err
	}
	return endSignIns(ctx, tx, m.UserID, m.ID)
}
