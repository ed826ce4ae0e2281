package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// commands are those of the README's block of shell that has a word in it.
func commands(t *testing.T, with string) string {
	t.Helper()
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(page), "\n```bash\n")[1:] {
		if text, _, _ := strings.Cut(block, "\n```"); strings.Contains(text, with) {
			return text
		}
	}
	t.Fatalf("the README has no block with %q", with)
	return ""
}

// shell runs commands as the README's reader does, who has its variables.
func (p *program) shell(t *testing.T, text string) string {
	t.Helper()
	cmd := exec.Command("bash", "-c", "set -e\nAPI="+p.URL+"/api\nKEY='"+p.Key+"'\nJSON='Content-Type: application/json'\n"+text)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, text, out)
	}
	return string(out)
}

// The README's first call reminds somebody of an appointment.
func TestReadmeCall(t *testing.T) {
	share(t, recognizer)
	need(t, "curl", "flite", "pocketsphinx_batch")
	p := start(t, "PARLEY_SIP_LISTEN=off")
	said := p.shell(t, commands(t, "make_call"))
	l := &line{program: p}
	row := l.over(t)
	if !strings.Contains(row.Transcript, "your appointment on Friday at noon") {
		t.Errorf("nobody was reminded of the appointment:\n%s\n%s", row.Transcript, said)
	}
	if strings.Contains(row.Transcript, "Remind the customer") {
		t.Errorf("the customer was told a line of the prompt:\n%s", row.Transcript)
	}
}

// A model is chosen by an id that the look-up prints, and stays chosen.
func TestReadmeModel(t *testing.T) {
	share(t, call)
	need(t, "curl")
	p, _ := thinking(t, "PARLEY_SIP_LISTEN=off")
	text := commands(t, "llm_model_id\\\"")
	var models []struct {
		ID   int64
		Name string
	}
	p.call(t, "GET", "/user/assistants/models?type=llm", nil, &models)
	id := models[len(models)-1].ID
	said := p.shell(t, strings.Replace(text, "MODEL='…'", "MODEL="+itoa(id), 1))
	var a struct {
		LLMModelID int64 `json:"llm_model_id"`
	}
	p.call(t, "GET", "/user/assistant/"+itoa(p.Assistant), nil, &a)
	if a.LLMModelID != id || !strings.Contains(said, models[len(models)-1].Name) {
		t.Errorf("the assistant has model %d, not %d of\n%s", a.LLMModelID, id, said)
	}
}
