package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
)

// SphinxCode is the code of the built-in recognizer.
const SphinxCode = "pocketsphinx"

// DefaultModel is where Debian's package pocketsphinx-en-us has its model.
const DefaultModel = "/usr/share/pocketsphinx/model/en-us"

// DecodersPerCore is how many decoders live at once per core: one is busy for a quarter to a half of the time that
// somebody speaks.
const DecodersPerCore = 4

// failTime is after what time a process that could not be started is tried again.
const failTime = 5 * time.Second

// limits are how long things may take.
type limits struct {
	load   time.Duration // of the library and its model
	decode time.Duration // of a piece of sound, the search at the end of an utterance too
	wait   time.Duration // for a decoder, when all are busy
}

var usualLimits = limits{load: time.Minute, decode: 10 * time.Second, wait: 3 * time.Second}

// SphinxConfig says what to recognize with; the zero value uses what Debian's packages install.
type SphinxConfig struct {
	Python string // "": python3 on the PATH
	Model  string // the directory; "": DefaultModel
	// Decoders is how many live at once; 0: four for each core.
	Decoders int
}

// Sphinx understands English with PocketSphinx. It implements ai.Recognizer; it knows no keywords.
//
// The library is C and is loaded by a process of its own: loaded into this one it would cost the server its being one
// static file, and a crash would end all calls. That process runs a few lines of Python, which every Debian has, and
// forks: the model is in memory once (100 MB), a decoder adds some 25 MB. A recognizer has a decoder from its first
// utterance on and keeps it, with what it has learned of the line, until another recognizer needs it more.
type Sphinx struct {
	c      SphinxConfig
	limits limits

	mu      sync.Mutex
	closed  bool
	nursery *nursery  // the present or last one
	failed  time.Time // when the last one was found to have failed
	live    int       // decoders
	idle    []*decoder
	changed chan struct{} // closed and replaced when a decoder may be had
}

// NewSphinx prepares a recognizer; nothing is started before the first Listen. Close it.
func NewSphinx(c SphinxConfig) *Sphinx {
	c.Python, c.Model = cmp.Or(c.Python, "python3"), cmp.Or(c.Model, DefaultModel)
	c.Decoders = cmp.Or(c.Decoders, DecodersPerCore*runtime.NumCPU())
	return &Sphinx{c: c, limits: usualLimits, changed: make(chan struct{})}
}

// absent says to an assistant's owner what is missing, before what the operator installs.
const absent = "PocketSphinx, which listens, is not installed on this server. Choose another transcriber, or ask its operator:"

// Find checks whether what is needed is installed; the error, of kind Config, says what to install.
func (s *Sphinx) Find() error {
	if _, err := os.Stat(filepath.Join(s.c.Model, "en-us.lm.bin")); err != nil {
		return &ai.Error{Kind: ai.Config, Err: fmt.Errorf("pocketsphinx has no model: apt-get install pocketsphinx pocketsphinx-en-us (%w)", err),
			Mend: absent + " apt-get install pocketsphinx pocketsphinx-en-us."}
	}
	if _, err := exec.LookPath(s.c.Python); err != nil {
		return &ai.Error{Kind: ai.Config, Err: fmt.Errorf("pocketsphinx is run by Python: apt-get install python3 (%w)", err),
			Mend: absent + " apt-get install python3."}
	}
	return nil
}

// Check loads the library and its model, to find out whether it works.
func (s *Sphinx) Check(ctx context.Context) error {
	if err := s.Find(); err != nil {
		return err
	}
	n, err := s.start()
	if err != nil {
		return err
	}
	return n.wait(ctx)
}

// Close ends all processes, and with them what recognizers are hearing.
func (s *Sphinx) Close() {
	s.mu.Lock()
	s.closed = true
	n := s.nursery
	s.mu.Unlock()
	if n != nil {
		n.close()
	}
}

