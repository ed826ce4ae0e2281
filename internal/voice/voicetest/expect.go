package voicetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/voice"
)

// What a play expects to happen.

// patience is how long the play waits for something to happen.
const patience = 2 * time.Minute

// until waits until ok holds, looking in the middle of each 20 ms.
func (p *play) until(what string, ok func(state) bool) state {
	for end := time.Now().Add(patience); ; {
		s := p.leg.state()
		if ok(s) {
			return s
		}
		if time.Now().After(end) {
			p.fatalf("%s didn't happen within %v", what, patience)
		}
		select {
		case <-p.done:
			if s := p.leg.state(); ok(s) {
				return s
			}
			p.fatalf("the call ended (%s) before %s", p.result.Reason, what)
		default:
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
	}
}

// asks reads statements about the assistant's speech; it is false if this isn't one.
func (p *play) asks(a *args) bool {
	switch {
	case a.is("says", "nothing", "for"):
		p.begin()
		d := a.time()
		for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if s := p.leg.state(); len(s.heard) > p.next {
				p.fatalf("the assistant spoke at %v: %q", s.at, s.heard[len(s.heard)-1].Text)
			}
		}
	case a.is("says"):
		p.begin()
		text := a.text()
		s := p.until(fmt.Sprintf("%q to its end", text), func(s state) bool {
			return len(s.heard) > p.next && (s.heard[p.next].Frames >= s.heard[p.next].Whole ||
				s.heard[p.next].Text != text)
		})
		p.compare(s, text, a)
		p.next++
	case a.is("begins"):
		p.begin()
		text := a.text()
		s := p.until(fmt.Sprintf("the beginning of %q", text), func(s state) bool { return len(s.heard) > p.next })
		p.compare(s, text, a)
	case a.is("goes", "on", "with"):
		text := a.text()
		s := p.until(fmt.Sprintf("the beginning of %q", text), func(s state) bool { return len(s.heard) > p.next })
		d, _ := a.timeOf("within")
		if gap := s.heard[p.next].From - s.heard[p.next-1].To - audio.FrameTime; gap > d {
			p.errorf("%q began %v after what came before it, not within %v", text, gap, d)
		}
		p.compare(s, text, a)
	case a.is("stops"):
		s := p.until("silence", func(s state) bool { return !s.audible })
		if d, ok := a.timeOf("within"); ok && s.silent-s.began > d {
			p.errorf("it was silent %v after the customer began, not within %v", s.silent-s.began, d)
		}
	case a.is("is", "cut", "off"):
		s := p.leg.state()
		if len(s.heard) <= p.next || s.heard[p.next].Frames >= s.heard[p.next].Whole {
			p.fatalf("nothing is cut off: %+v", s.heard[min(p.next, len(s.heard)):])
		}
		p.next++
	case a.is("is", "silent"):
		if s := p.leg.state(); s.audible {
			p.errorf("the assistant speaks: %q", s.heard[len(s.heard)-1].Text)
		}
	case a.is("is", "speaking"):
		if s := p.leg.state(); !s.audible {
			p.errorf("the assistant is silent")
		}
	default:
		return false
	}
	return true
}

func (p *play) compare(s state, text string, a *args) {
	h := s.heard[p.next]
	if h.Text != text {
		p.fatalf("the customer heard %q, not %q", h.Text, text)
	}
	if d, ok := a.timeOf("within"); ok && h.From-s.voiced > d {
		p.errorf("%q began %v after the customer's last voiced packet, not within %v", text, h.From-s.voiced, d)
	}
	if d, ok := a.timeOf("at"); ok && (h.From < d-40*time.Millisecond || h.From > d+40*time.Millisecond) {
		p.errorf("%q began at %v, not at %v", text, h.From, d)
	}
}

