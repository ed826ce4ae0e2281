package call_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/call"
	"parley/internal/parley"
	"parley/internal/store"
)

// heard reads a call's recording.
func (n *node) heard(c *parley.Call) []byte {
	n.h.Helper()
	o, err := n.OpenRecording(context.Background(), c)
	n.h.must(err)
	defer o.Close()
	b, err := io.ReadAll(o)
	n.h.must(err)
	if int64(len(b)) != c.RecordingSize {
		n.h.Errorf("%d bytes, said to be %d", len(b), c.RecordingSize)
	}
	return b
}

func TestRecording(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.change(h.a, `{"record":true}`)
		n := h.node()
		c := n.start()
		leg := h.answered()
		if live := h.status(c.ID, parley.CallInProgress); !live.RecordingDue || n.RecordingPath(live) != "" ||
			len(h.files()) != 1 {
			t.Errorf("recording %+v", live)
		}
		leg.hangUp(parley.CustomerHangup)
		got := h.reported(c.ID)
		wav := n.heard(got)
		if got.RecordingDue || string(wav[:4]) != "RIFF" || binary.LittleEndian.Uint16(wav[22:]) != 2 ||
			binary.LittleEndian.Uint32(wav[24:]) != 8000 || len(wav) != 44+640 || len(h.files()) != 0 {
			t.Errorf("%d bytes % x, files %v, %+v", len(wav), wav[:44], h.files(), got)
		}
		// The event's link leads to the recording; no other link does.
		link, _ := h.events()[0]["recording_url"].(string)
		path, ok := strings.CutPrefix(link, "https://voice.example.com/api")
		parts := strings.Split(path, "/")
		if !ok || path != n.RecordingPath(got) || len(parts) != 5 {
			t.Fatalf("link %q", link)
		}
		id, _ := strconv.ParseInt(parts[2], 10, 64)
		expires, _ := strconv.ParseInt(parts[3], 10, 64)
		if left := time.Until(time.Unix(expires, 0)); left < 7*24*time.Hour || left > 8*24*time.Hour {
			t.Errorf("the link holds for %s", left)
		}
		if found, err := n.LinkedCall(t.Context(), id, expires, parts[4]); err != nil || found.ID != c.ID {
			t.Errorf("%+v: %v", found, err)
		}
		other := n.said()
		h.reported(other.ID)
		elsewhere := h.node(func(c *call.Config) { c.Secret = []byte("another secret that signs") })
		for name, try := range map[string]func() (*parley.Call, error){
			"longer": func() (*parley.Call, error) { return n.LinkedCall(t.Context(), id, expires+1, parts[4]) },
			"another call": func() (*parley.Call, error) {
				return n.LinkedCall(t.Context(), other.ID, expires,
					parts[4])
			},
			"no signature": func() (*parley.Call, error) { return n.LinkedCall(t.Context(), id, expires, "") },
			"another's key": func() (*parley.Call, error) {
				return elsewhere.LinkedCall(t.Context(), id, expires,
					parts[4])
			},
		} {
			if found, err := try(); !store.IsNotFound(err) {
				t.Errorf("%s: %+v, %v", name, found, err)
			}
		}
		h.change(h.a, `{"include_recording_in_webhook":false}`)
		h.reported(n.said().ID)
		if events := h.events(); events[len(events)-1]["recording_url"] != nil {
			t.Errorf("told %v", events)
		}
	})
}

