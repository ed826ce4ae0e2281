package api

import (
	"context"

	"parley/internal/form"
	"parley/internal/number"
	"parley/internal/parley"
	"parley/internal/preset"
)

func (a *API) trunkRoutes() {
	const tag, base, missing = "SIP trunks", "/user/phone-numbers/sip-trunks", "SIP trunk not found"
	handle(a, op{Method: "GET", Path: base, Name: "listTrunks", Tag: tag, Family: bare, Summary: "List SIP trunks"},
		a.listTrunks)
	handle(a, op{Method: "POST", Path: base, Name: "createTrunk", Tag: tag, Family: bare, Status: 201,
		Body: parley.TrunkInput{}, Summary: "Create a SIP trunk; its number becomes one of yours"}, a.createTrunk)
	handle(a, op{Method: "GET", Path: base + "/presets", Name: "listTrunkPresets", Tag: tag, Family: bare,
		Summary: "List the carriers and telephone systems that are known, with their settings and guides"}, a.listPresets)
	handle(a, op{Method: "GET", Path: base + "/{id}", Name: "getTrunk", Tag: tag, Family: bare, NotFound: missing,
		Summary: "Read a SIP trunk"}, a.getTrunk)
	handle(a, op{Method: "PUT", Path: base + "/{id}", Name: "updateTrunk", Tag: tag, Family: bare,
		NotFound: missing, Body: parley.TrunkInput{}, Partial: true, Summary: "Update the fields that are sent"},
		a.updateTrunk)
	handle(a, op{Method: "DELETE", Path: base + "/{id}", Name: "deleteTrunk", Tag: tag, Family: bare,
		NotFound: missing, Summary: "Delete a SIP trunk and its number"}, a.deleteTrunk)
	handle(a, op{Method: "POST", Path: base + "/{id}/check", Name: "checkTrunk", Tag: tag, Family: bare,
		NotFound: missing, Summary: "Check whether the trunk answers, and what its answer tells"}, a.checkTrunk)
	handle(a, op{Method: "GET", Path: base + "/{id}/refusals", Name: "listTrunkRefusals", Tag: tag, Family: bare,
		NotFound: missing, Summary: "List the trunk's calls that were refused of late, with the reason and the INVITE"}, a.listRefusals)
	handle(a, op{Method: "POST", Path: base + "/{id}/test-call", Name: "tryTrunk", Tag: tag, Family: bare,
		NotFound: missing, Summary: "Place a test call over the trunk, and report how it went"}, a.tryTrunk)
}

func (a *API) listTrunks(ctx context.Context, r *request, _ *none) (*listOf[parley.Trunk], error) {
	list, err := a.DB.Trunks(ctx, r.UserID())
	for i := range list {
		a.Calls.Registered(&list[i])
		list[i] = *list[i].For(r.Who.Role())
	}
	return &listOf[parley.Trunk]{list}, err
}

func (a *API) listPresets(context.Context, *request, *none) (*listOf[preset.Preset], error) {
	return &listOf[preset.Preset]{preset.All()}, nil
}

func (a *API) getTrunk(ctx context.Context, r *request, in *byID) (*data[*parley.Trunk], error) {
	t, err := a.DB.Trunk(ctx, r.UserID(), in.ID)
	if err != nil {
		return nil, err
	}
	a.Calls.Registered(t)
	return &data[*parley.Trunk]{t.For(r.Who.Role())}, nil
}

func (a *API) createTrunk(ctx context.Context, r *request, _ *none) (*keptTrunk, error) {
	t := &parley.TrunkInput{}
	form.Defaults(t)
	if err := a.Numbers.CreateTrunk(ctx, r.UserID(), t, a.lay(r, true)); err != nil {
		return nil, err
	}
	return a.keptTrunk(ctx, "SIP trunk created successfully", &t.Trunk)
}

