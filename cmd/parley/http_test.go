package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"

	"parley/internal/api"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func TestReady(t *testing.T) {
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "parley.db"), Secret: storetest.Secret})
	if err != nil {
		t.Fatal(err)
	}
	var working atomic.Bool
	house := (&Settings{}).root(db, (*api.API)(nil), http.NotFoundHandler(), http.NotFoundHandler(), nil, &working)
	code := func() int {
		w := httptest.NewRecorder()
		house.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
		return w.Code
	}
	if got := code(); got != 503 {
		t.Errorf("%d although no jobs are worked", got)
	}
	working.Store(true)
	if got := code(); got != 200 {
		t.Errorf("%d although all is there", got)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := code(); got != 503 {
		t.Errorf("%d without a database", got)
	}
}
