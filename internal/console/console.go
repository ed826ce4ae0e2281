// Package console is the web console: pages rendered on the server with templ, enhanced by htmx and one small script
// of our own.
//
// Every page works as plain links and forms. Where a form or a link carries hx- attributes, htmx fetches the same
// whole page and puts only a part of it in place: there is one answer to a request, whoever asks.
//
// A page is a Go file with its handlers and a templ file with its looks; routes (below) lists them, and nav
// (layout.go) links them. A handler takes a *request and returns what to show (show), where to go (see), or an error:
// answer.go turns errors into pages. Forms are read by decode and shown by form (form.go), by the same tags that the
// API enforces.
package console

import (
	"context"
	"net/http"
	"time"

	"parley/internal/alert"
	"parley/internal/assistant"
	"parley/internal/auth"
	"parley/internal/billing"
	"parley/internal/call"
	"parley/internal/campaign"
	"parley/internal/catalog"
	"parley/internal/channel/sms"
	"parley/internal/channel/whatsapp"
	"parley/internal/chat"
	"parley/internal/endpoint"
	"parley/internal/event"
	"parley/internal/exam"
	"parley/internal/keyring"
	"parley/internal/knowledge"
	"parley/internal/limit"
	"parley/internal/number"
	"parley/internal/oauth"
	"parley/internal/oidc"
	"parley/internal/parley"
	"parley/internal/payment"
	"parley/internal/setup"
	"parley/internal/sheet"
	"parley/internal/store"
	"parley/internal/web"
)

//go:generate go tool templ generate

// Config is what the console shows and changes.
type Config struct {
	DB         *store.DB
	Auth       *auth.Authority
	Assistants *assistant.Studio
	Catalog    *catalog.Catalog
	Prices     *billing.Prices
	Chat       *chat.Chat
	Hub        *event.Hub
	Numbers    *number.Pool
	SMS        *sms.Channel
	WhatsApp   *whatsapp.Channel
	Knowledge  *knowledge.Library
	Keys       *keyring.Ring // of vendors
	Setup      *setup.Setup
	Exams      *exam.Desk // tests of assistants
	Calls      *call.Center
	Campaigns  *campaign.Roster
	Alerts     *alert.Watch
	Endpoints  *endpoint.Book
	Payments   *payment.Till // by card; nil: nobody can pay

	// Calls from this browser, as the API takes them from others; nil where the server takes none.
	Answer func(w http.ResponseWriter, r *http.Request, a *parley.Assistant, place func(session string) string) error
	Hangup func(ctx context.Context, session string) bool
	// it connects anew, from another network
	Reconnect func(w http.ResponseWriter, r *http.Request, session string) error
	// somebody takes part in a live call from this browser; nil likewise
	Attend func(w http.ResponseWriter, r *http.Request, who *auth.Who, id int64, mode parley.LegMode, place func(leg int64) string) error
	// Reattend connects the browser of one of their legs anew.
	Reattend func(w http.ResponseWriter, r *http.Request, userID, id, leg int64) error

	Issuer *oidc.Issuer  // signs people in too; nil: nobody does
	Apps   *oauth.Server // lets apps in by OAuth; nil: none
	Signup bool          // whoever it vouches for gets an account

	Front   web.Front     // how the server is seen from outside
	Create  *auth.Limiter // test chats and calls begun per address, the API's too; nil: no limit
	Message *auth.Limiter // messages per conversation, the API's too; nil: no limit
	Streams *auth.Slots   // live streams at once per address, the API's too; nil: no limit
	Gate    *limit.Gate   // the API's; nil: no limits
}

// Console is the handler of every page.
type Console struct {
	Config
	mux      *http.ServeMux
	private  map[string]bool // the patterns that are for people who are signed in
	handler  http.Handler
	askWho   time.Duration // how often a live stream asks whether its session still stands
	stopping chan struct{} // closed when streams without an end of their own must end
}

