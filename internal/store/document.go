package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

const documentNotFound = "Document not found."

// documents selects documents that are not deleted, each with the older one that has the same text.
func (q Query) documents(model any, knowledgebaseID int64) *bun.SelectQuery {
	return q.q.NewSelect().Model(model).ModelTableExpr("documents AS d").ColumnExpr("d.*").
		ColumnExpr(`(SELECT min(o.id) FROM documents AS o WHERE o.knowledgebase_id = d.knowledgebase_id AND o.hash = d.hash AND d.hash <> ''
			AND o.id < d.id AND o.deleted_at = 0) AS duplicate_of`).
		Where("d.knowledgebase_id = ? AND d.deleted_at = 0", knowledgebaseID)
}

// Document is a document of one of the user's knowledgebases.
func (q Query) Document(ctx context.Context, userID, knowledgebaseID, id int64) (*parley.Document, error) {
	if err := q.ownKnowledgebase(ctx, userID, knowledgebaseID); err != nil {
		return nil, err
	}
	d := new(parley.Document)
	err := q.documents(d, knowledgebaseID).Where("d.id = ?", id).Scan(ctx)
	d.Complete()
	return d, notFound(err, documentNotFound)
}

// Documents are the documents of one of the user's knowledgebases, newest first.
func (q Query) Documents(ctx context.Context, userID, knowledgebaseID int64) ([]parley.Document, error) {
	if err := q.ownKnowledgebase(ctx, userID, knowledgebaseID); err != nil {
		return nil, err
	}
	list := []parley.Document{}
	err := q.documents(&list, knowledgebaseID).OrderExpr("d.id DESC").Scan(ctx)
	for i := range list {
		list[i].Complete()
	}
	return list, err
}

func (q Query) ownKnowledgebase(ctx context.Context, userID, id int64) error {
	var one int
	err := q.q.NewRaw("SELECT 1 FROM knowledgebases WHERE id = ? AND user_id = ? AND deleted_at = 0", id,
		userID).Scan(ctx, &one)
	return notFound(err, knowledgebaseNotFound)
}

// KnowledgeState says how often the passages of one of the user's knowledgebases have changed, and how many are found.
func (q Query) KnowledgeState(ctx context.Context, userID, id int64) (revision int64, chunks int, err error) {
	err = q.q.NewRaw(`SELECT revision, (SELECT coalesce(sum(chunks_count), 0) FROM documents WHERE knowledgebase_id = k.id AND deleted_at = 0 AND live > 0)
		FROM knowledgebases AS k WHERE id = ? AND user_id = ? AND deleted_at = 0`, id, userID).Scan(ctx, &revision, &chunks)
	return revision, chunks, notFound(err, knowledgebaseNotFound)
}

// LockKnowledgebase makes transactions that change a knowledgebase's passages wait for each other, in one order.
func (tx *Tx) LockKnowledgebase(ctx context.Context, id int64) error {
	if tx.sqlite {
		return nil
	}
	_, err := tx.q.NewRaw("SELECT 1 FROM knowledgebases WHERE id = ? FOR UPDATE", id).Exec(ctx)
	return err
}

// Document is a document of one of the user's knowledgebases.
func (tx *Tx) Document(ctx context.Context, userID, knowledgebaseID, id int64) (*parley.Document, error) {
	d, err := tx.Query.Document(ctx, userID, knowledgebaseID, id)
	return d, tx.saw(parley.AuditDocument, id, d, err)
}

// CreateDocument stores a new document of one of the user's knowledgebases, in processing.
func (tx *Tx) CreateDocument(ctx context.Context, userID, knowledgebaseID int64, d *parley.Document) error {
	if err := tx.room(ctx, userID, documentLimit, 1); err != nil {
		return err
	}
	if err := tx.room(ctx, userID, fileLimit, d.Size); err != nil {
		return err
	}
	if err := tx.Meter(ctx, userID, parley.Now(), "document_readings"); err != nil {
		return err
	}
	if err := tx.LockKnowledgebase(ctx, knowledgebaseID); err != nil {
		return err
	}
	if err := tx.ownKnowledgebase(ctx, userID, knowledgebaseID); err != nil {
		return err
	}
	d.ID, d.KnowledgebaseID, d.Status, d.Run, d.CreatedAt = 0, knowledgebaseID, parley.KnowledgeProcessing, 1,
		parley.Now()
	d.UpdatedAt, d.Warnings = d.CreatedAt, []string{}
	_, err := tx.q.NewInsert().Model(d).Exec(ctx)
	d.Complete()
	return tx.note(userID, parley.AuditCreated, parley.AuditDocument, d.ID, d, err)
}

