package tool

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"parley/internal/parley"
)

func params(list ...string) []parley.ToolParam { // "id:number" is required, "id:number?" is not
	var schema []parley.ToolParam
	for _, s := range list {
		name, typ, _ := strings.Cut(s, ":")
		typ, optional := strings.CutSuffix(typ, "?")
		schema = append(schema, parley.ToolParam{Name: name, Type: typ, Description: "a " + name, Required: !optional})
	}
	return schema
}

func TestEndpoint(t *testing.T) {
	const base = "https://api.test/"
	type object = map[string]any
	vars := map[string]string{"phone": "+49 30/1&2", "brace": "{id}", "braces": "{{phone}}", "dots": "..",
		"utf": "ü", "half": "."}
	for _, c := range []struct {
		endpoint string
		args     object
		want     string // "" for an error
	}{
		// where a value stands
		{base + "users/{id}", object{"id": "7"}, base + "users/7"},
		{base + "users/{id}/x", object{"id": "a b/c?d#e%f"}, base + "users/a%20b%2Fc%3Fd%23e%25f/x"},
		{base + "s?q={id}&z=1", object{"id": "a b&c=d#e+f/?"}, base + "s?q=a+b%26c%3Dd%23e%2Bf%2F%3F&z=1"},
		{base + "{id}/{id}?id={id}", object{"id": "x"}, base + "x/x?id=x"},
		{base + "{id}.{id}", object{"id": "x"}, base + "x.x"},
		{base + "u/{id}", object{"id": "ü"}, base + "u/%C3%BC"},
		{base + "u/{id}", object{"id": "@evil.test:80"}, base + "u/@evil.test:80"},
		{base + "u/{id}", object{"id": "\r\nX: y\x00"}, base + "u/%0D%0AX:%20y%00"},
		{"https://api.test?q={id}", object{"id": "x"}, "https://api.test?q=x"},
		{"https://api.test", nil, "https://api.test"},
		{"http://[::1]:8080/{id}", object{"id": "x"}, "http://[::1]:8080/x"},
		{" HTTPS://Api.test:8443/a#{id}", object{"id": "x"}, "https://Api.test:8443/a"},
		// variables
		{base + "u/{{phone}}?p={{ phone }}", nil, base + "u/+49%2030%2F1&2?p=%2B49+30%2F1%262"},
		{base + "u/{{none}}/x?y={{none}}", nil, base + "u//x?y="},
		{base + "{{utf}}", nil, base + "%C3%BC"},
		// nothing is filled in twice
		{base + "{{brace}}?b={{brace}}", object{"id": "x"}, base + "%7Bid%7D?b=%7Bid%7D"},
		{base + "{{braces}}", object{"id": "x"}, base + "%7B%7Bphone%7D%7D"},
		{base + "{id}?i={id}", object{"id": "{{phone}}"}, base + "%7B%7Bphone%7D%7D?i=%7B%7Bphone%7D%7D"},
		{base + "{id}{other}", object{"id": "{other}", "other": "{id}"}, base + "%7Bother%7D%7Bid%7D"},
		{base + "{id}id}}", object{"id": "{{"}, base + "%7B%7Bid%7D%7D"},
		// text that is no placeholder stays
		{base + "{none}", object{"none": "x"}, base + "%7Bnone%7D"},
		{base + "{}/{{}}/{{a b}}/{ id }/}{", object{"id": "x"}, base +
			"%7B%7D/%7B%7B%7D%7D/%7B%7Ba%20b%7D%7D/%7B%20id%20%7D/%7D%7B"},
		{base + "{{{id}}}", object{"id": "x"}, base + "%7B%7Bx%7D%7D"},
		{base + "{{id}}", object{"id": "x"}, base}, // names a variable that does not exist
		// literals that are not a valid URL do not loosen the rules for values
		{base + "a b/ü/{id}", object{"id": "x/y"}, base + "a%20b/%C3%BC/x%2Fy"},
		{base + `a\b%2Fc%zz/{id}?a b="%1`, object{"id": "x/y"}, base + "a%5Cb%2Fc%25zz/x%2Fy?a%20b=%22%251"},
		{base + "f?filter[name]={id}", object{"id": "x]"}, base + "f?filter[name]=x%5D"},
		{base + "../x/./{id}", object{"id": "y"}, base + "../x/./y"}, // dots in the template itself are its author's choice
		// a value stays in its segment
		{base + "u/{id}/x", object{"id": ".."}, ""},
		{base + "u/{id}/x", object{"id": "."}, ""},
		{base + "u/{id}", object{"id": "../../admin"}, ""},
		{base + "u/{id}", object{"id": `..\admin`}, ""},
		{base + "u/{id}", object{"id": "a/../b"}, ""},
		{base + "u/{id}", object{"id": "..;x=y"}, ""},
		{base + "u/.{id}", object{"id": "."}, ""},
		{base + "u/{id}{other}", object{"id": ".", "other": "."}, ""},
		{base + "u/.{{half}}", nil, ""},
		{base + "u/{{dots}}", nil, ""},
		{base + "u/%2e{id}", object{"id": "."}, ""},
		{base + "u/...{id}", object{"id": "."}, base + "u/...."},
		{base + "u/v{id}", object{"id": "1..2"}, base + "u/v1..2"},
		{base + "u?p={id}", object{"id": "../.."}, base + "u?p=..%2F.."},
		{base + "u/{id}", object{"id": "%2e%2e"}, base + "u/%252e%252e"},
		{base + "u/{id}", object{"id": ""}, ""},
		{base + "u/{id}", nil, ""},
		{base + "u?id={id}", nil, base + "u?id="},
		// scheme and host are the template's own
		{"https://{id}/x", object{"id": "evil.test"}, ""},
		{"https://{{phone}}.test/x", nil, ""},
		{"https://api.test{id}", object{"id": ".evil.test"}, ""},
		{"https://api.test:{id}/", object{"id": "80"}, ""},
		{"{id}://api.test/", object{"id": "file"}, ""},
		{"{id}", object{"id": "https://evil.test/"}, ""},
		{`https://api.test\@evil.test/`, nil, ""},
		{"https:///x", nil, ""},
		{"api.test/x", nil, ""},
		{"", nil, ""},
	} {
		tool := &parley.Tool{Endpoint: c.endpoint, Schema: params("id:string?", "other:string?")}
		u, _, err := endpoint(tool, c.args, vars)
		switch {
		case err != nil && c.want != "":
			t.Errorf("%s %v: %v, want %s", c.endpoint, c.args, err, c.want)
		case err == nil && u.String() != c.want:
			t.Errorf("%s %v: %s, want %q", c.endpoint, c.args, u, c.want)
		}
	}
}

