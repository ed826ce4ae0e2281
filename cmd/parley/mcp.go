package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"parley/internal/crash"
	"parley/internal/mcpserver"
)

type mcpCmd struct{ accountFlags }

// Limits of the bridge.
const (
	maxMessage  = 8 << 20 // bytes of a message, either way
	maxAtOnce   = 16      // messages under way
	messageTime = 5 * time.Minute
)

// Run passes the messages of a client of MCP on standard input to a server's /mcp, and its answers back, until the input ends.
func (c *mcpCmd) Run(t *terminal) error {
	if c.Key == "" {
		return errors.New("--key is missing: an API key of the account, also as PARLEY_KEY; the console makes one under API keys")
	}
	b := &bridge{url: strings.TrimSuffix(c.Server, "/") + mcpserver.Path, key: c.Key, out: t.Out,
		http: &http.Client{Timeout: messageTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	return b.run(t, t.In)
}

// bridge takes JSON-RPC messages, one a line, to a streamable HTTP server, and its answers back.
type bridge struct {
	url, key string
	http     *http.Client

	mu      sync.Mutex
	out     io.Writer
	version string // of the protocol, once the server has named it
}

// message is what the bridge must know of a message.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name string `json:"name"`
		URI  string `json:"uri"`
		Meta struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
	Result struct {
		Version string `json:"protocolVersion"`
	} `json:"result"`
}

// run passes messages on until in ends or ctx does.
func (b *bridge) run(ctx context.Context, in io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	read, lines := make(chan error, 1), make(chan []byte)
	go func() { // a terminal can't be told to stop reading: with a signal the process ends and this with it
		defer crash.Contain(func(err error) { read <- err })
		s := bufio.NewScanner(in)
		s.Buffer(nil, maxMessage)
		for s.Scan() {
			select {
			case lines <- bytes.Clone(s.Bytes()):
			case <-ctx.Done():
				return
			}
		}
		read <- s.Err()
	}()
	var under sync.WaitGroup
	defer under.Wait()
	room := make(chan struct{}, maxAtOnce)
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-read:
			return err
		case line := <-lines:
			var m message
			if err := json.Unmarshal(line, &m); err != nil {
				b.say(failure(json.RawMessage("null"), -32700, "Parse error: each line must be one JSON-RPC message."))
				continue
			}
			if m.Method == "initialize" || len(m.ID) == 0 { // what comes after these must find them done
				b.pass(ctx, &m, line)
				continue
			}
			room <- struct{}{}
			crash.Go(&under, func() { b.pass(ctx, &m, line); <-room }, func(err error) {
				<-room
				b.say(failure(m.ID, -32603, "parley mcp failed: "+err.Error()))
			})
		}
	}
}

// pass sends a message and writes what is answered. A request always gets an answer.
func (b *bridge) pass(ctx context.Context, m *message, line []byte) {
	answered, err := b.post(ctx, m, line)
	if err == nil && !answered {
		err = errors.New("the server gave no answer")
	}
	if err != nil && len(m.ID) > 0 && ctx.Err() == nil {
		b.say(failure(m.ID, -32000, err.Error()))
	}
}

// post sends a message; answered says whether its own answer was among what came back.
func (b *bridge) post(ctx context.Context, m *message, line []byte) (answered bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url, bytes.NewReader(line))
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+b.key)
	b.mu.Lock()
	version := b.version
	b.mu.Unlock()
	if m.Params.Meta.Version != "" { // a version of the protocol that has no sessions: each message says what it is
		version = m.Params.Meta.Version
		r.Header.Set("Mcp-Method", m.Method)
		if name := m.Params.Name + m.Params.URI; name != "" {
			r.Header.Set("Mcp-Name", name)
		}
	}
	if version != "" {
		r.Header.Set("MCP-Protocol-Version", version)
	}
	res, err := b.http.Do(r)
	if err != nil {
		return false, fmt.Errorf("can't reach %s: %w", b.url, err)
	}
	defer res.Body.Close()
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	body := io.LimitReader(res.Body, maxMessage)
	switch {
	case res.StatusCode == http.StatusAccepted || res.StatusCode == http.StatusNoContent:
		return len(m.ID) == 0, nil
	case kind == "text/event-stream" && res.StatusCode < 300:
		return b.events(m, body)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return false, fmt.Errorf("read the answer: %w", err)
	}
	var said struct {
		JSONRPC string `json:"jsonrpc"`
		Message string `json:"message"`
	}
	if kind == "application/json" && json.Unmarshal(text, &said) == nil && said.JSONRPC != "" {
		return b.back(m, text), nil
	}
	if res.StatusCode < 300 {
		return false, nil
	}
	if said.Message == "" {
		said.Message = strings.TrimSpace(string(text[:min(len(text), 500)]))
	}
	if res.StatusCode == http.StatusUnauthorized {
		said.Message = "the API key is not valid: make one in the console under API keys, and set PARLEY_KEY"
	}
	return false, fmt.Errorf("%s answered %d: %s", b.url, res.StatusCode, said.Message)
}

// events writes the messages of a stream of server-sent events.
func (b *bridge) events(m *message, body io.Reader) (answered bool, err error) {
	var data []byte
	s := bufio.NewScanner(body)
	s.Buffer(nil, maxMessage)
	for s.Scan() {
		line := s.Bytes()
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, bytes.TrimPrefix(rest, []byte(" "))...)
		} else if len(line) == 0 && len(data) > 0 {
			answered = b.back(m, data) || answered
			data = nil
		}
	}
	return answered, s.Err()
}

// back writes a message from the server, and says whether it is the answer to m.
func (b *bridge) back(m *message, text []byte) (answers bool) {
	var line bytes.Buffer
	var of message
	if json.Compact(&line, text) != nil || json.Unmarshal(text, &of) != nil {
		return false
	}
	answers = of.Method == "" && bytes.Equal(bytes.TrimSpace(of.ID), bytes.TrimSpace(m.ID))
	if answers && m.Method == "initialize" && of.Result.Version != "" {
		b.mu.Lock()
		b.version = of.Result.Version
		b.mu.Unlock()
	}
	b.say(line.Bytes())
	return answers
}

// say writes a line.
func (b *bridge) say(line []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _ = b.out.Write(append(line, '\n')) // a client that is gone ends the input too
}

// failure is an answer that says what went wrong.
func failure(id json.RawMessage, code int, text string) []byte {
	out, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": text}})
	if err != nil {
		panic(err) // the id was JSON
	}
	return out
}
