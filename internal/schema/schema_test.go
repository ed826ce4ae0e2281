package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"parley/internal/parley"
)

const orderSchema = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","title":"Order",
	"properties":{"customer":{"type":"object","properties":{"name":{"type":"string","minLength":2},"vat":{"type":["string","null"]}},"required":["name"]},
		"items":{"type":"array","minItems":1,"items":{"$ref":"#/$defs/item"}},
		"size":{"enum":["s","m","l"],"description":"How large"},"day":{"type":"string","format":"date"},
		"count":{"type":"integer","minimum":1,"default":1,"description":"How many"},"express":{"type":"boolean"}},
	"required":["customer","items"],"additionalProperties":false,"x-own":{"kept":true},
	"$defs":{"item":{"type":"object","properties":{"sku":{"type":"string","pattern":"^[A-Z]{2}\\d+$"}},"required":["sku"]}}}`

func TestCheck(t *testing.T) {
	if err := Check([]byte(orderSchema)); err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, 20) + `{}` + strings.Repeat(`}}`, 20)
	bomb := `{"type":"object","properties":{"a":{"$ref":"#/$defs/a0"}},"$defs":{`
	for i := range 5 {
		bomb += fmt.Sprintf(`"a%d":{"allOf":[%s{}]},`, i, strings.Repeat(fmt.Sprintf(`{"$ref":"#/$defs/a%d"},`, i+1), 9))
	}
	bomb += `"a5":{}}}`
	wide := `{"type":"object","properties":{`
	for i := range 2100 {
		wide += fmt.Sprintf(`"p%d":{},`, i)
	}
	wide = strings.TrimSuffix(wide, ",") + "}}"
	in := func(property string) string { return `{"type":"object","properties":{"a":` + property + `}}` }
	for name, c := range map[string]struct{ schema, want string }{
		"a list":         {`[]`, "must be an object"},
		"a text":         {`"object"`, "must be an object"},
		"nothing":        {``, "must be an object"},
		"two":            {`{"type":"object"}{}`, "must be an object"},
		"of a list":      {`{"type":"array"}`, `must have "type": "object"`},
		"without a type": {`{"properties":{}}`, `must have "type": "object"`},
		"alternatives":   {`{"type":"object","anyOf":[{}]}`, "must not have anyOf at its top level"},
		"a name":         {`{"type":"object","properties":{"größe":{}}}`, "has the property"},
		"too large":      {`{"type":"object","description":"` + strings.Repeat("x", MaxBytes) + `"}`, "larger than 32 KB"},
		"too deep":       {deep, "nested more than 16 levels"},
		"too wide":       {wide, "more than 2000 parts"},
		"a bomb":         {bomb, "more than 2000 parts"},
		"a file":         {in(`{"$ref":"file:///etc/passwd"}`), "a $ref that leads nowhere (at properties.a)"},
		"another server": {in(`{"$ref":"http://127.0.0.1:1/x"}`), "leads nowhere"},
		"a missing part": {in(`{"$ref":"#/$defs/none"}`), "leads nowhere"},
		"itself":         {in(`{"$ref":"#"}`), "leads nowhere"},
		"a circle": {`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"items":{"$ref":"#/$defs/b"}}}}`,
			"refers to itself"},
		"an id":                {in(`{"$id":"http://x.test/"}`), "must not have $id (at properties.a)"},
		"another language":     {`{"$schema":"http://x.test/","type":"object"}`, "$schema of json-schema.org"},
		"inner language":       {in(`{"$schema":"http://json-schema.org/draft-07/schema#"}`), "top level alone"},
		"an unknown type":      {in(`{"type":"text"}`), "is not a valid JSON Schema"},
		"a negative length":    {in(`{"minLength":-1}`), "is not a valid JSON Schema"},
		"a property that is 1": {in(`1`), "no schema (at properties.a)"},
		"items as a list":      {in(`{"items":[{}]}`), "write prefixItems"},
		"a lookahead":          {in(`{"pattern":"(?=x)"}`), "can't be read"},
		"a long pattern":       {in(`{"pattern":"` + strings.Repeat("x", 501) + `"}`), "more than 500 characters"},
		"a costly pattern":     {in(`{"pattern":"(x{1,900}y{1,900}){1}(x{1,900}y{1,900}){1}z{900}"}`), "take too long"},
		"a key as a pattern":   {in(`{"patternProperties":{"(":{}}}`), "can't be read"},
		"a long number":        {in(`{"multipleOf":1e99999}`), "has a number"},
	} {
		began := time.Now()
		err := Check([]byte(c.schema))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
}

func TestFit(t *testing.T) {
	const customer = `"customer":{"name":"Eva"},"items":[{"sku":"AB12"}]`
	for args, want := range map[string]string{
		`{` + customer + `}`: "",
		`{` + customer + `,"size":"m","day":"2026-11-27","count":2,"express":true}`: "",
		`{"customer":{"name":"Eva","vat":null},"items":[{"sku":"AB12"}]}`:           "",
		`{"items":[{"sku":"AB12"}]}`:                                                "missing property 'customer'",
		`{"customer":{},"items":[{"sku":"AB12"}]}`:                                  "the argument customer: missing property 'name'",
		`{"customer":{"name":"Eva"},"items":[]}`:                                    "the argument items: minItems",
		`{"customer":{"name":"Eva"},"items":[{"sku":"ab"}]}`:                        "the argument items.0.sku: 'ab' does not match pattern",
		`{` + customer + `,"size":"xl"}`:                                            "the argument size: value must be one of",
		`{` + customer + `,"count":1.5}`:                                            "the argument count: got number, want integer",
		`{` + customer + `,"count":0}`:                                              "the argument count: minimum",
		`{` + customer + `,"day":"tomorrow"}`:                                       "the argument day: 'tomorrow' is not valid date",
		`{` + customer + `,"more":1}`:                                               "additional properties 'more' not allowed",
		`{` + customer + `,"count":1e99999}`:                                        "too many digits",
		`{` + customer + `,"size":"` + strings.Repeat("x", 70<<10) + `"}`:           "more than 64 KB",
	} {
		a, err := decode([]byte(args))
		if err != nil {
			t.Fatal(err)
		}
		err = Fit([]byte(orderSchema), a)
		if err == nil != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v, want %q", args, err, want)
		}
		if err != nil && len(err.Error()) > maxWrongBytes+10 {
			t.Errorf("%.100s is told in %d bytes", args, len(err.Error()))
		}
	}
}

// Many values that fit none of many alternatives cost neither minutes nor gigabytes.
func TestFitHostile(t *testing.T) {
	var alternatives []string
	for i := range 900 {
		alternatives = append(alternatives, fmt.Sprintf(`{"const":%d}`, i))
	}
	s := `{"type":"object","properties":{"a":{"type":"array","items":{"anyOf":[` + strings.Join(alternatives, ",") + `]}}}}`
	if err := Check([]byte(s)); err != nil {
		t.Fatal(err)
	}
	args := map[string]any{"a": make([]any, 12_000)}
	if err := Fit([]byte(s), args); err == nil || !strings.Contains(err.Error(), "send fewer") {
		t.Errorf("%v", err)
	}
	args = map[string]any{"a": make([]any, 200)}
	if err := Fit([]byte(s), args); err == nil || len(err.Error()) > maxWrongBytes+10 {
		t.Errorf("%v", err)
	}
}

func TestFill(t *testing.T) {
	s := []byte(
		`{"type":"object","properties":{"n":{"default":1},"o":{"properties":{"m":{"default":"x"}}},"p":{"properties":{"q":{"default":2}}}}}`)
	args := map[string]any{"o": map[string]any{}, "n": nil}
	Fill(s, args)
	if want := (map[string]any{"o": map[string]any{"m": "x"}, "n": nil}); !reflect.DeepEqual(args, want) {
		t.Errorf("got %v", args)
	}
}

// The short form says what it can, and what it says is a schema again.
func TestShort(t *testing.T) {
	long := strings.Repeat("ü", 300)
	s := `{"type":"object","required":["name","n"],"properties":{"name":{"type":"string","description":"Whose it is"},"n":{"type":"integer"},
		"maybe":{"type":["null","boolean"],"title":"Whether"},"list":{"type":"array"},"a-b":{"type":"string"},"nn":{"type":"number","description":"` + long + `"}}}`
	got := Short([]byte(s))
	want := []parley.ToolParam{{Name: "name", Type: "string", Description: "Whose it is", Required: true},
		{Name: "maybe", Type: "boolean", Description: "Whether"}, {Name: "nn", Type: "number", Description: strings.Repeat("ü", 254) + "…"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if again := Short(Of(want)); !reflect.DeepEqual(again, want) {
		t.Errorf("again %+v", again)
	}
	if err := Check(Of(want)); err != nil {
		t.Error(err)
	}
	if Same(Of(want), []byte(s)) || !Same([]byte(`{"a":1,"b":[2]}`), []byte(`{ "b":[2], "a":1}`)) {
		t.Error("what is the same is told wrong")
	}
}

func TestVendors(t *testing.T) {
	if got := ForOpenAI([]byte(`{"type":"object","properties":{"b":{"type":"array"},"a":{"type":"array","items":{}}}}`)); string(got) !=
		`{"properties":{"a":{"items":{},"type":"array"},"b":{"items":{},"type":"array"}},"type":"object"}` {
		t.Errorf("OpenAI is told %s", got)
	}
	kept := `{"type":"object","properties":{"b":{"type":"string","pattern":"x"},"a":{"type":"string"}}}`
	for vendor, got := range map[string]json.RawMessage{"OpenAI": ForOpenAI([]byte(kept)), "Anthropic": ForAnthropic([]byte(kept))} {
		if string(got) != kept {
			t.Errorf("%s is told %s", vendor, got)
		}
	}
	if got := string(ForAnthropic([]byte(orderSchema))); strings.Contains(got, "draft-07") || !strings.Contains(got, `"pattern"`) {
		t.Errorf("Anthropic is told %s", got)
	}
	if ForGemini(nil) != nil || string(ForOpenAI(nil)) != none || string(ForAnthropic([]byte(`[]`))) != none {
		t.Error("a tool without a schema")
	}
	got := ForGemini([]byte(`{"type":"object","$schema":"http://json-schema.org/draft-07/schema#","properties":{
		"a":{"type":"string","pattern":"^x$","description":"A code."},"b":{"const":"only"},"c":{"oneOf":[{"type":"string"},{"type":"null"}]},
		"d":{"$ref":"#/definitions/d","description":"beside"},"e":{"enum":[true]},"f":{"type":"integer","default":1,"minimum":0}},
		"required":["a"],"definitions":{"d":{"type":"string"}}}`))
	want := `{"type":"object","properties":{"a":{"type":"string","description":"A code. (JSON Schema: \"pattern\": \"^x$\")"},"b":{"enum":["only"]},
		"c":{"anyOf":[{"type":"string"},{"type":"null"}]},"d":{"$ref":"#/$defs/d"},"e":{"description":"(JSON Schema: \"enum\": [true])"},
		"f":{"type":"integer","minimum":0,"description":"(JSON Schema: \"default\": 1)"}},"required":["a"],"$defs":{"d":{"type":"string"}}}`
	if !Same(got, []byte(want)) {
		t.Errorf("Gemini is told %s", got)
	}
	if plain := `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"}}}`; string(ForGemini([]byte(plain))) != plain {
		t.Error("Gemini is told another order")
	}
	notes := Notes([]byte(orderSchema))
	if all := strings.Join(notes, "\n"); !strings.Contains(all, "Gemini has no pattern (at $defs.item.sku)") ||
		!strings.Contains(all, "no minLength (at customer.name)") {
		t.Errorf("noted %s", all)
	}
	if strings.Contains(strings.Join(notes, ""), "Gemini has no x-own") || strings.Contains(string(ForGemini([]byte(orderSchema))), "x-own") {
		t.Error("Gemini is told what is nobody's rule")
	}
}

