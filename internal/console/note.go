package console

import (
	"errors"
	"strconv"
	"strings"

	"parley/internal/parley"
)

// noteAdd writes down a note about a conversation.
func (c *Console) noteAdd(r *request) (*answer, error) {
	id := r.PathValue("id")
	_, err := c.Chat.AddNote(r.Context(), r.UserID(), id, r.who.Author(), r.PostFormValue("message"))
	return see("/conversations/" + id), err
}

func (c *Console) noteDelete(r *request) (*answer, error) {
	id := r.PathValue("id")
	return see("/conversations/" + id), c.Chat.DeleteNote(r.Context(), r.UserID(), id, r.id("note"))
}

// notesVersion changes when the notes do.
func (t *talk) notesVersion() string {
	last := int64(0)
	if n := len(t.notes); n > 0 {
		last = t.notes[n-1].ID
	}
	return strconv.Itoa(len(t.notes)) + "." + strconv.FormatInt(last, 10)
}

// cannedPage is the page of canned answers: with the form of one of them, or of a new one.
type cannedPage struct {
	list []parley.CannedAnswer
	id   int64 // the one that is changed, 0 for a new one
	form *fields
}

func (p *cannedPage) action() string {
	if p.id == 0 {
		return "/canned-answers"
	}
	return "/canned-answers/" + strconv.FormatInt(p.id, 10)
}

func (c *Console) cannedList(r *request) (*answer, error) {
	return c.cannedShow(r, &cannedPage{form: fieldsOf[parley.CannedAnswerInput](nil, nil)})
}

func (c *Console) cannedEdit(r *request) (*answer, error) {
	a, err := c.DB.CannedAnswer(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	return c.cannedShow(r,
		&cannedPage{id: a.ID, form: fieldsOf[parley.CannedAnswerInput](map[string]any{"name": a.Name, "content": a.Content}, nil)})
}

func (c *Console) cannedShow(r *request, p *cannedPage) (a *answer, err error) {
	if p.list, err = c.DB.CannedAnswers(r.Context(), r.UserID()); err != nil {
		return nil, err
	}
	return show("Canned answers", cannedAnswersPage(p)), nil
}

// cannedSave makes a canned answer, or changes one.
func (c *Console) cannedSave(r *request) (*answer, error) {
	tree := map[string]any{"name": strings.TrimPrefix(strings.TrimSpace(r.PostFormValue("name")), "/"),
		"content": r.PostFormValue("content")}
	var err error
	if r.PathValue("id") == "" {
		_, err = c.Chat.AddAnswer(r.Context(), r.UserID(), tree)
	} else {
		_, err = c.Chat.ChangeAnswer(r.Context(), r.UserID(), r.id("id"), tree)
	}
	if err == nil {
		return see("/canned-answers", "saved"), nil
	}
	var refused *parley.Error
	if !errors.As(err, &refused) || len(refused.Fields) == 0 {
		return nil, err
	}
	a, err := c.cannedShow(r, &cannedPage{id: r.id("id"), form: fieldsOf[parley.CannedAnswerInput](tree, refused.Fields)})
	if err != nil {
		return nil, err
	}
	return invalid(a.title, a.body), nil
}

func (c *Console) cannedDelete(r *request) (*answer, error) {
	return see("/canned-answers", "deleted"), c.Chat.DeleteAnswer(r.Context(), r.UserID(), r.id("id"))
}
