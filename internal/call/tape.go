package call

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"parley/internal/audio"
	"parley/internal/blob"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/voice"
)

// Whoever is called into a recorded call has a recording of their own, from the moment they answer: left what they say,
// right what they hear. It has what the customer does not hear: the words before a transfer, and what is whispered. Its
// file stands beside the call's, and goes into blob storage before it.

// tape is the recording of a leg; nil is none.
type tape struct {
	file *os.File
	*voice.Recording
}

func (d *Center) tapePath(callID, legID int64) string {
	return filepath.Join(d.Dir, fmt.Sprintf("%d-%d.wav", callID, legID))
}

// tape begins the recording of a leg that was answered. It returns nil if that fails: the leg goes on without one.
func (l *live) tape(leg *parley.CallLeg, rate audio.Rate) *tape {
	r := l.record(l.tapePath(l.id, leg.ID))
	if r == nil {
		return nil
	}
	rec, err := voice.NewRecording(r.file, rate)
	if err != nil {
		slog.ErrorContext(l.ctx, "a leg is not recorded", "call", l.id, "leg", leg.ID, "error", errors.Join(err, r.close()))
		return nil
	}
	return &tape{r.file, rec}
}

// taped is the tape of somebody who has answered, in a call that is recorded; nil in others.
func (l *live) taped(leg *parley.CallLeg, far audio.Leg) *tape {
	if !l.a.Record {
		return nil
	}
	return l.tape(leg, far.Rate())
}

// end ends the recording. Nothing may be put after it.
func (t *tape) end() {
	if t == nil {
		return
	}
	if err := errors.Join(t.Close(), t.file.Close()); err != nil {
		slog.Error("write a leg's recording", "file", t.file.Name(), "error", err)
	}
}

// uploadLegs stores the recordings of an ended call's legs, or drops them if they are not wanted.
func (d *Center) uploadLegs(ctx context.Context, c *parley.Call, wanted bool) error {
	legs, err := d.DB.CallLegs(ctx, c.UserID, c.ID)
	for i := range legs {
		if err == nil {
			err = d.uploadLeg(ctx, &legs[i], wanted)
		}
	}
	return err
}

func (d *Center) uploadLeg(ctx context.Context, leg *parley.CallLeg, wanted bool) error {
	path, name := d.tapePath(leg.CallID, leg.ID), d.tapeName(leg.CallID, leg.ID)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) { // none was made, or it is stored already
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	// A telephone that lost the race to answer has nothing worth keeping.
	late := leg.Kind == parley.LegRing && leg.JoinedAt == 0
	if !wanted || late || audio.RepairRecording(f) != nil || !hasSound(f) {
		return os.Remove(path)
	}
	if _, err := d.Blobs.Put(ctx, name, f); err != nil {
		return err
	}
	var kept bool
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		kept, err = tx.KeepLegRecording(ctx, leg.ID, name)
		return err
	})
	if err == nil && !kept { // the call was deleted meanwhile
		err = d.Blobs.Delete(ctx, name)
	}
	if err != nil {
		return err
	}
	return os.Remove(path)
}

// tapeName is the name of a leg's recording in blob storage.
func (d *Center) tapeName(callID, legID int64) string {
	return fmt.Sprintf("recordings/%d-%d-%s.wav", callID, legID, d.sign(fmt.Sprintf("leg %d name", legID), callID, 0)[:24])
}

// LegRecordingPath is a signed path to a leg's recording, below the API; "" if there is none.
func (d *Center) LegRecordingPath(leg *parley.CallLeg) string {
	if leg.Recording == "" {
		return ""
	}
	expires := linkExpires()
	return fmt.Sprintf("/recordings/%d/legs/%d/%d/%s", leg.CallID, leg.ID, expires, d.signLeg(leg.CallID, leg.ID, expires))
}

func (d *Center) signLeg(callID, legID, expires int64) string {
	return d.sign(fmt.Sprintf("leg %d link", legID), callID, expires)
}

// LinkLegs gives legs the links to their recordings, below the API's address.
func (d *Center) LinkLegs(legs []parley.CallLeg, base string) {
	for i := range legs {
		if path := d.LegRecordingPath(&legs[i]); path != "" {
			legs[i].RecordingURL = base + path
		}
	}
}

// OpenLegRecording opens a leg's recording. The error is NotFound if there is none.
func (d *Center) OpenLegRecording(ctx context.Context, leg *parley.CallLeg) (blob.Object, error) {
	return d.openRecording(ctx, leg.Recording)
}

// LinkedLeg is the leg whose recording a signed path leads to. Whatever is wrong, the error says that there is nothing
// there.
func (d *Center) LinkedLeg(ctx context.Context, id, legID, expires int64, signature string) (*parley.CallLeg, error) {
	if !linkHolds(signature, d.signLeg(id, legID, expires), expires) {
		return nil, noRecording
	}
	c, err := d.DB.RecordedCall(ctx, id)
	var leg *parley.CallLeg
	if err == nil {
		leg, err = d.DB.CallLeg(ctx, c.UserID, id, legID)
	}
	if store.IsNotFound(err) || err == nil && leg.Recording == "" {
		return nil, noRecording
	}
	return leg, err
}