// OpenAI holds its models to schemas that close every object and have no keyword that it may refuse.
func TestStrict(t *testing.T) {
	in := func(property string) string {
		return `{"type":"object","required":["a"],"additionalProperties":false,"properties":{"a":` + property + `}}`
	}
	deep := strings.Repeat(`{"type":"array","items":`, 12) + `{"type":"string"}` + strings.Repeat("}", 12)
	for s, want := range map[string]string{
		in(`{"type":["string","null"],"enum":["x",null]}`): "",
		in(`{"type":"array","items":{"type":"object","required":["b"],"additionalProperties":false,"properties":{"b":{"anyOf":[{"type":"integer"},{"$ref":"#/$defs/c"}]}}}}`): "",
		in(`{"type":"string","minLength":1}`):  "it has minLength (at a)",
		in(`{"type":"object","required":[]}`):  "additionalProperties is not false (at a)",
		in(`{"type":["array","null"]}`):        "it doesn't say what is in a list (at a)",
		in(`{"$ref":"#/$defs/b","title":"B"}`): "something stands beside $ref (at a)",
		in(`{"enum":[1]}`):                     "it has no type (at a)",
		in(`true`):                             `"a" has no type`,
		in(deep):                               "it is too deep (at a.items",
		`{"type":"object","additionalProperties":false,"properties":{"a":{},"b":{}},"required":["b"]}`: `"a" is not required`,
		`{"type":"object","additionalProperties":{},"properties":{}}`:                                  "additionalProperties is not false",
		string(Of(nil)): "additionalProperties is not false",
		`[]`:            "it is no schema of an object",
	} {
		if ok, why := Strict([]byte(s)); ok != (want == "") || !strings.HasPrefix(why, want) || want == "" && why != "" {
			t.Errorf("%s: %t, %q", s, ok, why)
		}
	}
	if all := strings.Join(Notes([]byte(orderSchema)), "\n"); !strings.Contains(all, "not held to it (strict): it has x-own.") {
		t.Errorf("noted %s", all)
	}
}

