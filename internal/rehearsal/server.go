package rehearsal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/internal/parley"
)

// Server is the server whose assistants are tried. It is safe for concurrent use.
type Server struct {
	Client
	SIP netip.AddrPort // where it takes calls of softphones
	// Account makes an account and returns its API key: each file of an assistant has one, as names of tools are
	// an account's. nil: no assistants are made.
	Account func(ctx context.Context) (key string, err error)
	// Only is the one assistant that is tried, whatever cases call; nil: they say whom. No files are looked for then.
	Only *parley.Assistant

	mu    sync.Mutex
	known map[string]*callee // by what cases call them
	lines int                // numbers that assistants call from
}

// Client asks a server's API in somebody's name.
type Client struct {
	URL  string // without /api
	Key  string // an API key
	HTTP *http.Client
}

// Forget has assistants found again, and those of files made anew.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = nil
}

// callee is an assistant that was found or made.
type callee struct {
	*Client `json:"-"` // in the name of its owner

	ID   int64  `json:"id"`
	UUID string `json:"uuid"`
	Name string `json:"name"`
}

// ask asks the API. out, where not nil, takes the answer.
func (s *Client) ask(ctx context.Context, method, path string, body, out any) error {
	var sent io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.URL+"/api"+path, sent)
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return s.send(req, out)
}

