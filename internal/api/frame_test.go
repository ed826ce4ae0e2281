package api_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"parley/internal/api"
	"parley/internal/parley"
)

const unauthenticated = `{"message":"Unauthenticated."}`

// contract lists paths of every family, including those that are built later.
var contract = []string{
	"GET /user/me", "POST /user/api-keys", "DELETE /user/api-keys/1", "POST /user/knowledgebases",
	"GET /user/knowledgebases",
	"POST /user/knowledgebases/1/documents", "DELETE /user/knowledgebases/1/documents/1", "GET /user/tools",
	"PUT /user/tools/1",
	"POST /user/sms", "GET /user/assistants/get", "GET /user/assistants/outbound", "GET /user/assistants/voices",
	"GET /user/assistants/synthesizer-providers", "GET /user/assistants/phone-numbers",
	"POST /user/assistants/enable-inbound-webhook",
	"POST /user/make_call", "GET /user/calls/1", "GET /user/phone-numbers/search", "GET /user/whatsapp/senders",
	"GET /user/conversations",
	"POST /user/campaign", "POST /user/campaigns", "GET /user/leads", "GET /user/blacklist",
	"GET /user/webhook-secret", "GET /user/nothing",
	"GET /user/", "GET /user", "POST /user/tools/%2e%2e", "PATCH /user/tools", "BREW /user/tools",
	"OPTIONS /user/tools", "POST /logout",
}

func TestEveryUserPathWantsACredential(t *testing.T) {
	h := lite(t, nil)
	for _, line := range contract {
		method, path, _ := strings.Cut(line, " ")
		a := h.do(method, path, nil, header("Authorization", ""), status(401))
		if method != "OPTIONS" {
			a.is(unauthenticated)
		}
		if a.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: no challenge", line)
		}
	}
	for _, o := range h.api.Operations() {
		path := strings.NewReplacer("{id}", "1", "{version}", "1").Replace(o.Path)
		if o.Credential {
			h.do(o.Method, path, nil, header("Authorization", ""), status(401)).is(unauthenticated)
		}
	}
	// A missing credential is reported before anything else that may be wrong.
	h.do("POST", "/user/tools", nil, header("Authorization", ""), raw(strings.Repeat(" ", 1<<20+1)), status(401))
	h.get("/user/me?token="+h.token+"&api_key="+h.token, header("Authorization", ""), status(401))
	h.get("/user/me", header("Authorization", ""), header("Cookie", "token="+h.token+"; session="+h.token), status(401))
}

func TestUnknownPathsAndMethods(t *testing.T) {
	h := lite(t, nil)
	for _, path := range []string{"/nothing", "/user/nothing", "/user/tools//", "/user/tools/1/2/3",
		"/user/assistants/get/1", "/", "/user/"} {
		for _, method := range []string{"GET", "POST", "DELETE", "BREW"} {
			h.do(method, path, nil, status(404)).is(`{"message":"Not found."}`)
		}
	}
	for _, c := range []struct{ method, path, allow string }{
		{"PATCH", "/user/tools", "GET, HEAD, POST"},
		{"DELETE", "/user/tools", "GET, HEAD, POST"},
		{"POST", "/user/tools/1", "DELETE, GET, HEAD, PUT"},
		{"PUT", "/user/assistants", "GET, HEAD, POST"},
		{"GET", "/user/assistant", "POST"},
		{"GET", "/login", "POST"},
		{"POST", "/user/me", "GET, HEAD, PUT"},
		{"BREW", "/user/me", "GET, HEAD, PUT"},
		{"OPTIONS", "/user/me", "GET, HEAD, PUT"},
		{"OPTIONS", "/login", "POST"},
	} {
		a := h.do(c.method, c.path, nil, status(405))
		if got := a.header.Get("Allow"); got != c.allow {
			t.Errorf("%s %s: Allow is %q, want %q", c.method, c.path, got, c.allow)
		}
		if a.json()["message"] == "" {
			t.Errorf("%s %s: no message", c.method, c.path)
		}
	}
	get, head := h.get("/user/me", status(200)), h.do("HEAD", "/user/me", nil, status(200))
	if len(head.body) != 0 || head.header.Get("Content-Length") != get.header.Get("Content-Length") {
		t.Errorf("HEAD answered %d bytes, length %s", len(head.body), head.header.Get("Content-Length"))
	}
}

