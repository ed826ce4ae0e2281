package rehearsal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

	"go.yaml.in/yaml/v3"

	"parley"
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
	req.Header.Set("Authorization", "Bearer "+s.Key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
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
		return fmt.Errorf("the server answers %s %s with %d: %.500s", method, path, res.StatusCode, bytes.TrimSpace(raw))
	}
	if out != nil {
		if err := json.Unmarshal(raw, out); err != nil {
			return fmt.Errorf("the server answers %s %s with something else: %w", method, path, err)
		}
	}
	return nil
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

// make makes an assistant of a file: the fields of the API, with language, voice and model by their names, and its tools
// under mid_call_tools. With a number it calls, and without one it is called.
func (s *Client) make(ctx context.Context, file string, number int64) (*callee, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := yaml.Unmarshal(text, &fields); err != nil {
		m := yamlMistake(err)
		if wrong, ok := errors.AsType[*Mistake](m); ok {
			wrong.File = file
		}
		return nil, m
	}
	name := strings.TrimSuffix(filepath.Base(file), assistantFile)
	kind := "inbound"
	if number != 0 {
		kind, fields["phone_number_id"] = "outbound", number
	}
	for k, v := range map[string]any{"name": name, "type": kind, "mode": "pipeline", "status": "active",
		"timezone": "UTC", "post_call_evaluation": false} {
		if _, ok := fields[k]; !ok {
			fields[k] = v
		}
	}
	if err := s.choose(ctx, fields); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	ids := []int64{}
	tools, _ := fields["mid_call_tools"].([]any)
	for _, one := range tools {
		body, ok := one.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s: mid_call_tools must be a list of tools, as POST /user/tools takes them", file)
		}
		for k, v := range map[string]any{"method": "POST", "endpoint": "https://example.invalid/"} {
			if _, ok := body[k]; !ok {
				body[k] = v
			}
		}
		var made struct{ Data struct{ ID int64 } }
		if err := s.ask(ctx, "POST", "/user/tools", body, &made); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		ids = append(ids, made.Data.ID)
	}
	delete(fields, "mid_call_tools")
	if len(ids) > 0 {
		fields["tool_ids"] = ids
	}
	var made struct{ Data callee }
	if err := s.ask(ctx, "POST", "/user/assistants", fields, &made); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	made.Data.Client = s
	return &made.Data, nil
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

// choose puts ids in place of the names of a language, a voice and a model.
func (s *Client) choose(ctx context.Context, fields map[string]any) error {
	type thing struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
		Code string `json:"code"`
		ISO2 string `json:"iso_2"`
	}
	pick := func(field, id, path, usual string) error {
		want, named := fields[field].(string)
		delete(fields, field)
		if _, ok := fields[id]; ok && !named {
			return nil
		}
		if !named {
			want = usual
		}
		var all []thing
		if err := s.ask(ctx, "GET", path, nil, &all); err != nil {
			return err
		}
		var codes []string
		for _, t := range all {
			for _, name := range []string{t.Code, t.Name, t.ISO2} {
				short, _, _ := strings.Cut(name, " (")
				if want == "" || name != "" && (strings.EqualFold(name, want) || strings.EqualFold(short, want)) {
					fields[id] = t.ID
					return nil
				}
			}
			codes = append(codes, t.Name)
		}
		return fmt.Errorf("there is no %s %q: the server has %s", field, want, strings.Join(codes[:min(len(codes), 12)], ", "))
	}
	if err := pick("language", "language_id", "/user/assistants/languages", "English"); err != nil {
		return err
	}
	if err := pick("voice", "voice_id", fmt.Sprintf("/user/assistants/voices?language_id=%v", fields["language_id"]), ""); err != nil {
		return err
	}
	return pick("model", "llm_model_id", "/user/assistants/models?type=llm", "built-in")
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

// record reads a call until it is over, and until what is found out from it is there where it is waited for.
func (s *Client) record(ctx context.Context, id int64, variables bool) (*Record, error) {
	for tries := 0; ; tries++ {
		r := &Record{}
		if err := s.ask(ctx, "GET", fmt.Sprintf("/user/calls/%d", id), nil, r); err != nil {
			return nil, err
		}
		if r.EndedAt != nil && (!variables || len(r.Variables) > 0 || tries > 100) {
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

// follow fills a live record until the call is over or ctx ends.
func (s *Client) follow(ctx context.Context, id int64, l *live) error {
	req, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("%s/api/user/calls/%d/events", s.URL, id), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.Key)
	res, err := s.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("following call %d is answered %d", id, res.StatusCode)
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
			return nil
		}
	}
	return lines.Err()
}
