package api

import (
	"bytes"
	"encoding/json"
	"html/template"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"parley/internal/form"
	"parley/internal/parley"
)

type object = map[string]any

// openAPI writes the reference (OpenAPI 3.1) from the registered operations.
func (a *API) openAPI() []byte {
	schemas := &form.Schemas{Components: object{}, Names: schemaNames}
	paths := object{}
	for _, o := range a.order {
		item, _ := paths[o.Path].(object)
		if item == nil {
			item = object{}
			paths[o.Path] = item
		}
		item[strings.ToLower(o.Method)] = o.describe(schemas)
	}
	doc := object{
		"openapi": "3.1.0",
		"info": object{"title": "Parley API", "version": "1",
			"license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "Voice and chat assistants: see docs/ in the repository for guides. Every path below /user/ needs a Bearer token.\n\n" +
				"Also accepted, besides the types named here: for an integer, ids included, its digits in a string (\"12\"); for a " +
				"boolean, 0, 1, \"0\" and \"1\"; for variables any scalar, and [] for an empty object. Nothing else is converted."},
		"servers":  []any{object{"url": "/api"}},
		"tags":     a.tags(),
		"paths":    paths,
		"webhooks": webhooks(schemas),
		"components": object{"schemas": schemas.Components,
			"securitySchemes": object{"bearer": object{"type": "http", "scheme": "bearer"}}},
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(doc); err != nil {
		panic(err) // of our own making, at start
	}
	return b.Bytes()
}

var pathParameter = regexp.MustCompile(`\{([a-z_]+)\}`)

func (o *routed) describe(s *form.Schemas) object {
	d := object{"operationId": o.Name, "summary": o.Summary, "tags": []string{o.Tag}}
	if o.Access != anybody && o.least() != self {
		d["description"] = "A credential needs the role " + o.least().Needed() + "."
	}
	params := []any{}
	for _, m := range pathParameter.FindAllStringSubmatch(o.Path, -1) {
		typ := "integer"
		for _, f := range pathFields(o.in) {
			if f.name == m[1] && f.text {
				typ = "string"
			}
		}
		params = append(params, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": typ}})
	}
	params = append(params, s.QueryParameters(o.in)...)
	if o.Idempotent {
		params = append(params, object{"name": "Idempotency-Key", "in": "header",
			"schema":      object{"type": "string", "maxLength": 255},
			"description": "The same key and body within 24 hours gets the first answer and does nothing again."})
	}
	if len(params) > 0 {
		d["parameters"] = params
	}
	if body := o.body(s); body != nil {
		d["requestBody"] = object{"content": body, "required": o.needsBody(s)}
	}
	switch o.Access {
	case user:
		d["security"] = []any{object{"bearer": []string{}}}
	case public:
		d["security"] = []any{object{}, object{"bearer": []string{}}}
	case anybody:
		d["security"] = []any{}
	}
	out := o.out
	if out.Kind() == reflect.Pointer {
		out = out.Elem() // an answer is never null
	}
	content := object{"application/json": object{"schema": s.Output(out)}}
	if o.Stream != "" {
		content[o.Stream] = object{"schema": object{"type": "string"}}
	}
	status := strconv.Itoa(max(o.Status, http.StatusOK))
	failed := func(code int) object { return object{"application/json": object{"schema": o.failure(s, code)}} }
	responses := object{status: object{"description": "Done.", "content": content},
		"default": object{"description": "Failed, in the shape of this family of operations.", "content": failed(0)}}
	for _, code := range o.refusals() {
		responses[strconv.Itoa(code)] = object{"description": refusals[code], "content": failed(code)}
	}
	d["responses"] = responses
	return d
}

// refusals say what is wrong with a request that gets such a status.
var refusals = map[int]string{
	400: "Refused: the reason is in the message.",
	401: "The credential is missing or not valid.",
	402: "The balance does not cover it.",
	403: "Not allowed by the role of the credential, the plan, the settings of this server, or the owner.",
	404: "It does not exist, or it is another user's.",
	409: "In conflict with the current state, or with another request under the same Idempotency-Key.",
	413: "The body is too large.",
	415: "The content type is not supported.",
	422: "Fields are missing or not valid; each is named.",
	429: "Too many requests; Retry-After says when to try again.",
	502: "A provider failed.",
	503: "Not possible at the moment.",
}

// refusals are the statuses that an operation may fail with by its causer's fault.
func (o *routed) refusals() []int {
	list := append([]int{http.StatusTooManyRequests}, alsoRefuses[o.Name]...)
	add := func(when bool, codes ...int) {
		if when {
			list = append(list, codes...)
		}
	}
	body := o.body(&form.Schemas{Components: object{}}) != nil
	add(o.Access == user, http.StatusUnauthorized, http.StatusForbidden)
	add(o.NotFound != "" || strings.Contains(o.Path, "{"), http.StatusNotFound)
	add(o.Idempotent, http.StatusConflict)
	add(body, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity)
	add(len((&form.Schemas{Components: object{}}).QueryParameters(o.in)) > 0, http.StatusUnprocessableEntity)
	return list
}

// tags are the groups of operations, in the order of their registration.
func (a *API) tags() (list []any) {
	seen := map[string]bool{}
	for _, o := range a.order {
		if !seen[o.Tag] {
			list = append(list, object{"name": o.Tag})
		}
		seen[o.Tag] = true
	}
	return append(list, object{"name": webhookTag, "description": "What Parley sends to your systems, signed by Standard Webhooks."})
}

// needsBody says whether a request without a body can't be right.
func (o *routed) needsBody(s *form.Schemas) bool {
	if o.Raw != "" {
		return true
	}
	input, _ := o.body(s)["application/json"].(object)
	whole, _ := expand(input["schema"], s.Components, 0).(object)
	_, needs := whole["required"]
	return needs
}

// body is the documented request body, by content type.
func (o *routed) body(s *form.Schemas) object {
	if o.Raw != "" {
		return object{o.Raw: object{"schema": object{"type": "string"}}}
	}
	t := o.input(o.in)
	if t == nil {
		return nil
	}
	input := s.Input(t, o.Partial)
	content := object{"application/json": object{"schema": input}}
	if o.Upload > 0 {
		file := object{"type": "object", "properties": object{o.File: object{"type": "string",
			"contentMediaType": "application/octet-stream"}}, "required": []string{o.File}}
		content["multipart/form-data"] = object{"schema": object{"allOf": []any{input, file}}}
	}
	return content
}

// failure is the shape of an operation's failures with a status, 0 standing for those that are not listed. Shapes are
// plain objects: code generators can't tell the variants of a union apart.
func (o *routed) failure(s *form.Schemas, code int) object {
	text, no := object{"type": "string"}, object{"type": "boolean", "const": false}
	props := object{"message": text, "errors": s.Output(reflect.TypeFor[parley.Fields]()), "retry_after": object{"type": "integer"}}
	common := func() object { return component(s, "Failure", props, "message") }
	name, own, required := "FailureError", object{"error": text, "message": text}, []string{"error"}
	switch o.Family {
	case messages:
		return common()
	case statuses:
		name, own, required = "FailureStatus", object{"status": no, "error": text}, []string{"status", "error"}
	case whatsApp:
		name, own, required = "FailureWhatsApp", object{"success": no, "error": text, "error_code": text},
			[]string{"success", "error", "error_code"}
	case successes:
		name, own, required = "FailureSuccess", object{"success": no, "message": text}, []string{"success", "message"}
	}
	switch code {
	case http.StatusTooManyRequests:
		return common()
	case http.StatusUnauthorized:
		if o.Access == user || o.Family != statuses {
			return common()
		}
	case http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		if o.Family != statuses {
			return common()
		}
	case http.StatusConflict:
		if o.Family == whatsApp || o.Family == successes {
			return common()
		}
	case 0, http.StatusUnprocessableEntity: // the family's own, or fields
		whole := maps.Clone(props)
		maps.Copy(whole, own)
		return component(s, name+"OrFields", whole)
	}
	return component(s, name, own, required...)
}

// component puts the schema of an object under a name.
func component(s *form.Schemas, name string, props object, required ...string) object {
	sc := object{"type": "object", "properties": props, "minProperties": 1}
	if len(required) > 0 {
		sc["required"] = required
	}
	s.Components[name] = sc
	return object{"$ref": "#/components/schemas/" + name}
}

// readOnly refuses what does not read.
func readOnly(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			h(w, r)
			return
		}
		notAllowed(w, r, "GET, HEAD")
	}
}

