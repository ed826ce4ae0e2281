package sheet

import (
	"context"
	"fmt"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
)

// Calls writes the user's calls that a filter takes.
func Calls(ctx context.Context, db *store.DB, userID int64, f store.CallFilter, zone *time.Location, out File) error {
	c := clock{zone}
	return write(out, "calls.csv", []column[parley.Call]{
		{"id", func(r *parley.Call) string { return whole(r.ID) }},
		{"created_at", func(r *parley.Call) string { return at(c, r.CreatedAt) }},
		{"answered_at", func(r *parley.Call) string { return at(c, r.AnsweredAt) }},
		{"ended_at", func(r *parley.Call) string { return at(c, r.EndedAt) }},
		{"type", func(r *parley.Call) string { return string(r.Type) }},
		{"status", func(r *parley.Call) string { return string(r.Status) }},
		{"ended_reason", func(r *parley.Call) string { return string(r.EndedReason) }},
		{"ended_detail", func(r *parley.Call) string { return text(r.EndedDetail) }},
		{"assistant_id", func(r *parley.Call) string { return whole(r.AssistantID) }},
		{"assistant_name", func(r *parley.Call) string { return Plain(r.AssistantName) }},
		{"assistant_phone_number", func(r *parley.Call) string { return phone(r.AssistantPhone) }},
		{"client_phone_number", func(r *parley.Call) string { return phone(r.CustomerPhone) }},
		{"campaign_id", func(r *parley.Call) string { return some(r.CampaignID) }},
		{"campaign_name", func(r *parley.Call) string { return text(r.CampaignName) }},
		{"answered_by", func(r *parley.Call) string { return r.Answerer }},
		{"test", func(r *parley.Call) string { return fmt.Sprint(r.Test) }},
		{"duration", func(r *parley.Call) string { return whole(r.Duration) }},
		{"slowest_reply_ms", func(r *parley.Call) string { return whole(r.SlowestMS) }},
		{"carrier_cost", func(r *parley.Call) string { return r.CarrierCost.String() }},
		{"total_cost", func(r *parley.Call) string { return r.TotalCost().String() }},
		{"sentiment", func(r *parley.Call) string { return Plain(r.Sentiment) }},
		{"outcome", func(r *parley.Call) string { return Plain(r.Outcome) }},
		{"input_variables", func(r *parley.Call) string { return object(r.InputVariables) }},
		{"variables", func(r *parley.Call) string { return object(r.Variables) }},
		{"variables_notes", func(r *parley.Call) string { return object(r.VariablesNotes) }},
		{"transcript", func(r *parley.Call) string { return Plain(parley.CallTranscript(r.Turns)) }},
		{"turn_languages", func(r *parley.Call) string { return parley.TurnLanguages(r.Turns) }},
	}, func(row func(*parley.Call) error) error {
		return pages(func(p store.Page) ([]parley.Call, int, error) { return db.Calls(ctx, userID, f, p) },
			func(r *parley.Call) int64 { return r.ID }, row)
	})
}

