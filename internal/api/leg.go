package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"parley/internal/auth"
	"parley/internal/call"
	"parley/internal/parley"
	"parley/internal/web"
)

type newLeg struct {
	ID   int64 `path:"id"`
	Body struct {
		PhoneNumber string         `json:"phone_number" required:"true" maxLength:"200" reads:"transfer" doc:"Whom to call: E.164; over your own trunk also an extension, or a sip: address at the trunk. Agents may call only whom the account lists: targets of transfers, telephones that its numbers ring, its own numbers."`
		Kind        parley.LegKind `json:"kind" enum:"supervisor,guest" default:"supervisor" doc:"How the transcript and the assistant treat them. A supervisor changes the mode by keys: 1 listen, 2 whisper, 3 talk, 4 take over."`
		Mode        parley.LegMode `json:"mode" enum:"listen,whisper,talk,take_over" doc:"What they hear and do once they answer; by default listen for a supervisor and talk for a guest."`
		NumberID    *int64         `json:"phone_number_id" doc:"Which of your numbers they see; by default the call's, or else its assistant's."`
	}
}

type byLeg struct {
	ID  int64 `path:"id"`
	Leg int64 `path:"leg"`
}

type legMode struct {
	byLeg
	Body struct {
		Mode parley.LegMode `json:"mode" required:"true" enum:"listen,whisper,talk,take_over" doc:"Any other mode than take_over hands the call back to the assistant."`
	}
}

type keptLeg struct {
	Message string         `json:"message"`
	Data    parley.CallLeg `json:"data"`
}

func (a *API) inviteToCall(ctx context.Context, r *request, in *newLeg) (*keptLeg, error) {
	i := call.Invitation{Kind: in.Body.Kind, Mode: in.Body.Mode, To: in.Body.PhoneNumber, NumberID: in.Body.NumberID,
		Listed: !r.Who.Role().Includes(parley.RoleEditor), By: r.Who.Author()}
	leg, err := a.Calls.Invite(ctx, r.UserID(), in.ID, i)
	if err != nil {
		return nil, err
	}
	return &keptLeg{"Call initiated successfully", *leg}, nil
}

func (a *API) updateCallLeg(ctx context.Context, r *request, in *legMode) (*keptLeg, error) {
	leg, err := a.Calls.ChangeLeg(ctx, r.UserID(), in.ID, in.Leg, in.Body.Mode)
	if err != nil {
		return nil, err
	}
	return &keptLeg{"Leg updated successfully", *leg}, nil
}

func (a *API) hangUpCallLeg(ctx context.Context, r *request, in *byLeg) (*notice, error) {
	return &notice{"Leg hung up successfully"}, a.Calls.HangupLeg(ctx, r.UserID(), in.ID, in.Leg)
}

func (a *API) getLegRecording(ctx context.Context, r *request, in *byLeg) (*struct{}, error) {
	leg, err := a.DB.CallLeg(ctx, r.UserID(), in.ID, in.Leg)
	if err != nil {
		return nil, err
	}
	return nil, a.sendLegRecording(ctx, r, leg)
}

type legLink struct {
	byLeg
	Expires   int64  `path:"expires"`
	Signature string `path:"signature"`
}

func (a *API) getLinkedLegRecording(ctx context.Context, r *request, in *legLink) (*struct{}, error) {
	leg, err := a.Calls.LinkedLeg(ctx, in.ID, in.Leg, in.Expires, in.Signature)
	if err != nil {
		return nil, err
	}
	return nil, a.sendLegRecording(ctx, r, leg)
}

// sendLegRecording streams a leg's recording, or the range of it that is asked for.
func (a *API) sendLegRecording(ctx context.Context, r *request, leg *parley.CallLeg) error {
	o, err := a.Calls.OpenLegRecording(ctx, leg)
	if err != nil {
		return err
	}
	defer o.Close()
	web.SendRecording(r.W, r.Request, fmt.Sprintf("call-%d-leg-%d", leg.CallID, leg.ID), parley.Time(leg.EndedAt).Time(), o)
	return errAnswered
}

type listening struct {
	ID   int64          `path:"id"`
	Mode parley.LegMode `query:"mode" enum:"listen,whisper,talk,take_over" doc:"listen by default."`
}

func (a *API) listenToCall(_ context.Context, r *request, in *listening) (*struct{}, error) {
	err := a.Attend(r.W, r.Request, r.Who, in.ID, in.Mode, func(leg int64) string {
		return a.baseURL(r.Request) + "/api/user/calls/" + strconv.FormatInt(in.ID, 10) + "/legs/" + strconv.FormatInt(leg, 10)
	})
	if err != nil {
		return nil, err
	}
	return nil, errAnswered
}

// Attend has somebody's browser take part in one of the account's live calls, by the offer that a request holds, and
// answers it; place is the leg's address. They are hung up on when their credential ends, or no longer lets them take
// part. An error is the caller's to tell; without one the answer is sent.
func (a *API) Attend(w http.ResponseWriter, r *http.Request, who *auth.Who, id int64, mode parley.LegMode,
	place func(leg int64) string) error {
	offer, err := a.readOffer(w, r)
	if err != nil {
		return err
	}
	got, err := a.Calls.Attend(r.Context(), who.User.ID, id,
		call.Browser{Offer: offer.Text(), From: a.Front.Client(r), Relay: a.relayHost(r), Mode: mode, Credential: who.Key.ID, By: who.Author()})
	if err == nil {
		w.Header()["Link"] = got.Links
		w.Header().Set("Location", place(got.Leg))
		sendDescription(w, http.StatusCreated, sdpType, got.Tag, got.SDP)
	}
	return err
}

// Reattend connects the browser of somebody who takes part in a call anew, after its network has changed. An error is the
// caller's to tell; without one the answer is sent.
func (a *API) Reattend(w http.ResponseWriter, r *http.Request, userID, id, leg int64) error {
	text, err := a.readDescription(w, r, fragmentType, "an SDP fragment")
	if err != nil {
		return err
	}
	c, err := a.Calls.Reconnect(r.Context(), userID, id, call.BrowserChange{Leg: leg, Match: r.Header.Get("If-Match"), Fragment: text})
	switch {
	case err != nil:
		return err
	case c.SDP == "":
		w.WriteHeader(http.StatusNoContent)
	default:
		sendDescription(w, http.StatusOK, fragmentType, c.Tag, c.SDP)
	}
	return nil
}

func (a *API) reconnectCallLeg(_ context.Context, r *request, in *byLeg) (*struct{}, error) {
	if err := a.Reattend(r.W, r.Request, r.UserID(), in.ID, in.Leg); err != nil {
		return nil, err
	}
	return nil, errAnswered
}

type whispered struct {
	ID   int64 `path:"id"`
	Body struct {
		Text string `json:"text" required:"true" maxLength:"1000" doc:"What the assistant is to know, and follow from now on. Nobody else hears it."`
	}
}

func (a *API) whisperInCall(ctx context.Context, r *request, in *whispered) (*notice, error) {
	return &notice{"The assistant has been told"}, a.Calls.Whisper(ctx, r.UserID(), in.ID, in.Body.Text)
}
