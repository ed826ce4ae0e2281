package api

import (
	"context"

	"parley"
	"parley/internal/form"
	"parley/internal/store"
)

func (a *API) toolRoutes() {
	const tag, missing = "Mid-call tools", "Tool not found"
	handle(a, op{Method: "GET", Path: "/user/tools", Name: "listTools", Tag: tag, Summary: "List mid-call tools"}, a.listTools)
	handle(a, op{Method: "POST", Path: "/user/tools", Name: "createTool", Tag: tag, Status: 201, Body: parley.Tool{}, Summary: "Make a mid-call tool"}, a.createTool)
	handle(a, op{Method: "GET", Path: "/user/tools/{id}", Name: "getTool", Tag: tag, NotFound: missing, Summary: "Read a mid-call tool"}, a.getTool)
	handle(a, op{Method: "PUT", Path: "/user/tools/{id}", Name: "updateTool", Tag: tag, NotFound: missing, Body: parley.Tool{}, Partial: true, Summary: "Change the fields that are sent"}, a.updateTool)
	handle(a, op{Method: "DELETE", Path: "/user/tools/{id}", Name: "deleteTool", Tag: tag, NotFound: missing, Summary: "Delete a tool and take it from its assistants"}, a.deleteTool)
}

func (a *API) listTools(ctx context.Context, r *request, _ *none) ([]parley.Tool, error) {
	return a.DB.Tools(ctx, r.UserID())
}

func (a *API) getTool(ctx context.Context, r *request, in *byID) (*parley.Tool, error) {
	return a.DB.Tool(ctx, r.UserID(), in.ID)
}

func (a *API) createTool(ctx context.Context, r *request, _ *none) (*messageData[*parley.Tool], error) {
	t := &parley.Tool{}
	form.Defaults(t)
	fields := form.Bind(r.Body, t, true)
	t.Check(&fields)
	if err := fields.Err(); err != nil {
		return nil, err
	}
	limit := a.Prices.Plan(r.Who.User.Plan).Tools
	err := a.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.LockUser(ctx, r.UserID()); err != nil {
			return err
		}
		n, err := tx.CountTools(ctx, r.UserID())
		if err != nil {
			return err
		}
		if n >= limit {
			return parley.Errorf(parley.Forbidden, "Your plan allows %d tools. Delete one or change the plan.", limit)
		}
		return tx.CreateTool(ctx, r.UserID(), t)
	})
	return &messageData[*parley.Tool]{"Tool created successfully", t}, err
}

func (a *API) updateTool(ctx context.Context, r *request, in *byID) (*messageData[*parley.Tool], error) {
	var t *parley.Tool
	err := a.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if t, err = tx.ToolForUpdate(ctx, r.UserID(), in.ID); err != nil {
			return err
		}
		fields := form.Bind(r.Body, t, false)
		t.Check(&fields)
		if err := fields.Err(); err != nil {
			return err
		}
		return tx.SaveTool(ctx, r.UserID(), t)
	})
	return &messageData[*parley.Tool]{"Tool updated successfully", t}, err
}

func (a *API) deleteTool(ctx context.Context, r *request, in *byID) (*message, error) {
	err := a.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteTool(ctx, r.UserID(), in.ID) })
	return &message{"Tool deleted successfully"}, err
}
