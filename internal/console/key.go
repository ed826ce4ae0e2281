package console

import (
	"reflect"

	"parley/internal/auth"
	"parley/internal/form"
	"parley/internal/parley"
)

func (c *Console) keyList(r *request) (*answer, error) { return c.keyPage(r, "", nil, nil) }

// keyPage shows the keys; token is the one that was just made, and is never shown again.
func (c *Console) keyPage(r *request, token string, tree map[string]any, wrong parley.Fields) (*answer, error) {
	list, err := c.DB.Keys(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	apps, err := c.DB.Grants(r.Context(), r.UserID(), parley.Now())
	if err != nil {
		return nil, err
	}
	members, err := c.DB.Members(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	body := keyList(fieldsOf[auth.KeyInput](tree, wrong), list, apps, members, token, c.Front.Base(r.Request))
	if len(wrong) > 0 {
		return invalid("API keys", body), nil
	}
	return show("API keys", body), nil
}

func (c *Console) keyCreate(r *request) (*answer, error) {
	tree := decode(r.PostForm, reflect.TypeFor[auth.KeyInput]())
	for _, name := range []string{"scope", "member_id"} {
		if r.PostFormValue(name) == "" {
			delete(tree, name)
		}
	}
	var in auth.KeyInput
	if wrong := form.Bind(tree, &in, true); len(wrong) > 0 {
		return c.keyPage(r, "", tree, wrong)
	}
	_, token, err := c.Auth.MakeKey(r.Context(), r.who, &in)
	if wrong, ok := fieldErrors(err); ok {
		return c.keyPage(r, "", tree, wrong)
	}
	if err != nil {
		return nil, err
	}
	return c.keyPage(r, token, nil, nil)
}

func (c *Console) keyDelete(r *request) (*answer, error) {
	if err := c.Auth.RevokeKey(r.Context(), r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	return see("/keys", "revoked"), nil
}

// keysDelete revokes all keys.
func (c *Console) keysDelete(r *request) (*answer, error) {
	if _, err := c.Auth.RevokeKeys(r.Context(), r.UserID(), 0); err != nil {
		return nil, err
	}
	return see("/keys", "revoked-all"), nil
}
