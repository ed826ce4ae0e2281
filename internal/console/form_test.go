package console

import (
	"encoding/json"
	"net/url"
	"reflect"
	"testing"

	"parley/internal/parley"
)

func TestDecode(t *testing.T) {
	type item struct {
		Name     string `json:"name"`
		Kind     string `json:"kind" enum:"a,b"`
		Required bool   `json:"required"`
	}
	type thing struct {
		ID     int64             `json:"id" readOnly:"true"`
		Hidden string            `json:"-"`
		Name   string            `json:"name"`
		Link   *string           `json:"link"`
		Count  int64             `json:"count"`
		Maybe  *int64            `json:"maybe"`
		Rate   float64           `json:"rate"`
		Dec    parley.Decimal    `json:"dec"`
		On     bool              `json:"on"`
		Flag   parley.Flag       `json:"flag"`
		Lines  []string          `json:"lines"`
		IDs    []int64           `json:"ids"`
		Vars   map[string]string `json:"vars"`
		Items  []item            `json:"items"`
		Inside struct {
			Deep string `json:"deep"`
		} `json:"inside"`
	}
	for _, c := range []struct{ name, form, want string }{
		{"nothing named, nothing there", "", `{}`},
		{"what is not the form's to set", "id=9&Hidden=x&-=x&other=x", `{}`},
		{"text, with HTML's line breaks", "name=a%0D%0Ab&link=x", `{"name":"a\nb","link":"x"}`},
		{"emptied boxes", "name=&link=+&count=&maybe=&rate=&dec=",
			`{"name":"","link":null,"count":null,"maybe":null,"rate":null,"dec":null}`},
		{"numbers", "count=+12&maybe=-3&rate=0.5&dec=1e2", `{"count":12,"maybe":-3,"rate":0.5,"dec":1e2}`},
		{"no numbers", "count=abc&maybe=1x&rate=.5&dec=01", `{"count":"abc","maybe":"1x","rate":".5","dec":"01"}`},
		{"no numbers but JSON", "count=null&maybe=true&rate=%7B%7D&dec=%221%22",
			`{"count":"null","maybe":"true","rate":"{}","dec":"\"1\""}`},
		{"switches", "on=0&on=1&flag=0", `{"on":true,"flag":false}`},
		{"lines", "lines=a%0D%0A%0D%0A+b+", `{"lines":["a","b"]}`},
		{"no lines", "lines=", `{"lines":[]}`},
		{"ids", "ids=&ids=3&ids=x", `{"ids":[3,"x"]}`},
		{"a map", "vars=&vars.2.key=b&vars.2.value=+2&vars.0.key=a&vars.0.value=&vars.1.key=&vars.1.value=",
			`{"vars":{"a":"","b":" 2"}}`},
		{"a value without a name is not lost", "vars=&vars.0.key=&vars.0.value=x", `{"vars":{"":"x"}}`},
		{"an emptied map", "vars=", `{"vars":{}}`},
		{"a list, in the order of its numbers", "items=&items.10.name=j&items.2.name=b&items.2.required=0&items.2.required=1",
			`{"items":[{"name":"b","required":true},{"name":"j"}]}`},
		{"an empty row", "items=&items.0.name=&items.0.kind=a&items.0.required=1", `{"items":[]}`},
		{"a switched row", "items=&items.0.on=0&items.0.name=x&items.1.on=0&items.1.on=1&items.1.kind=b",
			`{"items":[{"kind":"b"}]}`},
		{"no number, no row", "items=&items.x.name=a&items.-1.name=b&items.01.name=c&items.=d", `{"items":[]}`},
		{"an object", "inside.deep=x", `{"inside":{"deep":"x"}}`},
	} {
		v, err := url.ParseQuery(c.form)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(decode(v, reflect.TypeFor[thing]()))
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		json.Unmarshal(got, &a)
		if err := json.Unmarshal([]byte(c.want), &b); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestRulesComeFromTheType(t *testing.T) {
	f := fieldsOf[parley.Assistant](nil, nil)
	if r := f.rule("name"); !r.required || r.maxLength != "255" {
		t.Errorf("name: %+v", r)
	}
	if r := f.rule("keywords"); r.maxLength != "" { // the limit is for each keyword
		t.Errorf("keywords: %+v", r)
	}
	if r := f.rule("speech_speed"); r.min != "0.7" || r.max != "1.2" || r.def != "1.00" {
		t.Errorf("speech_speed: %+v", r)
	}
	if r := f.rule("post_call_schema.4.name"); !r.required || r.maxLength != "16" {
		t.Errorf("post_call_schema.name: %+v", r)
	}
	if r := f.rule("widget_settings.pre_chat_fields.0.label"); !r.required || r.maxLength != "255" {
		t.Errorf("pre_chat_fields.label: %+v", r)
	}
}

func TestFieldsSurviveStrangeTrees(t *testing.T) {
	f := fieldsOf[parley.Assistant](map[string]any{"name": []any{"x"}, "keywords": "x", "variables": []any{},
		"post_call_schema": map[string]any{}, "tools": []any{nil, "x"}}, nil)
	if f.text("name") != "" || f.lines("keywords") != "" || f.pairs("variables") != nil ||
		f.rows("post_call_schema") != nil || f.text("tools.1.type.x") != "" || f.text("tools.9") != "" {
		t.Error("a wrong shape shows something")
	}
}

// Whatever is sent, the decoder makes a tree that can be JSON, and decoding it again gives the same.
func FuzzDecode(f *testing.F) {
	f.Add("name=x&tools.0.type=end_call&tools.0.on=1&variables.0.key=a&widget_settings.color=red")
	f.Add("post_call_schema.0.name=a&post_call_schema.99999999999999999999.name=b&seen=1")
	f.Add("tools.0.assistant_id=1e999&max_duration=%00&llm_temperature=%ff&filler_config.neutral=a%0Ab")
	f.Fuzz(func(t *testing.T, query string) {
		v, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		for _, typ := range []reflect.Type{reflect.TypeFor[parley.Assistant](), reflect.TypeFor[parley.Tool]()} {
			tree := decode(v, typ)
			if _, err := json.Marshal(tree); err != nil {
				t.Fatalf("%q: %v", query, err)
			}
			if !reflect.DeepEqual(tree, decode(v, typ)) {
				t.Fatalf("%q is read in two ways", query)
			}
		}
	})
}
