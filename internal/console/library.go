package console

import (
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley/internal/assistant"
	"parley/internal/form"
	"parley/internal/knowledge"
	"parley/internal/parley"
	"parley/internal/store"
)

// libraryQuery is what the page of a knowledgebase is asked for: a page of its documents, and a question to try.
type libraryQuery struct {
	Q    string `query:"q" maxLength:"4000"`
	Page int    `query:"page" minimum:"1" maximum:"2147483648"`
}

// library is a knowledgebase as its page shows it.
type library struct {
	*parley.Knowledgebase
	libraryQuery
	all       []parley.Document
	documents []parley.Document // of the page
	users     []parley.Assistant
	site      *siteForm
	refused   []badFile // files of the form that was just sent

	found  []parley.Passage
	asked  bool   // found is what a question has found
	trying string // why a question could not be asked
}

func libraryPath(id int64) string { return "/knowledge/" + strconv.FormatInt(id, 10) }

func (l *library) path(more string) string {
	return libraryPath(l.ID) + more
}

// named is what a document of the knowledgebase is called.
func (l *library) named(id int64) string {
	for _, d := range l.all {
		if d.ID == id {
			return "“" + d.Name + "”"
		}
	}
	return "another document"
}

func (l *library) at(page int) string {
	v := url.Values{}
	set(v, "q", l.Q)
	return address(l.path(""), v, page)
}

// listed changes when another set of documents is on the page: what changes within one is sent by itself.
func (l *library) listed() string {
	var s strings.Builder
	for _, d := range l.documents {
		fmt.Fprintf(&s, "%d ", d.ID)
	}
	return s.String() + strconv.Itoa(l.Documents)
}

// library reads one of the user's knowledgebases with a page of its documents.
func (c *Console) library(r *request, q libraryQuery) (*library, error) {
	k, err := c.DB.Knowledgebase(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	all, err := c.DB.Documents(r.Context(), r.UserID(), k.ID)
	if err != nil {
		return nil, err
	}
	k.Documents = len(all)
	if last := (len(all) + pageSize - 1) / pageSize; q.Page > last { // as after the last one of a page was deleted
		q.Page = max(1, last)
	}
	from := (q.Page - 1) * pageSize
	return &library{Knowledgebase: k, libraryQuery: q, all: all, documents: all[from:min(len(all), from+pageSize)]}, nil
}

// libraryPage is the page of a knowledgebase, whatever was done on it.
func (c *Console) libraryPage(r *request, l *library) (*answer, error) {
	if l.Assistants > 0 {
		all, err := c.Assistants.All(r.Context(), r.UserID(), "")
		if err != nil {
			return nil, err
		}
		for _, a := range all {
			if a.KnowledgebaseID != nil && *a.KnowledgebaseID == l.ID {
				l.users = append(l.users, a)
			}
		}
	}
	if l.site == nil {
		l.site = newSite(nil, nil)
	}
	if len(l.site.errors) > 0 || len(l.refused) > 0 {
		return invalid(l.Name, libraryPage(l)), nil
	}
	return show(l.Name, libraryPage(l)), nil
}

func (c *Console) knowledgePage(r *request) (*answer, error) {
	q, trying := libraryQuery{Page: 1}, ""
	for _, e := range form.Query(r.URL.Query(), &q) {
		if e.Name == "q" {
			trying = "A question has at most 4,000 characters."
			q.Q = ""
		}
	}
	l, err := c.library(r, q)
	if err != nil {
		return nil, err
	}
	l.trying = trying
	if q.Q != "" {
		l.asked = true
		if l.found, err = c.Knowledge.Try(r.Context(), r.UserID(), l.ID, q.Q, assistant.ToolPassages); err != nil {
			return nil, err
		}
	}
	return c.libraryPage(r, l)
}

// siteForm asks for a website.
type siteForm struct {
	*fields
}

// site holds the form of a website. The document that is made of it obeys parley.DocumentInput.
type site struct {
	Name  string   `json:"name" maxLength:"255"`
	URL   string   `json:"url" maxLength:"2048"`
	Limit int      `json:"relative_links_limit" default:"10" minimum:"1" maximum:"50"`
	Links []string `json:"links"`
}

func newSite(tree map[string]any, wrong parley.Fields) *siteForm {
	if tree == nil {
		tree = map[string]any{"relative_links_limit": numeral("10")}
	}
	return &siteForm{fieldsOf[site](tree, wrong)}
}

// siteAdd takes a website in: from an address onwards, or exactly the pages that are named.
func (c *Console) siteAdd(r *request) (*answer, error) {
	tree := decode(r.PostForm, reflect.TypeFor[site]())
	input := &parley.DocumentInput{}
	form.Defaults(input)
	asked := map[string]any{"type": string(parley.Website), "name": tree["name"], "url": tree["url"]}
	if n := tree["relative_links_limit"]; n != nil {
		asked["relative_links_limit"] = n
	}
	lines, _ := tree["links"].([]any)
	links := make([]any, len(lines))
	for i := range lines {
		links[i] = map[string]any{"link": lines[i]}
	}
	asked["links"] = links
	if name, _ := asked["name"].(string); strings.TrimSpace(name) == "" {
		asked["name"] = siteName(append([]any{tree["url"]}, lines...))
	}
	wrong := form.Bind(asked, input, true)
	input.Check(&wrong, false)
	if len(wrong) > 0 {
		l, err := c.library(r, libraryQuery{Page: 1})
		if err != nil {
			return nil, err
		}
		l.site = newSite(tree, siteErrors(wrong))
		return c.libraryPage(r, l)
	}
	if err := c.Knowledge.Add(r.Context(), r.UserID(), r.id("id"), input.Document()); err != nil {
		return nil, err
	}
	return see(libraryPath(r.id("id")), "reading"), nil
}

// siteName is what a website is called when nobody names it: its host.
func siteName(addresses []any) string {
	for _, a := range addresses {
		text, _ := a.(string)
		if u, err := url.Parse(strings.TrimSpace(text)); err == nil && u.Host != "" {
			return cut(u.Host, 255)
		}
	}
	return "Website"
}

// siteErrors are those of the document, by the boxes that the form has: links are lines of one.
func siteErrors(wrong parley.Fields) parley.Fields {
	var out parley.Fields
	for _, e := range wrong {
		name := strings.TrimSuffix(e.Name, ".link")
		for _, text := range e.Messages {
			switch {
			case text == "The url field is required when links is not present.":
				text = "Give an address to begin at, or pages below."
			case name == "links" && strings.Contains(text, "required"):
				continue // said beside the address
			}
			out.AddText(name, strings.ReplaceAll(text, "The "+e.Name+" field ", "The "+name+" field "))
		}
	}
	return out
}

func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most])
}

