package console

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"parley/internal/auth"
	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/web"
)

// request is one request, and who is signed in.
type request struct {
	*http.Request
	w   http.ResponseWriter
	who *auth.Who // nil on pages that anybody may see
}

// UserID is the id of the user who is signed in.
func (r *request) UserID() int64 { return r.who.User.ID }

// tree is what a form holds as the tree of a JSON body (decode), with telephone numbers in E.164 as far as they can be
// read in the account's country.
func (r *request) tree(of reflect.Type) map[string]any {
	tree := decode(r.PostForm, of)
	form.Phones(tree, of, r.who.User.Country)
	return tree
}

// query reads the query's parameters into q, with telephone numbers as tree has them.
func (r *request) query(q any) parley.Fields {
	values := r.URL.Query()
	form.QueryPhones(values, reflect.TypeOf(q).Elem(), r.who.User.Country)
	return form.Query(values, q)
}

// phone is a telephone number as somebody wrote it, in E.164 where it can be read in the account's country.
func (r *request) phone(text string) string {
	if e164, err := parley.ReadPhone(text, r.who.User.Country); err == nil {
		return e164
	}
	return text
}

// target is where a call is to be sent, as somebody wrote it, in the form in which it is kept where it can be read.
func (r *request) target(text string) string {
	if to, _, ok := parley.ReadTransferTarget(text, r.who.User.Country); ok {
		return to
	}
	return strings.TrimSpace(text)
}

// zone is the time zone of whoever is signed in.
func (r *request) zone() *time.Location { return r.who.Zone() }

// id is an id in the path: 0, which nothing has, where it can't be one.
func (r *request) id(name string) int64 {
	text := r.PathValue(name)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != text {
		return 0
	}
	return n
}

// answer is what a handler wants to be sent.
type answer struct {
	status int
	title  string
	body   templ.Component
	to     string // where to go instead
	zone   string // of the page's times; "": that of who is signed in
	part   bool   // a script puts it into another page, whose address stays
}

// zoneKey has the zone of a page's times in the context in which it is rendered.
type zoneKey struct{}

func zoneOf(ctx context.Context) string {
	zone, _ := ctx.Value(zoneKey{}).(string)
	return zone
}

// in has the page show all times in one zone, which is that of what is entered on it.
func (a *answer) in(zone string) *answer {
	a.zone = zone
	return a
}

// show answers with a page.
func show(title string, body templ.Component) *answer {
	return &answer{status: http.StatusOK, title: title, body: body}
}

// piece answers with a part of a page that a script puts into another page.
func piece(title string, body templ.Component) *answer {
	a := show(title, body)
	a.part = true
	return a
}

// invalid answers with a page whose form has errors.
func invalid(title string, body templ.Component) *answer {
	return &answer{status: http.StatusUnprocessableEntity, title: title, body: body}
}

// see sends the browser to another page. done, where given, names a notice that it shows (notices, layout.go).
func see(path string, done ...string) *answer {
	if len(done) > 0 {
		path += "?done=" + done[0]
	}
	return &answer{to: path}
}

type handler func(r *request) (*answer, error)

// page registers a page for people who are signed in; others are asked to sign in.
func (c *Console) page(pattern string, h handler) { c.open(pattern, c.known(pattern, h)) }

// files registers a form with files, for people who are signed in: its handler reads the body, piece by piece.
func (c *Console) files(pattern string, h handler) { c.route(pattern, c.known(pattern, h)) }

