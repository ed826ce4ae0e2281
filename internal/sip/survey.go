package sip

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	sipgo "github.com/emiago/sipgo/sip"

	"parley/internal/crash"
)

// A trunk's domain may lead to several places. Those of trunks in use are asked now and then whether they are there
// (OPTIONS), so that calls don't have to find out: who doesn't answer is tried last.

const (
	surveyEvery  = 40 * time.Second // less than a place is shunned for
	surveyKept   = time.Hour        // after its last use a trunk is of no interest
	surveyAtOnce = 8
	maxSurveyed  = 1000
)

// inUse is a trunk with several places, and when it was used last.
type inUse struct {
	trunk Trunk
	at    time.Time
}

// uses notes that a trunk with several places is used.
func (s *Server) uses(t *Trunk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.several[t.ID]; known || len(s.several) < maxSurveyed {
		s.several[t.ID] = inUse{*t, time.Now()}
	}
}

// survey asks all places of the trunks in use.
func (s *Server) survey(ctx context.Context) {
	places := make(chan struct{}, surveyAtOnce)
	var asked sync.WaitGroup
	defer asked.Wait()
	for _, t := range s.inUse() {
		hops, err := s.hops(ctx, &t)
		if err != nil {
			continue
		}
		for _, h := range hops {
			select {
			case places <- struct{}{}:
			case <-ctx.Done():
				return
			}
			crash.Go(&asked, func() {
				defer func() { <-places }()
				s.look(ctx, &t, h)
			}, crash.Log("the look at a place of a trunk", "trunk", t.ID))
		}
	}
}

func (s *Server) inUse() (list []Trunk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, u := range s.several {
		if time.Since(u.at) > surveyKept {
			delete(s.several, id)
			continue
		}
		list = append(list, u.trunk)
	}
	return list
}

// look asks one place, and notes whether it is there.
func (s *Server) look(ctx context.Context, t *Trunk, h hop) {
	asking, cancel := context.WithTimeoutCause(ctx, s.passing, silence(h))
	defer cancel()
	res, err := s.ask(asking, s.options(t, h), h, t.asked())
	if err == nil && res.StatusCode == 503 {
		err = refusedBy(res)
	}
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	_, was := s.shunned[h.addr]
	if err == nil {
		delete(s.shunned, h.addr)
	}
	s.mu.Unlock()
	if err != nil {
		s.shun(h.addr)
	}
	if was == (err == nil) {
		slog.Info("a place of a SIP trunk has come or gone", "trunk", t.ID, "place", h.addr, "there", err == nil)
	}
}

// options asks a trunk whether it is there.
func (s *Server) options(t *Trunk, h hop) *sipgo.Request {
	user := t.Username
	if user == "" {
		user = strings.TrimPrefix(t.Number, "+")
	}
	req := s.plain(sipgo.OPTIONS, t, user, token(26), 1)
	req.AppendHeader(&sipgo.ContactHeader{Address: s.contactOf(t, "parley", h)})
	req.AppendHeader(sipgo.NewHeader("Accept", "application/sdp"))
	return req
}

// A registration lasts as long as the registrar reaches us where it saw us last. Our own address may change (another
// network), or that of the NAT before us, and a registrar may vanish.

const (
	probeEvery = 3 // keep-alives for each question whether the registrar is there
	maxSilent  = 2 // such questions without an answer, from one that has answered before
)

// moved reports whether our own address towards the registrar is another one than it was told.
func (r *registration) moved() bool {
	r.mu.Lock()
	told, home := r.told, r.home
	r.mu.Unlock()
	return told.IsValid() && home.IsValid() && r.server.shown(home.Addr()) != told
}

// lost asks the registrar whether it is there, and reports whether it has to be registered with again: since it sees us
// elsewhere than it did, or has answered such questions before and does not any more.
func (r *registration) lost(ctx context.Context) bool {
	if r.probe == nil {
		return false
	}
	seen, err := r.probe(ctx)
	gone, elsewhere, h := r.probed(seen, err)
	if gone {
		r.server.drop(h)
	}
	return ctx.Err() == nil && (gone || elsewhere)
}

// probed notes what came of a probe.
func (r *registration) probed(seen string, err error) (gone, elsewhere bool, h hop) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.answers, r.silent = true, 0
		return false, r.seen != "" && seen != "" && seen != r.seen, r.hop
	}
	if r.silent++; !r.answers || r.silent < maxSilent {
		return false, false, r.hop
	}
	r.silent = 0
	return true, false, r.hop
}

// options asks the registrar whether it is there, and returns the address at which it sees us.
func (r *registration) options(ctx context.Context) (seen string, err error) {
	r.mu.Lock()
	h := r.hop
	r.mu.Unlock()
	s, t := r.server, &r.trunk
	if !h.addr.IsValid() {
		return "", errSilence
	}
	asking, cancel := context.WithTimeoutCause(ctx, s.asking, silence(h))
	defer cancel()
	res, err := s.ask(asking, s.options(t, h), h, t.asked())
	if err != nil {
		return "", err
	}
	return seenAt(res), nil
}

// seenAt is the address at which the far end sees us, by its answer (RFC 3581); "" if it doesn't say.
func seenAt(res *sipgo.Response) string {
	via := res.Via()
	if via == nil {
		return ""
	}
	port, _ := via.Params.Get("rport")
	if port == "" {
		return ""
	}
	host := via.Host
	if text, ok := via.Params.Get("received"); ok {
		host = text
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}

// drop closes the connection that we opened for a hop, if there is one: it leads nowhere any more.
func (s *Server) drop(h hop) {
	s.mu.Lock()
	c := s.opened[h.addr]
	s.mu.Unlock()
	if c != nil && h.way.stream() {
		c.Conn.Close()
	}
}
