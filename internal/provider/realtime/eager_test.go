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
	due := s.active.due
	at(due)
	if len(got) > 0 {
		t.Errorf("%+v", got)
	}
	at(due.Add(1))
	if len(got) != 1 || got[0].Kind != ai.RealtimeDone || got[0].N != 7 || ai.KindOf(got[0].Err) != ai.Stalled || s.active != nil {
		t.Errorf("%+v", got)
	}
}

// What was said over a reply was sent to the server only at the reply's end: it has hearTime from then.
func TestOverdueAfterReply(t *testing.T) {
	s := &session{dialect: Dialect{Eager: true}, responses: map[int]*response{}, named: map[string]*response{}}
	s.ask(&response{n: 7, create: map[string]any{}})
	u := &hearsay{ended: time.Now().Add(-time.Minute)}
	s.said, s.committed = []*hearsay{u}, []*hearsay{u}
	told := 0
	tell := func(ai.RealtimeEvent) { told++ }
	s.end(s.active, ai.Usage{}, nil, tell)
	s.overdue(s.freed.Add(hearTime-1), tell)
	if told != 1 || u.final {
		t.Errorf("%d events at the end of the reply", told)
	}
	s.overdue(s.freed.Add(hearTime), tell)
	if told != 2 || !u.final {
		t.Errorf("%d events later", told)
	}
}

// A reply that was begun, and never ends, is ended: some time after it was cancelled, or after its last event.
func TestUnendedReply(t *testing.T) {
	for _, o := range []struct {
		name string
		cut  bool
		wait time.Duration
	}{{"silent", false, silentTime}, {"cut", true, stopTime}} {
		s := &session{dialect: Dialect{Eager: true}, setup: ai.RealtimeSetup{Rate: 8000}, responses: map[int]*response{},
			named: map[string]*response{}}
		var got []ai.RealtimeEvent
		tell := func(e ai.RealtimeEvent) { got = append(got, e) }
		take := func(e realtimeEvent) {
			if err := s.event(&e, tell); err != nil {
				t.Fatal(err)
			}
		}
		s.ask(&response{n: 7, create: map[string]any{}})
		begun := realtimeEvent{Type: "response.created"}
		begun.Response.ID = "r"
		take(begun)
		r := s.active
		r.due = time.Time{}
		began := time.Now()
		take(realtimeEvent{Type: "response.output_audio.delta", ResponseID: "r"})
		if o.cut {
			s.Cut(7, 0, "")
		}
		got = nil
		if s.overdue(began.Add(o.wait), tell); len(got) > 0 || s.active != r {
			t.Errorf("%s: %+v too early", o.name, got)
		}
		s.overdue(time.Now().Add(o.wait+1), tell)
		if len(got) != 1 || got[0].Kind != ai.RealtimeDone || got[0].N != 7 || ai.KindOf(got[0].Err) != ai.Stalled || s.active != nil {
			t.Errorf("%s: %+v", o.name, got)
		}
		begun.Type = "response.done" // late
		if take(begun); len(got) != 1 {
			t.Errorf("%s: %+v", o.name, got)
		}
	}
}
