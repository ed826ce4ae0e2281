package api

import (
	"context"

	"parley/internal/parley"
	"parley/internal/store"
)

func (a *API) assistantRoutes() {
	const tag, missing = "Assistants", "Assistant not found"
	// one operation under two names, as clients know both
	for i, path := range []string{"/user/assistant", "/user/assistants"} {
		name := []string{"createAssistant", "createAssistantPlural"}[i]
		handle(a, op{Method: "POST", Path: path, Name: name, Tag: tag, Status: 201, Body: parley.Assistant{},
			Summary: "Create an assistant"}, a.createAssistant)
	}
	handle(a, op{Method: "GET", Path: "/user/assistants", Name: "listAllAssistants", Tag: tag,
		Summary: "All assistants, unpaginated (older clients)"}, a.listAllAssistants)
	handle(a, op{Method: "GET", Path: "/user/assistants/get", Name: "listAssistants", Tag: tag,
		Summary: "List assistants"}, a.listAssistants)
	handle(a, op{Method: "GET", Path: "/user/assistants/outbound", Name: "listOutboundAssistants", Tag: tag,
		Summary: "All outbound assistants, in short"}, a.listOutbound)
	const one = "/user/assistant/{id}"
	for i, path := range []string{one, "/user/assistants/{id}"} {
		name := func(s string) string { return s + []string{"", "Plural"}[i] }
		handle(a, op{Method: "GET", Path: path, Name: name("getAssistant"), Tag: tag, NotFound: missing,
			Summary: "Read an assistant"}, a.getAssistant)
		for _, method := range []string{"PUT", "PATCH"} {
			handle(a, op{Method: method, Path: path,
				Name: name(map[string]string{"PUT": "updateAssistant", "PATCH": "patchAssistant"}[method]),
				Tag:  tag, NotFound: missing, Body: parley.Assistant{}, Partial: true,
				Summary: "Update the fields that are sent"}, a.updateAssistant)
		}
		handle(a, op{Method: "DELETE", Path: path, Name: name("deleteAssistant"), Tag: tag, NotFound: missing,
			Summary: "Delete an assistant; its history stays"}, a.deleteAssistant)
	}
	handle(a, op{Method: "GET", Path: one + "/prompt-versions", Name: "listPromptVersions", Tag: tag,
		NotFound: missing, Summary: "Versions of the prompt, newest first"}, a.listPromptVersions)
	handle(a, op{Method: "GET", Path: one + "/prompt-versions/{version}", Name: "getPromptVersion", Tag: tag,
		NotFound: missing, Summary: "One version of the prompt"}, a.getPromptVersion)
	handle(a, op{Method: "GET", Path: one + "/prompt-versions/{version}/diff", Name: "diffPromptVersion", Tag: tag,
		NotFound: missing, Summary: "Compare two versions of the prompt, line by line"}, a.diffPromptVersion)
	handle(a, op{Method: "POST", Path: one + "/prompt-versions/{version}/restore", Name: "restorePromptVersion",
		Tag: tag, NotFound: missing, Summary: "Restore an older version of the prompt"}, a.restorePromptVersion)

	a.voicemailRoutes()
	handle(a, op{Method: "GET", Path: "/user/assistants/languages", Name: "listLanguages", Tag: tag,
		Summary: "Languages that assistants can speak"}, a.listLanguages)
	handle(a, op{Method: "GET", Path: "/user/assistants/voices", Name: "listVoices", Tag: tag, Summary: "Voices"},
		a.listVoices)
	handle(a, op{Method: "GET", Path: "/user/assistants/synthesizer-providers", Name: "listSynthesizerProviders",
		Tag: tag, Summary: "Text-to-speech providers"}, a.listSynthesizers)
	handle(a, op{Method: "GET", Path: "/user/assistants/transcriber-providers", Name: "listTranscriberProviders",
		Tag: tag, Summary: "Speech-to-text providers"}, a.listTranscribers)
	handle(a, op{Method: "GET", Path: "/user/assistants/models", Name: "listModels", Tag: tag,
		Summary: "Models that are configured on this server, and your endpoints that think or answer"}, a.listModels)
	handle(a, op{Method: "GET", Path: "/user/assistants/phone-numbers", Name: "listAssignableNumbers", Tag: tag,
		Summary: "Your phone numbers that an assistant can use"}, a.listAssignable)

	for _, hook := range []struct{ path, name, url, on string }{
		{"webhook", "Webhook", "webhook_url", "is_webhook_active"},
		{"inbound-webhook", "InboundWebhook", "inbound_webhook_url", ""},
		{"conversation-ended-webhook", "ConversationEndedWebhook", "conversation_ended_webhook_url", ""},
	} {
		handle(a, op{Method: "POST", Path: "/user/assistants/enable-" + hook.path, Name: "enable" + hook.name,
			Tag: tag, Summary: "Send events to a URL"},
			func(ctx context.Context, r *request, in *enableWebhook) (*messageData[[]string], error) {
				change := map[string]any{hook.url: in.Body.WebhookURL}
				if hook.on != "" {
					change[hook.on] = true
				}
				_, err := a.Assistants.Update(ctx, r.UserID(), in.Body.AssistantID, change)
				return &messageData[[]string]{"Webhook enabled successfully", []string{}}, err
			})
		handle(a, op{Method: "POST", Path: "/user/assistants/disable-" + hook.path, Name: "disable" + hook.name,
			Tag: tag, Summary: "Stop sending events"},
			func(ctx context.Context, r *request, in *disableWebhook) (*messageData[[]string], error) {
				change := map[string]any{hook.url: nil}
				if hook.on != "" {
					change[hook.on] = false
				}
				_, err := a.Assistants.Update(ctx, r.UserID(), in.Body.AssistantID, change)
				return &messageData[[]string]{"Webhook disabled successfully", []string{}}, err
			})
	}
}

