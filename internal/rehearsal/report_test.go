package rehearsal

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"parley/internal/audio"
)

// failure returns a suite's result with a failed case, and a case that could not be performed.
func failure(t *testing.T) []Result {
	t.Helper()
	list, err := Read("dir/a.yaml", []byte("call: desk\nname: <books> & more\nsteps:\n  - say: one two three\n  - expect: {says: goodbye}\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := &list[0]
	line, record := tape("AAAA----CCCC----AAAA------"), &Record{ID: 7, Transcript: "AI: <hello>",
		Turns:         []Turn{{Speaker: "assistant", Text: "<hello>"}},
		FunctionCalls: []ToolCall{{Name: "book", Arguments: json.RawMessage(`{"party":2}`), AtMS: 1500}}}
	return []Result{{Case: c, Round: 1, Timeline: line, Record: record, Verdicts: c.Judge(line, record),
		Figures: c.Figures(line, record), Rate: audio.Narrow, Heard: make([]int16, 8000), Said: make([]int16, 8000)},
		{Case: c, Round: 1, Err: errors.New("no line")}}
}

func again(*Result) string { return "parley test a.yaml" }

func TestReport(t *testing.T) {
	r := NewReport(failure(t), again)
	var b bytes.Buffer
	if err := r.JSON(&b); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || back.Failed != 1 || back.Broken != 1 || back.Passed != 0 ||
		back.Cases[0].Verdicts[0].What != `says "goodbye"` || back.Cases[0].Figures.ReplyMS[0] != 400 ||
		back.Cases[0].Again != "parley test a.yaml" || back.Cases[1].Error != "no line" {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	if err := r.JUnit(&b); err != nil {
		t.Fatal(err)
	}
	var suite struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Cases    []struct {
			Name    string `xml:"name,attr"`
			Failure *struct {
				Message string `xml:"message,attr"`
				Text    string `xml:",chardata"`
			} `xml:"failure"`
			Error *struct{} `xml:"error"`
		} `xml:"testcase"`
	}
	if err := xml.Unmarshal(b.Bytes(), &suite); err != nil || suite.Tests != 2 || suite.Failures != 1 || suite.Errors != 1 ||
		suite.Cases[0].Name != "<books> & more" || suite.Cases[0].Failure == nil || suite.Cases[0].Error != nil ||
		suite.Cases[1].Error == nil || !strings.Contains(suite.Cases[0].Failure.Text, "again: parley test") ||
		!strings.Contains(suite.Cases[0].Failure.Message, `dir/a.yaml:5: expected: says "goodbye"`) {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	Table(&b, failure(t), again)
	for _, want := range []string{"FAIL   <books> & more  400 ms", `dir/a.yaml:5: expected: says "goodbye"; nothing was said (at 0.80 s)`,
		"again: parley test a.yaml",
		"ERROR <books> & more", "dir/a.yaml: no line", "0 of 2 passed, 1 could not be performed", "AI: <hello>"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

// A failure leaves an audio file that players can read, with its marks, and a picture that browsers can read.
func TestKeep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	for _, r := range failure(t) {
		if err := r.Keep(dir); err != nil {
			t.Fatal(err)
		}
	}
	sound, err := os.ReadFile(filepath.Join(dir, "books-more.wav"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := audio.NewWAVReader(bytes.NewReader(sound))
	if err != nil || w.Channels != 2 || w.Rate != 8000 {
		t.Fatalf("%+v %v", w, err)
	}
	all, pcm := 0, make([]int16, 4000)
	for {
		n, err := w.Read(pcm)
		if all += n; errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if all != 16000 || !bytes.Contains(sound, []byte("cue ")) || !bytes.Contains(sound, []byte(`says "goodbye"`)) ||
		int(sound[4])|int(sound[5])<<8|int(sound[6])<<16 != len(sound)-8 {
		t.Errorf("%d samples in %d octets", all, len(sound))
	}
	picture, err := os.ReadFile(filepath.Join(dir, "books-more.svg"))
	if err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(picture, new(struct{})); err != nil || !strings.Contains(string(picture), "says &#34;goodbye&#34;") ||
		!strings.Contains(string(picture), "#dc2626") || !strings.Contains(string(picture), "&lt;hello&gt;") {
		t.Errorf("%v\n%s", err, picture)
	}
}

// The schema for editors and the reader agree: on the example that uses every key, on the example suite, and on which
// keys exist.
func TestSchema(t *testing.T) {
	raw, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("case.json", raw); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("case.json")
	if err != nil {
		t.Fatal(err)
	}
	valid := func(text string) error {
		var doc any
		if err := yaml.Unmarshal(timed.ReplaceAll([]byte(text), []byte("${1}'${2}'${3}")), &doc); err != nil {
			t.Fatal(err)
		}
		plain, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(plain))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(v)
	}
	if err := valid(whole); err != nil {
		t.Error(err)
	}
	files, err := filesOf("../../examples/tests")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := valid(string(text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	if valid("call: desk\nsteps:\n  - sya: hello") == nil || valid("steps: [hang_up]") == nil {
		t.Error("the schema takes anything")
	}
	type object map[string]any
	root := raw.(map[string]any)["properties"].(map[string]any)
	step := func(key string) object {
		for _, s := range root["steps"].(map[string]any)["items"].(map[string]any)["oneOf"].([]any) {
			if p, ok := s.(map[string]any)["properties"]; ok && p.(map[string]any)[key] != nil {
				return p.(map[string]any)[key].(map[string]any)
			}
		}
		t.Fatalf("no step %s", key)
		return nil
	}
	for text, in := range map[string]object{"": {"properties": root}, "line: {x: 1}": root["line"].(map[string]any),
		"end: {x: 1}": root["end"].(map[string]any), "budget: {x: 1}": root["budget"].(map[string]any),
		"matrix: {x: 1}": root["matrix"].(map[string]any), "caller: {x: 1}": root["caller"].(map[string]any),
		"  - expect: {x: 1}": step("expect")} {
		if text == "" {
			text = "x: 1"
		}
		_, err := Read("a.yaml", []byte(least(text)))
		if err == nil {
			t.Fatalf("%s was read", text)
		}
		_, list, ok := strings.Cut(err.Error(), "allowed are ")
		known := in["properties"].(map[string]any)
		if names := strings.Split(list, ", "); !ok || len(names) != len(known) {
			t.Errorf("%s: %d keys in the schema; %v", text, len(known), err)
		} else {
			for _, name := range names {
				if known[name] == nil {
					t.Errorf("%s: %s is not in the schema", text, name)
				}
			}
		}
	}
}

// Expected tools and extracted values are counted, and shown beside what really came.
func TestExpectedIsCounted(t *testing.T) {
	list, err := Read("a.yaml", []byte("call: desk\nname: a\nsteps:\n  - say: one two three\n  - expect: {tool: [book, cancel]}\n"+
		"end: {variables: {party: 3, name: Ana, day: friday}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	r := Result{Case: &list[0], Round: 1, Timeline: tape("AAAA----CCCC----AAAA------"), Record: &Record{
		Variables:     map[string]any{"party": 3.0, "name": "Ana", "day": "monday"},
		FunctionCalls: []ToolCall{{Name: "book", Arguments: json.RawMessage(`{}`), AtMS: 1500}}}}
	r.measure(r.Case)
	if f := r.Figures; f.Tools != 1 || f.Wanted != 2 || f.Forgotten != 1 || f.Values != 3 || f.Right != 2 {
		t.Errorf("%+v", f)
	}
	var b bytes.Buffer
	Table(&b, []Result{r, r}, again)
	head, _, _ := strings.Cut(b.String(), "\n")
	columns := regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(head), -1)
	slices.Sort(columns)
	if n := len(columns); n != 17 || len(slices.Compact(columns)) != n {
		t.Errorf("%d columns, not all with a name of their own: %s", n, head)
	}
	for line := range strings.Lines(b.String()) {
		if f := strings.Fields(line); len(f) > 0 && f[0] == "all" {
			if got := strings.Join(f[len(f)-6:len(f)-3], " "); got != "2 2/4 4/6" {
				t.Errorf("tools, not called and values are %s", got)
			}
			return
		}
	}
	t.Errorf("no sum in\n%s", b.String())
}
