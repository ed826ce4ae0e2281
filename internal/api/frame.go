package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"parley/internal/auth"
	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/web"
)

// access says who may call an operation.
type access int

const (
	user    access = iota // a credential is needed
	public                // anybody, also pages of other origins; a credential is looked at where one is sent
	anybody               // anybody, from our own origin or a program
)

// op declares one operation: what the mux, the frame and the API reference need to know of it.
type op struct {
	Method, Path string // Path is below /api, with {id} parameters
	Name         string // operationId
	Summary      string
	Tag          string
	Status       int // of success; 200 when 0
	Family       family
	Access       access
	NotFound     string // what a path id that can't be one answers: as an unknown one would
	Failure      string // the text of a 500 (contract 7.2)
	Idempotent   bool   // honours Idempotency-Key
	Body         any    // documents the body of a handler that reads request.Body itself: a value of its type
	Partial      bool   // Body: nothing is required (PUT)
	// a body may also be multipart/form-data, of so many bytes at most; Body documents it, with File
	Upload int64
	File   string        // the name of the field that a file comes in
	Raw    string        // the handler reads the body itself: its content type
	Stream string        // documents an answer that is no JSON: its content type
	Limit  *auth.Limiter // per address, beside the one per key
}

// request is what a handler knows of who asks and what was sent.
type request struct {
	*http.Request
	W    http.ResponseWriter // for handlers that stream
	Who  *auth.Who           // nil on public routes without a credential
	Body map[string]any      // the JSON object
	Form *upload             // the form in its place, on operations that take one; nil when the body is JSON
	op   *op
}

// input is the type of an operation's JSON body, nil where it has none; in is the handler's.
func (o *op) input(in reflect.Type) reflect.Type {
	if o.Body != nil {
		return reflect.TypeOf(o.Body)
	}
	if f, ok := in.FieldByName("Body"); ok {
		return f.Type
	}
	return nil
}

// UserID is the asking user's id.
func (r *request) UserID() int64 { return r.Who.User.ID }

// country is where national telephone numbers of the request are read.
func (r *request) country() string {
	if r.Who == nil {
		return ""
	}
	return r.Who.User.Country
}

// owns says whether the request carries a credential of that user's.
func (r *request) owns(userID int64) bool { return r.Who != nil && r.UserID() == userID }

// errAnswered is returned by handlers that wrote their answer themselves.
var errAnswered = errors.New("answered")

// handle registers an operation. In is a struct whose fields say what the handler needs: `path:"id"` (an id, or a
// text), `query:"…"` (see form), and a struct field named Body, which is bound from the JSON body with all its rules.
// Out is sent as JSON.
func handle[In, Out any](a *API, o op, h func(ctx context.Context, r *request, in *In) (Out, error)) {
	t := reflect.TypeFor[In]()
	bodyAt, hasBody := t.FieldByName("Body")
	path := pathFields(t)
	serve := func(w http.ResponseWriter, r *http.Request) error {
		req, in := &request{Request: r, W: w, Who: whoFrom(r.Context()), op: &o}, new(In)
		if err := bindPath(r, reflect.ValueOf(in).Elem(), path, o.NotFound); err != nil {
			return err
		}
		byUUID := func(uuid string) (int64, error) { return a.DB.AssistantID(r.Context(), req.UserID(), uuid, false) }
		query := r.URL.Query()
		if err := form.QueryAssistants(query, t, func(uuid string) (int64, error) {
			return a.DB.AssistantID(r.Context(), req.UserID(), uuid, true)
		}); err != nil {
			return err
		}
		form.QueryPhones(query, t, req.country())
		fields := form.Query(query, in)
		var unread parley.Fields
		buf := buffers.Get()
		defer buffers.Put(buf)
		if r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch {
			if err := req.open(&o, buf); err != nil {
				return err
			}
			if input := o.input(t); input != nil {
				if err := form.Assistants(req.Body, input, byUUID); err != nil {
					return err
				}
				unread = form.Phones(req.Body, input, req.country())
			}
			if hasBody {
				target := reflect.ValueOf(in).Elem().FieldByIndex(bodyAt.Index).Addr().Interface()
				form.Defaults(target)
				fields = append(fields, form.Bind(req.Body, target, true)...)
			}
		}
		if err := fields.Explained(unread).Err(); err != nil {
			return err
		}
		return a.once(req, &o, buf.Bytes(), func(ctx context.Context) (int, any, error) {
			out, err := h(ctx, req, in)
			if e, ok := errors.AsType[*parley.Error](err); ok && e.Kind == parley.Invalid && len(e.Fields) > 0 {
				err = e.Fields.Explained(unread).Err()
			}
			var u *unsettled
			if errors.As(err, &u) {
				return u.status, u.body, nil
			}
			return max(o.Status, http.StatusOK), out, err
		})
	}
	a.add(o, t, reflect.TypeFor[Out](), func(w http.ResponseWriter, r *http.Request) {
		if err := serve(w, r); err != nil && !errors.Is(err, errAnswered) {
			a.fail(w, r, o.Family, o.Failure, err)
		}
	})
}

