package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"parley/internal/ai/aitest"
	"parley/internal/testenv"
)

// rehearse runs parley test, and returns what it printed and its exit status.
func rehearse(t *testing.T, dir string, args ...string) (printed string, status int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	for len(args) > 0 && strings.HasPrefix(args[len(args)-1], "PARLEY_") { // settings come last
		cmd.Env = append(cmd.Env, args[len(args)-1])
		args = args[:len(args)-1]
	}
	cmd.Args = append([]string{binary, "test"}, args...)
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), exit.ExitCode()
	} else if err != nil {
		t.Error(err)
	}
	return string(out), 0
}

// The example suite passes, and so do calls to the recognizer itself.
func TestRehearsalExamples(t *testing.T) {
	share(t, machine)
	need(t, "flite", "pocketsphinx_batch")
	// the recognizer's at most two at once
	for suite, together := range map[string]string{"examples/tests": "10", "e2e/testdata/rehearsal": "2"} {
		if printed, status := rehearse(t, "..", suite, "--parallel", together, "--out", t.TempDir()); status != 0 {
			t.Errorf("it ended with %d:\n%s", status, printed)
		} else {
			t.Logf("\n%s", printed)
		}
	}
}

var fileOf = regexp.MustCompile("(?s)```yaml\n# file: (\\S+)\n(.*?)```")

