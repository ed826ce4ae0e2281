package api

import (
	"context"

	"parley/internal/auth"
	"parley/internal/parley"
)

func (a *API) shareRoutes() {
	const tag, at = "Drafts and versions", "/user/assistants/{id}/share-links"
	handle(a, op{Method: "POST", Path: at, Name: "createShareLink", Tag: tag, Status: 201, NotFound: assistantMissing,
		Summary: "Create a link with which somebody without an account can talk to the draft for a day"}, a.createShareLink)
	handle(a, op{Method: "GET", Path: at, Name: "listShareLinks", Tag: tag, NotFound: assistantMissing,
		Summary: "The links that are valid, without their tokens"}, a.listShareLinks)
	handle(a, op{Method: "DELETE", Path: at, Name: "deleteShareLinks", Tag: tag, NotFound: assistantMissing,
		Summary: "Revoke all links of an assistant"}, a.deleteShareLinks)
}

type shareLink struct {
	ID        int64       `json:"id"`
	URL       string      `json:"url,omitempty" doc:"Only when it is created: its token is not stored."`
	ExpiresAt parley.Time `json:"expires_at"`
	CreatedAt parley.Time `json:"created_at"`
}

func (a *API) createShareLink(ctx context.Context, r *request, in *byID) (*messageData[shareLink], error) {
	k, token, err := a.Auth.Share(ctx, r.UserID(), in.ID)
	if err != nil {
		return nil, err
	}
	return &messageData[shareLink]{"Share link created successfully",
		shareLink{k.ID, a.baseURL(r.Request) + "/share/" + token, k.ExpiresAt, k.CreatedAt}}, nil
}

func (a *API) listShareLinks(ctx context.Context, r *request, in *byID) (*data[[]shareLink], error) {
	keys, err := a.Auth.Shares(ctx, r.UserID(), in.ID)
	list := make([]shareLink, len(keys))
	for i, k := range keys {
		list[i] = shareLink{ID: k.ID, ExpiresAt: k.ExpiresAt, CreatedAt: k.CreatedAt}
	}
	return &data[[]shareLink]{list}, err
}

func (a *API) deleteShareLinks(ctx context.Context, r *request, in *byID) (*notice, error) {
	return &notice{"Share links revoked successfully"}, a.Auth.Unshare(ctx, r.UserID(), in.ID)
}

// sharedDraft is the assistant with its draft that a share link's token stands for, shown on our own page whatever its
// widget's settings say, and the link's id. Its token takes the place of its UUID.
func (a *API) sharedDraft(ctx context.Context, token string) (*parley.Assistant, int64, error) {
	userID, id, link, err := a.Auth.Shared(ctx, token)
	if err != nil {
		return nil, 0, err
	}
	s, err := a.Assistants.Drafted(ctx, userID, id)
	if err != nil {
		return nil, 0, err
	}
	s.Status, s.WidgetSettings.AllowedOrigins, s.WidgetSettings.AutoOpen = "active", nil, true
	if s.WidgetSettings.Mode = "chat"; a.Browsers != nil {
		s.WidgetSettings.Mode = "both"
	}
	return s, link, nil
}

// startShared begins a test conversation with a shared draft.
func (a *API) startShared(ctx context.Context, r *request, in *newConversation) (*startedConversation, error) {
	s, link, err := a.sharedDraft(ctx, in.Body.AssistantID)
	if err != nil {
		return nil, err
	}
	if err := a.mayBegin(r, s); err != nil {
		return nil, err
	}
	vars, visitors, err := given(r, s, in.Body.Variables)
	if err != nil {
		return nil, err
	}
	conv, history, err := a.Chat.StartDraft(ctx, s, link, vars, visitors...)
	if err != nil {
		return nil, err
	}
	return &startedConversation{true, conv.ID, lines(history)}, nil
}

// sharing is the refusal of a conversation that was begun by a share link which is no longer valid; nil for one that
// is.
func (a *API) sharing(ctx context.Context, conv *parley.Conversation) error {
	lives, err := a.Auth.ShareLives(ctx, conv.SharedBy())
	if err == nil && !lives {
		err = parley.Errorf(parley.NotFound, conversationMissing)
	}
	return err
}

// onOurPage is the assistant of a share link, where id is one.
func (a *API) onOurPage(ctx context.Context, r *request, id string,
	may func(*request, *parley.Assistant) error) (s *parley.Assistant, shared bool, err error) {
	if !auth.IsShare(id) {
		return nil, false, nil
	}
	if s, _, err = a.sharedDraft(ctx, id); err == nil {
		err = may(r, s)
	}
	return s, true, err
}
