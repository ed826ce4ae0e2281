package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"
	"golang.org/x/text/encoding/charmap"

	"parley/internal/ai/aitest"
)

// Lists as people have them, in Windows-1252 with a title and as a spreadsheet: what they say of a person is in the prompt when
// that person is called.
func TestCampaignRoughLists(t *testing.T) {
	l, v := speaking(t)
	v.Usually(aitest.Behaviour{Text: "Thank you, goodbye."})
	v.Transcribe = func(aitest.Utterance) string { return "Hello, who is this?" }
	number, _ := l.purchase(t)
	l.outbound(t, number, map[string]any{"ringing_time": 10, "initial_message": "Good morning.", "record": false, "max_duration": 30,
		"system_prompt": "You call {{Name}} in the {{Straße}}."})
	rows := [][]any{{"Leads of March"}, {}, {"phone_number", "Name", "Straße"}}
	csv := []any{"+12025550123", "Jürgen Weiß", "Königstraße 5"}
	book := []any{"+12025550133", "Zoë Łuczak", "Żwirki 7"}
	var b strings.Builder
	for _, row := range append(rows, csv) {
		b.WriteString(strings.Trim(fmt.Sprint(strings.Join(cells(row), ";")), " ") + "\r\n")
	}
	text, err := charmap.Windows1252.NewEncoder().String(b.String())
	if err != nil {
		t.Fatal(err)
	}
	f := excelize.NewFile()
	defer f.Close()
	for i, row := range append(rows[:len(rows):len(rows)], book) {
		if err := f.SetSheetRow("Sheet1", fmt.Sprint("A", i+1), &row); err != nil {
			t.Fatal(err)
		}
	}
	var packed bytes.Buffer
	if err := f.Write(&packed); err != nil {
		t.Fatal(err)
	}
	c := l.campaign(t, l.Assistant, map[string]any{"max_calls_in_parallel": 2})
	for _, list := range []string{text, packed.String()} {
		if n, bad := l.importLeads(t, c, list); n != 1 || bad != 0 {
			t.Fatalf("%d imported, %d skipped", n, bad)
		}
	}
	l.campaignDo(t, c, "start")
	for _, want := range []string{"You call Jürgen Weiß in the Königstraße 5.", "You call Zoë Łuczak in the Żwirki 7."} {
		eventually(t, want, func() bool {
			for _, r := range v.Requests() {
				if strings.Contains(fmt.Sprint(r.Request), want) {
					return true
				}
			}
			return false
		})
	}
}

func cells(row []any) (list []string) {
	for _, c := range row {
		list = append(list, fmt.Sprint(c))
	}
	return list
}
