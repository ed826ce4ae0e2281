// Package graph speaks Meta's WhatsApp Cloud API: the numbers and templates of one WhatsApp Business account, sending,
// and the webhook that reports incoming messages and the fate of sent ones
// (developers.facebook.com/docs/whatsapp/cloud-api).
package graph

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"parley/internal/parley"
)

// Version is the Graph API version that is asked for where the base URL names none.
const Version = "v24.0"

// DefaultBaseURL is where the Graph API is.
const DefaultBaseURL = "https://graph.facebook.com"

const (
	answerTime = 20 * time.Second
	answerSize = 4 << 20
)

// Config says which account is spoken for.
type Config struct {
	BaseURL    string // with or without a version such as /v24.0; "" is DefaultBaseURL
	Token      string // a system user's access token
	BusinessID string // of the WhatsApp Business account
}

// Client asks the Graph API. It holds connections; Close it.
type Client struct {
	base, token, business string
	http                  *http.Client
}

var versioned = regexp.MustCompile(`/v\d+\.\d+$`)

// New makes a client.
func New(c Config) *Client {
	base := strings.TrimSuffix(cmp.Or(c.BaseURL, DefaultBaseURL), "/")
	if !versioned.MatchString(base) {
		base += "/" + Version
	}
	return &Client{base: base, token: c.Token, business: c.BusinessID, http: &http.Client{
		Transport: http.DefaultTransport.(*http.Transport).Clone(),
		// the token goes nowhere else
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close lets the connections go.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Message is what is sent: a text, or a template with the values of its variables.
type Message struct {
	Text     string
	Template *parley.WhatsAppTemplate
	Values   map[string]string
	Opaque   string // comes back with the message's statuses
}

// Send sends a message from a number (by its id) to a phone in E.164, or to a user id. It returns the platform's id of the message.
// The error is an *Error; sending again is not safe where its Unknown is set.
func (c *Client) Send(ctx context.Context, from, to string, m Message) (wamid string, err error) {
	body := map[string]any{"messaging_product": "whatsapp", "recipient_type": "individual"}
	if user := UserID(to); user != "" { // in "to" it would be taken for a phone number, and reach nobody
		body["recipient"] = user
	} else {
		body["to"] = strings.TrimPrefix(to, "+")
	}
	if m.Opaque != "" {
		body["biz_opaque_callback_data"] = m.Opaque
	}
	if m.Template != nil {
		body["type"], body["template"] = "template", fill(m.Template, m.Values)
	} else {
		body["type"], body["text"] = "text", map[string]any{"body": m.Text, "preview_url": false}
	}
	var out struct {
		Messages []struct {
			ID string `json:"id"`
		} `json:"messages"`
	}
	if err := c.ask(ctx, http.MethodPost, url.PathEscape(from)+"/messages", nil, body, &out); err != nil {
		return "", err
	}
	if len(out.Messages) == 0 || out.Messages[0].ID == "" {
		return "", &Error{Status: http.StatusOK, Text: "the answer names no message", Unknown: true}
	}
	return out.Messages[0].ID, nil
}

// ask makes one request and decodes its answer into out.
func (c *Client) ask(ctx context.Context, method, path string, query url.Values, body, out any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var sent io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(raw)
	}
	target := c.base + "/" + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, sent)
	if err != nil {
		return &Error{Text: "the base URL is not a URL"}
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return &Error{Text: c.clean(err.Error()), Unknown: true}
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, answerSize+1))
	switch {
	case err != nil:
		return &Error{Status: res.StatusCode, Text: c.clean(err.Error()), Unknown: true}
	case len(raw) > answerSize:
		return &Error{Status: res.StatusCode, Text: "the answer is too large", Unknown: true}
	case res.StatusCode != http.StatusOK:
		return c.failure(res, raw)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return &Error{Status: res.StatusCode, Text: "the answer is not JSON", Unknown: true}
	}
	return nil
}

// clean keeps the token out of what may be logged or shown, whoever put it there.
func (c *Client) clean(text string) string {
	if c.token != "" {
		text = strings.ReplaceAll(text, c.token, "[token]")
	}
	if r := []rune(text); len(r) > 500 {
		text = string(r[:500])
	}
	return text
}

// list reads every page of an edge of the account.
func list[T any](ctx context.Context, c *Client, edge, fields string) (all []T, err error) {
	after := ""
	for range 200 { // a server that pages without an end
		var page struct {
			Data   []T `json:"data"`
			Paging struct {
				Next    string `json:"next"`
				Cursors struct {
					After string `json:"after"`
				} `json:"cursors"`
			} `json:"paging"`
		}
		query := url.Values{"fields": {fields}, "limit": {"100"}}
		if after != "" {
			query.Set("after", after)
		}
		if err := c.ask(ctx, http.MethodGet, url.PathEscape(c.business)+"/"+edge, query, nil, &page); err != nil {
			return nil, fmt.Errorf("list %s: %w", edge, err)
		}
		all = append(all, page.Data...)
		after = page.Paging.Cursors.After
		if page.Paging.Next == "" || after == "" {
			return all, nil
		}
	}
	return nil, fmt.Errorf("list %s: there is no end of pages", edge)
}