// Reference is the API reference, OpenAPI 3.1 as JSON.
func (a *API) Reference() []byte { return a.reference() }

func (a *API) serveReference(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Content-Type", "application/json")
	w.Write(a.reference())
}

// serveDocs shows the reference as a page of our own: no script, nothing loaded from elsewhere.
func (a *API) serveDocs(w http.ResponseWriter, r *http.Request) {
	var b bytes.Buffer
	if err := docsPage.Execute(&b, a.docs()); err != nil {
		a.fail(w, r, messages, "", err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	w.Write(b.Bytes())
}

type docsTag struct {
	Name string
	Ops  []docsOp
}

type docsOp struct {
	Method, Path, Summary, Name, Query string
	Access, Body, Answer               string
}

// docs groups the operations by tag, in the order of their registration.
func (a *API) docs() (tags []docsTag) {
	indented := func(v any) string {
		b, _ := json.MarshalIndent(v, "", "  ")
		return string(b)
	}
	at := map[string]int{}
	for _, o := range a.order {
		i, ok := at[o.Tag]
		if !ok {
			i = len(tags)
			at[o.Tag] = i
			tags = append(tags, docsTag{Name: o.Tag})
		}
		s := &form.Schemas{Components: object{}, Names: schemaNames}
		d := docsOp{Method: o.Method, Path: "/api" + o.Path, Summary: o.Summary, Name: o.Name}
		if q := s.QueryParameters(o.in); len(q) > 0 {
			d.Query = indented(q)
		}
		if o.Raw != "" {
			d.Body = o.Raw
		} else if body := o.body(s); body != nil {
			d.Body = indented(expand(body["application/json"].(object)["schema"], s.Components, 0))
		}
		d.Answer = indented(expand(s.Output(o.out), s.Components, 0))
		d.Access = []string{"Bearer token", "no credential needed", "no credential needed"}[o.Access]
		tags[i].Ops = append(tags[i].Ops, d)
	}
	return tags
}

// expand puts components where they are referred to, so that a reader sees a shape whole.
func expand(v any, components object, depth int) any {
	switch v := v.(type) {
	case object:
		if ref, ok := v["$ref"].(string); ok && depth < 8 {
			return expand(components[strings.TrimPrefix(ref, "#/components/schemas/")], components, depth+1)
		}
		out := object{}
		for k, e := range v {
			out[k] = expand(e, components, depth)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = expand(e, components, depth)
		}
		return out
	}
	return v
}

var docsPage = template.Must(template.New("docs").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Parley API</title>
<style>
:root{color-scheme:light dark;--line:#8884;--soft:#8881}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
code,pre{font:13px/1.45 ui-monospace,monospace}pre{background:var(--soft);padding:.75rem;border-radius:.5rem;overflow:auto;max-height:30rem}
details{border:1px solid var(--line);border-radius:.5rem;margin:.5rem 0}summary{padding:.6rem .8rem;cursor:pointer}
details>div{padding:0 .8rem .8rem}.m{display:inline-block;min-width:4.2rem;font-weight:600}.s{opacity:.75;margin-left:.5rem}
nav a{margin-right:1rem}
</style></head><body>
<h1>Parley API</h1>
<p>JSON over HTTP. Send <code>Authorization: Bearer &lt;token&gt;</code>; tokens are made with <code>POST /api/user/api-keys</code>, <code>POST /api/login</code>
or <code>parley key create</code>. The same, for machines: <a href="/api/openapi.json">openapi.json</a> (OpenAPI 3.1).</p>
<nav>{{range .}}<a href="#{{.Name}}">{{.Name}}</a>{{end}}</nav>
{{range .}}<h2 id="{{.Name}}">{{.Name}}</h2>
{{range .Ops}}<details id="{{.Name}}"><summary><span class="m">{{.Method}}</span><code>{{.Path}}</code><span class="s">{{.Summary}}</span></summary><div>
<p>{{.Access}}</p>
{{if .Query}}<h4>Query</h4><pre tabindex="0">{{.Query}}</pre>{{end}}
{{if .Body}}<h4>Body</h4><pre tabindex="0">{{.Body}}</pre>{{end}}
<h4>Answer</h4><pre tabindex="0">{{.Answer}}</pre></div></details>
{{end}}{{end}}</body></html>
`))
