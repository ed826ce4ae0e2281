package api

import (
	"context"

	"parley/internal/number"
	"parley/internal/parley"
	"parley/internal/store"
)

const numberMissing = "Phone number not found"

func (a *API) numberRoutes() {
	const tag, base = "Phone numbers", "/user/phone-numbers"
	handle(a, op{Method: "GET", Path: base + "/search", Name: "searchNumbers", Tag: tag, Family: bare,
		Failure: "Failed to search phone numbers", Summary: "Search for numbers to rent"}, a.searchNumbers)
	handle(a, op{Method: "POST", Path: base + "/purchase", Name: "purchaseNumber", Tag: tag, Status: 201,
		Family: bare, Idempotent: true, Failure: "Failed to purchase the phone number",
		Summary: "Rent a number; the first month is charged"}, a.purchaseNumber)
	handle(a, op{Method: "GET", Path: base + "/all", Name: "listNumbers", Tag: tag, Family: bare,
		Summary: "All your numbers"}, a.listNumbers)
	handle(a, op{Method: "GET", Path: base, Name: "listSMSNumbers", Tag: tag, Family: bare,
		Summary: "Your numbers that can send SMS now"}, a.listSMSNumbers)
	handle(a, op{Method: "PUT", Path: base + "/{id}", Name: "updateNumber", Tag: tag, Family: bare,
		NotFound: numberMissing, Summary: "Change a number's nickname"}, a.updateNumber)
	handle(a, op{Method: "DELETE", Path: base + "/{id}", Name: "deleteNumber", Tag: tag, Family: bare,
		NotFound: numberMissing, Summary: "Release a number: a rented one when its paid month ends, others at once"}, a.deleteNumber)
	handle(a, op{Method: "GET", Path: base + "/routes/{id}", Name: "getNumberRoute", Tag: tag, NotFound: numberMissing,
		Summary: "Read a number's route: its hours, who takes calls outside them, which callers are rejected"}, a.getRoute)
	handle(a, op{Method: "PUT", Path: base + "/routes/{id}", Name: "setNumberRoute", Tag: tag, NotFound: numberMissing,
		Summary: "Set a number's route: its hours, who takes calls outside them, which callers are rejected"}, a.setRoute)
	handle(a, op{Method: "DELETE", Path: base + "/routes/{id}", Name: "deleteNumberRoute", Tag: tag,
		NotFound: numberMissing, Summary: "Delete a number's route: its assistant takes every call again"}, a.deleteRoute)
	handle(a, op{Method: "POST", Path: base + "/caller-ids", Name: "askCallerID", Tag: tag, Status: 201,
		Family: bare, Idempotent: true, Failure: "Failed to send the code",
		Summary: "Send a verification code to a number, to use it as a caller ID"}, a.askCallerID)
	handle(a, op{Method: "POST", Path: base + "/caller-ids/{id}/verify", Name: "verifyCallerID", Tag: tag,
		Family: bare, NotFound: "Caller ID not found", Summary: "Verify the code: the number becomes a caller ID"},
		a.verifyCallerID)
}

type numberSearch struct {
	CountryCode string `query:"country_code" enum:"US,CA,GB,AU,IL,PL,FI,NL,DK,IT" doc:"ISO 3166-1 alpha-2 (US)."`
	Contains    string `query:"contains" maxLength:"10" pattern:"^[0-9]*$" must:"contain only digits" doc:"Digits that the number contains, ten at most."`
}

type listOf[T any] struct {
	Data []T `json:"data"`
}

func (a *API) searchNumbers(ctx context.Context, r *request, in *numberSearch) (*listOf[number.Offer], error) {
	country := in.CountryCode
	if country == "" {
		country = "US"
	}
	list, err := a.Numbers.Search(ctx, r.UserID(), country, in.Contains)
	return &listOf[number.Offer]{list}, err
}

// ownedNumber is a number of the user's as lists show it.
type ownedNumber struct {
	parley.Number
	TypeLabel             string      `json:"type_label"`
	HasActiveSubscription bool        `json:"has_active_subscription"`
	AssistantID           *int64      `json:"assistant_id"` // the inbound assistant that answers it
	AssistantName         *string     `json:"assistant_name"`
	AssistantStatus       *string     `json:"assistant_status" doc:"active, or inactive: then calls to the number are turned away (480) until the assistant is activated. null where no assistant has the number."`
	PaidUntil             parley.Time `json:"paid_until"`
	ReleasedAt            parley.Time `json:"released_at"`
}

func (a *API) owned(n parley.Number, answered map[int64]store.Answerer) ownedNumber {
	out := ownedNumber{Number: n, TypeLabel: n.Type.Label(), HasActiveSubscription: n.Subscribed(parley.Now()),
		PaidUntil: n.PaidUntil, ReleasedAt: n.ReleasedAt}
	if by, ok := answered[n.ID]; ok {
		out.AssistantID, out.AssistantName, out.AssistantStatus = &by.ID, &by.Name, &by.Status
	}
	return out
}