// FuzzSchema has whatever anybody writes as a schema checked, used and told to vendors.
func FuzzSchema(f *testing.F) {
	f.Add([]byte(orderSchema), []byte(`{"customer":{"name":"Eva"},"items":[{"sku":"AB12"}]}`))
	f.Add([]byte(`{"type":"object","properties":{"a":{"not":{}}}}`), []byte(`{"a":1}`))
	f.Add([]byte(`{"type":"object","$defs":null,"properties":null}`), []byte(`null`))
	f.Fuzz(func(t *testing.T, s, args []byte) {
		_, _ = Notes(s), Short(s)
		vendors := []json.RawMessage{ForOpenAI(s), ForAnthropic(s), ForGemini(s)}
		if Check(s) != nil {
			return
		}
		for _, v := range vendors {
			if root, err := decode(v); err != nil || root["type"] != "object" {
				t.Errorf("%s becomes %s", s, v)
			}
		}
		var a map[string]any
		if json.Unmarshal(args, &a) == nil && a != nil {
			Fill(s, a)
			_ = Fit(s, a)
		}
		for _, p := range Short(s) {
			if len(p.Name) < 2 || len(p.Description) < 3 || p.Type == "" {
				t.Errorf("%s has %+v", s, p)
			}
		}
	})
}

