package console

import (
	"bytes"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"parley/internal/parley"
	"parley/internal/web"
)

// roles are what each page and each form needs. What is not here needs an administrator: people, keys, the account. What a member does
// for themselves (their own profile, password and second factor) is every role's. TestRoles walks all routes with all roles.
var roles = parley.MinRoles(map[parley.Role]string{
	parley.NeedSession: `
		GET /{$}
		GET /lives
		GET /account
		POST /account
		POST /account/confirm
		POST /account/password
		GET /account/two-factor
		POST /account/two-factor
		POST /account/two-factor/confirm
		POST /account/two-factor/codes
		POST /account/two-factor/off`,
	parley.NeedLedger: `
		GET /ledger
		GET /ledger.csv`,
	parley.RoleBilling: `
		POST /ledger
		GET /ledger/paid`,
	parley.RoleAuditor: `
		GET /audit
		GET /audit.csv`,
	parley.RoleViewer: `
		GET /live
		GET /waiting/live
		GET /canned-answers
		GET /canned-answers/{id}
		GET /live-calls
		GET /live-calls/live
		GET /analytics
		GET /alerts
		GET /alerts/{id}
		GET /assistants
		GET /folders
		GET /labels
		GET /assistants.csv
		GET /numbers.csv
		GET /do-not-call.csv
		GET /knowledge/{id}/documents.csv
		GET /filters
		GET /assistants/{id}
		GET /assistants/{id}/widget
		POST /assistants/{id}/widget
		GET /assistants/{id}/voicemail
		GET /assistants/{id}/voicemail/recording
		GET /assistants/{id}/tests
		GET /assistants/{id}/tests/live
		GET /assistants/{id}/tests/{test}
		GET /assistants/{id}/test-runs.csv
		GET /assistants/{id}/test-runs/{run}
		GET /assistants/{id}/test-runs/{run}/live
		GET /assistants/{id}/test-runs/{run}/results/{result}
		GET /assistants/{id}/test-runs/{run}/results/{result}/picture
		GET /calls
		GET /calls.csv
		GET /calls/live
		GET /calls/{id}
		GET /calls/{id}/live
		GET /calls/{id}/recording
		GET /calls/{id}/legs/{leg}/recording
		GET /calls/{id}/peaks
		GET /campaigns
		GET /campaigns.csv
		GET /campaigns/{id}
		GET /campaigns/{id}/live
		GET /campaigns/{id}/export
		GET /campaigns/{id}/leads.csv
		GET /campaigns/{id}/leads/{lead}
		GET /conversations
		GET /conversations.csv
		GET /conversations/live
		GET /conversations/{id}
		GET /conversations/{id}/live
		GET /messages
		GET /messages.csv
		GET /messages/outbox
		GET /do-not-call
		GET /knowledge
		GET /knowledge/{id}
		GET /knowledge/{id}/live
		GET /knowledge/{id}/documents/{document}
		GET /numbers
		GET /numbers/{id}
		GET /trunks
		GET /trunks/{id}
		GET /whatsapp
		GET /whatsapp/{id}`,
	parley.RoleAgent: `
		POST /conversations/{id}/reply
		POST /conversations/{id}/writing
		POST /conversations/{id}/ai
		POST /conversations/{id}/attended
		POST /conversations/{id}/notes
		POST /conversations/{id}/notes/{note}/delete
		POST /calls/{id}/hangup
		POST /calls/{id}/listen
		PATCH /calls/{id}/listen/{leg}
		DELETE /calls/{id}/listen/{leg}
		POST /calls/{id}/legs/{leg}
		POST /calls/{id}/legs/{leg}/set
		POST /calls/{id}/whisper
		POST /calls/{id}/invite
		GET /messages/new
		POST /messages/new
		POST /messages/count
		POST /do-not-call
		GET /phone
		GET /phone/transfer
		GET /filters/new
		POST /filters/new
		POST /filters/{id}
		POST /filters/{id}/delete`,
	parley.RoleEditor: `
		GET /setup
		GET /alerts/new
		POST /alerts/new
		POST /alerts/{id}
		POST /alerts/{id}/test
		POST /alerts/{id}/delete
		GET /assistants/new
		POST /assistants/new
		GET /assistants/{id}/groups
		POST /assistants/{id}/groups
		POST /folders
		GET /folders/{id}
		POST /folders/{id}
		POST /folders/{id}/delete
		POST /labels
		GET /labels/{id}
		POST /labels/{id}
		POST /labels/{id}/delete
		POST /assistants/import
		GET /assistants/{id}/export
		POST /assistants/{id}/duplicate
		POST /assistants/{id}
		POST /assistants/{id}/choices
		POST /assistants/{id}/delete
		POST /assistants/{id}/voicemail
		POST /assistants/{id}/voicemail/delete
		GET /assistants/{id}/share
		POST /assistants/{id}/share
		POST /assistants/{id}/share/revoke
		GET /assistants/{id}/publish
		POST /assistants/{id}/publish
		POST /assistants/{id}/discard
		GET /assistants/{id}/versions
		GET /assistants/{id}/versions/{version}
		POST /assistants/{id}/versions/{version}/restore
		GET /assistants/{id}/tests/new
		POST /assistants/{id}/tests/new
		POST /assistants/{id}/tests/{test}
		POST /assistants/{id}/tests/{test}/delete
		GET /assistants/{id}/try
		POST /assistants/{id}/test-runs
		POST /assistants/{id}/test-runs/{run}/stop
		POST /calls/{id}/test
		POST /conversations/{id}/test
		GET /assistants/{id}/talk
		POST /assistants/{id}/talk
		POST /assistants/{id}/web-call
		PATCH /assistants/{id}/web-call/{session}
		DELETE /assistants/{id}/web-call/{session}
		GET /assistants/{id}/call
		POST /assistants/{id}/call
		GET /calls/new
		POST /calls/{id}/delete
		GET /campaigns/new
		POST /campaigns/new
		GET /campaigns/{id}/edit
		POST /campaigns/{id}/edit
		GET /campaigns/{id}/start
		POST /campaigns/{id}/start
		POST /campaigns/{id}/try
		GET /campaigns/{id}/sample.csv
		POST /campaigns/{id}/schedule
		POST /campaigns/{id}/unschedule
		POST /campaigns/{id}/stop
		POST /campaigns/{id}/delete
		GET /campaigns/{id}/leads/new
		POST /campaigns/{id}/leads/new
		POST /campaigns/{id}/leads/{lead}
		POST /campaigns/{id}/import
		POST /campaigns/{id}/check
		POST /conversations/{id}/say
		POST /canned-answers
		POST /canned-answers/{id}
		POST /canned-answers/{id}/delete
		POST /conversations/{id}/delete
		GET /knowledge/new
		POST /knowledge/new
		GET /knowledge/{id}/edit
		POST /knowledge/{id}/edit
		POST /knowledge/{id}/delete
		POST /knowledge/{id}/files
		POST /knowledge/{id}/site
		POST /knowledge/{id}/documents/{document}
		POST /knowledge/{id}/documents/{document}/retry
		POST /knowledge/{id}/documents/{document}/delete
		GET /tools
		GET /tools.csv
		GET /tools/new
		POST /tools/new
		GET /tools/{id}
		POST /tools/{id}
		POST /tools/{id}/try
		POST /tools/{id}/list
		POST /tools/{id}/delete
		GET /endpoints
		GET /endpoints/new
		POST /endpoints/new
		GET /endpoints/{id}
		POST /endpoints/{id}
		POST /endpoints/{id}/test
		POST /endpoints/{id}/delete
		GET /numbers/buy
		POST /numbers/buy
		GET /numbers/caller-id
		POST /numbers/caller-id
		GET /numbers/caller-id/{id}
		POST /numbers/caller-id/{id}/verify
		POST /numbers/{id}
		POST /numbers/{id}/delete
		GET /trunks/new
		POST /trunks/new
		POST /trunks/{id}
		POST /trunks/{id}/check
		POST /trunks/{id}/test-call
		POST /trunks/{id}/delete
		POST /messages/outbox
		POST /whatsapp/{id}
		GET /webhooks
		GET /webhooks.csv
		GET /webhooks/{id}
		POST /webhooks/{id}/resend
		POST /do-not-call/{id}/delete
		POST /customers/erase`,
})

