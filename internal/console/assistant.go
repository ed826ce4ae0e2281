package console

import (
	"net/url"
	"strconv"
	"strings"

	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
)

func assistantPath(id int64, more string) string {
	return "/assistants/" + strconv.FormatInt(id, 10) + more
}

// listQuery is what a list page is asked for.
type listQuery struct {
	Q      string `query:"q" maxLength:"255"`
	Folder int64  `query:"folder" minimum:"1"` // of assistants, as Label
	Label  int64  `query:"label" minimum:"1"`
	Page   int    `query:"page" minimum:"1" maximum:"2147483648"`
}

// chosen is the value of a choice by id.
func chosen(id int64) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}

// pageSize is how many rows a list page has.
const pageSize = 25

// address is where page n of a list is, with its filters.
func address(path string, filters url.Values, n int) string {
	if n > 1 {
		filters.Set("page", strconv.Itoa(n))
	}
	if len(filters) == 0 {
		return path
	}
	return path + "?" + filters.Encode()
}

// assistantFilter are the choices of a list's filter by assistant, and the first assistant, nil when there is none.
func (c *Console) assistantFilter(r *request) (list []option, first *parley.Assistant, err error) {
	some, err := c.DB.AssistantChoices(r.Context(), r.UserID(), maxOthers)
	list = []option{{value: "", label: "All assistants"}}
	for _, a := range some {
		list = append(list, option{value: strconv.FormatInt(a.ID, 10), label: a.Name})
	}
	if len(some) > 0 {
		first = &some[0]
	}
	return list, first, err
}

func (c *Console) assistantList(r *request) (*answer, error) {
	q := listQuery{Page: 1}
	if len(form.Query(r.URL.Query(), &q)) > 0 {
		return see("/assistants"), nil
	}
	p := store.Page{Number: q.Page, Size: pageSize}
	list, total, err := c.assistantsFound(r, &q, p)
	if err != nil {
		return nil, err
	}
	g, err := c.groups(r)
	if err != nil {
		return nil, err
	}
	at := func(n int) string { return address("/assistants", q.narrowed(), n) }
	if len(list) == 0 && total > 0 { // beyond the end, as after the last one of a page was deleted
		return see(at((total + pageSize - 1) / pageSize)), nil
	}
	return show("Assistants", assistantList(c.Catalog.Language, list, g, q, total, at)), nil
}

// assistantsFound is a page of the user's assistants that are asked for.
func (c *Console) assistantsFound(r *request, q *listQuery, p store.Page) ([]parley.Assistant, int, error) {
	f := store.AssistantFilter{FolderID: q.Folder, LabelID: q.Label}
	if q.Q == "" {
		return c.Assistants.Page(r.Context(), r.UserID(), f, p)
	}
	text := strings.ToLower(q.Q)
	list, total, err := c.DB.AssistantsNamed(r.Context(), r.UserID(), f,
		func(name string) bool { return strings.Contains(strings.ToLower(name), text) }, p)
	for i := range list {
		c.Assistants.Complete(&list[i])
	}
	return list, total, err
}

// newAssistant is what the page for a new assistant asks.
type newAssistant struct {
	Name       string `json:"name" required:"true" maxLength:"255"`
	Template   string `json:"template" required:"true"`
	LanguageID int64  `json:"language_id" required:"true"`
}

func (c *Console) assistantNew(r *request) (*answer, error) {
	return show("New assistant", assistantNew(c.blank(r), c.spoken(r), "")), nil
}

// blank returns the form for a new assistant before anything was chosen, in the browser's language where a voice speaks it.
func (c *Console) blank(r *request) *fields {
	cat, language := c.Catalog.For(r.UserID()), int64(1)
	iso, _, _ := strings.Cut(browserLanguage(r.Request), "-")
	for _, l := range cat.Languages() {
		if l.ISO2 == iso && len(cat.Voices("pipeline", l.ID)) > 0 {
			language = l.ID
		}
	}
	return fieldsOf[newAssistant](map[string]any{"template": templates[0].id, "language_id": strconv.FormatInt(language, 10)}, nil)
}

// spoken are the languages that somebody speaks on this server.
func (c *Console) spoken(r *request) (list []option) {
	cat := c.Catalog.For(r.UserID())
	for _, l := range cat.Languages() {
		if len(cat.Voices("pipeline", l.ID)) > 0 {
			list = append(list, option{value: strconv.FormatInt(l.ID, 10), label: l.Name})
		}
	}
	return list
}

func (c *Console) assistantCreate(r *request) (*answer, error) {
	tree := map[string]any{"name": r.PostFormValue("name"), "template": r.PostFormValue("template")}
	if id := r.PostFormValue("language_id"); strings.TrimSpace(id) != "" {
		tree["language_id"] = numeral(id)
	}
	var in newAssistant
	wrong := form.Bind(tree, &in, true)
	t := templateOf(in.Template)
	if t == nil && !wrong.Has("template") {
		wrong.AddText("template", "Choose one of the templates.")
	}
	voices := c.Catalog.For(r.UserID()).Voices("pipeline", in.LanguageID)
	if len(voices) == 0 && !wrong.Has("language_id") {
		wrong.AddText("language_id", "No voice on this server speaks this language.")
	}
	if len(wrong) == 0 {
		body, err := c.fromTemplate(t, &in, r.who.User, voices[0])
		if err != nil {
			return nil, err
		}
		a, err := c.Assistants.Create(r.Context(), r.UserID(), body)
		if err == nil {
			return see(assistantPath(a.ID, ""), "created"), nil
		}
		more, ok := fieldErrors(err)
		if !ok {
			return nil, err
		}
		wrong = more
	}
	return invalid("New assistant", assistantNew(fieldsOf[newAssistant](tree, wrong), c.spoken(r), "")), nil
}

// fromTemplate returns the body that makes an assistant from a template, in its language where the template has it.
func (c *Console) fromTemplate(t *template, in *newAssistant, u *parley.User, voice parley.Voice) (map[string]any, error) {
	language := ""
	if l := c.Catalog.For(u.ID).Language(in.LanguageID); l != nil {
		language = l.ISO2
	}
	body, err := t.in(language)
	if err != nil {
		return nil, err
	}
	for name, v := range treeOf(map[string]any{
		"name": in.Name, "language_id": in.LanguageID, "voice_id": voice.ID, "mode": "pipeline", "timezone": u.Timezone,
		"llm_model_id": c.Catalog.For(u.ID).ModelsOf(parley.LLM)[0].ID,
	}) {
		body[name] = v
	}
	return body, nil
}

func (c *Console) assistantDelete(r *request) (*answer, error) {
	if err := c.Assistants.Delete(r.Context(), r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	return see("/assistants", "deleted"), nil
}
