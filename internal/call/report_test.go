package call_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/call"
	"parley/internal/parley"
	"parley/internal/store"
)

// said makes a call in which the customer said something.
func (n *node) said() *parley.Call {
	n.h.Helper()
	c := n.start()
	leg := n.h.answered()
	leg.says(n.h, parley.SpeakerCustomer, "A cake, please.")
	leg.hangUp(parley.CustomerHangup)
	return c
}

// If the model fails it is asked again, and in the end the call is reported without it.
func TestReportWithoutModel(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.change(h.a, `{"post_call_schema":[]}`)
		n := h.node()
		n.ReportAgain(10*time.Millisecond, 10*time.Millisecond)
		h.model.Script(aitest.Behaviour{Text: "I would rather not."}, aitest.Behaviour{Text: judgement})
		if c := h.reported(n.said().ID); c.Evaluation["outcome"] != "success" || c.ReportTries != 2 {
			t.Errorf("after one failure: %+v", c)
		}
		h.model.Usually(aitest.Behaviour{Text: "I would rather not."})
		if c := h.reported(n.said().ID); len(c.Evaluation) != 0 || c.ReportTries != 3 {
			t.Errorf("after all failures: %+v", c)
		}
		if events := h.events(); len(events) != 2 {
			t.Errorf("%d events", len(events))
		}
	})
}

// The model is not asked about a call without a transcript, nor for anything that the assistant does not want.
func TestReportAsksNoMore(t *testing.T) {
	h := lite(t)
	n := h.node()
	c := n.start()
	leg := h.answered()
	leg.says(h, parley.SpeakerAssistant, "Hello?")
	leg.hangUp(parley.MaxSilence)
	if c := h.reported(c.ID); len(c.Evaluation) != 0 || len(c.Variables) != 0 || len(h.model.Requests()) != 0 {
		t.Errorf("silent: %+v", c)
	}
	h.change(h.a, `{"post_call_evaluation":false}`)
	h.model.Usually(aitest.Behaviour{Text: judgement})
	if c := h.reported(n.said().ID); len(c.Evaluation) != 0 || c.Variables["status"] != true ||
		len(h.model.Requests()) != 1 {
		t.Errorf("no evaluation: %+v, %d requests", c, len(h.model.Requests()))
	}
	h.change(h.a, `{"post_call_evaluation":true,"post_call_schema":[]}`)
	if c := h.reported(n.said().ID); c.Evaluation["outcome"] != "success" || len(c.Variables) != 0 ||
		len(h.model.Requests()) != 2 {
		t.Errorf("no schema: %+v, %d requests", c, len(h.model.Requests()))
	}
	// Without a language model nothing is judged, and rules alone extract values.
	local := h.assistants.Catalog.ModelsOf(parley.LLM)
	h.change(h.a, `{"llm_model_id":%d,"post_call_schema":[{"name":"status","type":"bool","description":"Whether the goal was reached"}]}`,
		local[len(local)-1].ID)
	c = n.start()
	leg = h.answered()
	leg.says(h, parley.SpeakerCustomer, "Yes, that sounds good.")
	leg.hangUp(parley.CustomerHangup)
	if c := h.reported(c.ID); len(c.Evaluation) != 0 || c.Variables["status"] != true || len(h.model.Requests()) != 2 {
		t.Errorf("built in: %+v", c)
	}
}

// Finished is called once, in the transaction that stores the report; if it fails, the transaction is undone and tried
// again.
func TestFinished(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.model.Usually(aitest.Behaviour{Text: judgement})
		var told, tried atomic.Int64
		finished := func(c *call.Config) {
			c.Finished = []call.Finished{func(ctx context.Context, tx *store.Tx, c *parley.Call,
				a *parley.Assistant) error {
				if tried.Add(1) == 1 {
					return errors.New("not now")
				}
				if c.Variables["status"] != true || c.Status != parley.CallCompleted || a.ID != h.a.ID ||
					c.AssistantName != "Anna" {
					t.Errorf("told of %+v", c)
				}
				tx.AfterCommit(func() { told.Add(1) })
				return nil
			}}
			c.Describe = []call.Describe{func(ctx context.Context, tx *store.Tx, c *parley.Call,
				e *parley.CallEnded) error {
				e.Campaign = &parley.EventCampaign{ID: 5, Name: "Spring"}
				return nil
			}}
		}
		n := h.node(finished)
		c := n.said()
		h.until(c.ID, "tried", func(*parley.Call) bool { return tried.Load() == 1 })
		if events := h.events(); len(events) != 0 {
			t.Errorf("told in spite of the failure: %v", events)
		}
		// The time to retry comes: on two nodes at once.
		h.node(finished)
		h.write(func(ctx context.Context, tx *store.Tx) error {
			return tx.PutOffReport(ctx, c.ID, h.call(c.ID).ReportDue, 1)
		})
		h.reported(c.ID)
		h.until(c.ID, "told of", func(*parley.Call) bool { return told.Load() > 0 }) // it follows the commit
		if events := h.events(); len(events) != 1 || told.Load() != 1 ||
			events[0]["campaign"].(map[string]any)["name"] != "Spring" {
			t.Errorf("told %d times, %v", told.Load(), events)
		}
	})
}

// If two processes make the same report, because one was taken for gone, it is sent once.
func TestReportTwice(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		gate := make(chan struct{})
		h.change(h.a, `{"post_call_schema":[]}`)
		h.model.Script(aitest.Behaviour{Text: judgement, Gate: gate},
			aitest.Behaviour{Text: `{"sentiment":"negative","outcome":"failure","score":1}`})
		slow := h.node()
		c := slow.said()
		h.until(c.ID, "being read", func(c *parley.Call) bool { return c.ReportTries == 1 && h.model.Count() == 1 })
		h.node()
		h.write(func(ctx context.Context, tx *store.Tx) error {
			return tx.PutOffReport(ctx, c.ID, h.call(c.ID).ReportDue, 1)
		})
		first := h.reported(c.ID)
		close(gate)
		slow.kill() // waits for the slow one
		if got := h.call(c.ID); got.Evaluation["outcome"] != "failure" || got.UpdatedAt != first.UpdatedAt ||
			len(h.events()) != 1 {
			t.Errorf("%+v, %d events", got, len(h.events()))
		}
	})
}

// If the assistant was deleted meanwhile, its calls end, and its endpoints are not notified.
func TestReportOfDeletedAssistant(t *testing.T) {
	h := lite(t)
	h.model.Usually(aitest.Behaviour{Text: judgement})
	n := h.node()
	c := n.start()
	leg := h.answered()
	leg.says(h, parley.SpeakerCustomer, "A cake, please.")
	h.must(h.assistants.Delete(t.Context(), h.user.ID, h.a.ID))
	leg.hangUp(parley.CustomerHangup)
	if c := h.reported(c.ID); c.Status != parley.CallCompleted || c.Evaluation["outcome"] != "success" ||
		len(h.events()) != 0 {
		t.Errorf("%+v, %d events", c, len(h.events()))
	}
}
