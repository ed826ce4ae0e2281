package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"parley/internal/auth"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/web"
)

const sessionCookie = "parley_session"

// cookieName is a cookie's: over HTTPS with the prefix that keeps other hosts of the same site from setting it
// (RFC 6265bis, 4.1.3).
func cookieName(name string, secure bool) string {
	if secure {
		return "__Host-" + name
	}
	return name
}

// credential is who a cookie says, nil where it is of nobody.
func (c *Console) credential(r *request, name string, kind parley.KeyKind) (*auth.Who, error) {
	cookie, err := r.Cookie(cookieName(name, c.Front.Secure(r.Request)))
	if err != nil {
		return nil, nil
	}
	who, err := c.Auth.Authenticate(r.Context(), cookie.Value, kind)
	if errors.Is(err, auth.ErrUnauthenticated) {
		return nil, nil
	}
	return who, err
}

// identify finds out who is signed in; r.who stays nil when nobody is.
func (c *Console) identify(r *request) error {
	who, err := c.credential(r, sessionCookie, parley.Console)
	if r.who = who; who != nil {
		r.Request = r.WithContext(store.By(r.Context(), who.Actor(c.Front.Address(r.Request))))
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

// zoneCookie is where the script says the browser's time zone (asset/console.js).
const zoneCookie = "parley_zone"

// browserZone is the browser's time zone, "" where it is not known.
func browserZone(r *http.Request) string {
	c, err := r.Cookie(zoneCookie)
	if err != nil || !parley.ValidTimezone(c.Value) {
		return ""
	}
	return c.Value
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
	return show("Sign in", signInForm("", back, "", c.issuerName())), nil
}

func (c *Console) signIn(r *request) (*answer, error) {
	email, password, back := strings.TrimSpace(r.PostFormValue("email")), r.PostFormValue("password"),
		localPath(r.PostFormValue("return"))
	again := func(status int, message string) *answer {
		return &answer{status: status, title: "Sign in", body: signInForm(email, back, message, c.issuerName())}
	}
	if email == "" || password == "" || len(email) > 255 || len(password) > 1024 {
		return again(http.StatusUnprocessableEntity, "Enter your email address and your password."), nil
	}
	who, err := c.checkPassword(r, email, password)
	var e *parley.Error
	if errors.As(err, &e) {
		return again(web.Status(e.Kind), e.Message), nil
	}
	if err != nil {
		return nil, err
	}
	return c.proven(r, who, back)
}

// proven goes on with somebody who has shown who they are: to their second factor, or in.
func (c *Console) proven(r *request, who *auth.Who, back string) (*answer, error) {
	second, err := c.Auth.TwoFactor(r.Context(), who.User.ID, who.Person())
	if err != nil {
		return nil, err
	}
	if second != nil {
		return c.askForCode(r, who, back)
	}
	return c.enter(r, who, back)
}

// enter begins a session in this browser, and goes where its reader wanted to.
func (c *Console) enter(r *request, who *auth.Who, back string) (*answer, error) {
	if err := c.identify(r); err != nil {
		return nil, err
	}
	if err := c.Auth.SettleZone(r.Context(), who, browserZone(r.Request)); err != nil {
		return nil, err
	}
	token, err := c.Auth.Begin(r.Context(), who, parley.Console, "console", r.who) // a browser has one session
	if err != nil {
		return nil, err
	}
	c.setCookie(r, token)
	return see(back), nil
}

// checkPassword is a login, counted against the limits. A failure that its causer may read is a *parley.Error.
func (c *Console) checkPassword(r *request, email, password string) (*auth.Who, error) {
	who, err := c.Auth.Login(r.Context(), c.Front.Address(r.Request), email, password)
	return who, c.tooMany(r, err)
}

// tooMany is an error in which a limit that was reached says how long to wait.
func (c *Console) tooMany(r *request, err error) error {
	var limit *auth.LimitError
	if !errors.As(err, &limit) {
		return err
	}
	web.RetryAfter(r.w, err)
	return parley.Errorf(parley.TooMany, "Too many attempts. Try again in %s.", time.Duration(limit.RetryAfter)*time.Second)
}

// setCookie gives the browser its session; "" ends it.
func (c *Console) setCookie(r *request, token string) {
	c.keep(r, sessionCookie, token, c.Auth.SessionFor)
}

// keep has the browser keep a credential; "" removes it.
func (c *Console) keep(r *request, name, token string, last time.Duration) {
	secure := c.Front.Secure(r.Request)
	cookie := &http.Cookie{Name: cookieName(name, secure), Value: token, Path: "/", HttpOnly: true, Secure: secure,
		SameSite: http.SameSiteLaxMode, MaxAge: int(last.Seconds())}
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
