package form_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"parley/internal/form"
	"parley/internal/parley"
)

// tree returns text as the API's body reader would.
func tree(t testing.TB, text string) map[string]any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v map[string]any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

type inner struct {
	Color string   `json:"color" default:"red" enum:"red,blue"`
	Tags  []string `json:"tags" maxLength:"3"`
}

type item struct {
	Name string `json:"name" required:"true" minLength:"2"`
	On   bool   `json:"on" default:"true"`
}

type sample struct {
	Name   string            `json:"name" required:"true" maxLength:"5"`
	Note   *string           `json:"note" maxLength:"5"`
	Secret string            `json:"secret" trim:"off" minLength:"2"`
	Kind   string            `json:"kind" default:"a" enum:"a,b"`
	Age    int64             `json:"age" default:"7" minimum:"1" maximum:"99"`
	Limit  *int64            `json:"limit" minimum:"0"`
	Ratio  float64           `json:"ratio" default:"0.5" minimum:"0" maximum:"1"`
	Heat   parley.Decimal    `json:"heat" default:"0.10" minimum:"0" maximum:"1"`
	Flag   parley.Flag       `json:"flag" default:"1"`
	Cost   parley.Money      `json:"cost"`
	On     bool              `json:"on" default:"true"`
	IDs    []int64           `json:"ids" maxItems:"3" uniqueItems:"true"`
	Items  []item            `json:"items" maxItems:"2"`
	Extra  []string          `json:"extra,omitempty"`
	Vars   map[string]string `json:"vars" maxProperties:"2"`
	Free   map[string]string `json:"free" format:"variables"`
	Who    *int64            `json:"who" format:"assistant"`
	Any    map[string]any    `json:"any"`
	Inner  inner             `json:"inner"`
	Code   string            `json:"code" pattern:"^[a-z]+$" must:"be lower case"`
	Mail   string            `json:"mail" format:"email"`
	Day    string            `json:"day" format:"date"`
	ID     int64             `json:"id" readOnly:"true"`
	Hidden string            `json:"-"`
}

func fresh() *sample {
	s := &sample{}
	form.Defaults(s)
	return s
}

func TestDefaults(t *testing.T) {
	s := fresh()
	want := &sample{Kind: "a", Age: 7, Ratio: .5, Heat: 10, Flag: true, On: true, IDs: []int64{}, Items: []item{},
		Vars: map[string]string{}, Free: map[string]string{},
		Any: map[string]any{}, Inner: inner{Color: "red", Tags: []string{}}}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("defaults %+v", s)
	}
}

