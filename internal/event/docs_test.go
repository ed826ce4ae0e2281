package event

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// The three ways to run the code in docs/webhooks.md: each prints true or false for the requests in requests.json.
var runners = []struct {
	language, file, rest string
	command              []string
}{
	{"go", "main.go", `
func main() {
	var list []struct {
		Secret, Body string
		Headers      map[string]string
	}
	raw, err := os.ReadFile("requests.json")
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		panic(err)
	}
	for _, r := range list {
		h := http.Header{}
		for name, value := range r.Headers {
			h.Set(name, value)
		}
		fmt.Println(verify(r.Secret, h, []byte(r.Body)))
	}
}
`, []string{"go", "run", "main.go"}},
	{"python", "main.py", `
import json

for r in json.load(open("requests.json")):
    print(str(verify(r["secret"], r["headers"], r["body"].encode())).lower())
`, []string{"python3", "main.py"}},
	{"javascript", "main.js", `
for (const r of JSON.parse(require("node:fs").readFileSync("requests.json"))) {
  console.log(verify(r.secret, r.headers, Buffer.from(r.body)));
}
`, []string{"node", "main.js"}},
}

// The documented code verifies what an endpoint really gets, and refuses what was tampered with.
func TestDocumentedVerification(t *testing.T) {
	text, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	h := open(t, storetest.SQLite(t))
	e := h.endpoint(200)
	first, err := Keys(t.Context(), h.db, h.user.ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	h.set(h.send(h.user.ID, e.URL).NextAttemptAt)
	h.round()
	type request struct {
		Secret  string            `json:"secret"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	}
	sent := func(r heard) request {
		out := request{store.WebhookSecretText(first[0]), map[string]string{}, r.body}
		for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
			out.Headers[name] = r.header.Get(name)
		}
		return out
	}
	var list []request
	var want []string
	add := func(ok string, change func(*request)) {
		r := sent(e.got()[len(e.got())-1])
		change(&r)
		list, want = append(list, r), append(want, ok)
	}
	add("true", func(*request) {})
	add("false", func(r *request) { r.Body += " " })
	add("false", func(r *request) { r.Headers["webhook-id"] += "x" })
	add("false", func(r *request) { r.Headers["webhook-signature"] = "v1," })
	add("false", func(r *request) { r.Secret = store.WebhookSecretText(make([]byte, 32)) })
	h.write(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.RotateWebhookSecret(ctx, h.user.ID, parley.Now())
		return err
	})
	h.set(h.send(h.user.ID, e.URL).NextAttemptAt)
	h.round()
	add("true", func(*request) {}) // the old secret's signature follows the new one's
	if n := strings.Count(list[len(list)-1].Headers["webhook-signature"], "v1,"); n != 2 {
		t.Errorf("%d signatures", n)
	}
	// A request that is recorded and replayed later has a good signature and an old time.
	old := heard{http.Header{}, e.got()[0].body}
	sign(old.header, first, "msg_1", time.Now().Add(-6*time.Minute), old.body)
	list, want = append(list, sent(old)), append(want, "false")
	raw, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runners {
		t.Run(r.language, func(t *testing.T) {
			m := regexp.MustCompile("(?s)```" + r.language + "\n(.*?)```").FindSubmatch(text)
			if m == nil {
				t.Fatal("the documentation shows nothing")
			}
			program := string(m[1]) + r.rest
			if r.language == "go" {
				program = strings.Replace(program, "import (", "import (\n\t\"encoding/json\"\n\t\"fmt\"\n\t\"os\"", 1)
			}
			dir := t.TempDir()
			for name, content := range map[string]string{r.file: program, "requests.json": string(raw)} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), r.command[0], r.command[1:]...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if got := strings.Fields(string(out)); err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%v: %s\nwant %v", err, out, want)
			}
		})
	}
}

// The documented payloads are JSON with the keys that are really sent.
func TestDocumentedPayloads(t *testing.T) {
	text, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	url := "https://example.com"
	a := &parley.Assistant{WebhookURL: &url, InboundWebhookURL: &url, ConversationEndedURL: &url}
	want := map[string]string{ // by event
		"balance.low":          parley.BalanceLow{}.Delivery(url).Payload,
		"public_budget.low":    parley.PublicBudgetLow{}.Delivery(url).Payload,
		"campaign.completed":   parley.CampaignCompleted{}.Delivery(url).Payload,
		"campaign.not_started": parley.CampaignNotStarted{}.Delivery(url).Payload,
		"alert.raised":         Example(parley.EventAlertRaised).Payload,
		"alert.resolved":       Example(parley.EventAlertResolved).Payload,
	}
	for _, kind := range []parley.EventKind{parley.EventCallCompleted, parley.EventCallInbound,
		parley.EventConversationEnded} {
		want[string(kind)] = Sample(a, kind).Payload
	}
	for _, b := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(text, -1) {
		var shown, sent map[string]any
		if err := json.Unmarshal(b[1], &shown); err != nil {
			t.Errorf("%v: %s", err, b[1])
			continue
		}
		kind, _ := shown["event"].(string)
		if kind == "" {
			continue // this is an answer
		}
		if err := json.Unmarshal([]byte(want[kind]), &sent); err != nil {
			t.Fatal(err)
		}
		delete(want, kind)
		delete(sent, "test")
		if got := slices.Sorted(maps.Keys(shown)); !slices.Equal(got, slices.Sorted(maps.Keys(sent))) {
			t.Errorf("%s is shown with %v and sent with %v", kind, got, slices.Sorted(maps.Keys(sent)))
		}
	}
	if len(want) != 0 {
		t.Errorf("not shown: %v", want)
	}
}
