package sip

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	sipgo "github.com/emiago/sipgo/sip"

	"parley"
)

var errSlow = errors.New("no answer in time")

// Check tests whether a trunk can be reached, and whether we are registered with it. The error tells its owner what is
// wrong and how to fix it. The address may be anybody's, so if no SIP answer comes, the error does not say what is
// there instead, and always takes the same time.
func (s *Server) Check(ctx context.Context, t Trunk) (Health, error) {
	health := Health{Registered: s.Registered(t.ID)}
	if s.off() {
		return health, errors.New("the telephone is off: set PARLEY_SIP_LISTEN to an address such as 0.0.0.0:5060")
	}
	if !s.enter() {
		return health, parley.Shutdown
	}
	defer s.leave()
	ctx, cancel := context.WithTimeoutCause(ctx, s.asking, errSlow)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	began := time.Now()
	res, err := s.options(ctx, &t)
	var told *why
	switch {
	case errors.Is(err, errPassword):
		return health, fmt.Errorf("%s is there, but the password was refused: check the user name and password",
			t.place())
	case errors.As(err, &told):
		return health, errors.New(told.text)
	case err != nil && res == nil:
		<-ctx.Done()
		return health, fmt.Errorf("no answer from %s within %s: check the address and the transport (%s), and that it lets this server in", t.place(), s.asking, t.way())
	}
	health.OptionsMS = max(time.Since(began).Milliseconds(), 1)
	if res.StatusCode == 503 {
		return health, fmt.Errorf("%s is there, but takes no calls now (503 %s)", t.place(), res.Reason)
	}
	if t.Register && !health.Registered {
		return health, s.unregistered(t.ID)
	}
	return health, nil
}

// options sends a trunk OPTIONS.
func (s *Server) options(ctx context.Context, t *Trunk) (*sipgo.Response, error) {
	hops, err := s.hops(ctx, t)
	if err != nil {
		return nil, err
	}
	user := t.Username
	if user == "" {
		user = strings.TrimPrefix(t.Number, "+")
	}
	req := s.plain(sipgo.OPTIONS, t, user, token(26), 1)
	req.AppendHeader(&sipgo.ContactHeader{Address: s.contact("parley", hops[0])})
	req.AppendHeader(sipgo.NewHeader("Accept", "application/sdp"))
	return s.ask(ctx, req, hops[0], &login{username: t.Username, password: t.Password})
}

// unregistered says why we are not registered with a trunk.
func (s *Server) unregistered(id int64) error {
	s.mu.Lock()
	r := s.regs[id]
	s.mu.Unlock()
	if r == nil {
		return errors.New("it answers; the registration has not begun yet")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	refused, isRefused := errors.AsType[*Refused](r.err)
	switch {
	case errors.Is(r.err, errPassword):
		return errors.New("it answers, but the registration fails: the password was refused; check the user name and password")
	case errors.Is(r.err, errNoLogin):
		return errors.New("it answers, but the registration fails: a password is asked for, and the trunk has none")
	case isRefused:
		return fmt.Errorf("it answers, but refuses the registration: %d %s", refused.Code, refused.Reason)
	}
	return errors.New("it answers; the registration is under way")
}
