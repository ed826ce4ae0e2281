package console

import (
	"errors"
	"log/slog"
	"net/url"
	"time"

	"parley/internal/auth"
	"parley/internal/oidc"
	"parley/internal/parley"
	"parley/internal/web"
)

const (
	flowCookie = "parley_oidc"      // what a browser keeps while its reader is at the issuer
	joinCookie = "parley_oidc_join" // and until they have joined their account
)

func (c *Console) callback(r *request) string {
	return c.Front.Base(r.Request) + "/signin/oidc/callback"
}

// issuerName is what the sign-in page calls the issuer, "" where there is none.
func (c *Console) issuerName() string {
	if c.Issuer == nil {
		return ""
	}
	return c.Issuer.Name()
}

// issuerPath begins a sign-in by OpenID Connect.
func issuerPath(back string) string {
	if back == "/" {
		return "/signin/oidc"
	}
	return "/signin/oidc?" + url.Values{"return": {back}}.Encode()
}

// oidcBegin sends the browser to the issuer.
func (c *Console) oidcBegin(r *request) (*answer, error) {
	back := localPath(r.URL.Query().Get("return"))
	to, kept, err := c.Issuer.Begin(r.Context(), c.callback(r), back)
	if err != nil {
		return c.notVouched(r, err, back)
	}
	c.keep(r, flowCookie, kept, oidc.FlowFor)
	return see(to), nil
}

// oidcEnd takes the browser back from the issuer.
func (c *Console) oidcEnd(r *request) (*answer, error) {
	kept := c.kept(r, flowCookie)
	c.keep(r, flowCookie, "", 0)
	if err := c.Auth.Logins.Come(c.Front.Address(r.Request), time.Now()); err != nil {
		return c.notVouched(r, err, "/")
	}
	person, back, err := c.Issuer.Finish(r.Context(), c.callback(r), kept, r.URL.Query())
	if err != nil {
		return c.notVouched(r, err, back)
	}
	who, err := c.Auth.Vouched(r.Context(), c.Front.Address(r.Request), person, c.Signup)
	if errors.Is(err, auth.ErrNotJoined) {
		pending, err := c.Issuer.Keep(person, back)
		if err != nil {
			return nil, err
		}
		c.keep(r, joinCookie, pending, oidc.FlowFor)
		return see("/signin/oidc/join"), nil
	}
	if err != nil {
		return c.notVouched(r, err, back)
	}
	return c.proven(r, who, back)
}

// oidcJoinPage asks whoever the issuer vouches for to show, once, that the account with their address is theirs.
func (c *Console) oidcJoinPage(r *request) (*answer, error) {
	person, _ := c.Issuer.Kept(c.kept(r, joinCookie))
	if person == nil {
		return see("/signin"), nil
	}
	return show("Sign in", joinForm(person.Email, c.issuerName(), "")), nil
}

func (c *Console) oidcJoin(r *request) (*answer, error) {
	person, back := c.Issuer.Kept(c.kept(r, joinCookie))
	if person == nil {
		return see("/signin"), nil
	}
	who, err := c.Auth.JoinIdentity(r.Context(), c.Front.Address(r.Request), person, r.PostFormValue("password"))
	if err = c.tooMany(r, err); err != nil {
		var e *parley.Error
		if !errors.As(err, &e) {
			return nil, err
		}
		return &answer{status: web.Status(e.Kind), title: "Sign in", body: joinForm(person.Email, c.issuerName(), e.Message)}, nil
	}
	c.keep(r, joinCookie, "", 0)
	return c.proven(r, who, back)
}

// kept is what the browser was given to keep, "" where it has nothing.
func (c *Console) kept(r *request, name string) string {
	cookie, err := r.Cookie(cookieName(name, c.Front.Secure(r.Request)))
	if err != nil {
		return ""
	}
	return cookie.Value
}

// notVouched is the sign-in page with why nobody was signed in by the issuer.
func (c *Console) notVouched(r *request, err error, back string) (*answer, error) {
	var e *parley.Error
	if err = c.tooMany(r, err); !errors.As(err, &e) {
		return nil, err
	}
	slog.WarnContext(r.Context(), "a sign-in by OpenID Connect was refused", "error", err)
	return &answer{status: web.Status(e.Kind), title: "Sign in", body: signInForm("", back, e.Message, c.issuerName())}, nil
}
