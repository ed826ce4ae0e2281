package api

import (
	"context"

	"parley/internal/parley"
)

// noteRoutes are what people keep for their own work in conversations.
func (a *API) noteRoutes() {
	const tag, missing = "Conversations", "Canned answer not found"
	handle(a, op{Method: "GET", Path: "/user/conversations/{id}/notes", Name: "listNotes", Tag: tag, NotFound: conversationMissing,
		Summary: "A conversation's notes, oldest first: for people, never for the model or the customer"}, a.listNotes)
	handle(a, op{Method: "POST", Path: "/user/conversations/{id}/notes", Name: "createNote", Tag: tag, NotFound: conversationMissing,
		Status: 201, Idempotent: true, Summary: "Write a note about a conversation"}, a.createNote)
	handle(a, op{Method: "DELETE", Path: "/user/conversations/{id}/notes/{note}", Name: "deleteNote", Tag: tag, NotFound: "Note not found",
		Summary: "Delete a note"}, a.deleteNote)
	handle(a, op{Method: "GET", Path: "/user/canned-answers", Name: "listCannedAnswers", Tag: tag,
		Summary: "All canned answers, by name"}, a.listCannedAnswers)
	handle(a, op{Method: "POST", Path: "/user/canned-answers", Name: "createCannedAnswer", Tag: tag, Status: 201, Idempotent: true,
		Body: parley.CannedAnswerInput{}, Summary: "Create a canned answer"}, a.createCannedAnswer)
	handle(a, op{Method: "GET", Path: "/user/canned-answers/{id}", Name: "getCannedAnswer", Tag: tag, NotFound: missing,
		Summary: "Read a canned answer"}, a.getCannedAnswer)
	handle(a, op{Method: "PUT", Path: "/user/canned-answers/{id}", Name: "updateCannedAnswer", Tag: tag, NotFound: missing,
		Body: parley.CannedAnswerInput{}, Summary: "Change a canned answer"}, a.updateCannedAnswer)
	handle(a, op{Method: "DELETE", Path: "/user/canned-answers/{id}", Name: "deleteCannedAnswer", Tag: tag, NotFound: missing,
		Summary: "Delete a canned answer"}, a.deleteCannedAnswer)
}

type newNote struct {
	ID   string `path:"id"`
	Body struct {
		Content string `json:"content" required:"true" maxLength:"2000"`
	}
}

type byNote struct {
	ID   string `path:"id"`
	Note int64  `path:"note"`
}

func (a *API) listNotes(ctx context.Context, r *request, in *byText) ([]parley.Note, error) {
	conv, err := a.DB.Conversation(ctx, r.UserID(), in.ID)
	if err != nil {
		return nil, err
	}
	return a.DB.Notes(ctx, conv.ID)
}

func (a *API) createNote(ctx context.Context, r *request, in *newNote) (*messageData[*parley.Note], error) {
	n, err := a.Chat.AddNote(ctx, r.UserID(), in.ID, r.Who.Author(), in.Body.Content)
	return &messageData[*parley.Note]{"Note created successfully", n}, err
}

func (a *API) deleteNote(ctx context.Context, r *request, in *byNote) (*notice, error) {
	return &notice{"Note deleted successfully"}, a.Chat.DeleteNote(ctx, r.UserID(), in.ID, in.Note)
}

func (a *API) listCannedAnswers(ctx context.Context, r *request, _ *none) ([]parley.CannedAnswer, error) {
	return a.DB.CannedAnswers(ctx, r.UserID())
}

func (a *API) getCannedAnswer(ctx context.Context, r *request, in *byID) (*parley.CannedAnswer, error) {
	return a.DB.CannedAnswer(ctx, r.UserID(), in.ID)
}

func (a *API) createCannedAnswer(ctx context.Context, r *request, _ *none) (*messageData[*parley.CannedAnswer], error) {
	made, err := a.Chat.AddAnswer(ctx, r.UserID(), r.Body)
	return &messageData[*parley.CannedAnswer]{"Canned answer created successfully", made}, err
}

func (a *API) updateCannedAnswer(ctx context.Context, r *request, in *byID) (*messageData[*parley.CannedAnswer], error) {
	changed, err := a.Chat.ChangeAnswer(ctx, r.UserID(), in.ID, r.Body)
	return &messageData[*parley.CannedAnswer]{"Canned answer updated successfully", changed}, err
}

func (a *API) deleteCannedAnswer(ctx context.Context, r *request, in *byID) (*notice, error) {
	return &notice{"Canned answer deleted successfully"}, a.Chat.DeleteAnswer(ctx, r.UserID(), in.ID)
}
