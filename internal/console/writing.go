package console

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/internal/event"
)

// writers are the people who are writing replies now, by conversation, in this process. The script says it again while
// they write, so who has stopped is soon forgotten.
type writers struct {
	mu sync.Mutex
	at map[string]map[int64]writer // by conversation and person
}

type writer struct {
	name  string
	until time.Time
}

// writesFor is how long somebody counts as writing: the script repeats it every 3 seconds (asset/chat.js).
const writesFor = 7 * time.Second

// writes notes that somebody writes; true when that is news.
func (w *writers) writes(conversation string, by parley.Person, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(now)
	if w.at == nil {
		w.at = map[string]map[int64]writer{}
	}
	if w.at[conversation] == nil {
		w.at[conversation] = map[int64]writer{}
	}
	_, there := w.at[conversation][by.ID]
	w.at[conversation][by.ID] = writer{by.Name, now.Add(writesFor)}
	return !there
}

// stops notes that somebody has sent what they wrote.
func (w *writers) stops(conversation string, person int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.at[conversation], person)
}

// others are the names of those who write in a conversation, besides one person.
func (w *writers) others(conversation string, person int64, now time.Time) (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(now)
	for id, one := range w.at[conversation] {
		if id != person {
			names = append(names, one.name)
		}
	}
	slices.Sort(names)
	return names
}

func (w *writers) forget(now time.Time) {
	for conversation, people := range w.at {
		for id, one := range people {
			if now.After(one.until) {
				delete(people, id)
			}
		}
		if len(people) == 0 {
			delete(w.at, conversation)
		}
	}
}

// writingTopic is where the readers of a conversation learn that somebody writes. Its customer does not.
func writingTopic(conversation string) string { return "writing:" + conversation }

// writing is told by the script while somebody writes a reply.
func (c *Console) writing(r *request) (*answer, error) {
	conv, err := c.DB.Conversation(r.Context(), r.UserID(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if c.writers.writes(conv.ID, r.who.Writer(), time.Now()) {
		c.Hub.Tell(writingTopic(conv.ID), event.Event{Kind: "writing"})
	}
	r.w.WriteHeader(http.StatusNoContent)
	return nil, nil
}

// otherWriters are the names of those who write in a conversation, besides who asks.
func (c *Console) otherWriters(r *request, conversation string) []string {
	return c.writers.others(conversation, r.who.Person(), time.Now())
}

// writingText says who else writes.
func writingText(names []string) string {
	switch n := len(names); n {
	case 0:
		return ""
	case 1:
		return names[0] + " is writing a reply."
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1] + " are writing replies."
	}
}