// Conversations writes the user's text conversations that a filter takes, without their messages.
func Conversations(ctx context.Context, db *store.DB, userID int64, f store.ConversationFilter, zone *time.Location, out File) error {
	c := clock{zone}
	return write(out, "conversations.csv", []column[parley.Conversation]{
		{"id", func(r *parley.Conversation) string { return r.ID }},
		{"created_at", func(r *parley.Conversation) string { return at(c, r.CreatedAt) }},
		{"updated_at", func(r *parley.Conversation) string { return at(c, r.UpdatedAt) }},
		{"ended_at", func(r *parley.Conversation) string { return at(c, r.EndedAt) }},
		{"type", func(r *parley.Conversation) string { return string(r.Type) }},
		{"assistant_id", func(r *parley.Conversation) string { return r.AssistantUUID }},
		{"assistant_name", func(r *parley.Conversation) string { return Plain(r.AssistantName) }},
		{"customer_phone", func(r *parley.Conversation) string { return phone(r.CustomerPhone) }},
		{"external_identifier", func(r *parley.Conversation) string { return phone(r.ExternalIdentifier) }},
		{"message_count", func(r *parley.Conversation) string { return whole(r.MessageCount) }},
		{"total_cost", func(r *parley.Conversation) string { return r.TotalCost.String() }},
		{"ai_enabled", func(r *parley.Conversation) string { return fmt.Sprint(r.AIEnabled) }},
		{"variables", func(r *parley.Conversation) string { return object(r.Variables) }},
		{"extracted_variables", func(r *parley.Conversation) string { return object(r.Extracted) }},
		{"extracted_variables_notes", func(r *parley.Conversation) string { return object(r.ExtractedNotes) }},
	}, func(row func(*parley.Conversation) error) error {
		return pages(func(p store.Page) ([]parley.Conversation, int, error) { return db.Conversations(ctx, userID, f, p) },
			func(r *parley.Conversation) int64 { return r.Seq }, row)
	})
}

// Leads writes the user's leads that a filter takes.
func Leads(ctx context.Context, db *store.DB, userID int64, f store.LeadFilter, zone *time.Location, out File) error {
	c := clock{zone}
	return write(out, "leads.csv", []column[parley.Lead]{
		{"id", func(r *parley.Lead) string { return whole(r.ID) }},
		{"created_at", func(r *parley.Lead) string { return at(c, r.CreatedAt) }},
		{"updated_at", func(r *parley.Lead) string { return at(c, r.UpdatedAt) }},
		{"campaign_id", func(r *parley.Lead) string { return whole(r.CampaignID) }},
		{"campaign_name", func(r *parley.Lead) string { return Plain(r.Campaign.Name) }},
		{"phone_number", func(r *parley.Lead) string { return phone(&r.PhoneNumber) }},
		{"status", func(r *parley.Lead) string { return string(r.Status) }},
		{"attempts", func(r *parley.Lead) string { return whole(r.Attempts) }},
		{"next_attempt_at", func(r *parley.Lead) string { return at(c, r.NextAttemptAt) }},
		{"last_call_id", func(r *parley.Lead) string { return some(r.LastCallID) }},
		{"outcome", func(r *parley.Lead) string { return text(r.Outcome) }},
		{"answered_by", func(r *parley.Lead) string { return text(r.AnsweredBy) }},
		{"total_cost", func(r *parley.Lead) string { return r.TotalCost.String() }},
		{"variables", func(r *parley.Lead) string { return object(r.Variables) }},
		{"extracted_variables", func(r *parley.Lead) string { return object(r.Extracted) }},
	}, func(row func(*parley.Lead) error) error {
		return pages(func(p store.Page) ([]parley.Lead, int, error) { return db.Leads(ctx, userID, f, p) },
			func(r *parley.Lead) int64 { return r.ID }, row)
	})
}

// Campaigns writes the user's campaigns.
func Campaigns(ctx context.Context, db *store.DB, userID int64, zone *time.Location, out File) error {
	c := clock{zone}
	list, err := db.Campaigns(ctx, userID)
	if err != nil {
		return err
	}
	return write(out, "campaigns.csv", []column[parley.Campaign]{
		{"id", func(r *parley.Campaign) string { return whole(r.ID) }},
		{"created_at", func(r *parley.Campaign) string { return at(c, r.CreatedAt) }},
		{"name", func(r *parley.Campaign) string { return Plain(r.Name) }},
		{"status", func(r *parley.Campaign) string { return string(r.Status) }},
		{"assistant_id", func(r *parley.Campaign) string { return whole(r.AssistantID) }},
		{"started_at", func(r *parley.Campaign) string { return at(c, r.StartedAt) }},
		{"completed_at", func(r *parley.Campaign) string { return at(c, r.CompletedAt) }},
		{"timezone", func(r *parley.Campaign) string { return r.Timezone }},
		{"answered", func(r *parley.Campaign) string { return whole(r.Answered) }},
		{"voicemail", func(r *parley.Campaign) string { return whole(r.Voicemail) }},
		{"busy", func(r *parley.Campaign) string { return whole(r.Busy) }},
		{"no_answer", func(r *parley.Campaign) string { return whole(r.NoAnswer) }},
		{"failed", func(r *parley.Campaign) string { return whole(r.Failed) }},
		{"cost", func(r *parley.Campaign) string { return r.Cost.String() }},
	}, each(list))
}

