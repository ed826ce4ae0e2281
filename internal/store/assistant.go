package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"parley/internal/parley"
)

const (
	assistantNotFound = "Assistant not found"
	alive             = "deleted_at = 0"
)

// Assistant is one of the user's assistants with its tools.
func (q Query) Assistant(ctx context.Context, userID, id int64) (*parley.Assistant, error) {
	return q.assistant(ctx, func(s *bun.SelectQuery) *bun.SelectQuery {
		return s.Where("id = ? AND user_id = ?", id,
			userID)
	})
}

// AssistantForUpdate is Assistant, kept from others until the transaction ends: what is then saved loses nobody's
// change.
func (tx *Tx) AssistantForUpdate(ctx context.Context, userID, id int64) (*parley.Assistant, error) {
	a, err := tx.assistant(ctx, func(s *bun.SelectQuery) *bun.SelectQuery {
		return tx.locked(s.Where("id = ? AND user_id = ?", id, userID))
	})
	if err != nil {
		return nil, err
	}
	return a, tx.saw(parley.AuditAssistant, id, a.Settings(), nil)
}

// AssistantByUUID is the assistant with that UUID, whoever owns it: the public routes know no user. Those of a
// disabled account are not there.
func (q Query) AssistantByUUID(ctx context.Context, uuid string) (*parley.Assistant, error) {
	return q.assistant(ctx, func(s *bun.SelectQuery) *bun.SelectQuery {
		return s.Where("uuid = ? AND EXISTS (SELECT 1 FROM users WHERE users.id = user_id AND users.disabled_at = 0)", uuid)
	})
}

// AssistantID is the id of the user's assistant with that UUID, 0 where there is none. deleted says whether a deleted
// one counts.
func (q Query) AssistantID(ctx context.Context, userID int64, uuid string, deleted bool) (id int64, err error) {
	s := q.q.NewSelect().Model((*parley.Assistant)(nil)).Column("id").Where("uuid = ? AND user_id = ?",
		strings.ToLower(uuid), userID)
	if !deleted {
		s.Where(alive)
	}
	err = s.Scan(ctx, &id)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return id, err
}

// AnyAssistant is the assistant with that id, whoever owns it: a softphone on the server's own machine names no user.
func (q Query) AnyAssistant(ctx context.Context, id int64) (*parley.Assistant, error) {
	return q.assistant(ctx, func(s *bun.SelectQuery) *bun.SelectQuery { return s.Where("id = ?", id) })
}

// CallAssistant is the assistant of one of the user's calls, also one that was deleted since.
func (q Query) CallAssistant(ctx context.Context, userID, id int64) (*parley.Assistant, error) {
	return q.anyAssistant(ctx, func(s *bun.SelectQuery) *bun.SelectQuery {
		return s.Where("id = ? AND user_id = ?",
			id, userID)
	})
}

func (q Query) assistant(ctx context.Context, which func(*bun.SelectQuery) *bun.SelectQuery) (*parley.Assistant,
	error) {
	return q.anyAssistant(ctx, func(s *bun.SelectQuery) *bun.SelectQuery { return which(s).Where(alive) })
}

func (q Query) anyAssistant(ctx context.Context, which func(*bun.SelectQuery) *bun.SelectQuery) (*parley.Assistant,
	error) {
	list := make([]parley.Assistant, 0, 1)
	if err := which(q.q.NewSelect().Model(&list)).Scan(ctx); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, parley.Errorf(parley.NotFound, assistantNotFound)
	}
	if err := q.complete(ctx, list); err != nil {
		return nil, err
	}
	return &list[0], q.addListings(ctx, pointers(list[0].MidCallTools)) // of several at once nobody needs them
}

