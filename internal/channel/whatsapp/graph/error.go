package graph

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Reason is what a refusal means to us.
type Reason int

// The reasons. An error without one of its own is Refused.
const (
	Refused      Reason = iota
	NoAnswer            // the network failed, or the answer was none
	Busy                // too many requests, or the platform is down for a moment
	WindowClosed        // more than 24 hours since the customer's last message
	BadTemplate         // the values don't fit the template
	Unapproved          // the template is not there in this language, not approved, paused or disabled
	BadRecipient        // no WhatsApp account, or not one that can be written to
	BadSender           // the number or the account can't be used: token, permission, payment, lock
)

// reasons are the platform's error codes that mean something of their own to us.
var reasons = map[int]Reason{
	1: Busy, 2: Busy, 4: Busy, 80007: Busy, 130429: Busy, 131048: Busy, 131056: Busy, 131016: Busy, 131057: Busy,
	133004: Busy,
	131047: WindowClosed,
	132000: BadTemplate, 132005: BadTemplate, 132012: BadTemplate, 132018: BadTemplate,
	132001: Unapproved, 132007: Unapproved, 132015: Unapproved, 132016: Unapproved,
	131021: BadRecipient, 131026: BadRecipient, 131030: BadRecipient, 131050: BadRecipient, 130497: BadRecipient,
	0: BadSender, 3: BadSender, 10: BadSender, 33: BadSender, 190: BadSender, 368: BadSender, 131005: BadSender,
	131031: BadSender,
	131042: BadSender, 131045: BadSender, 133010: BadSender,
}

// Error is a request that the platform refused or did not answer.
type Error struct {
	Status     int // of HTTP; 0 when there was no answer
	Code       int // the platform's
	Text       string
	RetryAfter time.Duration // as the platform asked, 0 when it did not
	Unknown    bool          // whether the request took effect is not known
}

func (e *Error) Error() string {
	switch {
	case e.Code != 0:
		return fmt.Sprintf("WhatsApp refused it (%d): %s", e.Code, e.Text)
	case e.Status == 0:
		return "WhatsApp did not answer: " + e.Text
	}
	return fmt.Sprintf("WhatsApp answered %d: %s", e.Status, e.Text)
}

// Reason is what the error means.
func (e *Error) Reason() Reason {
	r, known := reasons[e.Code]
	switch {
	case e.Code != 0 && known:
		return r
	case e.Code >= 200 && e.Code < 300: // permissions
		return BadSender
	case e.Unknown:
		return NoAnswer
	case e.Status == http.StatusTooManyRequests || e.Status >= 500:
		return Busy
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		return BadSender
	}
	return Refused
}

// Temporary says whether the same request may do later.
func (e *Error) Temporary() bool { r := e.Reason(); return r == NoAnswer || r == Busy }

// graphError is an error as the Graph API writes it, in answers and in webhooks.
type graphError struct {
	Message string `json:"message"`
	Title   string `json:"title"`
	Code    int    `json:"code"`
	Data    struct {
		Details string `json:"details"`
	} `json:"error_data"`
}

func (g graphError) text() string {
	text := cmp.Or(g.Message, g.Title)
	if g.Data.Details != "" && g.Data.Details != text {
		text += ": " + g.Data.Details
	}
	return cmp.Or(text, "no reason given")
}

// failure reads a refusal.
func (c *Client) failure(res *http.Response, raw []byte) error {
	var body struct {
		Error *graphError `json:"error"`
	}
	e := &Error{Status: res.StatusCode}
	if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && n > 0 && n < 86400 {
		e.RetryAfter = time.Duration(n) * time.Second
	}
	if json.Unmarshal(raw, &body) != nil || body.Error == nil {
		// A gateway's words, not the platform's: what is behind it may have done its work.
		e.Text, e.Unknown = http.StatusText(res.StatusCode), res.StatusCode >= 500
		return e
	}
	e.Code, e.Text = body.Error.Code, c.clean(body.Error.text())
	return e
}