// open reads a JSON body, or prepares a form where the operation takes one.
func (r *request) open(o *op, buf *bytes.Buffer) (err error) {
	if o.Raw != "" {
		return nil
	}
	if o.Upload > 0 {
		if r.Form, err = openUpload(r.W, r.Request, o.Upload); err != nil || r.Form != nil {
			return err
		}
	}
	r.Body, err = readBody(r.W, r.Request, buf)
	if err == errContentType && o.Upload > 0 { //nolint:errorlint // it is our own
		err = errUploadType
	}
	return err
}

// named says whether a query parameter names something; form reads a 0 and an empty one alike.
func named(r *request, name string) bool { return strings.TrimSpace(r.URL.Query().Get(name)) != "" }

// pathField is a field of In that a path parameter fills.
type pathField struct {
	name    string
	index   []int
	text    bool   // a string; else an integer id
	missing string // what one that can't be answers, where it is another's than the operation's NotFound
}

func pathFields(t reflect.Type) (list []pathField) {
	for _, sf := range reflect.VisibleFields(t) {
		if name := sf.Tag.Get("path"); name != "" {
			list = append(list, pathField{name, sf.Index, sf.Type.Kind() == reflect.String, sf.Tag.Get("missing")})
		}
	}
	return list
}

// bindPath fills the path parameters into in.
func bindPath(r *http.Request, in reflect.Value, fields []pathField, notFound string) error {
	for _, f := range fields {
		text, v := r.PathValue(f.name), in.FieldByIndex(f.index)
		if f.text && utf8.ValidString(text) && !strings.Contains(text, "\x00") {
			v.SetString(text)
			continue
		}
		id, err := strconv.ParseInt(text, 10, 64)
		if f.text || err != nil || strconv.FormatInt(id, 10) != text { // no +1, no 007
			return parley.Errorf(parley.NotFound, "%s", cmp.Or(f.missing, notFound))
		}
		v.SetInt(id)
	}
	return nil
}

// add puts an operation on the mux and into the reference.
func (a *API) add(o op, in, out reflect.Type, h http.HandlerFunc) {
	if o.Access == user && o.Name == "" {
		panic("api: an operation needs a name: " + o.Path)
	}
	methods := a.routes[o.Path]
	if methods == nil {
		methods = map[string]*routed{}
		a.routes[o.Path] = methods
		a.mux.HandleFunc("/api"+o.Path, func(w http.ResponseWriter, r *http.Request) { a.dispatch(w, r, methods) })
	}
	if methods[o.Method] != nil {
		panic(fmt.Sprintf("api: %s %s is registered twice", o.Method, o.Path))
	}
	methods[o.Method] = &routed{op: o, in: in, out: out, serve: h}
	a.order = append(a.order, methods[o.Method])
}

// routed is an operation with its handler.
type routed struct {
	op
	in, out reflect.Type
	serve   http.HandlerFunc
}

// dispatch picks the operation of a path by method.
func (a *API) dispatch(w http.ResponseWriter, r *http.Request, methods map[string]*routed) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	o := methods[method]
	if o == nil {
		allowed := make([]string, 0, 4)
		for m, o := range methods {
			allowed = append(allowed, m)
			if m == http.MethodGet {
				allowed = append(allowed, http.MethodHead)
			}
			if o.Access == public {
				allowed = append(allowed, http.MethodOptions)
			}
		}
		slices.Sort(allowed)
		w.Header().Set("Allow", strings.Join(slices.Compact(allowed), ", "))
		if r.Method == http.MethodOptions && slices.Contains(allowed, http.MethodOptions) {
			preflight(w)
			return
		}
		notAllowed(w, r, w.Header().Get("Allow"))
		return
	}
	defer web.Survive(func(err error) { a.fail(w, r, o.Family, o.Failure, err) })
	bare := r
	switch o.Access {
	case public:
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Access-Control-Expose-Headers", "X-Request-Id, Retry-After, Location, ETag, Link")
		if r.Header.Get("Authorization") == "" {
			break
		}
		fallthrough
	case user:
		if whoFrom(r.Context()) == nil {
			var ok bool
			if r, ok = a.authenticate(w, r, o.Family); !ok {
				return
			}
		}
	}
	who := whoFrom(r.Context())
	if who != nil && o.Access == public && o.may(who) != nil { // it may do what anybody may
		r, who = bare, nil
	}
	if who != nil {
		if err := o.may(who); err != nil {
			a.fail(w, r, o.Family, "", err)
			return
		}
		leave, err := a.Gate.Enter(who.User.ID, who.User.Plan, o.occupies())
		if err != nil {
			a.fail(w, r, o.Family, "", err)
			return
		}
		defer leave()
	}
	if o.Limit != nil {
		if _, err := o.Limit.Take(a.Front.Client(r), time.Now()); err != nil {
			a.fail(w, r, o.Family, "", err)
			return
		}
	}
	o.serve(w, r)
}