type enableWebhook struct {
	Body struct {
		AssistantID int64  `json:"assistant_id" required:"true" format:"assistant"`
		WebhookURL  string `json:"webhook_url" required:"true" maxLength:"2048" format:"http-url"`
	}
}

type disableWebhook struct {
	Body struct {
		AssistantID int64 `json:"assistant_id" required:"true" format:"assistant"`
	}
}

// savedAssistant is an assistant that was stored, with what of it can't work on this server as it is.
type savedAssistant struct {
	Message  string            `json:"message"`
	Data     *parley.Assistant `json:"data" required:"true"`
	Warnings []string          `json:"warnings,omitempty" doc:"What was saved but can't work on this server, and how to fix it; calls fail with it as their ended_detail. Absent without warnings."`
}

func (a *API) saved(message string, s *parley.Assistant, err error) (*savedAssistant, error) {
	if err != nil {
		return nil, err
	}
	return &savedAssistant{message, s, a.Assistants.Warnings(s)}, nil
}

func (a *API) createAssistant(ctx context.Context, r *request, _ *none) (*savedAssistant, error) {
	made, err := a.Assistants.Create(ctx, r.UserID(), r.Body)
	return a.saved("Assistant created successfully", made, err)
}

func (a *API) getAssistant(ctx context.Context, r *request, in *byID) (*parley.Assistant, error) {
	s, err := a.Assistants.Get(ctx, r.UserID(), in.ID)
	if err != nil {
		return nil, err
	}
	return s.For(r.Who.Role()), nil
}

// shown are assistants as whoever asks may see them.
func shown(r *request, list []parley.Assistant) []parley.Assistant {
	for i := range list {
		list[i] = *list[i].For(r.Who.Role())
	}
	return list
}

func (a *API) updateAssistant(ctx context.Context, r *request, in *byID) (*savedAssistant, error) {
	changed, err := a.Assistants.Update(ctx, r.UserID(), in.ID, r.Body)
	return a.saved("Assistant updated successfully", changed, err)
}

func (a *API) deleteAssistant(ctx context.Context, r *request, in *byID) (*notice, error) {
	return &notice{"Assistant deleted successfully"}, a.Assistants.Delete(ctx, r.UserID(), in.ID)
}

func (a *API) listAllAssistants(ctx context.Context, r *request, _ *none) ([]parley.Assistant, error) {
	next := a.assistantPages(ctx, r, "")
	return nil, sendList(r.W, r.Request, next)
}

// assistantPages reads the account's assistants, of one type unless kind is "", page by page.
func (a *API) assistantPages(ctx context.Context, r *request, kind string) func(n int) ([]parley.Assistant, error) {
	last := int64(0)
	return func(n int) ([]parley.Assistant, error) {
		list, err := a.Assistants.After(ctx, r.UserID(), kind, last, n)
		if len(list) > 0 {
			last = list[len(list)-1].ID
		}
		return shown(r, list), err
	}
}

