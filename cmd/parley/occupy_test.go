package main

import (
	"strings"
	"testing"
)

// Two servers never run on one embedded database; with PostgreSQL, which several share, they may have one directory.
func TestOccupy(t *testing.T) {
	open := func(s Settings) (*server, error) {
		h := &server{Settings: &s}
		return h, h.occupy()
	}
	alone := Settings{Data: t.TempDir() + "/new"}
	first, err := open(alone)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(alone); err == nil || !strings.Contains(err.Error(), alone.Data) {
		t.Errorf("a second server: %v", err)
	}
	for _, s := range []Settings{{Data: t.TempDir()}, {Data: alone.Data, Database: "postgres://db.example.com/parley"}} {
		if _, err := open(s); err != nil {
			t.Error(err)
		}
	}
	for _, done := range first.closers {
		if err := done(); err != nil {
			t.Error(err)
		}
	}
	if _, err := open(alone); err != nil {
		t.Errorf("after the first one: %v", err)
	}
}
