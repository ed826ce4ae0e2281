// Package graphtest is a Graph API on a loopback port, for tests: the numbers and templates of an account, page by
// page, sending with the platform's own refusals, and webhooks as the platform signs them. Script makes it misbehave.
package graphtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/channel/whatsapp/graph"
)

// The account that every Server has.
const (
	Token       = "EAAG-token-of-the-test"
	BusinessID  = "102290129340398"
	AppSecret   = "app-secret-of-the-test"
	VerifyToken = "verify-token-of-the-test"
)

// Object is a JSON object.
type Object = map[string]any

// Number is a phone number of the account as the platform tells it.
func Number(id, display, name, status, quality, limit string) Object {
	return Object{"id": id, "display_phone_number": display, "verified_name": name, "status": status,
		"quality_rating": quality,
		"whatsapp_business_manager_messaging_limit": limit}
}

// Template is a template of the account with a body and further components.
func Template(id, name, status, format, body string, more ...Object) Object {
	return Object{"id": id, "name": name, "language": "en_US", "category": "UTILITY", "status": status,
		"parameter_format": format,
		"components":       append([]Object{{"type": "BODY", "text": body}}, more...)}
}

// Behaviour is how the server answers one message. The zero value takes it.
type Behaviour struct {
	Status     int // with Code: refused so
	Code       int
	Message    string
	RetryAfter string
	Raw        string          // with Status: the whole answer
	Lose       bool            // the message is taken, and the connection cut before the answer
	Gate       <-chan struct{} // the message is taken, and the answer waits for it to be closed
	Taken      chan<- Sent     // is told as soon as the message is taken
}

// Sent is a message that the server took.
type Sent struct {
	ID, From, To, Text, Opaque string
	Template                   Object
}

// Server is the platform.
type Server struct {
	URL string

	mu        sync.Mutex
	numbers   []Object
	templates []Object
	script    []Behaviour
	sent      []Sent
	down      bool
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{version}/"+BusinessID+"/phone_numbers", s.list)
	mux.HandleFunc("GET /{version}/"+BusinessID+"/message_templates", s.list)
	mux.HandleFunc("POST /{version}/{number}/messages", s.message)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { refuse(w, 400, 100, "Unsupported request") })
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	s.URL = srv.URL
	return s
}

// Client is a client of the server's account.
func (s *Server) Client(t testing.TB) *graph.Client {
	c := graph.New(graph.Config{BaseURL: s.URL, Token: Token, BusinessID: BusinessID})
	t.Cleanup(c.Close)
	return c
}

// Set says what the account has; Down has the server answer 503 to lists.
func (s *Server) Set(numbers, templates []Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numbers, s.templates = numbers, templates
}

// Down has lists fail, or not.
func (s *Server) Down(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// Script says how the next messages are answered.
func (s *Server) Script(b ...Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, b...)
}

// Sent are the messages that were taken.
func (s *Server) Sent() []Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

func refuse(w http.ResponseWriter, status, code int, text string) {
	say(w, status, Object{"error": Object{"message": fmt.Sprintf("(#%d) %s", code, text), "type": "OAuthException",
		"code":       code,
		"error_data": Object{"messaging_product": "whatsapp", "details": text},
		"fbtrace_id": "Az8or2yhqkZfEZ-_4Qn_Bam"}})
}

func say(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func authorized(w http.ResponseWriter, r *http.Request) bool {
	if r.Header.Get("Authorization") == "Bearer "+Token && !r.URL.Query().Has("access_token") {
		return true
	}
	refuse(w, 401, 190, "Invalid OAuth access token "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	return false
}

// list answers two rows a page.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	if !authorized(w, r) {
		return
	}
	s.mu.Lock()
	rows, down := s.numbers, s.down
	if strings.HasSuffix(r.URL.Path, "templates") {
		rows = s.templates
	}
	s.mu.Unlock()
	if down {
		refuse(w, 503, 2, "Service temporarily unavailable")
		return
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("after"))
	to := min(from+2, len(rows))
	paging := Object{"cursors": Object{"before": strconv.Itoa(from), "after": strconv.Itoa(to)}}
	if to < len(rows) {
		paging["next"] = "https://graph.facebook.com/elsewhere?access_token=" + Token // not to be followed
	}
	say(w, 200, Object{"data": append([]Object{}, rows[from:to]...), "paging": paging})
}

var digits = regexp.MustCompile(`^[0-9]{5,20}$`)

