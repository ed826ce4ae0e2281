package api

import (
	"context"

	"parley/internal/assistant"
	"parley/internal/parley"
)

func (a *API) draftRoutes() {
	const tag, noDraft, noVersion = "Drafts and versions", assistantMissing, "Version not found"
	const one = "/user/assistants/{id}"
	handle(a, op{Method: "GET", Path: one + "/draft", Name: "getAssistantDraft", Tag: tag, NotFound: noDraft,
		Summary: "Read an assistant's draft: the assistant as it would be when published"}, a.getDraft)
	for _, method := range []string{"PUT", "PATCH"} {
		handle(a, op{Method: method, Path: one + "/draft",
			Name: map[string]string{"PUT": "saveAssistantDraft", "PATCH": "patchAssistantDraft"}[method], Tag: tag,
			NotFound: noDraft, Body: parley.Assistant{}, Partial: true,
			Summary: "Update the fields that are sent, in the draft, which is created if there is none; the live assistant stays as it is"},
			a.saveDraft)
	}
	handle(a, op{Method: "DELETE", Path: one + "/draft", Name: "discardAssistantDraft", Tag: tag, NotFound: noDraft,
		Summary: "Discard the draft"}, a.discardDraft)
	handle(a, op{Method: "GET", Path: one + "/draft/diff", Name: "diffAssistantDraft", Tag: tag, NotFound: noDraft,
		Summary: "Compare the draft with the live assistant, field by field"}, a.diffDraft)
	handle(a, op{Method: "POST", Path: one + "/publish", Name: "publishAssistantDraft", Tag: tag, NotFound: noDraft,
		Summary: "Make the draft live"}, a.publishDraft)
	handle(a, op{Method: "GET", Path: one + "/versions", Name: "listAssistantVersions", Tag: tag,
		NotFound: assistantMissing, Summary: "The versions of an assistant, newest first"}, a.listVersions)
	handle(a, op{Method: "GET", Path: one + "/versions/{version}", Name: "getAssistantVersion", Tag: tag,
		NotFound: noVersion, Summary: "One version of an assistant"}, a.getVersion)
	handle(a, op{Method: "GET", Path: one + "/versions/{version}/diff", Name: "diffAssistantVersion", Tag: tag,
		NotFound: noVersion, Summary: "Compare two versions, field by field"}, a.diffVersion)
	handle(a, op{Method: "POST", Path: one + "/versions/{version}/restore", Name: "restoreAssistantVersion", Tag: tag,
		NotFound: noVersion, Summary: "Restore an older version, as a new version that is live"}, a.restoreVersion)
	handle(a, op{Method: "GET", Path: one + "/export", Name: "exportAssistant", Tag: tag, NotFound: assistantMissing,
		Summary: "An assistant as a file, without secrets"}, a.exportAssistant)
	handle(a, op{Method: "POST", Path: "/user/assistants/import", Name: "importAssistant", Tag: tag, Status: 201,
		Idempotent: true, Summary: "Import an assistant from a file; left_out says what could not be imported"}, a.importAssistant)
	handle(a, op{Method: "POST", Path: one + "/duplicate", Name: "duplicateAssistant", Tag: tag, Status: 201,
		NotFound: assistantMissing, Idempotent: true, Summary: "Duplicate an assistant: the copy is inactive, without a phone number"},
		a.duplicateAssistant)
}

func (a *API) exportAssistant(ctx context.Context, r *request, in *byID) (*assistant.File, error) {
	return a.Assistants.Export(ctx, r.UserID(), in.ID)
}

type importedAssistant struct {
	savedAssistant
	LeftOut []string `json:"left_out" doc:"What could not be imported from the file, and what replaces it."`
}

func (a *API) importAssistant(ctx context.Context, r *request, in *struct{ Body assistant.File }) (*importedAssistant, error) {
	made, left, err := a.Assistants.Import(ctx, r.UserID(), &in.Body)
	saved, err := a.saved("Assistant imported successfully", made, err)
	if err != nil {
		return nil, err
	}
	return &importedAssistant{*saved, left}, nil
}

func (a *API) duplicateAssistant(ctx context.Context, r *request, in *byID) (*savedAssistant, error) {
	made, err := a.Assistants.Duplicate(ctx, r.UserID(), in.ID)
	return a.saved("Assistant duplicated successfully", made, err)
}