// complete fills in the variables of some assistants, and their mid-call tools in one query for all of them.
func (q Query) complete(ctx context.Context, list []parley.Assistant) error {
	ids := make([]int64, len(list))
	for i := range list {
		ids[i] = list[i].ID
		if err := q.unsealVariables(&list[i]); err != nil {
			return err
		}
	}
	of, err := q.toolsOf(ctx, ids)
	if err == nil {
		err = q.nameGroups(ctx, list, ids)
	}
	if err == nil {
		err = q.addEndpoints(ctx, list)
	}
	for i := range list {
		a := &list[i]
		a.MidCallTools = of[a.ID]
		a.ToolIDs = make([]int64, len(a.MidCallTools))
		for j := range a.MidCallTools {
			a.ToolIDs[j] = a.MidCallTools[j].ID
		}
	}
	return err
}

// AssistantFilter narrows a list; zero values don't.
type AssistantFilter struct {
	Type              string
	FolderID, LabelID int64
}

func (f *AssistantFilter) narrow(s *bun.SelectQuery) {
	only(s, "type", f.Type)
	for _, id := range []int64{f.FolderID, f.LabelID} {
		if id != 0 {
			s.Where("id IN (SELECT assistant_id FROM assistant_group_members WHERE group_id = ?)", id)
		}
	}
}

// AssistantPage is a page of the user's assistants, oldest first.
func (q Query) AssistantPage(ctx context.Context, userID int64, f AssistantFilter, p Page) ([]parley.Assistant, int, error) {
	list := []parley.Assistant{}
	s := q.q.NewSelect().Model(&list).Where("user_id = ?", userID).Where(alive)
	f.narrow(s)
	total, err := page(ctx, s, p, "id")
	if err == nil {
		err = q.complete(ctx, list)
	}
	return list, total, err
}

// AssistantChoices are the user's oldest assistants, to choose one from: their ids, UUIDs and names alone.
func (q Query) AssistantChoices(ctx context.Context, userID int64, most int) (list []parley.Assistant, err error) {
	err = q.q.NewSelect().Model(&list).Column("id", "uuid", "name").Where("user_id = ?", userID).Where(alive).Order("id").
		Limit(int64(most)).Scan(ctx)
	return list, err
}

// AssistantRows is a page of the user's assistants, newest first, without what belongs to them elsewhere.
func (q Query) AssistantRows(ctx context.Context, userID int64, p Page) ([]parley.Assistant, int, error) {
	list := []parley.Assistant{}
	total, err := page(ctx, q.q.NewSelect().Model(&list).Where("user_id = ?", userID).Where(alive), p, "id DESC")
	return list, total, err
}

// Assistants are all the user's assistants, oldest first; of one type unless kind is "".
func (q Query) Assistants(ctx context.Context, userID int64, kind string) ([]parley.Assistant, error) {
	list := []parley.Assistant{}
	s := q.q.NewSelect().Model(&list).Where("user_id = ?", userID).Where(alive).Order("id")
	only(s, "type", kind)
	if err := s.Scan(ctx); err != nil {
		return nil, err
	}
	return list, q.complete(ctx, list)
}

// AssistantsAfter are the user's assistants, of one type unless kind is "", that follow an id, oldest first and at most n.
func (q Query) AssistantsAfter(ctx context.Context, userID int64, kind string, id int64, n int) ([]parley.Assistant, error) {
	list := []parley.Assistant{}
	s := q.q.NewSelect().Model(&list).Where("user_id = ? AND id > ?", userID, id).Where(alive).Order("id").Limit(int64(n))
	only(s, "type", kind)
	if err := s.Scan(ctx); err != nil {
		return nil, err
	}
	return list, q.complete(ctx, list)
}

