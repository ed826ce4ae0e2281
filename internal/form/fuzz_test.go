package form_test

import (
	"encoding/json"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"parley/internal/form"
	"parley/internal/parley"
)

// An accepted assistant is accepted again in the form in which it is written, and that changes nothing.
func FuzzBindAssistant(f *testing.F) {
	for _, s := range []string{`{}`, `{"name":" a ","variables":{" a":"b","a ":"c"},"tools":[{"type":"end_call","headers":[]}]}`,
		`{"llm_temperature":"1e-1","fillers":true}`,
		`{"filler_config":{"neutral":[" x "]},"widget_settings":{"color":"#ABC","pre_chat_fields":[{"variable":"a","label":"b"}]}}`,
		`{"webhook_url":"http://{a}","speech_speed":1.199}`,
		`{"post_call_schema":null,"tool_ids":[1e0,2],"min_interrupt_words":1.0,"endpoint_sensitivity":4.999999999999999999}`,
		`{"keywords":["\u0085a\u2028"],"initial_message":" a"}`,
		`{"tools":[{"type":"mid_call","id":1,"schema":[{"name":"ab","type":"number","description":"abc"}]}],"pronunciations":{"a.b":"\\"}}`} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, text []byte, create bool) {
		body, ok := decode(text)
		if !ok {
			return
		}
		a := &parley.Assistant{}
		form.Defaults(a)
		fields := form.Bind(body, a, create)
		if len(fields) > 0 {
			if _, err := json.Marshal(fields); err != nil || fields.Err() == nil {
				t.Errorf("the errors %v are not told: %v", fields, err)
			}
			return
		}
		written, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := decode(written)
		for name, v := range again { // a new assistant has none of these yet
			if v == "" || v == json.Number("0") {
				delete(again, name)
			}
		}
		b := *a
		if fields := form.Bind(again, &b, false); fields != nil {
			t.Errorf("%s was accepted, but not again: %v", text, fields)
		}
		if rewritten, _ := json.Marshal(&b); string(rewritten) != string(written) {
			t.Errorf("%s was written\n%s\nand then\n%s", text, written, rewritten)
		}
	})
}

func decode(text []byte) (map[string]any, bool) {
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.UseNumber()
	var v map[string]any
	return v, dec.Decode(&v) == nil && v != nil
}

// Accepted page parameters are within their limits, whatever the query says.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{"page=1&per_page=100", "page=0x1p3", "per_page=%00", "page=1e1", "page=+1",
		"page=-1&page=2", "per_page=99999999999999999999", "%zz&page=;"} {
		f.Add(s)
	}
	type pages struct {
		PerPage int `query:"per_page" minimum:"1" maximum:"100"`
		Page    int `query:"page" minimum:"1" maximum:"2147483648"`
	}
	f.Fuzz(func(t *testing.T, query string) {
		q, _ := url.ParseQuery(query)
		var p pages
		fields := form.Query(q, &p)
		if p.PerPage < 0 || p.PerPage > 100 || p.Page < 0 || p.Page > 1<<31 {
			t.Errorf("%q is %+v", query, p)
		}
		for name, n := range map[string]int{"page": p.Page, "per_page": p.PerPage} {
			if given := strings.TrimSpace(q.Get(name)) != ""; given == (n == 0 && !fields.Has(name)) {
				t.Errorf("%q: %s is %d, fields %v", query, name, n, fields)
			}
		}
	})
}

func FuzzBindTool(f *testing.F) {
	f.Add([]byte(`{"name":"a","endpoint":"https://example.com/{a}","headers":[{"name":"A","value":" b "}],"schema":[{"name":"ab","type":"string","description":"abc","required":null}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		body, ok := decode(text)
		if !ok {
			return
		}
		tool := &parley.Tool{}
		form.Defaults(tool)
		if form.Bind(body, tool, true) != nil {
			return
		}
		written, _ := json.Marshal(tool)
		again, _ := decode(written)
		same := *tool
		if fields := form.Bind(again, &same, false); fields != nil || !reflect.DeepEqual(same, *tool) {
			t.Errorf("%s was accepted, but not again: %v", text, fields)
		}
	})
}
