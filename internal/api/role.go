package api

import (
	"parley/internal/auth"
	"parley/internal/parley"
)

// self marks what people do for themselves, whatever their role: a key that is limited to a role may not.
const self parley.Role = "self"

// roles are what each operation needs of a credential. An operation that is not here needs an administrator: people, keys, the account.
// TestRoles walks all operations with all roles.
var roles = parley.MinRoles(map[parley.Role]string{
	self: `
		POST /logout
		POST /user/me/confirm-email
		PUT /user/me`,
	parley.NeedSession: `
		GET /user/me`,
	parley.NeedLedger: `
		GET /user/billing/ledger
		GET /user/billing/ledger.csv`,
	parley.RoleBilling: `
		POST /user/billing/checkout
		GET /user/billing/checkout/{id}`,
	parley.RoleAuditor: `
		GET /user/audit
		GET /user/audit.csv`,
	parley.NeedSecrets: `
		GET /user/webhook-secret`,
	parley.RoleViewer: `
		GET /user/setup
		GET /user/analytics
		GET /user/assistants
		GET /user/assistants/get
		GET /user/folders
		GET /user/labels
		GET /user/filters
		GET /user/filters/{id}
		GET /user/assistants/outbound
		GET /user/assistants/languages
		GET /user/assistants/voices
		GET /user/assistants/synthesizer-providers
		GET /user/assistants/transcriber-providers
		GET /user/assistants/models
		GET /user/assistants/phone-numbers
		GET /user/assistant/{id}
		GET /user/assistant/{id}/voicemail-recording
		GET /user/assistants/{id}
		GET /user/assistants/{assistant}/tests
		GET /user/assistants/{assistant}/tests/{id}
		GET /user/assistants/{assistant}/test-runs
		GET /user/assistants/{assistant}/test-runs/{id}
		GET /user/test-runs.csv
		GET /user/assistants.csv
		GET /user/phone-numbers.csv
		GET /user/blacklist.csv
		GET /user/documents.csv
		GET /user/calls
		GET /user/calls.csv
		GET /user/calls/{id}
		GET /user/calls/{id}/events
		GET /user/calls/{id}/recording
		GET /user/calls/{id}/legs/{leg}/recording
		GET /user/conversations
		GET /user/conversations.csv
		GET /user/conversations/{id}
		GET /user/conversations/{id}/notes
		GET /user/canned-answers
		GET /user/canned-answers/{id}
		GET /user/campaigns
		GET /user/campaigns.csv
		GET /user/campaign/{id}
		GET /user/campaigns/{id}
		GET /user/campaigns/{id}/stats
		GET /user/campaigns/{id}/export
		GET /user/leads
		GET /user/leads.csv
		GET /user/leads/{id}
		GET /user/blacklist
		GET /user/phone-numbers
		GET /user/phone-numbers/all
		GET /user/phone-numbers/routes/{id}
		GET /user/phone-numbers/sip-trunks
		GET /user/phone-numbers/sip-trunks/presets
		GET /user/phone-numbers/sip-trunks/{id}
		GET /user/sms
		GET /user/sms.csv
		GET /user/sms/{id}
		GET /user/sandbox/outbox
		GET /user/whatsapp/senders
		GET /user/whatsapp/senders/{id}/templates
		GET /user/whatsapp/session-status
		GET /user/alerts
		GET /user/alerts/{id}
		GET /user/knowledgebases
		GET /user/knowledgebases/{id}
		POST /user/knowledgebases/{id}/search
		GET /user/knowledgebases/{id}/documents
		GET /user/knowledgebases/{id}/documents/{document}
		GET /user/knowledgebases/{id}/documents/{document}/content
		GET /voices/{id}/preview
		GET /widgets/{id}
		GET /conversations/{id}
		GET /conversations/{id}/events`,
	parley.RoleAgent: `
		POST /user/filters
		PUT /user/filters/{id}
		DELETE /user/filters/{id}
		POST /user/conversations/{id}/reply
		POST /user/conversations/{id}/notes
		DELETE /user/conversations/{id}/notes/{note}
		POST /user/conversations/{id}/enable-ai
		POST /user/conversations/{id}/disable-ai
		POST /automate/conversations/{id}/enable-ai
		POST /automate/conversations/{id}/disable-ai
		POST /user/calls/{id}/hangup
		POST /user/calls/{id}/legs
		POST /user/calls/{id}/listen
		POST /user/calls/{id}/whisper
		PUT /user/calls/{id}/legs/{leg}
		DELETE /user/calls/{id}/legs/{leg}
		PATCH /user/calls/{id}/legs/{leg}
		PATCH /web-calls/{id}/{session}
		DELETE /web-calls/{id}/{session}
		POST /user/sms
		POST /user/whatsapp/send
		POST /user/whatsapp/send-freeform
		POST /user/blacklist`,
	parley.RoleEditor: `
		POST /user/assistant
		POST /user/assistants
		POST /user/folder
		POST /user/folders
		PUT /user/folder/{id}
		PUT /user/folders/{id}
		DELETE /user/folder/{id}
		DELETE /user/folders/{id}
		POST /user/label
		POST /user/labels
		PUT /user/label/{id}
		PUT /user/labels/{id}
		DELETE /user/label/{id}
		DELETE /user/labels/{id}
		PUT /user/assistant/{id}
		PATCH /user/assistant/{id}
		DELETE /user/assistant/{id}
		PUT /user/assistant/{id}/voicemail-recording
		DELETE /user/assistant/{id}/voicemail-recording
		PUT /user/assistants/{id}
		PATCH /user/assistants/{id}
		DELETE /user/assistants/{id}
		POST /user/assistant/{id}/prompt-versions/{version}/restore
		POST /user/assistants/enable-webhook
		POST /user/assistants/disable-webhook
		POST /user/assistants/enable-inbound-webhook
		POST /user/assistants/disable-inbound-webhook
		POST /user/assistants/enable-conversation-ended-webhook
		POST /user/assistants/disable-conversation-ended-webhook
		GET /user/assistant/{id}/prompt-versions
		GET /user/assistant/{id}/prompt-versions/{version}
		GET /user/assistant/{id}/prompt-versions/{version}/diff
		GET /user/assistants/{id}/draft
		GET /user/assistants/{id}/draft/diff
		GET /user/assistants/{id}/versions
		GET /user/assistants/{id}/versions/{version}
		GET /user/assistants/{id}/versions/{version}/diff
		PUT /user/assistants/{id}/draft
		PATCH /user/assistants/{id}/draft
		DELETE /user/assistants/{id}/draft
		POST /user/assistants/{id}/publish
		POST /user/assistants/{id}/versions/{version}/restore
		GET /user/assistants/{id}/export
		POST /user/assistants/import
		POST /user/assistants/{id}/duplicate
		POST /user/assistants/{id}/share-links
		GET /user/assistants/{id}/share-links
		DELETE /user/assistants/{id}/share-links
		POST /user/assistants/{id}/webhook-test
		POST /user/assistants/{assistant}/tests
		PUT /user/assistants/{assistant}/tests/{id}
		DELETE /user/assistants/{assistant}/tests/{id}
		POST /user/assistants/{assistant}/test-runs
		POST /user/assistants/{assistant}/test-runs/{id}/stop
		DELETE /user/assistants/{assistant}/test-runs/{id}
		POST /user/calls/{id}/test
		POST /user/conversations/{id}/test
		POST /user/rehearsals
		GET /user/rehearsals/{id}
		POST /user/rehearsals/{id}/words
		DELETE /user/rehearsals/{id}
		POST /conversations
		POST /conversations/{id}/messages
		POST /user/ai/generate-reply
		POST /ai/generate-reply
		POST /web-calls/{id}
		GET /user/endpoints
		POST /user/endpoints
		GET /user/endpoints/{id}
		PUT /user/endpoints/{id}
		DELETE /user/endpoints/{id}
		POST /user/endpoints/{id}/test
		GET /user/tools
		GET /user/tools.csv
		POST /user/tools
		GET /user/tools/{id}
		PUT /user/tools/{id}
		DELETE /user/tools/{id}
		POST /user/tools/{id}/test
		POST /user/tools/{id}/refresh
		DELETE /user/conversations/{id}
		DELETE /user/customers/{phone}
		POST /user/make_call
		DELETE /user/calls/{id}
		GET /user/calls/{id}/sip
		POST /user/campaign
		PUT /user/campaign/{id}
		DELETE /user/campaign/{id}
		POST /user/campaigns
		PUT /user/campaigns/{id}
		DELETE /user/campaigns/{id}
		POST /user/campaigns/update-status
		GET /user/campaigns/{id}/review
		POST /user/campaigns/{id}/schedule
		DELETE /user/campaigns/{id}/schedule
		POST /user/campaigns/{id}/try
		GET /user/campaigns/{id}/sample.csv
		POST /user/lead
		POST /user/leads/import
		PUT /user/leads/{id}
		PATCH /user/leads/{id}
		DELETE /user/leads/{id}
		PUT /leads/{id}
		PATCH /leads/{id}
		DELETE /leads/{id}
		DELETE /user/blacklist/{id}
		GET /user/phone-numbers/search
		POST /user/phone-numbers/purchase
		PUT /user/phone-numbers/{id}
		DELETE /user/phone-numbers/{id}
		PUT /user/phone-numbers/routes/{id}
		DELETE /user/phone-numbers/routes/{id}
		POST /user/phone-numbers/caller-ids
		POST /user/phone-numbers/caller-ids/{id}/verify
		POST /user/phone-numbers/sip-trunks
		PUT /user/phone-numbers/sip-trunks/{id}
		DELETE /user/phone-numbers/sip-trunks/{id}
		GET /user/phone-numbers/sip-trunks/{id}/refusals
		POST /user/phone-numbers/sip-trunks/{id}/check
		POST /user/phone-numbers/sip-trunks/{id}/test-call
		POST /user/sandbox/sms-inbound
		PUT /user/whatsapp/senders/{id}
		GET /user/webhook-endpoint
		GET /user/webhook-deliveries
		GET /user/webhook-deliveries.csv
		GET /user/webhook-deliveries/{id}
		POST /user/webhook-deliveries/{id}/resend
		POST /user/canned-answers
		PUT /user/canned-answers/{id}
		DELETE /user/canned-answers/{id}
		POST /user/alerts
		PUT /user/alerts/{id}
		DELETE /user/alerts/{id}
		POST /user/alerts/{id}/test
		POST /user/knowledgebases
		PUT /user/knowledgebases/{id}
		DELETE /user/knowledgebases/{id}
		POST /user/knowledgebases/{id}/documents
		PUT /user/knowledgebases/{id}/documents/{document}
		DELETE /user/knowledgebases/{id}/documents/{document}
		POST /user/knowledgebases/{id}/documents/{document}/retry`,
})

// secretReads are the operations that show what only those may see who change it: an auditor may not.
var secretReads = map[string]bool{"GET /user/assistants/{id}/draft": true, "GET /user/assistants/{id}/draft/diff": true,
	"GET /user/assistants/{id}/versions/{version}": true, "GET /user/assistants/{id}/versions/{version}/diff": true,
	"GET /user/assistants/{id}/export": true, "GET /user/assistants/{id}/share-links": true, "GET /user/rehearsals/{id}": true,
	"GET /server/vendors": true}

// least is what an operation needs of a credential.
func (o *op) least() parley.Role {
	if role, ok := roles[o.Method+" "+o.Path]; ok {
		return role
	}
	return parley.RoleAdministrator
}

// may refuses an operation that the caller's role doesn't cover.
func (o *op) may(who *auth.Who) error {
	switch least := o.least(); {
	case least == self:
		return who.MayChangeSelf()
	case o.Method == "GET" && !secretReads["GET "+o.Path]:
		return who.MayRead(least)
	default:
		return who.May(least)
	}
}