// Each line: a body that fails, and its errors; fields that are not named are valid.
func TestBindRefuses(t *testing.T) {
	for body, want := range map[string]string{
		`{}`:                                                "The name field is required.",
		`{"name":null}`:                                     "The name field is required.",
		`{"name":" \u00a0\t"}`:                              "The name field is required.",
		`{"name":"abcdef"}`:                                 "The name field must not be greater than 5 characters.",
		`{"name":"äöüßéx"}`:                                 "The name field must not be greater than 5 characters.",
		`{"name":7}`:                                        "The name field must be a string.",
		`{"name":"a","note":"abcdef"}`:                      "The note field must not be greater than 5 characters.",
		`{"name":"a","note":false}`:                         "The note field must be a string.",
		`{"name":"a","secret":"x"}`:                         "The secret field must be at least 2 characters.",
		`{"name":"a","kind":"c"}`:                           "The kind field must be one of: a, b.",
		`{"name":"a","kind":""}`:                            "The kind field must be one of: a, b.",
		`{"name":"a","age":0}`:                              "The age field must be at least 1.",
		`{"name":"a","age":100}`:                            "The age field must not be greater than 99.",
		`{"name":"a","age":1.5}`:                            "The age field must be an integer.",
		`{"name":"a","age":"5.0"}`:                          "The age field must be an integer.",
		`{"name":"a","age":"+5"}`:                           "The age field must be an integer.",
		`{"name":"a","age":"five"}`:                         "The age field must be an integer.",
		`{"name":"a","age":""}`:                             "The age field must be an integer.",
		`{"name":"a","age":"99999999999999999999"}`:         "The age field must be an integer.",
		`{"name":"a","age":"-5"}`:                           "The age field must be at least 1.",
		`{"name":"a","age":true}`:                           "The age field must be an integer.",
		`{"name":"a","age":1e400}`:                          "The age field must be an integer.",
		`{"name":"a","limit":-1}`:                           "The limit field must be at least 0.",
		`{"name":"a","ratio":1.01}`:                         "The ratio field must not be greater than 1.",
		`{"name":"a","ratio":"0.5"}`:                        "The ratio field must be a number.",
		`{"name":"a","heat":1.004}`:                         "The heat field must not be greater than 1.",
		`{"name":"a","heat":"-0.001"}`:                      "The heat field must be at least 0.",
		`{"name":"a","heat":"warm"}`:                        "The heat field must be a number.",
		`{"name":"a","flag":2}`:                             "The flag field must be true or false.",
		`{"name":"a","flag":"true"}`:                        "The flag field must be true or false.",
		`{"name":"a","cost":"5"}`:                           "The cost field must be a number.",
		`{"name":"a","cost":1e3}`:                           "The cost field must be a number.",
		`{"name":"a","on":2}`:                               "The on field must be true or false.",
		`{"name":"a","on":"yes"}`:                           "The on field must be true or false.",
		`{"name":"a","on":"true"}`:                          "The on field must be true or false.",
		`{"name":"a","on":""}`:                              "The on field must be true or false.",
		`{"name":"a","ids":[1,2,3,4]}`:                      "The ids field must not have more than 3 items.",
		`{"name":"a","ids":[1,2,1]}`:                        "The ids.2 field has a duplicate value.",
		`{"name":"a","ids":[1,"x"]}`:                        "The ids.1 field must be an integer.",
		`{"name":"a","ids":[2,"2"]}`:                        "The ids.1 field has a duplicate value.",
		`{"name":"a","who":"7b4"}`:                          "The who field must be an integer or a UUID.",
		`{"name":"a","free":{"a":[]}}`:                      "The free.a field must be a string.",
		`{"name":"a","free":{"a":{}}}`:                      "The free.a field must be a string.",
		`{"name":"a","free":[1]}`:                           "The free field must be an object.",
		`{"name":"a","free":{"a":""` + bulk(10) + `}}`:      "The free field must not hold more than 100000 bytes altogether.",
		`{"name":"a","free":""}`:                            "The free field must be an object.",
		`{"name":"a","ids":{"0":1}}`:                        "The ids field must be an array.",
		`{"name":"a","items":[{}]}`:                         "The items.0.name field is required.",
		`{"name":"a","items":[5]}`:                          "The items.0 field must be an object.",
		`{"name":"a","items":[null]}`:                       "The items.0 field is required.",
		`{"name":"a","items":[{"name":"bb"},{"name":"b"}]}`: "The items.1.name field must be at least 2 characters.",
		`{"name":"a","vars":{"a":"1","b":"2","c":"3"}}`:     "The vars field must not have more than 2 entries.",
		`{"name":"a","vars":{"a":1}}`:                       "The vars.a field must be a string.",
		`{"name":"a","vars":{" ":"x"}}`:                     "The vars field must have names of 1 to 255 characters.",
		`{"name":"a","vars":[]}`:                            "The vars field must be an object.",
		`{"name":"a","inner":[]}`:                           "The inner field must be an object.",
		`{"name":"a","inner":{"color":"green"}}`:            "The inner.color field must be one of: red, blue.",
		`{"name":"a","inner":{"tags":["abcd"]}}`:            "The inner.tags.0 field must not be greater than 3 characters.",
		`{"name":"a","inner":{"tags":[""]}}`:                "The inner.tags.0 field is required.",
		`{"name":"a","code":"A"}`:                           "The code field must be lower case.",
		`{"name":"a","mail":"x"}`:                           "The mail field must be a valid email address.",
		`{"name":"a","day":"2026-02-30"}`:                   "The day field must be a valid date such as 2026-01-31.",
		`{"name":"a\u0000"}`:                                "The name field must not contain null characters or broken encoding.",
	} {
		f := form.Bind(tree(t, body), fresh(), true)
		if len(f) != 1 || f.Err().Error() != want {
			t.Errorf("%s: %v, want %s", body, f, want)
		}
	}
	f := form.Bind(tree(t, `{"age":0,"kind":5,"items":[{"on":"x"}],"vars":{"b":1,"a":2}}`), fresh(), true)
	if got, want := fmt.Sprint(names(f)), "[name kind age items.0.name items.0.on vars.a vars.b]"; got != want {
		t.Errorf("in the order %s, want %s", got, want)
	}
}