func TestArguments(t *testing.T) {
	for _, c := range []struct {
		typ   string
		given any
		want  any // nil for an error
	}{
		{"string", "x", "x"},
		{"string", "", ""},
		{"string", " x ", " x "},
		{"string", "a\xffb", "a\uFFFDb"},
		{"string", 4915112345678.0, "4915112345678"},
		{"string", json.Number("49151123456789012345"), "49151123456789012345"},
		{"string", 1.5, "1.5"},
		{"string", true, "true"},
		{"string", []any{"x"}, nil},
		{"string", map[string]any{}, nil},
		{"number", 5.0, json.Number("5")},
		{"number", 5, json.Number("5")},
		{"number", -0.25, json.Number("-0.25")},
		{"number", 1e21, json.Number("1000000000000000000000")},
		{"number", json.Number("12345678901234567890"), json.Number("12345678901234567890")},
		{"number", "5", json.Number("5")},
		{"number", " 5.50\n", json.Number("5.50")},
		{"number", "1e3", json.Number("1e3")},
		{"number", "five", nil},
		{"number", "", nil},
		{"number", "null", nil},
		{"number", "0x10", nil},
		{"number", "NaN", nil},
		{"number", "1,5", nil},
		{"number", "5 6", nil},
		{"number", "1e999", nil},
		{"number", json.Number("1e999"), nil},
		{"number", true, nil},
		{"number", []any{5.0}, nil},
		{"boolean", true, true},
		{"boolean", false, false},
		{"boolean", "true", true},
		{"boolean", " False ", false},
		{"boolean", "yes", nil},
		{"boolean", 1.0, nil},
		{"boolean", map[string]any{"x": true}, nil},
	} {
		got, err := arguments(params("aa:"+c.typ), map[string]any{"aa": c.given, "bb": "unknown"})
		if c.want == nil {
			if want := "the argument aa must be a " + c.typ; err == nil || err.Error() != want {
				t.Errorf("%#v as %s: %v, %v", c.given, c.typ, got, err)
			}
		} else if !reflect.DeepEqual(got, map[string]any{"aa": c.want}) || err != nil {
			t.Errorf("%#v as %s: %#v, %v", c.given, c.typ, got, err)
		}
	}
	_, err := arguments(params("aa:string", "bb:number", "cc:number?", "dd:boolean", "ee:string"),
		map[string]any{"bb": nil, "cc": nil, "dd": "maybe", "ee": "fine"})
	if want := "the argument aa is missing, the argument bb is missing, the argument dd must be a boolean"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// What the endpoint receives, by method.
func TestRequest(t *testing.T) {
	type got struct {
		method, uri, host, body string
		header                  http.Header
	}
	seen := make(chan got, 1)
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		seen <- got{r.Method, r.RequestURI, r.Host, string(b), r.Header}
	})
	args := map[string]any{"id": "a/b", "city": "Köln & Bonn", "count": 2.0, "sure": "true", "unknown": "x"}
	vars := map[string]string{"token": " s3cret ", "hook": "{{token}}{id}"}
	schema := params("id:string", "city:string", "count:number", "sure:boolean", "note:string?")
	for method, want := range map[string]got{
		"GET":    {uri: "/u/a%2Fb?x=1&city=K%C3%B6ln+%26+Bonn&count=2&sure=true"},
		"DELETE": {uri: "/u/a%2Fb?x=1&city=K%C3%B6ln+%26+Bonn&count=2&sure=true"},
		"POST":   {uri: "/u/a%2Fb?x=1", body: `{"city":"Köln \u0026 Bonn","count":2,"sure":true}`},
		"PUT":    {uri: "/u/a%2Fb?x=1", body: `{"city":"Köln \u0026 Bonn","count":2,"sure":true}`},
		"PATCH":  {uri: "/u/a%2Fb?x=1", body: `{"city":"Köln \u0026 Bonn","count":2,"sure":true}`},
	} {
		t.Run(method, func(t *testing.T) {
			r := runner(t).Run(t.Context(), &parley.Tool{
				Method: method, Endpoint: base + "/u/{id}?x=1", Timeout: 30, Schema: schema,
				Headers: []parley.ToolHeader{
					{Name: "authorization", Value: "Bearer {{token}}"}, {Name: "X-Hook", Value: "{{hook}} {id}"},
					{Name: "X-Twice", Value: "1"}, {Name: "x-twice", Value: "2"},
					{Name: "Host", Value: "evil.test"}, {Name: "Content-Length", Value: "1"},
					{Name: "Transfer-Encoding", Value: "gzip"},
					{Name: "Connection", Value: "X-Hook"}, {Name: "Accept-Encoding", Value: "br"},
					{Name: "Upgrade", Value: "websocket"},
				},
			}, args, Owned(vars))
			if r.Error != "" || r.Status != 200 {
				t.Fatalf("%+v", r)
			}
			g := <-seen
			if g.method != method || g.uri != want.uri || g.body != want.body || "http://"+g.host != base {
				t.Errorf("got %+v", g)
			}
			wantHeader := map[string]string{
				"Authorization": "Bearer  s3cret", "X-Hook": "{{token}}{id} {id}", "X-Twice": "2",
				"User-Agent": "Parley/1", "Connection": "", "Upgrade": "",
				"Accept-Encoding": "gzip", "Content-Type": "application/json",
			}
			if want.body == "" {
				wantHeader["Content-Type"] = ""
			}
			for name, value := range wantHeader {
				if list := g.header.Values(name); strings.Join(list, "|") != value {
					t.Errorf("%s is %q, want %q", name, list, value)
				}
			}
		})
	}
	// With everything set: no arguments left over, and the tool's own headers take priority over ours.
	r := runner(t).Run(t.Context(), &parley.Tool{
		Method: "POST", Endpoint: base, Timeout: 30,
		Headers: []parley.ToolHeader{{Name: "User-Agent", Value: "Own/2"},
			{Name: "Content-Type", Value: "application/vnd.api+json"}},
	}, args, Variables{})
	if g := <-seen; r.Error != "" || g.body != "{}" || g.uri != "/" || g.header.Get("User-Agent") != "Own/2" ||
		g.header.Get("Content-Type") != "application/vnd.api+json" {
		t.Errorf("got %+v, %+v", g, r)
	}
}

