// Package stage is what stands in for the world in a call or chat that is a test: tools answer what the test says, the
// clock shows what it says, and the caller's words may be told instead of recognized.
//
// Only the owner of an assistant sets a stage, by their credential, and gets a token for it. A softphone that calls in
// the token's name, and a conversation of type test that carries it (Variable), play on that stage. Stages are in the
// memory of one process. A token that is not known any more still names a test: no tool of it is really called.
package stage

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"strings"
	"sync"
	"time"

	"parley/internal/parley"
)

// Variable is the variable of a call or conversation that holds the token of its stage.
const Variable = "parley_test"

// prefix begins every token: whatever begins so is a test, known or not.
const prefix = "test-"

const (
	// answered is what a tool says for which the test has no answer.
	answered = `{"ok":true}`

	lifetime = time.Hour
	most     = 2000      // stages of one user
	maxBytes = 32 << 20  // of what one user's stages hold
	maxAll   = 256 << 20 // of what everybody's do
	maxEarly = 16 << 10  // of words that are told before anybody listens
	maxWords = 64 << 10  // of one utterance
	maxAfter = time.Minute
)

// Set is what a test puts in place of the world.
type Set struct {
	Now       time.Time // zero: the present
	Variables map[string]string
	Mocks     map[string]Mock   // by the tool's name
	Told      bool              // the caller's words are told
	Draft     *parley.Draft     // what of the assistant is changed
	Run       int64             // the run that the test is of; 0: none. Tests of one run share As
	As        *parley.Assistant // who plays in the assistant's place: the assistant with its draft
}

// Mock is a tool's answer.
type Mock struct {
	Real  bool // the tool's endpoint is asked
	Reply string
	Fails string // the model is told that it failed
	After time.Duration
}

// Stages are those of this process. It is safe for concurrent use; nil has none.
type Stages struct {
	mu     sync.Mutex
	stages map[string]*Stage
}

// Stage is one test's.
type Stage struct {
	Set
	UserID, AssistantID int64
	expires             time.Time
	bytes, cast         int // how much memory it takes, and how much As does

	mu           sync.Mutex
	call         int64 // the latest that plays on it; 0 before
	recognitions map[*recognition]struct{}
	early        string // told before the first recognition was there
	heard        bool   // there was one
}

// New makes an empty house.
func New() *Stages { return &Stages{stages: map[string]*Stage{}} }

var (
	errMany = parley.Errorf(parley.TooMany, "Your account is preparing too many tests at once. "+
		"End those that you no longer need (DELETE /user/rehearsals/{id}), or wait: each ends by itself an hour after it was prepared.")
	errFull = parley.Errorf(parley.TooMany, "This server has no memory left for more tests. Try again in a few minutes.")
)

// Begin sets a stage and returns its token.
func (h *Stages) Begin(userID, assistantID int64, set Set, now time.Time) (string, error) {
	alone := set
	alone.As = nil
	s := &Stage{Set: set, UserID: userID, AssistantID: assistantID, expires: now.Add(lifetime), recognitions: map[*recognition]struct{}{},
		bytes: perStage + sizeOf(alone)}
	if set.Told {
		s.bytes += maxEarly
	}
	if set.As != nil {
		s.cast = sizeOf(set.As)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for token, other := range h.stages {
		switch {
		case now.After(other.expires):
			delete(h.stages, token)
		case s.As != nil && s.Run != 0 && other.As != nil && other.UserID == userID && other.AssistantID == assistantID && other.Run == s.Run:
			s.As, s.cast = other.As, other.cast
		}
	}
	switch own, held, all := h.held(s); {
	case own > most || held > maxBytes:
		return "", errMany
	case all > maxAll:
		return "", errFull
	}
	var raw [20]byte
	rand.Read(raw[:])
	token := prefix + strings.ToLower(base32.StdEncoding.EncodeToString(raw[:]))
	h.stages[token] = s
	return token, nil
}

// perStage is what a stage takes beside its set.
const perStage = 512

// held is how many stages a stage's user would have with it, how much they would hold, and how much everybody's would.
func (h *Stages) held(with *Stage) (own, mine, all int) {
	casts := map[*parley.Assistant]bool{}
	add := func(s *Stage) {
		n := s.bytes
		if s.As != nil && !casts[s.As] {
			casts[s.As] = true
			n += s.cast
		}
		all += n
		if s.UserID == with.UserID {
			own++
			mine += n
		}
	}
	for _, s := range h.stages {
		add(s)
	}
	add(with)
	return own, mine, all
}

// Shared is the assistant that already plays in a run of the user's; nil where none does.
func (h *Stages) Shared(userID, assistantID, run int64) *parley.Assistant {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.stages {
		if s.UserID == userID && s.AssistantID == assistantID && s.Run == run && run != 0 && s.As != nil {
			return s.As
		}
	}
	return nil
}

// Is says whether a text names a stage, one that is known or not.
func Is(token string) bool { return strings.HasPrefix(token, prefix) }

// Find is the stage of a token, nil where there is none.
func (h *Stages) Find(token string) *Stage {
	if h == nil || !Is(token) {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stages[token]
}

// Own is a user's stage.
func (h *Stages) Own(userID int64, token string) (*Stage, error) {
	if s := h.Find(token); s != nil && s.UserID == userID {
		return s, nil
	}
	return nil, parley.Errorf(parley.NotFound, "Test not found")
}

// End takes a user's stage away. Calls that play on it go on as tests.
func (h *Stages) End(userID int64, token string) error {
	if _, err := h.Own(userID, token); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.stages, token)
	return nil
}

// Took notes which call plays on the stage.
func (s *Stage) Took(call int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.call = call
}

// Call is the latest call that plays on the stage, 0 before one does.
func (s *Stage) Call() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.call
}

// Clock is the time that the stage shows.
func (s *Stage) Clock(now time.Time) time.Time {
	if s == nil || s.Now.IsZero() {
		return now
	}
	return s.Now
}

// Cast is an assistant as it plays on the stage: the one that is tested with what is changed of it.
func (s *Stage) Cast(a *parley.Assistant) *parley.Assistant {
	if s == nil || s.AssistantID != a.ID {
		return a
	}
	if s.As != nil {
		a = s.As
	}
	return a.With(s.Draft)
}

// Really says whether a tool's endpoint is asked.
func (s *Stage) Really(tool string) bool { return s != nil && s.Mocks[tool].Real }

// Answer is a tool's answer. A stage that is gone, nil, has one too.
func (s *Stage) Answer(ctx context.Context, tool string) (string, error) {
	if s == nil {
		return answered, nil
	}
	m, ok := s.Mocks[tool]
	if m.After > 0 {
		t := time.NewTimer(min(m.After, maxAfter))
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	switch {
	case m.Fails != "":
		return "", errors.New(m.Fails)
	case !ok || m.Reply == "":
		return answered, nil
	}
	return m.Reply, nil
}
