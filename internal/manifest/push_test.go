package manifest_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"parley/internal/manifest"
)

// dir is a folder of files by their paths.
func dir(files ...string) fstest.MapFS {
	d := fstest.MapFS{}
	for i := 0; i+1 < len(files); i += 2 {
		d[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	return d
}

const desk = "name: Desk\ntype: inbound\nmode: pipeline\nlanguage: en\nvoice: flite/rms\ntimezone: UTC\nllm_model: gpt-4o\n" +
	"system_prompt: Be kind.\n"

// shown is a plan as people see it.
func shown(t *testing.T, s *manifest.Server, files fstest.MapFS, prune bool) string {
	t.Helper()
	plan, err := planned(t, s, files, prune, nil)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	if err := plan.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func says(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not in:\n%s", w, text)
		}
	}
}

// Every mistake of the files is told with its line, before anything changes.
func TestMistakes(t *testing.T) {
	s := open(t, "gpt-4o").account(t)
	text := shown(t, s, dir(
		"assistants/a.yaml", desk+"telepathy: true\nsystem_promt: x\n",
		"assistants/b.yaml", desk+"max_duration: 7\nvoice_id: 1001\n",
		"assistants/c.yaml", "name: C\n\tbad: x\n",
		"assistants/d.yaml", "name: D\nname: E\n",
		"knowledgebases/k.yaml", "name: K\ndocuments:\n  - {name: Menu, type: txt, file: k/menu.txt}\n",
		"tests/nobody/t.yaml", "name: T\n",
	), false)
	says(t, text, "assistants/a.yaml:9: there is no field telepathy",
		"assistants/a.yaml:10: there is no field system_promt: is it system_prompt?",
		"assistants/b.yaml:10: there is no field voice_id: is it voice?", "assistants/b.yaml:9: The max_duration field must be at least 20",
		"assistants/c.yaml:2: this is no YAML", "assistants/d.yaml:2: name is there twice",
		"knowledgebases/k.yaml:3: the file knowledgebases/k/menu.txt is not read",
		"tests/nobody/t.yaml: there is no file assistants/nobody.yaml")
	text = shown(t, s, dir(
		"assistants/a.yaml", strings.Replace(desk, "flite/rms", "flite/nobody", 1)+"knowledgebase: Nothing\n",
		"assistants/b.yaml", strings.Replace(desk, "gpt-4o", "gpt-99", 1),
		"numbers/+4930.yaml", "phone_number: \"+4930123\"\n",
		"tools/t.yaml", "name: t\ndescription: Does it.\nendpoint: https://example.com\nmethod: GET\n"+
			"headers: [{name: X-Key, value: \"${T_KEY}\"}]\n",
	), false)
	says(t, text, `assistants/a.yaml:9: knowledgebase "Nothing": there is no file`,
		"assistants/b.yaml:7: the server has no language model gpt-99: it has gpt-4o",
		"numbers/+4930.yaml:1: the account has no number +4930123", "tools/t.yaml:5: set the environment variable T_KEY")
	text = shown(t, s, dir("assistants/a.yaml", strings.Replace(desk, "flite/rms", "flite/nobody", 1)), false)
	says(t, text, "assistants/a.yaml:5: the server has no voice flite/nobody: it has ")
	if now, _ := pull(t, s); len(now.Things) != 1 {
		t.Errorf("%d things were made by plans", len(now.Things))
	}
}

// A plan says what changes and no secret; what is on the server alone stays unless it is pruned.
func TestPlan(t *testing.T) {
	s := open(t, "gpt-4o").account(t)
	tool := "name: t\ndescription: Does it.\nendpoint: https://example.com\nmethod: GET\nheaders: [{name: X-Key, value: \"${T_KEY}\"}]\n"
	files := dir("assistants/desk.yaml", desk+"mid_call_tools: [t]\n", "tools/t.yaml", tool, "folders/f.yaml", "name: F\n",
		"tests/desk/x.yaml",
		"name: X\nchannel: chat\nsteps: [{say: Hello}]\n", "knowledgebases/k.yaml",
		"name: K\ndocuments:\n  - {name: Menu, type: txt, file: k/menu.txt}\n", "knowledgebases/k/menu.txt", "Soup.\n")
	env := map[string]string{"T_KEY": "s3cr3t"}
	if err := push(t, s, files, false, env); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, s, files, true); got != "No changes: the server's account is as the files say.\n" { // the secret is kept
		t.Error(got)
	}
	env["T_KEY"] = "0ther"
	plan, err := planned(t, s, files, false, env)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := plan.Write(&b); err != nil || strings.Contains(b.String(), "0ther") || strings.Contains(b.String(), "s3cr3t") {
		t.Error(err, b.String())
	}
	says(t, b.String(), "~ tools/t.yaml\n    headers: a secret changes\n0 to create, 1 to change, 0 to delete.\n")

	files = dir("assistants/desk.yaml", strings.Replace(desk, "Be kind.", "|\n  Be kind.\n  Be short.", 1)+"max_duration: 60\n",
		"knowledgebases/k.yaml", "name: K\ndocuments:\n  - {name: Menu, type: txt, file: k/menu.txt}\n", "knowledgebases/k/menu.txt", "Salad.\n")
	text := shown(t, s, files, false)
	says(t, text, "    system_prompt:\n        Be kind.\n      + Be short.\n", "    max_duration: 600 → 60\n",
		"    mid_call_tools: [\"t\"] → []\n",
		"document Menu", `tool "t" is only on the server: it stays`, `folder "F" is only`, `test "X" is only`,
		"0 to create, 2 to change, 0 to delete.")
	says(t, shown(t, s, files, true), "- tool \"t\"\n", "- folder \"F\"\n", "- test \"X\"\n", "0 to create, 2 to change, 3 to delete.")
	if err := push(t, s, files, true, nil); err != nil {
		t.Fatal(err)
	}
	_, now := pull(t, s)
	if len(now) != 4 || string(now["knowledgebases/k/menu.txt"].Data) != "Salad.\n" {
		t.Error(text, now)
	}
	if got := shown(t, s, files, true); !strings.HasPrefix(got, "No changes") {
		t.Error(got)
	}
}