// Who is called into a recorded call has a recording of their own, from their answer on, which goes with the call's.
func TestLegRecording(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.change(h.a, `{"record":true}`)
		d := newDesk(h)
		n := h.node(d.config)
		id := n.start().ID
		far := h.answered()
		far.session(h)
		h.model.Script(aitest.Behaviour{Text: "She wants a cake."})
		go d.who.presses('1')
		line, err := transfer(t.Context(), far.session(h), toDesk)
		h.must(err)
		said, heard := make(audio.Frame, 320), make(audio.Frame, 320)
		for i := range said {
			said[i] = 1000
		}
		line.Connect(steady(-2000))
		d.who.peer.Tick(said, heard)
		line.Connect(nil)
		d.who.peer.Tick(said, heard)
		line.Close()
		<-d.who.ended
		far.hangUp(parley.Transferred)
		c := h.reported(id)
		legs, err := h.db.CallLegs(t.Context(), h.user.ID, id)
		h.must(err)
		leg := legs[0]
		o, err := n.OpenLegRecording(t.Context(), &leg)
		h.must(err)
		wav, err := io.ReadAll(o)
		h.must(errors.Join(err, o.Close()))
		at := func(i int) int16 { return int16(binary.LittleEndian.Uint16(wav[44+2*i:])) }
		if len(wav) != 44+2*4*320 || binary.LittleEndian.Uint32(wav[24:]) != 16000 || at(0) != 1000 || at(1) != -2000 ||
			at(640) != 1000 || at(641) != 0 || c.Recording == "" || c.Recording == leg.Recording || len(h.files()) != 0 {
			t.Errorf("%d bytes, %d and %d, then %d and %d; files %v", len(wav), at(0), at(1), at(640), at(641), h.files())
		}
		// The link leads to the leg's recording, and to no other.
		told := h.events()[0]["legs"].([]any)[0].(map[string]any)["recording_url"]
		path, _ := strings.CutPrefix(fmt.Sprint(told), "https://voice.example.com/api")
		parts := strings.Split(path, "/")
		if path != n.LegRecordingPath(&leg) || len(parts) != 7 {
			t.Fatalf("told of %v", told)
		}
		expires, _ := strconv.ParseInt(parts[5], 10, 64)
		if found, err := n.LinkedLeg(t.Context(), id, leg.ID, expires, parts[6]); err != nil || found.ID != leg.ID {
			t.Errorf("%+v: %v", found, err)
		}
		second := &parley.CallLeg{CallID: id, Kind: parley.LegGuest}
		h.write(func(ctx context.Context, tx *store.Tx) error {
			if err := tx.CreateLeg(ctx, h.user.ID, second); err != nil {
				return err
			}
			_, err := tx.KeepLegRecording(ctx, second.ID, "recordings/second")
			return err
		})
		calls := strings.Split(n.RecordingPath(c), "/")
		for name, try := range map[string]func() (*parley.CallLeg, error){
			"longer":      func() (*parley.CallLeg, error) { return n.LinkedLeg(t.Context(), id, leg.ID, expires+1, parts[6]) },
			"another leg": func() (*parley.CallLeg, error) { return n.LinkedLeg(t.Context(), id, second.ID, expires, parts[6]) },
			"the call's":  func() (*parley.CallLeg, error) { return n.LinkedLeg(t.Context(), id, leg.ID, expires, calls[4]) },
		} {
			if found, err := try(); !store.IsNotFound(err) {
				t.Errorf("%s: %+v, %v", name, found, err)
			}
		}
		// A recording that has had its time is taken from the legs too.
		h.must(n.Forget(t.Context(), parley.Time(c.EndedAt)+1, 0))
		legs, err = h.db.CallLegs(t.Context(), h.user.ID, id)
		if h.must(err); legs[0].Recording != "" {
			t.Errorf("left %+v", legs)
		}
	})
}

// steady is a peer that says one value all the time.
type steady int16

func (steady) Hear(audio.Frame) {}
func (steady) Digit(byte)       {}
func (s steady) Tick(_, out audio.Frame) bool {
	for i := range out {
		out[i] = int16(s)
	}
	return true
}

// When a process died, the next one repairs and stores its recordings; a file that is no recording, or that belongs to
// no call, is deleted.
func TestRecordingOfTheDead(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.change(h.a, `{"record":true}`)
		dead := h.node(func(c *call.Config) { c.Dir = t.TempDir() })
		whole, broken := dead.start(), dead.start()
		h.answered()
		h.answered()
		for _, c := range []*parley.Call{whole, broken} {
			h.until(c.ID, "recording", func(c *parley.Call) bool { return c.RecordingDue })
		}
		dead.kill()
		// What the dead process left: a file with an empty header and half a sample at its end.
		torn := append(audio.AppendWAVHeader(nil, 8000, 2, 0), make([]byte, 4*800+3)...)
		file := func(id int64) string { return filepath.Join(h.dir, strconv.FormatInt(id, 10)+".wav") }
		h.must(os.WriteFile(file(whole.ID), torn, 0o600))
		h.must(os.WriteFile(file(broken.ID), []byte("RIFF"), 0o600))
		leg := &parley.CallLeg{CallID: whole.ID, Kind: parley.LegTransfer, Status: parley.LegJoined}
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateLeg(ctx, h.user.ID, leg) })
		ofLeg := filepath.Join(h.dir, fmt.Sprintf("%d-%d.wav", whole.ID, leg.ID))
		ofNone := filepath.Join(h.dir, "9999-1.wav")
		h.must(os.WriteFile(ofLeg, torn, 0o600))
		h.must(os.WriteFile(ofNone, torn, 0o600))
		h.must(os.WriteFile(file(9999), torn, 0o600)) // the call was deleted while its recording was being stored
		deleted := dead.RecordingName(9999)
		if _, err := h.blobs.Put(t.Context(), deleted, strings.NewReader("sound")); err != nil {
			t.Fatal(err)
		}
		n := h.node(func(c *call.Config) { c.Lost = time.Second })
		got := h.until(whole.ID, "stored", func(c *parley.Call) bool { return c.Recording != "" })
		if wav := n.heard(got); len(wav) != 44+4*800 || binary.LittleEndian.Uint32(wav[40:]) != 4*800 {
			t.Errorf("%d bytes", len(wav))
		}
		if stored, err := h.db.CallLeg(t.Context(), h.user.ID, whole.ID, leg.ID); err != nil || stored.Recording == "" ||
			exists(ofLeg) {
			t.Errorf("the leg: %+v, %v", stored, err)
		}
		none := h.until(broken.ID, "without a recording", func(c *parley.Call) bool { return !c.RecordingDue })
		h.reported(whole.ID)
		h.reported(broken.ID)
		if none.Recording != "" || exists(file(9999)) || exists(ofNone) || exists(file(whole.ID)) || exists(file(broken.ID)) {
			t.Errorf("left %v, %+v", h.files(), none)
		}
		if o, err := h.blobs.Open(t.Context(), deleted); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what was deleted is still there: %v, %v", o, err)
		}
		if _, err := n.OpenRecording(t.Context(), none); !store.IsNotFound(err) {
			t.Errorf("opened nothing: %v", err)
		}
		if events := h.events(); len(events) != 2 {
			t.Errorf("told %v", events)
		}
	})
}

