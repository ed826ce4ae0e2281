package parley

// LinesTaken begins the refusal of a call for which the plan has no line.
const LinesTaken = "Concurrent call limit reached"

// CallTaker is who has a call, or is to have it.
type CallTaker string

// The takers. Only an assistant's call holds one of the account's lines.
const (
	TakenByAssistant CallTaker = "assistant"
	TakenByTelephone CallTaker = "telephone" // telephones ring, or somebody has answered one
	TakenByVoicemail CallTaker = "voicemail" // the caller leaves a message
	TakenByQueue     CallTaker = "queue"     // the caller waits for a line
	TakenByNobody    CallTaker = "nobody"    // the caller is told that nobody can take the call
)

// Lines are the lines of an account: how many calls hold one, and who waits.
type Lines struct {
	Taken map[int64]int // by number; 0 has the calls that come to none
	Queue []Waiter      // in the order in which they came
	Aside int           // live calls without a line that don't wait for one either
	Most  map[int64]int // lines that a number may take; a number that isn't in it takes as many as there are
}

// Waiter is a call that waits for a line.
type Waiter struct{ ID, NumberID int64 }

// Free reports whether a call gets a line of a plan now. Those who have waited longer go first; a call that doesn't
// wait (its ID is 0) comes after all of them. Somebody whose number has no line holds up nobody else.
func (l *Lines) Free(plan int, w Waiter) bool {
	taken, all := map[int64]int{}, 0
	for number, n := range l.Taken {
		taken[number] = n
		all += n
	}
	free := func(number int64) bool {
		most, limited := l.Most[number]
		return all < plan && (!limited || taken[number] < most)
	}
	for _, q := range l.Queue {
		if q.ID == w.ID {
			break
		}
		if free(q.NumberID) {
			all++
			taken[q.NumberID]++
		}
	}
	return free(w.NumberID)
}

// Position is a waiter's place among those who wait at the same number, from 1.
func (l *Lines) Position(w Waiter) int {
	n := 1
	for _, q := range l.Queue {
		if q.ID == w.ID {
			break
		}
		if q.NumberID == w.NumberID {
			n++
		}
	}
	return n
}
