package live

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/provider/wire"
)

// pipes is a network without sockets, so that its time can be a test's.
type pipes struct {
	conns chan net.Conn
	over  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.over); return nil }
func (p *pipes) Addr() net.Addr { return &net.IPAddr{} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	p.conns <- far
	return near, nil
}

// google is a vendor whose connections last for ten minutes. It says a minute before that one ends, where it is polite.
type google struct {
	*Asked
	dial    func(context.Context) (*wire.Conn, error)
	polite  bool
	strange bool // it sends what we have a bug with
	full    bool // it takes no second connection
	mu      sync.Mutex
	opened  []string // the handles with which connections were opened

	handlers sync.WaitGroup
}

const (
	lasts  = 10 * time.Minute
	notice = time.Minute
)

func (g *google) serve(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	g.handlers.Go(func() {
		defer cancel()
		for err := error(nil); err == nil; {
			_, _, err = ws.Read(ctx)
		}
	})
	send := func(kind string) { _ = ws.Write(ctx, websocket.MessageText, []byte(`{"kind":"`+kind+`"}`)) }
	send("handle")
	if g.strange {
		send("bug")
	}
	for _, o := range []struct {
		after time.Duration
		what  string
	}{{lasts - notice, "leaving"}, {notice, "end"}} {
		select {
		case <-time.After(o.after):
		case <-ctx.Done():
			return
		}
		if o.what == "end" {
			_ = ws.Close(websocket.StatusInternalError, "Deadline expired before operation could complete.")
		} else if g.polite {
			send(o.what)
		}
	}
}

func (g *google) Take(raw []byte) error {
	var m struct{ Kind string }
	switch err := json.Unmarshal(raw, &m); m.Kind {
	case "handle":
		g.Resumes("the conversation")
	case "bug":
		panic("a bug of ours")
	case "leaving":
		g.Ends(time.Now().Add(notice), 20*time.Second)
	default:
		return err
	}
	return nil
}

func (g *google) Open(ctx context.Context, handle string) (*wire.Conn, error) {
	g.mu.Lock()
	g.opened = append(g.opened, handle)
	g.mu.Unlock()
	if g.full && handle != "" {
		return nil, errors.New("no more connections")
	}
	return g.dial(ctx)
}
func (g *google) Speech(bool) any           { return struct{}{} }
func (g *google) Texts([]*Text, bool) any   { return struct{}{} }
func (g *google) Results(list []Result) any { return list }

// calling opens a session with the vendor, in a test's own time.
func calling(t *testing.T, g *google, call func(g *google)) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{conns: make(chan net.Conn), over: make(chan struct{})}
		server := &http.Server{Handler: http.HandlerFunc(g.serve)}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := server.Serve(p); !errors.Is(err, http.ErrServerClosed) {
				t.Error(err)
			}
		})
		g.dial = func(ctx context.Context) (*wire.Conn, error) {
			return wire.Dial(ctx, "http://vendor/", wire.Options{Transport: &http.Transport{DialContext: p.dial}})
		}
		var err error
		if g.Asked, err = NewAsked(t.Context(), g, ai.RealtimeSetup{Rate: audio.Narrow}, 24000); err != nil {
			t.Fatal(err)
		}
		conn, err := g.Open(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		g.Serve(t.Context(), conn)
		call(g)
		g.Close()
		_ = server.Close()
		wg.Wait()
		g.handlers.Wait()
	})
}

// within collects what a session tells for so long.
func (g *google) within(d time.Duration) (told []ai.RealtimeEvent) {
	for end := time.After(d); ; {
		select {
		case e, ok := <-g.Events():
			if !ok {
				return told
			}
			told = append(told, e)
		case <-end:
			return told
		}
	}
}

// A call of an hour outlives six connections, each of which the vendor ends by 1011 at its limit: the session has moved to the next one
// before, in a pause, and its user is told nothing.
func TestOutlivesConnections(t *testing.T) {
	calling(t, &google{polite: true}, func(g *google) {
		if told := g.within(58 * time.Minute); len(told) > 0 {
			t.Errorf("%+v", told)
		}
		want := append([]string{""}, slices.Repeat([]string{"the conversation"}, 6)...)
		if !slices.Equal(g.opened, want) {
			t.Errorf("it opened connections with %q", g.opened)
		}
	})
}

