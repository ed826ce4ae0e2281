package rehearsal

import "time"

// Tau counts what τ-voice, a benchmark of agents that hear and speak at once, measures of how they talk: by the definitions
// of docs/interaction-metrics.md in https://github.com/sierra-research/tau2-bench (version 1.0 of its measures). Vocal tics
// and speech to somebody else are left out, since no step of a test makes them.
type Tau struct {
	Turns     int // of the caller's, that ended while the assistant was silent, and were answered or followed by another
	Responded int
	Response  time.Duration // from the turns' ends to the answers, in sum

	Interruptions int // of the assistant by the caller
	Yielded       int // within tauYield
	Yield         time.Duration

	Intrusions int // the assistant began to speak while the caller spoke

	Backchannels int // over the assistant's speech
	TalkedOn     int // through them, for tauBackchannel at least
}

const (
	tauTick        = 200 * time.Millisecond // times are counted in these
	tauYield       = 2 * time.Second
	tauBackchannel = time.Second
)

// ticks is when one side speaks, in ticks.
type ticks map[int]bool

func tick(at time.Duration) int { return int(at / tauTick) }

func (k ticks) speaks(s Span) {
	for i := tick(s.From); time.Duration(i)*tauTick < s.To; i++ {
		k[i] = true
	}
}

// stops is the first tick from one on in which nothing is said.
func (k ticks) stops(from int) int {
	for k[from] {
		from++
	}
	return from
}

// Tau measures a call.
func (t *Timeline) Tau() (out Tau) {
	agent, caller := ticks{}, ticks{}
	for _, p := range t.Heard {
		if p.Level >= loud {
			agent.speaks(Span{p.At, p.At + packet})
		}
	}
	var turns []Act
	for _, a := range t.Acts {
		if a.Kind != Say && a.Kind != Interrupt && a.Kind != Backchannel {
			continue
		}
		turns = append(turns, a)
		for _, part := range a.Parts {
			caller.speaks(part)
		}
	}
	for i := range tick(t.Ended) + 1 {
		if agent[i] && !agent[i-1] && caller[i] && caller[i-1] {
			out.Intrusions++
		}
	}
	for i, a := range turns {
		next := -1
		if i+1 < len(turns) {
			next = tick(turns[i+1].From)
		}
		out.turn(a, next, tick(t.Ended), agent)
	}
	return out
}

// turn measures one of the caller's. next is the tick in which the caller speaks again, -1 if they don't.
func (out *Tau) turn(a Act, next, end int, agent ticks) {
	from, to := tick(a.From), tick(a.To-1)+1
	silent := time.Duration(agent.stops(from)-from) * tauTick // after which the assistant stops
	switch over := agent[from]; {
	case over && a.Kind == Backchannel:
		out.Backchannels++
		if silent > tauBackchannel {
			out.TalkedOn++
		}
	case over:
		out.Interruptions++
		if silent <= tauYield {
			out.Yielded++
			out.Yield += silent
		}
	}
	if a.Kind == Backchannel || agent[to-1] { // it asks for no answer, or the assistant still speaks
		return
	}
	for i := to; i <= end && (next < 0 || i < next); i++ {
		if agent[i] {
			out.Turns++
			out.Responded++
			out.Response += time.Duration(i-to) * tauTick
			return
		}
	}
	if next >= 0 {
		out.Turns++
	}
}

func (out *Tau) add(o Tau) {
	out.Turns += o.Turns
	out.Responded += o.Responded
	out.Response += o.Response
	out.Interruptions += o.Interruptions
	out.Yielded += o.Yielded
	out.Yield += o.Yield
	out.Intrusions += o.Intrusions
	out.Backchannels += o.Backchannels
	out.TalkedOn += o.TalkedOn
}

// TauReport is Tau with τ-voice's names: seconds, and shares of 1. What nothing happened for is null. τ-voice itself hides
// a share of fewer than 10.
type TauReport struct {
	ResponseLatency *float64  `json:"response_latency_mean"`
	YieldLatency    *float64  `json:"yield_latency_mean"`
	Response        *float64  `json:"response_rate"`
	Yield           *float64  `json:"yield_rate"`
	Interruption    *float64  `json:"agent_interruption_rate"`
	Backchannel     *float64  `json:"selectivity_backchannel"`
	Counts          TauCounts `json:"counts"`
}

// TauCounts are how often what the shares are of happened.
type TauCounts struct {
	Responses     int `json:"response_total"`
	Yields        int `json:"yield_total"`
	Backchannels  int `json:"backchannel_total"`
	Interruptions int `json:"agent_interrupts_count"`
}

func (out *Tau) report() TauReport {
	of := func(part float64, all int) *float64 {
		if all == 0 {
			return nil
		}
		share := part / float64(all)
		return &share
	}
	return TauReport{ResponseLatency: of(out.Response.Seconds(), out.Responded), YieldLatency: of(out.Yield.Seconds(), out.Yielded),
		Response: of(float64(out.Responded), out.Turns), Yield: of(float64(out.Yielded), out.Interruptions),
		Interruption: of(float64(out.Intrusions), out.Turns), Backchannel: of(float64(out.TalkedOn), out.Backchannels),
		Counts: TauCounts{out.Turns, out.Interruptions, out.Backchannels, out.Intrusions}}
}
