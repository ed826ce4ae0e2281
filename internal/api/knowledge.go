package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"parley/internal/form"
	"parley/internal/knowledge"
	"parley/internal/parley"
)

// uploadLimit bounds the body that a document comes in (decisions 1).
const uploadLimit = 21 << 20

func (a *API) knowledgeRoutes() {
	const tag, missing, noDocument = "Knowledgebases", "Knowledgebase not found.", "Document not found."
	handle(a, op{Method: "GET", Path: "/user/knowledgebases", Name: "listKnowledgebases", Tag: tag, Family: bare,
		Summary: "List knowledgebases"}, a.listKnowledgebases)
	handle(a, op{Method: "POST", Path: "/user/knowledgebases", Name: "createKnowledgebase", Tag: tag, Family: bare,
		Status: 201, Body: parley.Knowledgebase{},
		Failure: "Failed to create knowledgebase.", Summary: "Create a knowledgebase"}, a.createKnowledgebase)
	const one = "/user/knowledgebases/{id}"
	handle(a, op{Method: "GET", Path: one, Name: "getKnowledgebase", Tag: tag, Family: bare, NotFound: missing,
		Summary: "Read a knowledgebase"}, a.getKnowledgebase)
	handle(a, op{Method: "PUT", Path: one, Name: "updateKnowledgebase", Tag: tag, Family: bare, NotFound: missing,
		Body: parley.Knowledgebase{}, Partial: true,
		Failure: "Failed to update knowledgebase.", Summary: "Change name and description"}, a.updateKnowledgebase)
	handle(a, op{Method: "DELETE", Path: one, Name: "deleteKnowledgebase", Tag: tag, Family: bare,
		NotFound: missing, Failure: "Failed to delete knowledgebase.",
		Summary: "Delete a knowledgebase with its documents, and detach its assistants"}, a.deleteKnowledgebase)
	handle(a, op{Method: "POST", Path: one + "/search", Name: "searchKnowledgebase", Tag: tag, Family: bare,
		NotFound: missing, Failure: "Failed to search.",
		Summary: "Search for the passages that answer a question"}, a.searchKnowledgebase)

	const documents, document = one + "/documents", one + "/documents/{document}"
	handle(a, op{Method: "GET", Path: documents, Name: "listDocuments", Tag: tag, Family: bare, NotFound: missing,
		Summary: "List documents"}, a.listDocuments)
	handle(a, op{Method: "POST", Path: documents, Name: "createDocument", Tag: tag, Family: bare, NotFound: missing,
		Status: 201, Body: parley.DocumentInput{},
		Upload: uploadLimit, File: "file", Failure: "Failed to create document.",
		Summary: "Add a website (JSON) or a file (form); it is processed in the background"}, a.createDocument)
	handle(a, op{Method: "GET", Path: document, Name: "getDocument", Tag: tag, Family: bare, NotFound: noDocument,
		Summary: "Read a document"}, a.getDocument)
	handle(a, op{Method: "GET", Path: document + "/content", Name: "getDocumentContent", Tag: tag, Family: bare,
		NotFound: noDocument, Stream: "application/octet-stream", Summary: "The file that a document was made of"}, a.getDocumentContent)
	handle(a, op{Method: "PUT", Path: document, Name: "updateDocument", Tag: tag, Family: bare,
		NotFound: noDocument, Body: knowledge.DocumentName{}, Partial: true,
		Failure: "Failed to update document.", Summary: "Change name and description"}, a.updateDocument)
	handle(a, op{Method: "DELETE", Path: document, Name: "deleteDocument", Tag: tag, Family: bare,
		NotFound: noDocument, Failure: "Failed to delete document.",
		Summary: "Delete a document and everything made from it"}, a.deleteDocument)
	handle(a, op{Method: "POST", Path: document + "/retry", Name: "retryDocument", Tag: tag, Family: bare,
		NotFound: noDocument, Failure: "Failed to process document.",
		Summary: "Process a document again"}, a.retryDocument)
}

type data[T any] struct {
	Data T `json:"data" required:"true"`
}

func (a *API) listKnowledgebases(ctx context.Context, r *request, _ *none) (*data[[]parley.Knowledgebase], error) {
	list, err := a.DB.Knowledgebases(ctx, r.UserID())
	return &data[[]parley.Knowledgebase]{list}, err
}

func (a *API) getKnowledgebase(ctx context.Context, r *request, in *byID) (*data[*parley.Knowledgebase], error) {
	k, err := a.DB.Knowledgebase(ctx, r.UserID(), in.ID)
	return &data[*parley.Knowledgebase]{k}, err
}

func (a *API) createKnowledgebase(ctx context.Context, r *request, _ *none) (*messageData[*parley.Knowledgebase],
	error) {
	k, err := a.Knowledge.Create(ctx, r.UserID(), r.Body)
	return &messageData[*parley.Knowledgebase]{"Knowledgebase created successfully.", k}, err
}

func (a *API) updateKnowledgebase(ctx context.Context, r *request, in *byID) (*messageData[*parley.Knowledgebase],
	error) {
	k, err := a.Knowledge.Change(ctx, r.UserID(), in.ID, r.Body)
	return &messageData[*parley.Knowledgebase]{"Knowledgebase updated successfully.", k}, err
}

func (a *API) deleteKnowledgebase(ctx context.Context, r *request, in *byID) (*notice, error) {
	return &notice{"Knowledgebase deleted successfully."}, a.Knowledge.DeleteKnowledgebase(ctx, r.UserID(), in.ID)
}

