package carriertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/carrier/twilio"
)

// The account that a Server knows.
const (
	AccountSID = "AC00000000000000000000000000000001"
	AuthToken  = "5ecret-t0ken-of-the-account"
)

// Server speaks Twilio's REST protocol as Twilio documents it: form-encoded requests with Basic credentials, JSON
// answers, numbered errors, status callbacks with a signature.
type Server struct {
	testing.TB
	URL       string
	mu        sync.Mutex
	available []string          // US numbers
	rented    map[string]string // number -> sid
	smsURL    map[string]string // number -> where its messages are told
	trunk     map[string]string // number -> the SIP trunk that its calls go to
	messages  []Message
	requests  []string // method and path of each
	serial    int

	// Fail, where it is set, sees each request first; when it says that it has answered, the server does nothing
	// more. Cut drops the connection after a request has taken effect.
	Fail func(w http.ResponseWriter, r *http.Request) bool
	Cut  func(r *http.Request) bool
}

// Message is a message that the Server has taken.
type Message struct {
	SID, From, To, Body, Callback string
	At                            time.Time
}

// NewServer starts a Server that ends with the test.
func NewServer(t testing.TB) *Server {
	s, end := Serve()
	t.Cleanup(end)
	s.TB = t
	return s
}

// Serve starts a Server for a program, which must end it.
func Serve() (s *Server, end func()) {
	s = &Server{rented: map[string]string{}, smsURL: map[string]string{}, trunk: map[string]string{}}
	for i := range 40 {
		s.available = append(s.available, fmt.Sprintf("+1415555%04d", 100+i))
	}
	srv := httptest.NewServer(s)
	s.URL = srv.URL
	return s, srv.Close
}

// Client is a client of the Server's account that is told of things at publicURL.
func (s *Server) Client(publicURL string) *twilio.Client {
	c := twilio.New(twilio.Config{AccountSID: AccountSID, AuthToken: AuthToken, BaseURL: s.URL, PublicURL: publicURL})
	s.Cleanup(c.Close)
	return c
}

// Messages are those that were taken, oldest first.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

// Rented are the account's numbers with where their messages are told.
func (s *Server) Rented() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]string{}
	for n := range s.rented {
		out[n] = s.smsURL[n]
	}
	return out
}

// Trunk is the SIP trunk that a rented number's calls go to, "" for none.
func (s *Server) Trunk(number string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trunk[number]
}

// Requests is how many requests of a method the Server has had to paths that contain a text.
func (s *Server) Requests(method, path string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if strings.HasPrefix(r, method+" ") && strings.Contains(r, path) {
			n++
		}
	}
	return n
}

// Refuse answers as Twilio refuses.
func Refuse(w http.ResponseWriter, status, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"code": code, "message": message,
		"more_info": fmt.Sprintf("https://www.twilio.com/docs/errors/%d", code), "status": status})
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	if user != AccountSID || password != AuthToken {
		Refuse(w, 401, 20003, "Authenticate")
		return
	}
	rest, ok := strings.CutPrefix(r.URL.Path, "/2010-04-01/Accounts/"+AccountSID)
	if !ok {
		Refuse(w, 404, 20404, "The requested resource "+r.URL.Path+" was not found")
		return
	}
	if r.Method == "POST" && r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		Refuse(w, 415, 20415, "Unsupported media type")
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+rest)
	s.mu.Unlock()
	if s.Fail != nil && s.Fail(w, r) {
		return
	}
	r.ParseForm()
	status, body := s.answer(r, rest)
	if s.Cut != nil && s.Cut(r) {
		panic(http.ErrAbortHandler)
	}
	if status >= 400 {
		Refuse(w, status, body["code"].(int), body["message"].(string))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if status != http.StatusNoContent {
		json.NewEncoder(w).Encode(body)
	}
}

type object = map[string]any

func refusal(status, code int, message string) (int, object) {
	return status, object{"code": code, "message": message}
}

