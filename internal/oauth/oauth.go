// Package oauth lets apps that speak MCP into accounts by OAuth 2.1: its metadata, the registration of apps, what they ask for, and tokens.
// Who lets an app in, and what it may do, is asked on a page of the console.
package oauth

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/internal/auth"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/web"
)

// Paths of the server. The page on which an app is let in is the console's.
const (
	ResourcePath  = "/.well-known/oauth-protected-resource" // RFC 9728; also with the resource's path behind it
	serverPath    = "/.well-known/oauth-authorization-server"
	AuthorizePath = "/oauth/authorize"
	registerPath  = "/oauth/register"
	tokenPath     = "/oauth/token"
	revokePath    = "/oauth/revoke"
	resource      = "/mcp"
)

// Limits of what is sent.
const (
	maxForm  = 16 << 10
	maxURIs  = 5
	maxURI   = 512
	maxName  = 80
	maxState = 2048
)

// Server answers apps.
type Server struct {
	Auth   *auth.Authority
	Front  web.Front
	Secret []byte        // signs the ids of apps; the same on all nodes
	Rate   *auth.Limiter // requests per address
}

// Handler answers what apps ask.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+ResourcePath, s.resource)
	mux.HandleFunc("GET "+ResourcePath+resource, s.resource)
	mux.HandleFunc("GET "+serverPath, s.metadata)
	mux.HandleFunc("POST "+registerPath, s.limited(s.register))
	mux.HandleFunc("POST "+tokenPath, s.limited(s.token))
	mux.HandleFunc("POST "+revokePath, s.limited(s.revoke))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = web.Name(w, r)
		defer web.Survive(func(err error) { fail(w, r, err) })
		mux.ServeHTTP(w, r)
	})
}

// Paths are those that Handler answers.
var Paths = []string{ResourcePath, ResourcePath + resource, serverPath, registerPath, tokenPath, revokePath}

type object = map[string]any

func send(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a reader who left is nobody's error
}

// refusal is an error in OAuth's words (RFC 6749, section 5.2).
type refusal struct{ code, text string }

func (e *refusal) Error() string { return e.text }

// fail answers with an error.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	if e, ok := errors.AsType[*refusal](err); ok {
		send(w, http.StatusBadRequest, object{"error": e.code, "error_description": e.text})
		return
	}
	err = store.Told(err)
	e := web.Known(r, err, "Server error. Quote the X-Request-Id when you report it.")
	web.RetryAfter(w, err)
	send(w, web.Status(e.Kind), object{"error": "server_error", "error_description": e.Message})
}

// limited bounds how often an address asks, and how much it sends.
func (s *Server) limited(h func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, err := s.Rate.Take(s.Front.Client(r), time.Now())
		if err == nil {
			r.Body = http.MaxBytesReader(w, r.Body, maxForm)
			err = h(w, r)
		}
		if err != nil {
			fail(w, r, err)
		}
	}
}

// resource says which server lets apps in (RFC 9728, section 2).
func (s *Server) resource(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	base := s.Front.Base(r)
	send(w, http.StatusOK, object{"resource": base + resource, "authorization_servers": []string{base}, "resource_name": "Parley",
		"bearer_methods_supported": []string{"header"}})
}

// metadata says how (RFC 8414, section 2).
func (s *Server) metadata(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	base := s.Front.Base(r)
	send(w, http.StatusOK, object{"issuer": base, "authorization_endpoint": base + AuthorizePath, "token_endpoint": base + tokenPath,
		"registration_endpoint": base + registerPath, "revocation_endpoint": base + revokePath,
		"response_types_supported": []string{"code"}, "response_modes_supported": []string{"query"},
		"grant_types_supported":                          []string{"authorization_code", "refresh_token"},
		"code_challenge_methods_supported":               []string{"S256"},
		"token_endpoint_auth_methods_supported":          []string{"none"},
		"revocation_endpoint_auth_methods_supported":     []string{"none"},
		"authorization_response_iss_parameter_supported": true})
}

// app is an app that registered. It is not stored: its id is what it registered, signed.
type app struct {
	Name string   `json:"n"`
	URIs []string `json:"r"`
}

var encoding = base64.RawURLEncoding

func (s *Server) sign(text string) string {
	mac := hmac.New(sha256.New, s.Secret)
	_, _ = io.WriteString(mac, "oauth client|"+text)
	return encoding.EncodeToString(mac.Sum(nil))
}

// id is an app's client id.
func (s *Server) id(a *app) string {
	raw, err := json.Marshal(a)
	if err != nil {
		panic(err) // it is text
	}
	text := encoding.EncodeToString(raw)
	return text + "." + s.sign(text)
}

