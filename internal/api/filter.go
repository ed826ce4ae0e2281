package api

import (
	"context"

	"parley/internal/filter"
	"parley/internal/parley"
)

func (a *API) filterRoutes() {
	const tag, missing, one = "Saved filters", "Filter not found", "/user/filters/{id}"
	handle(a, op{Method: "GET", Path: "/user/filters", Name: "listFilters", Tag: tag, Summary: "List saved filters"},
		func(ctx context.Context, r *request, _ *none) (*data[[]parley.SavedFilter], error) {
			list, err := a.DB.SavedFilters(ctx, r.UserID(), "")
			return &data[[]parley.SavedFilter]{list}, err
		})
	handle(a, op{Method: "POST", Path: "/user/filters", Name: "createFilter", Tag: tag, Status: 201, Body: parley.SavedFilter{},
		Summary: "Save a filter of calls or analytics under a name"},
		func(ctx context.Context, r *request, _ *none) (*messageData[*parley.SavedFilter], error) {
			f, err := filter.Save(ctx, a.DB, r.UserID(), r.Body)
			return &messageData[*parley.SavedFilter]{"Filter created successfully", f}, err
		})
	handle(a, op{Method: "GET", Path: one, Name: "getFilter", Tag: tag, NotFound: missing, Summary: "Read a saved filter"},
		func(ctx context.Context, r *request, in *byID) (*data[*parley.SavedFilter], error) {
			f, err := a.DB.SavedFilter(ctx, r.UserID(), in.ID)
			return &data[*parley.SavedFilter]{f}, err
		})
	handle(a, op{Method: "PUT", Path: one, Name: "updateFilter", Tag: tag, NotFound: missing, Body: parley.SavedFilter{}, Partial: true,
		Summary: "Update the fields that are sent"},
		func(ctx context.Context, r *request, in *byID) (*messageData[*parley.SavedFilter], error) {
			f, err := filter.Change(ctx, a.DB, r.UserID(), in.ID, r.Body)
			return &messageData[*parley.SavedFilter]{"Filter updated successfully", f}, err
		})
	handle(a, op{Method: "DELETE", Path: one, Name: "deleteFilter", Tag: tag, NotFound: missing, Summary: "Delete a saved filter"},
		func(ctx context.Context, r *request, in *byID) (*notice, error) {
			return &notice{"Filter deleted successfully"}, filter.Delete(ctx, a.DB, r.UserID(), in.ID)
		})
}
