// Package detector asks an external detector of the end of a turn how likely it is that a customer has finished. The
// protocol is ours, and small; docs/reference/turn-detector.md has it:
//
//	POST URL                {"language": "en", "text": "a table", "question": "What would you like to book?"}
//	200                     {"over": 0.87}
//
// A detector that fails or is late has no say: the program's own model (lang.Over) has judged the text already.
package detector

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"parley/internal/egress"
	"parley/internal/parley"
)

// Detector is an external detector. Its methods may be called from any goroutine.
type Detector struct {
	url, key string
	http     *http.Client
	within   time.Duration // so long may an answer take

	mu            sync.Mutex
	all, bad      int64     // questions so far, and those without an answer
	asked, failed int       // since the log was told
	told          time.Time // when it was
}

const (
	// What comes later hardly moves the end of a turn, which is judged 200 ms after the last word at the earliest.
	within    = 150 * time.Millisecond
	checkTime = 5 * time.Second // so long may a check take, to tell one that is late from one that doesn't answer
	quietTime = time.Minute     // after the log was told of failures
	maxAnswer = 64 << 10
	maxConns  = 256 // of calls at once; the others judge by themselves
)

// Open makes a detector of the settings, nil where there is none.
func Open(address, key string) (*Detector, error) {
	if address == "" {
		return nil, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("PARLEY_TURN_DETECTOR_URL is not a URL such as http://127.0.0.1:9000/turn")
	}
	return &Detector{url: address, key: key, within: within, http: &http.Client{
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout: time.Second,
			MaxConnsPerHost:     maxConns,
			MaxIdleConnsPerHost: maxConns,
			IdleConnTimeout:     90 * time.Second,
		},
		// What customers say, and the key, go where the operator has said and nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close lets its connections go.
func (d *Detector) Close() { d.http.CloseIdleConnections() }

// question is what a detector is asked.
type question struct {
	Language string `json:"language"`
	Text     string `json:"text"`
	Question string `json:"question"`
}

// Over asks how likely it is that a customer has finished who has said this, in this language (ISO 639-1), after the
// assistant said asked. It takes 150 ms at most. ok is false if there is no answer; the log is told of that, once a
// minute at most.
func (d *Detector) Over(ctx context.Context, language, text, asked string) (over float64, ok bool) {
	limited, cancel := context.WithTimeout(ctx, d.within)
	defer cancel()
	over, err := d.ask(limited, question{language, text, asked})
	if ctx.Err() != nil {
		return 0, false // nobody wants to know any more
	}
	d.count(err)
	return over, err == nil
}

// ask makes one request.
func (d *Detector) ask(ctx context.Context, q question) (float64, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if d.key != "" {
		req.Header.Set("Authorization", "Bearer "+d.key)
	}
	res, err := d.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	raw, cut, err := egress.Read(res.Body, maxAnswer)
	var answer struct {
		Over *float64 `json:"over"`
	}
	switch {
	case err != nil:
		return 0, err
	case res.StatusCode != http.StatusOK:
		return 0, fmt.Errorf("it answers with status %d", res.StatusCode)
	case cut || json.Unmarshal(raw, &answer) != nil || answer.Over == nil:
		return 0, errors.New(`it does not answer with {"over": P}`)
	case *answer.Over < 0 || *answer.Over > 1:
		return 0, fmt.Errorf("it answers %v, which is no probability", *answer.Over)
	}
	return *answer.Over, nil
}

// count tells the log about failures: at once about the first one, and then once a minute about all of them.
func (d *Detector) count(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all++
	d.asked++
	if err == nil {
		return
	}
	d.bad++
	d.failed++
	if now := time.Now(); now.Sub(d.told) >= quietTime {
		slog.Warn("the turn detector failed: assistants judge by themselves meanwhile", "error", reason(err), "failed", d.failed,
			"asked", d.asked)
		d.asked, d.failed, d.told = 0, 0, now
	}
}

// Counts is how many questions it has answered, and how many not, or too late.
func (d *Detector) Counts() (answered, failed int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all - d.bad, d.bad
}

// reason is an error without the URL, which the operator knows.
func reason(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// Check says whether the detector answers, and fast enough.
func (d *Detector) Check(ctx context.Context) parley.Finding {
	found := func(state, format string, args ...any) parley.Finding {
		return parley.Finding{State: state, What: "turn detector", Text: fmt.Sprintf(format, args...)}
	}
	if d == nil {
		return found(parley.DoctorOK, "none: assistants judge by themselves when a customer has finished")
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	q := question{"en", "I would like a table for", "How can I help you?"}
	if _, err := d.ask(ctx, q); err != nil {
		return found(parley.DoctorFail, "%v. Check PARLEY_TURN_DETECTOR_URL and PARLEY_TURN_DETECTOR_KEY", reason(err))
	}
	began := time.Now() // the connection is there now, as in calls
	over, err := d.ask(ctx, q)
	took := time.Since(began)
	switch {
	case err != nil:
		return found(parley.DoctorFail, "it answered once, and then: %v", reason(err))
	case took > d.within:
		return found(parley.DoctorFail, "it takes %v to answer: calls wait for %v, and then judge by themselves",
			took.Round(time.Millisecond), d.within)
	}
	return found(parley.DoctorOK, "it answers in %v (%q is over with %.2f)", took.Round(time.Millisecond), q.Text, over)
}
