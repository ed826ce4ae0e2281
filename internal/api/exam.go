package api

import (
	"context"

	"parley/internal/exam"
	"parley/internal/form"
	"parley/internal/parley"
)

func (a *API) examRoutes() {
	const tag, missing, lost = "Tests", "Test not found", "Test run not found"
	const tests, runs = "/user/assistants/{assistant}/tests", "/user/assistants/{assistant}/test-runs"
	handle(a, op{Method: "GET", Path: tests, Name: "listTests", Tag: tag, NotFound: assistantMissing,
		Summary: "List an assistant's tests"}, a.listTests)
	handle(a, op{Method: "POST", Path: tests, Name: "createTest", Tag: tag, Status: 201, NotFound: assistantMissing,
		Summary: "Create a test"}, a.createTest)
	handle(a, op{Method: "GET", Path: tests + "/{id}", Name: "getTest", Tag: tag, NotFound: missing,
		Summary: "Read a test"}, a.getTest)
	handle(a, op{Method: "PUT", Path: tests + "/{id}", Name: "updateTest", Tag: tag, NotFound: missing,
		Summary: "Change a test's script"}, a.updateTest)
	handle(a, op{Method: "DELETE", Path: tests + "/{id}", Name: "deleteTest", Tag: tag, NotFound: missing,
		Summary: "Delete a test; results of its runs stay"}, a.deleteTest)
	handle(a, op{Method: "GET", Path: runs, Name: "listTestRuns", Tag: tag, NotFound: assistantMissing,
		Summary: "List an assistant's test runs"}, a.listTestRuns)
	handle(a, op{Method: "POST", Path: runs, Name: "startTestRun", Tag: tag, Status: 201, NotFound: assistantMissing,
		Idempotent: true, Summary: "Run tests, or replay a stored call or conversation"}, a.startTestRun)
	handle(a, op{Method: "GET", Path: runs + "/{id}", Name: "getTestRun", Tag: tag, NotFound: lost,
		Summary: "Read a test run: its results, and what became better and worse"}, a.getTestRun)
	handle(a, op{Method: "POST", Path: runs + "/{id}/stop", Name: "stopTestRun", Tag: tag, NotFound: lost,
		Summary: "Stop a test run"}, a.stopTestRun)
	handle(a, op{Method: "DELETE", Path: runs + "/{id}", Name: "deleteTestRun", Tag: tag, NotFound: lost,
		Summary: "Delete a finished test run"}, a.deleteTestRun)
	handle(a, op{Method: "POST", Path: "/user/calls/{id}/test", Name: "makeCallTest", Tag: tag, Status: 201,
		NotFound: "Call not found", Summary: "Create a test from a call"}, a.makeCallTest)
	handle(a, op{Method: "POST", Path: "/user/conversations/{id}/test", Name: "makeConversationTest", Tag: tag, Status: 201,
		NotFound: conversationMissing, Summary: "Create a test from a conversation"}, a.makeConversationTest)
}

type (
	ofAssistant struct {
		Assistant int64 `path:"assistant" missing:"Assistant not found"`
	}
	byTestID struct {
		ofAssistant
		ID int64 `path:"id"`
	}
	testScript struct {
		Script string `json:"script" required:"true" maxLength:"65536" doc:"The test in YAML, as parley test reads it; it needs a name, and call is not needed."`
	}
)

func (a *API) listTests(ctx context.Context, r *request, in *ofAssistant) (*data[[]parley.Test], error) {
	if _, err := a.DB.Assistant(ctx, r.UserID(), in.Assistant); err != nil {
		return nil, err
	}
	list, err := a.DB.Tests(ctx, r.UserID(), in.Assistant)
	return &data[[]parley.Test]{list}, err
}

type newTest struct {
	ofAssistant
	Body testScript
}

func (a *API) createTest(ctx context.Context, r *request, in *newTest) (*messageData[*parley.Test], error) {
	t, err := a.Exams.Create(ctx, r.UserID(), in.Assistant, in.Body.Script)
	return &messageData[*parley.Test]{"Test created successfully", t}, err
}

func (a *API) getTest(ctx context.Context, r *request, in *byTestID) (*data[*parley.Test], error) {
	t, err := a.DB.Test(ctx, r.UserID(), in.Assistant, in.ID)
	return &data[*parley.Test]{t}, err
}