// Deleting a call deletes its recording and its events; a live call stays.
func TestDelete(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.change(h.a, `{"record":true}`)
		n := h.node()
		jobs := river.NewWorkers()
		n.AddWorkers(jobs)
		ctx, stop := context.WithCancel(context.Background())
		worked := make(chan struct{})
		go func() {
			defer close(worked)
			h.db.Work(ctx, ctx, store.Jobs{Workers: jobs,
				Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2}}})
		}()
		defer func() { stop(); <-worked }()
		gone := func(name string) {
			t.Helper()
			for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
				o, err := h.blobs.Open(t.Context(), name)
				if errors.Is(err, fs.ErrNotExist) {
					return
				}
				h.must(err)
				o.Close()
				if time.Now().After(deadline) {
					t.Fatalf("%s is still there", name)
				}
			}
		}
		c := n.start()
		leg := h.answered()
		h.status(c.ID, parley.CallInProgress)
		var e *parley.Error
		if err := n.Delete(t.Context(), h.user.ID, c.ID); !errors.As(err, &e) || e.Kind != parley.Conflict {
			t.Errorf("a live one: %v", err)
		}
		leg.hangUp(parley.CustomerHangup)
		over := h.reported(c.ID)
		if err := n.Delete(t.Context(), storetestUserOnce(h).ID, c.ID); !store.IsNotFound(err) {
			t.Errorf("another's: %v", err)
		}
		h.must(n.Delete(t.Context(), h.user.ID, c.ID))
		gone(over.Recording)
		if _, err := h.db.Call(t.Context(), h.user.ID, c.ID); !store.IsNotFound(err) || len(h.events()) != 0 {
			t.Errorf("left: %v, %d events", err, len(h.events()))
		}
		if _, _, entries := h.money(); len(entries) != 2 {
			t.Errorf("%d entries of the ledger are left", len(entries))
		}
		// Erasing a customer, and the age of recordings and calls.
		mine, others := h.reported(n.said().ID), n.start(to("+12025550142"))
		h.answered().hangUp(parley.CustomerHangup)
		h.reported(others.ID)
		if erased, err := n.EraseCustomer(t.Context(), h.user.ID, "+12025550199", ""); err != nil || erased.Calls != 1 {
			t.Errorf("erased %+v: %v", erased, err)
		}
		gone(mine.Recording)
		kept := h.call(others.ID)
		h.must(n.Forget(t.Context(), parley.Time(kept.EndedAt), parley.Time(kept.EndedAt)))
		h.must(n.Forget(t.Context(), 0, 0))
		if c := h.call(others.ID); c.Recording == "" {
			t.Error("forgotten before its time")
		}
		h.must(n.Forget(t.Context(), parley.Time(kept.EndedAt)+1, 0))
		gone(kept.Recording)
		if c := h.call(others.ID); c.Recording != "" || c.RecordingSize != 0 {
			t.Errorf("the recording stands: %+v", c)
		}
		h.must(n.Forget(t.Context(), 0, parley.Time(kept.EndedAt)+1))
		if _, err := h.db.Call(t.Context(), h.user.ID, others.ID); !store.IsNotFound(err) {
			t.Errorf("the call stands: %v", err)
		}
	})
}
