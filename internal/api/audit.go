package api

import (
	"context"

	"parley/internal/parley"
	"parley/internal/store"
)

func (a *API) auditRoutes() {
	handle(a, op{Method: "GET", Path: "/user/audit", Name: "listAudit", Tag: "Identity",
		Summary: "Who changed what, newest first"}, a.listAudit)
}

// auditQuery are the filters of the audit log.
type auditQuery struct {
	Who  string `query:"who" maxLength:"40" doc:"owner, member:ID, key:ID, invitation:ID or operator."`
	Kind string `query:"kind" enum:"account,alert,api_key,assistant,assistant_draft,blacklist,call,caller_id,campaign,canned_answer,conversation,credit,customer,document,endpoint,filter,folder,invitation,knowledgebase,label,lead,member,number,number_order,provider,share_link,test,tool,trunk,two_factor,voicemail_recording,webhook_endpoint,webhook_secret,whatsapp_sender" doc:"The kind of the thing."`
	dateQuery
}

func (q auditQuery) filter() store.AuditFilter {
	f := store.AuditFilter{Who: q.Who, Kind: parley.AuditKind(q.Kind)}
	f.From, f.To = q.bounds()
	return f
}

func (a *API) listAudit(ctx context.Context, r *request, in *struct {
	pageQuery
	auditQuery
}) (*Paginated[parley.AuditEntry], error) {
	p := in.page(15)
	list, total, err := a.DB.Audit(ctx, r.UserID(), in.filter(), p)
	if err != nil {
		return nil, err
	}
	e := envelope(a, r.Request, list, total, p)
	return &e, nil
}
