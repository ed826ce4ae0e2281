package realtime

import (
	"testing"
	"time"

	"parley/internal/ai"
)

// What an eager server never answers is settled: a reply that it forgot, and an utterance without a text, which nothing
// waits for then.
func TestOverdue(t *testing.T) {
	s := &session{dialect: Dialect{Eager: true}, responses: map[int]*response{}, named: map[string]*response{}}
	var got []ai.RealtimeEvent
	at := func(now time.Time) {
		got = nil
		s.overdue(now, func(e ai.RealtimeEvent) { got = append(got, e) })
	}
	began := time.Now()
	u := &hearsay{ended: began, text: "well"}
	s.said, s.committed = []*hearsay{u}, []*hearsay{u}
	s.ask(&response{n: 7, create: map[string]any{}})
	if s.active != nil {
		t.Fatal("it was asked before the utterance was known")
	}
	at(began.Add(hearTime - 1))
	if len(got) > 0 {
		t.Errorf("%+v", got)
	}
	at(began.Add(hearTime))
	if len(got) != 1 || got[0].Kind != ai.RealtimeHeard || !got[0].Final || got[0].Text != "well" || s.active == nil {
		t.Errorf("%+v", got)
	}
	at(s.asked.Add(answerTime))
	if len(got) > 0 {
		t.Errorf("%+v", got)
	}
	at(s.asked.Add(answerTime + 1))
	if len(got) != 1 || got[0].Kind != ai.RealtimeDone || got[0].N != 7 || ai.KindOf(got[0].Err) != ai.Stalled || s.active != nil {
		t.Errorf("%+v", got)
	}
}
