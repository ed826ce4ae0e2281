package assistant

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley/internal/parley"
	"parley/internal/store"
)

// Draft is the draft of one of the user's assistants, as it stands to the live one now.
func (d *Studio) Draft(ctx context.Context, userID, id int64) (*parley.AssistantDraft, error) {
	live, err := d.DB.Assistant(ctx, userID, id)
	if err != nil {
		return nil, err
	}
	draft, err := d.DB.AssistantDraft(ctx, userID, id)
	if err != nil {
		return nil, err
	}
	if err := d.lay(ctx, d.DB.Query, live, draft); err != nil {
		return nil, err
	}
	d.Complete(draft.Assistant)
	return draft, nil
}

// Drafted is one of the user's assistants with its draft, or as it is live where it has none.
func (d *Studio) Drafted(ctx context.Context, userID, id int64) (*parley.Assistant, error) {
	live, err := d.DB.Assistant(ctx, userID, id)
	if err != nil {
		return nil, err
	}
	draft, err := d.DB.AssistantDraft(ctx, userID, id)
	if store.IsNotFound(err) {
		return live, nil
	}
	if err != nil {
		return nil, err
	}
	return d.Amended(ctx, live, draft.Changes)
}

// OfRun is an assistant as a run of its tests has it play: with the draft that the run froze. Tests of one run share it.
func (d *Studio) OfRun(ctx context.Context, live *parley.Assistant, runID int64) (*parley.Assistant, error) {
	if as := d.Stages.Shared(live.UserID, live.ID, runID); as != nil {
		return as, nil
	}
	run, err := d.DB.TestRun(ctx, live.UserID, live.ID, runID)
	if err != nil {
		return nil, err
	}
	return d.Amended(ctx, live, run.Changes)
}

// Amended is an assistant with changes laid over it, that nobody judges.
func (d *Studio) Amended(ctx context.Context, live *parley.Assistant, changes parley.Settings) (*parley.Assistant, error) {
	return d.over(ctx, d.DB.Query, live, changes)
}

// over is the live assistant with changes laid over it.
func (d *Studio) over(ctx context.Context, q store.Query, live *parley.Assistant, changes parley.Settings) (*parley.Assistant, error) {
	a, err := live.Amended(changes)
	if err == nil && !slices.Equal(a.ToolIDs, live.ToolIDs) {
		a.MidCallTools, err = q.ToolsNamed(ctx, live.UserID, a.ToolIDs)
	}
	if err == nil && !maps.EqualFunc(a.EndpointIDs(), live.EndpointIDs(), alike) {
		a.Endpoints, err = q.EndpointsOf(ctx, live.UserID, a)
	}
	if err == nil {
		d.beneath(live.UserID, a, a.Endpoints)
	}
	return a, err
}

// lay lays a draft over the live assistant, and says what stands between it and being published.
func (d *Studio) lay(ctx context.Context, q store.Query, live *parley.Assistant, draft *parley.AssistantDraft) (err error) {
	if draft.Assistant, err = d.over(ctx, q, live, draft.Changes); err != nil {
		return err
	}
	draft.LiveChanged, draft.Changed = live.UpdatedAt != draft.Base, parley.Changed(live.Settings(), draft.Assistant.Settings())
	judged := *draft.Assistant
	judged.Tools = slices.Clone(judged.Tools)
	wrong, err := problems(d.check(ctx, q, live.UserID, live, &judged, nil))
	draft.Judged(wrong)
	return err
}

// problems are the fields that a check refuses; any other error is none of them.
func problems(err error) (parley.Fields, error) {
	var e *parley.Error
	if errors.As(err, &e) && e.Kind == parley.Invalid {
		return e.Fields, nil
	}
	return nil, err
}