// SaveDocument stores a changed name and description.
func (tx *Tx) SaveDocument(ctx context.Context, userID int64, d *parley.Document) error {
	d.UpdatedAt = parley.Now()
	res, err := tx.q.NewUpdate().Model(d).Column("name", "description",
		"updated_at").Where("id = ? AND deleted_at = 0", d.ID).
		Where("knowledgebase_id IN (SELECT id FROM knowledgebases WHERE user_id = ?)", userID).Exec(ctx)
	return tx.note(userID, parley.AuditChanged, parley.AuditDocument, d.ID, d, one(res, err, documentNotFound))
}

// AgainDocument puts a document into processing anew; what is found of it stays until that has succeeded. false says
// that it is in processing already.
func (tx *Tx) AgainDocument(ctx context.Context, userID int64, d *parley.Document) (bool, error) {
	d.UpdatedAt = parley.Now()
	var run []int64
	err := tx.q.NewRaw(`UPDATE documents SET status = ?, error = NULL, warnings = '[]', progress_done = 0, progress_total = 0, run = run + 1, lease_until = 0, updated_at = ?
		WHERE id = ? AND status <> ? AND deleted_at = 0 AND knowledgebase_id IN (SELECT id FROM knowledgebases WHERE user_id = ?) RETURNING run`,
		parley.KnowledgeProcessing, d.UpdatedAt, d.ID, parley.KnowledgeProcessing, userID).Scan(ctx, &run)
	if err != nil || len(run) == 0 {
		return false, err
	}
	if err := tx.Meter(ctx, userID, parley.Now(), "document_readings"); err != nil {
		return false, err
	}
	d.Status, d.Error, d.Warnings, d.Progress, d.Run = parley.KnowledgeProcessing, nil, []string{}, parley.Progress{}, run[0]
	d.Complete()
	return true, tx.changed(userID, parley.AuditDocument, d.ID, d.Name, nil, "status")
}

// HideDocument deletes a document as far as anybody can see. ForgetDocument removes what it held.
func (tx *Tx) HideDocument(ctx context.Context, userID, knowledgebaseID, id int64) error {
	if err := tx.ownKnowledgebase(ctx, userID, knowledgebaseID); err != nil {
		return err
	}
	err := tx.drop(ctx, userID, parley.AuditDocument, id, documentNotFound,
		"UPDATE documents SET deleted_at = ? WHERE id = ? AND knowledgebase_id = ? AND deleted_at = 0 RETURNING name",
		parley.Now(), id, knowledgebaseID)
	if err != nil {
		return err
	}
	return tx.revise(ctx, knowledgebaseID)
}

func (tx *Tx) revise(ctx context.Context, knowledgebaseID int64) error {
	_, err := tx.q.NewRaw("UPDATE knowledgebases SET revision = revision + 1, updated_at = ? WHERE id = ?",
		parley.Now(), knowledgebaseID).Exec(ctx)
	return err
}

// AnyDocument is a document for the one who processes it, nil when it is gone; hidden says that it is deleted and not
// yet forgotten.
func (q Query) AnyDocument(ctx context.Context, id int64) (d *parley.Document, hidden bool, err error) {
	var list []struct {
		parley.Document `bun:",extend"`
		DeletedAt       parley.Time
	}
	err = q.q.NewSelect().Model(&list).ModelTableExpr("documents AS d").ColumnExpr("d.*").Where("d.id = ?",
		id).Scan(ctx)
	if err != nil || len(list) == 0 {
		return nil, false, err
	}
	return &list[0].Document, list[0].DeletedAt > 0, nil
}