func notAllowed(w http.ResponseWriter, r *http.Request, allowed string) {
	w.Header().Set("Allow", allowed)
	send(w, http.StatusMethodNotAllowed, errorBody{Message: "The " + r.Method +
		" method is not supported here. Use " + allowed + "."})
}

// preflight lets pages of any origin use the public routes. They carry no cookie, so there is nothing to protect: an
// assistant's allowed_origins are judged when a conversation is made.
func preflight(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Methods", h.Get("Allow"))
	h.Set("Access-Control-Allow-Headers", "Accept, Authorization, Content-Type, Idempotency-Key, If-Match, Last-Event-ID, "+
		variablesHeader+", "+toolsHeader)
	h.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
}

type whoKey struct{}

func whoFrom(ctx context.Context) *auth.Who {
	w, _ := ctx.Value(whoKey{}).(*auth.Who)
	return w
}

// known is the context of a request by somebody, from a client's address.
func known(ctx context.Context, who *auth.Who, address string) context.Context {
	return store.By(context.WithValue(ctx, whoKey{}, who), who.Actor(address))
}

// occupies is what an account has one more of while the operation is answered, by the limit's name.
func (o *op) occupies() string {
	if o.Stream == web.EventStream {
		return parley.LimitStreams
	}
	return parley.LimitTogether
}

// Caller finds out whose bearer token a request has, one of some kinds, and counts the request against the limits of the key and its
// account. An error is ErrUnauthenticated, or that a limit was reached.
func (a *API) Caller(w http.ResponseWriter, r *http.Request, kinds ...parley.KeyKind) (*auth.Who, error) {
	who, err := a.Auth.Authenticate(r.Context(), auth.BearerToken(r.Header.Get("Authorization")), kinds...)
	if err != nil {
		return nil, err
	}
	left, err := a.count(who)
	if a.limit.Limit() > 0 {
		w.Header().Set("X-RateLimit-Limit", strconv.Itoa(a.limit.Limit()))
		w.Header().Set("X-RateLimit-Remaining", strconv.Itoa(left))
	}
	return who, err
}

// count counts a request of somebody's, and says how many their key has left.
func (a *API) count(who *auth.Who) (left int, err error) {
	if left, err = a.limit.Take(strconv.FormatInt(cmp.Or(who.Key.GrantID, who.Key.ID), 10), time.Now()); err == nil {
		err = a.Gate.Ask(who.User.ID, time.Now())
	}
	return left, err
}

// authenticate finds out who asks, and answers when that, or a limit, fails.
func (a *API) authenticate(w http.ResponseWriter, r *http.Request, f family) (*http.Request, bool) {
	who, err := a.Caller(w, r, parley.APIKey, parley.Session)
	if err != nil {
		if errors.Is(err, auth.ErrUnauthenticated) {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		a.fail(w, r, f, "", err)
		return r, false
	}
	return r.WithContext(known(r.Context(), who, a.Front.Address(r))), true
}

// unslashed is a request for the path without the slash at its end: clients write both.
func unslashed(r *http.Request) *http.Request {
	if len(r.URL.Path) <= len("/api/") || !strings.HasSuffix(r.URL.Path, "/") {
		return r
	}
	r2, u := *r, *r.URL
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(u.RawPath, "/")
	r2.URL = &u
	return &r2
}

// ServeHTTP answers everything below /api: it names the request, survives its panics, and asks for a credential on
// every path under /user/, also one that does not exist.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = unslashed(web.Name(w, r))
	defer web.Survive(func(err error) { a.fail(w, r, messages, "", err) })
	if strings.HasPrefix(r.URL.Path, "/api/user/") || r.URL.Path == "/api/user" {
		var ok bool
		if r, ok = a.authenticate(w, r, messages); !ok {
			return
		}
	}
	a.mux.ServeHTTP(w, r)
}