// keptTrunk is a trunk as it was stored, with what its owner should know of it.
type keptTrunk struct {
	Message  string        `json:"message"`
	Data     *parley.Trunk `json:"data" required:"true"`
	Warnings []string      `json:"warnings,omitempty" doc:"What to know of it: another account takes calls from the same addresses, or its number has to be proved. Absent without warnings."`
}

func (a *API) keptTrunk(ctx context.Context, message string, t *parley.Trunk) (*keptTrunk, error) {
	a.Calls.Registered(t)
	warnings, err := a.Numbers.Warn(ctx, t)
	return &keptTrunk{message, t, warnings}, err
}

func (a *API) updateTrunk(ctx context.Context, r *request, in *byID) (*keptTrunk, error) {
	t, err := a.Numbers.ChangeTrunk(ctx, r.UserID(), in.ID, a.lay(r, false))
	if err != nil {
		return nil, err
	}
	return a.keptTrunk(ctx, "SIP trunk updated successfully", t)
}

// lay lays a request's body over a trunk, with what the preset that it names fills in.
func (a *API) lay(r *request, whole bool) number.Lay {
	return func(t *parley.TrunkInput) (parley.Fields, bool) {
		_, sent := r.Body["sip_password"]
		return form.Bind(preset.Fill(r.Body, &t.Trunk), t, whole), sent
	}
}

func (a *API) deleteTrunk(ctx context.Context, r *request, in *byID) (*notice, error) {
	return &notice{"SIP trunk deleted successfully"}, a.Numbers.DeleteTrunk(ctx, r.UserID(), in.ID)
}

type trunkCheck struct {
	Registered bool    `json:"registered"`
	OptionsMS  *int64  `json:"options_ms"` // how long the answer to OPTIONS took
	Error      *string `json:"error"`
	// of a trunk that has answered
	Findings []parley.TrunkFinding `json:"findings,omitempty" doc:"With findings=true: what the check found about DNS, TLS, registration, NAT and codecs."`
}

type checkQuery struct {
	ID       int64 `path:"id"`
	Findings bool  `query:"findings" doc:"Also return what else the check found."`
}

func (a *API) checkTrunk(ctx context.Context, r *request, in *checkQuery) (*trunkCheck, error) {
	t, err := a.DB.Trunk(ctx, r.UserID(), in.ID)
	if err != nil {
		return nil, err
	}
	health, wrong, err := a.Calls.CheckTrunk(ctx, t)
	if err != nil {
		return nil, err
	}
	out := &trunkCheck{Registered: health.Registered}
	if in.Findings {
		out.Findings = health.Findings
	}
	if wrong != nil {
		reason := wrong.Error()
		out.Error = &reason
	} else if health.OptionsMS > 0 {
		out.OptionsMS = &health.OptionsMS
	}
	return out, nil
}

func (a *API) listRefusals(ctx context.Context, r *request, in *byID) (*listOf[parley.TrunkRefusal], error) {
	list, err := a.DB.TrunkRefusals(ctx, r.UserID(), in.ID)
	return &listOf[parley.TrunkRefusal]{list}, err
}

type trial struct {
	ID   int64 `path:"id"`
	Body struct {
		PhoneNumber string `json:"phone_number" required:"true" maxLength:"200" reads:"transfer" doc:"Whom to ring: a number in international format (E.164), or as it is dialled in your country; an extension of 2 to 6 digits of the telephone system behind the trunk; or a sip: address there."`
	}
}

func (a *API) tryTrunk(ctx context.Context, r *request, in *trial) (*parley.TestCall, error) {
	if _, _, ok := parley.TransferTarget(in.Body.PhoneNumber); !ok {
		return nil, parley.Fields{
			{Name: "phone_number",
				Messages: []string{"The phone number field must be a number in international format, an extension or a sip: address."}}}.Err()
	}
	return a.Calls.Try(ctx, r.UserID(), in.ID, in.Body.PhoneNumber)
}