// SaveDraft changes the fields that body names in the draft of an assistant, which is made where there is none, and
// dropped where nothing differs from the live assistant any more. Each field must be right by itself; whether all go
// together, and with what this server has, is for Publish to judge.
func (d *Studio) SaveDraft(ctx context.Context, userID, id int64, body map[string]any) (*parley.AssistantDraft, error) {
	draft := new(parley.AssistantDraft)
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		live, err := tx.AssistantForUpdate(ctx, userID, id)
		if err != nil {
			return err
		}
		draft, err = tx.AssistantDraft(ctx, userID, id)
		there := err == nil
		if store.IsNotFound(err) {
			draft, err = &parley.AssistantDraft{AssistantID: id, Base: live.UpdatedAt}, nil
		}
		if err != nil {
			return err
		}
		if draft.Changes, err = d.amend(ctx, tx, live, draft.Changes, body); err != nil {
			return err
		}
		draft.Author = store.Author(ctx)
		switch {
		case len(draft.Changes) > 0:
			err = tx.SaveAssistantDraft(ctx, userID, draft)
		case there:
			err = tx.DeleteAssistantDraft(ctx, userID, id)
		}
		if err != nil {
			return err
		}
		return d.lay(ctx, tx.Query, live, draft)
	})
	if err != nil {
		return nil, err
	}
	d.Complete(draft.Assistant)
	return draft, nil
}

// amend is what differs from the live assistant when a body changes a draft of it.
func (d *Studio) amend(ctx context.Context, tx *store.Tx, live *parley.Assistant, changes parley.Settings,
	body map[string]any) (parley.Settings, error) {
	was, err := live.Amended(changes)
	if err != nil {
		return nil, err
	}
	a := *was
	a.Tools = slices.Clone(was.Tools)
	fields := bind(body, &a, false)
	a.Adapt(was, func(id int64) bool { return d.Catalog.For(live.UserID).TranscriberConfigured(id, a.LanguageID) })
	if err := fields.Err(); err != nil {
		return nil, err
	}
	if _, err := problems(d.check(ctx, tx.Query, live.UserID, live, &a, nil)); err != nil { // it fills in defaults
		return nil, err
	}
	from, to := live.Settings(), a.Settings()
	out := parley.Settings{}
	for _, name := range parley.Changed(from, to) {
		out[name] = to[name]
	}
	return out, nil
}

// Discard drops the draft of an assistant.
func (d *Studio) Discard(ctx context.Context, userID, id int64) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.AssistantForUpdate(ctx, userID, id); err != nil {
			return err
		}
		return tx.DeleteAssistantDraft(ctx, userID, id)
	})
}

// Publishing says how a draft goes live.
type Publishing struct {
	Note string // of the version
	// the live assistant may have changed since the draft was begun: the draft's fields are put in place of its own
	Overwrite bool
	// it has not passed the tests that the assistant requires, and goes live all the same: the version says so
	SkipTests bool
}

// Publish makes the draft of an assistant live, by the rules of any other change.
func (d *Studio) Publish(ctx context.Context, userID, id int64, how Publishing) (*parley.Assistant, error) {
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		live, err := tx.AssistantForUpdate(ctx, userID, id)
		if err != nil {
			return err
		}
		draft, err := tx.AssistantDraft(ctx, userID, id)
		if err != nil {
			return err
		}
		if live.UpdatedAt != draft.Base && !how.Overwrite {
			return overtaken(ctx, tx, live, draft)
		}
		untested, err := unproved(ctx, tx, live, draft)
		if err != nil {
			return err
		}
		note := how.Note
		switch {
		case untested != "" && !how.SkipTests:
			return parley.Errorf(parley.Conflict, "This assistant is published only when its tests have passed against the draft, and %s "+
				"Run them against the draft, or publish with skip_tests set: the version's note will say so.", untested)
		case untested != "":
			note = strings.TrimSpace(note + " (Published without its tests: " + strings.TrimSuffix(untested, ".") + ")")
		}
		tx.Sign(note)
		if err := d.change(ctx, tx, userID, id, bodyOf(draft.Changes)); err != nil {
			return err
		}
		return tx.DeleteAssistantDraft(ctx, userID, id)
	})
	if err != nil {
		return nil, err
	}
	return d.Get(ctx, userID, id)
}

