package testenv_test

import (
	"errors"
	"os/exec"
	"runtime"
	"testing"

	"parley/internal/testenv"
)

// said is a test that records the calls of its methods.
type said struct {
	testing.TB
	words string
}

func (s *said) Helper()               {}
func (s *said) Log(...any)            { s.words += "logged " }
func (s *said) SkipNow()              { s.words += "skipped "; runtime.Goexit() }
func (s *said) Fatalf(string, ...any) { s.words += "failed "; runtime.Goexit() }

func TestNeeds(t *testing.T) {
	missing := errors.New("nothing is there")
	for _, c := range []struct {
		ci, want string
		ask      func(t testing.TB)
	}{
		{"", "", func(t testing.TB) { testenv.Nil(t, nil) }},
		{"true", "", func(t testing.TB) { testenv.Nil(t, nil) }},
		{"", "logged skipped ", func(t testing.TB) { testenv.Nil(t, missing) }},
		{"true", "failed ", func(t testing.TB) { testenv.Nil(t, missing) }},
		{"", "logged ", func(t testing.TB) { testenv.Met(t, missing) }},
		{"true", "failed ", func(t testing.TB) { testenv.Met(t, missing) }},
		{"", "logged skipped ", func(t testing.TB) { testenv.Program(t, "no-such-program") }},
		{"true", "failed ", func(t testing.TB) { testenv.Program(t, "no-such-program") }},
	} {
		t.Setenv("CI", c.ci)
		s, done := &said{}, make(chan struct{})
		go func() { defer close(done); c.ask(s) }()
		<-done
		if s.words != c.want {
			t.Errorf("CI=%s: %q, not %q", c.ci, s.words, c.want)
		}
	}
	if want, err := exec.LookPath("go"); err != nil || testenv.Program(t, "go") != want {
		t.Errorf("go is at %q: %v", want, err)
	}
}