type changedTest struct {
	byTestID
	Body testScript
}

func (a *API) updateTest(ctx context.Context, r *request, in *changedTest) (*messageData[*parley.Test], error) {
	t, err := a.Exams.Change(ctx, r.UserID(), in.Assistant, in.ID, in.Body.Script)
	return &messageData[*parley.Test]{"Test updated successfully", t}, err
}

func (a *API) deleteTest(ctx context.Context, r *request, in *byTestID) (*notice, error) {
	return &notice{"Test deleted successfully"}, a.Exams.Delete(ctx, r.UserID(), in.Assistant, in.ID)
}

type testRunsQuery struct {
	ofAssistant
	pageQuery
}

func (a *API) listTestRuns(ctx context.Context, r *request, in *testRunsQuery) (*Paginated[parley.TestRun], error) {
	p := in.page(15)
	list, total, err := a.Exams.Runs(ctx, r.UserID(), in.Assistant, p)
	if err != nil {
		return nil, err
	}
	e := envelope(a, r.Request, list, total, p)
	return &e, nil
}

type newTestRun struct {
	ofAssistant
	Body struct {
		TestIDs        []int64 `json:"test_ids" maxItems:"200" uniqueItems:"true" doc:"Of the assistant's tests; absent or empty: all of them."`
		CallID         int64   `json:"call_id" doc:"A call of yours to replay, instead of tests."`
		ConversationID string  `json:"conversation_id" maxLength:"64" doc:"A conversation of yours to replay, instead of tests."`
		Draft          any     `json:"draft" doc:"true: the assistant's draft as it is saved now. Or an object with the fields of the assistant that are changed for this run: system_prompt, initial_message, llm_model_id."`
	}
}

func (a *API) startTestRun(ctx context.Context, r *request, in *newTestRun) (*messageData[*parley.TestRun], error) {
	b := in.Body
	o := exam.Order{Tests: b.TestIDs, CallID: b.CallID, ConversationID: b.ConversationID}
	if err := readDraft(b.Draft, &o); err != nil {
		return nil, err
	}
	run, err := a.Exams.Start(ctx, r.UserID(), in.Assistant, o)
	return &messageData[*parley.TestRun]{"Test run started successfully", run}, err
}

// readDraft reads what a run is of: true, or an object of changes.
func readDraft(sent any, o *exam.Order) error {
	var wrong parley.Fields
	switch v := sent.(type) {
	case nil:
	case bool:
		o.OfDraft = v
	case map[string]any:
		var in struct {
			Draft *parley.Draft `json:"draft"`
		}
		wrong = form.Bind(map[string]any{"draft": v}, &in, true)
		o.Draft = in.Draft
	default:
		wrong.Add("draft", "must be true or an object.")
	}
	return wrong.Err()
}

func (a *API) getTestRun(ctx context.Context, r *request, in *byTestID) (*data[*exam.Report], error) {
	report, err := a.Exams.Report(ctx, r.UserID(), in.Assistant, in.ID)
	return &data[*exam.Report]{report}, err
}

func (a *API) stopTestRun(ctx context.Context, r *request, in *byTestID) (*notice, error) {
	return &notice{"Test run stopped successfully"}, a.Exams.Stop(ctx, r.UserID(), in.Assistant, in.ID)
}

func (a *API) deleteTestRun(ctx context.Context, r *request, in *byTestID) (*notice, error) {
	return &notice{"Test run deleted successfully"}, a.Exams.Forget(ctx, r.UserID(), in.Assistant, in.ID)
}

func (a *API) makeCallTest(ctx context.Context, r *request, in *byID) (*messageData[*parley.Test], error) {
	t, err := a.Exams.CreateFrom(ctx, r.UserID(), exam.Source{CallID: in.ID})
	return &messageData[*parley.Test]{"Test created successfully", t}, err
}

func (a *API) makeConversationTest(ctx context.Context, r *request, in *byText) (*messageData[*parley.Test], error) {
	t, err := a.Exams.CreateFrom(ctx, r.UserID(), exam.Source{ConversationID: in.ID})
	return &messageData[*parley.Test]{"Test created successfully", t}, err
}
