package rehearsal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verdict is what became of one expectation.
type Verdict struct {
	Line int
	OK   bool
	What string // was expected
	Got  string // instead
	At   time.Duration
	Of   subject
}

// subject is what an expectation was of, where that is counted.
type subject int

const (
	ofTool subject = iota + 1
	ofValue
)

// judge judges a case by what was heard and recorded.
type judge struct {
	*Case
	t   *Timeline
	r   *Record
	out []Verdict
	// calls of tools that expectations have been met by
	used map[int]bool
}

// Judge says which expectations of a case were met. It is pure.
func (c *Case) Judge(t *Timeline, r *Record) []Verdict {
	j := &judge{Case: c, t: t, r: r, used: map[int]bool{}}
	for _, i := range t.Missed {
		if i < 0 {
			j.fail(c.Line, 0, "nothing was heard", "hear something")
			continue
		}
		j.fail(c.Steps[i].Line, t.Steps[i].From, j.missed(i), "%s", describe(&c.Steps[i]))
	}
	last := len(c.Steps)
	if len(t.Missed) > 0 {
		last = max(0, t.Missed[0])
	}
	for i := range last {
		switch s := &c.Steps[i]; s.Kind {
		case Hear:
			j.hear(i)
		case Interrupt:
			j.over(i)
		case Expecting:
			j.expect(i)
		}
	}
	if r.EndedReason == "provider_failure" && (c.End == nil || c.End.Reason != r.EndedReason) {
		detail := ""
		if r.EndedDetail != nil {
			detail = ": " + *r.EndedDetail
		}
		j.fail(c.Line, t.Ended, "it ended with provider_failure"+detail, "a call without a failure")
	}
	if t.By == "limit" && len(t.Missed) == 0 {
		j.fail(c.Line, t.Ended, "it was still going on", "the whole case within %s (limit)", show(c.Limit))
	}
	j.end()
	j.budget()
	return j.out
}

// describe is a step as a sentence.
func describe(s *Step) string {
	switch s.Kind {
	case Hear:
		if s.Want != nil {
			return fmt.Sprintf("hear %q", s.Want.Text)
		}
		return "hear something"
	case HangUp, Wait, Expecting, Beep, Music:
		return strings.ReplaceAll(string(s.Kind), "_", " ")
	}
	return fmt.Sprintf("%s %q", s.Kind, s.Text)
}

func (j *judge) missed(i int) string {
	switch {
	case j.t.By == "assistant":
		return "the assistant hung up before that"
	case len(j.t.Acts) > 0:
		a := j.t.Acts[len(j.t.Acts)-1]
		return fmt.Sprintf("no reply came to %q", a.Text)
	}
	return "nothing was heard"
}

func (j *judge) add(ok bool, line int, at time.Duration, got, format string, args ...any) {
	v := Verdict{Line: line, OK: ok, What: fmt.Sprintf(format, args...), At: at}
	if !ok {
		v.Got = got
	}
	j.out = append(j.out, v)
}

// of says what the latest verdict was of.
func (j *judge) of(s subject) { j.out[len(j.out)-1].Of = s }

func (j *judge) fail(line int, at time.Duration, got, format string, args ...any) {
	j.add(false, line, at, got, format, args...)
}

// act is the last thing that the caller did before a step, -1 for nothing.
func (j *judge) act(step int) int {
	for i := len(j.t.Acts) - 1; i >= 0; i-- {
		if j.t.Acts[i].Step < step {
			return i
		}
	}
	return -1
}

