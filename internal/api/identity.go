package api

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"time"

	"parley/internal/auth"
	"parley/internal/parley"
)

func (a *API) identityRoutes() {
	const tag = "Identity"
	handle(a, op{Method: "POST", Path: "/login", Name: "login", Tag: tag, Access: anybody,
		Summary: "Sign in for a session token"}, a.login)
	handle(a, op{Method: "POST", Path: "/logout", Name: "logout", Tag: tag,
		Summary: "End the session whose token is sent"}, a.logout)
	if a.Signup {
		handle(a, op{Method: "POST", Path: "/register", Name: "register", Tag: tag, Access: anybody, Status: 201,
			Summary: "Create an account"}, a.signUp)
	}
	handle(a, op{Method: "GET", Path: "/user/me", Name: "getMe", Tag: tag,
		Summary: "Read the account that the credential belongs to"}, a.me)
	handle(a, op{Method: "PUT", Path: "/user/me", Name: "updateMe", Tag: tag, Body: parley.Profile{}, Partial: true,
		Summary: "Change your own name, email or time zone, or the account's country"}, a.updateMe)
	handle(a, op{Method: "POST", Path: "/user/me/confirm-email", Name: "askEmailConfirmation", Tag: tag,
		Summary: "Send a link to your own email address, which shows that it is yours"}, a.askConfirmation)
	handle(a, op{Method: "POST", Path: "/email/confirm", Name: "confirmEmail", Tag: tag, Access: anybody,
		Summary: "Confirm an email address with the token of a link"}, a.confirmEmail)
	handle(a, op{Method: "GET", Path: "/user/api-keys", Name: "listKeys", Tag: tag,
		Summary: "List API keys, never their tokens"}, a.listKeys)
	handle(a, op{Method: "POST", Path: "/user/api-keys", Name: "createKey", Tag: tag, Status: 201,
		Summary: "Create an API key; its token is shown once"}, a.createKey)
	handle(a, op{Method: "DELETE", Path: "/user/api-keys/{id}", Name: "deleteKey", Tag: tag,
		NotFound: "API key not found.", Summary: "Revoke an API key, at once"}, a.deleteKey)
	handle(a, op{Method: "DELETE", Path: "/user/api-keys", Name: "deleteKeys", Tag: tag,
		Summary: "Revoke all API keys at once, except the one in use"}, a.deleteKeys)
}

type credentials struct {
	Body struct {
		Email     string `json:"email" required:"true" maxLength:"255"`
		Password  string `json:"password" required:"true" maxLength:"1024" trim:"off"`
		TokenName string `json:"token_name" maxLength:"255" doc:"A name for the session."`
		Code      string `json:"code" maxLength:"64" doc:"A code of the authenticator app, or a recovery code: needed for accounts with two-factor sign-in."`
	}
}

type session struct {
	Message string  `json:"message"`
	User    account `json:"user"`
	Token   string  `json:"token"`
}

type account struct {
	ID    int64       `json:"id"`
	Name  string      `json:"name"`
	Email string      `json:"email"`
	Role  parley.Role `json:"role,omitempty" doc:"Of a member. An account's owner has none here."`
}

func accountOf(who *auth.Who) account {
	a := account{ID: who.User.ID, Name: who.Name(), Email: who.Email()}
	if who.Member != nil {
		a.Role = who.Member.Role
	}
	return a
}

func (a *API) login(ctx context.Context, r *request, in *credentials) (*session, error) {
	who, err := a.Auth.Login(ctx, a.Front.Address(r.Request), in.Body.Email, in.Body.Password)
	if err != nil {
		return nil, err
	}
	if err := a.Auth.CheckCode(ctx, who.User.ID, who.Person(), in.Body.Code); err != nil {
		return nil, err
	}
	token, err := a.Auth.Begin(ctx, who, parley.Session, cmp.Or(in.Body.TokenName, "session"), nil)
	return &session{"Logged in successfully.", accountOf(who), token}, err
}

func (a *API) logout(ctx context.Context, r *request, _ *none) (*notice, error) {
	return &notice{"Logged out successfully."}, a.Auth.End(ctx, r.Who)
}

type newAccount struct {
	Body struct {
		Name     string `json:"name" required:"true" maxLength:"255"`
		Email    string `json:"email" required:"true" maxLength:"255" format:"email"`
		Password string `json:"password" required:"true" minLength:"8" maxLength:"1024" trim:"off"`
		Timezone string `json:"timezone" default:"UTC" maxLength:"64" format:"timezone" doc:"IANA time zone."`
	}
}

func (a *API) signUp(ctx context.Context, r *request, in *newAccount) (*session, error) {
	if err := a.Auth.Logins.Ask(a.Front.Address(r.Request), in.Body.Email, time.Now()); err != nil {
		return nil, err
	}
	u := &parley.User{Name: in.Body.Name, Email: in.Body.Email, Timezone: in.Body.Timezone}
	token, err := a.Auth.Register(ctx, u, in.Body.Password, func() error {
		_, err := a.limitSignups.Take(a.Front.Address(r.Request), time.Now())
		return err
	})
	if err != nil {
		return nil, err
	}
	who := &auth.Who{User: u}
	if _, err := a.Auth.AskConfirmation(ctx, who, a.Front.Base(r.Request)); err != nil { // they can ask again
		slog.WarnContext(ctx, "ask a new account to confirm its address", "user", u.ID, "error", err)
	}
	return &session{"Registered successfully.", accountOf(who), token}, nil
}

