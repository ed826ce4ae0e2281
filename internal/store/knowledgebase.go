package store

import (
	"context"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

const knowledgebaseNotFound = "Knowledgebase not found."

// knowledgebases selects knowledgebases with what is counted of them.
func (q Query) knowledgebases(model any) *bun.SelectQuery {
	const documents = "(SELECT count(*) FROM documents AS d WHERE d.knowledgebase_id = k.id AND d.deleted_at = 0"
	return q.q.NewSelect().Model(model).ModelTableExpr("knowledgebases AS k").
		ColumnExpr("k.id, k.user_id, k.name, k.description, k.created_at, k.updated_at").
		ColumnExpr(documents + ") AS documents").
		ColumnExpr(documents + " AND d.status = 'processing') AS processing").
		ColumnExpr(documents + " AND d.status = 'failed') AS failed").
		ColumnExpr("(SELECT count(*) FROM assistants AS a WHERE a.knowledgebase_id = k.id AND a.deleted_at = 0) AS assistants").
		Where("k.deleted_at = 0")
}

// Knowledgebase is one of the user's knowledgebases.
func (q Query) Knowledgebase(ctx context.Context, userID, id int64) (*parley.Knowledgebase, error) {
	k := new(parley.Knowledgebase)
	err := q.knowledgebases(k).Where("k.id = ? AND k.user_id = ?", id, userID).Scan(ctx)
	k.Derive()
	return k, notFound(err, knowledgebaseNotFound)
}

// Knowledgebases are all the user's knowledgebases, newest first.
func (q Query) Knowledgebases(ctx context.Context, userID int64) ([]parley.Knowledgebase, error) {
	list := []parley.Knowledgebase{}
	err := q.knowledgebases(&list).Where("k.user_id = ?", userID).OrderExpr("k.id DESC").Scan(ctx)
	for i := range list {
		list[i].Derive()
	}
	return list, err
}

// Knowledgebase is one of the user's knowledgebases.
func (tx *Tx) Knowledgebase(ctx context.Context, userID, id int64) (*parley.Knowledgebase, error) {
	k, err := tx.Query.Knowledgebase(ctx, userID, id)
	return k, tx.saw(parley.AuditKnowledge, id, k, err)
}

// CreateKnowledgebase stores a new knowledgebase.
func (tx *Tx) CreateKnowledgebase(ctx context.Context, userID int64, k *parley.Knowledgebase) error {
	if err := tx.room(ctx, userID, knowledgebaseLimit, 1); err != nil {
		return err
	}
	k.ID, k.UserID, k.CreatedAt = 0, userID, parley.Now()
	k.UpdatedAt = k.CreatedAt
	_, err := tx.q.NewInsert().Model(k).Exec(ctx)
	k.Derive()
	return tx.note(userID, parley.AuditCreated, parley.AuditKnowledge, k.ID, k, err)
}

// SaveKnowledgebase stores a changed name and description.
func (tx *Tx) SaveKnowledgebase(ctx context.Context, userID int64, k *parley.Knowledgebase) error {
	k.UpdatedAt = parley.Now()
	res, err := tx.q.NewUpdate().Model(k).Column("name", "description", "updated_at").
		Where("id = ? AND user_id = ? AND deleted_at = 0", k.ID, userID).Exec(ctx)
	return tx.note(userID, parley.AuditChanged, parley.AuditKnowledge, k.ID, k, one(res, err, knowledgebaseNotFound))
}

// HideKnowledgebase deletes a knowledgebase as far as anybody can see, with its documents, and detaches its
// assistants. ForgetDocument and ForgetWords remove what it held.
func (tx *Tx) HideKnowledgebase(ctx context.Context, userID, id int64) error {
	now := parley.Now()
	err := tx.drop(ctx, userID, parley.AuditKnowledge, id, knowledgebaseNotFound,
		"UPDATE knowledgebases SET deleted_at = ?, revision = revision + 1 WHERE id = ? AND user_id = ? AND deleted_at = 0 RETURNING name",
		now, id, userID)
	if err != nil {
		return err
	}
	if _, err := tx.q.NewRaw("UPDATE assistants SET knowledgebase_id = NULL WHERE knowledgebase_id = ?",
		id).Exec(ctx); err != nil {
		return err
	}
	_, err = tx.q.NewRaw("UPDATE documents SET deleted_at = ? WHERE knowledgebase_id = ? AND deleted_at = 0", now,
		id).Exec(ctx)
	return err
}

// HiddenDocuments are the documents of a knowledgebase that are deleted and not yet forgotten.
func (q Query) HiddenDocuments(ctx context.Context, knowledgebaseID int64, limit int) ([]parley.Document, error) {
	var list []parley.Document
	err := q.q.NewSelect().Model(&list).Where("knowledgebase_id = ? AND deleted_at > 0",
		knowledgebaseID).Order("id").Limit(int64(limit)).Scan(ctx)
	return list, err
}

// ForgetWords removes up to limit words of a deleted knowledgebase's vocabulary and says how many; when none are
// left, the knowledgebase itself goes.
func (tx *Tx) ForgetWords(ctx context.Context, knowledgebaseID int64, limit int) (int, error) {
	n, err := count(tx.q.NewRaw(`DELETE FROM words WHERE id IN (SELECT w.id FROM words AS w JOIN knowledgebases AS k ON k.id = w.knowledgebase_id
		WHERE w.knowledgebase_id = ? AND k.deleted_at > 0 LIMIT ?)`, knowledgebaseID, limit).Exec(ctx))
	if err == nil && n == 0 {
		_, err = tx.q.NewRaw("DELETE FROM knowledgebases WHERE id = ? AND deleted_at > 0", knowledgebaseID).Exec(ctx)
	}
	return n, err
}