func (s *Server) message(w http.ResponseWriter, r *http.Request) {
	if !authorized(w, r) {
		return
	}
	var in struct {
		Product string `json:"messaging_product"`
		To      string `json:"to"`
		User    string `json:"recipient"`
		Type    string `json:"type"`
		Opaque  string `json:"biz_opaque_callback_data"`
		Text    struct {
			Body string `json:"body"`
		} `json:"text"`
		Template Object `json:"template"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Product != "whatsapp" ||
		(!digits.MatchString(in.To)) == (graph.UserID(in.User) == "") {
		refuse(w, 400, 100, "Invalid parameter")
		return
	}
	s.mu.Lock()
	var b Behaviour
	if len(s.script) > 0 {
		b, s.script = s.script[0], s.script[1:]
	}
	s.mu.Unlock()
	switch {
	case b.RetryAfter != "":
		w.Header().Set("Retry-After", b.RetryAfter)
		fallthrough
	case b.Code != 0:
		refuse(w, b.Status, b.Code, b.Message)
		return
	case b.Status != 0:
		w.WriteHeader(b.Status)
		w.Write([]byte(b.Raw))
		return
	case in.Type == "text" && (in.Text.Body == "" || len([]rune(in.Text.Body)) > 4096):
		refuse(w, 400, 100, "Param text['body'] must be at most 4096 characters long")
		return
	case in.Type == "template":
		if code, text := s.check(in.Template); code != 0 {
			refuse(w, 400, code, text)
			return
		}
	}
	s.mu.Lock()
	one := Sent{ID: fmt.Sprintf("wamid.OUT%d", len(s.sent)+1), From: r.PathValue("number"), To: cmp.Or(in.User, in.To),
		Text: in.Text.Body, Template: in.Template, Opaque: in.Opaque}
	s.sent = append(s.sent, one)
	s.mu.Unlock()
	if b.Taken != nil {
		b.Taken <- one
	}
	if b.Gate != nil {
		select {
		case <-b.Gate:
		case <-r.Context().Done():
		}
	}
	if b.Lose {
		panic(http.ErrAbortHandler)
	}
	say(w, 200, Object{"messaging_product": "whatsapp", "contacts": []Object{{"input": in.To, "wa_id": in.To}},
		"messages": []Object{{"id": one.ID, "message_status": "accepted"}}})
}

var gap = regexp.MustCompile(`\{\{\w+\}\}`)

// check refuses what the platform refuses of a template that is sent.
func (s *Server) check(sent Object) (code int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	language, _ := sent["language"].(Object)
	for _, t := range s.templates {
		if t["name"] != sent["name"] || t["language"] != language["code"] {
			continue
		}
		if t["status"] != "APPROVED" {
			return 132001, "template is not approved"
		}
		want, got := 0, 0
		for _, c := range t["components"].([]Object) {
			if c["type"] == "BODY" {
				want = len(gap.FindAllString(c["text"].(string), -1))
			}
		}
		components, _ := sent["components"].([]any)
		for _, c := range components {
			if c := c.(Object); c["type"] == "body" {
				got = len(c["parameters"].([]any))
			}
		}
		if want != got {
			return 132000, fmt.Sprintf("body: number of localizable_params (%d) does not match the expected number of params (%d)", got, want)
		}
		return 0, ""
	}
	return 132001, "template name does not exist in the translation"
}

// Inbound is the body of a webhook that tells of a customer's message; fields are those of its type, such as {"type":
// "text", "text": …}.
func Inbound(number, from, name, wamid string, at time.Time, fields Object) []byte {
	m := Object{"from": from, "id": wamid, "timestamp": strconv.FormatInt(at.Unix(), 10)}
	for k, v := range fields {
		m[k] = v
	}
	return change(number, Object{"contacts": []Object{{"profile": Object{"name": name}, "wa_id": from}},
		"messages": []Object{m}})
}

// Text is an Inbound of text.
func Text(number, from, wamid, text string) []byte {
	return Inbound(number, from, "Ana", wamid, time.Now(), Object{"type": "text", "text": Object{"body": text}})
}

// Status is the body of a webhook that tells what became of a message.
func Status(number, wamid, status, opaque string, errors ...Object) []byte {
	s := Object{"id": wamid, "status": status, "timestamp": strconv.FormatInt(time.Now().Unix(), 10),
		"recipient_id": "16505551234"}
	if opaque != "" {
		s["biz_opaque_callback_data"] = opaque
	}
	if len(errors) > 0 {
		s["errors"] = errors
	}
	return change(number, Object{"statuses": []Object{s}})
}

func change(number string, value Object) []byte {
	value["messaging_product"] = "whatsapp"
	value["metadata"] = Object{"display_phone_number": "15550783881", "phone_number_id": number}
	body, err := json.Marshal(Object{"object": "whatsapp_business_account",
		"entry": []Object{{"id": BusinessID, "changes": []Object{{"field": "messages", "value": value}}}}})
	if err != nil {
		panic(err)
	}
	return body
}
