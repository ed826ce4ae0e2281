package elevenlabs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/provider/speech"
	"parley/internal/provider/wire"
)

// DefaultBaseURL is ElevenLabs' own.
const DefaultBaseURL = "https://api.elevenlabs.io"

// client talks to ElevenLabs with one group of settings. It is safe for concurrent use.
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
		return nil, fmt.Errorf("open elevenlabs: %q is no base URL such as %s", base, DefaultBaseURL)
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

// pingTime is the time between two pings of a socket.
const pingTime = 15 * time.Second

// dial opens a socket.
func (c *client) dial(ctx context.Context, path string, query url.Values) (*wire.Conn, error) {
	address, err := wire.Address(c.base, path, query)
	if err != nil {
		return nil, &ai.Error{Kind: ai.Config, Err: err}
	}
	return wire.Dial(ctx, address, wire.Options{Header: http.Header{"Xi-Api-Key": {c.key}}, Ping: pingTime, Transport: c.http.Transport})
}

// The longest time and the largest response of a small request.
const (
	askTime   = 20 * time.Second
	maxAnswer = 8 << 20
)

// ask makes a GET request with a key and reads the answer. Its errors are *ai.Error, unless ctx has ended.
func (c *client) ask(ctx context.Context, path, key string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return &ai.Error{Kind: ai.Config, Err: errors.New("PARLEY_ELEVENLABS_BASE_URL is not a URL")}
	}
	req.Header.Set("Xi-Api-Key", key)
	res, err := c.http.Do(req)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return &ai.Error{Kind: ai.Unreachable, Err: err}
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return wire.Refused(res)
	}
	err = json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(into)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return &ai.Error{Kind: ai.Malformed, Err: err}
	}
	return nil
}

// kinds maps the error codes of messages to our kinds of errors.
var kinds = map[string]ai.Kind{
	"quota_exceeded": ai.Config, "invalid_api_key": ai.Config, "auth_error": ai.Config,
	"missing_permissions": ai.Config, "needs_authorization": ai.Config, "unaccepted_terms": ai.Config,
	"unaccepted_terms_error": ai.Config, "voice_not_found": ai.Config, "voice_id_does_not_exist": ai.Config,
	"model_not_found": ai.Config, "only_for_creator+": ai.Config, "unsupported_language": ai.Config,
	"too_many_concurrent_requests": ai.RateLimited, "rate_limited": ai.RateLimited,
	"rate_limit_exceeded": ai.RateLimited, "concurrent_limit_exceeded": ai.RateLimited,
	"system_busy": ai.Overloaded, "resource_exhausted": ai.Overloaded, "queue_overflow": ai.Overloaded,
	"transcriber_error": ai.Overloaded, "internal_error": ai.Overloaded,
	// A new socket has room again.
	"max_active_conversations":     ai.Overloaded,
	"max_character_limit_exceeded": ai.TooLong, "content_policy_violation": ai.Refused,
	"input_error": ai.Malformed, "chunk_size_exceeded": ai.Malformed,
	// The session ended because it was idle or reached its maximum length. A new one works.
	"input_timeout_exceeded": ai.Interrupted, "session_time_limit_exceeded": ai.Interrupted,
	"insufficient_audio_activity": ai.Interrupted,
}

// closed maps the reasons of closed sockets, which are ElevenLabs' own words, to our kinds of errors.
func closed(reason string) ai.Kind {
	reason = strings.ToLower(reason)
	for code, kind := range kinds {
		if strings.Contains(reason, code) {
			return kind
		}
	}
	switch {
	case strings.Contains(reason, "within the timeout"), strings.Contains(reason, "inactiv"):
		return ai.Interrupted
	case strings.Contains(reason, "simultaneous contexts"):
		return ai.Overloaded
	}
	return ""
}
