package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/web"
)

// maxLives bounds the live streams that one connection carries.
const maxLives = 60

// within marks a request that came over another one's connection.
type within struct{}

// lives is many live streams over one connection: those of all tabs of a browser, which has six connections to a
// server. Each is asked for by its address (at), and answered by its own handler, as if it had been asked for alone.
// The connection ends with the first of them that ends, and is made anew; what is refused says so and is left out, and
// what fails is asked for again.
func (c *Console) lives(r *request) (*answer, error) {
	asked := r.URL.Query()["at"]
	if len(asked) > maxLives {
		return nil, parley.Errorf(parley.Invalid, "At most %d live streams go over one connection.", maxLives)
	}
	leave, err := c.Front.Enter(c.Streams, r.Request)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), within{}, true))
	shared := &bundle{s: newStream(c, r), cancel: cancel, once: r.Header.Get("Parley-Once") != ""}
	shared.s.Comment("live")
	var wg sync.WaitGroup
	slices.Sort(asked)
	for _, at := range slices.Compact(asked) {
		to, err := url.Parse(at)
		if err != nil || to.IsAbs() || to.Host != "" || !strings.HasSuffix(to.Path, "/live") {
			shared.send(at, "refused", "{}")
			continue
		}
		sub := r.Request.Clone(ctx)
		sub.URL, sub.RequestURI, sub.Pattern = to, at, ""
		sub.Header.Del("Accept-Encoding") // why it is refused is put into an event
		crash.Go(&wg, func() { c.ride(shared, at, sub) }, crash.Log("the news of a page", "path", web.LoggedPath(sub.URL.Path)))
	}
	over := make(chan struct{})
	go func() { defer close(over); wg.Wait() }()
	defer func() { cancel(); <-over }()
	alive := time.NewTicker(signOfLife)
	defer alive.Stop()
	for {
		select {
		case <-alive.C:
			shared.live()
		case <-ctx.Done():
			return nil, nil
		case <-over:
			return nil, nil
		}
	}
}

// failedPause is how long a stream that failed waits before it is asked for again, the first time.
const failedPause = time.Second

// ride answers one of them. One that fails, or that comes when there are too many, is asked for again, after a pause: what goes
// wrong with one page's does not end those of the others.
func (c *Console) ride(shared *bundle, at string, r *http.Request) {
	for pause := failedPause; ; pause = min(2*pause, time.Minute) {
		w := &passenger{shared: shared, at: at, header: http.Header{}}
		c.carry(w, r.Clone(r.Context()))
		if w.status < http.StatusInternalServerError && w.status != http.StatusTooManyRequests || shared.once {
			w.end()
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(pause):
		}
	}
}

func (c *Console) carry(w *passenger, r *http.Request) {
	defer web.Survive(func(err error) {
		plain(r, err) // logged
		w.status = http.StatusInternalServerError
	})
	c.mux.ServeHTTP(w, r)
}

// bundle is the connection that they share.
type bundle struct {
	mu     sync.Mutex
	s      *stream
	cancel func()
	once   bool // how things stand is asked for, and no more
}

// send sends an event of one of them, whose data is JSON.
func (b *bundle) send(at, name, data string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.s.send("at", map[string]string{"at": at, "event": name, "data": data})
	if b.s.Flush() != nil {
		b.cancel()
	}
}

func (b *bundle) live() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.s.Comment("")
	if b.s.Flush() != nil {
		b.cancel()
	}
}

// passenger is the answer to one of them. Streams write whole events.
type passenger struct {
	shared *bundle
	at     string
	header http.Header
	status int
	page   strings.Builder // of one that is refused
}

func (p *passenger) Header() http.Header { return p.header }

func (p *passenger) WriteHeader(status int) {
	if p.status == 0 {
		p.status = status
	}
}

func (p *passenger) Flush() {}

func (p *passenger) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	text := string(b)
	switch {
	case p.status != http.StatusOK || p.header.Get("Content-Type") != web.EventStream:
		p.page.WriteString(text)
	case strings.HasPrefix(text, "event: "):
		name, data, _ := strings.Cut(strings.TrimPrefix(text, "event: "), "\ndata: ")
		p.shared.send(p.at, name, strings.TrimSpace(data))
	}
	return len(b), nil
}

// end says how it ended: refused by its handler, or as everything ends.
func (p *passenger) end() {
	if p.status >= 400 && p.status < 500 && p.status != http.StatusTooManyRequests {
		page, _ := json.Marshal(map[string]string{"html": p.page.String()})
		p.shared.send(p.at, "refused", string(page))
	} else if !p.shared.once {
		p.shared.cancel()
	}
}