// window is the time of the reply to an act: until the caller next says something that wants a reply.
func (j *judge) window(act int) Span {
	w := Span{To: j.t.Ended + time.Hour}
	for act > 0 && j.t.Acts[act].Kind == Backchannel { // it listens to the reply to what was said before
		act--
	}
	if act >= 0 {
		w.From = j.t.Acts[act].From
	}
	for _, a := range j.t.Acts[act+1:] {
		if a.Kind != Backchannel {
			w.To = a.From
			break
		}
	}
	return w
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// said is what a side said in a window, as the server recorded it or the chat answered.
func (j *judge) said(speaker string, w Span, act int) string {
	var all []string
	if j.Channel == Chat {
		step := -1
		if act >= 0 {
			step = j.t.Acts[act].Step
		}
		for _, text := range j.t.Texts {
			if text.Step == step {
				all = append(all, text.Text)
			}
		}
		return strings.Join(all, " ")
	}
	const slack = 100 * time.Millisecond
	for _, turn := range j.r.Turns {
		at := ms(turn.StartedAtMS)
		from, to := w.From-slack, w.To
		if speaker == "customer" {
			from, to = w.From-time.Second, w.To-time.Second
		}
		if turn.Speaker == speaker && at >= from && at < to {
			all = append(all, turn.Text)
		}
	}
	return strings.Join(all, " ")
}

func quoted(s string) string {
	if s == "" {
		return "nothing was said"
	}
	return fmt.Sprintf("%q", s)
}

func (j *judge) hear(i int) {
	s := &j.Steps[i]
	act := j.act(i)
	from, after := time.Duration(0), "of the answer"
	if act >= 0 {
		from, after = j.t.Acts[act].To, "of the caller's last word"
	}
	if j.Channel == Call && s.Within > 0 {
		at, ok := j.t.firstAfter(from)
		j.add(ok && at-from <= s.Within, s.Line, at, "it took "+show(at-from), "%s within %s %s", describe(s), show(s.Within),
			after)
	}
	if s.Want != nil {
		got := j.said("assistant", j.window(act), act)
		j.add(s.Want.In(got), s.Line, from, quoted(got), "%s", describe(s))
	}
}

// over checks that an interruption was one.
func (j *judge) over(i int) {
	for k, a := range j.t.Acts {
		if a.Step == i && !j.t.yield(k).over {
			j.fail(j.Steps[i].Line, a.From, "the assistant was not speaking", "%s", describe(&j.Steps[i]))
		}
	}
}

func (j *judge) expect(i int) {
	e, line, act := &j.Steps[i].Expect, j.Steps[i].Line, j.act(i)
	w := j.window(act)
	if act >= 0 {
		j.timing(e, line, act)
	}
	for _, tool := range e.Tools {
		k := slices.IndexFunc(j.r.FunctionCalls, func(f ToolCall) bool { return tool.Matches(f.Name, f.Arguments) && j.within(f, w, act) })
		for k >= 0 && j.used[k] {
			next := slices.IndexFunc(j.r.FunctionCalls[k+1:], func(f ToolCall) bool {
				return tool.Matches(f.Name, f.Arguments) && j.within(f, w, act)
			})
			if next < 0 {
				k = -1
				break
			}
			k += 1 + next
		}
		if k >= 0 {
			j.used[k] = true
		}
		j.add(k >= 0, line, w.From, j.tools(w, act), "tool %s", tool.Text)
		j.of(ofTool)
	}
	for _, name := range e.NoTools {
		hit := slices.ContainsFunc(j.r.FunctionCalls, func(f ToolCall) bool {
			return (name == "*" || f.Name == name) && j.within(f, w, act)
		})
		what := "no tool"
		if name != "*" {
			what += " " + name
		}
		j.add(!hit, line, w.From, j.tools(w, act), "%s", what)
	}
	said := j.said("assistant", w, act)
	for _, words := range e.Says {
		j.add(words.In(said), line, w.From, quoted(said), "says %q", words.Text)
	}
	for _, words := range e.SaysNot {
		j.add(!words.In(said), line, w.From, quoted(said), "says not %q", words.Text)
	}
	for _, words := range e.Heard {
		got := j.said("customer", w, act)
		j.add(words.In(got), line, w.From, quoted(got), "understood %q", words.Text)
	}
	if e.Keys != nil {
		got := j.t.pressed(w)
		j.add(got == *e.Keys, line, w.From, fmt.Sprintf("%q", got), "keys %q", *e.Keys)
	}
	if e.Transferred != nil {
		j.add(strings.Contains(j.t.Sent, *e.Transferred), line, w.From, fmt.Sprintf("sent to %q", j.t.Sent),
			"transferred to %q", *e.Transferred)
	}
}

// within says whether a tool was called between an act and the caller's next one.
func (j *judge) within(f ToolCall, w Span, act int) bool {
	if j.Channel == Chat {
		return act >= 0 && f.Step == j.t.Acts[act].Step
	}
	return ms(f.AtMS) >= w.From && ms(f.AtMS) < w.To
}

// tools lists what was called in a window, and where that is nothing, what was called at other times.
func (j *judge) tools(w Span, act int) string {
	var all, others []string
	for _, f := range j.r.FunctionCalls {
		if j.within(f, w, act) {
			all = append(all, f.Name+string(f.Arguments))
		} else {
			others = append(others, fmt.Sprintf("%s%s at %s", f.Name, f.Arguments, show(ms(f.AtMS))))
		}
	}
	switch {
	case len(all) > 0:
		return "called " + strings.Join(all, ", ")
	case len(others) > 0 && j.Channel == Call:
		return "no tool was called then; in other turns " + strings.Join(others, ", ")
	}
	return "no tool was called"
}

// timing judges what depends on when sound came.
func (j *judge) timing(e *Expect, line, act int) {
	a := j.t.Acts[act]
	if e.Quiet != "" {
		cuts := j.t.cutoffs(a)
		j.add(len(cuts) == 0, line, a.From, "the assistant spoke into it", "no reply during the %s of %s", e.Quiet, describe(&j.Steps[a.Step]))
	}
	y := j.t.yield(act)
	if e.SilentIn != nil {
		got, stopped := "it took "+show(y.silent), y.yielded
		switch {
		case !y.yielded:
			got = "it went on"
		case a.Kind == Interrupt && !j.cutOff(a.From): // the packets don't tell the old reply from a new one
			got, stopped = "it fell silent and then went on where it had stopped", false
		}
		j.add(stopped && y.silent <= *e.SilentIn, line, a.From, got, "silent within %s", show(*e.SilentIn))
	}
	if e.Stale != nil {
		j.add(y.stale <= *e.Stale, line, a.From, fmt.Sprintf("%d", y.stale), "at most %d stale packets", *e.Stale)
	}
	if e.ResumesIn != nil {
		ok := y.over && (!y.yielded || y.again && y.resumed <= *e.ResumesIn)
		got := "it took " + show(y.resumed)
		switch {
		case !y.over:
			got = "the assistant was not speaking"
		case y.yielded && !y.again:
			got = "it did not go on"
		}
		j.add(ok, line, a.From, got, "resumes within %s", show(*e.ResumesIn))
	}
	if e.ReplyIn != nil {
		for _, r := range j.t.Replies() {
			if r.Act == act {
				got := "it took " + show(r.Took)
				if r.None {
					got = "there was none"
				}
				j.add(!r.None && r.Took <= *e.ReplyIn, line, a.To, got, "reply within %s", show(*e.ReplyIn))
			}
		}
	}
}

// cutOff says whether what the assistant was saying at a time stands as interrupted.
func (j *judge) cutOff(at time.Duration) bool {
	for _, turn := range slices.Backward(j.r.Turns) {
		if turn.Speaker == "assistant" && ms(turn.StartedAtMS) < at {
			return turn.Interrupted
		}
	}
	return true // the server knows of none
}

func (j *judge) end() {
	e := j.End
	if e == nil {
		return
	}
	if e.Reason != "" && j.Channel == Call {
		j.add(j.r.EndedReason == e.Reason, e.Line, j.t.Ended, j.r.EndedReason, "ends with %s", e.Reason)
	}
	for _, name := range sortedKeys(e.Variables) {
		want, got := e.Variables[name], j.r.Variables[name]
		j.add(same(got, want), e.Line, j.t.Ended, fmt.Sprint(got), "%s is %v", name, want)
		j.of(ofValue)
	}
	if e.CostBelow != nil {
		j.add(j.r.TotalCost < *e.CostBelow, e.Line, j.t.Ended, fmt.Sprintf("%.4f", j.r.TotalCost), "costs less than %g",
			*e.CostBelow)
	}
	if e.Longest != nil {
		j.add(j.t.Ended <= *e.Longest, e.Line, j.t.Ended, show(j.t.Ended), "lasts at most %s", show(*e.Longest))
	}
	if e.Shortest != nil {
		j.add(j.t.Ended >= *e.Shortest, e.Line, j.t.Ended, show(j.t.Ended), "lasts at least %s", show(*e.Shortest))
	}
	if e.Recorded != nil {
		got, what := "there is no recording", "it is recorded"
		if j.r.RecordingURL != "" {
			got = "there is a recording"
		}
		if !*e.Recorded {
			what = "it is not recorded"
		}
		j.add((j.r.RecordingURL != "") == *e.Recorded, e.Line, j.t.Ended, got, "%s", what)
	}
	if e.Rings != nil {
		j.add(j.t.Rang <= *e.Rings, e.Line, 0, show(j.t.Rang), "rings at most %s", show(*e.Rings))
	}
	if e.Detail != nil {
		got := ""
		if j.r.EndedDetail != nil {
			got = *j.r.EndedDetail
		}
		j.add(e.Detail.In(got), e.Line, j.t.Ended, fmt.Sprintf("%q", got), "the end's detail has %q", e.Detail.Text)
	}
	if e.Webhook != nil {
		j.webhook(e)
	}
	if e.exact {
		ok := len(e.Tools) == len(j.r.FunctionCalls)
		for i := range e.Tools {
			ok = ok && e.Tools[i].Matches(j.r.FunctionCalls[i].Name, j.r.FunctionCalls[i].Arguments)
		}
		var want []string
		for _, p := range e.Tools {
			want = append(want, p.Text)
		}
		what := strings.Join(want, ", ")
		if what == "" {
			what = "none"
		}
		j.add(ok, e.Line, j.t.Ended, j.called(), "tools called: %s", what)
	}
}

// webhook judges the events that the call's end would send.
func (j *judge) webhook(e *End) {
	got := "no event is sent: the assistant has no webhook for the end of such a call"
	var all []string
	ok := e.Webhook.None == (len(j.r.Webhooks) == 0)
	if !e.Webhook.None && len(e.Webhook.Fields) > 0 {
		ok = slices.ContainsFunc(j.r.Webhooks, func(event map[string]any) bool { return same(event, e.Webhook.Fields) })
	}
	for _, event := range j.r.Webhooks {
		have := fmt.Sprint(event["event"])
		for _, name := range sortedKeys(e.Webhook.Fields) {
			if !same(event[name], e.Webhook.Fields[name]) {
				raw, _ := json.Marshal(event[name]) // it was read from JSON
				have += fmt.Sprintf(" with %s %.300s", name, raw)
			}
		}
		all = append(all, have)
	}
	switch {
	case j.r.Webhooks == nil:
		ok, got = false, "the server has not evaluated the call in time"
	case len(all) > 0:
		got = strings.Join(all, "; ")
	}
	what := "a webhook is sent"
	if e.Webhook.None {
		what = "no webhook is sent"
	} else if len(e.Webhook.Fields) > 0 {
		raw, _ := json.Marshal(e.Webhook.Fields)
		what = fmt.Sprintf("a webhook is sent with %s", raw)
	}
	j.add(ok, e.Line, j.t.Ended, got, "%s", what)
}

// called lists all calls of tools.
func (j *judge) called() string {
	var all []string
	for _, f := range j.r.FunctionCalls {
		all = append(all, f.Name+string(f.Arguments))
	}
	if len(all) == 0 {
		return "no tool was called"
	}
	return "called " + strings.Join(all, ", ")
}

func (j *judge) budget() {
	b, f := &j.Budget, j.Figures(j.t, j.r)
	limit := func(most *time.Duration, got time.Duration, what string) {
		if most != nil {
			j.add(got <= *most, b.Line, j.t.Ended, show(got), "%s at most %s", what, show(*most))
		}
	}
	limit(b.ReplyP50, quantile(f.Replies, 0.5), "replies' median")
	limit(b.ReplyP95, quantile(f.Replies, 0.95), "replies' p95")
	limit(b.ReplyMax, quantile(f.Replies, 1), "every reply")
	limit(b.DeadAir, f.DeadAir, "silence")
	limit(b.Greeting, f.Greeting, "greeting after")
	if b.FalseCutoffs != nil {
		j.add(f.Cutoffs <= *b.FalseCutoffs, b.Line, j.t.Ended, fmt.Sprint(f.Cutoffs), "at most %d false cut-offs", *b.FalseCutoffs)
	}
	if b.Pace != nil {
		got := j.pace()
		j.add(got >= b.Pace.From && got <= b.Pace.To, b.Line, j.t.Ended, fmt.Sprint(got), "%d to %d words a minute", b.Pace.From, b.Pace.To)
	}
	if b.Misheard != nil {
		share := f.misheard()
		j.add(share <= *b.Misheard, b.Line, j.t.Ended, fmt.Sprintf("%.0f %%", 100*share), "at most %.0f %% of words misheard",
			100**b.Misheard)
	}
}

// pace is how many words a minute the assistant speaks, its pauses between sentences not counted.
func (j *judge) pace() int {
	words, speaking := 0, time.Duration(0)
	for _, turn := range j.r.Turns {
		if turn.Speaker == "assistant" {
			words += len(strings.Fields(plain(turn.Text)))
		}
	}
	for _, u := range j.t.utterances(breath) {
		speaking += u.To - u.From
	}
	if speaking == 0 {
		return 0
	}
	return int(float64(words)/speaking.Minutes() + 0.5)
}

func show(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
