package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/provider"
	"parley/internal/store"
)

var update = flag.Bool("update", false, "write the declared settings into docs/operating.md")

// The docs' table of vendor and channel settings matches their declarations: the description is the help text, and a
// default in brackets has its own column.
func TestSettingsPage(t *testing.T) {
	var rows strings.Builder
	declared := map[string]any{}
	for _, v := range provider.All() {
		declared[v.Code] = v.Settings
	}
	for _, c := range allChannels() {
		declared[c.Code] = c.Settings
	}
	for _, code := range slices.Sorted(maps.Keys(declared)) {
		if declared[code] == nil {
			continue
		}
		s := reflect.TypeOf(declared[code]).Elem()
		for i := range s.NumField() {
			tag := s.Field(i).Tag
			name, help, standard := tag.Get("name"), strings.TrimSuffix(tag.Get("help"), "."), tag.Get("default")
			if !strings.HasPrefix(name, code+"-") || help == "" {
				t.Errorf("%s: the setting %s begins with another name, or has no help", code, name)
			}
			if m := regexp.MustCompile(`^(.*) \(([^()]+)\)$`).FindStringSubmatch(help); m != nil {
				help, standard = m[1], m[2]
			}
			fmt.Fprintf(&rows, "| `PARLEY_%s` | %s | %s |\n", strings.ToUpper(strings.ReplaceAll(name, "-", "_")),
				help, standard)
		}
	}
	const page, head = "../../docs/operating.md", "\n## Settings of vendors and channels\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, after, ok := strings.Cut(string(text), head)
	intro, below, there := strings.Cut(after, "|---|---|---|\n")
	if !ok || !there {
		t.Fatalf("%s has no table below %q", page, head)
	}
	table, rest, _ := strings.Cut(below, "\n\n")
	if table = strings.TrimPrefix(table+"\n", "\n"); table == rows.String() {
		return
	}
	if !*update {
		t.Fatalf("%s has\n%s\ndeclared is (-update writes it)\n%s", page, table, rows.String())
	}
	if err := os.WriteFile(page, []byte(before+head+intro+"|---|---|---|\n"+rows.String()+"\n"+rest),
		0o644); err != nil {
		t.Fatal(err)
	}
}

// A data directory that can't be written is named, with what to do; a database by itself too, whose key is set elsewhere.
func TestDataUnwritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", "sixteen characters and more"} {
		s := Settings{Data: filepath.Join(file, "data"), SecretKey: key}
		_, err := s.openUnder(t.Context(), store.Rules{}, 0)
		if err == nil ||
			!strings.Contains(err.Error(), "the data directory "+s.Data+
				" must be a directory that this user can write to; choose another with --data or PARLEY_DATA") {
			t.Errorf("with the key %q: %v", key, err)
		}
	}
}
