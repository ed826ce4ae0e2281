package tool

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"testing"

	"parley/internal/parley"
	"parley/internal/schema"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

const nested = `{"type":"object","required":["items"],"properties":{"items":{"type":"array","items":{"type":"object","required":["sku"],
	"properties":{"sku":{"type":"string","pattern":"^[A-Z]+$"}}}},"count":{"type":"integer","default":2},"tags":{"type":"array","items":{"type":"string"}}}}`

// The arguments of a tool with a JSON Schema are checked before anything is sent, and sent as they are.
func TestOwnSchema(t *testing.T) {
	var mu sync.Mutex
	var got []string
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.Method+" "+r.URL.RequestURI()+" "+string(body))
	})
	one := &parley.Tool{Method: "POST", Endpoint: url + "/{count}", Timeout: 30, JSONSchema: parley.JSONSchema(nested)}
	items := []any{map[string]any{"sku": "AB"}}
	if r := runner(t).Run(t.Context(), one, map[string]any{"items": items}, Variables{}); r.Status != 200 {
		t.Fatalf("%+v", r)
	}
	if r := runner(t).Run(t.Context(), one, map[string]any{"items": []any{map[string]any{"sku": "ab"}}}, Variables{}); r.Status != 0 ||
		r.Text() != "The tool was not called: the argument items.0.sku: 'ab' does not match pattern '^[A-Z]+$'." {
		t.Errorf("told %q", r.Text())
	}
	one.Method = "GET"
	runner(t).Run(t.Context(), one, map[string]any{"items": items, "tags": []any{"a b", "c"}, "count": json.Number("9007199254740993")},
		Variables{})
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 2 || got[0] != `POST /2 {"items":[{"sku":"AB"}]}` ||
		got[1] != `GET /9007199254740993?items=%7B%22sku%22%3A%22AB%22%7D&tags=a+b&tags=c ` &&
			got[1] != `GET /9007199254740993?items=%5B%7B%22sku%22%3A%22AB%22%7D%5D&tags=a+b&tags=c ` {
		t.Errorf("sent %q", got)
	}
}

// Of the two forms that which was changed counts, and the other is made of it.
func TestSettle(t *testing.T) { storetest.Each(t, testSettle) }

func testSettle(t *testing.T, db *store.DB) {
	user := storetest.User(t, db, 0).ID
	decoded := func(text string) (tree map[string]any) {
		if err := json.Unmarshal([]byte(text), &tree); err != nil {
			t.Fatal(err)
		}
		return tree
	}
	made, err := Create(t.Context(), db, user,
		map[string]any{"name": "t", "description": "does", "endpoint": "https://x.test/", "method": "POST",
			"json_schema": decoded(nested)})
	if err != nil {
		t.Fatal(err)
	}
	change := func(body map[string]any) (*parley.Tool, error) {
		_, err := Change(t.Context(), db, user, made.ID, func(parley.Tool) (map[string]any, error) { return body, nil })
		now, readErr := db.Tool(context.WithoutCancel(t.Context()), user, made.ID)
		if readErr != nil {
			t.Fatal(readErr)
		}
		return now, err
	}
	count := []any{map[string]any{"name": "count", "type": "number", "description": "The parameter count.", "required": false}}
	now, err := change(map[string]any{"schema": count, "json_schema": decoded(nested)}) // all that was shown, sent back
	if err != nil || !schema.Same(now.JSONSchema, []byte(nested)) || len(now.Schema) != 1 || now.Schema[0].Name != "count" {
		t.Errorf("unchanged: %v, %+v", err, now)
	}
	if _, err := change(map[string]any{"json_schema": decoded(`{"type":"array"}`)}); err == nil {
		t.Error("a list was taken")
	}
	other := []any{map[string]any{"name": "other", "type": "number", "description": "Another", "required": true}}
	now, err = change(map[string]any{"schema": other, "json_schema": decoded(nested)})
	if err != nil || now.JSONSchema != nil || now.Schema[0].Name != "other" {
		t.Errorf("the short form changed: %v, %+v", err, now)
	}
	now, err = change(map[string]any{"json_schema": decoded(nested)})
	if err != nil || len(now.JSONSchema) == 0 {
		t.Errorf("the long form changed: %v, %+v", err, now)
	}
	now, err = change(map[string]any{"json_schema": nil})
	if err != nil || now.JSONSchema != nil || len(now.Schema) != 1 {
		t.Errorf("cleared: %v, %+v", err, now)
	}
	if shown := Shown(now); !schema.Same(shown.JSONSchema, schema.Of(now.Schema)) {
		t.Errorf("shown as %s", shown.JSONSchema)
	}
}
