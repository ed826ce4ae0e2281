package api

import (
	"context"

	"parley/internal/alert"
	"parley/internal/parley"
)

func (a *API) alertRoutes() {
	const tag, missing = "Alerts", "Alert not found"
	handle(a, op{Method: "GET", Path: "/user/alerts", Name: "listAlerts", Tag: tag,
		Summary: "All alerts with their state, newest first"}, a.listAlerts)
	handle(a, op{Method: "POST", Path: "/user/alerts", Name: "createAlert", Tag: tag, Status: 201, Body: parley.Alert{},
		Idempotent: true, Summary: "Create an alert"}, a.createAlert)
	handle(a, op{Method: "GET", Path: "/user/alerts/{id}", Name: "getAlert", Tag: tag, NotFound: missing,
		Summary: "Read an alert"}, a.getAlert)
	handle(a, op{Method: "PUT", Path: "/user/alerts/{id}", Name: "updateAlert", Tag: tag, NotFound: missing,
		Body: parley.Alert{}, Partial: true, Summary: "Update the fields that are sent"}, a.updateAlert)
	handle(a, op{Method: "DELETE", Path: "/user/alerts/{id}", Name: "deleteAlert", Tag: tag, NotFound: missing,
		Summary: "Delete an alert"}, a.deleteAlert)
	handle(a, op{Method: "POST", Path: "/user/alerts/{id}/test", Name: "testAlert", Tag: tag, NotFound: missing,
		Summary: "Send a test of the alert's notifications, marked as a test"}, a.testAlert)
}

func (a *API) listAlerts(ctx context.Context, r *request, _ *none) ([]parley.Alert, error) {
	return a.DB.Alerts(ctx, r.UserID())
}

func (a *API) createAlert(ctx context.Context, r *request, _ *none) (*messageData[*parley.Alert], error) {
	made, err := alert.Create(ctx, a.DB, r.UserID(), r.Body)
	return &messageData[*parley.Alert]{"Alert created successfully", made}, err
}

func (a *API) getAlert(ctx context.Context, r *request, in *byID) (*parley.Alert, error) {
	return a.DB.Alert(ctx, r.UserID(), in.ID)
}

func (a *API) updateAlert(ctx context.Context, r *request, in *byID) (*messageData[*parley.Alert], error) {
	changed, err := alert.Change(ctx, a.DB, r.UserID(), in.ID, r.Body)
	return &messageData[*parley.Alert]{"Alert updated successfully", changed}, err
}

func (a *API) deleteAlert(ctx context.Context, r *request, in *byID) (*notice, error) {
	return &notice{"Alert deleted successfully"}, alert.Delete(ctx, a.DB, r.UserID(), in.ID)
}

func (a *API) testAlert(ctx context.Context, r *request, in *byID) (*messageData[*alert.Told], error) {
	told, err := a.Alerts.Test(ctx, r.UserID(), in.ID)
	return &messageData[*alert.Told]{"Test alert is being sent", told}, err
}