const malformed = `{"message":"The request body is not valid JSON.","errors":{}}`

func TestBodies(t *testing.T) {
	h := lite(t, nil)
	nested := func(n int) string { return `{"name":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
	for name, c := range map[string]struct {
		body   string
		status int
		want   string // the whole answer; or "" and the fields
		fields []string
	}{
		"empty":   {"", 422, "", []string{"name"}},
		"white":   {" \r\n\t ", 422, "", []string{"name"}},
		"object":  {"{}", 422, "", []string{"name"}},
		"unknown": {`{"x":1,"":2,"nAme":"A"}`, 422, "", []string{"name"}},
		"array":   {`[]`, 422, `{"message":"The request body must be a JSON object.","errors":{}}`, nil},
		"number":  {`7`, 422, `{"message":"The request body must be a JSON object.","errors":{}}`, nil},
		"string":  {`"name"`, 422, `{"message":"The request body must be a JSON object.","errors":{}}`, nil},
		"null": {`null`, 422, `{"message":"The request body must be a JSON object.","errors":{}}`,
			nil},
		"word":                  {`name`, 422, malformed, nil},
		"unfinished":            {`{"name":"a"`, 422, malformed, nil},
		"trailing":              {`{"name":"a"}x`, 422, malformed, nil},
		"two":                   {`{"name":"a"}{"name":"b"}`, 422, malformed, nil},
		"comma":                 {`{"name":"a",}`, 422, malformed, nil},
		"single quotes":         {`{'name':'a'}`, 422, malformed, nil},
		"NaN":                   {`{"name":NaN}`, 422, malformed, nil},
		"form":                  {`name=a`, 422, malformed, nil},
		"byte order mark":       {"\ufeff{\"name\":\"a\"}", 422, malformed, nil},
		"UTF-16":                {"{\x00\"\x00n\x00\"\x00:\x001\x00}\x00", 422, malformed, nil},
		"broken UTF-8":          {"{\"name\":\"a\xff\"}", 422, malformed, nil},
		"broken UTF-8 key":      {"{\"\xc3\":1,\"name\":\"a\"}", 422, malformed, nil},
		"overlong UTF-8":        {"{\"name\":\"\xc0\xaf\"}", 422, malformed, nil},
		"surrogate in UTF-8":    {"{\"name\":\"\xed\xa0\x80\"}", 422, malformed, nil},
		"raw control character": {"{\"name\":\"a\x01b\"}", 422, malformed, nil},
		"bad escape":            {`{"name":"\x41"}`, 422, malformed, nil},
		"NUL":                   {`{"name":"a\u0000b"}`, 422, "", []string{"name"}},
		"lone high surrogate":   {`{"name":"a\ud800b"}`, 422, "", []string{"name"}},
		"lone low surrogate":    {`{"name":"\uDFFF"}`, 422, "", []string{"name"}},
		"reversed surrogates":   {`{"name":"\ude00\ud83d"}`, 422, "", []string{"name"}},
		"high then text":        {`{"name":"\ud83d\u0041"}`, 422, "", []string{"name"}},
		"pair":                  {`{"name":"\ud83d\ude00 \\ud800 \uFFFD"}`, 201, "", nil},
		"deep":                  {nested(9_000), 422, "", []string{"name"}},
		"deeper":                {nested(10_001), 422, malformed, nil},
		"unclosed":              {strings.Repeat(`{"a":`, 100_000), 422, malformed, nil},
		"last of duplicates":    {`{"name":5,"name":"kept"}`, 201, "", nil},
		"huge number":           {`{"name":1e999999}`, 422, "", []string{"name"}},
		"long number":           {`{"name":` + strings.Repeat("9", 100_000) + `}`, 422, "", []string{"name"}},
		"ignored number":        {`{"name":"a","x":` + strings.Repeat("9", 100_000) + `e99999}`, 201, "", nil},
		"at the limit":          {`{"name":"a","x":"` + strings.Repeat("y", 1<<20-19) + `"}`, 201, "", nil},
		"over the limit": {`{"name":"a","x":"` + strings.Repeat("y", 1<<20-18) + `"}`, 413,
			`{"message":"The request body is too large: 1 MiB is the most."}`, nil},
		"white over the limit": {strings.Repeat(" ", 1<<20+1), 413,
			`{"message":"The request body is too large: 1 MiB is the most."}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := h.in(t).post("/user/api-keys", nil, raw(c.body), status(c.status))
			if c.want != "" {
				a.is(c.want)
			} else if c.fields != nil {
				a.fails(c.fields...)
			}
		})
	}
	a := h.post("/user/api-keys", nil, raw(`{"name":"\ud83d\ude00 \\ud800"}`),
		status(201)).json()["api_key"].(map[string]any)
	if a["name"] != "😀 \\ud800" {
		t.Errorf("an escaped pair became %q", a["name"])
	}
}

