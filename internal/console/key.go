package console

import (
	"context"

	"parley"
	"parley/internal/form"
	"parley/internal/store"
)

type newKey struct {
	Name string `json:"name" required:"true" maxLength:"255"`
}

func (c *Console) keyList(r *request) (*answer, error) { return c.keyPage(r, "", nil, nil) }

// keyPage shows the keys; token is the one that was just made, and is never shown again.
func (c *Console) keyPage(r *request, token string, tree map[string]any, wrong parley.Fields) (*answer, error) {
	list, err := c.DB.Keys(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	body := keyList(fieldsOf[newKey](tree, wrong), list, token)
	if len(wrong) > 0 {
		return invalid("API keys", body), nil
	}
	return show("API keys", body), nil
}

func (c *Console) keyCreate(r *request) (*answer, error) {
	tree := map[string]any{"name": r.PostFormValue("name")}
	var in newKey
	if wrong := form.Bind(tree, &in, true); len(wrong) > 0 {
		return c.keyPage(r, "", tree, wrong)
	}
	var token string
	err := c.DB.Write(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		_, token, err = c.Auth.NewKey(ctx, tx, r.UserID(), parley.APIKey, in.Name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.keyPage(r, token, nil, nil)
}

func (c *Console) keyDelete(r *request) (*answer, error) {
	err := c.DB.Write(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.DeleteKey(ctx, r.UserID(), parley.APIKey, r.id("id"))
	})
	if err != nil {
		return nil, err
	}
	return see("/keys", "revoked"), nil
}

// keysDelete revokes all keys.
func (c *Console) keysDelete(r *request) (*answer, error) {
	err := c.DB.Write(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.DeleteKeys(ctx, r.UserID(), 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	return see("/keys", "revoked-all"), nil
}
