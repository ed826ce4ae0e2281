package call

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/riverqueue/river"

	"parley/internal/audio"
	"parley/internal/blob"
	"parley/internal/parley"
	"parley/internal/store"
)

// A recording grows in a file of Config.Dir that is named after its call, and moves to blob storage when the call has
// ended. A file without a live call was left by a process that died; the next process with this directory repairs and
// stores it.

// recording is one that is being written.
type recording struct{ file *os.File }

func (d *Center) recordingPath(id int64) string {
	return filepath.Join(d.Dir, strconv.FormatInt(id, 10)+".wav")
}

// record begins a recording. It returns nil if that fails: the call goes on without one.
func (l *live) record(path string) *recording {
	err := os.MkdirAll(l.Dir, 0o700)
	var f *os.File
	if err == nil {
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	}
	if err != nil {
		slog.ErrorContext(l.ctx, "a call or a leg is not recorded", "call", l.id, "file", filepath.Base(path), "error", err)
		return nil
	}
	return &recording{f}
}

func (r *recording) close() error { return r.file.Close() }

// upload stores the recording of an ended call in blob storage and removes the file.
func (d *Center) upload(ctx context.Context, c *parley.Call) error {
	path := d.recordingPath(c.ID)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) { // stored by another, or taken away
		if err := d.uploadLegs(ctx, c, false); err != nil {
			return err
		}
		return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			tx.AfterCommit(d.wake)
			return tx.NoRecording(ctx, c.ID)
		})
	}
	if err != nil {
		return err
	}
	defer f.Close()
	// A file that was closed properly stays as it is.
	name, size := d.recordingName(c.ID), int64(0)
	if audio.RepairRecording(f) != nil || !hasSound(f) {
		name = "" // it broke off before its beginning was written
	}
	if err := d.uploadLegs(ctx, c, name != ""); err != nil {
		return err
	}
	if name == "" {
		// nothing to store
	} else if size, err = d.Blobs.Put(ctx, name, f); err != nil {
		return err
	}
	var kept bool
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		tx.AfterCommit(d.wake)
		kept, err = tx.KeepRecording(ctx, c.ID, name, size)
		return err
	})
	if err != nil {
		return err
	}
	if !kept && name != "" { // the call was deleted meanwhile
		if err := d.Blobs.Delete(ctx, name); err != nil {
			return err
		}
	}
	return os.Remove(path)
}

// whileServing is a context for the work that a call leaves behind: it lasts as long as the server runs, and for a
// minute after it starts to stop. What gets cut off is done by recover.
func (d *Center) whileServing() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	stop := context.AfterFunc(d.closing, func() { time.AfterFunc(time.Minute, cancel) })
	return ctx, func() { stop(); cancel() }
}

// hasSound reports whether a recording is more than its header, and seeks to its beginning.
func hasSound(f io.ReadSeeker) bool {
	rewind := func() bool { _, err := f.Seek(0, io.SeekStart); return err == nil }
	if !rewind() {
		return false
	}
	r, err := audio.NewWAVReader(f)
	if err == nil {
		_, err = r.Read(make([]int16, 2))
	}
	return err == nil && rewind()
}

// recordingName is a recording's name in blob storage. It can't be guessed, and storing twice stores once.
func (d *Center) recordingName(id int64) string {
	return fmt.Sprintf("recordings/%d-%s.wav", id, d.sign("name", id, 0)[:24])
}