type searchInput struct {
	byID
	Body struct {
		Query string `json:"query" required:"true" maxLength:"4000" doc:"A question, or words."`
		Limit int    `json:"limit" default:"5" minimum:"1" maximum:"20"`
	}
}

func (a *API) searchKnowledgebase(ctx context.Context, r *request, in *searchInput) (*data[[]parley.Passage], error) {
	list, err := a.Knowledge.Try(ctx, r.UserID(), in.ID, in.Body.Query, in.Body.Limit)
	return &data[[]parley.Passage]{list}, err
}

func (a *API) listDocuments(ctx context.Context, r *request, in *byID) (*data[[]parley.Document], error) {
	list, err := a.DB.Documents(ctx, r.UserID(), in.ID)
	return &data[[]parley.Document]{list}, err
}

// createDocument takes a website as JSON and a file as a form.
func (a *API) createDocument(ctx context.Context, r *request, in *byID) (*messageData[*parley.Document], error) {
	if _, err := a.DB.Knowledgebase(ctx, r.UserID(), in.ID); err != nil {
		return nil, err
	}
	var file *uploaded
	fields, tree := parley.Fields{}, r.Body
	if r.Form != nil {
		var err error
		if tree, file, err = a.takeFile(ctx, r, &fields); err != nil {
			return nil, err
		}
	} else if tree["file"] != nil {
		fields.Add("file", "must be a file: send the form as multipart/form-data.")
	}
	input := &parley.DocumentInput{}
	form.Defaults(input)
	bound := form.Bind(tree, input, true)
	fields = append(bound, fields...)
	input.Check(&fields, file != nil)
	err := fields.Err()
	var doc *parley.Document
	if err == nil {
		doc = input.Document()
		if file != nil && doc.Type != parley.Website {
			doc.Blob, doc.Size = file.name, file.size
		}
		err = a.Knowledge.Add(ctx, r.UserID(), in.ID, doc)
	}
	if file != nil && (err != nil || doc.Blob == "") {
		a.Knowledge.Discard(ctx, file.name)
	}
	return &messageData[*parley.Document]{"Document created successfully. It is being processed.", doc}, err
}

// uploaded is a file in blob storage that no document names yet.
type uploaded struct {
	name string
	size int64
}

// takeFile reads a document's form. The file goes to blob storage as it comes; one that is too large fails its field.
func (a *API) takeFile(ctx context.Context, r *request, fields *parley.Fields) (map[string]any, *uploaded, error) {
	var file *uploaded
	tree, err := r.Form.fields(func(name string, content io.Reader) error {
		if name != "file" || file != nil || fields.Has("file") {
			return nil // of no use; it is read over
		}
		blob, size, err := a.Knowledge.Upload(ctx, &bounded{content, parley.MaxDocument})
		switch {
		case errors.Is(err, errFileLarge):
			fields.Add("file", "must not be greater than 20 MB.")
			return nil
		case err != nil:
			return err
		}
		file = &uploaded{blob, size}
		return nil
	})
	if err != nil {
		if file != nil {
			a.Knowledge.Discard(ctx, file.name)
		}
		return nil, nil, err
	}
	if text, ok := tree["file"].(string); ok && strings.TrimSpace(text) != "" {
		fields.Add("file", "must be a file.")
	}
	if n, ok := tree["relative_links_limit"].(string); ok && strings.Trim(n, "0123456789") == "" && n != "" {
		tree["relative_links_limit"] = json.Number(n) // a form knows texts alone
	}
	for name, v := range tree { // what a form leaves empty it leaves out
		if v == "" && name != "name" && name != "type" {
			delete(tree, name)
		}
	}
	return tree, file, nil
}

var errFileLarge = errors.New("the file is too large")

// bounded reads at most left bytes and fails behind them.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errFileLarge
	}
	return n, err
}

type byDocument struct {
	ID       int64 `path:"id" missing:"Knowledgebase not found."`
	Document int64 `path:"document"`
}

func (a *API) getDocument(ctx context.Context, r *request, in *byDocument) (*data[*parley.Document], error) {
	d, err := a.DB.Document(ctx, r.UserID(), in.ID, in.Document)
	return &data[*parley.Document]{d}, err
}

func (a *API) getDocumentContent(ctx context.Context, r *request, in *byDocument) (*struct{}, error) {
	d, file, err := a.Knowledge.File(ctx, r.UserID(), in.ID, in.Document)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	h := r.W.Header()
	h.Set("Content-Type", "application/octet-stream") // a stranger's file is shown by no browser as ours
	h.Set("Content-Disposition",
		mime.FormatMediaType("attachment", map[string]string{"filename": fmt.Sprintf("document-%d.%s", d.ID, d.Type)}))
	http.ServeContent(r.W, r.Request, "", d.CreatedAt.Time(), file)
	return nil, errAnswered
}

func (a *API) updateDocument(ctx context.Context, r *request, in *byDocument) (*messageData[*parley.Document], error) {
	d, err := a.Knowledge.Rename(ctx, r.UserID(), in.ID, in.Document, r.Body)
	return &messageData[*parley.Document]{"Document updated successfully.", d}, err
}

func (a *API) deleteDocument(ctx context.Context, r *request, in *byDocument) (*notice, error) {
	return &notice{"Document deleted successfully."}, a.Knowledge.Delete(ctx, r.UserID(), in.ID, in.Document)
}

func (a *API) retryDocument(ctx context.Context, r *request, in *byDocument) (*messageData[*parley.Document], error) {
	d, err := a.Knowledge.Again(ctx, r.UserID(), in.ID, in.Document)
	return &messageData[*parley.Document]{"Document is being processed again.", d}, err
}
