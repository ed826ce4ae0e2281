package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The commands of docs/first-five-minutes.md do what the page says they do.
func TestFirstFiveMinutes(t *testing.T) {
	share(t, call)
	p := start(t)
	page, err := os.ReadFile("../docs/first-five-minutes.md")
	if err != nil {
		t.Fatal(err)
	}
	script := strings.NewReplacer("http://127.0.0.1:8080/api", p.URL+"/api")
	shell := "set -e\nAPI=" + p.URL + "/api\nKEY='" + p.Key + "'\nUUID=" + p.AssistantUUID + "\n"
	var printed string
	ran, checked := 0, 0
	for _, block := range strings.Split(string(page), "\n```")[1:] {
		kind, text, _ := strings.Cut(block, "\n")
		switch kind {
		case "bash run":
			// Each block runs after a silent run of all the earlier ones, for the variables that they set; the page
			// has few commands.
			cmd := exec.Command("bash", "-c", shell+"echo ---- >&2\n"+script.Replace(text))
			var out, errs strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s%s\n%s", err, out.String(), errs.String(), text)
			}
			_, shown, _ := strings.Cut(errs.String(), "----\n")
			printed = out.String() + shown
			for line := range strings.Lines(text) {
				if name, _, ok := strings.Cut(line, "=$("); ok { // keep the variable for the later blocks
					shell += name + "=" + quoteLast(t, name, printed) + "\n"
				}
			}
			ran++
		case "json answer":
			if want := strings.TrimSpace(text); !strings.Contains(printed, want) {
				t.Errorf("the page promises %s\nand the answer was %s", want, printed)
			}
			checked++
		}
	}
	if ran < 7 || checked < 7 {
		t.Errorf("only %d commands were run and %d answers held against the page", ran, checked)
	}
}

// quoteLast finds in an answer the value that a variable of the page took from it.
func quoteLast(t *testing.T, name, printed string) string {
	t.Helper()
	key := map[string]string{"CONVERSATION": `"conversation_id":"`, "TOOL": `"id":`}[name]
	_, rest, ok := strings.Cut(printed, key)
	if !ok {
		t.Fatalf("no %s in %s", key, printed)
	}
	return strings.FieldsFunc(rest, func(r rune) bool { return r == '"' || r == ',' })[0]
}