// bulk returns n further entries of 10,000 bytes.
func bulk(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"k%d":"%s"`, i, strings.Repeat("x", 10_000))
	}
	return b.String()
}

func names(f parley.Fields) (list []string) {
	for _, e := range f {
		list = append(list, e.Name)
	}
	return list
}

func TestBindPartly(t *testing.T) {
	s := fresh()
	body := `{"name":" Ana ","note":"n","secret":" s ","kind":"b","age":9,"limit":0,"ratio":1,"heat":"0.555","flag":false,"cost":1.25,"on":false,"ids":[3,1],
		"items":[{"name":"ab"}],"extra":["x"],"vars":{" k ":" v "},"any":{"x":[1]},"inner":{"color":"blue","tags":["t"]},"code":"x","mail":"a@b.de","day":"2026-01-31","id":5,"unknown":{}}`
	if f := form.Bind(tree(t, body), s, true); f != nil {
		t.Fatal(f)
	}
	n, zero := "n", int64(0)
	want := &sample{Name: "Ana", Note: &n, Secret: " s ", Kind: "b", Age: 9, Limit: &zero, Ratio: 1, Heat: 56,
		Cost: 1_250_000, IDs: []int64{3, 1},
		Items: []item{{"ab", true}}, Extra: []string{"x"}, Vars: map[string]string{"k": " v "},
		Free: map[string]string{}, Any: map[string]any{"x": []any{json.Number("1")}},
		Inner: inner{"blue", []string{"t"}}, Code: "x", Mail: "a@b.de", Day: "2026-01-31"}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("bound %+v", s)
	}
	before := *s
	if f := form.Bind(tree(t, `{}`), s, false); f != nil || !reflect.DeepEqual(before, *s) {
		t.Errorf("nothing changed %+v: %v", s, f)
	}
	if f := form.Bind(tree(t, `{"name":5,"age":0,"ids":["x"],"items":[{}],"vars":[],"inner":{"color":"x"},"limit":-1}`), s,
		false); len(f) != 7 || !reflect.DeepEqual(before, *s) {
		t.Errorf("what failed changed %+v: %v", s, f)
	}
	// Lists and maps are replaced, objects are merged, null means the default.
	if f := form.Bind(tree(t, `{"items":[],"vars":{"z":""},"inner":{"tags":[]},"note":" ","limit":null,"kind":null,"heat":null,"flag":null,"ids":null,"any":null,"extra":null}`), s, false); f != nil {
		t.Fatal(f)
	}
	want.Items, want.Vars, want.Inner.Tags, want.Note, want.Limit, want.Kind = []item{}, map[string]string{"z": ""},
		[]string{}, nil, nil, "a"
	want.Heat, want.Flag, want.IDs, want.Any, want.Extra = 10, true, []int64{}, map[string]any{}, nil
	if !reflect.DeepEqual(s, want) {
		t.Errorf("changed to %+v", s)
	}
	form.Bind(tree(t, `{"inner":null}`), s, false)
	if s.Inner.Color != "red" || s.Inner.Tags == nil {
		t.Errorf("null makes %+v", s.Inner)
	}
}

// The notations that clients of this API use are accepted with their meaning, and no others.
func TestBindTakesWhatClientsSend(t *testing.T) {
	for body, want := range map[string]func(s *sample){
		`{"age":"12","limit":" 0 ","ids":["3",1]}`: func(s *sample) {
			zero := int64(0)
			s.Age, s.Limit, s.IDs = 12,
				&zero, []int64{3, 1}
		},
		`{"on":0,"flag":"0"}`:                func(s *sample) { s.On, s.Flag = false, false },
		`{"on":"0","flag":0}`:                func(s *sample) { s.On, s.Flag = false, false },
		`{"items":[{"name":"ab","on":"0"}]}`: func(s *sample) { s.Items = []item{{"ab", false}} },
		`{"who":"8"}`:                        func(s *sample) { eight := int64(8); s.Who = &eight },
		`{"free":[]}`:                        func(s *sample) {},
		`{"free":{"n":1.50,"e":1e3,"big":12345678901234567890,"t":true,"f":false,"nil":null,"s":" x "}}`: func(
			s *sample) {
			s.Free = map[string]string{"n": "1.50", "e": "1e3", "big": "12345678901234567890", "t": "true",
				"f": "false", "nil": "", "s": " x "}
		},
	} {
		got, expect := fresh(), fresh()
		want(expect)
		if f := form.Bind(tree(t, body), got, false); f != nil || !reflect.DeepEqual(got, expect) {
			t.Errorf("%s is %+v: %v", body, got, f)
		}
	}
	s := fresh()
	if f := form.Bind(tree(t, `{"on":"1","flag":1}`), s, false); f != nil || !s.On || s.Flag != true {
		t.Errorf("1 is %+v: %v", s, f)
	}
}

// A UUID is only replaced if the field names an assistant.
func TestAssistants(t *testing.T) {
	type tool struct {
		Who *int64 `json:"who" format:"assistant"`
	}
	type body struct {
		Who   int64             `json:"who" format:"assistant" query:"who"`
		Text  string            `json:"text"`
		Vars  map[string]string `json:"vars" format:"variables"`
		Tools []tool            `json:"tools"`
		One   tool              `json:"one"`
	}
	const id = "0b0e7d60-9d3b-4a0a-8a53-0b7f2d7c6a11"
	asked := 0
	find := func(uuid string) (int64, error) {
		if asked++; uuid != id {
			t.Errorf("asked for %q", uuid)
		}
		return 12, nil
	}
	in := tree(t, `{"who":" `+id+` ","text":"`+id+`","vars":{"who":"`+id+`"},"tools":[{"who":"`+id+
		`"},{"who":5},7],"one":{"who":"`+id+`"}}`)
	if err := form.Assistants(in, reflect.TypeFor[body](), find); err != nil || asked != 3 {
		t.Fatalf("asked %d times: %v", asked, err)
	}
	delete(in, "tools")
	var b body
	if f := form.Bind(in, &b, true); f != nil || b.Who != 12 || *b.One.Who != 12 || b.Text != id ||
		b.Vars["who"] != id {
		t.Errorf("%+v: %v", b, f)
	}
	q := url.Values{"who": {id}, "other": {id}}
	if err := form.QueryAssistants(q, reflect.TypeFor[body](), find); err != nil || q.Get("who") != "12" ||
		q.Get("other") != id {
		t.Errorf("%v: %v", q, err)
	}
	failed := errors.New("no database")
	if err := form.Assistants(tree(t, `{"tools":[{"who":"`+id+`"}]}`), reflect.TypeFor[body](),
		func(string) (int64, error) { return 0, failed }); err != failed {
		t.Error(err)
	}
}

func TestURLs(t *testing.T) {
	type link struct {
		URL    string `json:"url" format:"http-url"`
		Origin string `json:"origin" format:"origin"`
	}
	for text, want := range map[string][2]bool{ // URL, origin
		"https://example.com": {true, true}, "http://example.com:8080": {true, true},
		"https://example.com/": {true, false}, "https://example.com?x": {true, false},
		"https://example.com#x": {true, false}, "https://[::1]:80": {true, true}, "http://1.2.3.4": {true, true},
		"HTTPS://Example.com":              {true, true},
		"https://example.com/{id}?q={{v}}": {true, false}, "https://example.com?q={v}": {true, false},
		"https://{host}": {}, "https://{h}?x": {}, "https://user:pw@example.com": {},
		"https://": {}, "https://?x": {}, "https://:80": {}, "example.com": {}, "//example.com": {},
		"ftp://example.com": {}, "https:/example.com": {}, "https:example.com": {},
		"https://exa mple.com": {}, "https://example.com/a b": {}, "https://example.com:0": {},
		"https://example.com:70000": {}, "https://example.com:x": {},
		"https://example.com/<script>": {}, "https://example.com\\@evil.com": {},
		"https://example.com/\n": {true, false}, "https://exa\nmple.com": {}, "https://%zz": {}, "null": {}, "*": {},
	} {
		for i, field := range []string{"url", "origin"} {
			f := form.Bind(map[string]any{field: text}, &link{}, true)
			if (f == nil) != want[i] {
				t.Errorf("%q as %s: %v", text, field, f)
			}
		}
	}
}

type params struct {
	Page int     `query:"page" minimum:"1" maximum:"10"`
	ID   *int64  `query:"id"`
	Rate float64 `query:"rate"`
	On   bool    `query:"on"`
	Kind string  `query:"kind" enum:"a,b"`
	Text string  `query:"text" maxLength:"3"`
	Body struct{}
}

func TestQuery(t *testing.T) {
	var p params
	if f := form.Query(url.Values{"page": {"3", "x"}, "id": {" 5 "}, "rate": {"0.5"}, "on": {"1"}, "kind": {"b"},
		"text": {"äöü"}, "other": {"x"}}, &p); f != nil ||
		p.Page != 3 || *p.ID != 5 || p.Rate != .5 || !p.On || p.Kind != "b" || p.Text != "äöü" {
		t.Errorf("%+v: %v", p, f)
	}
	if f := form.Query(url.Values{"page": {""}, "id": {" "}}, &params{}); f != nil {
		t.Error(f)
	}
	for name, values := range map[string][]string{"page": {"0", "11", "x", "1e0", "0x1", "1_0", "--1", "1.5",
		"Inf"}, "id": {"x", "1.5", "true"}, "rate": {"x", "Inf", "1e5"}, "on": {"yes", "2", "TRUE"},
		"kind": {"c", "A"}, "text": {"abcd", "\x00", "\xff"}} {
		for _, v := range values {
			if f := form.Query(url.Values{name: {v}}, &params{}); len(f) != 1 || !f.Has(name) {
				t.Errorf("%s=%q: %v", name, v, f)
			}
		}
	}
}
