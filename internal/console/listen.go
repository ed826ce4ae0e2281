package console

import (
	"net/http"
	"strconv"

	"parley/internal/parley"
)

// callListen has this browser take part in a live call: it listens. A script asks, by an SDP offer.
func (c *Console) callListen(r *request) (*answer, error) {
	id := r.id("id")
	if _, err := c.DB.Call(r.Context(), r.UserID(), id); err != nil {
		return c.toScript(r, err)
	}
	if c.Attend == nil {
		return c.toScript(r, parley.Errorf(parley.Unavailable, "This server does not accept calls from browsers."))
	}
	return c.toScript(r, c.Attend(r.w, r.Request, r.who, id, parley.LegListen, func(leg int64) string {
		return "/calls/" + strconv.FormatInt(id, 10) + "/listen/" + strconv.FormatInt(leg, 10)
	}))
}

// callListenAgain connects the browser anew, after its network has changed.
func (c *Console) callListenAgain(r *request) (*answer, error) {
	if c.Reattend == nil {
		return c.toScript(r, parley.Errorf(parley.NotFound, "This call is over already."))
	}
	return c.toScript(r, c.Reattend(r.w, r.Request, r.UserID(), r.id("id"), r.id("leg")))
}

// callLegChange has somebody who takes part in a call listen, whisper, talk or take over.
func (c *Console) callLegChange(r *request) (*answer, error) {
	_, err := c.Calls.ChangeLeg(r.Context(), r.UserID(), r.id("id"), r.id("leg"), parley.LegMode(r.FormValue("mode")))
	if err == nil {
		r.w.WriteHeader(http.StatusNoContent)
	}
	return c.toScript(r, err)
}

// callLeave hangs up on them.
func (c *Console) callLeave(r *request) (*answer, error) {
	err := c.Calls.HangupLeg(r.Context(), r.UserID(), r.id("id"), r.id("leg"))
	if err == nil {
		r.w.WriteHeader(http.StatusNoContent)
	}
	return c.toScript(r, err)
}
