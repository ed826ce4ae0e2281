package assistant

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/parley"
	"parley/internal/stage"
	"parley/internal/store"
	"parley/internal/tool"
)

const (
	// How old a list of a server's tools may be when a conversation begins; one that failed is tried again sooner.
	listedFor, failedFor = 5 * time.Minute, 30 * time.Second
	maxTools             = 128 // of all servers of an assistant
	maxName              = 64
)

// CreateTool makes a tool. The tools of an MCP server are listed, if it answers; its listing says if it doesn't.
func (d *Studio) CreateTool(ctx context.Context, userID int64, body map[string]any, zone string) (*parley.Tool, error) {
	t, err := tool.Create(ctx, d.DB, userID, body)
	if err != nil || t.Kind != parley.ToolMCP {
		return t, err
	}
	return t, d.listAs(ctx, t, Trial{Timezone: zone})
}

// ChangeTool is tool.Change; an MCP server that changed is listed anew.
func (d *Studio) ChangeTool(ctx context.Context, userID, id int64, zone string,
	body func(now parley.Tool) (map[string]any, error)) (*parley.Tool, error) {
	t, err := tool.Change(ctx, d.DB, userID, id, body)
	if err != nil || t.Kind != parley.ToolMCP || t.Listing != nil && t.Listing.TriedAt > t.UpdatedAt {
		return t, err
	}
	return t, d.listAs(ctx, t, Trial{Timezone: zone})
}

// ListTool lists the tools of an MCP server anew, as often as the account may.
func (d *Studio) ListTool(ctx context.Context, userID, id int64, in Trial) (*parley.Tool, error) {
	t, err := d.DB.Tool(ctx, userID, id)
	if err != nil {
		return nil, err
	}
	if t.Kind != parley.ToolMCP {
		return nil, parley.Fields{{Name: "kind", Messages: []string{"Only a tool of kind mcp has tools to list."}}}.Err()
	}
	if err := d.meterTrial(ctx, userID); err != nil {
		return nil, err
	}
	return t, d.listAs(ctx, t, in)
}

// listAs lists the tools of an MCP server with the variables of who tries it.
func (d *Studio) listAs(ctx context.Context, t *parley.Tool, in Trial) error {
	a, err := d.tester(ctx, t.UserID, t.ID, in)
	if err == nil {
		t.Listing, err = d.list(ctx, t, tool.Owned(Variables(a, Occasion{Variables: in.Variables, Now: time.Now()})))
	}
	return err
}

// list lists the tools of an MCP server and stores them.
func (d *Studio) list(ctx context.Context, t *parley.Tool, vars tool.Variables) (*parley.ToolListing, error) {
	l := d.Tools.List(ctx, t, vars)
	return l, d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.SaveToolListing(ctx, t.UserID, t.ID, l)
	})
}

// served is an MCP server of an assistant that is ready.
type served struct {
	tool    *parley.Tool
	listing atomic.Pointer[parley.ToolListing] // it may come while the conversation goes on
}

// stale says whether a server is to be listed again.
func stale(l *parley.ToolListing) bool {
	if l == nil {
		return true
	}
	age := parley.Now().Sub(l.TriedAt)
	return age > listedFor || l.Error != "" && age > failedFor
}

// Warm has those MCP servers of an assistant listed that were not listed for a while, and its endpoint connected, and waits
// for none: what they say is there when the next turn begins.
func (r *Ready) Warm() {
	if r.warm != nil {
		r.warm()
	}
	for _, s := range r.served {
		if r.test != "" || !stale(s.listing.Load()) {
			continue
		}
		t := s.withListing()
		r.studio.Tools.Background(t.ID, func(ctx context.Context) *parley.ToolListing {
			l, err := r.studio.list(ctx, &t, r.values)
			if err != nil {
				slog.WarnContext(ctx, "keep the list of an MCP server's tools", "tool", t.ID, "error", err)
			}
			return l
		}, func(l *parley.ToolListing) { s.listing.Store(l) })
	}
}

// Warm is Ready's, for an assistant whose conversation has just begun.
func (d *Studio) Warm(a *parley.Assistant, o Occasion) {
	if servers, _ := parted(a); len(servers) == 0 && a.Endpoint("llm_model_id") == nil {
		return
	}
	if r, err := d.Ready(a, o); err == nil { // what is wrong is told when it has something to answer
		r.Warm()
	}
}

// withListing is the server with what is known of its tools now.
func (s *served) withListing() parley.Tool {
	t := *s.tool
	t.Listing = s.listing.Load()
	return t
}