func (a *API) getDraft(ctx context.Context, r *request, in *byID) (*data[*parley.AssistantDraft], error) {
	draft, err := a.Assistants.Draft(ctx, r.UserID(), in.ID)
	return &data[*parley.AssistantDraft]{draft}, err
}

// savedDraft is a draft that was stored, with what of it can't work on this server.
type savedDraft struct {
	Message  string                 `json:"message"`
	Data     *parley.AssistantDraft `json:"data" required:"true"`
	Warnings []string               `json:"warnings,omitempty" doc:"What can't work on this server, and how to fix it."`
}

func (a *API) saveDraft(ctx context.Context, r *request, in *byID) (*savedDraft, error) {
	draft, err := a.Assistants.SaveDraft(ctx, r.UserID(), in.ID, r.Body)
	if err != nil {
		return nil, err
	}
	return &savedDraft{"Draft saved successfully", draft, a.Assistants.Warnings(draft.Assistant)}, nil
}

func (a *API) discardDraft(ctx context.Context, r *request, in *byID) (*notice, error) {
	return &notice{"Draft discarded successfully"}, a.Assistants.Discard(ctx, r.UserID(), in.ID)
}

type changedFields struct {
	Changes []parley.FieldChange `json:"changes"`
}

func (a *API) diffDraft(ctx context.Context, r *request, in *byID) (*changedFields, error) {
	changes, err := a.Assistants.DraftChanges(ctx, r.UserID(), in.ID)
	return &changedFields{changes}, err
}

type publishing struct {
	byID
	Body struct {
		Note      string `json:"note" maxLength:"1000" doc:"A note for the list of versions."`
		SkipTests bool   `json:"skip_tests" default:"false" doc:"Publish although the assistant requires its tests to have passed against the draft, and they have not: the version's note says so."`
		Overwrite bool   `json:"overwrite" default:"false" doc:"Publish although the live assistant has changed since the draft was begun: the draft's fields replace the live ones."`
	}
}

func (a *API) publishDraft(ctx context.Context, r *request, in *publishing) (*savedAssistant, error) {
	live, err := a.Assistants.Publish(ctx, r.UserID(), in.ID, assistant.Publishing{Note: in.Body.Note, Overwrite: in.Body.Overwrite,
		SkipTests: in.Body.SkipTests})
	return a.saved("Draft published successfully", live, err)
}

func (a *API) listVersions(ctx context.Context, r *request, in *struct {
	byID
	pageQuery
}) (*Paginated[parley.AssistantVersion], error) {
	if _, err := a.DB.Assistant(ctx, r.UserID(), in.ID); err != nil {
		return nil, err
	}
	p := in.page(15)
	list, total, err := a.DB.AssistantVersions(ctx, r.UserID(), in.ID, p)
	if err != nil {
		return nil, err
	}
	e := envelope(a, r.Request, list, total, p)
	return &e, nil
}

// wholeVersion is a version with the assistant's fields as they were.
type wholeVersion struct {
	*parley.AssistantVersion
	Assistant parley.Settings `json:"assistant" doc:"The fields of the assistant that can be changed, as they were."`
}

func (a *API) getVersion(ctx context.Context, r *request, in *byVersion) (*wholeVersion, error) {
	v, err := a.Assistants.Version(ctx, r.UserID(), in.ID, int(in.Version))
	if err != nil {
		return nil, err
	}
	return &wholeVersion{v, v.Settings}, nil
}

func (a *API) diffVersion(ctx context.Context, r *request, in *struct {
	byVersion
	To int64 `query:"to" minimum:"1" doc:"The version to compare with; the newest when absent."`
}) (*assistant.Comparison, error) {
	return a.Assistants.Compare(ctx, r.UserID(), in.ID, int(in.Version), int(in.To))
}

type restoring struct {
	byVersion
	Body struct {
		Note string `json:"note" maxLength:"1000" doc:"A note for the list of versions; Restored version N when absent."`
	}
}

func (a *API) restoreVersion(ctx context.Context, r *request, in *restoring) (*savedAssistant, error) {
	live, err := a.Assistants.Restore(ctx, r.UserID(), in.ID, int(in.Version), in.Body.Note)
	return a.saved("Version restored successfully", live, err)
}