func (a *API) numbers(ctx context.Context, userID int64, want func(*parley.Number) bool) ([]ownedNumber, error) {
	list, err := a.DB.Numbers(ctx, userID)
	if err != nil {
		return nil, err
	}
	answered, err := a.DB.Answerers(ctx, userID)
	out := []ownedNumber{}
	for _, n := range list {
		if want(&n) {
			out = append(out, a.owned(n, answered))
		}
	}
	return out, err
}

func (a *API) listNumbers(ctx context.Context, r *request, _ *none) (*listOf[ownedNumber], error) {
	list, err := a.numbers(ctx, r.UserID(), func(*parley.Number) bool { return true })
	return &listOf[ownedNumber]{list}, err
}

func (a *API) listSMSNumbers(ctx context.Context, r *request, _ *none) ([]ownedNumber, error) {
	now := parley.Now()
	return a.numbers(ctx, r.UserID(), func(n *parley.Number) bool { return n.SMSCapable && n.Subscribed(now) })
}

type numberPurchase struct {
	Body struct {
		PhoneNumber string `json:"phone_number" required:"true" maxLength:"32" reads:"phone" doc:"E.164: a number that the search found, or any other that is for rent."`
	}
}

func (a *API) purchaseNumber(ctx context.Context, r *request, in *numberPurchase) (*messageData[*ownedNumber], error) {
	n, err := a.Numbers.Buy(ctx, r.UserID(), in.Body.PhoneNumber)
	if err != nil {
		return nil, err
	}
	out := a.owned(*n, nil)
	return &messageData[*ownedNumber]{"Phone number purchased successfully", &out}, nil
}

type numberChange struct {
	byID
	Body struct {
		Nickname *string `json:"nickname" maxLength:"50"`
	}
}

func (a *API) updateNumber(ctx context.Context, r *request, in *numberChange) (*messageData[*ownedNumber], error) {
	n, err := a.DB.Number(ctx, r.UserID(), in.ID)
	if _, sent := r.Body["nickname"]; sent && err == nil {
		n, err = a.Numbers.Rename(ctx, r.UserID(), in.ID, in.Body.Nickname)
	}
	if err != nil {
		return nil, err
	}
	answered, err := a.DB.Answerers(ctx, r.UserID())
	out := a.owned(*n, answered)
	return &messageData[*ownedNumber]{"Phone number updated successfully", &out}, err
}

func (a *API) deleteNumber(ctx context.Context, r *request, in *byID) (*notice, error) {
	return &notice{"Phone number deleted successfully"}, a.Numbers.Give(ctx, r.UserID(), in.ID)
}

type numberRouteData struct {
	Data *parley.NumberRoute `json:"data" doc:"null: its assistant takes every call."`
}

func (a *API) getRoute(ctx context.Context, r *request, in *byID) (*numberRouteData, error) {
	n, err := a.DB.Number(ctx, r.UserID(), in.ID)
	if err != nil {
		return nil, err
	}
	return &numberRouteData{n.Route}, nil
}

type numberRoute struct {
	byID
	Body parley.NumberRoute
}

func (a *API) setRoute(ctx context.Context, r *request, in *numberRoute) (*messageData[*parley.NumberRoute], error) {
	err := a.Numbers.SetRoute(ctx, r.UserID(), in.ID, &in.Body)
	return &messageData[*parley.NumberRoute]{"Number route updated successfully", &in.Body}, err
}

func (a *API) deleteRoute(ctx context.Context, r *request, in *byID) (*notice, error) {
	return &notice{"Number route deleted successfully"}, a.Numbers.SetRoute(ctx, r.UserID(), in.ID, nil)
}

type callerIDRequest struct {
	Body struct {
		PhoneNumber string `json:"phone_number" required:"true" maxLength:"32" reads:"phone" doc:"In international format, or as it is dialled in your country."`
	}
}

func (a *API) askCallerID(ctx context.Context, r *request, in *callerIDRequest) (*messageData[*parley.CallerID],
	error) {
	c, err := a.Numbers.AskCallerID(ctx, r.UserID(), in.Body.PhoneNumber)
	return &messageData[*parley.CallerID]{"Verification code sent successfully", c}, err
}

type callerIDCode struct {
	byID
	Body struct {
		Code string `json:"code" required:"true" maxLength:"16" doc:"The six digits."`
	}
}

func (a *API) verifyCallerID(ctx context.Context, r *request, in *callerIDCode) (*messageData[*ownedNumber], error) {
	n, err := a.Numbers.VerifyCallerID(ctx, r.UserID(), in.ID, in.Body.Code)
	if err != nil {
		return nil, err
	}
	out := a.owned(*n, nil)
	return &messageData[*ownedNumber]{"Caller ID verified successfully", &out}, nil
}
