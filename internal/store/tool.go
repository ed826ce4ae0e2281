package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

const (
	toolNotFound = "Tool not found"
	oauthSecret  = "tool oauth secret"
)

// Tool is one of the user's mid-call tools.
func (q Query) Tool(ctx context.Context, userID, id int64) (*parley.Tool, error) {
	return q.tool(ctx, userID, id, false)
}

// ToolForUpdate is Tool, kept from others until the transaction ends.
func (tx *Tx) ToolForUpdate(ctx context.Context, userID, id int64) (*parley.Tool, error) {
	t, err := tx.tool(ctx, userID, id, true)
	return t, tx.saw(parley.AuditTool, id, t, err)
}

func (q Query) tool(ctx context.Context, userID, id int64, lock bool) (*parley.Tool, error) {
	t := new(parley.Tool)
	s := q.q.NewSelect().Model(t).Where("id = ? AND user_id = ?", id, userID)
	if lock {
		s = q.locked(s)
	}
	if err := s.Scan(ctx); err != nil {
		return nil, notFound(err, toolNotFound)
	}
	if err := q.unsealTool(t); err != nil {
		return nil, err
	}
	return t, q.addListings(ctx, []*parley.Tool{t})
}

// Tools are the user's mid-call tools, newest first.
func (q Query) Tools(ctx context.Context, userID int64) ([]parley.Tool, error) {
	list := []parley.Tool{}
	if err := q.q.NewSelect().Model(&list).Where("user_id = ?", userID).Order("id DESC").Scan(ctx); err != nil {
		return nil, err
	}
	return list, q.unsealTools(list)
}

// ToolsBefore are the user's mid-call tools that precede an id, newest first and at most n.
func (q Query) ToolsBefore(ctx context.Context, userID, id int64, n int) ([]parley.Tool, error) {
	list := []parley.Tool{}
	err := q.q.NewSelect().Model(&list).Where("user_id = ? AND id < ?", userID, id).Order("id DESC").Limit(int64(n)).Scan(ctx)
	if err != nil {
		return nil, err
	}
	if err := q.unsealTools(list); err != nil {
		return nil, err
	}
	return list, q.addListings(ctx, pointers(list))
}

// CreateTool stores a new mid-call tool.
func (tx *Tx) CreateTool(ctx context.Context, userID int64, t *parley.Tool) error {
	if err := tx.room(ctx, userID, toolLimit, 1); err != nil {
		return err
	}
	t.ID, t.UserID, t.CreatedAt = 0, userID, parley.Now()
	t.UpdatedAt = t.CreatedAt
	if err := tx.sealTool(t); err != nil {
		return err
	}
	if _, err := tx.q.NewInsert().Model(t).Exec(ctx); err != nil {
		return toolName(err)
	}
	n, err := tx.weight(ctx, bulkTool, "id = ?", t.ID)
	tx.weighs(userID, n, true)
	return tx.note(userID, parley.AuditCreated, parley.AuditTool, t.ID, t, err)
}

// SaveTool stores a changed mid-call tool.
func (tx *Tx) SaveTool(ctx context.Context, userID int64, t *parley.Tool) error {
	t.UpdatedAt = parley.Now()
	if err := tx.sealTool(t); err != nil {
		return err
	}
	err := tx.weigh(ctx, userID, bulkTool, "id = ?", []any{t.ID}, func() error {
		res, err := tx.q.NewUpdate().Model(t).ExcludeColumn("id", "user_id", "created_at").
			Where("id = ? AND user_id = ?", t.ID, userID).Exec(ctx)
		return one(res, toolName(err), toolNotFound)
	})
	return tx.note(userID, parley.AuditChanged, parley.AuditTool, t.ID, t, err)
}

func toolName(err error) error {
	if violates(err, "tools.user_id, tools.name", "tools_user_id_name_key") {
		return parley.Fields{{Name: "name", Messages: []string{"The name has already been taken."}}}.Err()
	}
	return err
}

// DeleteTool removes a mid-call tool and takes it from every assistant.
func (tx *Tx) DeleteTool(ctx context.Context, userID, id int64) error {
	n, err := tx.weight(ctx, bulkListing, "tool_id = ? AND user_id = ?", id, userID)
	if err != nil {
		return err
	}
	tx.weighs(userID, -n, true)
	return tx.weigh(ctx, userID, bulkTool, "id = ?", []any{id}, func() error {
		return tx.drop(ctx, userID, parley.AuditTool, id, toolNotFound,
			"DELETE FROM tools WHERE id = ? AND user_id = ? RETURNING name", id, userID)
	})
}

// toolsOf reads the mid-call tools of some assistants in one query, in the order in which each names them.
func (q Query) toolsOf(ctx context.Context, assistants []int64) (map[int64][]parley.Tool, error) {
	if len(assistants) == 0 {
		return nil, nil
	}
	var rows []struct {
		parley.Tool `bun:",extend"`
		AssistantID int64
	}
	err := q.q.NewSelect().Model(&rows).ModelTableExpr("tools AS t").ColumnExpr("t.*, at.assistant_id").
		Join("JOIN assistant_tools AS at ON at.tool_id = t.id").Where("at.assistant_id IN (?)", bun.List(assistants)).
		OrderExpr("at.assistant_id, at.position").Scan(ctx)
	if err != nil {
		return nil, err
	}
	of := map[int64][]parley.Tool{}
	for i := range rows {
		if err := q.unsealTool(&rows[i].Tool); err != nil {
			return nil, err
		}
		of[rows[i].AssistantID] = append(of[rows[i].AssistantID], rows[i].Tool)
	}
	return of, nil
}

func (q Query) sealTool(t *parley.Tool) error {
	plain, err := json.Marshal(t.Headers)
	t.Sealed, t.StoredOAuth = q.box.seal("tool headers", plain), parley.ToolOAuth{}
	if t.OAuth != nil {
		t.StoredOAuth = *t.OAuth
		t.StoredOAuth.Sealed = q.box.seal(oauthSecret, []byte(t.OAuth.Secret))
	}
	return err
}

func (q Query) unsealTools(list []parley.Tool) error {
	for i := range list {
		if err := q.unsealTool(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

func (q Query) unsealTool(t *parley.Tool) error {
	plain, err := q.box.open("tool headers", t.Sealed)
	if err != nil {
		return fmt.Errorf("headers of tool %d: %w", t.ID, err)
	}
	if len(t.Allowed) == 0 {
		t.Allowed = nil
	}
	if o := t.StoredOAuth; o.ClientID != "" {
		secret, err := q.box.open(oauthSecret, o.Sealed)
		if err != nil {
			return fmt.Errorf("OAuth secret of tool %d: %w", t.ID, err)
		}
		o.Secret, o.Sealed = string(secret), nil
		t.OAuth = &o
	}
	return json.Unmarshal(plain, &t.Headers)
}