// unproved says what is missing of the tests that an assistant requires of its draft, as the end of a sentence; "" where
// nothing is.
func unproved(ctx context.Context, tx *store.Tx, live *parley.Assistant, draft *parley.AssistantDraft) (string, error) {
	if !live.RequireTests {
		return "", nil
	}
	run, left, err := tx.DraftTestRun(ctx, live.UserID, live.ID, draft.UpdatedAt)
	return run.Unproved(left), err
}

// overtaken is the refusal of a draft whose live assistant has changed since it was begun.
func overtaken(ctx context.Context, tx *store.Tx, live *parley.Assistant, draft *parley.AssistantDraft) error {
	by := ""
	if v, err := tx.NewestVersion(ctx, live.UserID, live.ID); err == nil && v.CreatedAt == live.UpdatedAt && v.Author != "" {
		by = " by " + v.Author
	}
	names := make([]string, 0, len(draft.Changes))
	for _, name := range parley.SettingNames {
		if draft.Changes[name] != nil {
			names = append(names, name)
		}
	}
	return parley.Errorf(parley.Conflict, "The live assistant was changed%s after this draft was begun. "+
		"Compare the draft with it, then publish again with overwrite set: "+
		"the draft's fields (%s) replace the live ones, and all others stay as they are live. Or discard the draft.",
		by, strings.Join(names, ", "))
}

// bodyOf is settings as the body of a change.
func bodyOf(s parley.Settings) map[string]any {
	body := make(map[string]any, len(s))
	for name, raw := range s {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		var v any
		dec.Decode(&v) // it was encoded here
		body[name] = v
	}
	return body
}

// DraftChanges are the fields in which the draft of an assistant differs from the live one.
func (d *Studio) DraftChanges(ctx context.Context, userID, id int64) ([]parley.FieldChange, error) {
	live, err := d.DB.Assistant(ctx, userID, id)
	if err != nil {
		return nil, err
	}
	a, err := d.Draft(ctx, userID, id)
	if err != nil {
		return nil, err
	}
	return parley.Compare(live.Settings(), a.Assistant.Settings()), nil
}

// Version is one version of one of the user's assistants.
func (d *Studio) Version(ctx context.Context, userID, id int64, version int) (*parley.AssistantVersion, error) {
	if _, err := d.DB.Assistant(ctx, userID, id); err != nil {
		return nil, err
	}
	return d.DB.AssistantVersion(ctx, userID, id, version)
}

// Comparison is what changed from one version of an assistant to another.
type Comparison struct {
	From    int                  `json:"from"`
	To      int                  `json:"to"`
	Changes []parley.FieldChange `json:"changes" doc:"The fields that differ, among those that both versions have."`
}

// Compare compares two versions of one of the user's assistants; with the newest one where to is 0.
func (d *Studio) Compare(ctx context.Context, userID, id int64, from, to int) (*Comparison, error) {
	was, err := d.Version(ctx, userID, id, from)
	if err != nil {
		return nil, err
	}
	is, err := d.DB.NewestVersion(ctx, userID, id)
	if to != 0 {
		is, err = d.DB.AssistantVersion(ctx, userID, id, to)
	}
	if err != nil {
		return nil, err
	}
	return &Comparison{was.Version, is.Version, parley.Compare(was.Settings, is.Settings)}, nil
}

// Restore makes an older version of an assistant live again, as a new version.
func (d *Studio) Restore(ctx context.Context, userID, id int64, version int, note string) (*parley.Assistant, error) {
	v, err := d.Version(ctx, userID, id, version)
	if err != nil {
		return nil, err
	}
	note = cmp.Or(note, "Restored version "+strconv.Itoa(v.Version))
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		tx.Sign(note)
		return d.change(ctx, tx, userID, id, bodyOf(v.Settings))
	})
	if err != nil {
		return nil, err
	}
	return d.Get(ctx, userID, id)
}
