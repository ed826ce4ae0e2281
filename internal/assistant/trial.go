package assistant

import (
	"context"
	"slices"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/tool"
)

// Trial is a call of a tool by its owner's hand.
type Trial struct {
	Arguments map[string]any
	Variables map[string]string
	Assistant *int64 // whose variables there are too; nil: the first that has the tool
	Tool      string // of an MCP server: which of its tools
	Timezone  string // of who tries it, where no assistant has the tool
}

// Try calls a tool as an assistant would, once, as often as the account may.
func (s *Studio) Try(ctx context.Context, userID, toolID int64, in Trial) (tool.Result, *tool.Sent, error) {
	t, err := s.DB.Tool(ctx, userID, toolID)
	if err != nil {
		return tool.Result{}, nil, err
	}
	a, err := s.tester(ctx, userID, toolID, in)
	if err != nil {
		return tool.Result{}, nil, err
	}
	o := Occasion{Variables: in.Variables, Now: time.Now()}
	var listed *parley.ListedTool
	if t.Kind == parley.ToolClient {
		return tool.Result{}, nil, errInClient
	}
	if t.Kind == parley.ToolMCP {
		if listed, err = find(t, in.Tool); err != nil {
			return tool.Result{}, nil, err
		}
	}
	if err := s.meterTrial(ctx, userID); err != nil {
		return tool.Result{}, nil, err
	}
	if a.PhoneNumberID != nil {
		n, err := s.DB.Number(ctx, userID, *a.PhoneNumberID)
		if err != nil {
			return tool.Result{}, nil, err
		}
		o.AssistantPhone = n.PhoneNumber
	}
	if listed != nil {
		result := s.Tools.RunListed(ctx, t.Waited(), *listed, "", in.Arguments, tool.Owned(Variables(a, o)))
		return result, nil, nil
	}
	result, sent := s.Tools.Try(ctx, t.Waited(), in.Arguments, tool.Owned(Variables(a, o)))
	return result, sent, nil
}

// errInClient is why a tool of kind client can't be tried alone.
var errInClient = parley.Errorf(parley.Invalid,
	"The customer's page runs this tool: try it on your page, in the widget or in a call of web-call.js. The console has no such page.")

// meterTrial counts a trial, of which an account has so many.
func (s *Studio) meterTrial(ctx context.Context, userID int64) error {
	return s.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Meter(ctx, userID, parley.Now(), parley.LimitToolTestRate, parley.LimitToolTests)
	})
}

// find is a tool of an MCP server that can be called.
func find(t *parley.Tool, name string) (*parley.ListedTool, error) {
	for _, l := range tool.Offered(t) {
		if l.Name == name && len(l.Schema) > 0 {
			return &l, nil
		}
	}
	why := "The tool field must be one of the server's tools, as they were listed."
	if name == "" {
		why = "The tool field is required: it says which of the server's tools is called."
	}
	return nil, parley.Fields{{Name: "tool", Messages: []string{why}}}.Err()
}

// tester is the assistant in whose place a tool is tried; nobody, in the account's time zone, where none has it.
func (s *Studio) tester(ctx context.Context, userID, toolID int64, in Trial) (*parley.Assistant, error) {
	if in.Assistant != nil {
		return s.DB.Assistant(ctx, userID, *in.Assistant)
	}
	all, err := s.DB.Assistants(ctx, userID, "")
	if i := slices.IndexFunc(all, func(a parley.Assistant) bool { return slices.Contains(a.ToolIDs, toolID) }); i >= 0 {
		return &all[i], err
	}
	return &parley.Assistant{Timezone: in.Timezone}, err
}
