package console

import (
	"encoding/json"
	"net/http"
	"time"

	"parley/internal/parley"
	"parley/internal/web"
)

// webCallStart begins a test call from this browser with the draft where there is one, also of an inactive assistant: an
// SDP offer in, the answer out (docs/widget.md). A script asks, so a refusal is told as the API tells it.
func (c *Console) webCallStart(r *request) (*answer, error) {
	return c.toScript(r, c.webCall(r))
}

// toScript tells a script why what it asked for can't be, as the API tells it.
func (c *Console) toScript(r *request, err error) (*answer, error) {
	if err == nil {
		return nil, nil
	}
	e := plain(r.Request, err)
	web.RetryAfter(r.w, err)
	r.w.Header().Set("Content-Type", "application/json")
	r.w.WriteHeader(web.Status(e.Kind))
	json.NewEncoder(r.w).Encode(map[string]string{"message": e.Message}) // a browser that left needs no answer
	return nil, nil
}

func (c *Console) webCall(r *request) error {
	a, err := c.Assistants.Drafted(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return err
	}
	if c.Answer == nil {
		return parley.Errorf(parley.Unavailable, "This server does not accept calls from browsers.")
	}
	if _, err := c.Create.Take(c.Front.Client(r.Request), time.Now()); err != nil {
		return err
	}
	return c.Answer(r.w, r.Request, a, func(session string) string {
		return assistantPath(a.ID, "/web-call/"+session)
	})
}

// webCallReconnect connects the call anew, after this browser's network has changed.
func (c *Console) webCallReconnect(r *request) (*answer, error) {
	_, err := c.DB.Assistant(r.Context(), r.UserID(), r.id("id"))
	if err == nil && c.Reconnect == nil {
		err = parley.Errorf(parley.NotFound, "This call is over already.")
	}
	if err == nil {
		err = c.Reconnect(r.w, r.Request, r.PathValue("session"))
	}
	return c.toScript(r, err)
}

// webCallEnd hangs up. The session is a secret of the call's own.
func (c *Console) webCallEnd(r *request) (*answer, error) {
	if _, err := c.DB.Assistant(r.Context(), r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	if c.Hangup == nil || !c.Hangup(r.Context(), r.PathValue("session")) {
		return nil, parley.Errorf(parley.NotFound, "This call is over already.")
	}
	r.w.WriteHeader(http.StatusNoContent)
	return nil, nil
}
