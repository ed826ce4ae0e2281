// Package event reports what happens: live, to listeners in this process (Hub), and by signed webhooks to the users'
// endpoints (Sender).
//
// # Webhooks
//
// Whoever causes an event stores its delivery in the transaction that makes it true (store.Tx.EnqueueDelivery): so
// there is no event without its cause, and no cause without its event. A Sender claims what is due by moving it on a
// little, tries it, and notes what came of it; what was claimed by a process that died becomes due again by itself.
// An event arrives at least once, and always under the same id with the same body.
//
// # Fairness
//
// Endpoints are lanes. A lane has a few slots and a user has a few lanes' worth; what waits in a lane is not looked
// at until a slot in it is free. So an endpoint that hangs fills its own lane, and its backlog, however long, costs
// the others nothing.
package event

import "sync"

// Event is something that happened to a topic, such as a conversation.
type Event struct {
	Kind string
	Data any
}

// Hub passes events to listeners in this process. It stores nothing: listeners that must not miss anything read the
// database when an event wakes them, and now and then besides, for what happened on other nodes.
type Hub struct {
	mu     sync.Mutex
	topics map[string]map[chan Event]struct{}
}

// NewHub makes a hub.
func NewHub() *Hub { return &Hub{topics: map[string]map[chan Event]struct{}{}} }

// backlog is how many events wait for a slow listener; those beyond are dropped for it.
const backlog = 32

// Listen gives the events of a topic from now on, until stop is called. ok is false when most listeners are there
// already.
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
		if len(h.topics[topic]) == 0 {
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