// fromServers are the tools of the MCP servers as they are known now.
func (r *Ready) fromServers() (list []agent.Tool) {
	if len(r.served) == 0 {
		return nil
	}
	servers := make([]parley.Tool, len(r.served))
	for i, s := range r.served {
		servers[i] = s.withListing()
	}
	var others []string
	for _, t := range r.tools {
		others = append(others, t.Name)
	}
	for _, n := range named(servers, others) {
		t := r.listedTool(n)
		if r.test != "" {
			staged(r.studio.Stages.Find(r.test), &t)
		}
		list = append(list, t)
	}
	return list
}

// staged has a test answer in place of a tool, unless it says that the tool is really to be called.
func staged(set *stage.Stage, t *agent.Tool) {
	name, own, async := t.Name, t.Run, t.Async
	in := func(run func(context.Context, json.RawMessage) (string, error)) func(context.Context, json.RawMessage) (string, error) {
		return func(ctx context.Context, arguments json.RawMessage) (string, error) {
			if set.Really(name) {
				return run(ctx, arguments)
			}
			return set.Answer(ctx, name)
		}
	}
	t.Run = in(own)
	if async != nil {
		t.Async = in(async)
	}
}

// listedTool is a tool of an MCP server in the form that the agent runs.
func (r *Ready) listedTool(n namedTool) agent.Tool {
	out := agent.Tool{
		Tool:    ai.Tool{Name: n.name, Description: tool.Description(n.server, n.ListedTool), Schema: json.RawMessage(n.Schema)},
		Fillers: [2]string{n.server.Filler, n.server.SecondFill},
		Idle:    n.ReadOnly,
	}
	out.AsyncTime = time.Duration(n.server.Timeout) * time.Second
	out.Run, out.Async = inMode(n.server, func(ctx context.Context, t *parley.Tool, args map[string]any) tool.Result {
		return r.studio.Tools.RunListed(ctx, t, n.ListedTool, r.of, args, r.values)
	})
	return out
}

// decoded are a model's arguments: an order number past 2^53 must keep its digits.
func decoded(arguments json.RawMessage) (args map[string]any, err error) {
	dec := json.NewDecoder(bytes.NewReader(arguments))
	dec.UseNumber()
	if err := dec.Decode(&args); err != nil {
		return nil, fmt.Errorf("the arguments are no JSON object: %w", err)
	}
	return args, nil
}

// told is what a model is told of a result.
func told(result tool.Result) (string, error) {
	if result.Misfit {
		return "", agent.Misfit(result.Text())
	}
	return result.Text(), nil
}

// namedTool is a tool of an MCP server under the name by which a model calls it.
type namedTool struct {
	parley.ListedTool
	server *parley.Tool
	name   string
}

// named gives the tools of MCP servers the names by which a model calls them: their own. Where another tool has it, or that
// of another server, the server's name stands before it.
func named(servers []parley.Tool, others []string) (list []namedTool) {
	count := map[string]int{}
	for _, name := range slices.Concat(others, parley.BuiltinTools) {
		count[name]++
	}
	for i := range servers {
		for _, l := range tool.Offered(&servers[i]) {
			if l.Given && len(list) < maxTools {
				name := plainName(l.Name)
				count[name]++
				list = append(list, namedTool{l, &servers[i], name})
			}
		}
	}
	used := map[string]bool{}
	for i := range list {
		n := &list[i]
		if count[n.name] > 1 {
			n.name = plainName(n.server.Name + "_" + n.Name)
		}
		for base, k := n.name, 2; used[n.name] || n.name != plainName(n.Name) && count[n.name] > 0; k++ {
			tail := "_" + strconv.Itoa(k)
			n.name = base[:min(len(base), maxName-len(tail))] + tail
		}
		used[n.name] = true
	}
	return list
}

// plainName is a name as all vendors take it: 64 letters, digits, _ and - at most.
func plainName(name string) string {
	name = strings.Map(func(c rune) rune {
		if c < 0x80 && (c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
			return c
		}
		return '_'
	}, name)
	return name[:min(len(name), maxName)]
}

// ToolNames are the names by which a model calls an assistant's mid-call tools, with those of its MCP servers.
func ToolNames(a *parley.Assistant) (names []string) {
	servers, names := parted(a)
	for _, n := range named(servers, names) {
		names = append(names, n.name)
	}
	return names
}

// parted are an assistant's MCP servers, and the names of its other mid-call tools.
func parted(a *parley.Assistant) (servers []parley.Tool, names []string) {
	for _, t := range a.MidCallTools {
		if t.Kind == parley.ToolMCP {
			servers = append(servers, t)
		} else {
			names = append(names, t.Name)
		}
	}
	return servers, names
}
