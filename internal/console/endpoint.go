package console

import (
	"context"
	"errors"
	"reflect"
	"strconv"

	"parley/internal/endpoint"
	"parley/internal/form"
	"parley/internal/parley"
)

// endpointForm is what the page of one endpoint shows. Its secrets stay on the server.
type endpointForm struct {
	*fields
	id     int64 // 0: it is new
	name   string
	hint   string // the last characters of its key
	key    bool   // it has one
	report *endpoint.Measured
	wrong  string // why it was not measured
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
	return show("Endpoints", endpointList(list, c.Endpoints.May(r.Context(), r.UserID()))), nil
}

func (c *Console) endpointNew(*request) (*answer, error) {
	e := &parley.Endpoint{}
	form.Defaults(e)
	e.Part, e.Protocol = parley.EndpointModel, parley.EndpointOpenAI
	return show("New endpoint", endpointEditor(&endpointForm{fields: fieldsOf[parley.Endpoint](treeOf(e), nil)})), nil
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
	delete(tree, "key")
	return invalid("New endpoint", endpointEditor(&endpointForm{fields: fieldsOf[parley.Endpoint](tree, wrong)})), nil
}

func editEndpoint(e *parley.Endpoint, tree map[string]any, wrong parley.Fields) *endpointForm {
	if tree == nil {
		tree = treeOf(e.Shown())
	}
	delete(tree, "key")
	return &endpointForm{fields: fieldsOf[parley.Endpoint](tree, wrong), id: e.ID, name: e.Name, hint: e.KeyHint, key: e.Key != ""}
}

func (c *Console) endpointEdit(r *request) (*answer, error) {
	e, err := c.DB.Endpoint(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	return show(e.Name, endpointEditor(editEndpoint(e, nil, nil))), nil
}

func (c *Console) endpointSave(r *request) (*answer, error) {
	e, err := c.DB.Endpoint(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	tree := decode(r.PostForm, reflect.TypeFor[parley.Endpoint]())
	if r.PostFormValue("forget_key") != "" {
		tree["key"] = nil
	}
	_, err = c.Endpoints.Change(r.Context(), r.UserID(), e.ID, tree)
	if err == nil {
		return see("/endpoints/"+r.PathValue("id"), "saved"), nil
	}
	wrong, ok := fieldErrors(err)
	if !ok {
		return nil, err
	}
	return invalid(e.Name, endpointEditor(editEndpoint(e, tree, wrong))), nil
}

// endpointTest measures an endpoint as it is saved.
func (c *Console) endpointTest(r *request) (*answer, error) {
	e, err := c.DB.Endpoint(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	f := editEndpoint(e, nil, nil)
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

// endpointOptions are the account's endpoints by what they do, to choose one from.
func (c *Console) endpointOptions(ctx context.Context, userID int64) (map[parley.EndpointPart][]option, error) {
	all, err := c.DB.Endpoints(ctx, userID)
	list := map[parley.EndpointPart][]option{}
	for part := range parley.EndpointProtocols {
		list[part] = []option{{value: "", label: "None"}}
	}
	for _, e := range all {
		list[e.Part] = append(list[e.Part], option{value: strconv.FormatInt(e.ID, 10), label: e.Name})
	}
	return list, err
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