// Where the session can't move, the user is told so at once, and once, however often the vendor says that the connection ends.
func TestMoveFails(t *testing.T) {
	calling(t, &google{polite: true, full: true}, func(g *google) {
		told := g.within(lasts - notice + time.Second)
		if len(told) != 1 || told[0].Kind != ai.RealtimeExpiring || told[0].Remaining < notice-time.Second {
			t.Errorf("%+v", told)
		}
		g.Lock()
		g.Ends(time.Now().Add(notice/2), 20*time.Second)
		g.Unlock()
		if told = g.within(time.Hour); len(told) != 1 || told[0].Kind != ai.RealtimeLost {
			t.Errorf("%+v", told)
		}
		if len(g.opened) != 2 {
			t.Errorf("it opened connections with %q", g.opened)
		}
	})
}

// Where there is no pause until the limit, the user is told some time before, and once; with the connection's end by 1011 the session ends.
func TestExpiresInSpeech(t *testing.T) {
	calling(t, &google{polite: true}, func(g *google) {
		began := time.Now()
		g.Write(make([]int16, 160)) // an utterance that doesn't end
		if told := g.within(lasts - 21*time.Second); len(told) > 0 {
			t.Errorf("%+v", told)
		}
		told := g.within(2 * time.Second)
		if len(told) != 1 || told[0].Kind != ai.RealtimeExpiring || told[0].Remaining != 20*time.Second {
			t.Errorf("%+v", told)
		}
		told = g.within(time.Hour)
		if len(told) != 1 || told[0].Kind != ai.RealtimeLost || ai.KindOf(told[0].Err) != ai.Interrupted ||
			time.Since(began) > lasts+time.Second {
			t.Errorf("after %v: %+v", time.Since(began), told)
		}
		if len(g.opened) != 1 {
			t.Errorf("it opened connections with %q", g.opened)
		}
	})
}

// A vendor that ends a connection by 1011 without having said so ends the session.
func TestEndedUnannounced(t *testing.T) {
	calling(t, &google{}, func(g *google) {
		told := g.within(time.Hour)
		if len(told) != 1 || told[0].Kind != ai.RealtimeLost || ai.KindOf(told[0].Err) != ai.Interrupted || len(g.opened) != 1 {
			t.Errorf("%+v, connections with %q", told, g.opened)
		}
	})
}

// What is left to be told at a session's end stays as it is, whoever still uses the session.
func TestLeft(t *testing.T) {
	l := Link{bell: make(chan struct{}, 1)}
	for n := range 3 {
		l.Tell(ai.RealtimeEvent{Kind: ai.RealtimeBegan, N: n})
	}
	first := l.events[0]
	left := l.left()
	l.untell(first)
	if len(left) != 3 || slices.Contains(left, nil) || left[0] != first {
		t.Errorf("%v", left)
	}
}

// A panic ends its session as if the vendor had, whether a message, the time or the session's end brought it about.
func TestPanics(t *testing.T) {
	for name, o := range map[string]struct {
		strange bool
		passes  func(time.Time)
		last    func()
	}{"a message": {strange: true}, "the time": {passes: func(time.Time) { panic("a bug of ours") }},
		"the end": {last: func() { panic("a bug of ours") }}} {
		t.Run(name, func(t *testing.T) {
			calling(t, &google{strange: o.strange}, func(g *google) {
				g.Lock()
				if o.passes != nil {
					g.Passes = o.passes
				}
				g.Last = o.last
				g.Unlock()
				if told := g.within(time.Hour); len(told) != 1 || told[0].Kind != ai.RealtimeLost || told[0].Err == nil {
					t.Errorf("%+v", told)
				}
			})
		})
	}
}

// A response that is cut before it was asked for, as the connection moves, holds the next one back no longer than that takes.
func TestCutBeforeAsked(t *testing.T) {
	calling(t, &google{}, func(g *google) {
		g.Box.Hold()
		g.Respond(1, "", false)
		g.Cut(1, 0, "")
		g.Respond(2, "", false)
		g.Box.Resume(g.conn)
		synctest.Wait()
		if g.Box.Unsent() {
			t.Error("the second response was not asked for")
		}
	})
}