func TestContentTypes(t *testing.T) {
	h := lite(t, nil)
	for kind, want := range map[string]int{
		"application/json": 201, "application/json; charset=utf-8": 201, "APPLICATION/JSON": 201,
		"application/vnd.api+json": 201,
		"":                         415, "text/plain": 415, "application/x-www-form-urlencoded": 415,
		"multipart/form-data; boundary=x": 415, "application/jsonp": 415, ";": 415,
	} {
		a := h.post("/user/api-keys", nil, raw(`{"name":"a"}`), header("Content-Type", kind), status(want))
		if want == 415 {
			a.is(`{"message":"Send the request body as application/json."}`)
		}
		h.post("/user/api-keys", nil, raw(" "), header("Content-Type", kind), status(422)).fails("name")
		h.post("/user/api-keys", nil, header("Content-Type", kind), status(422)).fails("name")
	}
	h.do("GET", "/user/me", nil, raw("not read"), header("Content-Type", "text/plain"), status(200))
}

// An invalid id, another user's id and an unknown one get the same answer.
var noIDs = []string{"0", "-1", "-0", "007", "+1", "1.0", "1e0", "0x1", "99999999999999999999",
	"9223372036854775807", "9223372036854775808",
	"-9223372036854775808", "abc", "%20", "1%20", "%D9%A1", "%EF%BC%91", "null", "1%2F2", "%00", "%ff", "1;2",
	"1,2", "'", "%22"}

func TestIDsThatAreNone(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		tool := h.tool(nil)
		a := h.assistant(nil)
		other := h.stranger()
		foreign := map[string]string{"/user/tools/": fmt.Sprint(other.tool(nil)),
			"/user/assistant/": fmt.Sprint(other.assistant(nil))}
		for base, c := range map[string]struct {
			text    string
			methods []string
		}{
			"/user/tools/":                      {"Tool not found", []string{"GET", "PUT", "DELETE"}},
			"/user/assistant/":                  {"Assistant not found", []string{"GET", "PUT", "PATCH", "DELETE"}},
			"/user/assistants/":                 {"Assistant not found", []string{"GET", "PUT", "PATCH", "DELETE"}},
			"/user/api-keys/":                   {"API key not found.", []string{"DELETE"}},
			"/user/assistant/*/prompt-versions": {"Assistant not found", []string{"GET"}},
		} {
			ids := noIDs
			if id := foreign[base]; id != "" {
				ids = append(ids, id)
			}
			for _, id := range ids {
				path := base + id
				if strings.Contains(base, "*") {
					path = strings.ReplaceAll(base, "*", id)
				}
				for _, method := range c.methods {
					h.do(method, path, map[string]any{"name": "x"}, status(404)).is(`{"message":"` + c.text + `"}`)
				}
			}
		}
		for _, id := range noIDs {
			for _, tail := range []string{"", "/diff"} {
				h.get(fmt.Sprintf("/user/assistant/%d/prompt-versions/%s%s", a, id, tail), status(404))
			}
		}
		h.get(fmt.Sprintf("/user/tools/%d", tool), status(200))
		h.get(fmt.Sprintf("/user/assistant/%d", a), status(200))
	})
}

