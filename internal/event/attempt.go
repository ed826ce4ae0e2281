package event

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"parley/internal/egress"
	"parley/internal/parley"
	"parley/internal/telemetry"
)

const (
	attemptTime = 10 * time.Second
	inboundTime = 2 * time.Second // for call.inbound: the caller hears nothing yet
	maxKept     = 4 << 10         // of an answer, for webhook_response
	maxInbound  = 64 << 10        // of an answer with variables
	userAgent   = "Parley/1"
)

// post makes one attempt at a delivery within a time, and gives what was read of the answer, at most max bytes.
func (s *Sender) post(ctx context.Context, d *parley.Delivery, keys [][]byte, within time.Duration,
	max int64) (*parley.DeliveryAttempt, []byte) {
	began := s.now()
	start := time.Now()
	a := &parley.DeliveryAttempt{At: parley.At(began)}
	if d.Trace != "" {
		ctx = telemetry.Continue(ctx, string(d.Trace))
	}
	ctx, span := telemetry.Start(ctx, "webhook "+string(d.Event), trace.SpanKindClient,
		attribute.String("parley.webhook.event", string(d.Event)),
		attribute.String("http.request.method", http.MethodPost), attribute.Int("http.request.resend_count", d.Attempts))
	defer func() {
		if a.Status != nil {
			span.SetAttributes(attribute.Int("http.response.status_code", *a.Status))
		}
		failure := ""
		if !a.Delivered() {
			failure = "not delivered"
		}
		telemetry.End(span, failure)
	}()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	status, answer, err := s.exchange(ctx, d, keys, began, max)
	a.DurationMS = time.Since(start).Milliseconds()
	if status != 0 { // the status alone decides: an answer that breaks off, or never ends, is an answer
		a.Status, a.Answer = &status, plainText(answer[:min(len(answer), maxKept)])
	}
	switch {
	case status == 0 && errors.Is(ctx.Err(), context.DeadlineExceeded):
		a.Error = text(fmt.Sprintf("No answer came within %s.", within))
	case status == 0:
		a.Error = text("No answer came: " + egress.Explain(err) + ".")
	case a.Gone():
		a.Error = text("The endpoint answered 410 Gone, so that it was disabled.")
	case status >= 300 && status <= 399:
		a.Error = text(fmt.Sprintf("The endpoint answered %s. Redirects are not followed: use the final URL.",
			statusText(status)))
	case !a.Delivered():
		a.Error = text(fmt.Sprintf("The endpoint answered %s.", statusText(status)))
	}
	return a, answer
}

func (s *Sender) exchange(ctx context.Context, d *parley.Delivery, keys [][]byte, at time.Time,
	max int64) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, strings.NewReader(d.Payload))
	if err != nil {
		return 0, nil, &egress.Refused{Reason: "the URL is not valid"}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", userAgent)
	telemetry.Inject(ctx, req.Header)
	sign(req.Header, keys, d.WebhookID, at, d.Payload)
	res, err := s.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, _, err = egress.Read(res.Body, max)
	return res.StatusCode, answer, err
}

func statusText(code int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
}

func text(s string) *string { return &s }

// plainText is what both databases keep as text.
func plainText(b []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00", "\uFFFD")
}
