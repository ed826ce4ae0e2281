package console

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/a-h/templ"

	"parley/internal/chat"
	"parley/internal/crash"
	"parley/internal/event"
	"parley/internal/store"
	"parley/internal/web"
)

type component = templ.Component

// stream sends events to the console's script, which reads them by fetch. Pieces of pages are sent as the same HTML
// that the pages are made of.
type stream struct {
	*web.Stream
	c    *Console
	r    *request
	soon bool // something is under way that is worth looking at again soon
	news bool // the hub reported something since the last look
}

func newStream(c *Console, r *request) *stream {
	return &stream{Stream: web.NewStream(r.w), c: c, r: r}
}

func (s *stream) send(name string, data any) { s.Send(name, "", data) }

// html sends a piece of a page.
func (s *stream) html(name string, body component) {
	var b bytes.Buffer
	if err := body.Render(context.WithoutCancel(s.r.Context()), &b); err != nil {
		slog.ErrorContext(s.r.Context(), "render a piece of a page", "path", web.LoggedPath(s.r.URL.Path), "error", err)
		return
	}
	s.send(name, map[string]string{"html": string(s.c.within(s.r, b.Bytes()))})
}

// put sends a piece that goes where its id says.
func (s *stream) put(body component) { s.html("put", body) }

// listeners wake somebody when something happens to any of the topics that they listen to, and say what, where somebody
// wants to know.
type listeners struct {
	hub   *event.Hub
	wake  chan struct{}
	heard chan event.Event // nil: waking is enough
	stops map[string]func()
	wg    sync.WaitGroup
}

// maxListeners is how many may listen to one topic. Those beyond learn of it a little later, by looking.
const maxListeners = 50

// listen listens to these topics and no others.
func (e *listeners) listen(topics []string) {
	wanted := map[string]bool{}
	for _, topic := range topics {
		wanted[topic] = true
		if e.stops[topic] != nil {
			continue
		}
		events, stop, ok := e.hub.Listen(topic, maxListeners)
		if !ok {
			continue
		}
		quit := make(chan struct{})
		crash.Go(&e.wg, func() {
			for {
				var one event.Event
				select {
				case one = <-events:
				case <-quit:
					return
				}
				select {
				case e.heard <- one:
				default: // nobody wants to know, or what comes next makes up for it
				}
				select {
				case e.wake <- struct{}{}:
				default: // awake already
				}
			}
		}, crash.Log("the news of a page"))
		e.stops[topic] = func() { stop(); close(quit) }
	}
	for topic, stop := range e.stops {
		if !wanted[topic] {
			stop()
			delete(e.stops, topic)
		}
	}
}

func (e *listeners) close() {
	e.listen(nil)
	e.wg.Wait()
}

const (
	lookAgain  = 2 * time.Second // how often a listener looks for what the hub of this process does not know
	lookSoon   = 400 * time.Millisecond
	signOfLife = 15 * time.Second // how often something is sent, whatever happens
)

// live calls look until it fails or the reader leaves: at once, whenever something happens to the topics that it
// names, and now and then. For a reader that asks how things stand, as a hidden tab does, it calls it once.
func (c *Console) live(r *request, look func(s *stream) (topics []string, err error)) (*answer, error) {
	return c.follow(r, look, nil)
}

