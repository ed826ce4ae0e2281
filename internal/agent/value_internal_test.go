package agent

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"parley"
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
		{"number", "", `"unknown"`, `null`, ""},
		{"number", "", `""`, `null`, ""},
		{"number", "", `null`, `null`, ""},
		{"bool", "", `true`, `true`, ""},
		{"bool", "", `"true"`, `true`, ""},
		{"bool", "", `"Yes."`, `true`, ""},
		{"bool", "", `"nein"`, `false`, ""},
		{"bool", "", `"Não"`, `false`, ""},
		{"bool", "", `1`, `true`, ""},
		{"bool", "", `0`, `false`, ""},
		{"bool", "", `2`, `null`, "2, which is no boolean"},
		{"bool", "", `"maybe"`, `null`, `"maybe", which is no boolean`},
		{"bool", "", `"N/A"`, `null`, ""},
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
		{"string", "The day, YYYY-MM-DD", `"03/04/2026"`, `"03/04/2026"`, ""},
		{"string", "When: YYYY-MM-DD HH:MM", `"2026-03-03T10:00"`, `"2026-03-03T10:00"`, ""},
		{"string", "The day", `"March 3rd, 2026"`, `"March 3rd, 2026"`, ""},
	} {
		var answer, want any
		if json.Unmarshal([]byte(c.answer), &answer) != nil || json.Unmarshal([]byte(c.want), &want) != nil {
			t.Fatal(c)
		}
		got, why := valueOf(&parley.ExtractedItem{Name: "x", Type: c.kind, Description: c.description}, answer)
		if !reflect.DeepEqual(got, want) || (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %s becomes %#v, %q", c.kind, c.answer, got, why)
		}
	}
}
