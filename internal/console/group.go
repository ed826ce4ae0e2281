package console

import (
	"net/url"
	"strconv"
	"strings"

	"parley/internal/parley"
)

// of is a handler for folders, or for labels.
func of(kind parley.GroupKind, h func(*request, parley.GroupKind) (*answer, error)) handler {
	return func(r *request) (*answer, error) { return h(r, kind) }
}

// groupPath is the page of all folders or labels, or of one of them.
func groupPath(kind parley.GroupKind, id int64) string {
	path := "/" + string(kind) + "s"
	if id != 0 {
		path += "/" + strconv.FormatInt(id, 10)
	}
	return path
}

// groupPage is the page of folders, or of labels, with the form of one of them, or of a new one.
type groupPage struct {
	kind parley.GroupKind
	list []parley.Group
	id   int64 // the one that is changed, 0 for a new one
	form *fields
}

func (c *Console) groupShow(r *request, p *groupPage) (a *answer, err error) {
	if p.list, err = c.DB.GroupsByName(r.Context(), r.UserID(), p.kind); err != nil {
		return nil, err
	}
	return show(p.kind.Title()+"s", groupsPage(p)), nil
}

func (c *Console) groupList(r *request, kind parley.GroupKind) (*answer, error) {
	return c.groupShow(r, &groupPage{kind: kind, form: fieldsOf[parley.Group](nil, nil)})
}

func (c *Console) groupEdit(r *request, kind parley.GroupKind) (*answer, error) {
	g, err := c.DB.Group(r.Context(), r.UserID(), kind, r.id("id"))
	if err != nil {
		return nil, err
	}
	return c.groupShow(r, &groupPage{kind: kind, id: g.ID, form: fieldsOf[parley.Group](treeOf(g), nil)})
}

// groupSave makes a folder or a label, or changes one.
func (c *Console) groupSave(r *request, kind parley.GroupKind) (*answer, error) {
	tree := map[string]any{"name": r.PostFormValue("name"), "color": r.PostFormValue("color")}
	var err error
	if r.PathValue("id") == "" {
		_, err = c.Assistants.CreateGroup(r.Context(), r.UserID(), kind, tree)
	} else {
		_, err = c.Assistants.ChangeGroup(r.Context(), r.UserID(), kind, r.id("id"), tree)
	}
	if err == nil {
		return see(groupPath(kind, 0), "saved"), nil
	}
	wrong, ok := fieldErrors(err)
	if !ok {
		return nil, err
	}
	a, err := c.groupShow(r, &groupPage{kind: kind, id: r.id("id"), form: fieldsOf[parley.Group](tree, wrong)})
	if err != nil {
		return nil, err
	}
	return invalid(a.title, a.body), nil
}

func (c *Console) groupDelete(r *request, kind parley.GroupKind) (*answer, error) {
	return see(groupPath(kind, 0), "deleted"), c.Assistants.DeleteGroup(r.Context(), r.UserID(), kind, r.id("id"))
}

// groups are an account's folders and labels.
type groups struct{ folders, labels []parley.Group }

func (c *Console) groups(r *request) (g groups, err error) {
	if g.folders, err = c.DB.GroupsByName(r.Context(), r.UserID(), parley.Folder); err == nil {
		g.labels, err = c.DB.GroupsByName(r.Context(), r.UserID(), parley.Label)
	}
	return g, err
}

// none reports whether there is nothing to file assistants in.
func (g *groups) none() bool { return len(g.folders)+len(g.labels) == 0 }

// of are the folder and the labels of an assistant.
func (g *groups) of(a *parley.Assistant) (list []parley.Group) {
	for _, f := range g.folders {
		if a.FolderID != nil && *a.FolderID == f.ID {
			list = append(list, f)
		}
	}
	for _, l := range g.labels {
		for _, id := range a.LabelIDs {
			if id == l.ID {
				list = append(list, l)
			}
		}
	}
	return list
}

// colored is the class of a group's colour.
func colored(g *parley.Group) string {
	if g.Color == nil {
		return "color-gray"
	}
	return "color-" + *g.Color
}

// groupChoices are groups to choose one from, after a choice that means none.
func groupChoices(none string, list []parley.Group) []option {
	out := []option{{value: "", label: none}}
	for _, g := range list {
		out = append(out, option{value: strconv.FormatInt(g.ID, 10), label: g.Name})
	}
	return out
}

// colorChoices are the colours of groups.
func colorChoices() []option {
	out := []option{{value: "", label: "None"}}
	for _, color := range parley.GroupColors {
		out = append(out, option{value: color, label: firstUpper(color)})
	}
	return out
}

// filing is what is chosen of an assistant's folder and labels.
type filing struct {
	FolderID *int64  `json:"folder_id"`
	LabelIDs []int64 `json:"label_ids"`
}

func (c *Console) filingPage(r *request) (*answer, error) {
	a, err := c.Assistants.Get(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	g, err := c.groups(r)
	if err != nil {
		return nil, err
	}
	f := fieldsOf[filing](treeOf(&filing{a.FolderID, a.LabelIDs}), nil)
	return show("Folder and labels of "+a.Name, filingForm(a, g, f)), nil
}

func (c *Console) filingSave(r *request) (*answer, error) {
	body := map[string]any{"folder_id": nil, "label_ids": []any{}}
	if id := strings.TrimSpace(r.PostFormValue("folder_id")); id != "" {
		body["folder_id"] = numeral(id)
	}
	for _, id := range r.PostForm["label_ids"] {
		body["label_ids"] = append(body["label_ids"].([]any), numeral(id))
	}
	// What was deleted meanwhile is no mistake of theirs: the page is shown again as it is now.
	if _, err := c.Assistants.Update(r.Context(), r.UserID(), r.id("id"), body); err != nil {
		if _, ok := fieldErrors(err); ok {
			return see(assistantPath(r.id("id"), "/groups")), nil
		}
		return nil, err
	}
	return see("/assistants", "saved"), nil
}

// narrowed is the query of the list of assistants, as its address has it.
func (q *listQuery) narrowed() url.Values {
	v := url.Values{}
	set(v, "q", q.Q)
	for name, id := range map[string]int64{"folder": q.Folder, "label": q.Label} {
		if id != 0 {
			v.Set(name, strconv.FormatInt(id, 10))
		}
	}
	return v
}
