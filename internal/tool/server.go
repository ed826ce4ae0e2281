package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/internal/mcp"
	"parley/internal/parley"
	"parley/internal/schema"
)

// What a model gets of one MCP server, and what is kept of its list.
const (
	maxGiven      = 64
	maxGivenBytes = 64 << 10 // bytes of names, descriptions and schemas
	maxListed     = 256 << 10
	noDescription = "A tool of the server %s."
)

// Why a model doesn't get a tool.
const (
	notAllowed = "It is not among the allowed tools."
	tooMany    = "A model gets at most 64 tools of a server, and 64 KB of their descriptions and schemas: allow only those that it needs."
)

// server is the MCP server of a tool with its headers.
func server(t *parley.Tool, vars Variables) (mcp.Server, error) {
	h := http.Header{}
	err := setHeaders(h, t.Headers, vars.Owner)
	var oauth mcp.OAuth
	if o := t.OAuth; o != nil {
		oauth = mcp.OAuth{ClientID: o.ClientID, Secret: o.Secret, TokenURL: o.TokenURL, Scope: o.Scope}
	}
	return mcp.Server{URL: t.Endpoint, Headers: h, OAuth: oauth}, err
}

// List asks an MCP server for its tools. Where it doesn't tell them, those of before stay, and the listing says why.
func (r *Runner) List(ctx context.Context, t *parley.Tool, vars Variables) *parley.ToolListing {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(t.Timeout)*time.Second)
	defer cancel()
	now := parley.Now()
	srv, err := server(t, vars)
	var found []mcp.Tool
	l := &parley.ToolListing{Tools: []parley.ListedTool{}, ListedAt: now, TriedAt: now}
	if err == nil {
		found, l.More, err = r.servers.List(ctx, srv)
	}
	if err != nil {
		if old := t.Listing; old != nil {
			l.Tools, l.More, l.ListedAt = old.Tools, old.More, old.ListedAt
		} else {
			l.ListedAt = 0
		}
		l.Error = sentence(t, err) + "."
		return l
	}
	size := 0
	for _, f := range found {
		listed := listedTool(f)
		if size += weight(listed); size > maxListed {
			l.More = true
			break
		}
		if !slices.ContainsFunc(l.Tools, func(o parley.ListedTool) bool { return o.Name == f.Name }) {
			l.Tools = append(l.Tools, listed)
		}
	}
	return l
}

func weight(t parley.ListedTool) int {
	return len(t.Name) + len(t.Title) + len(t.Description) + len(t.Schema) + len(t.Note)
}

func listedTool(f mcp.Tool) parley.ListedTool {
	t := parley.ListedTool{Name: parley.CleanText(f.Name), Title: parley.CleanText(f.Title), Description: parley.CleanText(f.Description),
		Annotations: f.Annotations, ReadOnly: f.ReadOnly, Destructive: f.Destructive}
	own := plainSchema(f.Schema)
	if err := schema.Check(own); err != nil {
		t.Note = "The schema of its arguments " + err.Error() + "."
	} else {
		t.Schema = own
	}
	return t
}

// plainSchema is a schema without what no model takes at its top level: the server checks that itself.
func plainSchema(raw json.RawMessage) []byte {
	root := map[string]any{}
	if json.Unmarshal(raw, &root) != nil || root == nil {
		root = map[string]any{}
	}
	for _, key := range []string{"$id", "anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else"} {
		delete(root, key)
	}
	if root["type"] == nil {
		root["type"] = "object"
	}
	if root["properties"] == nil {
		root["properties"] = map[string]any{}
	}
	return []byte(encode(root))
}

// sentence says why a server didn't answer, without a full stop.
func sentence(t *parley.Tool, err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no whole answer came within %d s", t.Timeout)
	}
	return err.Error()
}

// Offered are the tools of an MCP server as they were listed, with whether a model gets them, and why not.
func Offered(t *parley.Tool) []parley.ListedTool {
	if t.Listing == nil {
		return nil
	}
	list := slices.Clone(t.Listing.Tools)
	given, size := 0, 0
	for i := range list {
		l := &list[i]
		switch w := weight(*l); {
		case len(t.Allowed) > 0 && !slices.Contains(t.Allowed, l.Name):
			l.Note = notAllowed
		case l.Note != "":
		case given == maxGiven || size+w > maxGivenBytes:
			l.Note = tooMany
		default:
			l.Given = true
			given++
			size += w
		}
	}
	return list
}

// Description is what a model is told of a listed tool.
func Description(t *parley.Tool, l parley.ListedTool) string {
	return cmp.Or(l.Description, l.Title, fmt.Sprintf(noDescription, t.Name))
}

// RunListed calls one of an MCP server's tools as Run calls a tool. Calls of the same conversation share a session with
// the server; with "" each has its own.
func (r *Runner) RunListed(ctx context.Context, t *parley.Tool, l parley.ListedTool, conversation string, args map[string]any,
	vars Variables) Result {
	start := time.Now()
	result := r.callListed(ctx, t, l, conversation, args, vars)
	result.DurationMS = time.Since(start).Milliseconds()
	return result
}

func (r *Runner) callListed(ctx context.Context, t *parley.Tool, l parley.ListedTool, conversation string, args map[string]any,
	vars Variables) Result {
	if args == nil {
		args = map[string]any{}
	}
	if err := schema.Fit(l.Schema, args); err != nil {
		return Result{Error: "The tool was not called: " + err.Error() + ".", Misfit: true}
	}
	for name, v := range args {
		args[name] = clean(v)
	}
	srv, err := server(t, vars)
	if err != nil {
		return Result{Error: "The tool was not called: " + err.Error() + "."}
	}
	own, cancel := context.WithTimeout(ctx, time.Duration(t.Timeout)*time.Second)
	defer cancel()
	got, err := r.servers.Call(own, conversation, srv, l.Name, args)
	switch {
	case err != nil && ctx.Err() != nil:
		return Result{Error: "The tool failed: the call was broken off."}
	case err != nil:
		return Result{Error: "The tool failed: " + sentence(t, err) + "."}
	case got.Failed:
		return Result{Error: failed(parley.CleanText(got.Text))}
	}
	result := Result{Status: http.StatusOK}
	whole := parley.CleanText(got.Text)
	result.Body = cut(whole, MaxAnswer)
	if result.Truncated = len(result.Body) < len(whole); result.Truncated {
		if short, ok := excerptJSON(strings.NewReader(whole), excerptSize); ok {
			result.told, result.note = short, shortNote
		}
	}
	return result
}

// failed is what a model is told that a tool says of its failure.
func failed(text string) string {
	const start = "The tool failed: "
	switch {
	case strings.TrimSpace(text) == "":
		return "The tool failed and doesn't say why."
	case len(start)+len(text) > MaxAnswer:
		return "The tool failed; only the beginning of what it says follows.\n\n" + text
	}
	return start + text
}
