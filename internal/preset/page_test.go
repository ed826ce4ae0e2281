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
What to set up at each, and in Parley, from its own documents. ` + "`preset`" + ` of a trunk names one, and fills in its settings where you have said
nothing else ([telephony.md](../telephony.md#presets)). What was not looked up is said on each page: corrections are welcome, with the address of the document.
`)
	for _, kind := range []string{"carrier", "system"} {
		b.WriteString("\n" +
			map[string]string{"carrier": "| carrier | preset | known from its documents |",
				"system": "| telephone system | preset | known from its documents |"}[kind] + "\n|---|---|---|\n")
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
	where, number := "At "+p.Name, "- `phone_number`: the number that callers dial, such as +4930901820. "+
		"More numbers go into `numbers`, one or a range per line."
	if p.Kind == "system" {
		where = "In " + p.Name
	}
	part(where, p.There, "Not looked up.")
	if p.Sample != "" {
		fmt.Fprintf(&b, "\nA whole sample:\n\n```\n%s```\n", p.Sample)
	}
	b.WriteString("\n## In Parley\n" + `
The server must listen to the network: ` + "`PARLEY_SIP_LISTEN=0.0.0.0:5060`" + ` (UDP and TCP; by default it listens to its own machine alone), for TLS also
` + "`PARLEY_SIP_TLS_LISTEN`" + `. Open that port, and the UDP ports of ` + "`PARLEY_RTP_PORTS`" +
		` (10000 to 19999 by default). Behind a router, set ` + "`PARLEY_EXTERNAL_IP`" + `
to the public address.

` + "1. In the console, open **SIP trunks** and press **New SIP trunk**. Under **Carrier or telephone system** choose **" + p.Name +
		"** and press **Fill in**. This fills in " + p.filled() +
		".\n   (By the API: `POST /user/phone-numbers/sip-trunks` with `\"preset\": \"" + p.ID +
		"\"` and the fields that stand in brackets below.)\n2. Enter the rest:\n")
	if !names(p.Here, "phone_number") {
		b.WriteString("   " + labelled(number) + "\n")
	}
	for _, text := range p.Here {
		fmt.Fprintf(&b, "   - %s\n", labelled(linked(text)))
	}
	for _, field := range p.Needs {
		if !names(p.Here, field) {
			b.WriteString(labelled("   - `"+field+"`: as you were told it.") + "\n")
		}
	}
	b.WriteString(labelled(`   [A real trunk](../telephony.md#trunks) says what each field is.
3. Press **Create SIP trunk**. Each of its numbers is now one of **Numbers**.
4. Open the number under **Numbers** and choose the inbound assistant that answers it under **Answered by**. The assistant
   must be active (**Status**, then **Publish**): a draft answers nobody. An outbound assistant calls from the
   number that is its **Phone number**. (By the API, both are ` + "`\"phone_number_id\"`" + ` of the assistant; the answer to the
   trunk's creation has it.)
`))
	part("Ports", p.Ports, "Not looked up.")
	b.WriteString(`
## Test

1. Press **Check** on the trunk's page (` + "`POST …/sip-trunks/{id}/check?findings=true`" + `). It says whether the trunk answers, whether this server is registered, and
   which settings differ from those in this guide.
2. Enter your own telephone number, or an extension of the telephone system, under **Test call** on the same page (` + "`POST …/sip-trunks/{id}/test-call`" + `). Your telephone must ring, show the trunk's number or
   extension, and let you hear a sentence. If the call is refused, the report says what that usually means.
3. Call each number of the trunk. Its own assistant must answer. If it doesn't, **Calls that were refused** on the trunk's page says what came and why it was
   refused (` + "`GET …/sip-trunks/{id}/refusals`" + `).

## Refusals
`)
	table := func(title string, list []Refusal) {
		if len(list) > 0 {
			fmt.Fprintf(&b, "\n%s:\n\n| answer | what it usually means |\n|---|---|\n", title)
		}
		for _, r := range list {
			fmt.Fprintf(&b, "| %s | %s |\n", r.Answer, linked(r.Means))
		}
	}
	table(where, p.Refusals)
	table("Everywhere", usualRefusals)
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
		list = append(list, labelled(fmt.Sprintf("`%s=%s`", name, shown(value))))
	}
	if len(list) == 0 {
		return "nothing that you have to know"
	}
	return strings.Join(list, ", ")
}

// labelled is a text with the fields of a trunk as the console and the API call them.
func labelled(text string) string {
	return fieldMark.ReplaceAllStringFunc(text, func(mark string) string {
		field, value, label := inConsole(mark)
		if value == "" {
			return fmt.Sprintf("**%s** (`%s`)", label, field)
		}
		return fmt.Sprintf("**%s**: %s (`%s`)", label, value, inAPI.Replace(strings.Trim(mark, "`")))
	})
}

// inAPI turns a field and its value into what a program sends.
var inAPI = strings.NewReplacer("=on", ": true", "=off", ": false", "=", ": ")

// TestLabels holds the labels of a trunk's fields equal to those of the console's form.
func TestLabels(t *testing.T) {
	text, err := os.ReadFile("../console/trunk.templ")
	if err != nil {
		t.Fatal(err)
	}
	for name, label := range labels {
		field, value, of := strings.Cut(name, "=")
		want := fmt.Sprintf(`"%s", "%s"`, field, label)
		if field == "sip_password" {
			want = `@t.field(name, "Password"`
		}
		if of {
			want = fmt.Sprintf(`"%s=%s`, value, label)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("the form of a trunk has no %s", want)
		}
	}
	for _, p := range All() {
		for _, text := range p.Here {
			for _, m := range fieldMark.FindAllStringSubmatch(text, -1) {
				if labels[m[1]] == "" {
					t.Errorf("%s: %q names a field that has no label", p.ID, text)
				}
			}
		}
	}
	if got, want := InConsole("`sip_address`: x, `transport=tls`"), "SIP address: x, Transport: TLS"; got != want {
		t.Errorf("InConsole: %q, want %q", got, want)
	}
}

var sourceMark = regexp.MustCompile(`\[([0-9]+)\]`)

// linked is a text whose marks of sources lead to them.
func linked(text string) string { return sourceMark.ReplaceAllString(text, `[\[$1\]](#sources)`) }

func sorted(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
