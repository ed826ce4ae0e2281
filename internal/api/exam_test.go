package api_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/internal/billing"
	"parley/internal/parley"
	"parley/internal/store"
)

const examScript = "name: Says when it is open\nchannel: chat\nsteps:\n  - say: When are you open?\n  - expect: {says: 7 am}\n"

func TestExams(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		desk := h.assistant(nil)
		tests, runs := fmt.Sprintf("/user/assistants/%d/tests", desk), fmt.Sprintf("/user/assistants/%d/test-runs", desk)
		made := h.post(tests, map[string]any{"script": examScript}, status(201)).json()["data"].(map[string]any)
		if made["name"] != "Says when it is open" || made["channel"] != "chat" || made["last_state"] != "" {
			t.Errorf("the test is %v", made)
		}
		at := fmt.Sprint(tests, "/", made["id"])
		h.put(at, map[string]any{"script": strings.Replace(examScript, "Says when it is", "Is", 1)}, status(200))
		if got := h.get(at, status(200)).json()["data"].(map[string]any); got["name"] != "Is open" {
			t.Errorf("changed it is %v", got)
		}
		if list := h.get(tests, status(200)).json()["data"].([]any); len(list) != 1 {
			t.Errorf("the tests are %v", list)
		}

		run := h.post(runs, map[string]any{}, status(201)).json()["data"].(map[string]any)
		if run["status"] != "running" || fmt.Sprintf("%v %v", run["total"], run["left"]) != "1 1" || run["draft"] != nil {
			t.Errorf("the run is %v", run)
		}
		one := fmt.Sprint(runs, "/", run["id"])
		h.delete(one, status(404)) // it is not finished
		if got := h.get(one, status(200)).json()["data"].(map[string]any); len(got["results"].([]any)) != 1 {
			t.Errorf("its report is %v", got)
		}
		h.post(one+"/stop", nil, status(200))
		if got := h.get(one, status(200)).json()["data"].(map[string]any); got["status"] != "stopped" || fmt.Sprint(got["left"]) != "0" {
			t.Errorf("stopped it is %v", got)
		}
		if got := h.get(runs, status(200)).json(); fmt.Sprint(got["total"]) != "1" {
			t.Errorf("the runs are %v", got)
		}

		other := h.stranger()
		for _, path := range []string{tests, at, runs, one} {
			other.get(path, status(404))
		}
		other.post(tests, map[string]any{"script": examScript}, status(404))
		other.put(at, map[string]any{"script": examScript}, status(404))
		other.delete(at, status(404))
		other.post(runs, map[string]any{}, status(404))
		other.post(one+"/stop", nil, status(404))
		other.delete(one, status(404))
		second := h.assistant(nil)
		h.get(fmt.Sprintf("/user/assistants/%d/tests/%v", second, made["id"]), status(404))
		h.post(fmt.Sprintf("/user/assistants/%d/test-runs", second), map[string]any{}, status(422)) // it has no tests
		h.post(runs, map[string]any{"test_ids": []int64{1 << 40}}, status(404))
		h.post(runs, map[string]any{"call_id": 1 << 40}, status(404))
		h.post("/user/calls/99999/test", nil, status(404))
		h.post("/user/conversations/none/test", nil, status(404))

		h.delete(at, status(200))
		h.get(at, status(404))
		h.delete(one, status(200))
		h.get(one, status(404))
	})
}

// A script that can't be parsed is refused with the line of its mistake.
func TestExamScripts(t *testing.T) {
	h := lite(t, nil)
	tests := fmt.Sprintf("/user/assistants/%d/tests", h.assistant(nil))
	for script, want := range map[string]string{
		"":                                    "The script field is required.",
		"steps:\n  - say: hello\n":            "Line 1: a test needs a name",
		"name: A\nsteps:\n  - shout: hello\n": "Line 3:",
		"name: A\nsteps: [\n":                 "Line 2: this is not YAML",
		"name: A\nmock: {book: real}\nsteps:\n  - say: hello\n":            "in these tests all tools are mocked",
		"name: A\nsteps:\n  - say: hello\nrepeat: 51\n":                    "50 are the most here",
		"name: A\ncall: sip:echo@127.0.0.1:5070\nsteps:\n  - say: hello\n": "these tests can only call the assistant",
		"name: A\nlimit: 10m\nsteps:\n  - say: hello\n":                    "limit is more than 5m",
		"name: A\nsteps:\n  - say: hello\n---\nname: B\nsteps: [hang_up]":  "Line 5: this is a second test",
	} {
		t.Run(want, func(t *testing.T) {
			if got := string(h.in(t).post(tests, map[string]any{"script": script}, status(422)).body); !strings.Contains(got, want) {
				t.Errorf("%q is answered %s", script, got)
			}
		})
	}
}

func TestExamLimits(t *testing.T) {
	eachPlanned(t, func(t *testing.T, db *store.DB, plan func(*billing.Prices)) {
		h, prices := open(t, db, nil), usual()
		tests := prices.Plans[parley.DefaultPlan]
		tests.Tests = 1
		prices.Plans[parley.DefaultPlan] = tests
		plan(prices)
		at := fmt.Sprintf("/user/assistants/%d/tests", h.assistant(nil))
		h.post(at, map[string]any{"script": examScript}, status(201))
		h.post(at, map[string]any{"script": examScript}, status(403))
		runs := strings.TrimSuffix(at, "tests") + "test-runs"
		for range 3 {
			h.post(runs, map[string]any{}, status(201))
		}
		if got := string(h.post(runs, map[string]any{}, status(409)).body); !strings.Contains(got, "3 of your test runs are in progress") {
			t.Errorf("a fourth run is answered %s", got)
		}
	})
}
