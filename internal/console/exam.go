package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"parley/internal/exam"
	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
)

// examList is an assistant's page of tests.
type examList struct {
	*parley.Assistant
	draft   bool // there is one
	tests   []parley.Test
	runs    []parley.TestRun
	page    int
	total   int // runs
	refused string
}

func testPath(assistant int64, more string) string { return assistantPath(assistant, "/tests"+more) }

func runPath(assistant, run int64, more string) string {
	return assistantPath(assistant, "/test-runs/"+strconv.FormatInt(run, 10)+more)
}

// version changes when the page would.
func (v *examList) version() string {
	var b strings.Builder
	for _, t := range v.tests {
		fmt.Fprint(&b, t.ID, t.UpdatedAt, t.LastState, t.DraftState, " ")
	}
	for _, r := range v.runs {
		fmt.Fprint(&b, r.ID, r.Status, r.Left, " ")
	}
	return b.String()
}

func (c *Console) exams(r *request) (*examList, error) {
	a, err := c.DB.Assistant(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	q := listQuery{Page: 1}
	form.Query(r.URL.Query(), &q)
	v := &examList{Assistant: a, page: max(1, q.Page)}
	if _, err := c.DB.AssistantDraft(r.Context(), r.UserID(), a.ID); err == nil {
		v.draft = true
	} else if !store.IsNotFound(err) {
		return nil, err
	}
	if v.tests, err = c.DB.Tests(r.Context(), r.UserID(), a.ID); err != nil {
		return nil, err
	}
	v.runs, v.total, err = c.Exams.Runs(r.Context(), r.UserID(), a.ID, store.Page{Number: v.page, Size: pageSize})
	return v, err
}

func (c *Console) examList(r *request) (*answer, error) {
	v, err := c.exams(r)
	if err != nil {
		return nil, err
	}
	return show("Tests of "+v.Name, examListPage(v)), nil
}

func (c *Console) examListLive(r *request) (*answer, error) {
	if _, err := c.DB.Assistant(r.Context(), r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	was := "-" // a page without anything is told too
	return c.live(r, func(s *stream) ([]string, error) {
		v, err := c.exams(r)
		if err != nil {
			return nil, err
		}
		if now := v.version(); now != was {
			was = now
			s.send("list", map[string]string{"version": now})
		}
		var topics []string
		for i := range v.runs {
			if v.runs[i].FinishedAt == 0 {
				topics = append(topics, exam.Topic(v.runs[i].ID))
			}
		}
		return topics, nil
	})
}

// testForm is the page of one test.
type testForm struct {
	*parley.Assistant
	id     int64 // 0: it is new
	script string
	wrong  string
	line   int // of the mistake, 0 for none
	last   *parley.Test
}

// firstScript is what a new test begins with.
const firstScript = `name: Says when it is open
steps:
  - hear: greeting within 1s
  - say: When are you open on Saturday?
  - expect: {reply_within: 2s, no_tool: true}
`

func (f *testForm) path(more string) string {
	if f.id == 0 {
		return testPath(f.ID, "/new")
	}
	return testPath(f.ID, "/"+strconv.FormatInt(f.id, 10)+more)
}

// around are the lines beside the mistake.
func (f *testForm) around() (list []scriptLine) {
	lines := strings.Split(strings.ReplaceAll(f.script, "\r\n", "\n"), "\n")
	for n := max(1, f.line-2); f.line > 0 && n <= min(len(lines), f.line+2); n++ {
		list = append(list, scriptLine{n, lines[n-1], n == f.line})
	}
	return list
}

type scriptLine struct {
	number int
	text   string
	wrong  bool
}

func (c *Console) testNew(r *request) (*answer, error) {
	a, err := c.DB.Assistant(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	return show("New test", testEditor(&testForm{Assistant: a, script: firstScript})), nil
}

func (c *Console) testEdit(r *request) (*answer, error) {
	f, err := c.testForm(r)
	if err != nil {
		return nil, err
	}
	return show(f.last.Name, testEditor(f)), nil
}

func (c *Console) testForm(r *request) (*testForm, error) {
	a, err := c.DB.Assistant(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	t, err := c.DB.Test(r.Context(), r.UserID(), a.ID, r.id("test"))
	if err != nil {
		return nil, err
	}
	return &testForm{Assistant: a, id: t.ID, script: t.Script, last: t}, nil
}

func (c *Console) testCreate(r *request) (*answer, error) {
	a, err := c.DB.Assistant(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	f := &testForm{Assistant: a, script: r.PostFormValue("script")}
	t, err := c.Exams.Create(r.Context(), r.UserID(), a.ID, newlines(f.script))
	if err != nil {
		return f.mistaken("New test", err)
	}
	return c.testStored(r, a.ID, t.ID, "created")
}

func (c *Console) testSave(r *request) (*answer, error) {
	f, err := c.testForm(r)
	if err != nil {
		return nil, err
	}
	f.script = r.PostFormValue("script")
	if _, err := c.Exams.Change(r.Context(), r.UserID(), f.ID, f.id, newlines(f.script)); err != nil {
		return f.mistaken(f.last.Name, err)
	}
	return c.testStored(r, f.ID, f.id, "saved")
}

// newlines are as they were before a browser sent them.
func newlines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// testStored goes on as the button says: to the test, or to a run of it.
func (c *Console) testStored(r *request, assistant, id int64, done string) (*answer, error) {
	if r.PostFormValue("then") != "run" {
		return see(testPath(assistant, "/"+strconv.FormatInt(id, 10)), done), nil
	}
	run, err := c.Exams.Start(r.Context(), r.UserID(), assistant, exam.Order{Tests: []int64{id}})
	if err != nil {
		return nil, err
	}
	return see(runPath(assistant, run.ID, "")), nil
}

// mistaken shows the form again with what is wrong.
func (f *testForm) mistaken(title string, err error) (*answer, error) {
	wrong, ok := fieldErrors(err)
	if !ok {
		return nil, err
	}
	for _, w := range wrong {
		f.wrong = strings.Join(w.Messages, " ")
	}
	if m, ok := errors.AsType[*exam.Mistake](err); ok {
		f.line = m.Line
	}
	return invalid(title, testEditor(f)), nil
}

func (c *Console) testDelete(r *request) (*answer, error) {
	if err := c.Exams.Delete(r.Context(), r.UserID(), r.id("id"), r.id("test")); err != nil {
		return nil, err
	}
	return see(testPath(r.id("id"), ""), "deleted"), nil
}

// testMake makes a test of a call or a conversation.
func (c *Console) testMake(r *request) (*answer, error) {
	from := exam.Source{ConversationID: r.PathValue("id")}
	if strings.HasPrefix(r.URL.Path, "/calls/") {
		from = exam.Source{CallID: r.id("id")}
	}
	t, err := c.Exams.CreateFrom(r.Context(), r.UserID(), from)
	if err != nil {
		return nil, err
	}
	return see(testPath(t.AssistantID, "/"+strconv.FormatInt(t.ID, 10)), "made"), nil
}

// runStart begins a run, with changes where the form has some.
func (c *Console) runStart(r *request) (*answer, error) {
	a, err := c.DB.Assistant(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	o := exam.Order{ConversationID: r.PostFormValue("conversation_id"), Draft: draftOf(r.PostForm, a),
		OfDraft: r.PostFormValue("draft") == "1"}
	o.CallID, _ = strconv.ParseInt(r.PostFormValue("call_id"), 10, 64)
	for _, text := range r.PostForm["test_ids"] {
		if id, err := strconv.ParseInt(text, 10, 64); err == nil {
			o.Tests = append(o.Tests, id)
		}
	}
	run, err := c.Exams.Start(r.Context(), r.UserID(), a.ID, o)
	if err == nil {
		return see(runPath(a.ID, run.ID, "")), nil
	}
	e := plain(r.Request, err)
	if e.Kind != parley.Conflict && e.Kind != parley.Invalid {
		return nil, err
	}
	if r.PostForm.Has("system_prompt") { // from the page of changes, which keeps them
		f := c.tryForm(r, a, r.PostFormValue("call_id"), o.ConversationID)
		f.InitialMessage, f.SystemPrompt = newlines(r.PostFormValue("initial_message")), newlines(r.PostFormValue("system_prompt"))
		f.model, f.refused = r.PostFormValue("llm_model_id"), e.Message
		return &answer{status: http.StatusConflict, title: "Try changes", body: tryEditor(f)}, nil
	}
	v, err := c.exams(r)
	if err != nil {
		return nil, err
	}
	v.refused = e.Message
	return &answer{status: http.StatusConflict, title: "Tests of " + v.Name, body: examListPage(v)}, nil
}

// draftOf is what a form changes of the assistant.
func draftOf(v url.Values, a *parley.Assistant) *parley.Draft {
	d := &parley.Draft{}
	if s := newlines(v.Get("system_prompt")); v.Has("system_prompt") && s != a.SystemPrompt {
		d.SystemPrompt = &s
	}
	if s := newlines(v.Get("initial_message")); v.Has("initial_message") && s != a.InitialMessage {
		d.InitialMessage = &s
	}
	if id, err := strconv.ParseInt(v.Get("llm_model_id"), 10, 64); err == nil && a.LLMModelID != nil && id != *a.Chosen().LLMModelID {
		d.LLMModelID = &id
	}
	return d
}

// tryForm is the page on which an assistant's tests, or a stored conversation, are performed with changes.
type tryForm struct {
	*parley.Assistant
	call         string
	conversation string
	models       []option
	model        string // the one that is chosen
	refused      string // why no run was begun
}

func (c *Console) tryPage(r *request) (*answer, error) {
	a, err := c.DB.Assistant(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	return show("Try changes", tryEditor(c.tryForm(r, a, q.Get("call"), q.Get("conversation")))), nil
}

// tryForm is the page for the assistant as it is saved; call and conversation say what is replayed, "" for the tests.
func (c *Console) tryForm(r *request, a *parley.Assistant, call, conversation string) *tryForm {
	f := &tryForm{Assistant: a, call: call, conversation: conversation}
	if a.LLMModelID != nil {
		f.model = strconv.FormatInt(*a.Chosen().LLMModelID, 10)
		if e := a.Endpoint("llm_model_id"); e != nil {
			f.models = []option{{value: f.model, label: e.Name}}
		}
		for _, m := range c.Catalog.For(r.UserID()).ModelsOf(parley.LLM) {
			f.models = append(f.models, option{value: strconv.FormatInt(m.ID, 10), label: m.Name})
		}
	}
	return f
}

// runView is the page of a run.
type runView struct {
	*exam.Report
	assistant *parley.Assistant
	model     string // of the draft
}

func (v *runView) path(more string) string { return runPath(v.assistant.ID, v.ID, more) }

func (v *runView) version() string {
	var b strings.Builder
	for _, r := range v.Results {
		b.WriteString(string(r.State) + " ")
	}
	return b.String() + v.Status
}

// change is what became better or worse of a performance; nil is nothing.
func (v *runView) change(result int64) *exam.Change {
	for i := range v.Changes {
		if v.Changes[i].ResultID == result {
			return &v.Changes[i]
		}
	}
	return nil
}

func (v *runView) changed(better bool) (n int) {
	for i := range v.Changes {
		if v.Changes[i].Better == better {
			n++
		}
	}
	return n
}

// against says what the changes are against.
func (v *runView) against() string {
	if v.DraftAt != 0 {
		return "live"
	}
	return "before"
}

// changedFields are those of the draft that was performed.
func (v *runView) changedFields() (names []string) {
	for _, name := range parley.SettingNames {
		if v.TestRun.Changes[name] != nil {
			names = append(names, name)
		}
	}
	return names
}

func (v *runView) title() string {
	if v.Replay() {
		return "Replay"
	}
	return "Run " + strconv.FormatInt(v.ID, 10)
}

func (c *Console) run(r *request) (*runView, error) {
	a, err := c.DB.Assistant(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	v := &runView{assistant: a}
	if v.Report, err = c.Exams.Report(r.Context(), r.UserID(), a.ID, r.id("run")); err != nil {
		return nil, err
	}
	if v.Draft != nil && v.Draft.LLMModelID != nil {
		if m := c.Catalog.For(r.UserID()).Model(*v.Draft.LLMModelID); m != nil {
			v.model = m.Name
		}
	}
	return v, nil
}

func (c *Console) runPage(r *request) (*answer, error) {
	v, err := c.run(r)
	if err != nil {
		return nil, err
	}
	return show(v.title()+" of "+v.assistant.Name, runPageOf(v)), nil
}

func (c *Console) runLive(r *request) (*answer, error) {
	if _, err := c.run(r); err != nil {
		return nil, err
	}
	was := "-" // a page without anything is told too
	return c.live(r, func(s *stream) ([]string, error) {
		v, err := c.run(r)
		if err != nil {
			return nil, err
		}
		if now := v.version(); now != was {
			was = now
			s.send("list", map[string]string{"version": now})
		}
		return []string{exam.Topic(v.ID)}, nil
	})
}

func (c *Console) runStop(r *request) (*answer, error) {
	if err := c.Exams.Stop(r.Context(), r.UserID(), r.id("id"), r.id("run")); err != nil {
		return nil, err
	}
	return see(runPath(r.id("id"), r.id("run"), "")), nil
}

// resultView is the page of one performance.
type resultView struct {
	*parley.TestResult
	run *runView
}

func (c *Console) result(r *request) (*resultView, error) {
	v, err := c.run(r)
	if err != nil {
		return nil, err
	}
	one, err := c.DB.TestResult(r.Context(), r.UserID(), v.ID, r.id("result"))
	return &resultView{one, v}, err
}

func (c *Console) resultPage(r *request) (*answer, error) {
	v, err := c.result(r)
	if err != nil {
		return nil, err
	}
	return show(v.Name, resultPageOf(v)), nil
}

// resultPicture sends the timeline of a call that failed.
func (c *Console) resultPicture(r *request) (*answer, error) {
	v, err := c.result(r)
	if err != nil {
		return nil, err
	}
	if v.Picture == "" {
		return nil, parley.Errorf(parley.NotFound, "There is no picture of this test.")
	}
	h := r.w.Header()
	h.Set("Content-Type", "image/svg+xml")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	h.Set("Cache-Control", "private, max-age=3600")
	_, err = r.w.Write([]byte(v.Picture))
	return nil, err
}

// stateLabels are the states for people.
var stateLabels = map[parley.TestState]string{parley.TestWaiting: "Waiting", parley.TestRunning: "Running", parley.TestPassed: "Passed",
	parley.TestFailed: "Failed", parley.TestBroken: "Not performed", parley.TestStopped: "Stopped", "": "Never run"}

func stateClass(s parley.TestState) string {
	switch s {
	case parley.TestPassed:
		return "tag warm"
	case parley.TestFailed, parley.TestBroken:
		return "tag bad"
	}
	return "tag plain"
}

// outcome is a run in a few words.
func outcome(r *parley.TestRun) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{r.Left, "to go"}, {r.Passed, "passed"}, {r.Failed, "failed"}, {r.Broken, "not performed"}} {
		if p.n > 0 {
			parts = append(parts, strconv.Itoa(p.n)+" "+p.what)
		}
	}
	if len(parts) == 0 {
		return "Stopped"
	}
	return strings.Join(parts, ", ")
}
