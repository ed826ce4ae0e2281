package store

import (
	"context"
	"slices"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

func groupNotFound(kind parley.GroupKind) string { return kind.Title() + " not found" }

// groupAudit is a kind in the audit log, where it has the same name.
func groupAudit(kind parley.GroupKind) parley.AuditKind { return parley.AuditKind(kind) }

func (q Query) groups(model any, userID int64, kind parley.GroupKind) *bun.SelectQuery {
	return q.q.NewSelect().Model(model).ModelTableExpr("assistant_groups AS g").ColumnExpr("g.*").
		ColumnExpr(`(SELECT count(*) FROM assistant_group_members AS m JOIN assistants AS a ON a.id = m.assistant_id
			WHERE m.group_id = g.id AND a.deleted_at = 0) AS assistants_count`).
		Where("g.user_id = ? AND g.kind = ?", userID, kind)
}

// Groups is a page of the user's folders or labels, newest first.
func (q Query) Groups(ctx context.Context, userID int64, kind parley.GroupKind, p Page) ([]parley.Group, int, error) {
	list := []parley.Group{}
	total, err := page(ctx, q.groups(&list, userID, kind), p, "g.id DESC")
	return list, total, err
}

// GroupsByName are all folders or labels of the user's.
func (q Query) GroupsByName(ctx context.Context, userID int64, kind parley.GroupKind) ([]parley.Group, error) {
	list := []parley.Group{}
	return list, q.groups(&list, userID, kind).Order("g.name", "g.id").Scan(ctx)
}

// Group is one of the user's folders or labels.
func (q Query) Group(ctx context.Context, userID int64, kind parley.GroupKind, id int64) (*parley.Group, error) {
	g := new(parley.Group)
	return g, notFound(q.groups(g, userID, kind).Where("g.id = ?", id).Scan(ctx), groupNotFound(kind))
}

// GroupForUpdate is Group, kept from others until the transaction ends.
func (tx *Tx) GroupForUpdate(ctx context.Context, userID int64, kind parley.GroupKind, id int64) (*parley.Group, error) {
	g := new(parley.Group)
	err := tx.lock(tx.groups(g, userID, kind).Where("g.id = ?", id), "UPDATE OF g").Scan(ctx)
	return g, tx.saw(groupAudit(kind), id, g, notFound(err, groupNotFound(kind)))
}

// CreateGroup stores a new folder or label.
func (tx *Tx) CreateGroup(ctx context.Context, userID int64, g *parley.Group) error {
	most := folderLimit
	if g.Kind == parley.Label {
		most = labelLimit
	}
	if err := tx.room(ctx, userID, most, 1); err != nil {
		return err
	}
	g.ID, g.UserID, g.AssistantsCount, g.CreatedAt = 0, userID, 0, parley.Now()
	g.UpdatedAt = g.CreatedAt
	_, err := tx.q.NewInsert().Model(g).Exec(ctx)
	return tx.note(userID, parley.AuditCreated, groupAudit(g.Kind), g.ID, g, groupTaken(err))
}

// SaveGroup stores a changed folder or label.
func (tx *Tx) SaveGroup(ctx context.Context, userID int64, g *parley.Group) error {
	g.UpdatedAt = parley.Now()
	res, err := tx.q.NewUpdate().Model(g).Column("name", "color", "updated_at").
		Where("id = ? AND user_id = ? AND kind = ?", g.ID, userID, g.Kind).Exec(ctx)
	return tx.note(userID, parley.AuditChanged, groupAudit(g.Kind), g.ID, g, one(res, groupTaken(err), groupNotFound(g.Kind)))
}

func groupTaken(err error) error {
	if violates(err, "assistant_groups.user_id", "assistant_groups_name") {
		return parley.Fields{{Name: "name", Messages: []string{"The name has already been taken."}}}.Err()
	}
	return err
}

// DeleteGroup removes a folder or label; its assistants stay.
func (tx *Tx) DeleteGroup(ctx context.Context, userID int64, kind parley.GroupKind, id int64) error {
	return tx.drop(ctx, userID, groupAudit(kind), id, groupNotFound(kind),
		"DELETE FROM assistant_groups WHERE id = ? AND user_id = ? AND kind = ? RETURNING name", id, userID, kind)
}

// groupMember says that an assistant is in a group.
type groupMember struct {
	bun.BaseModel `bun:"assistant_group_members"`

	AssistantID, GroupID int64
	Kind                 parley.GroupKind `bun:",scanonly"`
}

// nameGroups fills in the folders and labels of some assistants.
func (q Query) nameGroups(ctx context.Context, list []parley.Assistant, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	var rows []groupMember
	err := q.q.NewSelect().Model(&rows).ModelTableExpr("assistant_group_members AS m").ColumnExpr("m.*, g.kind").
		Join("JOIN assistant_groups AS g ON g.id = m.group_id").Where("m.assistant_id IN (?)", bun.List(ids)).
		Order("m.assistant_id", "m.group_id").Scan(ctx)
	at := make(map[int64]*parley.Assistant, len(list))
	for i := range list {
		list[i].LabelIDs = []int64{}
		at[list[i].ID] = &list[i]
	}
	for _, r := range rows {
		if a := at[r.AssistantID]; r.Kind == parley.Folder {
			a.FolderID = &r.GroupID
		} else {
			a.LabelIDs = append(a.LabelIDs, r.GroupID)
		}
	}
	return err
}

// FileAssistant puts an assistant into its folder and gives it its labels. It makes no new version: how an assistant
// talks stays as it is.
func (tx *Tx) FileAssistant(ctx context.Context, userID int64, a *parley.Assistant) error {
	err := tx.fileAssistant(ctx, userID, a)
	return tx.changed(userID, parley.AuditAssistant, a.ID, a.Name, err, "folder_id", "label_ids")
}

func (tx *Tx) fileAssistant(ctx context.Context, userID int64, a *parley.Assistant) error {
	_, err := tx.q.NewRaw("DELETE FROM assistant_group_members WHERE assistant_id IN (SELECT id FROM assistants WHERE id = ? AND user_id = ?)",
		a.ID, userID).Exec(ctx)
	ids := slices.Clone(a.LabelIDs)
	if a.FolderID != nil {
		ids = append(ids, *a.FolderID)
	}
	if err != nil || len(ids) == 0 {
		return err
	}
	rows := make([]groupMember, len(ids))
	for i, id := range ids {
		rows[i] = groupMember{AssistantID: a.ID, GroupID: id}
	}
	_, err = tx.q.NewInsert().Model(&rows).Exec(ctx)
	return err
}

// ownGroups says which of some ids are the user's folders or labels.
func (q Query) ownGroups(ctx context.Context, userID int64, kind parley.GroupKind, ids []int64) (map[int64]bool, error) {
	own := map[int64]bool{}
	if len(ids) == 0 {
		return own, nil
	}
	var found []int64
	err := q.q.NewSelect().Table("assistant_groups").Column("id").Where("user_id = ? AND kind = ? AND id IN (?)", userID, kind,
		bun.List(ids)).Scan(ctx, &found)
	for _, id := range found {
		own[id] = true
	}
	return own, err
}