// each walks through a list that is short enough to be read at once.
func each[T any](list []T) func(row func(*T) error) error {
	return func(row func(*T) error) error {
		for i := range list {
			if err := row(&list[i]); err != nil {
				return err
			}
		}
		return nil
	}
}

// Ledger writes the movements of the user's money between two times.
func Ledger(ctx context.Context, db *store.DB, userID int64, from, to parley.Time, zone *time.Location, out File) error {
	c := clock{zone}
	return write(out, "ledger.csv", []column[parley.LedgerEntry]{
		{"id", func(r *parley.LedgerEntry) string { return whole(r.ID) }},
		{"created_at", func(r *parley.LedgerEntry) string { return at(c, r.CreatedAt) }},
		{"kind", func(r *parley.LedgerEntry) string { return string(r.Kind) }},
		{"amount", func(r *parley.LedgerEntry) string { return r.Amount.String() }},
		{"balance_after", func(r *parley.LedgerEntry) string { return r.BalanceAfter.String() }},
		{"reference", func(r *parley.LedgerEntry) string { return Plain(r.Reference) }},
		{"description", func(r *parley.LedgerEntry) string { return Plain(r.Description) }},
	}, func(row func(*parley.LedgerEntry) error) error {
		return pages(func(p store.Page) ([]parley.LedgerEntry, int, error) { return db.Ledger(ctx, userID, from, to, p) },
			func(r *parley.LedgerEntry) int64 { return r.ID }, row)
	})
}

// Audit writes who changed what in the user's account.
func Audit(ctx context.Context, db *store.DB, userID int64, f store.AuditFilter, zone *time.Location, out File) error {
	c := clock{zone}
	return write(out, "audit.csv", []column[parley.AuditEntry]{
		{"id", func(r *parley.AuditEntry) string { return whole(r.ID) }},
		{"created_at", func(r *parley.AuditEntry) string { return at(c, r.CreatedAt) }},
		{"who", func(r *parley.AuditEntry) string { return r.Who }},
		{"who_name", func(r *parley.AuditEntry) string { return Plain(r.WhoName) }},
		{"address", func(r *parley.AuditEntry) string { return Plain(r.Address) }},
		{"action", func(r *parley.AuditEntry) string { return string(r.Action) }},
		{"kind", func(r *parley.AuditEntry) string { return string(r.Kind) }},
		{"thing_id", func(r *parley.AuditEntry) string { return Plain(r.ThingID) }},
		{"name", func(r *parley.AuditEntry) string { return Plain(r.Name) }},
		{"changes", func(r *parley.AuditEntry) string { return Plain(r.Summary()) }},
	}, func(row func(*parley.AuditEntry) error) error {
		return pages(func(p store.Page) ([]parley.AuditEntry, int, error) { return db.Audit(ctx, userID, f, p) },
			func(r *parley.AuditEntry) int64 { return r.ID }, row)
	})
}

