package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"parley/internal/ai/aitest"
	"parley/internal/api"
	"parley/internal/billing"
	"parley/internal/parley"
	"parley/internal/store"
)

// A hostile trial tenant: an account that signed up by itself gets free tests up to a limit. It gets nothing else that
// costs the operator before it has paid.
func TestTrialAccount(t *testing.T) {
	eachPlanned(t, func(t *testing.T, db *store.DB, plan func(*billing.Prices)) {
		h, _ := talking(t, db, func(c *api.Config) {
			plan(c.Prices)
			c.Signup = true
			c.Prices.Numbers["US"] = billing.NumberPrice{} // numbers that cost the tenant nothing
			trial := c.Prices.Plans[parley.TrialPlan]
			trial.TestConversations, trial.TestMessages, trial.Assistants, trial.Knowledgebases = 2, 3, 1, 0
			c.Prices.Plans[parley.TrialPlan] = trial
		})
		none := header("Authorization", "")
		made := h.post("/register", map[string]any{"name": "Eve", "email": "eve@example.com",
			"password": "eight888"}, none, status(201)).json()
		eve := *h
		eve.token = made["token"].(string)
		if me := eve.get("/user/me").json(); me["plan"] != "trial" {
			t.Errorf("it has the plan %v", me["plan"])
		}
		id, uuid := eve.active(nil)
		begin := func() *answer {
			return eve.post("/conversations", map[string]any{"assistant_id": uuid, "type": "test"})
		}
		conv := begin().json()["conversation_id"].(string)
		for range 3 {
			eve.post("/conversations/"+conv+"/messages", map[string]any{"message": "Hi"}, status(200))
		}
		if text := eve.post("/conversations/"+conv+"/messages", map[string]any{"message": "Hi"},
			status(403)).json()["error"]; !strings.Contains(fmt.Sprint(text),
			"3 free messages in test conversations a day") {
			t.Errorf("a fourth message: %v", text)
		}
		eve.delete("/user/conversations/"+conv, status(200)) // deleting does not give a test back
		begin()
		if a := begin(); a.status != 403 || !strings.Contains(string(a.body), "2 free test conversations a day") ||
			!strings.Contains(string(a.body), `"status":false`) {
			t.Errorf("a third conversation: %d %s", a.status, a.body)
		}
		if text := eve.post("/user/assistant", eve.assistantBody(),
			status(403)).json()["message"]; !strings.Contains(fmt.Sprint(text), "Your plan allows 1 assistants.") {
			t.Errorf("a second assistant: %v", text)
		}
		if got := eve.post("/user/knowledgebases", map[string]any{"name": "K"},
			status(403)).json(); got["message"] == nil || got["message"] != got["error"] {
			t.Errorf("a knowledgebase: %v", got)
		}
		// Nothing that costs the operator before the account has paid.
		eve.post("/conversations", map[string]any{"assistant_id": uuid}, none, status(402))
		eve.post("/ai/generate-reply", map[string]any{"assistant_id": id, "customer_identifier": "c",
			"message": "m"}, status(402))
		offer := eve.get("/user/phone-numbers/search", status(200)).rows()[0]["phone_number"]
		eve.post("/user/phone-numbers/purchase", map[string]any{"phone_number": offer}, status(402))
		eve.post("/user/phone-numbers/caller-ids", map[string]any{"phone_number": "+12025550777"}, status(402))
		// A credit opens both, and gives the account the default plan.
		u, err := db.UserByEmail(t.Context(), "eve@example.com")
		if err != nil {
			t.Fatal(err)
		}
		h.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Post(ctx, u.ID, &parley.LedgerEntry{Kind: parley.Credit, Amount: parley.USD,
				Reference: "paid", Description: "test"})
			return err
		})
		eve.post("/user/phone-numbers/purchase", map[string]any{"phone_number": offer}, status(201))
		eve.post("/user/phone-numbers/caller-ids", map[string]any{"phone_number": "+12025550777"}, status(201))
		eve.assistant(nil)
		if me := eve.get("/user/me").json(); me["plan"] != "default" {
			t.Errorf("it has the plan %v", me["plan"])
		}
		// One address can't make accounts without limit.
		for i := range 9 {
			eve.post("/register", map[string]any{"name": "Eve", "email": fmt.Sprintf("eve%d@example.com", i),
				"password": "eight888"}, none, status(201))
		}
		eve.post("/register", map[string]any{"name": "Eve", "email": "eve10@example.com", "password": "eight888"},
			none, status(429))
	})
}

// Tests that are paid for are not counted: the balance limits them.
func TestPaidTests(t *testing.T) {
	eachPlanned(t, func(t *testing.T, db *store.DB, plan func(*billing.Prices)) {
		h, model := talking(t, db, func(c *api.Config) {
			plan(c.Prices)
			c.Prices.Messages["test"] = parley.USD / 100
			c.Prices.Plans[parley.DefaultPlan] = parley.Plan{Assistants: 1, Conversations: 5, APIKeys: 9, StoredMB: 1}
		})
		model.Script(aitest.Behaviour{Text: "Yes."})
		_, uuid := h.active(nil)
		conv := h.post("/conversations", map[string]any{"assistant_id": uuid, "type": "test"},
			status(200)).json()["conversation_id"].(string)
		h.post("/conversations/"+conv+"/messages", map[string]any{"message": "Hi"}, status(200))
	})
}
