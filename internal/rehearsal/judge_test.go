package rehearsal

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// tape makes a timeline from a drawing, 100 ms per letter: A the assistant speaks, B both speak, C the caller speaks,
// - nobody; c is a pause of the caller's within what they say. The caller's first act is Say, and acts over the
// assistant's speech are of the given kinds.
func tape(drawing string, kinds ...Kind) *Timeline {
	const letter = 100 * time.Millisecond
	t := &Timeline{Steps: make([]Span, 20)}
	in := false
	for i, r := range drawing {
		at := time.Duration(i) * letter
		for k := range 5 {
			level := -100.0
			if r == 'A' || r == 'B' {
				level = -20
			}
			t.Heard = append(t.Heard, Packet{at + time.Duration(k)*packet, level})
		}
		speaks := r == 'B' || r == 'C'
		if (speaks || r == 'c') && !in {
			kind := Say
			if n := len(t.Acts); n < len(kinds) {
				kind = kinds[n]
			}
			t.Acts = append(t.Acts, Act{Step: 2 * len(t.Acts), Kind: kind, Text: "one two three", Span: Span{at, at}})
		}
		if speaks {
			a := &t.Acts[len(t.Acts)-1]
			if n := len(a.Parts); n == 0 || a.Parts[n-1].To < at {
				a.Parts = append(a.Parts, Span{at, at})
			}
			a.Parts[len(a.Parts)-1].To = at + letter
			a.To = at + letter
		}
		in = speaks || r == 'c' || in && r == 'A' && strings.ContainsRune(drawing[i:], 'c')
		if !speaks && r != 'c' && r != 'A' {
			in = false
		}
	}
	t.Ended, t.By = time.Duration(len(drawing))*letter, "caller"
	return t
}