// check reads statements about what happened.
func (p *play) check(verb string, a *args) {
	switch verb {
	case "ends":
		p.begin()
		reason := parley.EndedReason(a.word())
		select {
		case <-p.done:
		case <-time.After(20 * time.Minute):
			p.fatalf("the call doesn't end")
		}
		if p.result.Reason != reason {
			p.errorf("it ended with %s (%v), not %s", p.result.Reason, p.result.Err, reason)
		}
		if d, ok := a.timeOf("at"); ok && (p.at < d-60*time.Millisecond || p.at > d+60*time.Millisecond) {
			p.errorf("it ended at %v, not at %v", p.at, d)
		}
	case "dialled":
		if want, s := a.word(), p.leg.state(); s.dialled != want {
			p.errorf("dialled %q, not %q", s.dialled, want)
		}
	case "answered":
		a.word()
		if who := a.word(); string(p.result.AnsweredBy) != who {
			p.errorf("answered by %s, not %s", p.result.AnsweredBy, who)
		}
	case "verdicts":
		var kinds []string
		for _, v := range p.result.Verdicts {
			if v.Reason == "" {
				p.errorf("no reason for %v", v)
			}
			kinds = append(kinds, string(v.Kind))
		}
		if want := a.text(); strings.Join(kinds, " ") != want {
			p.errorf("verdicts %v, not %q", p.result.Verdicts, want)
		}
	case "error":
		if want := a.text(); p.result.Err == nil || !strings.Contains(p.result.Err.Error(), want) {
			p.errorf("the error is %v, not %q", p.result.Err, want)
		}
	case "failure":
		if want := a.text(); want == "none" && p.result.Failure != nil || want != "none" &&
			!strings.Contains(parley.Explanation(p.result.Failure), want) {
			p.errorf("the failure is %v, not %q", p.result.Failure, want)
		}
	case "eager":
		a.is("replies")
		begun, used := a.number(), 0
		if a.is("used") {
			used = a.number()
		}
		if got := p.result.Eager; got != (voice.Eager{Begun: begun, Used: used}) {
			p.errorf("%d replies were begun before the turn's end, and %d used", got.Begun, got.Used)
		}
	case "latency":
		p.latency(a)
	case "turns":
		var got []string
		for _, t := range p.result.Turns {
			got = append(got, cmp.Or(t.Language, "unknown"))
		}
		if want := strings.Join(a.words, " "); "in "+strings.Join(got, " ") != want {
			p.errorf("turns are in %s, not %s: %+v", strings.Join(got, " "), want, p.result.Turns)
		}
		a.words = nil
	case "ahead":
		var got []string
		for _, t := range p.result.Turns {
			if t.Latency != nil && t.Latency.Ahead != "" {
				got = append(got, string(t.Latency.Ahead))
			}
		}
		if want := a.text(); strings.Join(got, " ") != want {
			p.errorf("thinking ahead was %q, not %q", got, want)
		}
	default:
		p.fatalf("there is no statement that begins with %s", verb)
	}
}

// latency checks a mark of the last reply that has any, to within a frame.
func (p *play) latency(a *args) {
	name, want := a.word(), float64(a.number())
	for i := len(p.result.Turns) - 1; i >= 0; i-- {
		if l := p.result.Turns[i].Latency; l != nil {
			raw, _ := json.Marshal(l)
			var marks map[string]float64
			_ = json.Unmarshal(raw, &marks)
			if got := marks[name]; math.Abs(got-want) > 20 {
				p.errorf("%s is %v, not %v: %s", name, got, want, raw)
			}
			return
		}
	}
	p.errorf("no reply has latencies")
}

// block compares the transcript, or what the model read, with what the script says.
func (p *play) block(head string, want []string) {
	var got []string
	switch head {
	case "":
		return
	case "transcript":
		p.hangUp()
		for _, t := range p.result.Turns {
			line := strings.Join(strings.Fields(t.Text), " ")
			if t.Speaker == parley.SpeakerAssistant {
				line = "AI: " + line
			} else {
				line = "Customer: " + line
			}
			if t.Interrupted {
				line += " --"
			}
			got = append(got, line)
		}
	case "read":
		asked := p.brain.Asked()
		if len(asked) == 0 {
			p.fatalf("the model was not asked")
		}
		for _, m := range asked[len(asked)-1].Messages {
			line := strings.TrimSpace(string(m.Role) + ": " + m.Text)
			for _, c := range m.Calls {
				line += " [" + c.Name + " " + c.Arguments + "]"
			}
			got = append(got, strings.TrimSpace(line))
		}
	}
	if !slices.Equal(got, want) {
		p.errorf("the %s is\n    %s\nnot\n    %s", head, strings.Join(got, "\n    "), strings.Join(want, "\n    "))
	}
}