func (c *Console) documentEdit(r *request) (*answer, error) {
	d, err := c.DB.Document(r.Context(), r.UserID(), r.id("id"), r.id("document"))
	if err != nil {
		return nil, err
	}
	text, err := c.documentText(r, d)
	if err != nil {
		return nil, err
	}
	return show(d.Name, documentNamed(d, text, fieldsOf[knowledge.DocumentName](
		treeOf(knowledge.DocumentName{Name: d.Name, Description: d.Description}), nil))), nil
}

// documentText is a page of what was read from a document.
type documentText struct {
	passages    []parley.Passage
	page, total int
	at          func(n int) string
}

func (c *Console) documentText(r *request, d *parley.Document) (*documentText, error) {
	q := listQuery{Page: 1}
	form.Query(r.URL.Query(), &q)
	t := &documentText{page: max(1, q.Page), total: d.ChunksCount, at: func(n int) string {
		return address(libraryPath(d.KnowledgebaseID)+"/documents/"+strconv.FormatInt(d.ID, 10), url.Values{}, n)
	}}
	var err error
	t.passages, err = c.Knowledge.Text(r.Context(), r.UserID(), d.KnowledgebaseID, d.ID, store.Page{Number: t.page, Size: pageSize})
	return t, err
}

func (c *Console) documentSave(r *request) (*answer, error) {
	tree := decode(r.PostForm, reflect.TypeFor[knowledge.DocumentName]())
	d, err := c.Knowledge.Rename(r.Context(), r.UserID(), r.id("id"), r.id("document"), tree)
	wrong, ok := fieldErrors(err)
	switch {
	case err == nil:
		return see(libraryPath(r.id("id")), "saved"), nil
	case !ok:
		return nil, err
	}
	text, err := c.documentText(r, d)
	if err != nil {
		return nil, err
	}
	return invalid(d.Name, documentNamed(d, text, fieldsOf[knowledge.DocumentName](tree, wrong))), nil
}

func (c *Console) documentRetry(r *request) (*answer, error) {
	if _, err := c.Knowledge.Again(r.Context(), r.UserID(), r.id("id"), r.id("document")); err != nil {
		return nil, err
	}
	return see(libraryPath(r.id("id")), "reading"), nil
}

func (c *Console) documentDelete(r *request) (*answer, error) {
	if err := c.Knowledge.Delete(r.Context(), r.UserID(), r.id("id"), r.id("document")); err != nil {
		return nil, err
	}
	return see(libraryPath(r.id("id")), "deleted"), nil
}

// knowledgeLive sends the states of the documents on the page as they change, and tells when others are on it.
func (c *Console) knowledgeLive(r *request) (*answer, error) {
	q := libraryQuery{Page: 1}
	if len(form.Query(r.URL.Query(), &q)) > 0 {
		return nil, parley.Errorf(parley.NotFound, "There is no such page.")
	}
	if _, err := c.library(r, q); err != nil {
		return nil, err
	}
	sent, listed := map[string]string{}, ""
	return c.live(r, func(s *stream) ([]string, error) {
		l, err := c.library(r, q)
		if err != nil {
			return nil, err
		}
		for _, p := range l.parts() {
			if sent[p.id] != p.version {
				sent[p.id] = p.version
				s.put(p.body)
			}
		}
		if now := l.listed(); now != listed {
			listed = now
			s.send("list", map[string]string{"version": now})
		}
		s.soon = l.Status == parley.KnowledgeProcessing
		return nil, nil
	})
}

// parts are the pieces of the page that change while documents are read.
func (l *library) parts() []part {
	list := []part{{"library-state", l.stateVersion(), libraryState(l)}}
	for i := range l.documents {
		d := &l.documents[i]
		list = append(list, part{documentID(d), documentVersion(d), documentState(l, d)})
	}
	return list
}

func (l *library) stateVersion() string {
	return fmt.Sprintf("%s.%d.%d", l.Status, l.Documents, l.Failed)
}

func documentID(d *parley.Document) string { return "d-" + strconv.FormatInt(d.ID, 10) }

func documentVersion(d *parley.Document) string {
	return fmt.Sprintf("%s.%d.%d.%d", d.Status, d.Run, d.Progress.Done, d.Progress.Total)
}

// webAddress is an address that may be linked: one of the web. Others are shown as text.
func webAddress(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}
