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
	versionNotFound       = "Version not found"
	promptVersionNotFound = "Prompt version not found"

	versionBytes = 10 << 20 // of one assistant's versions; the newest stays, however long it is
)

// Sign says why assistants are changed in this transaction: their versions tell it.
func (tx *Tx) Sign(reason string) { tx.reason = reason }

// keepVersion stores a version of an assistant as it is from now on; old is as it was, nil for a new one. What was live
// without a version (it is older than these, or a node of a former version changed it) gets one first.
func (tx *Tx) keepVersion(ctx context.Context, a, old *parley.Assistant) error {
	v := &parley.AssistantVersion{Author: Author(ctx), Note: tx.reason, Changed: []string{}}
	last := &parley.AssistantVersion{}
	if old != nil {
		newest, err := tx.lastVersion(ctx, a.ID)
		if err != nil {
			return err
		}
		if last = newest; !last.Whole || last.CreatedAt != old.UpdatedAt {
			if last, err = tx.addVersion(ctx, old, last, &parley.AssistantVersion{Changed: []string{}}); err != nil {
				return err
			}
		}
		v.Changed = parley.Changed(old.Settings(), a.Settings())
	}
	v, err := tx.addVersion(ctx, a, last, v)
	if err != nil {
		return err
	}
	// The newest ones, as many as have room: the first that has none is as old as those that go.
	_, err = tx.q.NewRaw(`DELETE FROM assistant_versions WHERE assistant_id = ? AND version < ? AND version <= coalesce((SELECT max(version) FROM
		(SELECT version, sum(`+bulkVersion.bytes+`) OVER (ORDER BY version DESC) AS held FROM assistant_versions WHERE assistant_id = ?) AS v
		WHERE held > ?), 0)`, a.ID, v.Version, a.ID, versionBytes).Exec(ctx)
	if err != nil || v.Version <= parley.MaxVersions {
		return err
	}
	_, err = tx.q.NewDelete().Model((*parley.AssistantVersion)(nil)).
		Where("assistant_id = ? AND version <= ? AND NOT (wording AND prompt_version > ?)", a.ID,
			v.Version-parley.MaxVersions, a.PromptVersion-parley.MaxVersions).Exec(ctx)
	return err
}

// lastVersion is the newest version of an assistant, without its settings; a zero one where there is none.
func (tx *Tx) lastVersion(ctx context.Context, assistantID int64) (*parley.AssistantVersion, error) {
	v := new(parley.AssistantVersion)
	err := tx.q.NewSelect().Model(v).Column("version", "prompt_version", "whole", "created_at").
		Where("assistant_id = ?", assistantID).Order("version DESC").Limit(1).Scan(ctx)
	if err = notFound(err, versionNotFound); IsNotFound(err) {
		return v, nil
	}
	return v, err
}

// addVersion stores an assistant as the version after last.
func (tx *Tx) addVersion(ctx context.Context, a *parley.Assistant, last, v *parley.AssistantVersion) (*parley.AssistantVersion, error) {
	v.AssistantID, v.Version, v.PromptVersion, v.Whole, v.CreatedAt = a.ID, last.Version+1, a.PromptVersion, true, a.UpdatedAt
	v.Wording = v.PromptVersion > last.PromptVersion
	plain, secret, err := tx.split(a.Settings())
	if err != nil {
		return nil, err
	}
	v.Plain, v.Sealed = string(plain), secret
	_, err = tx.q.NewInsert().Model(v).Exec(ctx)
	return v, err
}

// split is settings as they are stored: JSON, and the variables encrypted.
func (q Query) split(s parley.Settings) (plain, sealed []byte, err error) {
	rest := maps.Clone(s)
	delete(rest, "variables")
	if plain, err = json.Marshal(rest); err != nil {
		return nil, nil, err
	}
	if vars := s["variables"]; vars != nil {
		sealed = q.box.seal(variablesSeal, vars)
	}
	return plain, sealed, nil
}

// join is what split has split.
func (q Query) join(plain string, sealed []byte) (s parley.Settings, err error) {
	if err := json.Unmarshal([]byte(plain), &s); err != nil || len(sealed) == 0 {
		return s, err
	}
	s["variables"], err = q.box.open(variablesSeal, sealed)
	return s, err
}

// AssistantVersions are the versions of one of the user's assistants, newest first, without their settings.
func (q Query) AssistantVersions(ctx context.Context, userID, assistantID int64, p Page) ([]parley.AssistantVersion, int, error) {
	list := []parley.AssistantVersion{}
	s := q.q.NewSelect().Model(&list).ExcludeColumn("fields", "sealed_variables").Where("assistant_id = ?", assistantID).
		Where(ownAssistant, assistantID, userID)
	total, err := page(ctx, s, p, "version DESC")
	return list, total, err
}

const ownAssistant = "EXISTS (SELECT 1 FROM assistants WHERE id = ? AND user_id = ? AND deleted_at = 0)"

// AssistantVersion is one version of one of the user's assistants, with its settings.
func (q Query) AssistantVersion(ctx context.Context, userID, assistantID int64, version int) (*parley.AssistantVersion, error) {
	return q.version(ctx, userID, assistantID, func(s *bun.SelectQuery) { s.Where("version = ?", version) })
}

// NewestVersion is the newest version of one of the user's assistants, with its settings.
func (q Query) NewestVersion(ctx context.Context, userID, assistantID int64) (*parley.AssistantVersion, error) {
	return q.version(ctx, userID, assistantID, func(s *bun.SelectQuery) { s.Order("version DESC").Limit(1) })
}

func (q Query) version(ctx context.Context, userID, assistantID int64, which func(*bun.SelectQuery)) (*parley.AssistantVersion, error) {
	v := new(parley.AssistantVersion)
	s := q.q.NewSelect().Model(v).Where("assistant_id = ?", assistantID).Where(ownAssistant, assistantID, userID)
	which(s)
	if err := s.Scan(ctx); err != nil {
		return nil, notFound(err, versionNotFound)
	}
	var err error
	if v.Settings, err = q.join(v.Plain, v.Sealed); err != nil {
		err = fmt.Errorf("version %d of assistant %d: %w", v.Version, assistantID, err)
	}
	return v, err
}

// PromptVersions are the wordings that an assistant of the user's has had, newest first.
func (q Query) PromptVersions(ctx context.Context, userID, assistantID int64, p Page) ([]parley.PromptVersion, int, error) {
	var rows []parley.AssistantVersion
	s := q.q.NewSelect().Model(&rows).Where("assistant_id = ? AND wording", assistantID).
		Where(ownAssistant, assistantID, userID)
	total, err := page(ctx, s, p, "prompt_version DESC")
	list := make([]parley.PromptVersion, len(rows))
	for i := range rows {
		list[i] = rows[i].Prompt()
	}
	return list, total, err
}

// PromptVersion is one wording of an assistant of the user's.
func (q Query) PromptVersion(ctx context.Context, userID, assistantID int64, version int) (*parley.PromptVersion, error) {
	row := new(parley.AssistantVersion)
	err := q.q.NewSelect().Model(row).Where("assistant_id = ? AND wording AND prompt_version = ?", assistantID, version).
		Where(ownAssistant, assistantID, userID).Limit(1).Scan(ctx)
	if err != nil {
		return nil, notFound(err, promptVersionNotFound)
	}
	p := row.Prompt()
	return &p, nil
}