// send sends a request. out, where not nil, takes the answer.
func (s *Client) send(req *http.Request, out any) error {
	method, path := req.Method, req.URL.Path
	req.Header.Set("Authorization", "Bearer "+s.Key)
	res, err := s.HTTP.Do(req)
	if err != nil {
		return fmt.Errorf("ask the server: %w", err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	if err != nil {
		return fmt.Errorf("ask the server: %w", err)
	}
	if res.StatusCode >= 300 {
		err := refused(method, path, res.StatusCode, raw)
		if res.StatusCode == http.StatusForbidden && bytes.Contains(raw, []byte(parley.LinesTaken)) {
			err = fmt.Errorf("%w: %w", ErrBusy, err)
		}
		return err
	}
	if out != nil {
		if err := json.Unmarshal(raw, out); err != nil {
			return fmt.Errorf("the server answers %s %s with something else: %w", method, path, err)
		}
	}
	return nil
}

// Refusal is what the server says is wrong with what it was asked for.
type Refusal struct {
	Text   string
	Fields map[string][]string // by the field's name, with dots within it
}

func (r *Refusal) Error() string {
	if len(r.Fields) == 0 {
		return r.Text
	}
	var all []string
	for _, name := range sortedKeys(r.Fields) {
		all = append(all, r.Fields[name]...)
	}
	return strings.Join(all, " ")
}

// refused is the error of an answer that says no.
func refused(method, path string, status int, raw []byte) error {
	var said struct {
		Message string
		Errors  map[string][]string
	}
	if json.Unmarshal(raw, &said) == nil && said.Message != "" && status < 500 {
		return &Refusal{said.Message, said.Errors}
	}
	return fmt.Errorf("the server answers %s %s with %d: %.500s", method, path, status, bytes.TrimSpace(raw))
}

// callee finds the assistant of a case: a file beside the case's, an id, or a name. One that calls does so over a trunk to
// out.
func (s *Server) callee(ctx context.Context, c *Case, out netip.AddrPort) (*callee, error) {
	if s.Only != nil {
		return &callee{Client: &s.Client, ID: s.Only.ID, UUID: s.Only.UUID, Name: s.Only.Name}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock() // an assistant of a file is made once
	file := ""
	for _, name := range []string{c.Assistant, c.Assistant + assistantFile} {
		path := filepath.Join(filepath.Dir(c.File), name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			file = path
			break
		}
	}
	key := c.Assistant
	if file != "" {
		key = file
	}
	if c.Outbound {
		key += " calls"
	}
	if a := s.known[key]; a != nil {
		return a, nil
	}
	var a *callee
	var err error
	switch {
	case file != "" && s.Account == nil:
		err = fmt.Errorf("%s: no assistants are made on a server that runs: leave out --server, or name one of its own", file)
	case file != "":
		owner := &Client{URL: s.URL, HTTP: s.HTTP}
		number := int64(0)
		if owner.Key, err = s.Account(ctx); err == nil && c.Outbound {
			s.lines++
			number, err = owner.trunk(ctx, out, s.lines)
		}
		if err == nil {
			a, err = owner.make(ctx, file, number)
		}
	case c.Outbound:
		err = fmt.Errorf("there is no file %s beside the case: assistants that call are tried on the server that is started for the tests",
			c.Assistant+assistantFile)
	default:
		a, err = s.find(ctx, c.Assistant)
	}
	if err != nil {
		return nil, err
	}
	if s.known == nil {
		s.known = map[string]*callee{}
	}
	s.known[key] = a
	return a, nil
}

func (s *Client) find(ctx context.Context, name string) (*callee, error) {
	var all []callee
	if err := s.ask(ctx, "GET", "/user/assistants", nil, &all); err != nil {
		return nil, err
	}
	var found *callee
	var names []string
	for i := range all {
		a := &all[i]
		a.Client = s
		names = append(names, strconv.Quote(a.Name))
		if strconv.FormatInt(a.ID, 10) == name || a.UUID == name {
			return a, nil
		}
		if a.Name == name {
			if found != nil {
				return nil, fmt.Errorf("two assistants are called %q: name one by its id", name)
			}
			found = a
		}
	}
	if found == nil {
		return nil, fmt.Errorf("there is no assistant %q: no file %s beside the case, and the server has %s", name,
			name+assistantFile, strings.Join(names, ", "))
	}
	return found, nil
}

// trunk makes a number that calls leave from, to an address, and returns its id.
func (s *Client) trunk(ctx context.Context, to netip.AddrPort, line int) (int64, error) {
	var made struct {
		Data struct {
			PhoneNumberID int64 `json:"phone_number_id"`
		}
	}
	err := s.ask(ctx, "POST", "/user/phone-numbers/sip-trunks", map[string]any{"name": "The telephone of the tests",
		"phone_number": fmt.Sprintf("+1202556%04d", line), "sip_address": to.String(), "inbound_authorization_type": "ip",
		"allowed_inbound_ips": []string{to.Addr().String()}}, &made)
	return made.Data.PhoneNumberID, err
}

// begin sets the stage of a case and returns its token.
func (s *Client) begin(ctx context.Context, c *Case, assistant int64) (string, error) {
	type mock struct {
		Mock
		AfterMS int64 `json:"after_ms,omitempty"`
	}
	body := map[string]any{"assistant_id": assistant, "variables": c.Variables}
	if c.Variables == nil {
		delete(body, "variables")
	}
	var tools []mock
	for _, m := range c.Mocks {
		tools = append(tools, mock{m, m.After.Milliseconds()})
	}
	if len(tools) > 0 {
		body["tools"] = tools
	}
	if c.Run != 0 {
		body["test_run_id"] = c.Run
	}
	if c.Draft != nil {
		body["draft"] = c.Draft
	}
	if !c.Now.IsZero() {
		body["now"] = c.Now.Format(time.RFC3339)
	}
	if c.Ears == Told {
		body["words"] = "told"
	}
	var made struct{ Data struct{ Token string } }
	err := s.ask(ctx, "POST", "/user/rehearsals", body, &made)
	return made.Data.Token, err
}

// record reads a test's call until it is over, and for a while until what is expected of it is there: what is found out from it,
// its recording and its events come later.
func (s *Client) record(ctx context.Context, token string, id int64, e *End) (*Record, error) {
	if e == nil {
		e = &End{}
	}
	variables, recording := len(e.Variables) > 0, e.Recorded != nil && *e.Recorded
	for tries := 0; ; tries++ {
		r := &Record{}
		if err := s.ask(ctx, "GET", fmt.Sprintf("/user/calls/%d", id), nil, r); err != nil {
			return nil, err
		}
		there := (!variables || len(r.Variables) > 0) && (!recording || r.RecordingURL != "")
		if e.Webhook != nil && r.EndedAt != nil {
			if err := s.ask(ctx, "GET", "/user/rehearsals/"+token, nil, &struct {
				Webhooks *[]map[string]any `json:"webhooks"`
			}{&r.Webhooks}); err != nil {
				return nil, err
			}
			there = there && r.Webhooks != nil
		}
		if r.EndedAt != nil && (there || tries > 100) {
			return r, nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("call %d does not end: %w", id, context.Cause(ctx))
		}
	}
}

// live is what the server tells of a call while it goes on.
type live struct {
	mu    sync.Mutex
	turns []Turn
	calls []ToolCall
}

// said says whether the assistant has said something since a time.
func (l *live) said(since time.Duration, what Words) bool { return what.In(l.words(since)) }

// words are what the assistant has said since a time.
func (l *live) words(since time.Duration) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for _, t := range l.turns {
		if t.Speaker == "assistant" && ms(t.StartedAtMS) >= since-300*time.Millisecond {
			all = append(all, t.Text)
		}
	}
	return strings.Join(all, " ")
}

// called says whether a tool was called since a time.
func (l *live) called(since time.Duration, what ToolPattern) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if what.Matches(c.Name, c.Arguments) && ms(c.AtMS) >= since-300*time.Millisecond {
			return true
		}
	}
	return false
}

// follow fills a live record until the call is over or ctx ends. A stream that ends before is followed by another one.
func (s *Client) follow(ctx context.Context, id int64, l *live) error {
	for {
		over, err := s.stream(ctx, id, l)
		if over || err != nil {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// stream reads one stream of a call's events, from the turn after those that are known.
func (s *Client) stream(ctx context.Context, id int64, l *live) (over bool, err error) {
	req, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("%s/api/user/calls/%d/events", s.URL, id), nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Authorization", "Bearer "+s.Key)
	l.mu.Lock()
	req.Header.Set("Last-Event-ID", strconv.Itoa(len(l.turns)))
	l.mu.Unlock()
	res, err := s.HTTP.Do(req)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return false, fmt.Errorf("following call %d is answered %d", id, res.StatusCode)
	}
	event, lines := "", bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			event = name
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		l.mu.Lock()
		switch event {
		case "turn":
			var t Turn
			if json.Unmarshal([]byte(data), &t) == nil {
				l.turns = append(l.turns, t)
			}
		case "tool":
			var t ToolCall
			if json.Unmarshal([]byte(data), &t) == nil {
				l.calls = append(l.calls, t)
			}
		}
		l.mu.Unlock()
		if event == "end" {
			return true, nil
		}
	}
	return false, lines.Err()
}