// minRole is what a pattern of routes needs.
func minRole(pattern string) parley.Role {
	if role, ok := roles[pattern]; ok {
		return role
	}
	return parley.RoleAdministrator
}

// makingPages are the ends of pages on which something is made, or goes on with what was filled in; secretPages show what only those
// may see who change it. Neither is for auditors, who read.
var (
	makingPages = []string{"/new", "/edit", "/buy", "/caller-id", "/caller-id/{id}", "/start", "/publish", "/talk", "/call", "/try", "/share",
		"/groups", "/folders/{id}", "/labels/{id}"}
	secretPages = []string{"/export", "/versions/{version}", "/sample.csv", "/tools", "/tools.csv", "/tools/{id}", "/providers",
		"/webhooks/settings"}
)

// lets says whether a role may use a pattern of routes.
func lets(role parley.Role, pattern string) bool {
	least, path := minRole(pattern), strings.TrimPrefix(pattern, "GET ")
	ends := func(end string) bool { return strings.HasSuffix(path, end) }
	if path == pattern || slices.ContainsFunc(makingPages, ends) || slices.ContainsFunc(secretPages, ends) {
		return role.Includes(least)
	}
	return role.Reads(least)
}

// may says whether the reader may use a pattern of routes.
func (r *request) may(pattern string) bool { return lets(r.who.Role(), pattern) }