// The short form of what is found out has texts, numbers and yes or no, by names that a webhook may have.
func TestShortItems(t *testing.T) {
	own := `{"type":"object","properties":{"reached":{"type":"boolean"},"people":{"type":["integer","null"],"title":"How many"},
		"list":{"type":"array"},"X":{"type":"string"},"a_name_that_is_too_long":{"type":"string"}}}`
	want := []parley.ExtractedItem{{Name: "reached", Type: "bool", Description: "The value reached."},
		{Name: "people", Type: "number", Description: "How many"}}
	if got := ShortItems([]byte(own)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if again := ShortItems(OfItems(want)); !reflect.DeepEqual(again, want) || Check(OfItems(want)) != nil {
		t.Errorf("again %+v", again)
	}
}

// Of two forms the one that was changed counts.
func TestSettleForms(t *testing.T) {
	type both = Both[parley.ExtractedItem]
	short := []parley.ExtractedItem{{Name: "reached", Type: "bool", Description: "Whether"}}
	other := []parley.ExtractedItem{{Name: "mood", Type: "string", Description: "How it was"}}
	own := parley.JSONSchema(`{"type":"object","properties":{"list":{"type":"array"}}}`)
	none := []parley.ExtractedItem{}
	for name, c := range map[string]struct {
		old, now   both
		short, own bool
		want       both
		refused    string
	}{
		"nothing is sent":            {both{short, nil}, both{short, nil}, false, false, both{short, nil}, ""},
		"the schema":                 {both{short, nil}, both{short, own}, false, true, both{none, own}, ""},
		"both":                       {both{short, nil}, both{other, own}, true, true, both{none, own}, ""},
		"all that was shown":         {both{none, own}, both{none, own}, true, true, both{none, own}, ""},
		"shown, short form changed":  {both{short, nil}, both{other, OfItems(short)}, true, true, both{other, nil}, ""},
		"shown, short form emptied":  {both{short, nil}, both{none, OfItems(short)}, true, true, both{none, nil}, ""},
		"short form beside a schema": {both{none, own}, both{other, own}, true, true, both{other, nil}, ""},
		"short form alone":           {both{none, own}, both{other, own}, true, false, both{other, nil}, ""},
		"something else":             {both{none, own}, both{none, own}, false, false, both{none, own}, ""},
		"cleared":                    {both{none, own}, both{none, nil}, false, false, both{none, nil}, ""},
		"no more than the short one": {both{none, own}, both{none, OfItems(short)}, false, true, both{short, nil}, ""},
		"refused": {both{short, nil}, both{short, parley.JSONSchema(`{"type":"array"}`)}, false, true, both{},
			`must have "type": "object"`},
		"empty": {both{short, nil}, both{short, parley.JSONSchema(`{"type":"object"}`)}, false, true, both{}, "must have properties"},
	} {
		got, err := ItemForms.Settle(c.old, c.now, c.short, c.own)
		if c.refused != "" {
			if err == nil || !strings.HasPrefix(err.Error(), c.refused) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %s, %+v, %v", name, got.Own, got.Short, err)
		}
	}
}
