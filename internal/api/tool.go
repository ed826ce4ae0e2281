package api

import (
	"context"
	"math"
	"strings"

	"parley/internal/assistant"
	"parley/internal/parley"
	"parley/internal/tool"
)

func (a *API) toolRoutes() {
	const tag, missing = "Mid-call tools", "Tool not found"
	handle(a, op{Method: "GET", Path: "/user/tools", Name: "listTools", Tag: tag, Summary: "List mid-call tools"},
		a.listTools)
	handle(a, op{Method: "POST", Path: "/user/tools", Name: "createTool", Tag: tag, Status: 201,
		Body: parley.Tool{}, Summary: "Create a mid-call tool"}, a.createTool)
	handle(a, op{Method: "GET", Path: "/user/tools/{id}", Name: "getTool", Tag: tag, NotFound: missing,
		Summary: "Read a mid-call tool"}, a.getTool)
	handle(a, op{Method: "PUT", Path: "/user/tools/{id}", Name: "updateTool", Tag: tag, NotFound: missing,
		Body: parley.Tool{}, Partial: true, Summary: "Update the fields that are sent"}, a.updateTool)
	handle(a, op{Method: "DELETE", Path: "/user/tools/{id}", Name: "deleteTool", Tag: tag, NotFound: missing,
		Summary: "Delete a tool and remove it from its assistants"}, a.deleteTool)
	handle(a, op{Method: "POST", Path: "/user/tools/{id}/test", Name: "testTool", Tag: tag, NotFound: missing,
		Summary: "Call a tool as the assistant would"}, a.testTool)
	handle(a, op{Method: "POST", Path: "/user/tools/{id}/refresh", Name: "refreshTool", Tag: tag, NotFound: missing,
		Summary: "List the tools of an MCP server again"}, a.refreshTool)
}

func (a *API) listTools(ctx context.Context, r *request, _ *none) ([]parley.Tool, error) {
	last := int64(math.MaxInt64)
	return nil, sendList(r.W, r.Request, func(n int) ([]parley.Tool, error) {
		list, err := a.DB.ToolsBefore(ctx, r.UserID(), last, n)
		if len(list) > 0 {
			last = list[len(list)-1].ID
		}
		for i := range list {
			list[i] = *tool.Shown(&list[i]).For(r.Who.Role())
		}
		return list, err
	})
}

func (a *API) getTool(ctx context.Context, r *request, in *byID) (*parley.Tool, error) {
	t, err := a.DB.Tool(ctx, r.UserID(), in.ID)
	if err != nil {
		return nil, err
	}
	return tool.Shown(t).For(r.Who.Role()), nil
}

func (a *API) createTool(ctx context.Context, r *request, _ *none) (*messageData[*parley.Tool], error) {
	t, err := a.Assistants.CreateTool(ctx, r.UserID(), r.Body, r.Who.Timezone())
	if err != nil {
		return nil, err
	}
	return toolAnswer("Tool created successfully", t), nil
}

func (a *API) updateTool(ctx context.Context, r *request, in *byID) (*messageData[*parley.Tool], error) {
	t, err := a.Assistants.ChangeTool(ctx, r.UserID(), in.ID, r.Who.Timezone(),
		func(parley.Tool) (map[string]any, error) { return r.Body, nil })
	if err != nil {
		return nil, err
	}
	return toolAnswer("Tool updated successfully", t), nil
}

// toolAnswer is a tool that was saved or listed. What keeps an MCP server from being listed is said with it.
func toolAnswer(message string, t *parley.Tool) *messageData[*parley.Tool] {
	if t.Listing != nil && t.Listing.Error != "" {
		message += "; its server could not be listed: " + strings.TrimSuffix(t.Listing.Error, ".")
	}
	return &messageData[*parley.Tool]{message, tool.Shown(t)}
}

func (a *API) deleteTool(ctx context.Context, r *request, in *byID) (*notice, error) {
	return &notice{"Tool deleted successfully"}, tool.Delete(ctx, a.DB, r.UserID(), in.ID)
}

type toolTest struct {
	byID
	Body struct {
		Arguments map[string]any    `json:"arguments" doc:"What the AI would supply."`
		Tool      string            `json:"tool" maxLength:"128" doc:"Of an MCP server: the name of the tool that is called."`
		Variables map[string]string `json:"variables" maxProperties:"200" format:"variables" doc:"Values of {{variable}}. The built-in ones are there as in a conversation; customer_phone is what is sent here."`
		Assistant int64             `json:"assistant_id" format:"assistant" doc:"Whose variables are used too; by default those of the first assistant that has the tool."`
	}
}

func (a *API) testTool(ctx context.Context, r *request, in *toolTest) (*tool.Result, error) {
	trial := assistant.Trial{Arguments: in.Body.Arguments, Tool: in.Body.Tool, Variables: in.Body.Variables, Timezone: r.Who.Timezone()}
	if r.Body["assistant_id"] != nil {
		trial.Assistant = &in.Body.Assistant
	}
	result, _, err := a.Assistants.Try(ctx, r.UserID(), in.ID, trial)
	if err != nil {
		return nil, err
	}
	return &result, nil
}

type toolList struct {
	byID
	Body struct {
		Variables map[string]string `json:"variables" maxProperties:"200" format:"variables" doc:"Values of {{variable}} in its headers."`
		Assistant int64             `json:"assistant_id" format:"assistant" doc:"Whose variables are used too; by default those of the first assistant that has the tool."`
	}
}

func (a *API) refreshTool(ctx context.Context, r *request, in *toolList) (*messageData[*parley.Tool], error) {
	trial := assistant.Trial{Variables: in.Body.Variables, Timezone: r.Who.Timezone()}
	if r.Body["assistant_id"] != nil {
		trial.Assistant = &in.Body.Assistant
	}
	t, err := a.Assistants.ListTool(ctx, r.UserID(), in.ID, trial)
	if err != nil {
		return nil, err
	}
	return toolAnswer("Tool listed", t), nil
}
