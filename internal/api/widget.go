package api

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"parley/internal/assistant"
	"parley/internal/parley"
	"parley/internal/widget"
)

func (a *API) widgetRoutes() {
	handle(a, op{Method: "GET", Path: "/widgets/{id}", Name: "getWidget", Tag: "Widget", NotFound: assistantMissing,
		Family: statuses, Access: public, Summary: "How an assistant's widget looks and what it says"}, a.getWidget)
}

const assistantMissing = "Assistant not found"

// onWebsite is the assistant with a UUID, where may lets the page that asks have it.
func (a *API) onWebsite(ctx context.Context, r *request, id string,
	may func(*request, *parley.Assistant) error) (*parley.Assistant, error) {
	if s, shared, err := a.onOurPage(ctx, r, id, may); shared {
		return s, err
	}
	u, err := uuid.Parse(id)
	if err != nil {
		return nil, parley.Errorf(parley.NotFound, assistantMissing)
	}
	s, err := a.DB.AssistantByUUID(ctx, u.String())
	if err != nil {
		return nil, err
	}
	return s, may(r, s)
}

// mayBegin judges whether a page may begin something that costs: a conversation, a call. It counts against the
// assistant.
func (a *API) mayBegin(r *request, s *parley.Assistant) error {
	if err := a.mayUse(r, s); err != nil || r.owns(s.UserID) {
		return err
	}
	_, err := a.limitBegun.Take(s.UUID, time.Now())
	return err
}

// mayUse judges whether a page may show an assistant: an inactive one is as an unknown one. A GET without an Origin
// header may come from a page of ours (browsers leave it out there) and tells no secret, so it is let through.
func (a *API) mayUse(r *request, s *parley.Assistant) error {
	if s.Status != "active" {
		return parley.Errorf(parley.NotFound, assistantMissing)
	}
	ours := r.Method == http.MethodGet && r.Header.Get("Origin") == ""
	if len(s.WidgetSettings.AllowedOrigins) > 0 && !ours && !a.allowedOrigin(r, s) {
		return parley.Errorf(parley.Forbidden, "This origin may not use the assistant: add it to allowed_origins in its widget settings.")
	}
	return nil
}

func (a *API) getWidget(ctx context.Context, r *request, in *byText) (*widget.Shown, error) {
	s, err := a.onWebsite(ctx, r, in.ID, a.mayUse)
	if err != nil {
		return nil, err
	}
	sent, err := sentVariables(r.Header.Get(variablesHeader))
	if err != nil {
		return nil, err
	}
	vars, _, err := given(r, s, sent)
	if err != nil {
		return nil, err
	}
	iso := ""
	if l := a.Catalog.Language(s.LanguageID); l != nil {
		iso = l.ISO2
	}
	return widget.Show(s, iso, parley.Render(s.InitialMessage,
		assistant.Variables(s, assistant.Occasion{Variables: vars, Now: time.Now()})), a.Browsers != nil), nil
}
