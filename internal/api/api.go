// Package api is the HTTP/JSON interface of platform-api.md: the routes on one page (routes, below), the shapes of
// requests and answers, errors, and the API reference that is made from them.
//
// Handlers are functions from a typed request to a typed answer or an error (frame.go); error.go is the one place
// where an error becomes an answer.
package api

import (
	"net/http"
	"sync"

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
	"parley/internal/node"
	"parley/internal/number"
	"parley/internal/payment"
	"parley/internal/preview"
	"parley/internal/rtc"
	"parley/internal/setup"
	"parley/internal/store"
	"parley/internal/web"
)

// Config is what the API answers from.
type Config struct {
	DB         *store.DB
	Auth       *auth.Authority
	Catalog    *catalog.Catalog
	Assistants *assistant.Studio
	Prices     *billing.Prices
	Chat       *chat.Chat
	Calls      *call.Center
	Campaigns  *campaign.Roster
	Browsers   *rtc.Server // takes calls from browsers; nil: nobody does
	Node       *node.Node  // this process, where there are others; nil: it is alone
	Numbers    *number.Pool
	SMS        *sms.Channel
	WhatsApp   *whatsapp.Channel
	Knowledge  *knowledge.Library
	Previews   *preview.Samples
	Hub        *event.Hub
	Setup      *setup.Setup
	Keys       *keyring.Ring // of vendors
	Exams      *exam.Desk    // tests of assistants
	Alerts     *alert.Watch
	Endpoints  *endpoint.Book
	Payments   *payment.Till // by card; nil: nobody can pay

	Front   web.Front // how the server is seen from outside
	Signup  bool      // POST /register makes accounts
	Rates   Rates
	Streams *auth.Slots // live streams at once per address, the console's too; nil: no limit
	Gate    *limit.Gate // what accounts do at once and how often they ask, here and in the console; nil: no limits
}

// Rates are the limits on requests.
type Rates struct {
	API, Create, Message, Reply, WhatsApp auth.Rate
}

// API is the handler of everything below /api.
type API struct {
	Config
	mux    *http.ServeMux
	routes map[string]map[string]*routed // path -> method -> operation
	order  []*routed
	limit  *auth.Limiter // requests per key

	limitCreate, limitMessage, limitReply *auth.Limiter
	limitVisitor                          *auth.Limiter // what a visitor does in public conversations and calls, per address
	limitShown                            *auth.Limiter // public conversations that are read, per address
	limitBegun, limitHeard                *auth.Limiter // public conversations and calls, and messages, per assistant
	limitWhatsApp                         *auth.Limiter // sends per key
	limitSignups                          *auth.Limiter // accounts made per address
	reference                             func() []byte // /api/openapi.json, written when it is first asked for
	stopping                              chan struct{} // closed when streams without an end of their own must end
}

// New makes the API.
func New(c Config) *API {
	a := &API{Config: c, mux: http.NewServeMux(), routes: map[string]map[string]*routed{},
		stopping: make(chan struct{}),
		limit:    auth.NewLimiter(c.Rates.API), limitCreate: auth.NewLimiter(c.Rates.Create),
		limitMessage: auth.NewLimiter(c.Rates.Message), limitVisitor: auth.NewLimiter(c.Rates.Message.Times(2)),
		limitBegun: auth.NewLimiter(c.Rates.Create.Times(10)), limitShown: auth.NewLimiter(c.Rates.Message.Times(4)),
		limitHeard: auth.NewLimiter(c.Rates.Message.Times(10)), limitReply: auth.NewLimiter(c.Rates.Reply),
		limitWhatsApp: auth.NewLimiter(c.Rates.WhatsApp),
		limitSignups:  auth.NewLimiter(auth.Rate{PerSecond: 10.0 / 3600, Burst: 10})}
	if a.Streams == nil {
		a.Streams = auth.NewSlots(0)
	}
	a.register()
	a.mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		send(w, http.StatusNotFound, errorBody{Message: "Not found."})
	})
	a.mux.HandleFunc("/api/openapi.json", readOnly(a.serveReference))
	a.mux.HandleFunc("/api/docs", readOnly(a.serveDocs))
	a.reference = sync.OnceValue(a.openAPI)
	return a
}

// Limits are how often conversations and calls may begin per address, and how often something may be said in one
// conversation: who comes through the console too has no second share.
func (a *API) Limits() (begin, say *auth.Limiter) { return a.limitCreate, a.limitMessage }

// Stop ends the streams that would go on as long as somebody listens; their readers come back to the next server.
// Call it once.
func (a *API) Stop() { close(a.stopping) }

// register lists every operation.
func (a *API) register() {
	a.identityRoutes()
	a.memberRoutes()
	a.assistantRoutes()
	a.groupRoutes()
	a.draftRoutes()
	a.shareRoutes()
	a.previewRoutes()
	a.vendorRoutes()
	a.toolRoutes()
	a.endpointRoutes()
	a.conversationRoutes()
	a.callRoutes()
	a.rehearsalRoutes()
	a.examRoutes()
	a.campaignRoutes()
	a.leadRoutes()
	a.blacklistRoutes()
	a.widgetRoutes()
	a.webCallRoutes()
	a.auditRoutes()
	a.billingRoutes()
	a.numberRoutes()
	a.trunkRoutes()
	a.smsRoutes()
	a.whatsAppRoutes()
	a.eventRoutes()
	a.alertRoutes()
	a.filterRoutes()
	a.noteRoutes()
	a.knowledgeRoutes()
	a.sheetRoutes()
	a.ownSheetRoutes()
}

type (
	none struct{} // a request that needs nothing but itself
	byID struct {
		ID int64 `path:"id"`
	}
	notice struct {
		Message string `json:"message"`
	}
	messageData[T any] struct {
		Message string `json:"message"`
		Data    T      `json:"data" required:"true"`
	}
)
