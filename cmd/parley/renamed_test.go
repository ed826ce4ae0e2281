package main

import (
	"bytes"
	"strings"
	"testing"
)

// A setting under its former name is refused: what it asked for would not be done.
func TestRenamedSettings(t *testing.T) {
	for was, now := range map[string]string{"PARLEY_ENDPOINTS": "PARLEY_USER_ENDPOINTS", "PARLEY_TURN_URLS": "PARLEY_TURN"} {
		t.Run(was, func(t *testing.T) {
			t.Setenv(was, "none")
			var out, errors bytes.Buffer
			if code := run([]string{"version"}, &out, &errors); code != 2 || !strings.Contains(errors.String(), "is called "+now) {
				t.Errorf("%d %s", code, &errors)
			}
		})
	}
}

// PARLEY_TURN=off leaves no way through TURN, and addresses need a secret.
func TestTURN(t *testing.T) {
	for _, c := range []struct {
		urls   []string
		secret string
		off    bool
		n      int
		fails  string
	}{
		{urls: nil},
		{urls: []string{"off"}, off: true},
		{urls: []string{"turns:turn.example.com:443"}, secret: "s3cret", n: 1},
		{urls: []string{"turns:turn.example.com:443"}, fails: "PARLEY_TURN needs PARLEY_TURN_SECRET"},
		{urls: []string{"no"}, fails: "PARLEY_TURN: \"no\" is not"},
	} {
		s := &Settings{TURN: c.urls, TURNSecret: c.secret}
		got, err := s.turn()
		if c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) || c.fails == "" && err != nil ||
			s.turnOff() != c.off || err == nil && len(got.URLs) != c.n {
			t.Errorf("%q: %+v %v", c.urls, got, err)
		}
	}
}