// Texts writes the user's text messages that a filter takes.
func Texts(ctx context.Context, db *store.DB, userID int64, f store.SMSFilter, zone *time.Location, out File) error {
	c := clock{zone}
	return write(out, "messages.csv", []column[parley.SMS]{
		{"id", func(r *parley.SMS) string { return whole(r.ID) }},
		{"created_at", func(r *parley.SMS) string { return at(c, r.CreatedAt) }},
		{"from_number", func(r *parley.SMS) string { return phone(&r.From) }},
		{"to", func(r *parley.SMS) string { return phone(&r.To) }},
		{"status", func(r *parley.SMS) string { return string(r.Status) }},
		{"segments", func(r *parley.SMS) string { return whole(r.Segments) }},
		{"total_cost", func(r *parley.SMS) string { return r.TotalCost.String() }},
		{"error", func(r *parley.SMS) string { return text(r.Error) }},
		{"body", func(r *parley.SMS) string { return Plain(r.Body) }},
	}, func(row func(*parley.SMS) error) error {
		return pages(func(p store.Page) ([]parley.SMS, int, error) { return db.SMSPage(ctx, userID, f, p) },
			func(r *parley.SMS) int64 { return r.ID }, row)
	})
}

// Deliveries writes the user's webhook deliveries of an event and a status, all where these are empty.
func Deliveries(ctx context.Context, db *store.DB, userID int64, event parley.EventKind, status parley.DeliveryStatus,
	zone *time.Location, out File) error {
	c := clock{zone}
	return write(out, "webhooks.csv", []column[parley.Delivery]{
		{"id", func(r *parley.Delivery) string { return whole(r.ID) }},
		{"created_at", func(r *parley.Delivery) string { return at(c, r.CreatedAt) }},
		{"webhook_id", func(r *parley.Delivery) string { return r.WebhookID }},
		{"event", func(r *parley.Delivery) string { return string(r.Event) }},
		{"url", func(r *parley.Delivery) string { return Plain(r.URL) }},
		{"status", func(r *parley.Delivery) string { return string(r.Status) }},
		{"attempts", func(r *parley.Delivery) string { return whole(r.Attempts) }},
		{"last_status", func(r *parley.Delivery) string {
			if r.LastStatus == nil {
				return ""
			}
			return whole(*r.LastStatus)
		}},
		{"last_error", func(r *parley.Delivery) string { return text(r.LastError) }},
		{"next_attempt_at", func(r *parley.Delivery) string { return at(c, r.NextAttemptAt) }},
	}, func(row func(*parley.Delivery) error) error {
		return pages(func(p store.Page) ([]parley.Delivery, int, error) {
			return db.Deliveries(ctx, userID, event, status, p)
		},
			func(r *parley.Delivery) int64 { return r.ID }, row)
	})
}

// TestRuns writes the runs of an assistant's tests.
func TestRuns(ctx context.Context, db *store.DB, userID, assistantID int64, zone *time.Location, out File) error {
	c := clock{zone}
	return write(out, "test-runs.csv", []column[parley.TestRun]{
		{"id", func(r *parley.TestRun) string { return whole(r.ID) }},
		{"created_at", func(r *parley.TestRun) string { return at(c, r.CreatedAt) }},
		{"finished_at", func(r *parley.TestRun) string { return at(c, r.FinishedAt) }},
		{"status", func(r *parley.TestRun) string { return r.Status }},
		{"draft", func(r *parley.TestRun) string { return fmt.Sprint(r.Draft != nil) }},
		{"call_id", func(r *parley.TestRun) string { return some(r.CallID) }},
		{"conversation_id", func(r *parley.TestRun) string { return text(r.ConversationID) }},
		{"total", func(r *parley.TestRun) string { return whole(r.Total) }},
		{"passed", func(r *parley.TestRun) string { return whole(r.Passed) }},
		{"failed", func(r *parley.TestRun) string { return whole(r.Failed) }},
		{"broken", func(r *parley.TestRun) string { return whole(r.Broken) }},
	}, func(row func(*parley.TestRun) error) error {
		return pages(func(p store.Page) ([]parley.TestRun, int, error) { return db.TestRuns(ctx, userID, assistantID, p) },
			func(r *parley.TestRun) int64 { return r.ID }, row)
	})
}
