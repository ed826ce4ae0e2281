package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// written puts files into a new directory.
func written(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// What a file says of an assistant, and the assistant does not have, is reported with its line or by its name.
func TestRehearsalMistakes(t *testing.T) {
	share(t, call)
	const prompt = "system_prompt: You talk with {{who}}.\n"
	const say = "channel: chat\nsteps:\n  - say: hello\n"
	dir := written(t, map[string]string{
		"typo.assistant.yaml":   prompt + "inital_message: Hello.\n",
		"zone.assistant.yaml":   prompt + "timezone: Moon/Base\n",
		"tool.assistant.yaml":   prompt + "mid_call_tools:\n  - name: book\n    descripton: Books a table\n",
		"good.assistant.yaml":   prompt + "mid_call_tools:\n  - name: book\n    description: Books a table\n",
		"circle.assistant.yaml": prompt + "tools:\n  - {type: assistant_transfer, assistant: circle, description: The rest}\n",
		"reader.assistant.yaml": prompt + "knowledge: [none.txt]\n",
		"a.yaml":                "name: a\ncall: typo\n" + say,
		"b.yaml":                "name: b\ncall: zone\n" + say,
		"c.yaml":                "name: c\ncall: tool\n" + say,
		"d.yaml":                "name: d\ncall: good\nmock: {bok: {reply: x}}\n" + say,
		"e.yaml":                "name: e\ncall: good\nvariables: {whom: Ana}\n" + say,
		"f.yaml":                "name: f\ncall: circle\n" + say,
		"g.yaml":                "name: g\ncall: reader\n" + say,
	})
	printed, status := rehearse(t, dir, ".")
	for _, want := range []string{
		`typo.assistant.yaml:2: an assistant has no "inital_message": is it "initial_message"?`,
		"zone.assistant.yaml:2: The timezone field must be",
		`tool.assistant.yaml:4: a tool has no "descripton": is it "description"?`,
		"The assistant has no tool bok to answer for: it has book.",
		"The assistant uses no variable whom: it has who.",
		"circle.assistant.yaml: these assistants hand over to each other in a circle",
		"reader.assistant.yaml:2: none.txt: open ",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is not in", want)
		}
	}
	if status != 2 || strings.Contains(printed, "422") {
		t.Errorf("it ended with %d:\n%s", status, printed)
	}
}

// Tests have assistants that know documents, that hand over to others, and that are recorded; words are told in any language.
func TestRehearsalHouse(t *testing.T) {
	share(t, call)
	need(t, "flite", "espeak-ng")
	dir := written(t, map[string]string{
		"menu.txt": "Our pizza is free of gluten. The soup of the day is pumpkin.\n",
		"desk.assistant.yaml": "initial_message: Hello, this is the restaurant.\nsystem_prompt: You are the desk.\n" +
			"knowledge: menu.txt\nrecord: true\nmax_duration: 60\nwebhook_url: https://example.com/told\nis_webhook_active: true\n",
		"amt.assistant.yaml": "language: German\ninitial_message: Guten Tag, hier ist die Auskunft.\n" +
			"system_prompt: Wir haben montags von acht bis zwölf geöffnet.\n",
		"house.yaml": "name: knows\ncall: desk\nears: told\nsteps:\n  - hear: this is the restaurant\n  - say: Is there gluten in the pizza?\n" +
			"  - expect: {tool: search_knowledgebase, says: free of gluten}\n" +
			"end: {recorded: true, lasts_at_least: 2s, reason: customer_hangup, webhook: {event: call.completed, assistant: {name: desk}, " +
			"ended_reason: customer_hangup}}\nbudget: {words_per_minute: 60..400}\n" +
			"---\nname: hears German\ncall: amt\nears: told\ncaller: {voice: de}\nsteps:\n  - hear: greeting\n  - say: " +
			"Wann ist montags geöffnet?\n  - expect: {heard: montags}\n" +
			"end: {webhook: false}\n",
	})
	if printed, status := rehearse(t, dir, ".", "--parallel", "1"); status != 0 {
		t.Errorf("it ended with %d:\n%s", status, printed)
	}
}
