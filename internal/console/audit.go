package console

import (
	"net/url"
	"time"

	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/sheet"
	"parley/internal/store"
)

// auditQuery are the filters of the audit log: the API's.
type auditQuery struct {
	Who  string `query:"who" maxLength:"40"`
	Kind string `query:"kind" maxLength:"40"`
	dates
	Page int `query:"page" minimum:"1" maximum:"2147483648"`
}

func (q auditQuery) filter(zone *time.Location) store.AuditFilter {
	f := store.AuditFilter{Who: q.Who, Kind: parley.AuditKind(q.Kind)}
	f.From, f.To = q.bounds(zone)
	return f
}

func (q auditQuery) values() url.Values {
	v := q.dates.values()
	set(v, "who", q.Who)
	set(v, "kind", q.Kind)
	return v
}

func (q auditQuery) at(page int) string { return address("/audit", q.values(), page) }

// auditLog is a page of who changed what.
type auditLog struct {
	auditQuery
	list  []parley.AuditEntry
	total int
	whos  []option
}

func (c *Console) auditPage(r *request) (*answer, error) {
	l := &auditLog{auditQuery: auditQuery{Page: 1}}
	if len(form.Query(r.URL.Query(), &l.auditQuery)) > 0 {
		return see("/audit"), nil
	}
	var err error
	l.list, l.total, err = c.DB.Audit(r.Context(), r.UserID(), l.filter(r.zone()), store.Page{Number: l.Page, Size: pageSize})
	if err != nil {
		return nil, err
	}
	if len(l.list) == 0 && l.total > 0 {
		return see(l.at((l.total + pageSize - 1) / pageSize)), nil
	}
	names, err := c.DB.AuditNames(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	l.whos = []option{{value: "", label: "Everybody"}}
	for _, e := range names {
		l.whos = append(l.whos, option{value: e.Who, label: e.WhoName})
	}
	return show("Audit log", auditPage(l)), nil
}

func (c *Console) auditSheet(r *request) (*answer, error) {
	var q auditQuery
	if err := asked(r, &q); err != nil {
		return nil, err
	}
	return c.sheet(r, func(zone *time.Location, out sheet.File) error {
		return sheet.Audit(r.Context(), c.DB, r.UserID(), q.filter(zone), zone, out)
	})
}

// auditKinds are the kinds of things as the filter names them.
var auditKinds = enum("=All kinds", "account=Account", "alert=Alerts", "api_key=API keys", "assistant=Assistants",
	"assistant_draft=Drafts of assistants", "call=Calls", "caller_id=Caller IDs", "campaign=Campaigns",
	"canned_answer=Canned answers", "conversation=Conversations", "credit=Credits", "customer=Customers", "blacklist=Do not call",
	"document=Documents", "endpoint=Endpoints", "filter=Filters", "folder=Folders", "invitation=Invitations", "knowledgebase=Knowledge",
	"label=Labels", "lead=Leads", "member=Members",
	"number=Numbers", "number_order=Orders of numbers", "provider=Providers", "share_link=Share links", "trunk=SIP trunks",
	"test=Tests", "tool=Tools", "two_factor=Two-factor sign-in", "voicemail_recording=Voicemail recordings",
	"webhook_endpoint=Webhook endpoint",
	"webhook_secret=Webhook secrets", "whatsapp_sender=WhatsApp senders")

// auditThings are the kinds of things in a sentence.
var auditThings = map[parley.AuditKind]string{parley.AuditAccount: "the account", parley.AuditAlert: "the alert",
	parley.AuditKey: "the API key", parley.AuditAssistant: "the assistant", parley.AuditDraft: "the draft of the assistant",
	parley.AuditBlacklist: "the do-not-call entry", parley.AuditCall: "the call", parley.AuditCallerID: "the caller ID to be verified",
	parley.AuditCampaign: "the campaign", parley.AuditCanned: "the canned answer", parley.AuditConversation: "the conversation",
	parley.AuditCredit: "the credit", parley.AuditCustomer: "the data of a customer", parley.AuditDocument: "the document",
	parley.AuditFilter: "the filter", parley.AuditFolder: "the folder", parley.AuditLabel: "the label",
	parley.AuditInvitation: "the invitation", parley.AuditKnowledge: "the knowledgebase",
	parley.AuditLead: "leads", parley.AuditMember: "the member", parley.AuditNumber: "the phone number",
	parley.AuditOrder: "the order of the phone number", parley.AuditProvider: "the key of the provider",
	parley.AuditEndpoint: "the endpoint", parley.AuditShareLink: "the share link of assistant", parley.AuditTest: "the test",
	parley.AuditTool: "the tool", parley.AuditTrunk: "the SIP trunk", parley.AuditTwoFactor: "two-factor sign-in",
	parley.AuditVoicemail: "the recorded voicemail message of the assistant", parley.AuditWebhook: "the webhook endpoint",
	parley.AuditWebhookSecret: "a webhook secret", parley.AuditSender: "the WhatsApp sender"}

// auditDone is what was done, in words.
func auditDone(e *parley.AuditEntry) string {
	verb := map[parley.AuditAction]string{parley.AuditCreated: "added", parley.AuditDeleted: "deleted"}[e.Action]
	switch {
	case e.Action == parley.AuditChanged && len(e.Changes) == 0:
		verb = "saved, without a change,"
	case e.Action == parley.AuditChanged:
		verb = "changed"
	case e.Kind == parley.AuditCustomer:
		verb = "erased"
	case e.Kind == parley.AuditTwoFactor && e.Action == parley.AuditCreated:
		verb = "began to set up"
	case e.Kind == parley.AuditTwoFactor:
		verb = "turned off"
	}
	thing := auditThings[e.Kind]
	if e.Kind == parley.AuditLead && e.ThingID != "" {
		thing = "the lead"
	}
	return " " + verb + " " + thing + " "
}

// auditName is what the thing of an entry is called: its name, or its id.
func auditName(e *parley.AuditEntry) string {
	switch {
	case e.Kind == parley.AuditProvider && e.Name != "":
		return e.ThingID + " (" + e.Name + ")"
	case e.Name != "":
		return e.Name
	case e.Kind == parley.AuditTwoFactor && e.ThingID != "":
		return "of member " + e.ThingID
	}
	return e.ThingID
}