// known is a handler that asks to sign in first, and refuses those whose role the pattern is not for.
func (c *Console) known(pattern string, h handler) handler {
	c.private[pattern] = true
	return func(r *request) (*answer, error) {
		if err := c.identify(r); err != nil {
			return nil, err
		}
		if r.who == nil {
			return c.askToSignIn(r)
		}
		if err := r.mayUse(pattern); err != nil {
			return nil, err
		}
		if r.Context().Value(within{}) != nil { // its connection's request was counted
			leave, err := c.Gate.Follow(r.UserID(), r.who.User.Plan)
			if err != nil {
				return nil, err
			}
			defer leave()
			return h(r)
		}
		if err := c.Gate.Ask(r.UserID(), time.Now()); err != nil {
			return nil, err
		}
		occupies := parley.LimitTogether
		if strings.HasSuffix(pattern, "/live") || strings.HasSuffix(pattern, "/lives") {
			occupies = parley.LimitStreams
		}
		leave, err := c.Gate.Enter(r.UserID(), r.who.User.Plan, occupies)
		if err != nil {
			return nil, err
		}
		defer leave()
		return h(r)
	}
}

// formLimit bounds a submitted form, as the API bounds JSON.
const formLimit = 1 << 20

// open registers a page for anybody.
func (c *Console) open(pattern string, h handler) {
	c.route(pattern, func(r *request) (*answer, error) {
		if r.Method == http.MethodPost {
			r.Body = http.MaxBytesReader(r.w, r.Body, formLimit)
			if err := r.ParseForm(); err != nil {
				return nil, formError(err)
			}
		}
		return h(r)
	})
}

// route answers requests of a pattern with what their handler returns.
func (c *Console) route(pattern string, h handler) {
	c.mux.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) {
		r := &request{Request: req, w: w}
		a, err := h(r)
		switch {
		case err != nil:
			c.fail(r, err)
		case a == nil: // it has answered by itself
		case a.to != "":
			http.Redirect(w, req, a.to, http.StatusSeeOther)
		default:
			c.render(r, a)
		}
	})
}

func formError(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return parley.Errorf(parley.TooLarge, "The upload is too large: at most %d MiB.", large.Limit>>20)
	}
	return parley.Errorf(parley.Refused, "The form can't be read.")
}

// policy lets nothing in that this server did not send, and nothing inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; " +
	"connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP answers a request for a page. A panic is one request's failure.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = web.Name(w, r)
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	defer web.Survive(func(err error) { http.Error(w, plain(r, err).Message, http.StatusInternalServerError) })
	c.handler.ServeHTTP(w, r)
}

// fail shows an error as a page, and logs what is ours to mend.
func (c *Console) fail(r *request, err error) {
	e := plain(r.Request, err)
	web.RetryAfter(r.w, store.Told(err))
	status := web.Status(e.Kind)
	c.render(r, &answer{status: status, title: http.StatusText(status), body: errorPage(status, e.Message)})
}

// plain is an error as its causer may read it.
func plain(r *http.Request, err error) *parley.Error {
	e := web.Known(r, store.Told(err), "Something went wrong on the server. Quote "+web.RequestID(r.Context())+
		" when you report it.")
	if e.Detail != "" {
		e = parley.Errorf(e.Kind, "%s", e.Detail)
	}
	return e
}

// render sends a page whole, or not at all.
func (c *Console) render(r *request, a *answer) {
	var b bytes.Buffer
	ctx := context.WithoutCancel(r.Context()) // a reader who left, or was too slow, is nobody's error
	f := c.frame(r, a)
	if err := layout(f, a.body).Render(context.WithValue(ctx, zoneKey{}, f.zone), &b); err != nil {
		slog.ErrorContext(r.Context(), "render a page", "path", web.LoggedPath(r.URL.Path), "error", err)
		http.Error(r.w, "Something went wrong on the server.", http.StatusInternalServerError)
		return
	}
	page := b.Bytes()
	if r.who != nil {
		page = c.within(r, page)
	}
	h := r.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	// where a script arrived is what the browser shows as its address
	if r.Header.Get("HX-Request") != "" && r.Method == http.MethodGet && !a.part {
		q := r.URL.Query()
		q.Del("done")
		h.Set("HX-Replace-Url", (&url.URL{Path: r.URL.Path, RawQuery: q.Encode()}).String())
	}
	// Compressing a page is safe (BREACH): it holds no token that guards requests, and no other site's request brings
	// the cookie along.
	web.SendZipped(r.w, r.Request, a.status, page)
}
