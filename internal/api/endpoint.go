package api

import (
	"context"

	"parley/internal/endpoint"
	"parley/internal/parley"
)

func (a *API) endpointRoutes() {
	const tag, missing = "Endpoints", "Endpoint not found"
	handle(a, op{Method: "GET", Path: "/user/endpoints", Name: "listEndpoints", Tag: tag,
		Summary: "Endpoints of the account's own, newest first"},
		a.listEndpoints)
	handle(a, op{Method: "POST", Path: "/user/endpoints", Name: "createEndpoint", Tag: tag, Status: 201, Body: parley.Endpoint{},
		Summary: "Save a server of your own that thinks, speaks, listens or answers"}, a.createEndpoint)
	handle(a, op{Method: "GET", Path: "/user/endpoints/{id}", Name: "getEndpoint", Tag: tag, NotFound: missing, Summary: "Read an endpoint"},
		a.getEndpoint)
	handle(a, op{Method: "PUT", Path: "/user/endpoints/{id}", Name: "updateEndpoint", Tag: tag, NotFound: missing, Body: parley.Endpoint{},
		Partial: true, Summary: "Update the fields that are sent"}, a.updateEndpoint)
	handle(a, op{Method: "DELETE", Path: "/user/endpoints/{id}", Name: "deleteEndpoint", Tag: tag, NotFound: missing,
		Summary: "Delete an endpoint and remove it from its assistants"}, a.deleteEndpoint)
	handle(a, op{Method: "POST", Path: "/user/endpoints/{id}/test", Name: "testEndpoint", Tag: tag, NotFound: missing,
		Summary: "Measure an endpoint, and say what it lacks"}, a.testEndpoint)
}

func (a *API) listEndpoints(ctx context.Context, r *request, in *pageQuery) (*Paginated[parley.Endpoint], error) {
	p := in.page(15)
	list, total, err := a.DB.EndpointPage(ctx, r.UserID(), p)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i] = *list[i].Shown()
	}
	e := envelope(a, r.Request, list, total, p)
	return &e, nil
}

func (a *API) getEndpoint(ctx context.Context, r *request, in *byID) (*parley.Endpoint, error) {
	e, err := a.DB.Endpoint(ctx, r.UserID(), in.ID)
	if err != nil {
		return nil, err
	}
	return e.Shown(), nil
}

func (a *API) createEndpoint(ctx context.Context, r *request, _ *none) (*messageData[*parley.Endpoint], error) {
	e, err := a.Endpoints.Create(ctx, r.UserID(), r.Body)
	if err != nil {
		return nil, err
	}
	return &messageData[*parley.Endpoint]{"Endpoint created successfully", e.Shown()}, nil
}

func (a *API) updateEndpoint(ctx context.Context, r *request, in *byID) (*messageData[*parley.Endpoint], error) {
	e, err := a.Endpoints.Change(ctx, r.UserID(), in.ID, r.Body)
	if err != nil {
		return nil, err
	}
	return &messageData[*parley.Endpoint]{"Endpoint updated successfully", e.Shown()}, nil
}

func (a *API) deleteEndpoint(ctx context.Context, r *request, in *byID) (*notice, error) {
	return &notice{"Endpoint deleted successfully"}, a.Endpoints.Delete(ctx, r.UserID(), in.ID)
}

func (a *API) testEndpoint(ctx context.Context, r *request, in *byID) (*endpoint.Measured, error) {
	return a.Endpoints.Test(ctx, r.UserID(), in.ID)
}