// follow is live for callers that want the events themselves: hear gets each, and says whether to look.
func (c *Console) follow(r *request, look func(s *stream) (topics []string, err error),
	hear func(s *stream, e event.Event) bool) (*answer, error) {
	if r.Context().Value(within{}) == nil { // else the connection is counted
		leave, err := c.Front.Enter(c.Streams, r.Request)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	s := newStream(c, r)
	life := time.Now().Add(web.StreamLife)
	e := &listeners{hub: c.Hub, wake: make(chan struct{}, 1), stops: map[string]func(){}}
	if hear != nil {
		e.wake, e.heard = nil, make(chan event.Event, maxListeners)
	}
	defer e.close()
	asked, spoke := time.Now(), time.Now()
	s.Comment("live")
	for {
		topics, err := look(s)
		if err != nil {
			return nil, nil // the script comes back, and is told in words
		}
		if r.Header.Get("Parley-Once") != "" {
			s.Flush()
			return nil, nil
		}
		e.listen(topics)
		if time.Since(spoke) > signOfLife {
			spoke = time.Now()
			s.Comment("")
		}
		if s.Flush() != nil || time.Now().After(life) || !c.wait(s, e, hear) {
			return nil, nil
		}
		if time.Since(asked) >= c.askWho {
			asked = time.Now()
			was := r.who.Role()
			if r.who = nil; c.identify(r) != nil || r.who == nil || !r.who.Role().Covers(was) {
				return nil, nil // who has a lesser role now comes back, and is judged by that
			}
		}
	}
}

// wait waits until it is time to look; false says that the reader or the server is going.
func (c *Console) wait(s *stream, e *listeners, hear func(s *stream, e event.Event) bool) bool {
	pause := lookAgain
	if s.soon {
		pause = lookSoon
	}
	tick := time.NewTimer(pause)
	defer tick.Stop()
	s.news = false
	for {
		select {
		case <-s.r.Context().Done():
			return false
		case <-c.stopping:
			return false
		case <-e.wake:
			s.news = true
			return true
		case <-tick.C:
			return true
		case one := <-e.heard:
			if hear(s, one) {
				return true
			}
			if s.Flush() != nil {
				return false
			}
		}
	}
}

// inboxLive tells a reader of the list when it has changed.
func (c *Console) inboxLive(r *request) (*answer, error) {
	if _, ok, err := c.conversations(r); err != nil || !ok {
		return see("/conversations"), err
	}
	was := ""
	return c.live(r, func(s *stream) ([]string, error) {
		in, _, err := c.conversations(r)
		if err != nil {
			return nil, err
		}
		if now := in.version(); now != was {
			was = now
			s.send("list", map[string]string{"version": now})
		}
		ids := make([]string, len(in.list))
		for i := range in.list {
			ids[i] = in.list[i].ID
		}
		return ids, nil
	})
}

// waitingLive keeps the number of conversations that need a person up to date, on every page.
func (c *Console) waitingLive(r *request) (*answer, error) {
	was := store.Attention{Waiting: -1}
	return c.live(r, func(s *stream) ([]string, error) {
		n, err := c.DB.Attention(r.Context(), r.UserID(), r.who.Person())
		if err != nil {
			return nil, err
		}
		if n.Waiting != was.Waiting {
			s.put(waitingBadge(n.Waiting))
			s.put(waitingLink(n.Waiting))
		}
		if n.Waiting != was.Waiting || n.Newest != was.Newest { // what sounds and notifications are made of
			s.send("waits",
				map[string]string{"newest": strconv.FormatInt(int64(n.Newest), 10), "words": strconv.Itoa(n.Waiting) + " " + needing(n.Waiting)})
		}
		was = n
		return nil, nil
	})
}

// conversationLive sends the pieces of a conversation's page that have changed. The script has most of them when it
// begins, and knows so by their versions.
func (c *Console) conversationLive(r *request) (*answer, error) {
	conv, err := c.DB.Conversation(r.Context(), r.UserID(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	topics, sent := []string{conv.ID, chat.WritingTopic(conv.ID)}, map[string]string{}
	var was *talk
	return c.live(r, func(s *stream) ([]string, error) {
		if was != nil && !was.typing() && !s.news { // then all that changes shows in the conversation's own row
			now, err := c.DB.Conversation(r.Context(), r.UserID(), conv.ID)
			if err != nil {
				return topics, err
			}
			writing, err := c.otherWriters(r, conv.ID)
			if err != nil || now.MessageCount == was.MessageCount && now.EndedAt == was.EndedAt &&
				(&talk{Conversation: now}).modeVersion() == was.modeVersion() && slices.Equal(writing, was.writing) {
				return topics, err
			}
		}
		t, err := c.talk(r.Context(), r)
		if err != nil {
			return nil, err
		}
		was = t
		for _, p := range t.parts(0) {
			if version, there := sent[p.id]; !there || version != p.version {
				sent[p.id] = p.version
				s.put(p.body)
			}
		}
		return topics, nil
	})
}