func TestYield(t *testing.T) {
	for name, tt := range map[string]struct {
		drawing         string
		over, yielded   bool
		again           bool
		silent, resumed time.Duration
		stale           int
	}{
		"falls silent, and answers": {"AAAAABCCCC------AAAA", true, true, true, 100 * time.Millisecond, 600 * time.Millisecond, 0},
		"falls silent for good":     {"AAAAABBBCC----------", true, true, false, 300 * time.Millisecond, 0, 0},
		"goes on":                   {"AAAAABBBBBAAAAA-----", true, false, false, 0, 0, 0},
		"comes back into it":        {"AAAAABCCCBBCC-------", true, true, false, 100 * time.Millisecond, 0, 10},
		"was silent anyway":         {"AAAA-----CCCC----AAA", false, false, false, 0, 0, 0},
		"stops and goes on":         {"AAAAABCCC---AAAAAA--", true, true, true, 100 * time.Millisecond, 300 * time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := tape(tt.drawing, Interrupt).yield(0)
			if got.over != tt.over || tt.over && (got.yielded != tt.yielded || got.again != tt.again || got.silent != tt.silent ||
				got.resumed != tt.resumed || got.stale != tt.stale) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// Keys are judged by what was said until the next key, words before a beep need no reply, and speech over hold music
// is noticed.
func TestCalled(t *testing.T) {
	list, err := Read("a.yaml", []byte("called_by: desk\nsteps:\n  - say: press 2\n  - expect: {keys: \"2\"}\n  - music: 1s\n"+
		"  - expect: {no_reply_during: music}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for keys, want := range map[string]string{"2": "", "21": "", "12": `keys "2"`, "": `keys "2"`} {
		line := tape("----CCCC--------CCCCCCC-----", Say, Music)
		for i, key := range keys {
			line.Keys = append(line.Keys, Key{time.Duration(900+800*i) * time.Millisecond, string(key)})
		}
		failed := (&Result{Verdicts: list[0].Judge(line, &Record{})}).Failed()
		if got := fmt.Sprint(failed); (want == "") != (len(failed) == 0) || !strings.Contains(got, want) {
			t.Errorf("keys %q: %s", keys, got)
		}
		if got := line.Replies(); len(got) != 0 {
			t.Errorf("replies %+v", got)
		}
	}
	line := tape("----CCCC--------CCCBBCC-----", Say, Music)
	line.Keys = []Key{{900 * time.Millisecond, "2"}}
	if got := fmt.Sprint((&Result{Verdicts: list[0].Judge(line, &Record{})}).Failed()); !strings.Contains(got, "no reply during the music") {
		t.Errorf("over the music: %s", got)
	}
}

func TestFigures(t *testing.T) {
	c := &Case{Channel: Call}
	for name, tt := range map[string]struct {
		drawing string
		want    string
	}{
		"quick reply":       {"AAAA----CCCC----AAAA-------", "replies [400ms] cut-offs 0 missed 0 dead 400ms"},
		"slow reply":        {"AAAA----CCCC-------------------------AAAA-------", "replies [2.5s] cut-offs 0 missed 0 dead 2.5s"},
		"no reply":          {"AAAA----CCCC----------------", "replies [] cut-offs 0 missed 1 dead 0s"},
		"first of two lost": {"AAAA----CCCC--------CCCC----AAAA", "replies [400ms] cut-offs 0 missed 1 dead 800ms"},
		"cut off":           {"AAAA----CCcAcCC----AAAA-------", "replies [400ms] cut-offs 1 missed 0 dead 400ms"},
		"pause respected":   {"AAAA----CCcccCC----AAAA-------", "replies [400ms] cut-offs 0 missed 0 dead 400ms"},
	} {
		t.Run(name, func(t *testing.T) {
			f := c.Figures(tape(tt.drawing), &Record{})
			got := fmt.Sprintf("replies %v cut-offs %d missed %d dead %v", f.Replies, f.Cutoffs, f.Missed, f.DeadAir)
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	record := func(fn func(*Record)) *Record {
		r := &Record{EndedReason: "customer_hangup", TotalCost: 0.02, Variables: map[string]any{"party": 3.0, "name": "Ana"},
			Turns: []Turn{{Speaker: "assistant", Text: "Hello, this is the bakery."},
				{Speaker: "customer", Text: "one two tree", StartedAtMS: 820},
				{Speaker: "assistant", Text: "Your table is booked.", StartedAtMS: 1600}},
			FunctionCalls: []ToolCall{{Name: "book", Arguments: json.RawMessage(`{"party":2}`), AtMS: 1500}}}
		if fn != nil {
			fn(r)
		}
		return r
	}
	told := func(r *Record) {
		for kind, way := range map[string]string{"call.completed": "outbound", "call.inbound.completed": "inbound"} {
			r.Webhooks = append(r.Webhooks,
				map[string]any{"event": kind, "type": way, "extracted_variables": map[string]any{"party": 3.0, "name": "Ana"}})
		}
	}
	const talk = "AAAA----CCCC----AAAA----------"
	for name, tt := range map[string]struct {
		drawing string
		kinds   []Kind
		step    string // after the first act
		more    string
		record  func(*Record)
		fails   string // "" if it passes
	}{
		"tool":            {step: `expect: {tool: "book{party: 2}"}`},
		"other arguments": {step: `expect: {tool: "book{party: 3}"}`, fails: `tool book{party: 3}; called book{"party":2}`},
		"other tool":      {step: `expect: {tool: cancel}`, fails: "tool cancel; called book"},
		"twice":           {step: `expect: {tool: [book, book]}`, fails: "tool book; called book"},
		"tool of a later turn": {drawing: "AAAA----CCCC----AAAA----CCCC------", step: `expect: {tool: book}`, more: "",
			record: func(r *Record) { r.FunctionCalls[0].AtMS = 2900 },
			fails:  "tool book; no tool was called then; in other turns book{\"party\":2} at 2900 ms"},
		"no tool":     {step: `expect: {no_tool: cancel}`},
		"a tool":      {step: `expect: {no_tool: true}`, fails: "no tool; called book"},
		"once in all": {step: `expect: {says: booked}`, more: "end: {tools: [book]}"},
		"called twice": {step: `expect: {says: booked}`, more: "end: {tools: [book]}",
			record: func(r *Record) { r.FunctionCalls = append(r.FunctionCalls, r.FunctionCalls[0]) }, fails: "tools called: book"},
		"says":             {step: `expect: {says: your table}`},
		"says something":   {step: `expect: {says: goodbye}`, fails: `says "goodbye"; "Your table is booked."`},
		"says not":         {step: `expect: {says_not: /gluten/}`},
		"says it":          {step: `expect: {says_not: booked}`, fails: `says not "booked"`},
		"understood":       {step: `expect: {heard: one two}`},
		"misunderstood":    {step: `expect: {heard: three}`, fails: `understood "three"; "one two tree"`},
		"in time":          {step: `expect: {reply_within: 400ms}`},
		"late":             {step: `expect: {reply_within: 300ms}`, fails: "reply within 300 ms; it took 400 ms"},
		"heard in time":    {step: `hear: your table within 400ms`},
		"heard late":       {step: `hear: your table within 350ms`, fails: `within 350 ms of the caller's last word; it took 400 ms`},
		"not heard":        {step: `hear: goodbye`, fails: `hear "goodbye"; "Your table is booked."`},
		"variables":        {step: `hear: reply`, more: `end: {variables: {party: 3, name: ana}}`},
		"wrong variable":   {step: `hear: reply`, more: `end: {variables: {party: 4}}`, fails: "party is 4; 3"},
		"missing variable": {step: `hear: reply`, more: `end: {variables: {phone: /1/}}`, fails: "phone is /1/; <nil>"},
		"cheap":            {step: `hear: reply`, more: `end: {cost_below: 0.03}`},
		"dear":             {step: `hear: reply`, more: `end: {cost_below: 0.02}`, fails: "costs less than 0.02; 0.0200"},
		"reason":           {step: `hear: reply`, more: `end: {reason: customer_hangup}`},
		"other reason":     {step: `hear: reply`, more: `end: {reason: assistant_hangup}`, fails: "ends with assistant_hangup; customer_hangup"},
		"broken": {step: `hear: reply`, record: func(r *Record) { r.EndedReason = "provider_failure" },
			fails: "a call without a failure"},
		"webhook": {step: `hear: reply`, more: `end: {webhook: true}`, record: told},
		"webhook with fields": {step: `hear: reply`,
			more: `end: {webhook: {event: call.inbound.completed, extracted_variables: {party: 3}}}`, record: told},
		"fields of two events": {step: `hear: reply`, more: `end: {webhook: {event: call.completed, type: inbound}}`, record: told,
			fails: `call.completed with type "outbound"`},
		"no webhook": {step: `hear: reply`, more: `end: {webhook: true}`, record: func(r *Record) { r.Webhooks = []map[string]any{} },
			fails: "a webhook is sent; no event is sent: the assistant has no webhook for the end of such a call"},
		"quiet end": {step: `hear: reply`, more: `end: {webhook: false}`, record: func(r *Record) { r.Webhooks = []map[string]any{} }},
		"told end":  {step: `hear: reply`, more: `end: {webhook: false}`, record: told, fails: "no webhook is sent; call."},
		"not evaluated": {step: `hear: reply`, more: `end: {webhook: false}`,
			fails: "no webhook is sent; the server has not evaluated the call in time"},
		"budget": {step: `hear: reply`,
			more: `budget: {reply_p95: 400ms, false_cutoffs: 0, dead_air: 1s, greeting: 100ms, misheard: 40%}`},
		"budget passed": {step: `hear: reply`, more: `budget: {reply_p95: 399ms}`, fails: "replies' p95 at most 399 ms; 400 ms"},
		"misheard":      {step: `hear: reply`, more: `budget: {misheard: 30%}`, fails: "at most 30 % of words misheard; 33 %"},
		"silent": {drawing: "AAAAAABCCC----AAAA------", kinds: []Kind{Interrupt}, step: `expect: {silent_within: 150ms, stale_packets: 0}`,
			record: func(r *Record) { r.Turns[0].Interrupted = true }},
		"silent for a while": {drawing: "AAAAAABCCC----AAAA------", kinds: []Kind{Interrupt}, step: `expect: {silent_within: 150ms}`,
			fails: "silent within 150 ms; it fell silent and then went on"},
		"silent late": {drawing: "AAAAAABBBC----AAAA------", kinds: []Kind{Interrupt}, step: `expect: {silent_within: 150ms}`,
			record: func(r *Record) { r.Turns[0].Interrupted = true }, fails: "silent within 150 ms; it took 300 ms"},
		"not silent": {drawing: "AAAAAABBBBAAAAAAA--------", kinds: []Kind{Interrupt}, step: `expect: {silent_within: 150ms}`,
			fails: "silent within 150 ms; it went on"},
		"stale": {drawing: "AAAAAABCCCB---AAAA------", kinds: []Kind{Interrupt}, step: `expect: {stale_packets: 0}`,
			fails: "at most 0 stale packets; 5"},
		"resumes":     {drawing: "AAAAAABCC---AAAA------", kinds: []Kind{Backchannel}, step: `expect: {resumes_within: 400ms}`},
		"never stops": {drawing: "AAAAAABBBAAAAAAA------", kinds: []Kind{Backchannel}, step: `expect: {resumes_within: 400ms}`},
		"resumes late": {drawing: "AAAAAABCC------AAAA------", kinds: []Kind{Backchannel}, step: `expect: {resumes_within: 400ms}`,
			fails: "resumes within 400 ms; it took 600 ms"},
		"doesn't resume": {drawing: "AAAAAABCC----------------", kinds: []Kind{Backchannel}, step: `expect: {resumes_within: 400ms}`,
			fails: "it did not go on"},
		"endless voice": {drawing: "AAAAAABBBBAAAAAAA", kinds: []Kind{Interrupt}, step: `expect: {silent_within: 900ms}`,
			record: func(r *Record) { r.Turns[0].Interrupted = true }, fails: "it went on"},
		"voice until the end": {drawing: "AAAAAABBB", kinds: []Kind{Interrupt}, step: `expect: {silent_within: 900ms}`,
			record: func(r *Record) { r.Turns[0].Interrupted = true }, fails: "it went on"},
		"between sentences": {drawing: "AAAAAABCBBBBBAAAAAAA", kinds: []Kind{Interrupt}, step: `expect: {silent_within: 900ms}`,
			record: func(r *Record) { r.Turns[0].Interrupted = true }, fails: "it went on"},
		"reply after the pause": {drawing: "AAAA----CCccCBCC----AAAA----", step: `expect: {no_reply_during: pause}`},
		"reply in the pause": {drawing: "AAAA----CCcAcCC----AAAA----", step: `expect: {no_reply_during: pause}`,
			fails: "no reply during the pause"},
		"quiet in the pause": {drawing: "AAAA----CCcccCC----AAAA----", step: `expect: {no_reply_during: pause}`},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := Read("a.yaml", []byte("call: desk\nsteps:\n  - say: one two three\n  - "+tt.step+"\n"+tt.more))
			if err != nil {
				t.Fatal(err)
			}
			if tt.drawing == "" {
				tt.drawing = talk
			}
			line := tape(tt.drawing, tt.kinds...)
			var failed []string
			for _, v := range list[0].Judge(line, record(tt.record)) {
				if !v.OK {
					failed = append(failed, v.What+"; "+v.Got)
				}
			}
			got := strings.Join(failed, "\n")
			if tt.fails == "" && got != "" || !strings.Contains(got, tt.fails) || tt.fails != "" && len(failed) != 1 {
				t.Errorf("failed %q, want %q", got, tt.fails)
			}
		})
	}
}

// A case that takes longer than its limit has failed, also when nothing was missed.
func TestLimitPassed(t *testing.T) {
	list, err := Read("a.yaml", []byte("call: desk\nlimit: 2s\nsteps:\n  - say: hello\n"))
	if err != nil {
		t.Fatal(err)
	}
	line := tape("AAAA----CCCC--------AAAA")
	line.By = "limit"
	failed := (&Result{Verdicts: list[0].Judge(line, &Record{})}).Failed()
	if got := fmt.Sprint(failed); len(failed) != 1 || !strings.Contains(got, "the whole case within 2000 ms (limit)") {
		t.Errorf("%s", got)
	}
}

func TestMissed(t *testing.T) {
	list, err := Read("a.yaml", []byte("call: desk\nsteps:\n  - say: hello\n  - hear: reply\n  - say: goodbye\n"))
	if err != nil {
		t.Fatal(err)
	}
	line := tape("AAAA----CCCC----------")
	line.Missed = []int{1}
	got := list[0].Judge(line, &Record{EndedReason: "customer_hangup"})
	if len(got) != 1 || got[0].OK || got[0].Line != 4 || !strings.Contains(got[0].Got, "no reply came to") {
		t.Errorf("%+v", got)
	}
}

func TestPassHat(t *testing.T) {
	for _, tt := range []struct {
		c, n, k int
		want    string
	}{{10, 10, 5, "1.000"}, {9, 10, 1, "0.900"}, {9, 10, 2, "0.800"}, {5, 10, 6, "0.000"}, {0, 3, 1, "0.000"}} {
		if got := fmt.Sprintf("%.3f", PassHat(tt.c, tt.n, tt.k)); got != tt.want {
			t.Errorf("%d of %d passed: pass^%d is %s, want %s", tt.c, tt.n, tt.k, got, tt.want)
		}
	}
}
