package preset

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/carriers")

const (
	pages = "../../docs/carriers"
	made  = "<!-- Made from internal/preset/presets.yaml: go generate ./internal/preset -->\n"
)

// TestPages holds docs/carriers equal to the file, and with -update writes it.
func TestPages(t *testing.T) {
	want := map[string]string{"README.md": index()}
	for _, p := range All() {
		want[p.ID+".md"] = page(&p)
	}
	if *update {
		if err := os.MkdirAll(pages, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range want {
			if err := os.WriteFile(filepath.Join(pages, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	there, err := os.ReadDir(pages)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range there {
		text, err := os.ReadFile(filepath.Join(pages, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != want[f.Name()] {
			t.Errorf("docs/carriers/%s is not as presets.yaml has it: go generate ./internal/preset, or delete it", f.Name())
		}
		delete(want, f.Name())
	}
	for name := range want {
		t.Errorf("docs/carriers/%s is missing: go generate ./internal/preset", name)
	}
}

// index is the page that lists the others.
func index() string {
	var b strings.Builder
	b.WriteString("# Carriers and telephone systems\n\n" + made + `
What to enter at each, and here, from its own documents. ` + "`preset`" + ` of a trunk names one, and fills in its settings where you have said nothing
else ([telephony.md](../telephony.md#presets)). What was not looked up is said on each page: corrections are welcome, with the address of the document.
`)
	for _, kind := range []string{"carrier", "system"} {
		b.WriteString("\n" + map[string]string{"carrier": "| carrier | preset | known from its documents |", "system": "| telephone system | preset | known from its documents |"}[kind] + "\n|---|---|---|\n")
		for _, p := range All() {
			if p.Kind == kind {
				known := "nothing: not looked up"
				if len(p.Sources) > 0 {
					known = fmt.Sprintf("sources: %d, the last one read on %s", len(p.Sources), p.Sources[len(p.Sources)-1].Read)
				}
				fmt.Fprintf(&b, "| [%s](%s.md) | `%s` | %s |\n", p.Name, p.ID, p.ID, known)
			}
		}
	}
	return b.String()
}

// page is the guide of a preset.
func page(p *Preset) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s", p.Name, made)
	part := func(title string, list []string, otherwise string) {
		fmt.Fprintf(&b, "\n## %s\n\n", title)
		if len(list) == 0 {
			b.WriteString(otherwise + "\n")
		}
		for _, text := range list {
			fmt.Fprintf(&b, "- %s\n", linked(text))
		}
	}
	part("There", p.There, "Not looked up.")
	part("Here", p.Here, "Not looked up: enter what you have been sent. [A real trunk](../telephony.md#trunks) says what each field is.")
	b.WriteString("\nThe preset fills in " + p.filled() + ".")
	if len(p.Needs) > 0 {
		fmt.Fprintf(&b, " To be entered by hand: `%s`, and the number.", strings.Join(p.Needs, "`, `"))
	}
	b.WriteString("\n")
	part("Ports", p.Ports, "Not looked up.")
	b.WriteString(`
This server needs its SIP port (` + "`PARLEY_SIP_LISTEN`" + `; by TLS ` + "`PARLEY_SIP_TLS_LISTEN`" + `) and the UDP ports of ` + "`PARLEY_RTP_PORTS`" + ` open, and behind a
router ` + "`PARLEY_EXTERNAL_IP`" + `.

## Test

1. **Check**, on the trunk's page or ` + "`POST …/sip-trunks/{id}/check?findings=true`" + `: whether it answers, whether this server is registered, and which settings
   differ from what is known here.
2. **Test call** to your own telephone, there or ` + "`POST …/{id}/test-call`" + `: the calling number that you see must be the trunk's, and the sentence must be
   heard. If it is refused, the report says what that usually means.
3. Call each number of the trunk: its own assistant must answer.

## Refusals

| answer | what it means |
|---|---|
`)
	for _, r := range p.Refusals {
		fmt.Fprintf(&b, "| %s | %s |\n", r.Answer, linked(r.Means))
	}
	for _, r := range usualRefusals {
		fmt.Fprintf(&b, "| %s, at most carriers | %s |\n", r.Answer, r.Means)
	}
	part("Not looked up", p.NotLooked, "")
	if len(p.Sources) > 0 {
		b.WriteString("\n## Sources\n\n")
	}
	for i, s := range p.Sources {
		fmt.Fprintf(&b, "%d. [%s](%s), read on %s\n", i+1, s.Title, s.URL, s.Read)
	}
	return b.String()
}

// filled are the settings of a preset, in words.
func (p *Preset) filled() string {
	var list []string
	for _, name := range sorted(tree(p.Settings)) {
		value := tree(p.Settings)[name]
		if items, is := value.([]any); is {
			value = strings.Trim(fmt.Sprint(items), "[]")
		}
		list = append(list, fmt.Sprintf("`%s` (%v)", name, value))
	}
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

var sourceMark = regexp.MustCompile(`\[([0-9]+)\]`)

// linked is a text whose marks of sources lead to them.
func linked(text string) string { return sourceMark.ReplaceAllString(text, `[\[$1\]](#sources)`) }

func sorted(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
