package twilio

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"parley/internal/carrier"
	"parley/internal/parley"
	"parley/internal/web"
)

const (
	smsPath    = "/webhooks/twilio/sms"
	statusPath = "/webhooks/twilio/status"
)

// Receiver is who is told what Twilio tells us. Both bear being told twice, and in any order.
type Receiver interface {
	Receive(context.Context, carrier.Inbound) error
	Report(context.Context, carrier.Report) error
}

// Webhooks answers Twilio's requests: messages that came in, and what became of those that we sent. A request whose
// signature is not Twilio's is refused and changes nothing.
func (c *Client) Webhooks(to Receiver) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+smsPath, func(w http.ResponseWriter, r *http.Request) {
		form, ok := c.authentic(w, r)
		if !ok {
			return
		}
		err := to.Receive(r.Context(), carrier.Inbound{SID: form.Get("MessageSid"), From: form.Get("From"),
			To: form.Get("To"), Body: words(form)})
		if err != nil {
			web.NotTaken(w, r, fmt.Errorf("inbound message %s: %w", form.Get("MessageSid"), err))
			return
		}
		w.Header().Set("Content-Type", "text/xml")
		io.WriteString(w, "<Response></Response>") // the answer comes as a message of its own
	})
	mux.HandleFunc("POST "+statusPath, func(w http.ResponseWriter, r *http.Request) {
		form, ok := c.authentic(w, r)
		if !ok {
			return
		}
		status, known := states[form.Get("MessageStatus")]
		if !known {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		rep := carrier.Report{Reference: r.URL.Query().Get("reference"), SID: form.Get("MessageSid"), Status: status}
		if code := form.Get("ErrorCode"); code != "" && code != "0" {
			rep.Error = strings.TrimSpace("Carrier error " + code + ". " + form.Get("ErrorMessage"))
		}
		if err := to.Report(r.Context(), rep); err != nil {
			web.NotTaken(w, r, fmt.Errorf("status of message %s: %w", rep.SID, err))
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

// states are Twilio's states of a message in the product's words.
var states = map[string]parley.SMSStatus{
	"accepted": parley.SMSQueued, "scheduled": parley.SMSQueued, "queued": parley.SMSQueued,
	"sending": parley.SMSQueued,
	"sent":    parley.SMSSent, "delivered": parley.SMSDelivered, "read": parley.SMSDelivered,
	"undelivered": parley.SMSUndelivered, "failed": parley.SMSFailed, "canceled": parley.SMSFailed,
}

// words is what an inbound message says, its attachments named.
func words(form url.Values) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(form.Get("Body"), "�"), "\x00", "")
	n, _ := strconv.Atoi(form.Get("NumMedia"))
	for i := range min(n, 10) {
		kind := form.Get("MediaContentType" + strconv.Itoa(i))
		text = strings.TrimSpace(text + "\n[attachment: " +
			strings.ToValidUTF8(strings.ReplaceAll(kind, "\x00", ""), "") + "]")
	}
	return text
}

// authentic reads a request's form and holds it against its signature; it answers what is not Twilio's.
func (c *Client) authentic(w http.ResponseWriter, r *http.Request) (url.Values, bool) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "no form", http.StatusBadRequest)
		return nil, false
	}
	// The address is the one that we gave Twilio, whatever a proxy made of it.
	want := Signature(c.AuthToken, c.PublicURL+r.URL.RequestURI(), r.PostForm)
	if c.PublicURL == "" || subtle.ConstantTimeCompare([]byte(want), []byte(r.Header.Get("X-Twilio-Signature"))) != 1 {
		http.Error(w, "the signature is not Twilio's", http.StatusForbidden)
		return nil, false
	}
	if r.PostForm.Get("AccountSid") != c.AccountSID || r.PostForm.Get("MessageSid") == "" {
		http.Error(w, "not a message of this account", http.StatusBadRequest)
		return nil, false
	}
	return r.PostForm, true
}

// Signature is what X-Twilio-Signature holds: the HMAC-SHA1, with the account's token, of the URL followed by the
// form's names and values in order of the names.
func Signature(token, address string, form url.Values) string {
	mac := hmac.New(sha1.New, []byte(token))
	io.WriteString(mac, address)
	for _, name := range slices.Sorted(maps.Keys(form)) {
		values := slices.Clone(form[name])
		slices.Sort(values)
		for _, v := range slices.Compact(values) {
			io.WriteString(mac, name+v)
		}
	}
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
