package console

import (
	"errors"
	"reflect"
	"slices"
	"strconv"

	"parley/internal/catalog"
	"parley/internal/endpoint"
	"parley/internal/form"
	"parley/internal/parley"
)

// endpointForm is what the page of one endpoint shows. Its secrets stay on the server.
type endpointForm struct {
	*fields
	languages []option
	id        int64 // 0: it is new
	name      string
	hint      string // the last characters of its key
	key       bool   // it has one
	report    *endpoint.Measured
	wrong     string // why it was not measured
}

func (e *endpointForm) path(more string) string {
	if e.id == 0 {
		return "/endpoints/new"
	}
	return "/endpoints/" + strconv.FormatInt(e.id, 10) + more
}

func (c *Console) endpointList(r *request) (*answer, error) {
	list, err := c.DB.Endpoints(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	return show("Endpoints", endpointList(list, c.Endpoints.May())), nil
}

func (c *Console) endpointNew(*request) (*answer, error) {
	e := &parley.Endpoint{}
	form.Defaults(e)
	e.Kind, e.Protocol = parley.EndpointLLM, parley.EndpointOpenAI
	return show("New endpoint", endpointEditor(&endpointForm{fields: fieldsOf[parley.Endpoint](treeOf(e), nil),
		languages: endpointLanguages(c.Catalog)})), nil
}

func (c *Console) endpointCreate(r *request) (*answer, error) {
	tree := decode(r.PostForm, reflect.TypeFor[parley.Endpoint]())
	made, err := c.Endpoints.Create(r.Context(), r.UserID(), tree)
	if err == nil {
		return see("/endpoints/"+strconv.FormatInt(made.ID, 10), "created"), nil
	}
	wrong, ok := fieldErrors(err)
	if !ok {
		return nil, err
	}
	delete(tree, "api_key")
	return invalid("New endpoint", endpointEditor(&endpointForm{fields: fieldsOf[parley.Endpoint](tree, wrong),
		languages: endpointLanguages(c.Catalog)})), nil
}

func (c *Console) editEndpoint(e *parley.Endpoint, tree map[string]any, wrong parley.Fields) *endpointForm {
	if tree == nil {
		tree = treeOf(e.Shown())
	}
	delete(tree, "api_key")
	return &endpointForm{fields: fieldsOf[parley.Endpoint](tree, wrong), languages: endpointLanguages(c.Catalog),
		id: e.ID, name: e.Name, hint: e.KeyHint, key: e.Key != ""}
}

func (c *Console) endpointEdit(r *request) (*answer, error) {
	e, err := c.DB.Endpoint(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	return show(e.Name, endpointEditor(c.editEndpoint(e, nil, nil))), nil
}

func (c *Console) endpointSave(r *request) (*answer, error) {
	e, err := c.DB.Endpoint(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	tree := decode(r.PostForm, reflect.TypeFor[parley.Endpoint]())
	if r.PostFormValue("forget_key") != "" {
		tree["api_key"] = nil
	}
	_, err = c.Endpoints.Change(r.Context(), r.UserID(), e.ID, tree)
	if err == nil {
		return see("/endpoints/"+r.PathValue("id"), "saved"), nil
	}
	wrong, ok := fieldErrors(err)
	if !ok {
		return nil, err
	}
	return invalid(e.Name, endpointEditor(c.editEndpoint(e, tree, wrong))), nil
}

// endpointTest measures an endpoint as it is saved.
func (c *Console) endpointTest(r *request) (*answer, error) {
	e, err := c.DB.Endpoint(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	f := c.editEndpoint(e, nil, nil)
	var late *parley.LimitError
	if f.report, err = c.Endpoints.Test(r.Context(), r.UserID(), e.ID); errors.As(err, &late) {
		f.wrong, err = late.Detail, nil
	}
	if err != nil {
		return nil, err
	}
	return show(e.Name, endpointEditor(f)), nil
}

func (c *Console) endpointDelete(r *request) (*answer, error) {
	if err := c.Endpoints.Delete(r.Context(), r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	return see("/endpoints", "deleted"), nil
}

// endpointKinds are the kinds of endpoints in words.
var endpointKinds = enum("llm=Language model", "agent=Program that answers", "tts=Text to speech", "stt=Speech to text")

// labelOf is what a choice is called.
func labelOf(list []option, value string) string {
	i := slices.IndexFunc(list, func(o option) bool { return o.value == value })
	if i < 0 {
		return value
	}
	return list[i].label
}

// endpointLanguages are what a voice may speak.
func endpointLanguages(c *catalog.Catalog) []option {
	list := []option{{value: "", label: "Every language"}}
	for _, l := range c.Languages() {
		list = append(list, option{value: l.ISO2, label: l.Name})
	}
	return list
}

// took is how long something took, as people read it.
func took(f endpoint.Finding) string {
	if f.MS == nil {
		return ""
	}
	return strconv.FormatInt(*f.MS, 10) + " ms"
}

// endpointWords are what was measured, in words.
var endpointWords = map[string]string{"first_token": "First word", "streaming": "Piece by piece", "tools": "Tools", "cancel": "Cancel",
	"first_sound": "First sound", "transcript": "Text"}