type assistantQuery struct {
	pageQuery
	Type     string `query:"type" enum:"inbound,outbound" doc:"Only assistants of this type."`
	FolderID int64  `query:"folder_id" minimum:"1" doc:"Only assistants in this folder."`
	LabelID  int64  `query:"label_id" minimum:"1" doc:"Only assistants with this label."`
}

func (a *API) listAssistants(ctx context.Context, r *request, in *assistantQuery) (*Paginated[parley.Assistant], error) {
	for kind, id := range map[parley.GroupKind]int64{parley.Folder: in.FolderID, parley.Label: in.LabelID} {
		if id != 0 {
			if _, err := a.DB.Group(ctx, r.UserID(), kind, id); err != nil {
				return nil, err
			}
		}
	}
	p := in.page(10)
	list, total, err := a.Assistants.Page(ctx, r.UserID(), store.AssistantFilter{Type: in.Type, FolderID: in.FolderID, LabelID: in.LabelID}, p)
	if err != nil {
		return nil, err
	}
	e := envelope(a, r.Request, shown(r, list), total, p)
	return &e, nil
}

// outbound is the contract's short form of an assistant.
type outbound struct {
	ID              int64             `json:"id"`
	UserID          int64             `json:"user_id"`
	Name            string            `json:"name"`
	Type            string            `json:"type"`
	Mode            string            `json:"mode"`
	Status          string            `json:"status"`
	VoiceID         int64             `json:"voice_id"`
	LanguageID      int64             `json:"language_id"`
	Timezone        string            `json:"timezone"`
	InitialMessage  string            `json:"initial_message"`
	SystemPrompt    string            `json:"system_prompt"`
	Variables       map[string]string `json:"variables"`
	WebhookURL      *string           `json:"webhook_url"`
	IsWebhookActive bool              `json:"is_webhook_active"`
	CreatedAt       parley.Time       `json:"created_at"`
	UpdatedAt       parley.Time       `json:"updated_at"`
}

func (a *API) listOutbound(ctx context.Context, r *request, _ *none) ([]outbound, error) {
	next := a.assistantPages(ctx, r, "outbound")
	return nil, sendList(r.W, r.Request, func(n int) ([]outbound, error) {
		list, err := next(n)
		out := make([]outbound, len(list))
		for i, s := range list {
			out[i] = outbound{s.ID, s.UserID, s.Name, s.Type, s.Mode, s.Status, s.Chosen().VoiceID, s.LanguageID, s.Timezone,
				s.InitialMessage,
				s.SystemPrompt, s.Variables, s.WebhookURL, s.IsWebhookActive, s.CreatedAt, s.UpdatedAt}
		}
		return out, err
	})
}

type byVersion struct {
	ID      int64 `path:"id"`
	Version int64 `path:"version"`
}

func (a *API) listPromptVersions(ctx context.Context, r *request, in *struct {
	byID
	pageQuery
}) (*Paginated[parley.PromptVersion], error) {
	if _, err := a.DB.Assistant(ctx, r.UserID(), in.ID); err != nil {
		return nil, err
	}
	p := in.page(15)
	list, total, err := a.DB.PromptVersions(ctx, r.UserID(), in.ID, p)
	if err != nil {
		return nil, err
	}
	e := envelope(a, r.Request, list, total, p)
	return &e, nil
}

func (a *API) getPromptVersion(ctx context.Context, r *request, in *byVersion) (*parley.PromptVersion, error) {
	return a.DB.PromptVersion(ctx, r.UserID(), in.ID, int(in.Version))
}

func (a *API) restorePromptVersion(ctx context.Context, r *request, in *byVersion) (*savedAssistant, error) {
	restored, err := a.Assistants.RestorePrompt(ctx, r.UserID(), in.ID, int(in.Version))
	return a.saved("Prompt restored successfully", restored, err)
}

type promptDiff struct {
	From           int               `json:"from"`
	To             int               `json:"to"`
	SystemPrompt   []parley.DiffLine `json:"system_prompt"`
	InitialMessage []parley.DiffLine `json:"initial_message"`
}

