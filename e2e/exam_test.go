package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// examined is a test run as the API returns it.
type examined struct {
	ID                   int64
	Status               string
	Passed, Failed, Left int
	Broken, Total        int
	Results              []struct {
		ID           int64
		Name, State  string
		Error        string
		PlayedCallID *int64 `json:"played_call_id"`
		Verdicts     []struct {
			Line      int
			OK        bool
			What, Got string
		}
	}
	Changes []struct {
		Name   string
		Better bool
	}
	Replayed []struct {
		Customer, Before, Now string
		ToolsBefore           []string `json:"tools_before"`
		ToolsNow              []string `json:"tools_now"`
		Same                  bool
	}
}

// examine starts a test run of the first assistant and waits until it is finished.
func (p *program) examine(t *testing.T, order map[string]any) examined {
	t.Helper()
	at := fmt.Sprintf("/user/assistants/%d/test-runs", p.Assistant)
	var made struct {
		Message string
		Data    examined
	}
	if status := p.call(t, "POST", at, order, &made); status != http.StatusCreated {
		t.Fatalf("the run is answered %d %s", status, made.Message)
	}
	return p.finished(t, made.Data.ID)
}

func (p *program) finished(t *testing.T, id int64) examined {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		var got struct{ Data examined }
		p.call(t, "GET", fmt.Sprintf("/user/assistants/%d/test-runs/%d", p.Assistant, id), nil, &got)
		if got.Data.Status != "running" {
			return got.Data
		}
		if time.Now().After(deadline) {
			t.Fatalf("the run does not finish: %+v\n%s", got.Data, p.log)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (p *program) addTest(t *testing.T, script string) int64 {
	t.Helper()
	var made struct {
		Message string
		Data    struct{ ID int64 }
	}
	status := p.call(t, "POST", fmt.Sprintf("/user/assistants/%d/tests", p.Assistant), map[string]any{"script": script}, &made)
	if status != http.StatusCreated {
		t.Fatalf("the test is answered %d %s", status, made.Message)
	}
	return made.Data.ID
}

const (
	writtenTest = `name: Says when it is open
channel: chat
steps:
  - say: When are you open on Saturday?
  - expect: {says: 7 am, no_tool: true}
`
	spokenTest = `name: Books a table
mock: {book_table: {reply: {ok: true, table: 4}}}
steps:
  - hear: greeting
  - say: Please book a table for two.
  - expect: {tool: "book_table{party: 2}"}
`
)

// The server itself runs an assistant's tests, by telephone and in chat. It reports what got worse, replays a stored
// call against another prompt, and charges nothing for any of it.
func TestExam(t *testing.T) {
	share(t, call)
	need(t, "flite")
	p := telephone(t)
	var tool struct{ Data struct{ ID int64 } }
	p.call(t, "POST", "/user/tools", map[string]any{"name": "book_table", "description": "Book a table for a party of people",
		"method": "POST", "endpoint": "https://example.invalid/", "schema": []any{map[string]any{"name": "party", "type": "number",
			"description": "How many people"}}}, &tool)
	const prompt = "You are the receptionist of a bakery.\nWe are open Monday to Saturday from 7 am to 6 pm."
	p.change(t, map[string]any{"tool_ids": []int64{tool.Data.ID}, "system_prompt": prompt, "initial_message": "Hello, the bakery."})
	before := p.balance(t)
	written := p.addTest(t, writtenTest)
	p.addTest(t, spokenTest)

	run := p.examine(t, map[string]any{})
	if run.Passed != 2 || run.Total != 2 || len(run.Changes) != 0 {
		t.Fatalf("the tests end with %+v\n%s", run, p.log)
	}
	call := run.Results[1].PlayedCallID
	if call == nil || run.Results[0].PlayedCallID != nil {
		t.Fatalf("the calls of the tests are %+v", run.Results)
	}

	worse := strings.Replace(prompt, "7 am", "8 am", 1)
	draft := p.examine(t, map[string]any{"test_ids": []int64{written}, "draft": map[string]any{"system_prompt": worse}})
	if draft.Passed != 0 || draft.Failed != 1 || len(draft.Changes) == 0 || draft.Changes[0].Better ||
		draft.Changes[0].Name != "Says when it is open" || draft.Results[0].Verdicts[0].Line != 5 {
		t.Errorf("with a worse prompt they end with %+v", draft)
	}

	replay := p.examine(t, map[string]any{"call_id": *call, "draft": map[string]any{"initial_message": "Welcome to the bakery."}})
	if turns := replay.Replayed; len(turns) != 2 || turns[0].Same || turns[0].Before != "Hello, the bakery." ||
		turns[0].Now != "Welcome to the bakery." || !strings.Contains(turns[1].Customer, "table for two") ||
		!slices.Equal(turns[1].ToolsNow, turns[1].ToolsBefore) || len(turns[1].ToolsNow) != 1 {
		t.Errorf("the replay is %+v", replay)
	}

	var made struct {
		Data struct {
			ID     int64
			Script string
		}
	}
	p.call(t, "POST", fmt.Sprintf("/user/calls/%d/test", *call), nil, &made)
	if want := `book_table{party: 2}`; !strings.Contains(made.Data.Script, want) {
		t.Errorf("the test made of the call is\n%s", made.Data.Script)
	}
	if after := p.balance(t); after != before {
		t.Errorf("the tests took money: %v before, %v after", before, after)
	}
}