func TestPanicsAndFailuresInTheFamilysShape(t *testing.T) {
	h := lite(t, nil)
	secret := errors.New("dial tcp 10.1.2.3: password=hunter2")
	var log strings.Builder
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	for _, c := range []struct {
		op   api.Op
		want string
	}{
		{api.Op{Path: "/user/probe/messages", Family: api.Messages},
			`{"message":"Server error. Quote the X-Request-Id when you report it."}`},
		{api.Op{Path: "/user/probe/bare", Family: api.Bare, Failure: "Failed to create knowledgebase"},
			`{"error":"Failed to create knowledgebase"}`},
		{api.Op{Path: "/probe/statuses", Family: api.Statuses, Access: api.Public},
			`{"status":false,"error":"Server error. Quote the X-Request-Id when you report it."}`},
		{api.Op{Path: "/user/probe/success", Family: api.Success},
			`{"success":false,"message":"Server error. Quote the X-Request-Id when you report it."}`},
	} {
		c.op.Method, c.op.Name, c.op.Tag = "POST", strings.ReplaceAll(c.op.Path, "/", ""), "Probe"
		type how struct {
			Body struct {
				Panic bool `json:"panic"`
			}
		}
		api.Handle(h.api, c.op, func(_ context.Context, _ *api.Request, in *how) (*api.None, error) {
			if in.Body.Panic {
				panic(secret)
			}
			return nil, secret
		})
		h.checker = newChecker(t, h.get("/openapi.json").body)
		for _, p := range []bool{true, false, true} {
			log.Reset()
			a := h.post(c.op.Path, map[string]any{"panic": p}, status(500))
			a.is(c.want)
			if text := log.String(); !strings.Contains(text, "hunter2") ||
				!strings.Contains(text, a.header.Get("X-Request-Id")) ||
				strings.Count(text, "level=ERROR") != 1 || strings.Contains(text, "frame_test.go") != p {
				t.Errorf("logged %.300q", text)
			}
		}
	}
	h.get("/user/me", status(200))
}

func TestErrorShapes(t *testing.T) {
	h := lite(t, nil)
	kinds := map[parley.Kind]int{parley.Refused: 400, parley.Payment: 402, parley.Forbidden: 403,
		parley.NotFound: 404, parley.Conflict: 409,
		parley.TooLarge: 413, parley.Unsupported: 415, parley.Invalid: 422, parley.TooMany: 429,
		parley.Upstream: 502, parley.Unavailable: 503}
	own := map[string]string{"messages": `{"message":"No."}`, "bare": `{"error":"No."}`,
		"statuses": `{"status":false,"error":"No."}`,
		"success":  `{"success":false,"message":"No."}`}
	type kindOf struct {
		Kind int64 `path:"id"`
	}
	for name, family := range map[string]api.Op{"messages": {Family: api.Messages}, "bare": {Family: api.Bare},
		"statuses": {Family: api.Statuses}, "success": {Family: api.Success}} {
		family.Method, family.Path, family.Name, family.Tag = "GET", "/user/probe-"+name+"/{id}", name, "Probe"
		api.Handle(h.api, family, func(_ context.Context, _ *api.Request, in *kindOf) (*api.None, error) {
			return nil, fmt.Errorf("wrapped: %w", parley.Errorf(parley.Kind(in.Kind), "No."))
		})
		h.checker = newChecker(t, h.get("/openapi.json").body)
		for kind, code := range kinds {
			want := own[name]
			switch {
			case (kind == parley.Conflict || kind == parley.Forbidden) && name == "bare":
				want = `{"message":"No.","error":"No."}`
			case kind == parley.TooMany, name != "statuses" &&
				(kind == parley.TooLarge || kind == parley.Unsupported || kind == parley.Conflict):
				want = own["messages"] // the same everywhere (decisions 1)
			}
			h.get(fmt.Sprintf("/user/probe-%s/%d", name, kind), status(code)).is(want)
		}
	}
}