// me is the account, as who asks may know it. An owner with a full credential gets no field but the contract's.
type me struct {
	ID       int64         `json:"id"`
	Name     string        `json:"name"`
	Email    string        `json:"email"`
	Timezone string        `json:"timezone"`
	Country  string        `json:"country" doc:"Of the account: where national telephone numbers are read; empty: nowhere."`
	Plan     string        `json:"plan"`
	Balance  *parley.Money `json:"total_balance,omitempty" doc:"For those who may read the ledger."`
	Role     parley.Role   `json:"role,omitempty" doc:"Of a member, or of a key that is limited to a role: what the credential may do."`
	MemberID int64         `json:"member_id,omitempty" doc:"Of a member: name, email and time zone are theirs."`

	Unconfirmed bool `json:"email_unconfirmed,omitempty" doc:"True while nobody has shown that the email is theirs (POST /user/me/confirm-email): alerts are not sent to it."`
}

func meOf(who *auth.Who) *me {
	out := &me{ID: who.User.ID, Name: who.Name(), Email: who.Email(), Timezone: who.Timezone(), Country: who.User.Country, Plan: who.User.Plan,
		Unconfirmed: !who.Confirmed()}
	role := who.Role()
	if role.Includes(parley.NeedLedger) {
		out.Balance = &who.User.Balance
	}
	if role != parley.RoleOwner || who.Member != nil {
		out.Role = role
	}
	if m := who.Member; m != nil {
		out.MemberID = m.ID
	}
	return out
}

func (a *API) me(ctx context.Context, r *request, _ *none) (*me, error) { return meOf(r.Who), nil }

type changedAccount struct {
	Message string `json:"message"`
	User    *me    `json:"user"`
}

func (a *API) updateMe(ctx context.Context, r *request, _ *none) (*changedAccount, error) {
	changed, err := a.Auth.SetOwn(ctx, r.Who, r.Body, func(password string) error {
		_, err := a.Auth.Login(ctx, a.Front.Address(r.Request), r.Who.Email(), password)
		return err
	})
	if err != nil {
		return nil, err
	}
	if changed.Email() != r.Who.Email() {
		if _, err := a.Auth.AskConfirmation(ctx, changed, a.Front.Base(r.Request)); err != nil { // they can ask again
			slog.WarnContext(ctx, "ask somebody to confirm a new address", "user", r.UserID(), "error", err)
		}
	}
	return &changedAccount{"Account updated successfully.", meOf(changed)}, nil
}

type askedLink struct {
	Message string `json:"message"`
	Emailed bool   `json:"emailed" doc:"A link is being sent. Otherwise the address is confirmed already, the server sends no e-mail, or too many went out today."`
}

func (a *API) askConfirmation(ctx context.Context, r *request, _ *none) (*askedLink, error) {
	sent, err := a.Auth.AskConfirmation(ctx, r.Who, a.Front.Base(r.Request))
	return &askedLink{"Confirmation requested successfully.", sent}, err
}

type confirmation struct {
	Body struct {
		Token string `json:"token" required:"true" maxLength:"255"`
	}
}

func (a *API) confirmEmail(ctx context.Context, r *request, in *confirmation) (*notice, error) {
	err := a.Auth.Confirm(ctx, a.Front.Address(r.Request), strings.TrimSpace(in.Body.Token))
	return &notice{"Email confirmed successfully."}, err
}

type keyList struct {
	APIKeys []parley.Key `json:"api_keys"`
}

func (a *API) listKeys(ctx context.Context, r *request, _ *none) (*keyList, error) {
	list, err := a.DB.Keys(ctx, r.UserID())
	return &keyList{list}, err
}

type newKey struct{ Body auth.KeyInput }

type createdKey struct {
	Message string `json:"message"`
	APIKey  struct {
		ID        int64       `json:"id"`
		Name      string      `json:"name"`
		Token     string      `json:"token"`
		CreatedAt parley.Time `json:"created_at"`
		MemberID  int64       `json:"member_id,omitempty"`
		Scope     parley.Role `json:"scope,omitempty"`
	} `json:"api_key"`
}

func (a *API) createKey(ctx context.Context, r *request, in *newKey) (*createdKey, error) {
	out := &createdKey{Message: "API key created successfully."}
	k, token, err := a.Auth.MakeKey(ctx, r.Who, &in.Body)
	if err != nil {
		return nil, err
	}
	out.APIKey.ID, out.APIKey.Name, out.APIKey.Token, out.APIKey.CreatedAt = k.ID, k.Name, token, k.CreatedAt
	out.APIKey.MemberID, out.APIKey.Scope = k.MemberID, k.Scope
	return out, nil
}

func (a *API) deleteKey(ctx context.Context, r *request, in *byID) (*notice, error) {
	return &notice{"API key deleted successfully."}, a.Auth.RevokeKey(ctx, r.UserID(), in.ID)
}

type revokedKeys struct {
	Message string `json:"message"`
	Revoked int64  `json:"revoked"`
}

func (a *API) deleteKeys(ctx context.Context, r *request, _ *none) (*revokedKeys, error) {
	n, err := a.Auth.RevokeKeys(ctx, r.UserID(), r.Who.Key.ID)
	return &revokedKeys{"API keys deleted successfully.", n}, err
}