// The example in docs/testing.md works as described: the test passes, and fails with a broken assistant.
func TestRehearsalDocs(t *testing.T) {
	share(t, call)
	need(t, "flite")
	page, err := os.ReadFile("../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	dir, files := t.TempDir(), 0
	for _, m := range fileOf.FindAllStringSubmatch(string(page), -1) {
		files++
		if err := os.WriteFile(filepath.Join(dir, m[1]), []byte(m[2]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if files != 2 {
		t.Fatalf("the page has %d files", files)
	}
	file := filepath.Join(dir, "bakery.assistant.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	broken := strings.Replace(string(text), "from 7 am", "from 8 am", 1)
	if err := os.WriteFile(filepath.Join(other, "bakery.assistant.yaml"), []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() {
		if printed, status := rehearse(t, dir, "."); status != 0 {
			t.Errorf("it ended with %d:\n%s", status, printed)
		}
	})
	printed, status := rehearse(t, other, "saturday.yaml")
	for _, ending := range []string{"wav", "svg"} {
		if _, err := os.Stat(filepath.Join(other, "parley-test/says-when-it-is-open."+ending)); err != nil {
			t.Error(err)
		}
	}
	if status != 1 || !strings.Contains(printed, `saturday.yaml:7: expected: says "7 am"; "We are open Monday to Saturday from 8 am`) ||
		!strings.Contains(printed, "again: parley test saturday.yaml --only 'says when it is open' --seed 1") {
		t.Errorf("with another hour it ended with %d:\n%s", status, printed)
	}
	if err := os.WriteFile(filepath.Join(dir, "wrong.yaml"), []byte("call: bakery\nsteps:\n  - sya: hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if printed, status := rehearse(t, dir, "wrong.yaml"); status != 2 || !strings.Contains(printed, `wrong.yaml:3: a step has no "sya"`) {
		t.Errorf("a mistake ended with %d:\n%s", status, printed)
	}
}

// A model plays the caller until it hangs up, by telephone and in a chat, and judges; the server that is started does
// not know that model.
func TestRehearsalPersona(t *testing.T) {
	share(t, call)
	need(t, "flite")
	v, dir := aitest.NewServer(t), t.TempDir()
	v.Script(aitest.Behaviour{Text: "When are you open on Saturday?"}, aitest.Behaviour{Text: "Thank you, goodbye. [hang up]"},
		aitest.Behaviour{Text: `{"why":"It never asks for a name.","met":false}`},
		aitest.Behaviour{Text: "What does a croissant cost?"}, aitest.Behaviour{Text: "[hang up]"})
	if err := os.CopyFS(dir, os.DirFS("../examples/tests")); err != nil {
		t.Fatal(err)
	}
	const persona = "name: hurries\ncall: bakery\nears: told\ncaller: {persona: You are Ana and in a hurry.}\n" +
		"judge: The assistant asks for a name\nend: {reason: customer_hangup}\n" +
		"---\nname: writes\ncall: bakery\nchannel: chat\ncaller: {persona: You are Bo.}\nsteps:\n  - say: Hello there\n" +
		"  - expect: {says: croissant}\n"
	if err := os.WriteFile(filepath.Join(dir, "persona.yaml"), []byte(persona), 0o600); err != nil {
		t.Fatal(err)
	}
	printed, status := rehearse(t, dir, "persona.yaml", "--parallel", "1", "--model", "openai/"+aitest.ModelName,
		"PARLEY_OPENAI_BASE_URL="+v.URL, "PARLEY_OPENAI_CHAT_MODEL="+aitest.ModelName)
	for _, want := range []string{"persona.yaml:5: expected: judge: The assistant asks for a name; It never asks for a name.",
		"Customer: When are you open on Saturday?\n", "AI: We are open Monday to Saturday from 7 am", "Customer: Thank you, goodbye.",
		"Customer: What does a croissant cost?\n", "AI: A loaf of sourdough costs 6 dollars, a croissant 3 dollars."} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is not in", want)
		}
	}
	if n := v.Count(); status != 1 || n != 5 || strings.Count(printed, "expected:") != 2 {
		t.Errorf("it ended with %d, the model was asked %d times:\n%s", status, n, printed)
	}
}

// A server that is not Parley is called by its SIP address and judged by its sound alone.
func TestRehearsalStranger(t *testing.T) {
	share(t, call)
	need(t, "flite")
	need(t, "sipp")
	first := testenv.Ports(t, 12)
	ports := [2]int{first, first + 10} // sipp takes some above the second for sound
	echo := exec.CommandContext(t.Context(), "sipp", "-sn", "uas", "-i", "127.0.0.1", "-p", strconv.Itoa(ports[0]), "-mi", "127.0.0.1",
		"-mp", strconv.Itoa(ports[1]), "-rtp_echo", "-nostdin")
	if err := echo.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { echo.Process.Kill(); echo.Wait() }()
	file := filepath.Join(t.TempDir(), "echo.yaml")
	text := fmt.Sprintf("call: sip:echo@127.0.0.1:%d\nsteps:\n  - say: Hello there <pause 800ms> are you an echo?\n"+
		"  - wait: 300ms\n  - hang_up\nbudget: {greeting: 10s, dead_air: 100ms}\n", ports[0])
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	printed, status := rehearse(t, filepath.Dir(file), "echo.yaml", "--json", "echo.json")
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(file), "echo.json"))
	var got struct {
		Cases []struct {
			Unknown []string
			Figures struct {
				GreetingMS int `json:"greeting_ms"`
				Cutoffs    int `json:"false_cutoffs"`
			}
		}
	}
	if err != nil || json.Unmarshal(raw, &got) != nil || status != 0 || len(got.Cases) != 1 || len(got.Cases[0].Unknown) == 0 ||
		got.Cases[0].Figures.GreetingMS < 2500 || got.Cases[0].Figures.Cutoffs != 1 || // an echo speaks while the caller speaks
		!strings.Contains(printed, "only the sound is known") {
		t.Errorf("it ended with %d, %v, %+v:\n%s", status, err, got, printed)
	}
}

// rehearsalFaults are mistakes in the assistants of the example suite: the old text, the new text in its place, and
// the case of the suite that must fail. Faults of the program that the suite must catch are
// those of scripts/faults named rehearsal-*.
var rehearsalFaults = []struct{ name, test, old, new string }{
	{"another opening hour", "opening-hours", "from 7 am", "from 8 am"},
	{"no opening hours", "opening-hours", "  We are open Monday to Saturday from 7 am to 6 pm, and closed on Sundays.\n", ""},
	{"another company greets", "opening-hours", "this is the bakery. How", "this is the butcher. How"},
	{"no greeting", "opening-hours", "initial_message: Hello, this is the bakery. How can I help you?", "initial_message: ''"},
	{"waits for the customer", "opening-hours", "endpoint_type: ai", "wait_for_customer: true"},
	{"slow to take its turn", "opening-hours", "endpoint_type: ai", "endpoint_type: vad\nendpoint_sensitivity: 0"},
	{"cuts in at a pause", "pause", "endpoint_type: ai", "endpoint_type: vad\nendpoint_sensitivity: 5"},
	{"another price", "interruption", "a croissant 3 dollars", "a croissant 4 dollars"},
	{"can't be interrupted", "interruption", "endpoint_type: ai", "allow_interruptions: false"},
	{"many words interrupt", "interruption", "endpoint_type: ai", "endpoint_type: ai\nmin_interrupt_words: 10"},
	{"fewer guests", "backchannel", "forty guests", "fifty guests"},
	{"speaks slowly", "backchannel", "endpoint_type: ai", "endpoint_type: ai\nspeech_speed: 0.7"},
	{"no weekday", "weekday", "  Today is {{current_weekday}}.\n", ""},
	{"wrong variable", "weekday", "{{current_weekday}}", "{{weekday}}"},
	{"another time zone", "weekday", "timezone: Europe/Berlin", "timezone: America/New_York"},
	{"another street", "address", "12 Market Street", "12 Mark Street"},
	{"no tool to book", "chat", "name: book_table", "name: cancel_order"},
	{"another parameter", "chat", "name: party, type: number, description: How many people, required",
		"name: guests, type: number, description: How many people, required"},
	{"a parameter as text", "pause", "name: party, type: number, description: How many people, required",
		"name: day, type: string, description: Which date, required"},
	{"nothing found out", "pause", "{name: party, type: number, description: How many people the",
		"{name: guest, type: number, description: How many people the"},
	{"a wrong type found out", "pause", "{name: party, type: number, description: How many people the",
		"{name: party, type: bool, description: How many people the"},
	{"can't hang up", "ends", "tools:\n  - type: end_call\n    description: The caller asks to end the call\n", "tools: []\n"},
	{"asks too soon", "thinks", "endpoint_type: ai", "endpoint_type: ai\nmax_silence_duration: 1"},
	{"says it is busy otherwise", "slow-tool", "endpoint_type: ai",
		"endpoint_type: ai\nfillers: 1\nfiller_config: {neutral: [Hm.], question: [Hm.], positive: [Hm.], negative: [Hm.]}"},
	{"yesterday's price", "thinks", "sourdough costs 6 dollars", "sourdough costs 5 dollars"},
	{"another message for machines", "machine", "bakery. Your cake is ready, and", "bakery. Your bread is ready, and"},
	{"no message for machines", "machine",
		"voice_mail_message: This is the bakery. Your cake is ready, and we are open until 6 pm. Goodbye.\n", ""},
	{"talks to machines", "machine", "ringing_time: 3", "ringing_time: 3\nend_call_on_voicemail: 0"},
	{"says something else to people", "person", "Your cake is ready. When", "Your cake is not ready. When"},
	{"presses no keys", "menu", "tools:\n  - type: dtmf_input\n    description: A recorded menu says which key to press\n", "tools: []\n"},
}

// The suite catches each fault in an assistant.
func TestRehearsalFaults(t *testing.T) {
	share(t, call)
	need(t, "flite")
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("../examples/tests", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	dir, called := t.TempDir(), regexp.MustCompile("(?m)^call(?:ed_by)?: (.*)$")
	for i, f := range rehearsalFaults {
		at := filepath.Join(dir, fmt.Sprintf("%02d", i))
		if err := os.Mkdir(at, 0o700); err != nil {
			t.Fatal(err)
		}
		test := read(f.test + ".yaml")
		file := called.FindStringSubmatch(test)[1] + ".assistant.yaml"
		assistant := read(file)
		if strings.Count(assistant, f.old) != 1 {
			t.Errorf("%s: %q is not once in the assistant", f.name, f.old)
		}
		for name, text := range map[string]string{file: strings.Replace(assistant, f.old, f.new, 1),
			f.test + ".yaml": regexp.MustCompile("(?m)^name: .*$").ReplaceAllLiteralString(test, "name: "+f.name)} {
			if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	report := filepath.Join(dir, "report.json")
	printed, status := rehearse(t, dir, ".", "--parallel", "40", "--json", report, "--out", filepath.Join(dir, "out"))
	var got struct {
		Cases []struct{ Name, State string }
	}
	if raw, err := os.ReadFile(report); err != nil || json.Unmarshal(raw, &got) != nil || status != 1 ||
		len(got.Cases) != len(rehearsalFaults) {
		t.Fatalf("it ended with %d, %d of %d results, %v:\n%s", status, len(got.Cases), len(rehearsalFaults), err, printed)
	}
	for _, c := range got.Cases {
		if c.State != "fail" {
			t.Errorf("%s: %s", c.Name, c.State)
		}
	}
	if t.Failed() {
		t.Log(printed)
	}
}
