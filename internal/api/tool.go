package api

import (
	"context"
	"reflect"
	"slices"
	"time"

	"parley"
	"parley/internal/assistant"
	"parley/internal/form"
	"parley/internal/store"
	"parley/internal/tool"
)

func (a *API) toolRoutes() {
	const tag, missing = "Mid-call tools", "Tool not found"
	handle(a, op{Method: "GET", Path: "/user/tools", Name: "listTools", Tag: tag, Summary: "List mid-call tools"}, a.listTools)
	handle(a, op{Method: "POST", Path: "/user/tools", Name: "createTool", Tag: tag, Status: 201, Body: parley.Tool{}, Summary: "Make a mid-call tool"}, a.createTool)
	handle(a, op{Method: "GET", Path: "/user/tools/{id}", Name: "getTool", Tag: tag, NotFound: missing, Summary: "Read a mid-call tool"}, a.getTool)
	handle(a, op{Method: "PUT", Path: "/user/tools/{id}", Name: "updateTool", Tag: tag, NotFound: missing, Body: parley.Tool{}, Partial: true, Summary: "Change the fields that are sent"}, a.updateTool)
	handle(a, op{Method: "DELETE", Path: "/user/tools/{id}", Name: "deleteTool", Tag: tag, NotFound: missing, Summary: "Delete a tool and take it from its assistants"}, a.deleteTool)
	handle(a, op{Method: "POST", Path: "/user/tools/{id}/test", Name: "testTool", Tag: tag, NotFound: missing, Summary: "Call a tool as the assistant would"}, a.testTool)
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
	if len(fields) > 0 {
		return nil, a.withTaken(ctx, r.UserID(), t, fields)
	}
	err := a.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.CreateTool(ctx, r.UserID(), t) })
	return &messageData[*parley.Tool]{"Tool created successfully", t}, err
}

// withTaken is the error of a tool's failing fields, with the name among them where another tool has it: a tool that can be stored is told so
// by the database.
func (a *API) withTaken(ctx context.Context, userID int64, t *parley.Tool, fields parley.Fields) error {
	others, err := a.DB.Tools(ctx, userID)
	if err != nil {
		return err
	}
	taken := func(o parley.Tool) bool { return o.Name == t.Name && o.ID != t.ID }
	if !fields.Has("name") && slices.ContainsFunc(others, taken) {
		fields.AddText("name", "The name has already been taken.")
	}
	return fields.Err()
}

func (a *API) updateTool(ctx context.Context, r *request, in *byID) (*messageData[*parley.Tool], error) {
	var t *parley.Tool
	err := a.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if t, err = tx.ToolForUpdate(ctx, r.UserID(), in.ID); err != nil {
			return err
		}
		old := *t
		fields := form.Bind(r.Body, t, false)
		t.Check(&fields)
		if len(fields) > 0 {
			return a.withTaken(ctx, r.UserID(), t, fields)
		}
		if reflect.DeepEqual(old, *t) {
			return nil
		}
		return tx.SaveTool(ctx, r.UserID(), t)
	})
	return &messageData[*parley.Tool]{"Tool updated successfully", t}, err
}

func (a *API) deleteTool(ctx context.Context, r *request, in *byID) (*notice, error) {
	err := a.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteTool(ctx, r.UserID(), in.ID) })
	return &notice{"Tool deleted successfully"}, err
}

type toolTest struct {
	byID
	Body struct {
		Arguments map[string]any    `json:"arguments" doc:"What the AI would supply."`
		Variables map[string]string `json:"variables" maxProperties:"200" format:"variables" doc:"Values of {{variable}}. The built-in ones are there as in a conversation; customer_phone is what is sent here."`
		Assistant int64             `json:"assistant_id" format:"assistant" doc:"Whose variables there are too; when absent those of the first assistant that has the tool."`
	}
}

func (a *API) testTool(ctx context.Context, r *request, in *toolTest) (*tool.Result, error) {
	t, err := a.DB.Tool(ctx, r.UserID(), in.ID)
	if err != nil {
		return nil, err
	}
	s, err := a.tester(ctx, r, t.ID, in.Body.Assistant)
	if err != nil {
		return nil, err
	}
	o := assistant.Occasion{Variables: in.Body.Variables, Now: time.Now()}
	if s.PhoneNumberID != nil {
		n, err := a.DB.Number(ctx, r.UserID(), *s.PhoneNumberID)
		if err != nil {
			return nil, err
		}
		o.AssistantPhone = n.PhoneNumber
	}
	result := a.Tools.Run(ctx, t, in.Body.Arguments, tool.Owned(assistant.Variables(s, o)))
	return &result, nil
}

// tester is the assistant in whose place a tool is tried: the one that is named, else the first that has it, else nobody, in the account's time zone.
func (a *API) tester(ctx context.Context, r *request, toolID, id int64) (*parley.Assistant, error) {
	if named := r.Body["assistant_id"]; named != nil {
		return a.DB.Assistant(ctx, r.UserID(), id)
	}
	all, err := a.DB.Assistants(ctx, r.UserID(), "")
	if i := slices.IndexFunc(all, func(s parley.Assistant) bool { return slices.Contains(s.ToolIDs, toolID) }); i >= 0 {
		return &all[i], err
	}
	return &parley.Assistant{Timezone: r.Who.User.Timezone}, err
}
