package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"parley/internal/api"
)

// A standard validator accepts the reference, and it names every operation that there is.
func TestReferenceIsValid(t *testing.T) {
	h := lite(t, func(c *api.Config) { c.Signup = true })
	a := h.get("/openapi.json", header("Authorization", ""), status(200))
	doc, err := openapi3.NewLoader().LoadFromData(a.body)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Errorf("version %s", doc.OpenAPI)
	}
	names := map[string]bool{}
	for _, o := range h.api.Operations() {
		item := doc.Paths.Value(o.Path)
		if item == nil || item.GetOperation(o.Method) == nil {
			t.Errorf("%s %s is not in the reference", o.Method, o.Path)
			continue
		}
		d := item.GetOperation(o.Method)
		if names[d.OperationID] {
			t.Errorf("operationId %s stands twice", d.OperationID)
		}
		names[d.OperationID] = true
		if secured := d.Security != nil && len(*d.Security) > 0; secured != o.Credential && o.Credential {
			t.Errorf("%s %s: security %v", o.Method, o.Path, d.Security)
		}
	}
	for name := range doc.Components.Schemas { // every schema compiles
		if _, err := h.checker.schema("components", "schemas", name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The server accepts the bodies that the reference describes, and no others.
func TestReferenceOfBodies(t *testing.T) {
	h := lite(t, nil)
	tool, peer := h.tool(nil), h.assistant(nil)
	for body, good := range map[string]bool{encode(h.assistantBody()): true, encode(h.full(tool, peer)): true,
		`{}`: false, encode(with(h.assistantBody(), map[string]any{"mode": "x"})): false,
		encode(with(h.assistantBody(), map[string]any{"max_duration": 5})):                false,
		encode(with(h.assistantBody(), map[string]any{"name": strings.Repeat("é", 256)})): false} {
		err := h.checker.request("POST", "/user/assistant", body)
		if a := h.post("/user/assistant", nil, raw(body)); (err == nil) != good || (a.status == 201) != good {
			t.Errorf("%.200s: the reference says %v, the server %d", body, err, a.status)
		}
	}
	at := fmt.Sprintf("/user/assistant/%d", peer)
	if err := h.checker.request("PUT", "/user/assistant/{id}", string(h.get(at).body)); err != nil {
		t.Errorf("what GET returned can't be sent back: %v", err)
	}
}

// The page of the reference needs no other files.
func TestDocsPage(t *testing.T) {
	h := lite(t, nil)
	a := h.get("/docs", header("Authorization", ""), status(200))
	text := string(a.body)
	for _, o := range h.api.Operations() {
		if !strings.Contains(text, "<code>/api"+o.Path+"</code>") {
			t.Errorf("%s %s is not on the page", o.Method, o.Path)
		}
	}
	if strings.Contains(text, "src=") || strings.Contains(text, "<script") || strings.Contains(text, "href=\"http") {
		t.Error("the page loads something from elsewhere")
	}
	if !strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Error("no content security policy")
	}
}

// Code generators can use the reference: the variants of every union differ in their JSON type, so that they can be told
// apart without a discriminator; no answer of a success is null, nor is the data in it; and failures are plain objects.
func TestReferenceForGenerators(t *testing.T) {
	h := lite(t, func(c *api.Config) { c.Signup = true })
	var doc map[string]any
	if err := json.Unmarshal(h.get("/openapi.json", status(200)).body, &doc); err != nil {
		t.Fatal(err)
	}
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	resolved := func(v any) map[string]any {
		sc, _ := v.(map[string]any)
		for ref, _ := sc["$ref"].(string); ref != ""; ref, _ = sc["$ref"].(string) {
			sc = schemas[strings.TrimPrefix(ref, "#/components/schemas/")].(map[string]any)
		}
		return sc
	}
	kinds := func(v any) (list []string) {
		switch typ := resolved(v)["type"].(type) {
		case string:
			list = []string{typ}
		case []any:
			for _, one := range typ {
				list = append(list, one.(string))
			}
		}
		return list
	}
	nullable := func(v any) bool {
		sc := resolved(v)
		union, _ := sc["anyOf"].([]any)
		return slices.Contains(kinds(v), "null") || slices.ContainsFunc(union, func(v any) bool { return slices.Contains(kinds(v), "null") })
	}
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if v["oneOf"] != nil {
				t.Errorf("%s: oneOf", at)
			}
			union, _ := v["anyOf"].([]any)
			seen := map[string]bool{}
			for _, variant := range union {
				for _, kind := range kinds(variant) {
					if kind == "integer" {
						kind = "number"
					}
					// An event is told by its kind. Generators that leave out what no path names need its types named here.
					if seen[kind] && at != "schemas/DeliveryWithLog/properties/payload" {
						t.Errorf("%s: two variants are of type %s", at, kind)
					}
					seen[kind] = true
				}
				if len(kinds(variant)) == 0 {
					t.Errorf("%s: a variant has no type: %v", at, variant)
				}
			}
			for k, e := range v {
				walk(at+"/"+k, e)
			}
		case []any:
			for i, e := range v {
				walk(fmt.Sprintf("%s/%d", at, i), e)
			}
		}
	}
	walk("paths", doc["paths"])
	walk("schemas", schemas)
	count := 0
	for path, item := range doc["paths"].(map[string]any) {
		for method, o := range item.(map[string]any) {
			for code, r := range o.(map[string]any)["responses"].(map[string]any) {
				at := method + " " + path + " " + code
				content, _ := r.(map[string]any)["content"].(map[string]any)["application/json"].(map[string]any)
				sc := content["schema"]
				if !strings.HasPrefix(code, "2") {
					if got := kinds(sc); len(got) != 1 || got[0] != "object" || resolved(sc)["properties"] == nil {
						t.Errorf("%s is no plain object: %v", at, resolved(sc))
					}
					continue
				}
				count++
				props, _ := resolved(sc)["properties"].(map[string]any)
				data, has := props["data"]
				if nullable(sc) || has && nullable(data) && path != "/user/phone-numbers/routes/{id}" {
					t.Errorf("%s may be null", at)
				}
			}
		}
	}
	if count < 200 {
		t.Errorf("%d answers were looked at", count)
	}
}
