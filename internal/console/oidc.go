package console

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"

	"parley"
	"parley/internal/auth"
	"parley/internal/oidc"
	"parley/internal/web"
)

// flowCookie holds what a browser keeps while its reader is at the issuer.
const flowCookie = "parley_oidc"

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
	to, kept, err := c.Issuer.Begin(r.Context(), c.callback(r), localPath(r.URL.Query().Get("return")))
	if err != nil {
		slog.WarnContext(r.Context(), "begin a sign-in by OpenID Connect", "error", err)
		return c.signInAgain(http.StatusBadGateway, "/", c.Issuer.Name()+" does not answer. Sign in with your password, or try again later."), nil
	}
	c.keep(r, flowCookie, kept, oidc.FlowFor)
	return see(to), nil
}

// oidcEnd takes the browser back from the issuer.
func (c *Console) oidcEnd(r *request) (*answer, error) {
	kept := ""
	if cookie, err := r.Cookie(cookieName(flowCookie, c.Front.Secure(r.Request))); err == nil {
		kept = cookie.Value
	}
	c.keep(r, flowCookie, "", 0)
	person, back, err := c.Issuer.Finish(r.Context(), c.callback(r), kept, r.URL.Query())
	var who *auth.Who
	if err == nil {
		who, err = c.Auth.Vouched(r.Context(), c.Front.Address(r.Request), person.Email, person.Name, c.Signup)
	}
	var e *parley.Error
	if err = c.tooMany(r, err); errors.As(err, &e) {
		slog.WarnContext(r.Context(), "a sign-in by OpenID Connect was refused", "error", err)
		return c.signInAgain(web.Status(e.Kind), back, e.Message), nil
	}
	if err != nil {
		return nil, err
	}
	return c.proven(r, who, back)
}

// signInAgain is the sign-in page with what went wrong.
func (c *Console) signInAgain(status int, back, message string) *answer {
	return &answer{status: status, title: "Sign in", body: signInForm("", back, message, c.issuerName())}
}
