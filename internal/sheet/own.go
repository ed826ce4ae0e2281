package sheet

import (
	"context"
	"fmt"
	"strings"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
)

// Assistants writes the user's assistants, without their prompts: an assistant's export has those.
func Assistants(ctx context.Context, db *store.DB, userID int64, zone *time.Location, out File) error {
	c := clock{zone}
	return write(out, "assistants.csv", []column[parley.Assistant]{
		{"id", func(r *parley.Assistant) string { return whole(r.ID) }},
		{"uuid", func(r *parley.Assistant) string { return r.UUID }},
		{"created_at", func(r *parley.Assistant) string { return at(c, r.CreatedAt) }},
		{"updated_at", func(r *parley.Assistant) string { return at(c, r.UpdatedAt) }},
		{"name", func(r *parley.Assistant) string { return Plain(r.Name) }},
		{"type", func(r *parley.Assistant) string { return r.Type }},
		{"status", func(r *parley.Assistant) string { return r.Status }},
		{"mode", func(r *parley.Assistant) string { return r.Mode }},
		{"language_id", func(r *parley.Assistant) string { return whole(r.LanguageID) }},
		{"timezone", func(r *parley.Assistant) string { return r.Timezone }},
		{"phone_number_id", func(r *parley.Assistant) string { return some(r.PhoneNumberID) }},
		{"knowledgebase_id", func(r *parley.Assistant) string { return some(r.KnowledgebaseID) }},
	}, func(row func(*parley.Assistant) error) error {
		return pages(func(p store.Page) ([]parley.Assistant, int, error) { return db.AssistantRows(ctx, userID, p) },
			func(r *parley.Assistant) int64 { return r.ID }, row)
	})
}

// Numbers writes the user's phone numbers, with the assistants that answer them.
func Numbers(ctx context.Context, db *store.DB, userID int64, zone *time.Location, out File) error {
	c := clock{zone}
	list, err := db.Numbers(ctx, userID)
	if err != nil {
		return err
	}
	inbound, err := db.Assistants(ctx, userID, "inbound")
	if err != nil {
		return err
	}
	answers := map[int64]*parley.Assistant{}
	for i := range inbound {
		if id := inbound[i].PhoneNumberID; id != nil {
			answers[*id] = &inbound[i]
		}
	}
	return write(out, "numbers.csv", []column[parley.Number]{
		{"id", func(r *parley.Number) string { return whole(r.ID) }},
		{"created_at", func(r *parley.Number) string { return at(c, r.CreatedAt) }},
		{"phone_number", func(r *parley.Number) string { return phone(&r.PhoneNumber) }},
		{"nickname", func(r *parley.Number) string { return text(r.Nickname) }},
		{"country_code", func(r *parley.Number) string { return r.CountryCode }},
		{"type", func(r *parley.Number) string { return string(r.Type) }},
		{"sms_capable", func(r *parley.Number) string { return fmt.Sprint(r.SMSCapable) }},
		{"rent", func(r *parley.Number) string { return r.Rent.String() }},
		{"paid_until", func(r *parley.Number) string { return at(c, r.PaidUntil) }},
		{"released_at", func(r *parley.Number) string { return at(c, r.ReleasedAt) }},
		{"assistant_id", func(r *parley.Number) string {
			if a := answers[r.ID]; a != nil {
				return whole(a.ID)
			}
			return ""
		}},
		{"assistant_name", func(r *parley.Number) string {
			if a := answers[r.ID]; a != nil {
				return Plain(a.Name)
			}
			return ""
		}},
	}, each(list))
}

// Blacklist writes the numbers that no campaign of the user's calls.
func Blacklist(ctx context.Context, db *store.DB, userID int64, zone *time.Location, out File) error {
	c := clock{zone}
	return write(out, "do-not-call.csv", []column[parley.BlacklistEntry]{
		{"id", func(r *parley.BlacklistEntry) string { return whole(r.ID) }},
		{"created_at", func(r *parley.BlacklistEntry) string { return at(c, r.CreatedAt) }},
		{"phone_number", func(r *parley.BlacklistEntry) string { return phone(&r.PhoneNumber) }},
	}, func(row func(*parley.BlacklistEntry) error) error {
		return pages(func(p store.Page) ([]parley.BlacklistEntry, int, error) { return db.BlacklistPage(ctx, userID, p) },
			func(r *parley.BlacklistEntry) int64 { return r.ID }, row)
	})
}

// Tools writes the user's mid-call tools. Of their headers it has the names alone.
func Tools(ctx context.Context, db *store.DB, userID int64, zone *time.Location, out File) error {
	c := clock{zone}
	list, err := db.Tools(ctx, userID)
	if err != nil {
		return err
	}
	return write(out, "tools.csv", []column[parley.Tool]{
		{"id", func(r *parley.Tool) string { return whole(r.ID) }},
		{"created_at", func(r *parley.Tool) string { return at(c, r.CreatedAt) }},
		{"updated_at", func(r *parley.Tool) string { return at(c, r.UpdatedAt) }},
		{"name", func(r *parley.Tool) string { return Plain(r.Name) }},
		{"description", func(r *parley.Tool) string { return Plain(r.Description) }},
		{"method", func(r *parley.Tool) string { return r.Method }},
		{"endpoint", func(r *parley.Tool) string { return Plain(r.Endpoint) }},
		{"timeout", func(r *parley.Tool) string { return whole(r.Timeout) }},
		{"parameters", func(r *parley.Tool) string {
			names := make([]string, len(r.Schema))
			for i := range r.Schema {
				names[i] = r.Schema[i].Name
			}
			return Plain(strings.Join(names, " "))
		}},
		{"headers", func(r *parley.Tool) string {
			names := make([]string, len(r.Headers))
			for i := range r.Headers {
				names[i] = r.Headers[i].Name
			}
			return Plain(strings.Join(names, " "))
		}},
	}, each(list))
}

// Documents writes the documents of one of the user's knowledgebases, without their text.
func Documents(ctx context.Context, db *store.DB, userID, knowledgebaseID int64, zone *time.Location, out File) error {
	c := clock{zone}
	list, err := db.Documents(ctx, userID, knowledgebaseID)
	if err != nil {
		return err
	}
	return write(out, "documents.csv", []column[parley.Document]{
		{"id", func(r *parley.Document) string { return whole(r.ID) }},
		{"created_at", func(r *parley.Document) string { return at(c, r.CreatedAt) }},
		{"updated_at", func(r *parley.Document) string { return at(c, r.UpdatedAt) }},
		{"name", func(r *parley.Document) string { return Plain(r.Name) }},
		{"description", func(r *parley.Document) string { return text(r.Description) }},
		{"type", func(r *parley.Document) string { return string(r.Type) }},
		{"status", func(r *parley.Document) string { return string(r.Status) }},
		{"error", func(r *parley.Document) string { return text(r.Error) }},
		{"warnings", func(r *parley.Document) string { return Plain(strings.Join(r.Warnings, "\n")) }},
		{"url", func(r *parley.Document) string { return Plain(r.URL) }},
		{"bytes", func(r *parley.Document) string { return whole(r.Size) }},
		{"chunks_count", func(r *parley.Document) string { return whole(r.ChunksCount) }},
		{"duplicate_of", func(r *parley.Document) string { return some(r.DuplicateOf) }},
	}, each(list))
}
