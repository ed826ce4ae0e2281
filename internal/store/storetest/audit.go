package storetest

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/uptrace/bun"

	"parley/internal/store"
)

// Audited are the tables of what people decide on: a transaction of somebody's that changes one of them must have an
// entry of the audit log in it. Of calls, conversations and leads only some statements are decisions, see unaudited.
var Audited = strings.Fields(`alerts assistant_drafts assistant_group_members assistant_groups assistant_tools assistants blacklist caller_ids calls campaign_numbers campaigns
	canned_answers conversations documents invitations keys knowledgebases leads members number_orders numbers recovery_codes
	endpoints saved_filters tests tools trunks two_factors users vendor_keys voicemail_recordings webhook_secrets whatsapp_senders`)

// Unaudited are the tables that the log doesn't watch, by the reason.
var Unaudited = map[string]string{
	"what happens in conversations and calls, and its traces": `activity activity_left call_legs call_requests node_requests nodes trunk_holders call_sip trunk_refusals call_spend
		conversation_notes background_tools message_calls messages writers sandbox_outbox sms sms_inbound sms_opt_outs webhook_attempts webhook_deliveries
		whatsapp_messages test_results test_runs test_scripts`,
	"money, which has its ledger":                                           "ledger public_spend reservations",
	"made and ended by signing in and by new passwords, which have entries": "identities",
	"the history and index of what is audited":                              "assistant_versions chunks vectors words",
	"what the server keeps for itself, or is told": "audit day_counts idempotency_keys import_rejects imports list_changes " +
		"mail_counts models number_offers settings stored_bytes tool_listings vendor_clock account_voices whatsapp_templates",
}

// unaudited are statements on audited tables that are nobody's decision.
var unaudited = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`UPDATE users SET (balance|trying_until|signed_up_at) .*`, // the ledger's, and marks of what is under way
	`INSERT INTO keys .* '(session|console|half)'.*`,          // people come and go
	`DELETE FROM keys .*(kind IN \('session'|kind = '(session|console|half)').*`,
	`UPDATE (keys|members) .*SET last_(used|seen)_at .*`,
	`(INSERT INTO|UPDATE) (calls|conversations) .*`, // only their removal is a decision
	`UPDATE leads .*SET status = .*`,                // moves, also of those whose number comes on the blacklist
	`UPDATE campaigns SET (paused_until|rotation) .*`,
	`UPDATE knowledgebases SET revision .*`,
	`UPDATE caller_ids SET tries .*`,
	`DELETE FROM (caller_ids|number_orders|invitations) .*`, // they end when the thing comes that they led to, which has an entry
	`UPDATE two_factors .*SET last_step .*`,
	`DELETE FROM recovery_codes .* hash = .*`, // it is used
	`UPDATE vendor_keys .*SET state = .*`,     // what a test of it found
}, "|") + `)$`)

var changing = regexp.MustCompile(`^(INSERT INTO|UPDATE|DELETE FROM) (\w+)`)

// auditor watches SQLite: each transaction of somebody's that changes an audited table must say so in the audit log. So
// every test that goes through the API or the console is also one of the audit log.
type auditor struct {
	t    testing.TB
	also bun.QueryHook

	mu      sync.Mutex
	missing string // the first statement of the savepoint under way that needs an entry
	entry   bool
}

// BeforeQuery implements bun.QueryHook.
func (a *auditor) BeforeQuery(ctx context.Context, e *bun.QueryEvent) context.Context {
	if a.also != nil {
		ctx = a.also.BeforeQuery(ctx, e)
	}
	return ctx
}

// AfterQuery implements bun.QueryHook.
func (a *auditor) AfterQuery(ctx context.Context, e *bun.QueryEvent) {
	if a.also != nil {
		a.also.AfterQuery(ctx, e)
	}
	if store.ActorOf(ctx) == nil || e.Err != nil {
		return
	}
	q := strings.ReplaceAll(strings.Join(strings.Fields(e.Query), " "), `"`, "")
	a.mu.Lock()
	defer a.mu.Unlock()
	switch m := changing.FindStringSubmatch(q); {
	case q == "SAVEPOINT one", q == "ROLLBACK TO one":
		a.missing, a.entry = "", false
	case q == "RELEASE one":
		if a.missing != "" && !a.entry {
			a.t.Errorf("somebody's change has no entry in the audit log: %.300s", a.missing)
		}
		a.missing = ""
	case m == nil || e.Result == nil:
	case m[2] == "audit":
		a.entry = true
	case a.missing == "" && isAudited[m[2]] && !unaudited.MatchString(q):
		if n, err := e.Result.RowsAffected(); err != nil || n > 0 {
			a.missing = q
		}
	}
}

var isAudited = func() map[string]bool {
	is := map[string]bool{}
	for _, name := range Audited {
		is[name] = true
	}
	return is
}()