func (a *API) diffPromptVersion(ctx context.Context, r *request, in *struct {
	byVersion
	To int64 `query:"to" minimum:"1" doc:"The version to compare with; the present one when absent."`
}) (*promptDiff, error) {
	to := int(in.To)
	if to == 0 {
		present, err := a.DB.Assistant(ctx, r.UserID(), in.ID)
		if err != nil {
			return nil, err
		}
		to = present.PromptVersion
	}
	before, err := a.DB.PromptVersion(ctx, r.UserID(), in.ID, int(in.Version))
	if err != nil {
		return nil, err
	}
	after, err := a.DB.PromptVersion(ctx, r.UserID(), in.ID, to)
	if err != nil {
		return nil, err
	}
	return &promptDiff{before.Version, after.Version, parley.Diff(before.SystemPrompt, after.SystemPrompt),
		parley.Diff(before.InitialMessage, after.InitialMessage)}, nil
}

type byLanguage struct {
	LanguageID int64 `query:"language_id" doc:"Only what serves this language."`
}

func (a *API) listLanguages(ctx context.Context, r *request, _ *none) ([]parley.Language, error) {
	return a.Catalog.For(r.UserID()).Languages(), nil
}

func (a *API) listVoices(ctx context.Context, r *request, in *struct {
	byLanguage
	Mode string `query:"mode" enum:"pipeline,multimodal,dualplex" doc:"Only voices that serve this mode."`
}) ([]parley.Voice, error) {
	c, err := a.Assistants.Choice(ctx, r.UserID())
	if err != nil {
		return nil, err
	}
	return a.playable(r, c.Voices(in.Mode, in.LanguageID)), nil
}

// synthesizer is a provider that speaks, with what can be set of its voices.
type synthesizer struct {
	parley.Provider
	parley.Tunable
}

func (a *API) listSynthesizers(ctx context.Context, r *request, in *byLanguage) ([]synthesizer, error) {
	c, err := a.Assistants.Choice(ctx, r.UserID())
	if err != nil {
		return nil, err
	}
	out := []synthesizer{}
	for _, p := range c.Synthesizers(in.LanguageID) {
		out = append(out, synthesizer{p, a.Catalog.Tunable(p.Code)})
	}
	return out, nil
}

func (a *API) listTranscribers(ctx context.Context, r *request, in *byLanguage) ([]parley.Provider, error) {
	c, err := a.Assistants.Choice(ctx, r.UserID())
	if err != nil {
		return nil, err
	}
	return c.Transcribers(in.LanguageID), nil
}

func (a *API) listModels(ctx context.Context, r *request, in *struct {
	Type string `query:"type" enum:"llm,multimodal,dualplex" doc:"Only models of this type."`
}) ([]parley.Model, error) {
	c, err := a.Assistants.Choice(ctx, r.UserID())
	if err != nil {
		return nil, err
	}
	return c.ModelsOf(parley.ModelKind(in.Type)), nil
}

// assignable is an owned number as an assistant's editor needs it (2.9).
type assignable struct {
	ID          int64  `json:"id"`
	PhoneNumber string `json:"phone_number"`
	CountryCode string `json:"country_code"`
	TypeLabel   string `json:"type_label"`
	IsAvailable bool   `json:"is_available"`

	AssistantID     *int64  `json:"assistant_id"` // the inbound assistant that has it
	AssistantStatus *string `json:"assistant_status" doc:"active or inactive; an inactive assistant answers no call. null where no inbound assistant has the number."`
}

func (a *API) listAssignable(ctx context.Context, r *request, in *struct {
	Type string `query:"type" enum:"inbound,outbound" doc:"inbound: only those that a new inbound assistant may have."`
}) ([]assignable, error) {
	numbers, err := a.DB.Numbers(ctx, r.UserID())
	if err != nil {
		return nil, err
	}
	taken, err := a.DB.Answerers(ctx, r.UserID())
	if err != nil {
		return nil, err
	}
	out := []assignable{}
	for _, n := range numbers {
		by, answered := taken[n.ID]
		available := !answered && n.Type != parley.NumberCallerID
		if available || in.Type != "inbound" {
			shown := assignable{ID: n.ID, PhoneNumber: n.PhoneNumber, CountryCode: n.CountryCode,
				TypeLabel: n.Type.Label(), IsAvailable: available}
			if answered {
				shown.AssistantID, shown.AssistantStatus = &by.ID, &by.Status
			}
			out = append(out, shown)
		}
	}
	return out, nil
}