// AssistantsNamed is a page of the user's assistants whose names match, oldest first. Until it is known who they are,
// names alone are read.
func (q Query) AssistantsNamed(ctx context.Context, userID int64, f AssistantFilter, match func(name string) bool,
	p Page) ([]parley.Assistant, int, error) {
	var all []struct {
		ID   int64
		Name string
	}
	s := q.q.NewSelect().Table("assistants").Column("id", "name").Where("user_id = ?", userID).Where(alive).Order("id")
	f.narrow(s)
	err := s.Scan(ctx, &all)
	if err != nil {
		return nil, 0, err
	}
	var found []int64
	for _, a := range all {
		if match(a.Name) {
			found = append(found, a.ID)
		}
	}
	list := []parley.Assistant{}
	from := min(len(found), (p.Number-1)*p.Size)
	ids := found[from:min(len(found), from+p.Size)]
	if len(ids) == 0 {
		return list, len(found), nil
	}
	if err := q.q.NewSelect().Model(&list).Where("user_id = ? AND id IN (?)", userID,
		bun.List(ids)).Where(alive).Order("id").Scan(ctx); err != nil {
		return nil, 0, err
	}
	return list, len(found), q.complete(ctx, list)
}

// AssistantFacts answers what the database knows about the ids that a names, for its owner userID.
func (q Query) AssistantFacts(ctx context.Context, userID int64, a *parley.Assistant) (f parley.AssistantFacts,
	err error) {
	if a.PhoneNumberID != nil {
		if f.Number, err = q.Number(ctx, userID, *a.PhoneNumberID); IsNotFound(err) {
			f.Number, err = nil, nil
		} else if err == nil && a.Type == "inbound" {
			f.NumberTaken, err = q.q.NewSelect().Model(a).Where(
				"phone_number_id = ? AND type = 'inbound' AND id <> ?", *a.PhoneNumberID, a.ID).
				Where(alive).Exists(ctx)
		}
		if err != nil {
			return f, err
		}
	}
	if a.KnowledgebaseID != nil {
		f.Knowledgebase, err = q.q.NewSelect().Table("knowledgebases").Where(
			"id = ? AND user_id = ? AND deleted_at = 0", *a.KnowledgebaseID, userID).Exists(ctx)
		if err != nil {
			return f, err
		}
	}
	if f.Tools, err = q.owned(ctx, "tools", userID, a.ToolIDs); err != nil {
		return f, err
	}
	if f.Endpoints, err = q.EndpointsOf(ctx, userID, a); err != nil {
		return f, err
	}
	if a.FolderID != nil {
		own, err := q.ownGroups(ctx, userID, parley.Folder, []int64{*a.FolderID})
		if f.Folder = own[*a.FolderID]; err != nil {
			return f, err
		}
	}
	if f.Labels, err = q.ownGroups(ctx, userID, parley.Label, a.LabelIDs); err != nil {
		return f, err
	}
	var others, numbers []int64
	for _, t := range a.Tools {
		if t.AssistantID != nil {
			others = append(others, *t.AssistantID)
		}
		if t.OutboundPhoneID != nil {
			numbers = append(numbers, *t.OutboundPhoneID)
		}
	}
	if f.Numbers, err = q.owned(ctx, "numbers", userID, numbers); err != nil {
		return f, err
	}
	f.Assistants, err = q.owned(ctx, "assistants", userID, others)
	return f, err
}

// owned says which of some ids are rows of the user's in a table.
func (q Query) owned(ctx context.Context, table string, userID int64, ids []int64) (map[int64]bool, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var found []int64
	s := q.q.NewSelect().Table(table).Column("id").Where("user_id = ? AND id IN (?)", userID, bun.List(ids))
	if table == "assistants" {
		s.Where(alive)
	}
	err := s.Scan(ctx, &found)
	own := make(map[int64]bool, len(found))
	for _, id := range found {
		own[id] = true
	}
	return own, err
}

