package agent

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"parley/internal/parley"
)

// What models answer becomes what the item asks for, or nothing with a reason.
func TestValues(t *testing.T) {
	for _, c := range []struct {
		kind, description, answer, want, why string
	}{
		{"number", "", `4`, `4`, ""},
		{"number", "", `"4"`, `4`, ""},
		{"number", "", `" 4.5 "`, `4.5`, ""},
		{"number", "", `"4,5"`, `4.5`, ""},
		{"number", "", `"$1,200"`, `1200`, ""},
		{"number", "", `"1.234,50 €"`, `1234.5`, ""},
		{"number", "", `"1,234.50"`, `1234.5`, ""},
		{"number", "", `"1'200 CHF"`, `1200`, ""},
		{"number", "", `"1 200"`, `1200`, ""},
		{"number", "", "\"1\u00a0200\"", `1200`, ""},
		{"number", "", `"4 5"`, `null`, "which is no number"},
		{"number", "", `"555 0123"`, `null`, "which is no number"},
		{"number", "", `"3.12.2026"`, `null`, "which is no number"},
		{"number", "", `"19 %"`, `19`, ""},
		{"number", "", `"4 people"`, `4`, ""},
		{"number", "", `"−3"`, `-3`, ""},
		{"number", "", `[4]`, `4`, ""},
		{"number", "", `{"value": "4", "unit": "loaves"}`, `4`, ""},
		{"number", "", `{"x": {"value": 4}}`, `4`, ""},
		{"number", "", `"many"`, `null`, `"many", which is no number`},
		{"number", "", `"4 or 5"`, `null`, "which is no number"},
		{"number", "", `[4, 5]`, `null`, "[4,5], which is no number"},
		{"number", "", `true`, `null`, "true, which is no number"},
		{"number", "", `"unknown"`, `null`, unsaid},
		{"number", "", `""`, `null`, unsaid},
		{"number", "", `null`, `null`, unsaid},
		{"bool", "", `true`, `true`, ""},
		{"bool", "", `"true"`, `true`, ""},
		{"bool", "", `"Yes."`, `true`, ""},
		{"bool", "", `"nein"`, `false`, ""},
		{"bool", "", `"Não"`, `false`, ""},
		{"bool", "", `1`, `true`, ""},
		{"bool", "", `0`, `false`, ""},
		{"bool", "", `2`, `null`, "2, which is neither yes nor no"},
		{"bool", "", `"maybe"`, `null`, `"maybe", which is neither yes nor no`},
		{"bool", "", `"N/A"`, `null`, unsaid},
		{"string", "", `"Ana"`, `"Ana"`, ""},
		{"string", "", `""`, `""`, ""},
		{"string", "", `4711`, `"4711"`, ""},
		{"string", "", `12345678901`, `"12345678901"`, ""},
		{"string", "", `true`, `"true"`, ""},
		{"string", "", `["bread", "rolls", 2]`, `"bread, rolls, 2"`, ""},
		{"string", "", `{"value": "Main"}`, `"Main"`, ""},
		{"string", "", `{"value": 4, "unit": "loaves"}`, `"{\"unit\":\"loaves\",\"value\":4}"`, ""},
		{"string", "", `{"street": "Main", "no": 4}`, `"{\"no\":4,\"street\":\"Main\"}"`, ""},
		{"string", "The day, YYYY-MM-DD", `"March 3rd, 2026"`, `"2026-03-03"`, ""},
		{"string", "The day, YYYY-MM-DD", `"3.3.2026"`, `"2026-03-03"`, ""},
		{"string", "The day, YYYY-MM-DD", `"2026-03-03T10:00:00Z"`, `"2026-03-03"`, ""},
		{"string", "The day, YYYY-MM-DD", `"03/04/2026"`, `null`, `"03/04/2026", which is no day that can be written as YYYY-MM-DD`},
		{"string", "The day, YYYY-MM-DD", `"31/12/2026"`, `"2026-12-31"`, ""},
		{"string", "The day, YYYY-MM-DD", `"12/31/2026"`, `"2026-12-31"`, ""},
		{"string", "The day, YYYY-MM-DD", `"next Tuesday"`, `null`, `"next Tuesday", which is no day`},
		{"string", "The day, YYYY-MM-DD", `"2026-02-30"`, `null`, "which is no day"},
		{"string", "The day, YYYY-MM-DD", `"unknown"`, `null`, unsaid},
		{"string", "The day, YYYY-MM-DD", `{"value": ["2 March 2026"]}`, `"2026-03-02"`, ""},
		{"string", "The day, YYYY-MM-DD, or what they said", `"next Tuesday"`, `"next Tuesday"`, ""},
		{"string", "The day (dd.mm.yyyy)", `"2026-03-04"`, `"04.03.2026"`, ""},
		{"string", "The day (DD/MM/YYYY)", `"3/4/2026"`, `"03/04/2026"`, ""},
		{"string", "The day (MM/DD/YYYY)", `"4 March 2026"`, `"03/04/2026"`, ""},
		{"string", "The day (DD/MM/YYYY)", `"4/31/2026"`, `null`, "which is no day"},
		{"string", "ISO 8601 date of birth", `"Mar 4, 1980"`, `"1980-03-04"`, ""},
		{"string", "When: YYYY-MM-DD HH:MM", `"2026-03-03T10:00"`, `"2026-03-03T10:00"`, ""},
		{"string", "The day", `"March 3rd, 2026"`, `"March 3rd, 2026"`, ""},
	} {
		var answer, want any
		if json.Unmarshal([]byte(c.answer), &answer) != nil || json.Unmarshal([]byte(c.want), &want) != nil {
			t.Fatal(c)
		}
		got, why := valueOf(&parley.ExtractedItem{Name: "x", Type: c.kind, Description: c.description}, answer)
		if !reflect.DeepEqual(got, want) || (why == "") != (got != nil) || !strings.Contains(why, c.why) {
			t.Errorf("%s: %s becomes %#v, %q", c.kind, c.answer, got, why)
		}
	}
}
