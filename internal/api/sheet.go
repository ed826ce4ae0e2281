package api

import (
	"context"
	"io"
	"time"

	"parley/internal/parley"
	"parley/internal/sheet"
	"parley/internal/store"
	"parley/internal/web"
)

// sheetRoutes are the lists as CSV: whole, newest first, with the filters of the lists.
func (a *API) sheetRoutes() {
	list := func(path, name, tag, summary string) op {
		return op{Method: "GET", Path: "/user/" + path, Name: name, Tag: tag, Stream: "text/csv", Summary: summary}
	}
	handle(a, list("calls.csv", "exportCalls", "Calls", "All calls that match the filters, as CSV"), a.exportCalls)
	handle(a, list("conversations.csv", "exportConversations", "Conversations",
		"All conversations that match the filters, as CSV"), a.exportConversations)
	handle(a, list("leads.csv", "exportLeads", "Campaigns", "All leads that match the filters, as CSV"), a.exportLeads)
	handle(a, list("campaigns.csv", "exportCampaigns", "Campaigns", "All campaigns, as CSV"), a.exportCampaigns)
	handle(a, list("billing/ledger.csv", "exportLedger", "Billing", "Every movement of the balance, as CSV"), a.exportLedger)
	handle(a, list("audit.csv", "exportAudit", "Identity", "Who changed what, as CSV"), a.exportAudit)
	handle(a, list("sms.csv", "exportSMS", "SMS", "All text messages that the filters take, as CSV"), a.exportSMS)
	handle(a, list("webhook-deliveries.csv", "exportDeliveries", "Webhooks",
		"All deliveries that match the filters, as CSV"), a.exportDeliveries)
	handle(a, list("test-runs.csv", "exportTestRuns", "Tests", "The runs of an assistant's tests, as CSV"), a.exportTestRuns)
}

// ownSheetRoutes are the lists of what an account has, as CSV.
func (a *API) ownSheetRoutes() {
	whole := func(path, name, tag, summary string, write func(context.Context, *store.DB, int64, *time.Location, sheet.File) error) {
		handle(a, op{Method: "GET", Path: "/user/" + path, Name: name, Tag: tag, Stream: "text/csv", Summary: summary},
			func(ctx context.Context, r *request, _ *none) (none, error) {
				return a.sheet(r, func(zone *time.Location, out sheet.File) error { return write(ctx, a.DB, r.UserID(), zone, out) })
			})
	}
	whole("assistants.csv", "exportAssistants", "Assistants", "All assistants, without their prompts, as CSV", sheet.Assistants)
	whole("phone-numbers.csv", "exportNumbers", "Phone numbers", "All phone numbers, as CSV", sheet.Numbers)
	whole("blacklist.csv", "exportBlacklist", "Blacklist", "The blacklist, as CSV", sheet.Blacklist)
	whole("tools.csv", "exportTools", "Tools", "All mid-call tools, without the values of their headers, as CSV", sheet.Tools)
	handle(a, op{Method: "GET", Path: "/user/documents.csv", Name: "exportDocuments", Tag: "Knowledgebases", Stream: "text/csv",
		Summary: "The documents of a knowledgebase, as CSV"}, a.exportDocuments)
}

type documentsOf struct {
	KnowledgebaseID int64 `query:"knowledgebase_id" doc:"Whose documents; required."`
}

func (a *API) exportDocuments(ctx context.Context, r *request, in *documentsOf) (none, error) {
	return a.sheet(r, func(zone *time.Location, out sheet.File) error {
		return sheet.Documents(ctx, a.DB, r.UserID(), in.KnowledgebaseID, zone, out)
	})
}

// sheet sends a list, with times in the caller's time zone.
func (a *API) sheet(r *request, write func(zone *time.Location, out sheet.File) error) (none, error) {
	err := web.SendCSV(r.W, r.Request, func(begin func(string) io.Writer) error { return write(r.Who.Zone(), sheet.File{Begin: begin}) })
	if err == nil {
		err = errAnswered
	}
	return none{}, err
}

func (a *API) exportCalls(ctx context.Context, r *request, in *callQuery) (none, error) {
	if err := a.ownFilters(ctx, r, in.AssistantID, in.CampaignID); err != nil {
		return none{}, err
	}
	return a.sheet(r, func(zone *time.Location, out sheet.File) error {
		return sheet.Calls(ctx, a.DB, r.UserID(), in.filter(r.UserID()), zone, out)
	})
}

func (a *API) exportConversations(ctx context.Context, r *request, in *conversationQuery) (none, error) {
	if err := a.ownFilters(ctx, r, in.AssistantID, 0); err != nil {
		return none{}, err
	}
	return a.sheet(r, func(zone *time.Location, out sheet.File) error {
		return sheet.Conversations(ctx, a.DB, r.UserID(), in.filter(r), zone, out)
	})
}

func (a *API) exportLeads(ctx context.Context, r *request, in *leadQuery) (none, error) {
	if err := a.ownFilters(ctx, r, 0, in.CampaignID); err != nil {
		return none{}, err
	}
	return a.sheet(r, func(zone *time.Location, out sheet.File) error {
		return sheet.Leads(ctx, a.DB, r.UserID(), in.filter(), zone, out)
	})
}

func (a *API) exportCampaigns(ctx context.Context, r *request, _ *none) (none, error) {
	return a.sheet(r, func(zone *time.Location, out sheet.File) error {
		return sheet.Campaigns(ctx, a.DB, r.UserID(), zone, out)
	})
}

func (a *API) exportLedger(ctx context.Context, r *request, in *dateQuery) (none, error) {
	return a.sheet(r, func(zone *time.Location, out sheet.File) error {
		from, to := in.bounds()
		return sheet.Ledger(ctx, a.DB, r.UserID(), from, to, zone, out)
	})
}

func (a *API) exportAudit(ctx context.Context, r *request, in *auditQuery) (none, error) {
	return a.sheet(r, func(zone *time.Location, out sheet.File) error {
		return sheet.Audit(ctx, a.DB, r.UserID(), in.filter(), zone, out)
	})
}

func (a *API) exportSMS(ctx context.Context, r *request, in *smsQuery) (none, error) {
	return a.sheet(r, func(zone *time.Location, out sheet.File) error {
		return sheet.Texts(ctx, a.DB, r.UserID(), in.filter(r), zone, out)
	})
}

func (a *API) exportDeliveries(ctx context.Context, r *request, in *deliveryQuery) (none, error) {
	return a.sheet(r, func(zone *time.Location, out sheet.File) error {
		return sheet.Deliveries(ctx, a.DB, r.UserID(), parley.EventKind(in.Event), parley.DeliveryStatus(in.Status), zone, out)
	})
}

type runsOf struct {
	AssistantID int64 `query:"assistant_id" format:"assistant" doc:"Whose tests; required."`
}

func (a *API) exportTestRuns(ctx context.Context, r *request, in *runsOf) (none, error) {
	if _, err := a.DB.Assistant(ctx, r.UserID(), in.AssistantID); err != nil {
		return none{}, err
	}
	return a.sheet(r, func(zone *time.Location, out sheet.File) error {
		return sheet.TestRuns(ctx, a.DB, r.UserID(), in.AssistantID, zone, out)
	})
}
