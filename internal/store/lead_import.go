package store

import (
	"context"
	"errors"
	"time"

	"parley/internal/parley"
)

// maxImports is how many lists of an account may be on their way at once.
const maxImports = 5

// uploadFor is how long the file of an import may be on its way into blob storage.
const uploadFor = time.Hour

// errImportLost says that an import is no longer this process's to work on.
var errImportLost = errors.New("another process works on the import, or it has ended")

// ImportLost says whether err is that an import is no longer the caller's to work on.
func ImportLost(err error) bool { return errors.Is(err, errImportLost) }

// CreateImport stores an import into one of the user's campaigns whose file is still to come. Those of the campaign that
// have ended go.
func (tx *Tx) CreateImport(ctx context.Context, userID int64, im *parley.LeadImport) error {
	if err := tx.LockUser(ctx, userID); err != nil {
		return err
	}
	if _, err := tx.Campaign(ctx, userID, im.CampaignID); err != nil {
		return err
	}
	open, err := tx.q.NewSelect().Model((*parley.LeadImport)(nil)).Where("user_id = ? AND ended_at = 0", userID).Count(ctx)
	if err != nil {
		return err
	}
	if open >= maxImports {
		return parley.Errorf(parley.TooMany, "%d lists are being imported already: wait for one of them to end.", open)
	}
	if _, err := tx.q.NewRaw("DELETE FROM imports WHERE campaign_id = ? AND user_id = ? AND ended_at > 0 AND blob = ''",
		im.CampaignID, userID).Exec(ctx); err != nil {
		return err
	}
	now := parley.Now()
	im.ID, im.UserID, im.State, im.CreatedAt, im.LeaseUntil = 0, userID, parley.ImportUploading, now, now.Add(uploadFor)
	_, err = tx.q.NewInsert().Model(im).Exec(ctx)
	return err
}

// RunImport says that an import's file has arrived.
func (tx *Tx) RunImport(ctx context.Context, userID int64, im *parley.LeadImport) error {
	im.State, im.LeaseUntil = parley.ImportRunning, 0
	res, err := tx.q.NewUpdate().Model(im).Column("state", "size", "lease_until").
		Where("id = ? AND user_id = ? AND state = ?", im.ID, userID, parley.ImportUploading).Exec(ctx)
	return one(res, err, "Import not found")
}

// DropImport removes an import whose file did not arrive.
func (tx *Tx) DropImport(ctx context.Context, userID, id int64) error {
	_, err := tx.q.NewRaw("DELETE FROM imports WHERE id = ? AND user_id = ? AND state = ?", id, userID, parley.ImportUploading).Exec(ctx)
	return err
}

// LeaseImport gives a process an import to work on until a time, nil when another has it, or it has ended.
func (tx *Tx) LeaseImport(ctx context.Context, id int64, owner string, now, until parley.Time) (*parley.LeadImport, error) {
	var list []parley.LeadImport
	err := tx.q.NewRaw(`UPDATE imports SET owner = ?, lease_until = ?, tries = tries + 1
		WHERE id = ? AND state = ? AND lease_until <= ? RETURNING *`, owner, until, id, parley.ImportRunning, now).Scan(ctx, &list)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// KeepImport stores how far an import is, and its end. Only its owner can.
func (tx *Tx) KeepImport(ctx context.Context, im *parley.LeadImport) error {
	res, err := tx.q.NewUpdate().Model(im).Column("state", "rows", "imported", "skipped", "read_bytes", "errors", "failure", "lease_until",
		"tries", "ended_at").Where("id = ? AND owner = ? AND state = ?", im.ID, im.Owner, parley.ImportRunning).Exec(ctx)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(errImportLost, err)
	}
	return nil
}

// GiveBackImport lets another process go on with an import.
func (tx *Tx) GiveBackImport(ctx context.Context, id int64, owner string) error {
	_, err := tx.q.NewRaw("UPDATE imports SET lease_until = 0 WHERE id = ? AND owner = ? AND state = ?", id, owner,
		parley.ImportRunning).Exec(ctx)
	return err
}

// AddRejects keeps the rows, as CSV, that a batch of an import left out; row is the batch's last.
func (tx *Tx) AddRejects(ctx context.Context, importID int64, row, rows int, text string) error {
	_, err := tx.q.NewRaw("INSERT INTO import_rejects (import_id, seq, rows, text) VALUES (?, ?, ?, ?)", importID, row, rows, text).Exec(ctx)
	return err
}

// Rejects are the rows that an import has left out, as CSV, and how many they are.
func (q Query) Rejects(ctx context.Context, userID, importID int64) (text string, rows int, err error) {
	var list []struct {
		Rows int
		Text string
	}
	err = q.q.NewRaw(`SELECT r.rows, r.text FROM import_rejects AS r JOIN imports AS i ON i.id = r.import_id
		WHERE i.id = ? AND i.user_id = ? ORDER BY r.seq`, importID, userID).Scan(ctx, &list)
	for _, r := range list {
		text, rows = text+r.Text, rows+r.Rows
	}
	return text, rows, err
}

// Import is one of the user's imports.
func (q Query) Import(ctx context.Context, userID, id int64) (*parley.LeadImport, error) {
	im := new(parley.LeadImport)
	err := q.q.NewSelect().Model(im).Where("id = ? AND user_id = ?", id, userID).Scan(ctx)
	return im, notFound(err, "Import not found")
}

// LastImport is the newest import into one of the user's campaigns, one that runs before one that has ended; nil where
// there is none.
func (q Query) LastImport(ctx context.Context, userID, campaignID int64) (*parley.LeadImport, error) {
	var list []parley.LeadImport
	err := q.q.NewSelect().Model(&list).Where("campaign_id = ? AND user_id = ? AND state <> ?", campaignID, userID, parley.ImportUploading).
		OrderExpr("CASE WHEN ended_at = 0 THEN 0 ELSE 1 END, id DESC").Limit(1).Scan(ctx)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// StrandedImports are imports that no process works on: whose lease has lapsed, or whose file was not removed after the
// end.
func (q Query) StrandedImports(ctx context.Context, now parley.Time, limit int64) (list []parley.LeadImport, err error) {
	err = q.q.NewSelect().Model(&list).Where("ended_at = 0 AND lease_until <= ?", now).
		WhereOr("ended_at > 0 AND ended_at <= ? AND blob <> ''", now.Add(-uploadFor)).Order("id").Limit(limit).Scan(ctx)
	return list, err
}

// ForgetImport removes an import whose upload was cut off, or notes that the file of one that has ended is gone.
func (tx *Tx) ForgetImport(ctx context.Context, id int64) error {
	_, err := tx.q.NewRaw("DELETE FROM imports WHERE id = ? AND state = ?", id, parley.ImportUploading).Exec(ctx)
	if err == nil {
		_, err = tx.q.NewRaw("UPDATE imports SET blob = '' WHERE id = ? AND ended_at > 0", id).Exec(ctx)
	}
	return err
}

// TidyImports removes the rows that imports have left out, which are people who are no leads, and imports themselves, once
// they ended before a time of each.
func (tx *Tx) TidyImports(ctx context.Context, rejects, imports parley.Time) error {
	_, err := tx.q.NewRaw("DELETE FROM import_rejects WHERE import_id IN (SELECT id FROM imports WHERE ended_at > 0 AND ended_at <= ?)",
		rejects).Exec(ctx)
	if err == nil {
		_, err = tx.q.NewRaw("DELETE FROM imports WHERE ended_at > 0 AND ended_at <= ? AND blob = ''", imports).Exec(ctx)
	}
	return err
}
