package store

import (
	"context"
	"strconv"

	"parley/internal/parley"
)

// VoicemailRecording is the recorded message of one of the user's assistants.
func (q Query) VoicemailRecording(ctx context.Context, userID, assistantID int64) (*parley.VoicemailRecording, error) {
	v := new(parley.VoicemailRecording)
	err := q.q.NewSelect().Model(v).Where("assistant_id = ? AND user_id = ?", assistantID, userID).Scan(ctx)
	return v, notFound(err, "This assistant has no recorded message")
}

// KeepVoicemailRecording stores the recorded message of one of the user's assistants, and gives the blob of the former
// one, "" where there was none.
func (tx *Tx) KeepVoicemailRecording(ctx context.Context, userID int64, v *parley.VoicemailRecording) (former string, err error) {
	a, err := tx.AssistantForUpdate(ctx, userID, v.AssistantID) // two uploads at once replace one another
	if err != nil {
		return "", err
	}
	former, err = tx.dropVoicemailRecording(ctx, userID, v.AssistantID)
	if err != nil && !IsNotFound(err) {
		return "", err
	}
	v.UserID, v.CreatedAt = userID, parley.DateTime(parley.Now())
	if _, err = tx.q.NewInsert().Model(v).Exec(ctx); err != nil {
		return "", err
	}
	tx.enterVoicemail(parley.AuditCreated, a)
	return former, nil
}

// DropVoicemailRecording removes the recorded message of one of the user's assistants, and gives its blob.
func (tx *Tx) DropVoicemailRecording(ctx context.Context, userID, assistantID int64) (blob string, err error) {
	a, err := tx.AssistantForUpdate(ctx, userID, assistantID)
	if err == nil {
		blob, err = tx.dropVoicemailRecording(ctx, userID, assistantID)
	}
	if err == nil {
		tx.enterVoicemail(parley.AuditDeleted, a)
	}
	return blob, err
}

// enterVoicemail names the assistant whose recorded message is changed in the audit log.
func (tx *Tx) enterVoicemail(action parley.AuditAction, a *parley.Assistant) {
	tx.enter(a.UserID, action, thing{parley.AuditVoicemail, strconv.FormatInt(a.ID, 10)}, a.Name, []parley.AuditChange{})
}

func (tx *Tx) dropVoicemailRecording(ctx context.Context, userID, assistantID int64) (blob string, err error) {
	var rows []parley.VoicemailRecording
	err = tx.q.NewRaw("DELETE FROM voicemail_recordings WHERE assistant_id = ? AND user_id = ? RETURNING assistant_id, blob",
		assistantID, userID).Scan(ctx, &rows)
	if err == nil && len(rows) == 0 {
		_, err = tx.VoicemailRecording(ctx, userID, assistantID)
	}
	if err != nil {
		return "", err
	}
	return rows[0].Blob, nil
}

// StaleVoicemailRecordings removes at most limit recorded messages of assistants that are gone, and gives their blobs.
func (tx *Tx) StaleVoicemailRecordings(ctx context.Context, limit int) (blobs []string, err error) {
	err = tx.q.NewRaw(`DELETE FROM voicemail_recordings WHERE assistant_id IN (SELECT assistant_id FROM voicemail_recordings v
		WHERE NOT EXISTS (SELECT 1 FROM assistants WHERE id = v.assistant_id AND deleted_at = 0) LIMIT ?) RETURNING blob`, limit).Scan(ctx, &blobs)
	return blobs, err
}
