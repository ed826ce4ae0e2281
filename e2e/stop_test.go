package e2e

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/internal/store/storetest"
)

// complaints are the lines of a log that are warnings or errors.
func complaints(log string) (found []string) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") || strings.HasPrefix(line, "parley: ") {
			found = append(found, line)
		}
	}
	return found
}

// An ordinary stop is nothing to complain of: right after the start, and with a stream that is open, on either database.
func TestStopLogsNoError(t *testing.T) {
	share(t, call)
	for engine, settings := range map[string]func() []string{
		"sqlite": func() []string { return nil },
		"postgres": func() []string {
			return []string{"PARLEY_DATABASE=" + storetest.Postgres(t), "PARLEY_SECRET_KEY=the same on all nodes"}
		},
	} {
		t.Run(engine, func(t *testing.T) {
			p := start(t, append(settings(), "PARLEY_SIP_LISTEN=127.0.0.1:0")...) // nobody else's port
			for range 3 {
				p.stop(t)
				p.restart(t)
			}
			var made struct {
				ID string `json:"conversation_id"`
			}
			p.call(t, "POST", "/conversations", map[string]any{"assistant_id": p.AssistantUUID, "type": "test"}, &made)
			req, err := http.NewRequestWithContext(t.Context(), "GET", p.URL+"/api/conversations/"+made.ID+"/events", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+p.Key)
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != http.StatusOK {
				t.Fatalf("the stream: %s", res.Status)
			}
			p.stop(t)
			if bad := complaints(p.log.String()); len(bad) > 0 {
				t.Errorf("the log complains:\n%s", strings.Join(bad, ""))
			}
		})
	}
}

// A server that is stopped while it waits for its database ends well, and says that it never served.
func TestStopBeforeItServes(t *testing.T) {
	share(t, call)
	cmd := exec.Command(binary, "serve")
	cmd.Env = append(os.Environ(), "PARLEY_DATA="+t.TempDir(), "PARLEY_LISTEN=127.0.0.1:0", "PARLEY_WEBRTC_LISTEN=off",
		"PARLEY_DATABASE=postgres://parley@127.0.0.1:1/parley", "PARLEY_SECRET_KEY=the same on all nodes")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer kill.Stop()
	lines := bufio.NewScanner(log)
	if !lines.Scan() {
		t.Fatal("it does not say that it waits")
	}
	cmd.Process.Signal(syscall.SIGTERM)
	var rest strings.Builder
	for lines.Scan() {
		rest.WriteString(lines.Text() + "\n")
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if said := rest.String(); !strings.Contains(said, "stopped before it served") || len(complaints(said)) > 0 {
		t.Errorf("after the signal it said\n%s", said)
	}
}
