package console

import (
	"reflect"

	"parley/internal/parley"
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
	k, err := c.Knowledge.Create(r.Context(), r.UserID(), tree)
	wrong, ok := fieldErrors(err)
	switch {
	case err == nil:
		return see(libraryPath(k.ID), "created"), nil
	case !ok:
		return nil, err
	}
	return invalid("New knowledgebase", knowledgeNamed(nil, fieldsOf[parley.Knowledgebase](tree, wrong))), nil
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
	old, err := c.DB.Knowledgebase(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	_, err = c.Knowledge.Change(r.Context(), r.UserID(), old.ID, tree)
	wrong, ok := fieldErrors(err)
	switch {
	case err == nil:
		return see(libraryPath(old.ID), "saved"), nil
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
