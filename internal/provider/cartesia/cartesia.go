package cartesia

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/provider/speech"
	"parley/internal/provider/wire"
)

const (
	// DefaultBaseURL is Cartesia's own.
	DefaultBaseURL = "https://api.cartesia.ai"
	// version is the version of the API that this package uses.
	version = "2026-03-01"
)

// client talks to Cartesia with one group of settings. It is safe for concurrent use.
type client struct {
	base     string // without a slash at the end
	key      string
	tts, stt string // models
	http     *http.Client
	voice    *speech.Voice
}

// At opens a server of somebody's own that speaks this protocol.
func At(s ai.Server) (*ai.Opened, error) {
	c, err := open(&Settings{BaseURL: s.URL, APIKey: s.Key, TTSModel: s.Model})
	if err != nil {
		return nil, err
	}
	c.http.Transport = s.Transport
	return &ai.Opened{Synthesizer: func(string) (ai.Synthesizer, error) { return c.voice, nil }, Close: c.close}, nil
}

func open(s *Settings) (*client, error) {
	base := cmp.Or(s.BaseURL, DefaultBaseURL)
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("open cartesia: %q is no base URL such as %s", base, DefaultBaseURL)
	}
	c := &client{base: strings.TrimRight(base, "/"), key: s.APIKey, tts: s.TTSModel, stt: s.STTModel,
		http: &http.Client{Timeout: askTime, CheckRedirect: ai.Redirect}}
	c.voice = speech.NewVoice(tongue{c}, manners)
	return c, nil
}

func (c *client) close() {
	c.voice.Close()
	c.http.CloseIdleConnections()
}

func (c *client) header() http.Header {
	return http.Header{"X-Api-Key": {c.key}, "Cartesia-Version": {version}}
}

// pingTime is the time between two pings of a socket.
const pingTime = 15 * time.Second

// dial opens a socket.
func (c *client) dial(ctx context.Context, path string, query url.Values) (*wire.Conn, error) {
	query.Set("cartesia_version", version)
	address, err := wire.Address(c.base, path, query)
	if err != nil {
		return nil, &ai.Error{Kind: ai.Config, Err: err}
	}
	return wire.Dial(ctx, address, wire.Options{Header: c.header(), Ping: pingTime, Transport: c.http.Transport})
}

// askTime is how long a small request may take.
const askTime = 20 * time.Second

// reach requests one voice, to see whether the server responds and accepts the key.
func (c *client) reach(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/voices?limit=1", nil)
	if err != nil {
		return &ai.Error{Kind: ai.Config, Err: errors.New("PARLEY_CARTESIA_BASE_URL is not a URL")}
	}
	req.Header = c.header()
	res, err := c.http.Do(req)
	if err != nil {
		return &ai.Error{Kind: ai.Unreachable, Err: err}
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return wire.Refused(res)
	}
	return nil
}

// trouble is an error in a message from Cartesia.
type trouble struct {
	Code    string `json:"error_code"`
	Title   string `json:"title"`
	Message string `json:"message"`
	Status  int    `json:"status_code"`
	Error   string `json:"error"` // of older versions, instead of title and message
}

func (t trouble) text() string {
	return fmt.Sprintf("%s %.200s %.200s%.200s", t.Code, t.Title, t.Message, t.Error)
}

func (t trouble) kind() ai.Kind {
	if kind, ok := kinds[t.Code]; ok {
		return kind
	}
	switch {
	case t.Status == http.StatusBadRequest && strings.Contains(strings.ToLower(t.text()), "context"):
		return ai.Interrupted // one that has run out: another one is as good
	case t.Status >= 400:
		return kindOf(t.Status)
	}
	return ""
}

// kindOf returns the kind of error that a status in a message means.
func kindOf(status int) ai.Kind {
	switch {
	case status == http.StatusTooManyRequests:
		return ai.RateLimited
	case status >= 500:
		return ai.Overloaded
	}
	return ai.Config
}

// kinds maps Cartesia's error codes to our kinds, where a code says more than the status.
var kinds = map[string]ai.Kind{
	"concurrency_limited": ai.RateLimited, "quota_exceeded": ai.Config, "model_not_found": ai.Config,
	"model_sunsetted": ai.Config,
	"voice_not_found": ai.Config, "plan_upgrade_required": ai.Config,
}