// A request that can't be sent is reported and not sent.
func TestNotCalled(t *testing.T) {
	base := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the tool was called") })
	for _, c := range []struct {
		tool parley.Tool
		args map[string]any
		want string
	}{
		{parley.Tool{Endpoint: base, Schema: params("city:string", "day:number")}, map[string]any{"day": "soon"},
			"the argument city is missing, the argument day must be a number"},
		{parley.Tool{Endpoint: base + "/{city}", Schema: params("city:string")}, map[string]any{"city": ""},
			"the argument city must not be empty"},
		{parley.Tool{Endpoint: base + "/{city}", Schema: params("city:string")}, map[string]any{"city": ".."},
			"an argument or variable must not lead to another path (. or ..)"},
		{parley.Tool{Endpoint: "http://{city}/", Schema: params("city:string")}, map[string]any{"city": "x"},
			"its endpoint has a placeholder in the host; only path and query may have one"},
		{parley.Tool{Endpoint: base, Headers: []parley.ToolHeader{{Name: "X-Key", Value: "a{{nl}}b"}}}, nil,
			"the value of its header X-Key holds a line break or another control character"},
		{parley.Tool{Endpoint: base, Headers: []parley.ToolHeader{{Name: "x-key", Value: "a\x7fb"}}}, nil,
			"the value of its header X-Key holds a line break or another control character"},
		{parley.Tool{Endpoint: base, Method: "GET /x"}, nil, "its method is not valid"},
	} {
		if c.tool.Method == "" {
			c.tool.Method = "GET"
		}
		c.tool.Timeout = 30
		r := runner(t).Run(t.Context(), &c.tool, c.args, Owned(map[string]string{"nl": "\r\nX-Evil: 1"}))
		if want := "The tool was not called: " + c.want + "."; r.Error != want || r.Text() != want ||
			r.Status != 0 || r.Body != "" {
			t.Errorf("got %+v, want %s", r, want)
		}
	}
}

