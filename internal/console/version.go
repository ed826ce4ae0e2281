package console

import (
	"net/url"
	"strconv"

	"parley"
	"parley/internal/form"
	"parley/internal/store"
)

func (c *Console) versionList(r *request) (*answer, error) {
	a, err := c.Assistants.Get(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	q := listQuery{Page: 1}
	form.Query(r.URL.Query(), &q)
	list, total, err := c.DB.PromptVersions(r.Context(), r.UserID(), a.ID,
		store.Page{Number: max(1, q.Page), Size: pageSize})
	if err != nil {
		return nil, err
	}
	at := func(n int) string {
		return address(assistantPath(a.ID, "/versions"), url.Values{}, n)
	}
	return show("Prompt versions of "+a.Name, versionList(a, list, q.Page, total, at)), nil
}

// comparison is a wording beside the present one.
type comparison struct {
	version         *parley.PromptVersion
	prompt, initial []parley.DiffLine
}

// same says whether nothing differs.
func same(lines []parley.DiffLine) bool {
	for _, l := range lines {
		if l.Op != "=" {
			return false
		}
	}
	return true
}

func (c *Console) versionShow(r *request) (*answer, error) {
	a, err := c.Assistants.Get(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	v, err := c.DB.PromptVersion(r.Context(), r.UserID(), a.ID, int(r.id("version")))
	if err != nil {
		return nil, err
	}
	d := comparison{v, parley.Diff(v.SystemPrompt, a.SystemPrompt), parley.Diff(v.InitialMessage, a.InitialMessage)}
	return show("Version "+strconv.Itoa(v.Version)+" of "+a.Name, versionShow(a, d)), nil
}

func (c *Console) versionRestore(r *request) (*answer, error) {
	a, err := c.Assistants.RestorePrompt(r.Context(), r.UserID(), r.id("id"), int(r.id("version")))
	if err != nil {
		return nil, err
	}
	return see(assistantPath(a.ID, ""), "restored"), nil
}