// app is the app with a client id.
func (s *Server) app(id string) (*app, bool) {
	text, mac, ok := strings.Cut(id, ".")
	if !ok || len(id) > maxForm || subtle.ConstantTimeCompare([]byte(mac), []byte(s.sign(text))) != 1 {
		return nil, false
	}
	raw, err := encoding.DecodeString(text)
	a := new(app)
	return a, err == nil && json.Unmarshal(raw, a) == nil
}

// register gives an app a client id (RFC 7591).
func (s *Server) register(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Name string   `json:"client_name"`
		URIs []string `json:"redirect_uris"`
		Auth string   `json:"token_endpoint_auth_method"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return &refusal{"invalid_client_metadata", "The body must be a JSON object of at most 16 KB."}
	}
	if len(in.URIs) == 0 || len(in.URIs) > maxURIs {
		return &refusal{"invalid_redirect_uri", "An app has one to five redirect_uris."}
	}
	for _, uri := range in.URIs {
		if !redirectable(uri) {
			return &refusal{"invalid_redirect_uri", "A redirect URI must be an https address, or an http address of this machine " +
				"(127.0.0.1, [::1], localhost), without a fragment."}
		}
	}
	a := &app{Name: named(in.Name), URIs: in.URIs}
	send(w, http.StatusCreated, object{"client_id": s.id(a), "client_id_issued_at": time.Now().Unix(), "client_name": a.Name,
		"redirect_uris": a.URIs, "token_endpoint_auth_method": "none", "grant_types": []string{"authorization_code", "refresh_token"},
		"response_types": []string{"code"}})
	return nil
}

// named is what an app calls itself, as far as it can be shown.
func named(name string) string {
	name = strings.Join(strings.Fields(strings.Map(func(c rune) rune {
		if c == utf8.RuneError || unicode.IsControl(c) || unicode.Is(unicode.Cf, c) {
			return ' '
		}
		return c
	}, name)), " ")
	if runes := []rune(name); len(runes) > maxName {
		name = string(runes[:maxName])
	}
	if name == "" {
		return "An app without a name"
	}
	return name
}

// redirectable says whether a reader may be sent to an address: by HTTPS, or to a program on their own machine.
func redirectable(text string) bool {
	u, err := url.Parse(text)
	strange := func(r rune) bool { return r > unicode.MaxASCII } // it is shown: nothing may look like another
	if err != nil || len(text) > maxURI || u.Host == "" || u.Hostname() == "" || strings.ContainsFunc(u.Host, strange) ||
		u.User != nil || strings.Contains(text, "#") || u.Opaque != "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname())
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback() || host == "localhost"
}

// takes says whether an app registered a redirect URI: letter for letter, but for the port of a program on the reader's own machine
// (RFC 8252, section 7.3).
func (a *app) takes(sent string) bool {
	for _, uri := range a.URIs {
		if uri == sent || portless(uri) != "" && portless(uri) == portless(sent) {
			return true
		}
	}
	return false
}

// portless is a redirect URI to the reader's own machine without its port; "" for others.
func portless(text string) string {
	u, err := url.Parse(text)
	if err != nil || !redirectable(text) || u.Scheme != "http" {
		return ""
	}
	if host, _, err := net.SplitHostPort(u.Host); err == nil {
		u.Host = host
	}
	return u.String()
}

// Ask is what an app asks of a reader, as the console's page shows it.
type Ask struct {
	Name     string // what the app calls itself
	Host     string // where the reader is sent back to
	Local    bool   // that is the reader's own machine
	clientID string
	redirect string
	state    string
	to       string // what the code is bound to
	issuer   string
}

// ErrAsk is what is wrong with a request that can't be answered to the app.
var errAsk = parley.Errorf(parley.Refused,
	"The app that sent you here did not say who it is, or wants you sent to an address that it did not register. Connect it once more.")

// Read reads what an app asks for (RFC 6749, section 4.1.1; RFC 7636; RFC 8707). An error is for the reader alone: an app that can't be
// told from others is sent nothing.
func (s *Server) Read(r *http.Request, form url.Values) (*Ask, error) {
	a, ok := s.app(form.Get("client_id"))
	if !ok || !a.takes(form.Get("redirect_uri")) || len(form.Get("state")) > maxState {
		return nil, errAsk
	}
	u, err := url.Parse(form.Get("redirect_uri"))
	if err != nil {
		return nil, errAsk
	}
	base := s.Front.Base(r)
	challenge, err := encoding.DecodeString(form.Get("code_challenge"))
	switch {
	case form.Get("response_type") != "code":
		return nil, parley.Errorf(parley.Refused, "The app asks for something other than a code (response_type).")
	case form.Get("code_challenge_method") != "S256" || err != nil || len(challenge) != sha256.Size:
		return nil, parley.Errorf(parley.Refused, "The app does not prove that the code will be its own (PKCE, S256).")
	case form.Has("resource") && form.Get("resource") != base+resource && form.Get("resource") != base:
		return nil, parley.Errorf(parley.Refused, "The app asks for access to another server than this one (resource).")
	}
	return &Ask{Name: a.Name, Host: u.Host, Local: u.Scheme == "http", clientID: form.Get("client_id"), redirect: u.String(),
		state: form.Get("state"), to: bound(form.Get("client_id"), form.Get("redirect_uri"), form.Get("code_challenge")), issuer: base}, nil
}

// bound is what a code is bound to.
func bound(clientID, redirect, challenge string) string {
	sum := sha256.Sum256([]byte(clientID + "\n" + redirect + "\n" + challenge))
	return encoding.EncodeToString(sum[:])
}

// back is where the reader is sent, with an answer.
func (a *Ask) back(answer url.Values) string {
	u, err := url.Parse(a.redirect)
	if err != nil {
		return "/" // it was read before
	}
	q := u.Query()
	for name, values := range answer {
		q[name] = values
	}
	if a.state != "" {
		q.Set("state", a.state)
	}
	q.Set("iss", a.issuer) // RFC 9207
	u.RawQuery = q.Encode()
	return u.String()
}

// Refused is where a reader goes who doesn't let the app in.
func (a *Ask) Refused() string { return a.back(url.Values{"error": {"access_denied"}}) }

// Allow lets the app in, with a role at most, and returns where the reader goes.
func (s *Server) Allow(r *http.Request, by *auth.Who, a *Ask, scope parley.Role) (string, error) {
	code, err := s.Auth.GrantCode(r.Context(), by, scope, a.Name+" ("+a.Host+")", a.to)
	if err != nil {
		return "", err
	}
	return a.back(url.Values{"code": {code}}), nil
}

// token gives an app tokens for a code or a refresh token (RFC 6749, sections 4.1.3 and 6).
func (s *Server) token(w http.ResponseWriter, r *http.Request) error {
	form, err := posted(r)
	if err != nil {
		return err
	}
	id := form.Get("client_id")
	if _, ok := s.app(id); !ok {
		return &refusal{"invalid_client", "The client_id is not one of this server's: register again."}
	}
	if base := s.Front.Base(r); form.Has("resource") && form.Get("resource") != base+resource && form.Get("resource") != base {
		return &refusal{"invalid_target", "The resource is " + base + resource + "."}
	}
	var got *auth.AppTokens
	switch form.Get("grant_type") {
	case "authorization_code":
		verifier := form.Get("code_verifier")
		if len(verifier) < 43 || len(verifier) > 128 {
			return &refusal{"invalid_request", "The code_verifier has 43 to 128 characters."}
		}
		sum := sha256.Sum256([]byte(verifier))
		got, err = s.Auth.ExchangeCode(r.Context(), form.Get("code"),
			bound(id, form.Get("redirect_uri"), encoding.EncodeToString(sum[:])), id)
	case "refresh_token":
		got, err = s.Auth.RefreshGrant(r.Context(), form.Get("refresh_token"), id)
	default:
		return &refusal{"unsupported_grant_type", "The grant_type is authorization_code or refresh_token."}
	}
	if errors.Is(err, auth.ErrUnauthenticated) {
		return &refusal{"invalid_grant", "The code or token is not valid, was used before, or is another app's."}
	}
	if err != nil {
		return err
	}
	send(w, http.StatusOK, object{"access_token": got.Access, "token_type": "Bearer", "expires_in": int(auth.AccessFor.Seconds()),
		"refresh_token": got.Refresh})
	return nil
}

// revoke ends a grant whose token an app gives back (RFC 7009).
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) error {
	form, err := posted(r)
	if err == nil {
		err = s.Auth.RevokeAppToken(r.Context(), form.Get("token"))
	}
	if err == nil {
		send(w, http.StatusOK, object{})
	}
	return err
}

// posted is a form that was sent in a body.
func posted(r *http.Request) (url.Values, error) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/x-www-form-urlencoded" {
		return nil, &refusal{"invalid_request", "The body must be a form (application/x-www-form-urlencoded)."}
	}
	if err := r.ParseForm(); err != nil {
		return nil, &refusal{"invalid_request", "The form can't be read, or has more than 16 KB."}
	}
	for _, values := range r.PostForm {
		if len(values) > 1 {
			return nil, &refusal{"invalid_request", "A parameter was sent twice."}
		}
	}
	return r.PostForm, nil
}
