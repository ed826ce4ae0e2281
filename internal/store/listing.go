package store

import (
	"context"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

// addListings adds to tools that are MCP servers what these said of their tools.
func (q Query) addListings(ctx context.Context, tools []*parley.Tool) error {
	var ids []int64
	for _, t := range tools {
		if t.Kind == parley.ToolMCP {
			ids = append(ids, t.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var found []parley.ToolListing
	if err := q.q.NewSelect().Model(&found).Where("tool_id IN (?)", bun.List(ids)).Scan(ctx); err != nil {
		return err
	}
	of := map[int64]*parley.ToolListing{}
	for i := range found {
		of[found[i].ToolID] = &found[i]
	}
	for _, t := range tools {
		t.Listing = of[t.ID]
	}
	return nil
}

func pointers(list []parley.Tool) []*parley.Tool {
	out := make([]*parley.Tool, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

// DropToolListing forgets what an MCP server said of its tools.
func (tx *Tx) DropToolListing(ctx context.Context, userID, toolID int64) error {
	return tx.weigh(ctx, userID, bulkListing, "tool_id = ?", []any{toolID}, func() error {
		_, err := tx.q.NewDelete().Model((*parley.ToolListing)(nil)).Where("tool_id = ? AND user_id = ?", toolID, userID).Exec(ctx)
		return err
	})
}

// SaveToolListing stores what an MCP server said of its tools. Nothing is stored of a tool that is gone.
func (tx *Tx) SaveToolListing(ctx context.Context, userID, toolID int64, l *parley.ToolListing) error {
	l.ToolID, l.UserID = toolID, userID
	if l.Tools == nil {
		l.Tools = []parley.ListedTool{}
	}
	there, err := tx.q.NewSelect().Model((*parley.Tool)(nil)).Where("id = ? AND user_id = ?", toolID, userID).Exists(ctx)
	if err != nil || !there {
		return err
	}
	const of = "tool_id = ?"
	before, err := tx.weight(ctx, bulkListing, of, toolID)
	if err != nil {
		return err
	}
	_, err = tx.q.NewInsert().Model(l).On("CONFLICT (tool_id) DO UPDATE").
		Set("tools = EXCLUDED.tools, more = EXCLUDED.more, error = EXCLUDED.error, listed_at = EXCLUDED.listed_at, tried_at = EXCLUDED.tried_at").
		Exec(ctx)
	if err != nil {
		return err
	}
	after, err := tx.weight(ctx, bulkListing, of, toolID)
	tx.weighs(userID, after-before, false) // nobody is there to be refused
	return err
}