func TestSchema(t *testing.T) {
	got := string(Schema(&parley.Tool{Schema: params("zip:string", `city:number`, "sure:boolean?")}))
	want := `{"type":"object","properties":{"zip":{"type":"string","description":"a zip"},"city":{"type":"number","description":"a city"},` +
		`"sure":{"type":"boolean","description":"a sure"}},"required":["zip","city"]}`
	if got != want {
		t.Errorf("got %s", got)
	}
	if got := string(Schema(&parley.Tool{})); got != `{"type":"object","properties":{},"required":[]}` {
		t.Errorf("empty: %s", got)
	}
	if got := Schema(&parley.Tool{Schema: []parley.ToolParam{{Name: `q"uote`, Type: "string",
		Description: "line\nbreak \"x\" \xff"}}}); !json.Valid(got) {
		t.Errorf("invalid: %s", got)
	}
}

// Whatever arguments and variables contain, they change neither the scheme nor the host, nor the number of path
// segments, nor the names in the query; and a template without parameters is filled in as parley.Render does it.
func FuzzEndpoint(f *testing.F) {
	for _, c := range [][4]string{
		{"users/{id}/x?q={id}&y={{name}}", "7", "Ann", ""},
		{"{id}{other}/{{name}}", "../..", "..", "%2e"},
		{"a b/{{{id}}}/%zz?{{name}}#{id}", "@evil.test/\\", "{id}", "{{name}}"},
		{"//{id}//{{ name }}//", "\r\n", "://", "?#&"},
		{"{id};x/.{other}", ".", "\xff\x00", "ü"},
	} {
		f.Add(c[0], c[1], c[2], c[3])
	}
	f.Fuzz(func(t *testing.T, template, arg, value, other string) {
		tool := &parley.Tool{Endpoint: "https://api.test:8443/" + template, Schema: params("id:string", "other:string")}
		args, err := arguments(tool.Schema, map[string]any{"id": arg, "other": other})
		if err != nil {
			t.Fatal(err)
		}
		u, _, err := endpoint(tool, args, map[string]string{"name": value})
		if err != nil {
			return
		}
		parsed, err := url.Parse(u.String())
		if err != nil {
			t.Fatalf("%q: %v", u, err)
		}
		for _, v := range []*url.URL{u, parsed} {
			if v.Scheme != "https" || v.Host != "api.test:8443" || v.User != nil || v.Fragment != "" ||
				!strings.HasPrefix(v.EscapedPath(), "/") {
				t.Fatalf("%q became %q", template, u)
			}
		}
		if strings.ContainsFunc(u.String(), func(c rune) bool { return c <= ' ' || c > '~' }) {
			t.Errorf("%q is no clean URL", u)
		}
		plainTool := *tool
		blank, _, err := endpoint(&plainTool, map[string]any{"id": "x", "other": "x"}, map[string]string{"name": "x"})
		if err != nil {
			return // dots that only come from filling in the values
		}
		got, want := strings.Split(u.EscapedPath(), "/"), strings.Split(blank.EscapedPath(), "/")
		if len(got) != len(want) {
			t.Errorf("%q became %q: %d segments instead of %d", template, u, len(got), len(want))
		}
		for i := range got {
			if i < len(want) && (got[i] == "." || got[i] == "..") && got[i] != want[i] {
				t.Errorf("%q became %q", template, u)
			}
		}
		if g, w := strings.Count(u.RawQuery, "&"), strings.Count(blank.RawQuery, "&"); g != w ||
			strings.Count(u.RawQuery, "=") != strings.Count(blank.RawQuery, "=") {
			t.Errorf("%q became %q: another query", template, u)
		}
		same := (&filling{vars: map[string]string{"name": value}, values: args})
		var b strings.Builder
		for _, tk := range same.tokens(template) {
			switch tk.kind {
			case variable:
				b.WriteString(value[:len(value)*min(1, len(parley.Render(tk.text, map[string]string{"name": "x"})))])
			default:
				b.WriteString(tk.text)
			}
		}
		if want := parley.Render(template, map[string]string{"name": value}); b.String() != want {
			t.Errorf("%q is filled in as %q and not as %q", template, b.String(), want)
		}
	})
}

func ExampleSchema() {
	fmt.Println(string(Schema(&parley.Tool{Schema: []parley.ToolParam{{Name: "city", Type: "string",
		Description: "Where", Required: true}}})))
	// Output: {"type":"object","properties":{"city":{"type":"string","description":"Where"}},"required":["city"]}
}