func TestOriginsOfOthers(t *testing.T) {
	h := lite(t, nil)
	api.Handle(h.api, api.Op{Method: "POST", Path: "/probe", Name: "probe", Tag: "Probe", Access: api.Public,
		Family: api.Statuses},
		func(_ context.Context, r *api.Request, _ *api.None) (map[string]bool, error) {
			return map[string]bool{"known": r.Who != nil}, nil
		})
	h.checker = newChecker(t, h.get("/openapi.json").body)
	from := header("Origin", "https://shop.example")
	for _, o := range []struct {
		a    *answer
		open bool
	}{
		{h.post("/probe", nil, from, header("Authorization", ""), status(200)), true},
		{h.post("/probe", nil, from, header("Authorization", "Bearer nonsense"), status(401)), true},
		{h.do("OPTIONS", "/probe", nil, from, header("Authorization", ""), status(204)), true},
		{h.get("/user/me", from, status(200)), false},
		{h.post("/login", nil, from, status(422)), false},
		{h.do("OPTIONS", "/user/me", nil, from, status(405)), false},
		{h.get("/nothing", from, status(404)), false},
	} {
		if got := o.a.header.Get("Access-Control-Allow-Origin"); (got == "*") != o.open || got != "" && !o.open {
			t.Errorf("Access-Control-Allow-Origin is %q on %.100s", got, o.a.body)
		}
		if o.a.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Error("credentials of other origins are allowed")
		}
	}
	pre := h.do("OPTIONS", "/probe", nil, from, header("Authorization", ""), status(204))
	for name, want := range map[string]string{"Access-Control-Allow-Methods": "POST",
		"Access-Control-Allow-Headers": "Content-Type"} {
		if !strings.Contains(pre.header.Get(name), want) {
			t.Errorf("%s is %q", name, pre.header.Get(name))
		}
	}
	h.post("/probe", nil, status(200)).is(`{"known":true}`)
	h.post("/probe", nil, header("Authorization", ""), status(200)).is(`{"known":false}`)
	h.post("/probe", nil, header("Authorization", "Bearer x"),
		status(401)).is(`{"status":false,"error":"Unauthenticated."}`)
}

func TestAddressBehindProxies(t *testing.T) {
	h := lite(t, func(c *api.Config) {
		c.Front.Proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	})
	for _, c := range []struct{ peer, forwarded, want string }{
		{"203.0.113.7:99", "", "203.0.113.7"},
		{"203.0.113.7:99", "198.51.100.1", "203.0.113.7"}, // a client's own claim is not believed
		{"10.0.0.1:99", "", "10.0.0.1"},
		{"10.0.0.1:99", "198.51.100.1", "198.51.100.1"},
		{"10.0.0.1:99", "1.2.3.4, 198.51.100.1", "198.51.100.1"},
		{"10.0.0.1:99", "1.2.3.4, 198.51.100.1, 10.9.9.9", "198.51.100.1"},
		{"10.0.0.1:99", "nonsense, 10.9.9.9", "10.9.9.9"},
		{"[fd00::1]:99", "2001:db8::7", "2001:db8::/64"}, // a provider gives each customer a /64
		{"[2001:db8:0:1::1]:99", "1.2.3.4", "2001:db8:0:1::/64"},
		{"[::ffff:203.0.113.7]:99", "", "203.0.113.7"},
	} {
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{"X-Forwarded-For": {c.forwarded}}}
		if got := h.api.Address(r); got != c.want {
			t.Errorf("%s forwarding %q counts as %s, want %s", c.peer, c.forwarded, got, c.want)
		}
	}
}
