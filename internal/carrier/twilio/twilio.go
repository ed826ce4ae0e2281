// Package twilio is Twilio as a carrier, by its documented REST interface (version 2010-04-01): numbers are searched,
// rented and given back, text messages sent. What Twilio tells us of them comes in through Webhooks.
package twilio

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/internal/carrier"
)

// Config says which account it is and where.
type Config struct {
	AccountSID string
	AuthToken  string
	BaseURL    string // https://api.twilio.com when ""
	PublicURL  string // ours, for its webhooks; without it Twilio tells us nothing
	// the Elastic SIP Trunk (TK…) whose origination is our telephone; without it bought numbers take no calls
	TrunkSID string
}

// Client is an account at Twilio.
type Client struct {
	Config
	http *http.Client
}

// patience is how long one request may take. It is shorter than the lease of a message that is being sent.
const patience = 8 * time.Second

// New makes a client; it asks Twilio nothing yet. Close it.
func New(c Config) *Client {
	c.BaseURL = strings.TrimSuffix(cmp.Or(c.BaseURL, "https://api.twilio.com"), "/")
	t := http.DefaultTransport.(*http.Transport).Clone()
	return &Client{Config: c, http: &http.Client{Transport: t, Timeout: patience,
		// credentials go nowhere else
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Ping says whether Twilio knows the account.
func (c *Client) Ping(ctx context.Context) error {
	return c.ask(ctx, http.MethodGet, ".json", nil, new(struct{}))
}

// kinds are the resources that a country's numbers stand under. Where geographic numbers take no text messages,
// mobile ones come first.
func kinds(country string) []string {
	if country == "US" || country == "CA" {
		return []string{"Local"}
	}
	return []string{"Mobile", "Local"}
}

// maxFound is how many numbers one search asks for.
const maxFound = 30

// Search finds numbers that can be rented.
func (c *Client) Search(ctx context.Context, country, contains string) ([]carrier.Number, error) {
	list := []carrier.Number{}
	for _, kind := range kinds(country) {
		q := url.Values{"PageSize": {strconv.Itoa(maxFound)}, "VoiceEnabled": {"true"}}
		if len(contains) >= 2 { // Twilio takes no shorter pattern
			q.Set("Contains", contains)
		}
		var out struct {
			Numbers []struct {
				PhoneNumber         string `json:"phone_number"`
				ISOCountry          string `json:"iso_country"`
				AddressRequirements string `json:"address_requirements"`
				Capabilities        struct {
					SMS bool `json:"SMS"`
				} `json:"capabilities"`
			} `json:"available_phone_numbers"`
		}
		err := c.ask(ctx, http.MethodGet, "/AvailablePhoneNumbers/"+url.PathEscape(country)+"/"+kind+".json?"+
			q.Encode(), nil, &out)
		if e := carrier.Refusal(err); e != nil && e.Status == http.StatusNotFound { // no numbers of this kind there
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("search %s numbers in %s: %w", kind, country, err)
		}
		for _, n := range out.Numbers {
			if strings.Contains(n.PhoneNumber, contains) {
				list = append(list, carrier.Number{PhoneNumber: n.PhoneNumber,
					CountryCode:         cmp.Or(n.ISOCountry, country),
					AddressRequirements: requirements(n.AddressRequirements), SMSCapable: n.Capabilities.SMS})
			}
		}
	}
	return list, nil
}

// requirements is Twilio's word in the product's: "any" asks for an address somewhere in the world.
func requirements(s string) string {
	switch s {
	case "local", "foreign", "inventory":
		return s
	case "any":
		return "foreign"
	}
	return "none"
}

// notAvailable are Twilio's codes for a number that is not to be had.
var notAvailable = map[int]bool{21422: true, 21404: true, 21452: true}

// Buy rents a number and has its messages told to us.
func (c *Client) Buy(ctx context.Context, number string) error {
	form := url.Values{"PhoneNumber": {number}}
	if c.PublicURL != "" {
		form.Set("SmsUrl", c.PublicURL+smsPath)
		form.Set("SmsMethod", "POST")
	}
	if c.TrunkSID != "" {
		form.Set("TrunkSid", c.TrunkSID)
	}
	err := c.ask(ctx, http.MethodPost, "/IncomingPhoneNumbers.json", form, new(struct{}))
	if e := carrier.Refusal(err); e == nil || !notAvailable[e.Code] {
		return err
	}
	// It may be ours: rented by a try whose answer was lost.
	sid, found := c.rented(ctx, number)
	switch {
	case found != nil:
		return found
	case sid == "":
		return err
	}
	return nil
}

// rented is Twilio's name for a number of the account's, "" for none.
func (c *Client) rented(ctx context.Context, number string) (sid string, err error) {
	var out struct {
		Numbers []struct {
			SID         string `json:"sid"`
			PhoneNumber string `json:"phone_number"`
		} `json:"incoming_phone_numbers"`
	}
	err = c.ask(ctx, http.MethodGet, "/IncomingPhoneNumbers.json?"+url.Values{"PhoneNumber": {number}}.Encode(),
		nil, &out)
	for _, n := range out.Numbers {
		if n.PhoneNumber == number { // the filter matches parts too
			return n.SID, err
		}
	}
	return "", err
}

// Release gives a number back.
func (c *Client) Release(ctx context.Context, number string) error {
	sid, err := c.rented(ctx, number)
	if err != nil || sid == "" {
		return err
	}
	err = c.ask(ctx, http.MethodDelete, "/IncomingPhoneNumbers/"+url.PathEscape(sid)+".json", nil, nil)
	if e := carrier.Refusal(err); e != nil && e.Status == http.StatusNotFound {
		return nil
	}
	return err
}

// Send hands a message over. Its reports name our reference, so that one that is faster than our own bookkeeping
// finds its message.
func (c *Client) Send(ctx context.Context, m carrier.SMS) (string, error) {
	if m.From == "" {
		return "", &carrier.Error{Message: "The carrier needs a number of yours to send from: rent one that is SMS-capable first."}
	}
	form := url.Values{"From": {m.From}, "To": {m.To}, "Body": {m.Body}}
	if c.PublicURL != "" {
		form.Set("StatusCallback", c.PublicURL+statusPath+"?"+url.Values{"reference": {m.Reference}}.Encode())
	}
	var out struct {
		SID     string `json:"sid"`
		Status  string `json:"status"`
		Message string `json:"error_message"`
		Code    int    `json:"error_code"`
	}
	err := c.ask(ctx, http.MethodPost, "/Messages.json", form, &out)
	switch {
	case err != nil:
		return "", err
	case out.Status == "failed":
		return "", &carrier.Error{Status: http.StatusCreated, Code: out.Code,
			Message: cmp.Or(out.Message, "The carrier refused the message.")}
	case out.SID == "":
		return "", errors.New("twilio took a message and did not name it")
	}
	return out.SID, nil
}

// Find looks for messages like m that were taken since then.
func (c *Client) Find(ctx context.Context, m carrier.SMS, since time.Time) (sids []string, err error) {
	since = since.Add(-time.Minute) // clocks differ
	q := url.Values{"From": {m.From}, "To": {m.To}, "DateSent>": {since.UTC().Format(time.DateOnly)},
		"PageSize": {"100"}}
	var out struct {
		Messages []struct {
			SID         string `json:"sid"`
			Body        string `json:"body"`
			Direction   string `json:"direction"`
			DateCreated string `json:"date_created"`
		} `json:"messages"`
	}
	if err := c.ask(ctx, http.MethodGet, "/Messages.json?"+q.Encode(), nil, &out); err != nil {
		return nil, err
	}
	for _, f := range out.Messages { // newest first
		made, err := time.Parse(time.RFC1123Z, f.DateCreated)
		if err != nil || made.Before(since) || f.Body != m.Body || strings.HasPrefix(f.Direction, "inbound") {
			continue
		}
		sids = append([]string{f.SID}, sids...)
	}
	return sids, nil
}

// AnswersKeywords: Twilio answers STOP, START and HELP itself, and stops messages to people who have opted out.
func (c *Client) AnswersKeywords() {}

// maxTries is how often a request is made that Twilio did not take.
const maxTries = 4

// ask sends one request. Being asked to slow down, and not being reached at all, are tried again while there is time:
// nothing was done.
func (c *Client) ask(ctx context.Context, method, path string, form url.Values, out any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	deadline, _ := ctx.Deadline()
	wait := 200 * time.Millisecond
	for try := 1; ; try++ {
		err := c.try(ctx, method, path, form, out)
		var slow *slowDown
		switch {
		case errors.As(err, &slow):
			wait, err = max(wait, slow.after), slow.refused
		case unreached(err):
			err = &carrier.Error{Message: "The carrier can't be reached.", Later: true}
		default:
			return err
		}
		if try == maxTries || time.Now().Add(wait).After(deadline) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
		wait *= 2
	}
}

// slowDown is a refusal that asks to be tried again later.
type slowDown struct {
	refused *carrier.Error
	after   time.Duration
}

func (s *slowDown) Error() string { return s.refused.Message }

// unreached says whether a request never left: no connection was made.
func unreached(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

func (c *Client) try(ctx context.Context, method, path string, form url.Values, out any) error {
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(ctx, method, c.BaseURL+"/2010-04-01/Accounts/"+
		url.PathEscape(c.AccountSID)+path, body)
	if err != nil {
		return fmt.Errorf("ask twilio: %w", err)
	}
	req.SetBasicAuth(c.AccountSID, c.AuthToken)
	req.Header.Set("Accept", "application/json")
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := c.http.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) { // its text holds the URL; what went wrong is inside
			err = u.Err
		}
		return fmt.Errorf("ask twilio: %w", err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 4<<20))
	if err != nil {
		return fmt.Errorf("read twilio's answer: %w", err)
	}
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		if out == nil || len(text) == 0 {
			return nil
		}
		if err := json.Unmarshal(text, out); err != nil {
			return fmt.Errorf("read twilio's answer: %w", err)
		}
		return nil
	}
	return refusal(res, text)
}

// refusal is Twilio's error in ours. A 5xx says nothing about what has happened.
func refusal(res *http.Response, text []byte) error {
	var e struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(text, &e) != nil || e.Message == "" {
		e.Message = "The carrier answered " + strconv.Itoa(res.StatusCode) + "."
	}
	refused := &carrier.Error{Status: res.StatusCode, Code: e.Code, Message: e.Message, Taken: notAvailable[e.Code]}
	switch {
	case res.StatusCode == http.StatusTooManyRequests:
		refused.Later = true
		after, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		return &slowDown{refused, time.Duration(max(0, after)) * time.Second}
	case res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden && e.Code == 20003:
		// the user can't mend that
		refused.Message = "The carrier refuses this server's account: its operator must look at it."
		return refused
	case res.StatusCode >= 500:
		return fmt.Errorf("twilio failed: %s (%d, %d)", refused.Message, refused.Status, refused.Code)
	}
	return refused
}
