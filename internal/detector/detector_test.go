package detector

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/internal/parley"
)

// far is a detector that keeps the protocol: the longer the text, the likelier it is over. How it misbehaves is for the
// test to say.
func far(t *testing.T, misbehave func(w http.ResponseWriter, r *http.Request) bool) *Detector {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if misbehave != nil && misbehave(w, r) {
			return
		}
		var q map[string]string
		raw, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(raw, &q) != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" ||
			q["language"] != "de" || q["question"] != "Was darf es sein?" || r.Header.Get("Authorization") != "Bearer k3y" {
			t.Errorf("it was asked %s %s, %v", r.Method, raw, r.Header)
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]float64{"over": float64(len(q["text"])) / 10}) //nolint:errcheck // the client may be gone
	}))
	t.Cleanup(s.Close)
	d, err := Open(s.URL+"/turn", "k3y")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	d.within = 10 * time.Second
	return d
}

// logged is what the log is told from here on.
func logged(t *testing.T) *bytes.Buffer {
	var b bytes.Buffer
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&b, nil)))
	t.Cleanup(func() { slog.SetDefault(was) })
	return &b
}

func says(text string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		io.WriteString(w, text) //nolint:errcheck // the client may be gone
		return true
	}
}

func TestOver(t *testing.T) {
	for name, c := range map[string]struct {
		text      string
		misbehave func(http.ResponseWriter, *http.Request) bool
		want      float64
		ok        bool
		log       string
	}{
		"it answers":           {"einen Tee", nil, 0.9, true, ""},
		"never":                {"", nil, 0, true, ""},
		"certainly":            {"zehnzehnze", nil, 1, true, ""},
		"more than certainly":  {"einen Tisch", nil, 0, false, "no probability"},
		"less than impossible": {"", says(`{"over":-0.1}`), 0, false, "no probability"},
		"no answer in it":      {"", says(`{"done":0.5}`), 0, false, "does not answer with"},
		"nothing":              {"", says(`{"over":null}`), 0, false, "does not answer with"},
		"a text":               {"", says(`{"over":"0.5"}`), 0, false, "does not answer with"},
		"garbage":              {"", says("<html>"), 0, false, "does not answer with"},
		"endless":              {"", says(`{"over":0.5}` + strings.Repeat(" ", maxAnswer)), 0, false, "does not answer with"},
		"an error": {"", func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(http.StatusInternalServerError)
			return says(`{"over":0.5}`)(w, r)
		}, 0, false, "status 500"},
		"elsewhere": {"", func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/turn" {
				t.Error("what was said goes to somebody else")
			}
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			return true
		}, 0, false, "status 307"},
		"half": {"", func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Length", "100")
			return says(`{"over":0.5}`)(w, nil)
		}, 0, false, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			log := logged(t)
			d := far(t, c.misbehave)
			got, ok := d.Over(t.Context(), "de", c.text, "Was darf es sein?")
			answered, failed := d.Counts()
			if got != c.want || ok != c.ok || answered+failed != 1 || (answered == 1) != ok {
				t.Errorf("got %v, %v, want %v, %v", got, ok, c.want, c.ok)
			}
			if !strings.Contains(log.String(), c.log) || c.log == "" && log.Len() > 0 {
				t.Errorf("the log says %q, want %q", log, c.log)
			}
		})
	}
}

// One that is late is not waited for.
func TestLate(t *testing.T) {
	log := logged(t)
	left := make(chan struct{})
	d := far(t, func(_ http.ResponseWriter, r *http.Request) bool {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // it is read so that the end of the connection is noticed
		<-r.Context().Done()
		close(left)
		return true
	})
	d.within = within
	if _, ok := d.Over(t.Context(), "de", "ja", "Was darf es sein?"); ok {
		t.Error("it answered, and had not")
	}
	if !strings.Contains(log.String(), "deadline exceeded") {
		t.Errorf("the log says %q", log)
	}
	select {
	case <-left:
	case <-time.After(10 * time.Second):
		t.Error("the request is still under way")
	}
}

// A call that ends meanwhile is no failure of the detector's.
func TestHungUp(t *testing.T) {
	log := logged(t)
	ctx, cancel := context.WithCancel(t.Context())
	d := far(t, func(_ http.ResponseWriter, r *http.Request) bool {
		cancel()
		io.Copy(io.Discard, r.Body) //nolint:errcheck // see above
		<-r.Context().Done()
		return true
	})
	if _, ok := d.Over(ctx, "de", "ja", "Was darf es sein?"); ok || log.Len() > 0 {
		t.Errorf("it answered (%v), or the log says %q", ok, log)
	}
}

// The log is told once of many failures, and then of how many there were.
func TestLogged(t *testing.T) {
	log := logged(t)
	d := far(t, says("no"))
	for range 5 {
		d.Over(t.Context(), "de", "ja", "Was darf es sein?")
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "failed=1 asked=1") {
		t.Errorf("the log says %q", log)
	}
	d.told = d.told.Add(-quietTime)
	d.Over(t.Context(), "de", "ja", "Was darf es sein?")
	if n := strings.Count(log.String(), "\n"); n != 2 || !strings.Contains(log.String(), "failed=5 asked=5") {
		t.Errorf("then the log says %q", log)
	}
	if answered, failed := d.Counts(); answered != 0 || failed != 6 {
		t.Errorf("%d were answered and %d failed", answered, failed)
	}
}

func TestCheck(t *testing.T) {
	if d, err := Open("", ""); d != nil || err != nil {
		t.Errorf("without a setting: %v, %v", d, err)
	}
	for _, address := range []string{"127.0.0.1:9000", "ftp://127.0.0.1", "http://", "://"} {
		if d, err := Open(address, ""); d != nil || err == nil || !strings.Contains(err.Error(), "PARLEY_TURN_DETECTOR_URL") {
			t.Errorf("%s: %v, %v", address, d, err)
		}
	}
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	dead, err := Open("http://"+gone.Addr().String(), "")
	if err != nil {
		t.Fatal(err)
	}
	asked := says(`{"over": 0.25}`)
	slow := far(t, asked)
	slow.within = 0
	times := 0
	for name, c := range map[string]struct {
		d           *Detector
		state, text string
	}{
		"none": {nil, parley.DoctorOK, "by themselves"},
		"good": {far(t, asked), parley.DoctorOK, "is over with 0.25"},
		"slow": {slow, parley.DoctorFail, "calls wait for 0s"},
		"bad":  {far(t, says("{}")), parley.DoctorFail, "PARLEY_TURN_DETECTOR_URL"},
		"gone": {dead, parley.DoctorFail, "connection refused"},
		"dying": {far(t, func(w http.ResponseWriter, r *http.Request) bool {
			if times++; times > 1 {
				return says("{}")(w, r)
			}
			return asked(w, r)
		}), parley.DoctorFail, "and then"},
	} {
		if f := c.d.Check(t.Context()); f.State != c.state || f.What != "turn detector" || !strings.Contains(f.Text, c.text) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
