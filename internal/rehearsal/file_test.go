package rehearsal

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// whole is a case that uses every key.
const whole = `# the issue's own example, with more
name: books a table
call: front-desk                      # assistant by name, id or file
now: 2026-06-12T09:00 Europe/Berlin
variables: {who: Ana}
line: {codec: pcmu, loss: 2%, jitter: 40ms, echo: -18dB, noise: street@12dB}
caller: {voice: slt, pace: 0.9}
mock: {book: {reply: {ok: true}, after: 1.5s}, look: real, gone: {fails: no such table}}
matrix: {noise: [none, street@12dB], seed: 1..20}
steps:
  - hear: greeting within 400ms
  - say: "I need... <pause 900ms> a table for two"
  - expect: {no_reply_during: pause, tool: "book{party: 2}"}
  - interrupt: "wait, three" at reply+600ms
  - expect: {silent_within: 150ms, stale_packets: 0, tool: "book{party: 3}"}
  - backchannel: "mm-hm" at reply+1s   # listens
  - expect: {resumes_within: 400ms}
  - press: "1#"
  - wait: 1s
  - hear: /goodbye|bye/i within 2s
  - hang_up: at reply+2s
end: {reason: assistant_hangup, variables: {party: 3}, cost_below: 0.05, webhook: {event: call.completed}}
budget: {reply_p95: 900ms, false_cutoffs: 0}
`

func TestRead(t *testing.T) {
	list, err := Read("a.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 40 {
		t.Fatalf("the matrix makes %d cases", len(list))
	}
	c := list[39]
	if got := strings.Join(c.Values, " "); got != "noise=street@12dB seed=20" || c.Seed != 20 || c.Sound.Noise != (Noise{"street", 12}) {
		t.Errorf("the last one is %q, seed %d, noise %v", got, c.Seed, c.Sound.Noise)
	}
	if list[0].Sound.Noise.Place != "" || c.Sound.Loss != 0.02 || c.Sound.Jitter != 40*time.Millisecond || c.Sound.Echo != -18 {
		t.Errorf("lines %+v and %+v", list[0].Sound, c.Sound)
	}
	if got := c.Now.UTC().Format(time.RFC3339); got != "2026-06-12T07:00:00Z" {
		t.Errorf("now is %s", got)
	}
	if len(c.Mocks) != 3 || c.Mocks[0].Reply != `{"ok":true}` || c.Mocks[0].After != 1500*time.Millisecond || !c.Mocks[1].Real ||
		c.Mocks[2].Fails != "no such table" {
		t.Errorf("mocks %+v", c.Mocks)
	}
	s := c.Steps
	if s[0].Within != 400*time.Millisecond || s[0].Want != nil || len(s[1].Parts) != 2 ||
		s[1].Parts[1] != (Part{900 * time.Millisecond, "a table for two"}) {
		t.Errorf("steps %+v", s[:2])
	}
	if s[3].Kind != Interrupt || s[3].Text != "wait, three" || s[3].Offset != 600*time.Millisecond || s[3].Line != 14 {
		t.Errorf("the interruption is %+v", s[3])
	}
	if s[5].Kind != Backchannel || s[5].Offset != time.Second || s[7].Text != "1#" || s[8].Wait != time.Second ||
		!s[10].Timed || s[10].Offset != 2*time.Second {
		t.Errorf("steps %+v", s[5:])
	}
	if !s[9].Want.In("Well, Goodbye!") || s[9].Want.In("hello") || s[9].Within != 2*time.Second {
		t.Errorf("hear %+v", s[9])
	}
	if tool := s[4].Expect.Tools[0]; !tool.Matches("book", []byte(`{"party":3,"day":"monday"}`)) ||
		tool.Matches("book", []byte(`{"party":2}`)) || tool.Matches("look", []byte(`{"party":3}`)) {
		t.Errorf("the tool is %+v", tool)
	}
	if c.End.Reason != "assistant_hangup" || *c.End.CostBelow != 0.05 || *c.Budget.FalseCutoffs != 0 {
		t.Errorf("end %+v, budget %+v", c.End, c.Budget)
	}
}

// The called party is a machine, a call screener, or a busy line.
func TestReadCalled(t *testing.T) {
	list, err := Read("a.yaml", []byte("called_by: desk\npickup: 2s\nsteps:\n  - say: {say: leave a message, voice: awb}\n  - beep\n"+
		"  - music: 3s\n  - expect: {no_reply_during: music, keys: \"2\"}\n---\ncalled_by: desk\npickup: busy\n"))
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	c := list[0]
	if !c.Outbound || c.Assistant != "desk" || c.Pickup.After != 2*time.Second || c.Steps[0].Voice != "awb" || c.Steps[1].Kind != Beep ||
		c.Steps[2].Wait != 3*time.Second || c.Steps[3].Expect.Quiet != "music" || list[1].Pickup.Refuse != 486 {
		t.Errorf("read as %+v, %+v", c, list[1])
	}
}