func (s *Server) answer(r *http.Request, path string) (int, object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.Form
	switch {
	case r.Method == "GET" && path == ".json":
		return 200, object{"sid": AccountSID, "status": "active", "friendly_name": "Test"}
	case r.Method == "GET" && path == "/AvailablePhoneNumbers/US/Local.json":
		if c := q.Get("Contains"); q.Has("Contains") && len(c) < 2 {
			return refusal(400, 21451, "Invalid area code or pattern")
		}
		list := []any{}
		for _, n := range s.available {
			if strings.Contains(n, q.Get("Contains")) && s.rented[n] == "" {
				list = append(list, object{"friendly_name": n, "phone_number": n, "iso_country": "US",
					"region": "CA", "address_requirements": "none", "beta": false,
					"capabilities": object{"voice": true, "SMS": true, "MMS": true}})
			}
		}
		return 200, object{"available_phone_numbers": list, "uri": path}
	case r.Method == "GET" && path == "/AvailablePhoneNumbers/GB/Mobile.json":
		return 200, object{"available_phone_numbers": []any{object{"friendly_name": "+447400123456",
			"phone_number": "+447400123456", "iso_country": "GB",
			"address_requirements": "any", "capabilities": object{"voice": true, "SMS": true, "MMS": false}}}}
	case r.Method == "GET" && strings.HasPrefix(path, "/AvailablePhoneNumbers/"):
		return refusal(404, 20404, "The requested resource "+path+" was not found")
	case path == "/IncomingPhoneNumbers.json" && r.Method == "POST":
		n := q.Get("PhoneNumber")
		if !slices.Contains(s.available, n) || s.rented[n] != "" {
			return refusal(400, 21422, "'"+n+"' is not available")
		}
		s.serial++
		s.rented[n], s.smsURL[n] = fmt.Sprintf("PN%032d", s.serial), q.Get("SmsUrl")
		s.trunk[n] = q.Get("TrunkSid")
		return 201, object{"sid": s.rented[n], "phone_number": n, "sms_url": s.smsURL[n],
			"capabilities": object{"voice": true, "sms": true}}
	case path == "/IncomingPhoneNumbers.json" && r.Method == "GET":
		list := []any{}
		for n, sid := range s.rented {
			if strings.Contains(n, strings.TrimPrefix(q.Get("PhoneNumber"), "+")) {
				list = append(list, object{"sid": sid, "phone_number": n})
			}
		}
		return 200, object{"incoming_phone_numbers": list}
	case strings.HasPrefix(path, "/IncomingPhoneNumbers/") && r.Method == "DELETE":
		for n, sid := range s.rented {
			if path == "/IncomingPhoneNumbers/"+sid+".json" {
				delete(s.rented, n)
				return 204, nil
			}
		}
		return refusal(404, 20404, "The requested resource "+path+" was not found")
	case path == "/Messages.json" && r.Method == "POST":
		return s.take(q)
	case path == "/Messages.json" && r.Method == "GET":
		list := []any{}
		for _, m := range slices.Backward(s.messages) { // newest first
			if day := m.At.UTC().Format(time.DateOnly); m.From == q.Get("From") && m.To == q.Get("To") &&
				day >= q.Get("DateSent>") {
				list = append(list, m.json())
			}
		}
		return 200, object{"messages": list, "page": 0, "page_size": 50}
	}
	return refusal(404, 20404, "The requested resource "+path+" was not found")
}

func (s *Server) take(q url.Values) (int, object) {
	switch {
	case q.Get("Body") == "":
		return refusal(400, 21602, "Message body is required")
	case s.rented[q.Get("From")] == "":
		return refusal(400, 21606, "The 'From' phone number provided ("+q.Get("From")+
			") is not a valid, message-capable Twilio phone number for this destination")
	case strings.HasSuffix(q.Get("To"), "0009"):
		return refusal(400, 21610, "Attempt to send to unsubscribed recipient")
	}
	s.serial++
	m := Message{fmt.Sprintf("SM%032d", s.serial), q.Get("From"), q.Get("To"), q.Get("Body"),
		q.Get("StatusCallback"), time.Now()}
	s.messages = append(s.messages, m)
	return 201, m.json()
}

func (m Message) json() object {
	return object{"sid": m.SID, "account_sid": AccountSID, "from": m.From, "to": m.To, "body": m.Body,
		"status": "queued", "direction": "outbound-api",
		"error_code": nil, "error_message": nil, "date_created": m.At.UTC().Format(time.RFC1123Z), "date_sent": nil,
		"num_segments": "1"}
}

// Told is the request in which Twilio tells the status of a message.
func (m Message) Told(status string, extra ...string) *http.Request {
	form := url.Values{"AccountSid": {AccountSID}, "MessageSid": {m.SID}, "SmsSid": {m.SID},
		"MessageStatus": {status}, "SmsStatus": {status},
		"From": {m.From}, "To": {m.To}, "ApiVersion": {"2010-04-01"}}
	for i := 0; i+1 < len(extra); i += 2 {
		form.Set(extra[i], extra[i+1])
	}
	return Signed(m.Callback, form)
}

// Signed is a webhook request of Twilio's to an address.
func Signed(address string, form url.Values) *http.Request {
	r := httptest.NewRequest("POST", address, strings.NewReader(form.Encode()))
	r.RequestURI = r.URL.RequestURI()
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	r.Header.Set("X-Twilio-Signature", twilio.Signature(AuthToken, address, form))
	return r
}

// Inbound is the form in which Twilio tells of a message that came in.
func Inbound(sid, from, to, body string) url.Values {
	return url.Values{"AccountSid": {AccountSID}, "MessageSid": {sid}, "SmsSid": {sid}, "SmsStatus": {"received"},
		"From": {from}, "To": {to}, "Body": {body},
		"NumMedia": {"0"}, "NumSegments": {"1"}, "FromCountry": {"US"}, "ToCountry": {"US"},
		"ApiVersion": {"2010-04-01"}}
}