// mayUse refuses a pattern of routes that the reader's role doesn't cover.
func (r *request) mayUse(pattern string) error {
	if r.may(pattern) {
		return nil
	}
	return r.who.Lacks(minRole(pattern))
}

// may says whether a role may do what a link or a form of a page leads to. Other servers, and what anybody may see, are
// none of its business.
func (c *Console) may(role parley.Role, method, address string) bool {
	r, err := http.NewRequest(method, address, nil)
	if err != nil || !strings.HasPrefix(address, "/") || strings.HasPrefix(address, "//") {
		return true
	}
	_, pattern := c.mux.Handler(r)
	return !c.private[pattern] || lets(role, pattern)
}

// within takes out of a page, or a piece of one, what its reader's role may not use: links and forms that would be
// refused. A form that shows something stays, and can't be changed. So templates need not know of roles.
func (c *Console) within(r *request, page []byte) []byte {
	role := r.who.Role()
	if role == parley.RoleOwner {
		return page
	}
	root, err := parsed(page)
	if err != nil { // of our own making: it is readable HTML
		slog.ErrorContext(r.Context(), "read a page", "path", web.LoggedPath(r.URL.Path), "error", err)
		return page
	}
	doc := goquery.NewDocumentFromNode(root)
	doc.Find("a[href]").Each(func(_ int, a *goquery.Selection) {
		switch href, _ := a.Attr("href"); {
		case c.may(role, http.MethodGet, href):
		case a.Is("nav li > a"):
			a.Parent().Remove()
		case a.HasClass("button"):
			a.Remove()
		default: // its words stay
			a.RemoveAttr("href")
		}
	})
	doc.Find("form").Each(func(_ int, f *goquery.Selection) {
		method, action := strings.ToUpper(f.AttrOr("method", "get")), f.AttrOr("action", f.AttrOr("hx-post", ""))
		if !c.may(role, method, action) {
			c.close(doc, f)
		}
	})
	for what, method := range map[string]string{"formaction": "POST", "hx-post": "POST", "hx-get": "GET", "data-join": "POST"} {
		doc.Find("[" + what + "]").Not("form").Each(func(_ int, s *goquery.Selection) {
			if !c.may(role, method, s.AttrOr(what, "")) {
				s.Remove()
			}
		})
	}
	doc.Find("[data-least]").Each(func(_ int, s *goquery.Selection) { // says itself who it is for
		if !role.Includes(parley.Role(s.AttrOr("data-least", ""))) {
			s.Remove()
		}
	})
	doc.Find("nav ul").Each(func(_ int, group *goquery.Selection) {
		if group.Children().Length() == 0 {
			group.Remove()
		}
	})
	var b bytes.Buffer
	for n := root.FirstChild; n != nil && err == nil; n = n.NextSibling {
		err = html.Render(&b, n)
	}
	if err != nil {
		slog.ErrorContext(r.Context(), "write a page", "path", web.LoggedPath(r.URL.Path), "error", err)
		return page
	}
	return b.Bytes()
}

// parsed is a page, or a piece of one, below a node.
func parsed(page []byte) (*html.Node, error) {
	if bytes.HasPrefix(page, []byte("<!")) {
		return html.Parse(bytes.NewReader(page))
	}
	root := &html.Node{Type: html.ElementNode, Data: "template", DataAtom: atom.Template} // takes rows of tables too
	list, err := html.ParseFragment(bytes.NewReader(page), root)
	for _, n := range list {
		root.AppendChild(n)
	}
	return root, err
}

// fieldsShown are what one can see of a form, beside its buttons.
const fieldsShown = "input:not([type=hidden]), select, textarea"

// close takes a form out of its page, with the question that it answers, or has it only be read.
func (c *Console) close(doc *goquery.Document, f *goquery.Selection) {
	if ask := f.Closest("[role=alertdialog]"); ask.Length() > 0 {
		doc.Find(`[popovertarget="` + ask.AttrOr("id", "") + `"]`).Remove()
		ask.Remove()
		return
	}
	shown, outside := f.Find(fieldsShown), doc.Find(`[form="`+f.AttrOr("id", "-")+`"]`)
	if shown.Length() == 0 {
		outside.Remove()
		f.Remove()
		return
	}
	shown.AddSelection(outside).SetAttr("disabled", "")
	f.Find("button:not([type=button])").Remove()
	outside.Filter("button").Remove()
	if doc.Find("#read-only").Length() == 0 {
		f.BeforeHtml(`<p class="help" id="read-only">You can read this, but not change it.</p>`)
	}
}
