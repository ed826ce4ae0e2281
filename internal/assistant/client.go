package assistant

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/google/uuid"
)

// Client is a program at the customer's end of a call or chat, such as a web page, that runs tools of kind client. Its methods are safe
// for concurrent use.
type Client struct {
	names []string
	ask   func(ClientCall) bool

	mu   sync.Mutex
	open map[string]chan<- ClientResult
}

// ClientCall is a call of a tool that a client is asked to run.
type ClientCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// ClientResult is what a client answers: a text for the model, or why the tool failed.
type ClientResult struct{ Result, Error string }

// NewClient is a client that has the tools of these names. ask sends it a call without waiting, and reports false where the client is
// gone.
func NewClient(names []string, ask func(ClientCall) bool) *Client {
	return &Client{names: names, ask: ask, open: map[string]chan<- ClientResult{}}
}

// has reports whether the client runs a tool; nil is no client.
func (c *Client) has(name string) bool { return c != nil && slices.Contains(c.names, name) }

// maxOpen is how many tools a client runs at a time.
const maxOpen = 8

var (
	errClientGone = errors.New("the customer's page is gone")
	errClientBusy = errors.New("the customer's page is busy with other tools")
)

// run asks the client to run a tool and returns its result.
func (c *Client) run(ctx context.Context, name string, arguments json.RawMessage) (string, error) {
	if c == nil {
		return "", errClientGone
	}
	call, answer := ClientCall{ID: uuid.NewString(), Name: name, Arguments: arguments}, make(chan ClientResult, 1)
	c.mu.Lock()
	room := len(c.open) < maxOpen
	if room {
		c.open[call.ID] = answer
	}
	c.mu.Unlock()
	if !room {
		return "", errClientBusy
	}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, call.ID)
	}()
	if !c.ask(call) {
		return "", errClientGone
	}
	select {
	case r := <-answer:
		if r.Error != "" {
			return "", errors.New(r.Error)
		}
		return r.Result, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// Asked reports whether a call waits for its answer.
func (c *Client) Asked() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open) > 0
}

// Answer takes the result of a call, and reports whether one of that id was waiting for it.
func (c *Client) Answer(id string, r ClientResult) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := c.open[id]
	if answer == nil {
		return false
	}
	delete(c.open, id)
	answer <- r // it has room for one
	return true
}
