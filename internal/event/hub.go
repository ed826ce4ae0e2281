// Package event tells what happens: live, to whoever listens in this process.
package event

import "sync"

// Event is something that happened to a topic, such as a conversation.
type Event struct {
	Kind string
	Data any
}

// Hub passes events to listeners in this process. It holds nothing: who must not miss anything reads the database when an event wakes
// them, and now and then besides, for what happened on other nodes.
type Hub struct {
	mu     sync.Mutex
	topics map[string]map[chan Event]struct{}
}

// NewHub makes a hub.
func NewHub() *Hub { return &Hub{topics: map[string]map[chan Event]struct{}{}} }

// backlog is how many events wait for a slow listener; those beyond are dropped for it.
const backlog = 32

// Listen gives the events of a topic from now on, until stop is called. ok is false when most listeners are there already.
func (h *Hub) Listen(topic string, most int) (events <-chan Event, stop func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[topic]
	if len(t) >= most {
		return nil, nil, false
	}
	if t == nil {
		t = map[chan Event]struct{}{}
		h.topics[topic] = t
	}
	ch := make(chan Event, backlog)
	t[ch] = struct{}{}
	return ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(t, ch)
		if len(t) == 0 && h.topics[topic] != nil && len(h.topics[topic]) == 0 {
			delete(h.topics, topic)
		}
	}, true
}

// Tell passes an event to a topic's listeners. It never waits.
func (h *Hub) Tell(topic string, e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ch := range h.topics[topic] {
		select {
		case ch <- e:
		default: // it is being woken by what it has not read yet
		}
	}
}
