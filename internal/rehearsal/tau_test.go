package rehearsal

import (
	"encoding/json"
	"testing"
	"time"
)

// A letter of a drawing is half a tick.
func TestTau(t *testing.T) {
	for name, tt := range map[string]struct {
		drawing string
		kinds   []Kind
		want    Tau
	}{
		"answers": {"CCCC----AAAA--CCCC----------AAAA", []Kind{Say, Say},
			Tau{Turns: 2, Responded: 2, Response: 1400 * time.Millisecond}},
		"doesn't answer the first": {"CCCC------CCCC--AAAA", []Kind{Say, Say}, Tau{Turns: 2, Responded: 1, Response: 200 * time.Millisecond}},
		"the end needs no answer":  {"CCCC------", []Kind{Say}, Tau{}},
		"yields, and answers": {"AAAABBBBCCCC--AAAA", []Kind{Interrupt},
			Tau{Turns: 1, Responded: 1, Response: 200 * time.Millisecond, Interruptions: 1, Yielded: 1, Yield: 400 * time.Millisecond}},
		"yields too late": {"AAAABBBBBBBBBBBBBBBBBBBBBBCC--AAAA", []Kind{Interrupt},
			Tau{Turns: 1, Responded: 1, Response: 200 * time.Millisecond, Interruptions: 1}},
		"at the last moment": {"AAAABBBBBBBBBBBBBBBBBBBBCCCC--", []Kind{Interrupt},
			Tau{Interruptions: 1, Yielded: 1, Yield: 2 * time.Second}},
		"never yields":               {"AAAABBBBBBAAAAAAAAAAAAAAAAAAAAAA--", []Kind{Interrupt}, Tau{Interruptions: 1}},
		"talks on":                   {"AAAABBBBAAAAAAAAAA----", []Kind{Backchannel}, Tau{Backchannels: 1, TalkedOn: 1}},
		"pauses at a backchannel":    {"AAAABBBB----AAAA", []Kind{Backchannel}, Tau{Backchannels: 1}},
		"a backchannel over silence": {"AAAA----CCCC--AAAA", []Kind{Backchannel}, Tau{}},
		"breaks in":                  {"CCCCBBBBAAAA", []Kind{Say}, Tau{Intrusions: 1}},
		"speaks first":               {"AAAA----", nil, Tau{}},
		"a pause is no turn's end":   {"CCCC--CCCC--AAAA", []Kind{Say, Say}, Tau{Turns: 2, Responded: 1, Response: 200 * time.Millisecond}},
	} {
		if got := tape(tt.drawing, tt.kinds...).Tau(); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// Calls are summed up, and what never happened is no share.
func TestTauReport(t *testing.T) {
	call := func(drawing string, kinds ...Kind) Result {
		line := tape(drawing, kinds...)
		return Result{Case: &Case{}, Timeline: line, Figures: Figures{Tau: line.Tau()}}
	}
	list := []Result{call("CCCC----AAAABBBBBBCCCC--AAAA", Say, Interrupt),
		call("AAAABBBBAAAAAAAA--CCCC------CCCC--AAAA", Backchannel, Say, Say)}
	raw, err := json.Marshal(NewReport(list, func(*Result) string { return "" }).Tau)
	const want = `{"response_latency_mean":0.26666666666666666,"yield_latency_mean":0.6,"response_rate":0.75,"yield_rate":1,` +
		`"agent_interruption_rate":0,"selectivity_backchannel":1,` +
		`"counts":{"response_total":4,"yield_total":1,"backchannel_total":1,"agent_interrupts_count":0}}`
	if string(raw) != want || err != nil {
		t.Errorf("%s, %v", raw, err)
	}
	none, _ := json.Marshal(NewReport(nil, nil).Tau)
	if string(none) != `{"response_latency_mean":null,"yield_latency_mean":null,"response_rate":null,"yield_rate":null,`+
		`"agent_interruption_rate":null,"selectivity_backchannel":null,`+
		`"counts":{"response_total":0,"yield_total":0,"backchannel_total":0,"agent_interrupts_count":0}}` {
		t.Errorf("%s", none)
	}
}