// New makes the console. It starts nothing.
func New(c Config) *Console {
	h := &Console{Config: c, mux: http.NewServeMux(), private: map[string]bool{}, askWho: lookAgain, stopping: make(chan struct{})}
	h.routes()
	if h.Streams == nil {
		h.Streams = auth.NewSlots(0)
	}
	if h.Create == nil {
		h.Create = auth.NewLimiter(auth.Rate{})
	}
	if h.Message == nil {
		h.Message = auth.NewLimiter(auth.Rate{})
	}
	// SameSite keeps the cookie from cross-site requests; this refuses the requests themselves, from other origins of
	// the same site too.
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(h.denyForeign))
	if own := web.Origin(c.Front.PublicURL); own != "" {
		guard.AddTrustedOrigin(own) // it is one
	}
	within := guard.Handler(h.mux)
	h.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// If a browser sends only an Origin, the guard compares its host; this compares the scheme too.
		old := r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") != ""
		if old && r.Method != http.MethodGet && r.Method != http.MethodHead && !c.Front.Own(r) {
			h.denyForeign(w, r)
			return
		}
		within.ServeHTTP(w, r)
	})
	return h
}

// Stop ends the streams that would go on as long as somebody looks; their readers come back to the next server. Call
// it once.
func (c *Console) Stop() { close(c.stopping) }

func (c *Console) denyForeign(w http.ResponseWriter, r *http.Request) {
	c.fail(&request{Request: r, w: w}, parley.Errorf(parley.Forbidden,
		"This request came from another website, so it was refused. Open the console itself and try again."))
}