// LeaseDocument makes the caller the one who processes a run of a document; nil when somebody does already, or it is
// wanted no more. Expired leases are taken over.
func (tx *Tx) LeaseDocument(ctx context.Context, id, run int64, length time.Duration) (*parley.Document, error) {
	now := parley.Now()
	var list []parley.Document
	err := tx.q.NewUpdate().Model(&list).Set("lease_until = ?", now.Add(length)).
		Where("id = ? AND run = ? AND status = ? AND deleted_at = 0 AND lease_until < ?", id, run,
			parley.KnowledgeProcessing, now).
		Returning("*").Scan(ctx)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// RenewDocument keeps a lease and tells the progress; false when the run is wanted no more.
func (tx *Tx) RenewDocument(ctx context.Context, d *parley.Document, p parley.Progress, length time.Duration) (bool,
	error) {
	return some(tx.q.NewRaw(`UPDATE documents SET lease_until = ?, progress_done = ?, progress_total = ?
		WHERE id = ? AND run = ? AND status = ? AND deleted_at = 0`,
		parley.Now().Add(length), p.Done, p.Total, d.ID, d.Run, parley.KnowledgeProcessing).Exec(ctx))
}

// queued is the lease of a document that waits for a place among its owner's.
const queued = -1

// DocumentOwner is the user whose document it is, 0 when it is gone.
func (q Query) DocumentOwner(ctx context.Context, id int64) (userID int64, err error) {
	var ids []int64
	err = q.q.NewRaw("SELECT k.user_id FROM documents AS d JOIN knowledgebases AS k ON k.id = d.knowledgebase_id WHERE d.id = ?",
		id).Scan(ctx, &ids)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return ids[0], nil
}

// FreePlaces is how many more documents of a user may be processed, of so many. Transactions that ask for the same
// user wait for each other.
func (tx *Tx) FreePlaces(ctx context.Context, userID int64, places int) (int, error) {
	if err := tx.LockUser(ctx, userID); err != nil {
		return 0, err
	}
	var taken int
	err := tx.q.NewRaw(`SELECT count(*) FROM documents AS d JOIN knowledgebases AS k ON k.id = d.knowledgebase_id
		WHERE d.status = 'processing' AND d.lease_until >= ? AND d.deleted_at = 0 AND k.user_id = ?`, parley.Now(), userID).Scan(ctx, &taken)
	return places - taken, err
}

// QueueDocument has a document wait until its owner has a free place.
func (tx *Tx) QueueDocument(ctx context.Context, id, run int64) error {
	_, err := tx.q.NewRaw("UPDATE documents SET lease_until = ? WHERE id = ? AND run = ? AND status = 'processing' "+
		"AND deleted_at = 0 AND lease_until < ?",
		queued, id, run, parley.Now()).Exec(ctx)
	return err
}

// NextDocuments takes as many documents of a user's out of the queue as there are free places, the oldest first.
func (tx *Tx) NextDocuments(ctx context.Context, userID int64, places int) ([]parley.Document, error) {
	free, err := tx.FreePlaces(ctx, userID, places)
	if err != nil || free <= 0 {
		return nil, err
	}
	var list []parley.Document
	err = tx.q.NewUpdate().Model(&list).Set("lease_until = 0").
		Where(`id IN (SELECT d.id FROM documents AS d JOIN knowledgebases AS k ON k.id = d.knowledgebase_id
			WHERE d.status = 'processing' AND d.lease_until = ? AND d.deleted_at = 0 AND k.user_id = ? ORDER BY d.id LIMIT ?)`, queued, userID, free).
		Returning("*").Scan(ctx)
	return list, err
}

// WaitingOwners are users with documents in the queue.
func (q Query) WaitingOwners(ctx context.Context) (ids []int64, err error) {
	err = q.q.NewRaw(`SELECT DISTINCT k.user_id FROM documents AS d JOIN knowledgebases AS k ON k.id = d.knowledgebase_id
		WHERE d.status = 'processing' AND d.lease_until = ? AND d.deleted_at = 0 LIMIT 1000`, queued).Scan(ctx, &ids)
	return ids, err
}

// LapsedDocuments are documents in processing that nobody processes: the process died that did.
func (q Query) LapsedDocuments(ctx context.Context, now parley.Time, limit int) ([]parley.Document, error) {
	var list []parley.Document
	err := q.q.NewSelect().Model(&list).Where("status = 'processing' AND deleted_at = 0 AND lease_until > 0 AND lease_until < ?", now).
		Order("id").Limit(int64(limit)).Scan(ctx)
	return list, err
}

// UnleaseDocument gives a lease back, for the next one who tries.
func (tx *Tx) UnleaseDocument(ctx context.Context, d *parley.Document) error {
	_, err := tx.q.NewRaw("UPDATE documents SET lease_until = 0 WHERE id = ? AND run = ? AND status = 'processing'",
		d.ID, d.Run).Exec(ctx)
	return err
}

// FinishDocument ends a run. With failure "" its passages, which are all stored, become the ones that are found, in
// this one step; otherwise those of an earlier run stay. false says that the run was wanted no more.
func (tx *Tx) FinishDocument(ctx context.Context, d *parley.Document, failure string) (bool, error) {
	if err := tx.LockKnowledgebase(ctx, d.KnowledgebaseID); err != nil {
		return false, err
	}
	d.UpdatedAt = parley.Now()
	columns := []string{"status", "error", "warnings", "updated_at"}
	d.Status, d.Error = parley.KnowledgeFailed, &failure
	if d.Warnings == nil || failure != "" {
		d.Warnings = []string{}
	}
	if failure == "" {
		d.Status, d.Error, d.Live = parley.KnowledgeActive, nil, d.Run
		columns = append(columns, "live", "hash", "embedder", "chunks_count", "progress_done", "progress_total")
	}
	wanted, err := some(tx.q.NewUpdate().Model(d).Column(columns...).Set("lease_until = 0").
		Where("id = ? AND run = ? AND status = 'processing' AND deleted_at = 0", d.ID, d.Run).Exec(ctx))
	if err != nil || !wanted {
		return false, err
	}
	return true, tx.revise(ctx, d.KnowledgebaseID)
}

// LeaseVectors makes the caller the one who gives a document its vectors of an embedder; nil when every document that is
// found has them, or somebody sees to it.
func (tx *Tx) LeaseVectors(ctx context.Context, embedder string, length time.Duration) (*parley.Document, error) {
	now := parley.Now()
	var list []parley.Document
	err := tx.q.NewUpdate().Model(&list).Set("lease_until = ?", now.Add(length)).
		Where(`id = (SELECT id FROM documents WHERE deleted_at = 0 AND live > 0 AND status <> ? AND embedder <> ? AND lease_until < ?
			ORDER BY id DESC LIMIT 1) AND lease_until < ?`, parley.KnowledgeProcessing, embedder, now, now).
		Returning("*").Scan(ctx)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// LackVectors says whether a document that is found has no vectors of an embedder.
func (q Query) LackVectors(ctx context.Context, embedder string) (bool, error) {
	return q.q.NewSelect().Table("documents").Where("deleted_at = 0 AND live > 0 AND embedder <> ?", embedder).Exists(ctx)
}

// KeepVectors keeps that lease; false when the document was deleted or is being read again.
func (tx *Tx) KeepVectors(ctx context.Context, d *parley.Document, length time.Duration) (bool, error) {
	return some(tx.q.NewRaw("UPDATE documents SET lease_until = ? WHERE id = ? AND live = ? AND status <> ? AND deleted_at = 0",
		parley.Now().Add(length), d.ID, d.Live, parley.KnowledgeProcessing).Exec(ctx))
}

// FinishVectors says that all passages of a document have vectors of an embedder: searches use them from now on.
func (tx *Tx) FinishVectors(ctx context.Context, d *parley.Document, embedder string) error {
	if err := tx.LockKnowledgebase(ctx, d.KnowledgebaseID); err != nil {
		return err
	}
	done, err := some(
		tx.q.NewRaw("UPDATE documents SET lease_until = 0, embedder = ? WHERE id = ? AND live = ? AND status <> ? AND deleted_at = 0",
			embedder, d.ID, d.Live, parley.KnowledgeProcessing).Exec(ctx))
	if err != nil || !done {
		return err
	}
	return tx.revise(ctx, d.KnowledgebaseID)
}

// BlobWanted says whether a document that is not deleted names a file in blob storage.
func (q Query) BlobWanted(ctx context.Context, blob string) (bool, error) {
	return q.q.NewSelect().Table("documents").Where("blob = ? AND deleted_at = 0", blob).Exists(ctx)
}

// ForgetDocument removes the row of a deleted document whose passages are removed.
func (tx *Tx) ForgetDocument(ctx context.Context, id int64) error {
	_, err := tx.q.NewRaw("DELETE FROM documents WHERE id = ? AND deleted_at > 0", id).Exec(ctx)
	return err
}
