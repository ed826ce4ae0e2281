package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// smallAPI is a server whose account has one folder of assistants.
func smallAPI(t *testing.T) (url string, folder map[string]any, writes *int) {
	folder, writes = map[string]any{"id": 1, "name": "Shops", "color": "teal"}, new(int)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, empty := strings.TrimPrefix(r.URL.Path, "/api/user/"), map[string]any{"data": []any{}, "last_page": 1}
		if r.Header.Get("Authorization") != "Bearer 1|key" {
			w.WriteHeader(http.StatusUnauthorized)
			json.NewEncoder(w).Encode(map[string]any{"message": "Unauthenticated."})
			return
		}
		switch {
		case r.Method != "GET":
			*writes++
			json.NewDecoder(r.Body).Decode(&folder)
			json.NewEncoder(w).Encode(map[string]any{"data": folder})
		case path == "folders":
			json.NewEncoder(w).Encode(map[string]any{"data": []any{folder}, "last_page": 1})
		case path == "webhook-endpoint":
			json.NewEncoder(w).Encode(map[string]any{"url": nil})
		case path == "labels" || path == "knowledgebases" || path == "filters" || strings.HasPrefix(path, "phone-numbers"):
			json.NewEncoder(w).Encode(empty)
		default:
			w.Write([]byte("[]"))
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL, folder, writes
}

// pull, diff and push say by their exit status whether anything differed: 0 no, 2 yes, 1 they failed. Push asks first.
func TestPullDiffPush(t *testing.T) {
	url, folder, writes := smallAPI(t)
	dir := filepath.Join(t.TempDir(), "account")
	t.Setenv("PARLEY_SERVER", url)
	t.Setenv("PARLEY_KEY", "1|key")
	parley := func(want int, says string, args ...string) {
		t.Helper()
		var out bytes.Buffer
		if code := run(args, &out, &out); code != want || !strings.Contains(out.String(), says) {
			t.Errorf("parley %v ends with %d, want %d and %q:\n%s", args, code, want, says, &out)
		}
	}
	file := filepath.Join(dir, "folders", "shops.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parley(1, "there is no directory", "push", dir)
	parley(2, "+ folders/shops.yaml", "pull", "--dry-run", dir)
	parley(2, "+ folders/shops.yaml", "pull", dir)
	parley(0, "", "pull", dir)
	parley(0, "No changes", "diff", dir)
	parley(0, "No changes", "push", dir)
	write("name: Shops\ncolor: red\n")
	parley(2, `color: "teal" → "red"`, "diff", dir)
	parley(2, `color: "teal" → "red"`, "push", "--dry-run", dir)
	in := os.Stdin
	os.Stdin, _ = os.Open(os.DevNull)
	parley(1, "add --yes", "push", dir)
	os.Stdin = in
	if *writes != 0 {
		t.Fatalf("%d changes before anybody said yes", *writes)
	}
	parley(2, "changed: folders/shops.yaml", "push", "--yes", dir)
	if *writes != 1 || folder["color"] != "red" {
		t.Errorf("%d changes, %v", *writes, folder)
	}
	write("name: Shops\ncolour: red\n")
	parley(1, "folders/shops.yaml:2: there is no field colour: is it color?", "diff", dir)
	parley(2, "~ folders/shops.yaml", "pull", dir)
	if err := os.Rename(file, filepath.Join(dir, "folders", "other.yaml")); err != nil {
		t.Fatal(err)
	}
	parley(0, "", "pull", dir) // the thing has a file, whatever it is called
	file = filepath.Join(dir, "folders", "gone.yaml")
	write("name: Gone\n")
	parley(0, "folders/gone.yaml is not of the server: it stays", "pull", dir)
	parley(2, "- folders/gone.yaml", "pull", "--prune", dir)
	t.Setenv("PARLEY_KEY", "1|another")
	parley(1, "the server doesn't know the key", "diff", dir)
	t.Setenv("PARLEY_KEY", "")
	parley(1, "--key is missing", "diff", dir)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("1|key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PARLEY_KEY_FILE", key)
	parley(0, "No changes", "diff", dir)
}

// An import writes files once, and tells what became of the export.
func TestImport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "account")
	export := filepath.Join(t.TempDir(), "export.json")
	if err := os.WriteFile(export, []byte(`{"name": "Desk", "firstMessage": "Hello", "model": {"model": "gpt-4o", "maxTokens": 9}}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want int
		says string
	}{
		{[]string{"import", "--from", "vapi", export, dir}, 0, "left out  model.maxTokens: Parley has nothing for it\n+ assistants/desk.yaml\n"},
		{[]string{"import", "--from", "vapi", export, dir}, 1, "has these files already: assistants/desk.yaml"},
		{[]string{"import", "--from", "nobody", export, dir}, 2, "must be one of"},
		{[]string{"import", "--from", "retell", dir, dir}, 1, "is a directory"},
	} {
		var out bytes.Buffer
		if code := run(c.args, &out, &out); code != c.want || !strings.Contains(out.String(), c.says) {
			t.Errorf("parley %v ends with %d, want %d and %q:\n%s", c.args, code, c.want, c.says, &out)
		}
	}
	if raw, err := os.ReadFile(filepath.Join(dir, "assistants", "desk.yaml")); err != nil ||
		!strings.Contains(string(raw), "initial_message: Hello\n") {
		t.Errorf("%v\n%s", err, raw)
	}
}
