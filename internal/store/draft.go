package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/uptrace/bun"

	"parley"
)

const (
	draftNotFound = "This assistant has no draft"
	draftSeal     = "assistant draft"
)

// AssistantDraft is the draft of one of the user's assistants.
func (q Query) AssistantDraft(ctx context.Context, userID, assistantID int64) (*parley.AssistantDraft, error) {
	d := new(parley.AssistantDraft)
	err := q.q.NewSelect().Model(d).Where("assistant_id = ? AND user_id = ?", assistantID, userID).
		Where(ownAssistant, assistantID, userID).Scan(ctx)
	if err != nil {
		return nil, notFound(err, draftNotFound)
	}
	plain, err := q.box.open(draftSeal, d.Sealed)
	if err == nil {
		err = json.Unmarshal(plain, &d.Changes)
	}
	if err != nil {
		return nil, fmt.Errorf("draft of assistant %d: %w", assistantID, err)
	}
	return d, nil
}

// SaveAssistantDraft stores the draft of one of the user's assistants, in place of the former one.
func (tx *Tx) SaveAssistantDraft(ctx context.Context, userID int64, d *parley.AssistantDraft) error {
	plain, err := json.Marshal(d.Changes)
	if err != nil {
		return err
	}
	d.UserID, d.Sealed, d.UpdatedAt = userID, tx.box.seal(draftSeal, plain), parley.Now()
	if d.CreatedAt == 0 {
		d.CreatedAt = d.UpdatedAt
	}
	_, err = tx.q.NewInsert().Model(d).On("CONFLICT (assistant_id) DO UPDATE").
		Set("author = excluded.author").Set("base = excluded.base").Set("sealed_changes = excluded.sealed_changes").
		Set("updated_at = excluded.updated_at").Exec(ctx)
	return err
}

// DeleteAssistantDraft removes the draft of one of the user's assistants.
func (tx *Tx) DeleteAssistantDraft(ctx context.Context, userID, assistantID int64) error {
	res, err := tx.q.NewDelete().Model((*parley.AssistantDraft)(nil)).
		Where("assistant_id = ? AND user_id = ?", assistantID, userID).Exec(ctx)
	return one(res, err, draftNotFound)
}

// ToolsNamed are those of the user's mid-call tools that have some ids, in the order of the ids.
func (q Query) ToolsNamed(ctx context.Context, userID int64, ids []int64) ([]parley.Tool, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var found []parley.Tool
	err := q.q.NewSelect().Model(&found).Where("user_id = ? AND id IN (?)", userID, bun.List(ids)).Scan(ctx)
	if err != nil {
		return nil, err
	}
	var list []parley.Tool
	for _, id := range ids {
		for _, t := range found {
			if t.ID == id {
				list = append(list, t)
			}
		}
	}
	return list, q.unsealTools(list)
}
