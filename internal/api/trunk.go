package api

import (
	"context"

	"parley"
	"parley/internal/form"
	"parley/internal/store"
)

func (a *API) trunkRoutes() {
	const tag, base, missing = "SIP trunks", "/user/phone-numbers/sip-trunks", "SIP trunk not found"
	handle(a, op{Method: "GET", Path: base, Name: "listTrunks", Tag: tag, Family: bare, Summary: "List SIP trunks"}, a.listTrunks)
	handle(a, op{Method: "POST", Path: base, Name: "createTrunk", Tag: tag, Family: bare, Status: 201, Body: parley.TrunkInput{}, Summary: "Make a SIP trunk; its number becomes an own number"}, a.createTrunk)
	handle(a, op{Method: "GET", Path: base + "/{id}", Name: "getTrunk", Tag: tag, Family: bare, NotFound: missing, Summary: "Read a SIP trunk"}, a.getTrunk)
	handle(a, op{Method: "PUT", Path: base + "/{id}", Name: "updateTrunk", Tag: tag, Family: bare, NotFound: missing, Body: parley.TrunkInput{}, Partial: true, Summary: "Change the fields that are sent"}, a.updateTrunk)
	handle(a, op{Method: "DELETE", Path: base + "/{id}", Name: "deleteTrunk", Tag: tag, Family: bare, NotFound: missing, Summary: "Delete a SIP trunk and its number"}, a.deleteTrunk)
	handle(a, op{Method: "POST", Path: base + "/{id}/check", Name: "checkTrunk", Tag: tag, Family: bare, NotFound: missing, Summary: "Say whether the trunk answers"}, a.checkTrunk)
}

type dataOf[T any] struct {
	Data T `json:"data"`
}

func (a *API) listTrunks(ctx context.Context, r *request, _ *none) (*listOf[parley.Trunk], error) {
	list, err := a.DB.Trunks(ctx, r.UserID())
	for i := range list {
		a.Calls.Registered(&list[i])
	}
	return &listOf[parley.Trunk]{list}, err
}

func (a *API) getTrunk(ctx context.Context, r *request, in *byID) (*dataOf[*parley.Trunk], error) {
	t, err := a.DB.Trunk(ctx, r.UserID(), in.ID)
	a.Calls.Registered(t)
	return &dataOf[*parley.Trunk]{t}, err
}

func (a *API) createTrunk(ctx context.Context, r *request, _ *none) (*messageData[*parley.Trunk], error) {
	t := &parley.TrunkInput{}
	form.Defaults(t)
	fields := form.Bind(r.Body, t, true)
	t.Check(t.SIPPassword != "", &fields)
	if err := fields.Err(); err != nil {
		return nil, err
	}
	a.DB.SealPassword(&t.Trunk, t.SIPPassword)
	err := a.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		tx.AfterCommit(a.Calls.TrunksChanged)
		return tx.CreateTrunk(ctx, r.UserID(), &t.Trunk)
	})
	return &messageData[*parley.Trunk]{"SIP trunk created successfully", &t.Trunk}, err
}

func (a *API) updateTrunk(ctx context.Context, r *request, in *byID) (*messageData[*parley.Trunk], error) {
	var t *parley.TrunkInput
	err := a.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		old, err := tx.TrunkForUpdate(ctx, r.UserID(), in.ID)
		if err != nil {
			return err
		}
		t = &parley.TrunkInput{Trunk: *old}
		fields := form.Bind(r.Body, t, false)
		_, sent := r.Body["sip_password"] // what is not sent stays; null and "" clear
		t.Check(t.SIPPassword != "" || !sent && len(old.Sealed) > 0, &fields)
		if err := fields.Err(); err != nil {
			return err
		}
		if sent {
			tx.SealPassword(&t.Trunk, t.SIPPassword)
		}
		tx.AfterCommit(a.Calls.TrunksChanged)
		return tx.SaveTrunk(ctx, r.UserID(), old, &t.Trunk)
	})
	if err != nil {
		return nil, err
	}
	a.Calls.Registered(&t.Trunk)
	return &messageData[*parley.Trunk]{"SIP trunk updated successfully", &t.Trunk}, nil
}

func (a *API) deleteTrunk(ctx context.Context, r *request, in *byID) (*notice, error) {
	err := a.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		tx.AfterCommit(a.Calls.TrunksChanged)
		return tx.DeleteTrunk(ctx, r.UserID(), in.ID)
	})
	return &notice{"SIP trunk deleted successfully"}, err
}

type trunkCheck struct {
	Registered bool    `json:"registered"`
	OptionsMS  *int64  `json:"options_ms"` // how long the answer to OPTIONS took
	Error      *string `json:"error"`
}

func (a *API) checkTrunk(ctx context.Context, r *request, in *byID) (*trunkCheck, error) {
	t, err := a.DB.Trunk(ctx, r.UserID(), in.ID)
	if err != nil {
		return nil, err
	}
	health, err := a.Calls.CheckTrunk(ctx, t)
	out := &trunkCheck{Registered: health.Registered}
	if err != nil {
		reason := err.Error()
		out.Error = &reason
	} else {
		out.OptionsMS = &health.OptionsMS
	}
	return out, nil
}