// CreateAssistant stores a new assistant with its tools and its first version.
func (tx *Tx) CreateAssistant(ctx context.Context, userID int64, a *parley.Assistant) error {
	if err := tx.room(ctx, userID, assistantLimit, 1); err != nil {
		return err
	}
	a.ID, a.UUID, a.UserID, a.CreatedAt, a.PromptVersion = 0, uuid.NewString(), userID, parley.Now(), 1
	a.UpdatedAt = a.CreatedAt
	if err := tx.sealVariables(a); err != nil {
		return err
	}
	if _, err := tx.q.NewInsert().Model(a).Exec(ctx); err != nil {
		return numberTaken(err)
	}
	if err := tx.addToolIDs(ctx, a); err != nil {
		return err
	}
	if err := tx.fileAssistant(ctx, userID, a); err != nil {
		return err
	}
	if err := tx.keepVersion(ctx, a, nil); err != nil {
		return err
	}
	n, err := tx.weightOf(ctx, a.ID)
	tx.weighs(userID, n, true)
	return tx.note(userID, parley.AuditCreated, parley.AuditAssistant, a.ID, a, err)
}

// SaveAssistant stores a changed assistant, and a version of it.
func (tx *Tx) SaveAssistant(ctx context.Context, userID int64, old, a *parley.Assistant) error {
	a.UpdatedAt = parley.Now()
	if a.SystemPrompt != old.SystemPrompt || a.InitialMessage != old.InitialMessage {
		a.PromptVersion = old.PromptVersion + 1
	}
	if err := tx.sealVariables(a); err != nil {
		return err
	}
	err := tx.weigh(ctx, userID, bulkAssistant, "id = ?", []any{a.ID}, func() error {
		res, err := tx.q.NewUpdate().Model(a).ExcludeColumn("id", "uuid", "user_id", "created_at", "deleted_at").
			Where("id = ? AND user_id = ?", a.ID, userID).Where(alive).Exec(ctx)
		return one(res, numberTaken(err), assistantNotFound)
	})
	if err != nil {
		return err
	}
	if !slices.Equal(a.ToolIDs, old.ToolIDs) {
		if _, err := tx.q.NewRaw("DELETE FROM assistant_tools WHERE assistant_id = ?", a.ID).Exec(ctx); err != nil {
			return err
		}
		if err := tx.addToolIDs(ctx, a); err != nil {
			return err
		}
	}
	err = tx.weigh(ctx, userID, bulkVersion, "assistant_id = ?", []any{a.ID}, func() error { return tx.keepVersion(ctx, a, old) })
	return tx.note(userID, parley.AuditChanged, parley.AuditAssistant, a.ID, a.Settings(), err)
}

func numberTaken(err error) error {
	if violates(err, "assistants.phone_number_id", "assistants_number") {
		f := parley.Fields{}
		f.Add("phone_number_id", "is already assigned to another inbound assistant.")
		return f.Err()
	}
	return err
}

func (tx *Tx) addToolIDs(ctx context.Context, a *parley.Assistant) error {
	if len(a.ToolIDs) == 0 {
		return nil
	}
	type row struct {
		bun.BaseModel `bun:"assistant_tools"`
		AssistantID   int64
		ToolID        int64
		Position      int
	}
	rows := make([]row, len(a.ToolIDs))
	for i, id := range a.ToolIDs {
		rows[i] = row{AssistantID: a.ID, ToolID: id, Position: i}
	}
	_, err := tx.q.NewInsert().Model(&rows).Exec(ctx)
	return err
}

// history says whether an assistant is named by what stays when it is deleted. A deleted campaign whose leads are gone
// does not count: it goes with its assistant.
const history = `(EXISTS (SELECT 1 FROM conversations WHERE assistant_id = assistants.id) OR EXISTS (SELECT 1 FROM calls WHERE assistant_id = assistants.id)
	OR EXISTS (SELECT 1 FROM campaigns WHERE assistant_id = assistants.id AND (deleted_at = 0 OR NOT emptied)))`