// Dates and numbers are compared as they are written.
func TestWritten(t *testing.T) {
	list, err := Read("a.yaml",
		[]byte("call: desk\nmock: {day: {reply: {date: 2026-06-12, zip: 01234, n: 2.50, ok: true, list: [1, 2026-01-02]}}}\n"+
			"steps:\n  - say: hello\n  - expect: {tool: \"book{date: 2026-06-12, zip: 01234, at: 2026-06-12T09:00:00Z, phone: +49301234, n: 2}\"}\n"+
			"end: {variables: {day: 2026-06-12, code: 007}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := list[0].Mocks[0].Reply; got != `{"date":"2026-06-12","list":[1,"2026-01-02"],"n":2.5,"ok":true,"zip":"01234"}` {
		t.Errorf("the mock answers %s", got)
	}
	tool := list[0].Steps[1].Expect.Tools[0]
	for arguments, want := range map[string]bool{
		`{"date":"2026-06-12","zip":"01234","at":"2026-06-12T09:00:00Z","phone":"+49301234","n":2}`:   true,
		`{"date":"2026-06-12","zip":"01234","at":"2026-06-12T09:00:00Z","phone":"+49301234","n":"2"}`: true,
		`{"date":"2026-06-13","zip":"01234","at":"2026-06-12T09:00:00Z","phone":"+49301234","n":2}`:   false,
		`{"date":"2026-06-12","zip":"1234","at":"2026-06-12T09:00:00Z","phone":"+49301234","n":2}`:    false,
		`{"date":"2026-06-12","zip":668,"at":"2026-06-12T09:00:00Z","phone":"+49301234","n":2}`:       false,
		`{"date":"2026-06-12","zip":"01234","at":"2026-06-12T10:00:00Z","phone":"+49301234","n":2}`:   false,
	} {
		if tool.Matches("book", []byte(arguments)) != want {
			t.Errorf("%s: %t", arguments, !want)
		}
	}
	if v := list[0].End.Variables; !same("2026-06-12", v["day"]) || !same("007", v["code"]) || same("7", v["code"]) {
		t.Errorf("variables %v", v)
	}
}

// least returns a minimal case with one more line.
func least(line string) string { return "call: desk\nsteps:\n  - say: hello\n" + line }

// Every mistake is reported with its line, and with what would be allowed.
func TestMistakes(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		line int
		says string
	}{
		"unknown key":         {least("steps_: 1"), 4, `a case has no "steps_": allowed are name, call, called_by`},
		"twice":               {least("call: other"), 4, `has "call" twice`},
		"no call":             {"steps:\n  - say: hello", 1, `a case needs "call"`},
		"call and called_by":  {least("called_by: desk"), 4, "not both"},
		"pickup of a caller":  {least("pickup: 2s"), 1, "it goes with called_by"},
		"pickup":              {"called_by: desk\npickup: soon", 2, "is neither a time such as 2s, nor busy, declined or never"},
		"steps of nobody":     {"called_by: desk\npickup: busy\nsteps:\n  - say: hello", 1, "nobody answers this call"},
		"called in a chat":    {"called_by: desk\nchannel: chat\nsteps:\n  - say: hello", 1, "called_by needs a call"},
		"far address":         {"call: sip:a@192.0.2.1:5060\nsteps:\n  - say: hello", 1, "is not a SIP address on this machine"},
		"words of a stranger": {"call: sip:a@127.0.0.1\nsteps:\n  - hear: hello", 3, "only the sound is known"},
		"a stranger's tool":   {"call: sip:a@127.0.0.1\nsteps:\n  - say: hello\n  - expect: {tool: book}", 4, "only the sound is known"},
		"a stranger's cost":   {"call: sip:a@127.0.0.1\nsteps:\n  - say: hello\nend: {cost_below: 1}", 4, "only the sound is known"},
		"loud beep":           {least("  - beep: loud"), 4, "a beep is written alone"},
		"no steps":            {"call: desk", 1, `a case needs "steps"`},
		"steps as text":       {"call: desk\nsteps: hello", 2, "steps must be a list"},
		"unknown step":        {least("  - sya: hello"), 4, `a step has no "sya": allowed are hear, say, interrupt`},
		"two in a step":       {"call: desk\nsteps:\n  - say: hello\n    hear: reply", 4, "a step is one thing"},
		"no time":             {least("  - hear: reply within soon"), 4, `"soon" is no time such as 400ms`},
		"no moment":           {least("  - interrupt: wait"), 4, "interrupt needs a moment"},
		"wrong moment":        {least("  - interrupt: {say: wait, at: greeting+1s}"), 4, `"greeting+1s" is no moment such as reply+600ms`},
		"wrong tag":           {least("  - say: \"a <sigh> b\""), 4, "only a pause is known"},
		"no keys":             {least("  - press: hello"), 4, `"hello" are no keys`},
		"unknown expect":      {least("  - expect: {tol: book}"), 4, `expect has no "tol": allowed are tool, no_tool`},
		"tool":                {least("  - expect: {tool: \"book party\"}"), 4, "is not a call of a tool such as book{party: 2}"},
		"nothing expected":    {least("  - expect: {}"), 4, "expect checks nothing"},
		"no_tool false":       {least("  - expect: {no_tool: false}"), 4, `no_tool is true, the name of a tool or a list of names, not "false"`},
		"expect first":        {"call: desk\nsteps:\n  - expect: {says: hello}", 3, "this is the first one"},
		"press in a chat":     {"call: desk\nchannel: chat\nsteps:\n  - press: \"1\"", 4, "press needs a call, and this is a chat"},
		"after hang_up":       {least("  - hang_up: true\n  - say: hello"), 5, "nothing but expect can follow hang_up"},
		"codec":               {least("line: {codec: opus}"), 4, `"opus" is not known here: allowed are pcmu pcma g722`},
		"loss":                {least("line: {loss: 2}"), 4, `"2" is no share such as 2%`},
		"loud echo":           {least("line: {echo: 3dB}"), 4, "an echo is below it"},
		"noise":               {least("line: {noise: street}"), 4, `"street" is no noise such as street@12dB`},
		"reason":              {least("end: {reason: goodbye}"), 4, `"goodbye" is not known here: allowed are customer_hangup`},
		"webhook":             {least("end: {webhook: maybe}"), 4, "webhook must be true, false, or fields of the event that is sent"},
		"webhook of a chat":   {least("channel: chat\nend: {webhook: true}"), 1, "webhook, lasts_at_least and words_per_minute need a call"},
		"a stranger's hook":   {"call: sip:a@127.0.0.1\nsteps:\n  - say: hello\nend: {webhook: true}", 4, "only the sound is known"},
		"range":               {least("matrix: {seed: 3..1}"), 4, `"3..1" is not a range such as 1..20`},
		"axis":                {least("matrix: {prompt: [a]}"), 4, `matrix has no "prompt": allowed are seed, noise`},
		"value of an axis":    {least("matrix: {codec: [pcmu, opus]}"), 4, `"opus" is not known here`},
		"matrix to a chat":    {"call: desk\nsteps:\n  - press: \"1\"\nmatrix: {channel: [call, chat]}", 3, "press needs a call"},
		"zone":                {least("now: 2026-06-12T09:00 Berlin/Europe"), 4, "is no time zone such as Europe/Berlin"},
		"clock":               {least("now: nine"), 4, `"nine" is no time such as`},
		"mock":                {least("mock: {book: maybe}"), 4, "a mock is {reply: …"},
		"regular expression":  {least("  - hear: /(/"), 4, "is no regular expression"},
		"no words":            {least("  - hear: \"!\""), 4, "has no words"},
		"nothing said":        {least("  - say:"), 4, "one value is needed here"},
		"yaml":                {"call: desk\nsteps: [", 2, "this is not YAML"},
		"tab":                 {"call: desk\n\tsteps: 1", 2, "this is not YAML"},
		"nothing":             {"# nothing", 0, "there is no case in it"},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := Read("dir/a.yaml", []byte(tt.text))
			m, ok := errors.AsType[*Mistake](err)
			if !ok {
				t.Fatalf("read as %+v, %v", list, err)
			}
			if m.Line != tt.line || !strings.Contains(m.Text, tt.says) || m.File != "dir/a.yaml" {
				t.Errorf("said %v, want line %d and %q", err, tt.line, tt.says)
			}
		})
	}
}

