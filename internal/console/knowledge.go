package console

import (
	"context"
	"reflect"

	"parley"
	"parley/internal/form"
	"parley/internal/store"
)

func (c *Console) knowledgeList(r *request) (*answer, error) {
	list, err := c.DB.Knowledgebases(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	return show("Knowledge", knowledgeList(list)), nil
}

func (c *Console) knowledgeNew(r *request) (*answer, error) {
	return show("New knowledgebase", knowledgeNamed(nil, fieldsOf[parley.Knowledgebase](nil, nil))), nil
}

func (c *Console) knowledgeCreate(r *request) (*answer, error) {
	tree := decode(r.PostForm, reflect.TypeFor[parley.Knowledgebase]())
	k := &parley.Knowledgebase{}
	if wrong := form.Bind(tree, k, true); len(wrong) > 0 {
		return invalid("New knowledgebase", knowledgeNamed(nil, fieldsOf[parley.Knowledgebase](tree, wrong))), nil
	}
	err := c.DB.Write(r.Context(), func(ctx context.Context, tx *store.Tx) error { return tx.CreateKnowledgebase(ctx, r.UserID(), k) })
	if err != nil {
		return nil, err
	}
	return see(libraryPath(k.ID), "created"), nil
}

func (c *Console) knowledgeEdit(r *request) (*answer, error) {
	k, err := c.DB.Knowledgebase(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	return show(k.Name, knowledgeNamed(k, fieldsOf[parley.Knowledgebase](treeOf(k), nil))), nil
}

func (c *Console) knowledgeSave(r *request) (*answer, error) {
	tree := decode(r.PostForm, reflect.TypeFor[parley.Knowledgebase]())
	var old, k *parley.Knowledgebase
	err := c.DB.Write(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		if old, err = tx.Knowledgebase(ctx, r.UserID(), r.id("id")); err != nil {
			return err
		}
		was := *old
		k = &was
		if err := form.Bind(tree, k, false).Err(); err != nil {
			return err
		}
		return tx.SaveKnowledgebase(ctx, r.UserID(), k)
	})
	wrong, ok := fieldErrors(err)
	switch {
	case err == nil:
		return see(libraryPath(k.ID), "saved"), nil
	case !ok:
		return nil, err
	}
	return invalid(old.Name, knowledgeNamed(old, fieldsOf[parley.Knowledgebase](tree, wrong))), nil
}

func (c *Console) knowledgeDelete(r *request) (*answer, error) {
	if err := c.Knowledge.DeleteKnowledgebase(r.Context(), r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	return see("/knowledge", "deleted"), nil
}