// Listen implements ai.Recognizer.
func (s *Sphinx) Listen(ctx context.Context, h ai.Hearing) (ai.Recognition, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := s.Find(); err != nil {
		return nil, err
	}
	if h.Language != "en" {
		return nil, &ai.Error{Kind: ai.Config, Err: fmt.Errorf("pocketsphinx understands English alone, not %q",
			h.Language),
			Mend: "PocketSphinx, the transcriber, understands English only. Choose another transcriber, or another language."}
	}
	if h.Rate != audio.Narrow && h.Rate != audio.Wide {
		return nil, &ai.Error{Kind: ai.Config, Err: fmt.Errorf("pocketsphinx hears at 8 and 16 kHz, not at %d", h.Rate)}
	}
	ctx, cancel := context.WithCancel(ctx)
	e := newSphinxRecognition(s, h)
	e.cancel = cancel
	go e.run(ctx)
	return e, nil
}

// start gives the living nursery, or starts one.
func (s *Sphinx) start() (*nursery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, &ai.Error{Kind: ai.Unreachable, Err: errors.New("the recognizer is closed")}
	}
	if n := s.nursery; n != nil {
		select {
		case <-n.gone:
			select {
			case <-n.ready: // it worked
			default:
				if s.failed.IsZero() {
					s.failed = time.Now()
				}
				if time.Since(s.failed) < failTime {
					return nil, n.err
				}
			}
		default:
			return n, nil
		}
	}
	s.failed = time.Time{}
	n, err := startNursery(s.c.Python, s.c.Model, s.limits)
	if err != nil {
		return nil, err
	}
	s.nursery = n
	return n, nil
}

// take gives a recognizer its decoder for an utterance: the one that it had, a new one, or one that another recognizer has no use
// for now. It waits for a moment when there is none.
func (s *Sphinx) take(ctx context.Context, e *sphinxRecognition) (*decoder, error) {
	n, err := s.start()
	if err != nil {
		return nil, err
	}
	if err := n.wait(ctx); err != nil {
		return nil, err
	}
	patience := time.NewTimer(s.limits.wait)
	defer patience.Stop()
	for {
		s.mu.Lock()
		if i := slices.IndexFunc(s.idle, func(d *decoder) bool { return d.owner == e && d.nursery == n }); i >= 0 {
			d := s.idle[i]
			s.idle = slices.Delete(s.idle, i, i+1)
			s.mu.Unlock()
			return d, nil
		}
		var old *decoder
		switch {
		case s.live < s.c.Decoders:
			s.live++
		case len(s.idle) > 0:
			old = s.idle[0] // the one that has been idle for the longest time
			s.idle = slices.Delete(s.idle, 0, 1)
		default:
			changed := s.changed
			s.mu.Unlock()
			select {
			case <-changed:
				continue
			case <-patience.C:
				return nil, &ai.Error{Kind: ai.Overloaded,
					Err: fmt.Errorf("all %d recognizers are busy: use a provider, or a larger machine", s.c.Decoders)}
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		s.mu.Unlock()
		if old != nil {
			old.close(s.kill(old.nursery))
		}
		s.mu.Lock()
		d, err := n.open()
		s.mu.Unlock()
		if err != nil {
			s.release()
		}
		return d, err
	}
}

// kill tells a nursery to end a decoder.
func (s *Sphinx) kill(n *nursery) func(int) {
	return func(number int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = n.control.SetWriteDeadline(time.Now().Add(exitTime))
		_, _ = fmt.Fprintf(n.control, "kill %d", number) // one that is gone has taken it along
	}
}

// park keeps a decoder for the recognizer's next utterance, as long as nobody needs it more.
func (s *Sphinx) park(e *sphinxRecognition, d *decoder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.owner = e
	s.idle = append(s.idle, d)
	s.tell()
}

// drop ends a decoder.
func (s *Sphinx) drop(d *decoder) {
	d.close(s.kill(d.nursery))
	s.release()
}

// leave ends what a recognizer has parked.
func (s *Sphinx) leave(e *sphinxRecognition) {
	var mine []*decoder
	s.mu.Lock()
	s.idle = slices.DeleteFunc(s.idle, func(d *decoder) bool {
		if d.owner == e {
			mine = append(mine, d)
		}
		return d.owner == e
	})
	s.mu.Unlock()
	for _, d := range mine {
		s.drop(d)
	}
}

func (s *Sphinx) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live--
	s.tell()
}

// tell wakes all who wait; s.mu is held.
func (s *Sphinx) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}