func TestSeveral(t *testing.T) {
	list, err := Read("a.yaml", []byte(least("---")+"\n"+least("name: other")+"\n---\n"))
	if err != nil || len(list) != 2 || list[0].Name != "a" || list[1].Name != "other" {
		t.Errorf("%v %v", list, err)
	}
}

// No input makes the reader crash, and every error names the file.
func FuzzRead(f *testing.F) {
	f.Add(whole)
	f.Add(least("matrix: {seed: 1..3}"))
	f.Add("a: &a [*a]")
	f.Add("call: x\nsteps:\n - expect: {tool: \"a{\"}")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Read("a.yaml", []byte(text))
		if (err == nil) == (len(list) == 0) {
			t.Errorf("%d cases and %v", len(list), err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "a.yaml") {
			t.Errorf("said %v", err)
		}
	})
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"b.yaml": least(""), "desk.assistant.yaml": "name: Desk", "c.yml": least(""), ".d.yaml": "x",
		"e.txt": "x"} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := Load([]string{dir})
	if err != nil || len(list) != 2 || list[0].Name != "b" || list[1].Name != "c" {
		t.Errorf("%v %v", list, err)
	}
	if _, err := Load([]string{dir + "/none"}); err == nil {
		t.Error("a file that is not there was read")
	}
}