// DeleteAssistant hides an assistant: it talks no more and frees its number, and its conversations and calls stay. Its
// versions, draft and tests go. One without any conversation, call or campaign is removed, and else RemoveAssistants
// removes it when these are gone.
func (tx *Tx) DeleteAssistant(ctx context.Context, userID, id int64) error {
	var own bool
	err := tx.q.NewRaw("SELECT "+ownAssistant, id, userID).Scan(ctx, &own)
	if err != nil || !own {
		return cmp.Or(err, error(parley.Errorf(parley.NotFound, assistantNotFound)))
	}
	before, err := tx.weightOf(ctx, id)
	if err != nil {
		return err
	}
	err = tx.drop(ctx, userID, parley.AuditAssistant, id, assistantNotFound, `DELETE FROM assistants
		WHERE id = ? AND user_id = ? AND deleted_at = 0 AND NOT `+history+" RETURNING name", id, userID)
	if IsNotFound(err) {
		err = tx.hideAssistant(ctx, userID, id)
	}
	if err != nil {
		return err
	}
	after, err := tx.weightOf(ctx, id)
	tx.weighs(userID, after-before, false)
	return err
}

func (tx *Tx) hideAssistant(ctx context.Context, userID, id int64) error {
	for _, table := range []string{"assistant_versions", "assistant_drafts", "tests", "test_runs"} {
		if _, err := tx.q.NewRaw("DELETE FROM "+table+" WHERE assistant_id = ?", id).Exec(ctx); err != nil {
			return err
		}
	}
	return tx.drop(ctx, userID, parley.AuditAssistant, id, assistantNotFound,
		"UPDATE assistants SET deleted_at = ?, phone_number_id = NULL WHERE id = ? AND user_id = ? AND "+alive+" RETURNING name",
		parley.Now(), id, userID)
}

// ForgottenAssistants are deleted assistants of whatever users whose conversations, calls and campaigns are gone, oldest
// first.
func (q Query) ForgottenAssistants(ctx context.Context, limit int) (ids []int64, err error) {
	err = q.q.NewRaw("SELECT id FROM assistants WHERE deleted_at > 0 AND NOT "+history+" ORDER BY id LIMIT ?", limit).Scan(ctx, &ids)
	return ids, err
}

// RemoveAssistants removes those of some assistants that ForgottenAssistants names still.
func (tx *Tx) RemoveAssistants(ctx context.Context, ids []int64) error {
	for _, id := range ids {
		weight, err := tx.weightOf(ctx, id)
		if err != nil {
			return err
		}
		var userID int64
		err = tx.q.NewRaw("DELETE FROM assistants WHERE id = ? AND deleted_at > 0 AND NOT "+history+" RETURNING user_id", id).Scan(ctx, &userID)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return err
		default:
			tx.weighs(userID, -weight, false)
		}
	}
	return nil
}

// Models are all the models that settings ever named.
func (q Query) Models(ctx context.Context) (list []parley.Model, err error) {
	err = q.q.NewRaw("SELECT id, name, code, kind, provider FROM models ORDER BY id").Scan(ctx, &list)
	return list, err
}

// KeepModels gives the models that are configured now a row each; one that had a row keeps its id.
func (tx *Tx) KeepModels(ctx context.Context, list []parley.Model) error {
	for _, m := range list {
		_, err := tx.q.NewRaw(`INSERT INTO models (kind, code, name, provider) VALUES (?, ?, ?, ?)
			ON CONFLICT (kind, code) DO UPDATE SET name = excluded.name, provider = excluded.provider`,
			m.Kind, m.Code, m.Name, m.Provider).Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

// AssistantNames are the names of some of the user's assistants, also of deleted ones.
func (q Query) AssistantNames(ctx context.Context, userID int64, ids []int64) (map[int64]string, error) {
	names := map[int64]string{}
	if len(ids) == 0 {
		return names, nil
	}
	var rows []struct {
		ID   int64
		Name string
	}
	err := q.q.NewRaw("SELECT id, name FROM assistants WHERE user_id = ? AND id IN (?)", userID, bun.List(ids)).Scan(ctx, &rows)
	for _, r := range rows {
		names[r.ID] = r.Name
	}
	return names, err
}