// recover stores the recordings left behind by earlier processes.
func (d *Center) recover(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(d.Dir, "*.wav"))
	if err != nil {
		return err
	}
	var failed []error
	for _, path := range files {
		of, leg, ofLeg := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".wav"), "-")
		id, err := strconv.ParseInt(of, 10, 64)
		if err != nil || d.here(id) != nil {
			continue
		}
		c, err := d.DB.RecordedCall(ctx, id)
		name := d.recordingName(id)
		if ofLeg {
			legID, _ := strconv.ParseInt(leg, 10, 64)
			name = d.tapeName(id, legID)
		}
		switch {
		case store.IsNotFound(err): // deleted; it may have been stored already, and not yet told
			if err = d.Blobs.Delete(ctx, name); err == nil {
				err = os.Remove(path)
			}
		case err == nil && c.EndedAt != 0 && !c.RecordingDue: // stored already
			err = os.Remove(path)
		case err == nil && c.EndedAt != 0 && !ofLeg: // with those of its legs
			err = d.upload(ctx, c)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// linkFor is the minimum validity of a link to a recording. It lasts until the end of a day, so that the link stays the
// same for a while.
const linkFor = 7 * 24 * time.Hour

// RecordingPath is a signed path to a call's recording, below the API; "" if there is none.
func (d *Center) RecordingPath(c *parley.Call) string {
	if c.Recording == "" {
		return ""
	}
	expires := linkExpires()
	return fmt.Sprintf("/recordings/%d/%d/%s", c.ID, expires, d.sign("link", c.ID, expires))
}

func linkExpires() int64 {
	return time.Now().Add(linkFor).UTC().Truncate(24*time.Hour).AddDate(0, 0, 1).Unix()
}

// linkHolds reports whether a link has the signature that it needs, and has not expired.
func linkHolds(signature, needed string, expires int64) bool {
	return hmac.Equal([]byte(signature), []byte(needed)) && time.Now().Unix() < expires
}

var noRecording = parley.Errorf(parley.NotFound, "Recording not found")

// LinkedCall is the call whose recording a signed path leads to. Whatever is wrong, the error says that there is
// nothing there.
func (d *Center) LinkedCall(ctx context.Context, id, expires int64, signature string) (*parley.Call, error) {
	if !linkHolds(signature, d.sign("link", id, expires), expires) {
		return nil, noRecording
	}
	c, err := d.DB.RecordedCall(ctx, id)
	if store.IsNotFound(err) || err == nil && c.Recording == "" {
		return nil, noRecording
	}
	return c, err
}

func (d *Center) sign(what string, id, expires int64) string {
	m := hmac.New(sha256.New, d.Secret)
	fmt.Fprintf(m, "parley recording %s %d %d", what, id, expires)
	return hex.EncodeToString(m.Sum(nil))
}

// OpenRecording opens a call's recording. The error is NotFound if there is none.
func (d *Center) OpenRecording(ctx context.Context, c *parley.Call) (blob.Object, error) {
	return d.openRecording(ctx, c.Recording)
}

func (d *Center) openRecording(ctx context.Context, name string) (blob.Object, error) {
	if name == "" {
		return nil, noRecording
	}
	o, err := d.Blobs.Open(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		err = noRecording
	}
	return o, err
}

// Delete removes one of the user's calls with its recording and its events. The error is a Conflict while the call is
// live.
func (d *Center) Delete(ctx context.Context, userID, id int64) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		names, err := tx.DeleteCall(ctx, userID, id)
		if err != nil {
			return err
		}
		return removeRecordings(ctx, tx, names)
	})
}

// some is how many calls are removed in one transaction, so that others get their turn.
const some = 200

// Erased counts what was removed of a customer's data.
type Erased struct {
	Conversations int `json:"conversations"`
	Messages      int `json:"messages"` // text messages
	Calls         int `json:"calls"`
}

// EraseCustomer removes a user's data about a customer, given by phone number or a channel's name for them. A national number is
// read as it is dialled in the country; data kept under the name as it was given goes too. It refuses while the customer is in a call.
func (d *Center) EraseCustomer(ctx context.Context, userID int64, who, country string) (gone Erased, err error) {
	if phone, err := parley.ReadPhone(who, country); err == nil && phone != who {
		if gone, err = d.EraseCustomer(ctx, userID, phone, country); err != nil {
			return gone, err
		}
	}
	err = d.DB.InSteps(ctx, func(ctx context.Context, tx *store.Tx) (bool, error) {
		names, calls, err := tx.EraseCalls(ctx, userID, who, some) // first: it refuses
		if err != nil {
			return false, err
		}
		if err := tx.EraseRefusals(ctx, userID, who); err != nil {
			return false, err
		}
		if err := removeRecordings(ctx, tx, names); err != nil {
			return false, err
		}
		conversations, more, err := tx.EraseCustomer(ctx, userID, who)
		if err != nil {
			return false, err
		}
		messages, moreMessages, err := tx.EraseSMS(ctx, userID, who)
		tx.AfterCommit(func() {
			gone.Conversations, gone.Messages, gone.Calls = gone.Conversations+conversations,
				gone.Messages+messages, gone.Calls+calls
		})
		return calls == some || more || moreMessages, err
	})
	return gone, err
}

// Forget removes recordings, and whole calls, that ended before the given times, and the recorded messages of assistants
// that are gone. A zero time removes none.
func (d *Center) Forget(ctx context.Context, recordings, calls parley.Time) error {
	if err := d.forgetVoicemail(ctx); err != nil {
		return err
	}
	for n := some; recordings > 0 && n >= some; {
		err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			names, err := tx.ForgetRecordings(ctx, recordings, some)
			n = len(names)
			return errors.Join(err, removeRecordings(ctx, tx, names))
		})
		if err != nil {
			return err
		}
	}
	if calls > 0 {
		if err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.ForgetRefusals(ctx, calls) }); err != nil {
			return err
		}
	}
	for n := some; calls > 0 && n == some; {
		err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			names, count, err := tx.ForgetCalls(ctx, calls, some)
			n = count
			return errors.Join(err, removeRecordings(ctx, tx, names))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// removeArgs is the job that removes recordings from blob storage.
type removeArgs struct {
	Names []string `json:"names"`
}

func (removeArgs) Kind() string { return "recording_remove" }

func removeRecordings(ctx context.Context, tx *store.Tx, names []string) error {
	if len(names) == 0 {
		return nil
	}
	return tx.Enqueue(ctx, removeArgs{names}, nil)
}

// AddWorkers registers the workers of this package's jobs.
func (d *Center) AddWorkers(w *river.Workers) {
	river.AddWorker(w, river.WorkFunc(func(ctx context.Context, j *river.Job[removeArgs]) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		for _, name := range j.Args.Names {
			if err := d.Blobs.Delete(ctx, name); err != nil {
				return err
			}
		}
		return nil
	}))
}