// A file may be named by hand, refer to a secret by a name of its own, and leave out what is on the server.
func TestOwnFiles(t *testing.T) {
	s := open(t, "gpt-4o").account(t)
	files := dir("tools/mine.yaml", "name: t\ndescription: Does it.\nendpoint: https://example.com\nmethod: GET\n"+
		"headers: [{name: Authorization, value: \"Bearer ${MINE}\"}]\n", "assistants/one.yaml", desk, "assistants/two.yaml",
		desk+"keywords: [two]\n",
		"alerts/a.yaml", "name: A\nkind: no_calls\nthreshold: 2\nassistant: two.yaml\n", "README.md", "Ours.\n",
		"assistants/notes.txt", "Ours.\n")
	if err := push(t, s, files, false, map[string]string{"MINE": "s3cr3t"}); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, s, files, true); !strings.HasPrefix(got, "No changes") {
		t.Error(got)
	}
	_, now := pull(t, s)
	if text := string(now["alerts/a.yaml"].Data); !strings.Contains(text, "assistant: desk-2.yaml\n") {
		t.Error(text)
	}
	before, err := manifest.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	account, err := s.Read(t.Context(), before)
	if err != nil {
		t.Fatal(err)
	}
	again := account.Files(before)
	if text := string(again["tools/mine.yaml"]); !strings.Contains(text, `"Bearer ${MINE}"`) || len(again) != 5 {
		t.Error(text, again)
	}
	if text := string(again["alerts/a.yaml"]); !strings.Contains(text, "assistant: two.yaml\n") {
		t.Error(text)
	}
	// two assistants of one name can't be told apart by it
	says(t, shown(t, s, dir("alerts/a.yaml", "name: A\nkind: no_calls\nthreshold: 2\nassistant: Desk\n"), false), "several have that name")
	// a file that refers to what only the server has
	if err := push(t, s, dir("alerts/b.yaml", "name: B\nkind: no_calls\nthreshold: 2\nassistant: desk-2.yaml\n"), false, nil); err != nil {
		t.Error(err)
	}
}

// Numbers go from one assistant to another, and around in a circle.
func TestNumbersMove(t *testing.T) {
	house := open(t, "gpt-4o")
	s := house.account(t)
	newRandom(t, house, s, rand.New(rand.NewPCG(1, 1)), "").trunks([]string{"+493090001", "+493090002"})
	with := func(a, b string) fstest.MapFS {
		return dir("assistants/a.yaml", strings.Replace(desk, "Desk", "A", 1)+fmt.Sprintf("phone_number: %q\n", a),
			"assistants/b.yaml", strings.Replace(desk, "Desk", "B", 1)+fmt.Sprintf("phone_number: %q\n", b),
			"numbers/+493090001.yaml", "phone_number: \"+493090001\"\nroute:\n  otherwise: assistant\n  otherwise_assistant: B\n")
	}
	for _, files := range []fstest.MapFS{with("+493090001", "+493090002"), with("+493090002", "+493090001"), with("", "+493090002"),
		dir("assistants/c.yaml", strings.Replace(desk, "Desk", "C", 1)+"phone_number: \"+493090002\"\n")} {
		if err := push(t, s, files, true, nil); err != nil {
			t.Fatal(err)
		}
		if got := shown(t, s, files, true); !strings.Contains(got, "No changes") {
			t.Error(got)
		}
	}
}

// Things whose names make the same file are named alike, whichever was made first.
func TestFileNames(t *testing.T) {
	house := open(t, "gpt-4o")
	var all []string
	for _, order := range [][]string{{"Front desk", "front-desk", "Front  desk"}, {"front-desk", "Front  desk", "Front desk"}} {
		s := house.account(t)
		r := newRandom(t, house, s, nil, "")
		for _, name := range order {
			r.do("POST", "/user/folders", object{"name": name})
		}
		_, files := pull(t, s)
		all = append(all, text(files))
	}
	if all[0] != all[1] {
		t.Errorf("%s\n%s", all[0], all[1])
	}
}
