package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A health check fails unless the server says that it is ready.
func TestReadyCommand(t *testing.T) {
	status := http.StatusOK
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			t.Errorf("asked for %s", r.URL)
		}
		w.WriteHeader(status)
	}))
	defer srv.Close()
	ask := func(listen string) (int, string) {
		var out bytes.Buffer
		return run([]string{"ready", "--listen", listen}, &out, &out), out.String()
	}
	_, port, _ := strings.Cut(srv.Listener.Addr().String(), ":")
	for _, listen := range []string{"127.0.0.1:" + port, "0.0.0.0:" + port, ":" + port} {
		if code, said := ask(listen); code != 0 || said != "ready\n" {
			t.Errorf("%s: %d %q", listen, code, said)
		}
	}
	status = http.StatusServiceUnavailable
	if code, said := ask("127.0.0.1:" + port); code != 1 || !strings.Contains(said, "503") {
		t.Errorf("unready: %d %q", code, said)
	}
	srv.Close()
	if code, _ := ask("127.0.0.1:" + port); code != 1 {
		t.Errorf("nobody there: %d", code)
	}
}
