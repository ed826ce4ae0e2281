package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"parley"
	"parley/internal/assistant"
	"parley/internal/auth"
	"parley/internal/web"
)

// cookieName is the session's: over HTTPS with the prefix that keeps other hosts of the same site from setting it
// (RFC 6265bis, 4.1.3).
func cookieName(secure bool) string {
	if secure {
		return "__Host-parley_session"
	}
	return "parley_session"
}

// identify finds out who is signed in; r.who stays nil when nobody is.
func (c *Console) identify(r *request) error {
	cookie, err := r.Cookie(cookieName(c.Front.Secure(r.Request)))
	if err != nil {
		return nil
	}
	who, err := c.Auth.Authenticate(r.Context(), cookie.Value, parley.Console)
	if errors.Is(err, auth.ErrUnauthenticated) {
		return nil
	}
	if r.who = who; who != nil {
		r.Request = r.WithContext(assistant.By(r.Context(), who.Author()))
	}
	return err
}

// askToSignIn sends a reader to the sign-in page, and back afterwards. A script's request is refused instead, so a form
// that is being edited keeps what was typed.
func (c *Console) askToSignIn(r *request) (*answer, error) {
	if r.Header.Get("HX-Request") != "" {
		return nil, parley.Errorf(parley.Unauthenticated, "Your session has ended. Sign in again.")
	}
	back := r.URL.RequestURI()
	if r.Method != http.MethodGet {
		back = "/"
		if from, err := url.Parse(r.Referer()); err == nil && from.Host == r.Host {
			back = from.RequestURI()
		}
	}
	if back == "/" {
		return see("/signin"), nil
	}
	return see("/signin?return=" + url.QueryEscape(back)), nil
}

// localPath is a path on this server, "/" where text is anything else: a link must not send a user elsewhere after
// signing in.
func localPath(text string) string {
	u, err := url.Parse(text)
	bad := err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(text, "/") ||
		strings.HasPrefix(text, "//") ||
		strings.ContainsAny(text, "\\\r\n\t") || strings.HasPrefix(u.Path, "/signin") || strings.HasPrefix(u.Path, "//")
	if bad {
		return "/"
	}
	return text
}

func (c *Console) signInPage(r *request) (*answer, error) {
	if err := c.identify(r); err != nil {
		return nil, err
	}
	back := localPath(r.URL.Query().Get("return"))
	if r.who != nil {
		return see(back), nil
	}
	return show("Sign in", signInForm("", back, "")), nil
}

func (c *Console) signIn(r *request) (*answer, error) {
	email, password, back := strings.TrimSpace(r.PostFormValue("email")), r.PostFormValue("password"),
		localPath(r.PostFormValue("return"))
	again := func(status int, message string) *answer {
		return &answer{status: status, title: "Sign in", body: signInForm(email, back, message)}
	}
	if email == "" || password == "" || len(email) > 255 || len(password) > 1024 {
		return again(http.StatusUnprocessableEntity, "Enter your email address and your password."), nil
	}
	u, err := c.checkPassword(r, email, password)
	var e *parley.Error
	if errors.As(err, &e) {
		return again(web.Status(e.Kind), e.Message), nil
	}
	if err != nil {
		return nil, err
	}
	if err := c.identify(r); err != nil {
		return nil, err
	}
	token, err := c.Auth.Begin(r.Context(), u.ID, parley.Console, "console", r.who) // a browser has one session
	if err != nil {
		return nil, err
	}
	c.setCookie(r, token)
	return see(back), nil
}

// checkPassword is a login, counted against the limits. A failure that its causer may read is a *parley.Error.
func (c *Console) checkPassword(r *request, email, password string) (*parley.User, error) {
	u, err := c.Auth.Login(r.Context(), c.Front.Address(r.Request), email, password)
	var limit *auth.LimitError
	if errors.As(err, &limit) {
		web.RetryAfter(r.w, err)
		return nil, parley.Errorf(parley.TooMany, "Too many attempts. Try again in %s.",
			time.Duration(limit.RetryAfter)*time.Second)
	}
	return u, err
}

// setCookie gives the browser its session; "" ends it.
func (c *Console) setCookie(r *request, token string) {
	secure := c.Front.Secure(r.Request)
	cookie := &http.Cookie{Name: cookieName(secure), Value: token, Path: "/", HttpOnly: true, Secure: secure,
		SameSite: http.SameSiteLaxMode,
		MaxAge:   int(c.Auth.SessionFor.Seconds())}
	if token == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(r.w, cookie)
}

func (c *Console) signOut(r *request) (*answer, error) {
	if err := c.identify(r); err != nil {
		return nil, err
	}
	if r.who != nil {
		if err := c.Auth.End(r.Context(), r.who); err != nil {
			return nil, err
		}
	}
	c.setCookie(r, "")
	return see("/signin", "signed-out"), nil
}
