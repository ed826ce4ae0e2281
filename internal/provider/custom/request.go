package custom

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/provider/rest"
	"parley/internal/provider/wire"
)

// byeTime is how long a program may take to hear that a conversation is over.
const byeTime = 2 * time.Second

// requests asks a program by a POST for each reply. It answers with a stream of events, each with a message.
func requests(s ai.Server) *rest.Client {
	return &rest.Client{
		Base: s.URL, Stall: stall, HTTP: &http.Client{Transport: s.Transport, CheckRedirect: ai.Redirect},
		Refused: func(status int, h http.Header, body []byte) error {
			return wire.Refused(&http.Response{StatusCode: status, Header: h, Body: io.NopCloser(bytes.NewReader(body))})
		},
		Sign: func(h http.Header) {
			h.Set("Accept", "text/event-stream")
			h.Set("Accept-Encoding", "identity") // a compressed stream would be held back until a block is full
			if s.Key != "" {
				h.Set("Authorization", "Bearer "+s.Key)
			}
		}}
}

// request is one reply that a program gives to a request.
func (s *session) request(ctx context.Context, c *rest.Client, req ai.Request, yield func(ai.Delta) error) (reply ai.Reply, err error) {
	t, out, err := s.next(req, true)
	if err != nil {
		return reply, err
	}
	out.Session = s.introduce(s.party)
	var text strings.Builder
	over := false
	err = c.Post(ctx, "", out, func(_ string, data []byte) error {
		var h heard
		if len(data) > maxMessage || json.Unmarshal(data, &h) != nil {
			return wrong("it sent what is no message: %.200q", data)
		}
		var err error
		over, err = s.heed(t, h, req, &reply, &text, func(d ai.Delta) error { return rest.Refuse(yield(d)) })
		if err == nil && over {
			return rest.ErrEnough
		}
		return err
	}, func() bool { return text.Len() > 0 || len(reply.Calls) > 0 })
	reply.Text = text.String()
	if err == nil && !over {
		err = &ai.Error{Kind: ai.Interrupted, Err: errors.New("the endpoint's answer ended before the reply was done")}
	}
	if err != nil || reply.Finish == ai.Stop {
		s.stop(t)
	}
	return reply, err
}

// sayEnd tells a program that a conversation is over in which it was asked something.
func (s *session) sayEnd(c *rest.Client, why string) {
	s.ready <- struct{}{}
	defer func() { <-s.ready }()
	if !s.begun || s.party.Of == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ai.ForParty(context.Background(), s.party), byeTime)
	defer cancel()
	_ = c.Post(ctx, "", told{Session: s.introduce(s.party), End: farewell(why)},
		func(string, []byte) error { return rest.ErrEnough }, func() bool { return false }) // whatever it answers
}