// routes are all pages.
func (c *Console) routes() {
	c.mux.HandleFunc("GET /assets/{name}", serveAsset)
	c.mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, assetPath("icon.svg"), http.StatusFound)
	})
	c.open("GET /signin", c.signInPage)
	c.open("POST /signin", c.signIn)
	c.open("GET /signin/code", c.codePage)
	c.open("POST /signin/code", c.codeEnter)
	if c.Issuer != nil {
		c.open("GET /signin/oidc", c.oidcBegin)
		c.open("GET /signin/oidc/callback", c.oidcEnd)
		c.open("GET /signin/oidc/join", c.oidcJoinPage)
		c.open("POST /signin/oidc/join", c.oidcJoin)
	}
	c.open("POST /signout", c.signOut)
	c.open("POST /theme", c.setTheme)
	c.open("GET /share/{token}", c.sharedPage)
	c.open("GET /join/{token}", c.joinPage)
	c.open("POST /join/{token}", c.join)
	c.open("GET /reset/{token}", c.resetPage)
	c.open("POST /reset/{token}", c.reset)
	c.open("GET /confirm/{token}", c.confirmPage)
	c.open("POST /confirm/{token}", c.confirm)
	c.open("/", func(r *request) (*answer, error) {
		return nil, parley.Errorf(parley.NotFound, "There is no such page.")
	})

	c.page("GET /{$}", c.overviewPage)
	c.page("GET /live", c.overviewLive)
	c.page("GET /waiting/live", c.waitingLive)
	c.page("GET /lives", c.lives)
	c.page("GET /analytics", c.analyticsPage)
	c.page("GET /alerts", c.alertList)
	c.page("GET /alerts/new", c.alertNew)
	c.page("POST /alerts/new", c.alertCreate)
	c.page("GET /alerts/{id}", c.alertPage)
	c.page("POST /alerts/{id}", c.alertSave)
	c.page("POST /alerts/{id}/test", c.alertTest)
	c.page("POST /alerts/{id}/delete", c.alertDelete)
	c.page("GET /filters", c.filterList)
	c.page("GET /filters/new", c.filterNew)
	c.page("POST /filters/new", c.filterSave)
	c.page("POST /filters/{id}", c.filterRename)
	c.page("POST /filters/{id}/delete", c.filterDelete)
	c.page("GET /setup", c.setupPage)
	c.page("GET /assistants", c.assistantList)
	c.page("GET /assistants/new", c.assistantNew)
	c.page("GET /folders", of(parley.Folder, c.groupList))
	c.page("POST /folders", of(parley.Folder, c.groupSave))
	c.page("GET /folders/{id}", of(parley.Folder, c.groupEdit))
	c.page("POST /folders/{id}", of(parley.Folder, c.groupSave))
	c.page("POST /folders/{id}/delete", of(parley.Folder, c.groupDelete))
	c.page("GET /labels", of(parley.Label, c.groupList))
	c.page("POST /labels", of(parley.Label, c.groupSave))
	c.page("GET /labels/{id}", of(parley.Label, c.groupEdit))
	c.page("POST /labels/{id}", of(parley.Label, c.groupSave))
	c.page("POST /labels/{id}/delete", of(parley.Label, c.groupDelete))
	c.page("GET /assistants/{id}/groups", c.filingPage)
	c.page("POST /assistants/{id}/groups", c.filingSave)
	c.page("POST /assistants/new", c.assistantCreate)
	c.page("POST /assistants/import", c.assistantImport)
	c.page("GET /assistants/{id}", c.assistantEdit)
	c.page("GET /assistants/{id}/export", c.assistantExport)
	c.page("POST /assistants/{id}/duplicate", c.assistantDuplicate)
	c.page("POST /assistants/{id}", c.assistantSave)
	c.page("POST /assistants/{id}/choices", c.assistantChoices)
	c.page("GET /assistants/{id}/widget", c.widgetPreview)
	c.page("POST /assistants/{id}/widget", c.widgetPreview)
	c.page("POST /assistants/{id}/delete", c.assistantDelete)
	c.page("GET /assistants/{id}/voicemail", c.voicemailPage)
	c.files("POST /assistants/{id}/voicemail", c.voicemailKeep)
	c.page("GET /assistants/{id}/voicemail/recording", c.voicemailRecording)
	c.page("POST /assistants/{id}/voicemail/delete", c.voicemailDelete)
	c.page("GET /assistants/{id}/share", c.shareList)
	c.page("POST /assistants/{id}/share", c.shareMake)
	c.page("POST /assistants/{id}/share/revoke", c.shareRevoke)
	c.page("GET /assistants/{id}/publish", c.publishPage)
	c.page("POST /assistants/{id}/publish", c.publish)
	c.page("POST /assistants/{id}/discard", c.draftDiscard)
	c.page("GET /assistants/{id}/versions", c.versionList)
	c.page("GET /assistants/{id}/versions/{version}", c.versionShow)
	c.page("POST /assistants/{id}/versions/{version}/restore", c.versionRestore)

	c.page("GET /assistants/{id}/tests", c.examList)
	c.page("GET /assistants/{id}/tests/live", c.examListLive)
	c.page("GET /assistants/{id}/tests/new", c.testNew)
	c.page("POST /assistants/{id}/tests/new", c.testCreate)
	c.page("GET /assistants/{id}/tests/{test}", c.testEdit)
	c.page("POST /assistants/{id}/tests/{test}", c.testSave)
	c.page("POST /assistants/{id}/tests/{test}/delete", c.testDelete)
	c.page("GET /assistants/{id}/try", c.tryPage)
	c.page("POST /assistants/{id}/test-runs", c.runStart)
	c.page("GET /assistants/{id}/test-runs/{run}", c.runPage)
	c.page("GET /assistants/{id}/test-runs/{run}/live", c.runLive)
	c.page("POST /assistants/{id}/test-runs/{run}/stop", c.runStop)
	c.page("GET /assistants/{id}/test-runs/{run}/results/{result}", c.resultPage)
	c.page("GET /assistants/{id}/test-runs/{run}/results/{result}/picture", c.resultPicture)
	c.page("POST /calls/{id}/test", c.testMake)
	c.page("POST /conversations/{id}/test", c.testMake)

	c.page("GET /assistants/{id}/talk", c.talkPage)
	c.page("POST /assistants/{id}/talk", c.talkStart)
	c.page("POST /assistants/{id}/web-call", c.webCallStart)
	c.page("PATCH /assistants/{id}/web-call/{session}", c.webCallReconnect)
	c.page("DELETE /assistants/{id}/web-call/{session}", c.webCallEnd)

	c.page("GET /assistants/{id}/call", c.callNew)
	c.page("POST /assistants/{id}/call", c.callStart)
	// lists as CSV, with the filters of their pages
	c.page("GET /calls.csv", c.callSheet)
	c.page("GET /conversations.csv", c.conversationSheet)
	c.page("GET /campaigns.csv", c.campaignSheet)
	c.page("GET /campaigns/{id}/leads.csv", c.campaignExport)
	c.page("GET /messages.csv", c.smsSheet)
	c.page("GET /ledger.csv", c.ledgerSheet)
	c.page("GET /audit.csv", c.auditSheet)
	c.page("GET /webhooks.csv", c.deliverySheet)
	c.page("GET /assistants/{id}/test-runs.csv", c.runSheet)
	c.page("GET /assistants.csv", c.whole(sheet.Assistants))
	c.page("GET /numbers.csv", c.whole(sheet.Numbers))
	c.page("GET /do-not-call.csv", c.whole(sheet.Blacklist))
	c.page("GET /tools.csv", c.whole(sheet.Tools))
	c.page("GET /knowledge/{id}/documents.csv", c.documentSheet)

	c.page("GET /calls", c.callList)
	c.page("GET /calls/live", c.callListLive)
	c.page("GET /live-calls", c.liveCallsPage)
	c.page("GET /live-calls/live", c.liveCallsLive)
	c.page("GET /calls/new", c.callChoose)
	c.page("GET /calls/{id}", c.callPage)
	c.page("GET /calls/{id}/live", c.callLive)
	c.page("GET /calls/{id}/recording", c.callRecording)
	c.page("GET /calls/{id}/legs/{leg}/recording", c.legRecording)
	c.page("GET /calls/{id}/peaks", c.callPeaks)
	c.page("POST /calls/{id}/hangup", c.callHangup)
	c.page("POST /calls/{id}/listen", c.callListen)
	c.page("PATCH /calls/{id}/listen/{leg}", c.callListenAgain)
	c.page("DELETE /calls/{id}/listen/{leg}", c.callLeave)
	c.page("POST /calls/{id}/legs/{leg}", c.callLegChange)
	c.page("POST /calls/{id}/legs/{leg}/set", c.callLegSet)
	c.page("POST /calls/{id}/whisper", c.callWhisper)
	c.page("POST /calls/{id}/invite", c.callInvite)
	c.page("POST /calls/{id}/delete", c.callDelete)

	c.page("GET /campaigns", c.campaignList)
	c.page("GET /campaigns/new", c.campaignNew)
	c.page("POST /campaigns/new", c.campaignCreate)
	c.page("GET /campaigns/{id}", c.campaignPage)
	c.page("GET /campaigns/{id}/live", c.campaignLive)
	c.page("GET /campaigns/{id}/export", c.campaignExport)
	c.page("GET /campaigns/{id}/edit", c.campaignEdit)
	c.page("POST /campaigns/{id}/edit", c.campaignSave)
	c.page("GET /campaigns/{id}/start", c.campaignAsk)
	c.page("POST /campaigns/{id}/start", c.campaignStart)
	c.page("POST /campaigns/{id}/schedule", c.campaignSchedule)
	c.page("POST /campaigns/{id}/unschedule", c.campaignUnschedule)
	c.page("POST /campaigns/{id}/try", c.campaignTry)
	c.page("GET /campaigns/{id}/sample.csv", c.campaignSample)
	c.page("POST /campaigns/{id}/stop", c.campaignStop)
	c.page("POST /campaigns/{id}/delete", c.campaignDelete)
	c.page("GET /campaigns/{id}/leads/new", c.leadPage)
	c.page("POST /campaigns/{id}/leads/new", c.leadSave)
	c.page("GET /campaigns/{id}/leads/{lead}", c.leadPage)
	c.page("POST /campaigns/{id}/leads/{lead}", c.leadSave)
	c.files("POST /campaigns/{id}/import", c.campaignImport)
	c.files("POST /campaigns/{id}/check", c.campaignCheck)

	c.page("GET /conversations", c.inboxPage)
	c.page("GET /conversations/live", c.inboxLive)
	c.page("GET /conversations/{id}", c.conversationPage)
	c.page("GET /conversations/{id}/live", c.conversationLive)
	c.page("POST /conversations/{id}/say", c.say)
	c.page("POST /conversations/{id}/reply", c.personReply)
	c.page("POST /conversations/{id}/writing", c.writing)
	c.page("POST /conversations/{id}/ai", c.setAI)
	c.page("POST /conversations/{id}/attended", c.attended)
	c.page("POST /conversations/{id}/notes", c.noteAdd)
	c.page("POST /conversations/{id}/notes/{note}/delete", c.noteDelete)
	c.page("GET /canned-answers", c.cannedList)
	c.page("POST /canned-answers", c.cannedSave)
	c.page("GET /canned-answers/{id}", c.cannedEdit)
	c.page("POST /canned-answers/{id}", c.cannedSave)
	c.page("POST /canned-answers/{id}/delete", c.cannedDelete)
	c.page("POST /conversations/{id}/delete", c.conversationDelete)

	c.page("GET /knowledge", c.knowledgeList)
	c.page("GET /knowledge/new", c.knowledgeNew)
	c.page("POST /knowledge/new", c.knowledgeCreate)
	c.page("GET /knowledge/{id}", c.knowledgePage)
	c.page("GET /knowledge/{id}/live", c.knowledgeLive)
	c.page("GET /knowledge/{id}/edit", c.knowledgeEdit)
	c.page("POST /knowledge/{id}/edit", c.knowledgeSave)
	c.page("POST /knowledge/{id}/delete", c.knowledgeDelete)
	c.files("POST /knowledge/{id}/files", c.filesAdd)
	c.page("POST /knowledge/{id}/site", c.siteAdd)
	c.page("GET /knowledge/{id}/documents/{document}", c.documentEdit)
	c.page("POST /knowledge/{id}/documents/{document}", c.documentSave)
	c.page("POST /knowledge/{id}/documents/{document}/retry", c.documentRetry)
	c.page("POST /knowledge/{id}/documents/{document}/delete", c.documentDelete)

	c.page("GET /tools", c.toolList)
	c.page("GET /tools/new", c.toolNew)
	c.page("POST /tools/new", c.toolCreate)
	c.page("GET /tools/{id}", c.toolEdit)
	c.page("POST /tools/{id}", c.toolSave)
	c.page("POST /tools/{id}/try", c.toolTry)
	c.page("POST /tools/{id}/list", c.toolRelist)
	c.page("POST /tools/{id}/delete", c.toolDelete)

	c.page("GET /endpoints", c.endpointList)
	c.page("GET /endpoints/new", c.endpointNew)
	c.page("POST /endpoints/new", c.endpointCreate)
	c.page("GET /endpoints/{id}", c.endpointEdit)
	c.page("POST /endpoints/{id}", c.endpointSave)
	c.page("POST /endpoints/{id}/test", c.endpointTest)
	c.page("POST /endpoints/{id}/delete", c.endpointDelete)

	c.page("GET /phone", c.phoneRead)
	c.page("GET /phone/transfer", c.targetRead)
	c.page("GET /numbers", c.numberList)
	c.page("GET /numbers/buy", c.numberSearch)
	c.page("POST /numbers/buy", c.numberBuy)
	c.page("GET /numbers/caller-id", c.callerIDNew)
	c.page("POST /numbers/caller-id", c.callerIDAsk)
	c.page("GET /numbers/caller-id/{id}", c.callerIDPage)
	c.page("POST /numbers/caller-id/{id}/verify", c.callerIDVerify)
	c.page("GET /numbers/{id}", c.numberPage)
	c.page("POST /numbers/{id}", c.numberSave)
	c.page("POST /numbers/{id}/delete", c.numberDelete)

	c.page("GET /trunks", c.trunkList)
	c.page("GET /trunks/new", c.trunkNew)
	c.page("POST /trunks/new", c.trunkCreate)
	c.page("GET /trunks/{id}", c.trunkEdit)
	c.page("POST /trunks/{id}", c.trunkSave)
	c.page("POST /trunks/{id}/check", c.trunkCheck)
	c.page("POST /trunks/{id}/test-call", c.trunkTry)
	c.page("POST /trunks/{id}/delete", c.trunkDelete)

	c.page("GET /messages", c.smsList)
	c.page("GET /messages/new", c.smsNew)
	c.page("POST /messages/new", c.smsSend)
	c.page("POST /messages/count", c.smsCount)
	if c.SMS != nil && c.SMS.Sandbox {
		c.page("GET /messages/outbox", c.outboxPage)
		c.page("POST /messages/outbox", c.outboxReceive)
	}

	c.page("GET /whatsapp", c.senderList)
	c.page("GET /whatsapp/{id}", c.senderPage)
	c.page("POST /whatsapp/{id}", c.senderSave)

	c.page("GET /webhooks", c.deliveryList)
	c.page("GET /webhooks/settings", c.webhookSettings)
	c.page("POST /webhooks/settings", c.webhookSave)
	c.page("POST /webhooks/secret", c.webhookSecret)
	c.page("POST /webhooks/secret/rotate", c.webhookRotate)
	c.page("POST /webhooks/settings/test/{id}", c.webhookTest)
	c.page("GET /webhooks/{id}", c.deliveryPage)
	c.page("POST /webhooks/{id}/resend", c.deliveryResend)

	c.page("GET /providers", c.providerList)
	c.page("POST /providers/own/{code}", c.providerOwn)
	c.page("POST /providers/server/{code}", c.providerServer)
	c.page("POST /providers/think", c.providerThink)

	c.page("GET /do-not-call", c.refuseList)
	c.page("POST /do-not-call", c.refuseAdd)
	c.page("POST /do-not-call/{id}/delete", c.refuseDelete)
	c.page("POST /customers/erase", c.customerErase)
	c.page("GET /people", c.peoplePage)
	c.page("POST /people", c.personInvite)
	c.page("POST /people/{id}", c.personSave)
	c.page("POST /people/{id}/delete", c.personDelete)
	c.page("POST /people/{id}/reset", c.personReset)
	c.page("POST /people/{id}/two-factor", c.personSecondOff)
	c.page("POST /people/invitations/{id}/delete", c.invitationDelete)
	c.page("GET /keys", c.keyList)
	c.page("POST /keys", c.keyCreate)
	c.page("POST /keys/{id}/delete", c.keyDelete)
	c.page("POST /keys/apps/{id}/delete", c.grantDelete)
	c.page("GET /oauth/authorize", c.appPage)
	c.page("POST /oauth/authorize", c.appAllow)
	c.page("POST /keys/delete", c.keysDelete)

	c.page("GET /ledger", c.ledgerPage)
	c.page("POST /ledger", c.ledgerPay)
	c.page("GET /ledger/paid", c.ledgerPaid)
	c.page("GET /audit", c.auditPage)
	c.page("GET /account", c.accountPage)
	c.page("GET /account/limits", c.limitsPage)
	c.page("POST /account", c.profileSave)
	c.page("POST /account/confirm", c.confirmAsk)
	c.page("POST /account/password", c.passwordChange)
	c.page("GET /account/two-factor", c.secondPage)
	c.page("POST /account/two-factor", c.secondSetUp)
	c.page("POST /account/two-factor/confirm", c.secondConfirm)
	c.page("POST /account/two-factor/codes", c.secondCodes)
	c.page("POST /account/two-factor/off", c.secondOff)
}
