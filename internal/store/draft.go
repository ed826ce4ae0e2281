package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/uptrace/bun"

	"parley/internal/parley"
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

// AssistantDraft is the draft of one of the user's assistants.
func (tx *Tx) AssistantDraft(ctx context.Context, userID, assistantID int64) (*parley.AssistantDraft, error) {
	d, err := tx.Query.AssistantDraft(ctx, userID, assistantID)
	if err != nil {
		return nil, err
	}
	return d, tx.saw(parley.AuditDraft, assistantID, d.Changes, nil)
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
	err = tx.weigh(ctx, userID, bulkDraft, "assistant_id = ?", []any{d.AssistantID}, func() error {
		_, err := tx.q.NewInsert().Model(d).On("CONFLICT (assistant_id) DO UPDATE").
			Set("author = excluded.author").Set("base = excluded.base").Set("sealed_changes = excluded.sealed_changes").
			Set("updated_at = excluded.updated_at").Exec(ctx)
		return err
	})
	return tx.noteDraft(userID, d, err)
}

// noteDraft notes what a draft changes, against the former draft, or the live assistant where there was none.
func (tx *Tx) noteDraft(userID int64, d *parley.AssistantDraft, err error) error {
	if tx.actor == nil || err != nil {
		return err
	}
	of := thing{parley.AuditDraft, fmt.Sprint(d.AssistantID)}
	live, former := tx.seen[thing{parley.AuditAssistant, of.id}], tx.seen[of]
	was, is := maps.Clone(live), maps.Clone(live)
	if live == nil {
		was, is = parley.AuditView{}, parley.AuditView{}
	}
	maps.Copy(was, former)
	maps.Copy(is, parley.AuditView(d.Changes))
	action := parley.AuditChanged
	if former == nil {
		action = parley.AuditCreated
	}
	tx.enter(userID, action, of, is.Name(), parley.AuditChanges(was, is, false))
	return nil
}

// DeleteAssistantDraft removes the draft of one of the user's assistants.
func (tx *Tx) DeleteAssistantDraft(ctx context.Context, userID, assistantID int64) error {
	return tx.weigh(ctx, userID, bulkDraft, "assistant_id = ?", []any{assistantID}, func() error {
		return tx.drop(ctx, userID, parley.AuditDraft, assistantID, draftNotFound, `DELETE FROM assistant_drafts
			WHERE assistant_id = ? AND user_id = ? RETURNING (SELECT name FROM assistants WHERE id = assistant_drafts.assistant_id)`,
			assistantID, userID)
	})
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
	if err := q.unsealTools(list); err != nil {
		return nil, err
	}
	return list, q.addListings(ctx, pointers(list))
}
