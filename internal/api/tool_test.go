package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
)

func TestToolLife(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		if got := string(h.get("/user/tools", status(200)).body); strings.TrimSpace(got) != "[]" {
			t.Errorf("no tools are %s", got)
		}
		made := h.post("/user/tools", map[string]any{"name": "look_up", "description": "Looks up.",
			"endpoint": "https://example.com/{order_id}?k={{key}}",
			"method":   "POST", "headers": []any{map[string]any{"name": "X-Key", "value": "s3cret"}},
			"schema": []any{map[string]any{"name": "order_id", "type": "string", "description": "The order."}},
			"id":     99, "created_at": "x"}, status(201)).json()
		if made["message"] != "Tool created successfully" {
			t.Errorf("message %v", made["message"])
		}
		tool := made["data"].(map[string]any)
		want := []string{"allowed_tools", "created_at", "description", "endpoint", "filler", "headers", "id", "json_schema", "kind",
			"method", "mode", "name", "oauth", "remote_error", "remote_listed_at", "remote_more", "remote_tools", "schema", "schema_notes",
			"second_filler", "timeout", "updated_at"}
		if got := slices.Sorted(maps.Keys(tool)); !slices.Equal(got, want) {
			t.Errorf("fields %v", got)
		}
		if tool["timeout"] != json.Number("10") || fmt.Sprint(
			tool["schema"]) != "[map[description:The order. name:order_id required:true type:string]]" {
			t.Errorf("defaults: %v", tool)
		}
		if !isoTime.MatchString(tool["created_at"].(string)) {
			t.Errorf("created_at is %v", tool["created_at"])
		}
		at := fmt.Sprintf("/user/tools/%d", id(tool))
		got := h.get(at, status(200))
		if d := fmt.Sprint(got.json()); d != fmt.Sprint(tool) {
			t.Errorf("GET answers %s", d)
		}
		// A tool can be sent back as it was read, and that changes nothing.
		put := h.put(at, nil, raw(string(got.body)), status(200)).json()
		if put["message"] != "Tool updated successfully" {
			t.Errorf("message %v", put["message"])
		}
		if again := h.get(at); !bytes.Equal(again.body, got.body) {
			t.Errorf("PUT of what GET returned changed\n%s\nto\n%s", got.body, again.body)
		}
		h.put(at, nil, status(200))
		if again := h.get(at); !bytes.Equal(again.body, got.body) {
			t.Errorf("an empty PUT changed %s", again.body)
		}
		// Only the fields that are sent change; lists are replaced; null clears an optional field.
		h.put(at, map[string]any{"timeout": 30, "headers": []any{}}, status(200))
		now := h.get(at).json()
		if now["timeout"] != json.Number("30") || len(now["headers"].([]any)) != 0 || now["name"] != "look_up" ||
			len(now["schema"].([]any)) != 1 {
			t.Errorf("after a partial PUT: %v", now)
		}
		h.put(at, nil, raw(`{"timeout":null,"schema":null}`), status(200))
		if now = h.get(at).json(); now["timeout"] != json.Number("10") || len(now["schema"].([]any)) != 0 {
			t.Errorf("after clearing: %v", now)
		}
		h.put(at, nil, raw(`{"name":null,"method":null}`), status(422)).fails("name", "method")

		other := h.stranger()
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			other.do(method, at, nil, status(404)).is(`{"message":"Tool not found"}`)
		}
		if n := len(other.get("/user/tools").list()); n != 0 {
			t.Errorf("a stranger sees %d tools", n)
		}
		second := h.tool(nil)
		if list := h.get("/user/tools").list(); len(list) != 2 || id(list[0]) != second {
			t.Errorf("not newest first: %v", list)
		}
		// Deleting a tool removes it from its assistants.
		a := h.assistant(map[string]any{"tool_ids": []any{id(tool), second}})
		h.delete(at, status(200)).is(`{"message":"Tool deleted successfully"}`)
		h.delete(at, status(404))
		if ids := h.get(fmt.Sprintf("/user/assistant/%d",
			a)).json()["tool_ids"]; fmt.Sprint(ids) != fmt.Sprintf("[%d]", second) {
			t.Errorf("the assistant has the tools %v", ids)
		}
	})
}

// wrong are values of every JSON type that a field of a kind does not accept.
var wrong = map[string][]string{
	"string": {`5`, `true`, `[]`, `{}`, `["x"]`},
	"int":    {`"5.0"`, `""`, `"x"`, `true`, `[]`, `{}`, `1.5`, `1e-3`, `1e400`, `99999999999999999999`},
	"bool":   {`"true"`, `2`, `""`, `"x"`, `[]`, `{}`},
	"flag":   {`"2"`, `2`, `-1`, `0.5`, `"true"`, `[]`, `{}`},
	// numeric text
	"text": {`"abc"`, `""`, `" "`, `true`, `[]`, `{}`, `"0x1p-1"`, `"1_0"`, `"1/2"`, `"NaN"`, `"Inf"`, `"0,5"`,
		`1e400`, `"--1"`},
	"number":    {`"0.5"`, `""`, `true`, `[]`, `{}`, `1e400`},
	"array":     {`"x"`, `5`, `true`, `{}`, `{"0":"a"}`},
	"object":    {`"x"`, `5`, `true`, `[]`, `["x"]`},
	"schema":    {`"x"`, `5`, `true`, `[]`, `["x"]`},
	"variables": {`"x"`, `5`, `true`, `["x"]`},
}

var mustBe = map[string]string{"string": "must be a string.", "int": "must be an integer.",
	"bool": "must be true or false.", "flag": "must be true or false.",
	"text": "must be a number.", "number": "must be a number.", "array": "must be an array.",
	"object": "must be an object.", "schema": "must be an object: a JSON Schema.", "variables": "must be an object."}

var toolKinds = map[string]string{"name": "string", "description": "string", "endpoint": "string",
	"method": "string", "timeout": "int",
	"headers": "array", "schema": "array"}

func TestToolWrongTypes(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		at := fmt.Sprintf("/user/tools/%d", h.tool(nil))
		before := h.get(at).body
		for field, kind := range toolKinds {
			for _, value := range wrong[kind] {
				body := encode(with(toolBody(), map[string]any{field: json.RawMessage(value)}))
				h.post("/user/tools", nil, raw(body), status(422)).says(field, "The "+field+" field "+mustBe[kind])
				h.put(at, nil, raw(`{"`+field+`":`+value+`}`), status(422)).says(field, "The "+field+" field "+
					mustBe[kind])
			}
		}
		if after := h.get(at).body; !bytes.Equal(before, after) {
			t.Errorf("a refused PUT changed %s", after)
		}
		if n := len(h.get("/user/tools").list()); n != 1 {
			t.Errorf("refused POSTs made %d tools", n-1)
		}
	})
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestToolRules(t *testing.T) {
	h := lite(t, nil)
	long := func(n int) string { return strings.Repeat("ö", n) }
	param := func(change map[string]any) any {
		return []any{with(map[string]any{"name": "city", "type": "string", "description": "Which city."}, change)}
	}
	pair := func(name, value any) any { return []any{map[string]any{"name": name, "value": value}} }
	many := func(n int, item any) (list []any) { return slices.Repeat([]any{item}, n) }
	names := "The name field must contain only lowercase letters and underscores, and start with a letter."
	for _, c := range []struct {
		field string
		value any
		want  string // the message on the field; "" if it is accepted
		at    string // the failing field if it is another
	}{
		{"name", "", "The name field is required.", ""},
		{"name", "  \t", "The name field is required.", ""},
		{"name", nil, "The name field is required.", ""},
		{"name", "a", "", ""},
		{"name", "  trimmed ", "", ""},
		{"name", strings.Repeat("a", 255), "", ""},
		{"name", strings.Repeat("b", 256), "The name field must not be greater than 255 characters.", ""},
		{"name", "Look", names, ""}, {"name", "look2", names, ""}, {"name", "_look", names, ""},
		{"name", "look-up", names, ""},
		{"name", "look up", names, ""}, {"name", "löok", names, ""}, {"name", "look\nup", names, ""},
		{"name", "2look", names, ""},
		{"name", "a\x00b", "The name field must not contain null characters or broken encoding.", ""},
		{"name", "end_call", "The name field must not be the name of a built-in tool (end_call).", ""},
		{"name", "call_transfer", "The name field must not be the name of a built-in tool (call_transfer).", ""},
		{"name", "dtmf_input", "The name field must not be the name of a built-in tool (dtmf_input).", ""},
		{"name", "collect_keypad", "The name field must not be the name of a built-in tool (collect_keypad).", ""},
		{"name", "assistant_transfer", "The name field must not be the name of a built-in tool (assistant_transfer).", ""},
		{"description", nil, "The description field is required.", ""},
		{"description", " ", "The description field is required.", ""},
		{"description", long(255), "", ""},
		{"description", long(256), "The description field must not be greater than 255 characters.", ""},
		{"description", "it's \"?\" ?0 $1 %s \\' -- ;", "", ""},
		{"endpoint", nil, "The endpoint field is required.", ""},
		{"endpoint", "example.com", "The endpoint field must be a valid URL.", ""},
		{"endpoint", "ftp://example.com", "The endpoint field must be a valid URL.", ""},
		{"endpoint", "javascript:alert(1)", "The endpoint field must be a valid URL.", ""},
		{"endpoint", "https://", "The endpoint field must be a valid URL.", ""},
		{"endpoint", "https:///x", "The endpoint field must be a valid URL.", ""},
		{"endpoint", "https://exa mple.com", "The endpoint field must be a valid URL.", ""},
		{"endpoint", "https://example.com:99999/", "The endpoint field must be a valid URL.", ""},
		{"endpoint", "https://{host}/", "The endpoint field must be a valid URL.", ""},
		{"endpoint", "https://example.com?q={city}", "", ""},
		{"endpoint", "https://example.com/{city}/x?y={{z}}#f", "", ""},
		{"endpoint", "HTTPS://EXAMPLE.com:443/ü", "", ""},
		{"endpoint", "http://127.0.0.1:8080/", "", ""},
		{"endpoint", "https://example.com/" + strings.Repeat("a", 2048-20), "", ""},
		{"endpoint", "https://example.com/" + strings.Repeat("a", 2049-20),
			"The endpoint field must not be greater than 2048 characters.", ""},
		{"method", nil, "The method field is required.", ""},
		{"method", "get", "The method field must be one of: GET, POST, PUT, PATCH, DELETE.", ""},
		{"method", "HEAD", "The method field must be one of: GET, POST, PUT, PATCH, DELETE.", ""},
		{"method", "DELETE", "", ""}, {"method", "PATCH", "", ""},
		{"timeout", 1, "", ""}, {"timeout", 30, "", ""},
		{"timeout", 0, "The timeout field must be at least 1.", ""},
		{"timeout", -5, "The timeout field must be at least 1.", ""},
		{"timeout", 31, "The timeout field must not be greater than 30.", ""},
		{"timeout", int64(1) << 62, "The timeout field must not be greater than 30.", ""},
		{"headers", pair("X-Key", "v"), "", ""},
		{"headers", pair("X-Key", ""), "", ""},
		{"headers", pair("X-Key", long(4096)), "", ""},
		{"headers", pair("X-Key", long(4097)), "The headers.0.value field must not be greater than 4096 characters.", "headers.0.value"},
		{"headers", pair("", "v"), "The headers.0.name field is required.", "headers.0.name"},
		{"headers", pair("X Key", "v"), "The headers.0.name field must be a valid HTTP header name.", "headers.0.name"},
		{"headers", pair(5, "v"), "The headers.0.name field must be a string.", "headers.0.name"},
		{"headers", pair("X-Key", 5), "The headers.0.value field must be a string.", "headers.0.value"},
		{"headers", []any{"X-Key: v"}, "The headers.0 field must be an object.", "headers.0"},
		{"headers", []any{nil}, "The headers.0 field is required.", "headers.0"},
		{"headers", many(50, map[string]any{"name": "A", "value": "b"}), "", ""},
		{"headers", many(51, map[string]any{"name": "A", "value": "b"}),
			"The headers field must not have more than 50 items.", ""},
		{"schema", param(nil), "", ""},
		{"schema", param(map[string]any{"required": false}), "", ""},
		{"schema", param(map[string]any{"required": "no"}), "The schema.0.required field must be true or false.",
			"schema.0.required"},
		{"schema", param(map[string]any{"type": "boolean"}), "", ""},
		{"schema", param(map[string]any{"type": "bool"}),
			"The schema.0.type field must be one of: string, number, boolean.", "schema.0.type"},
		{"schema", param(map[string]any{"type": nil}), "The schema.0.type field is required.", "schema.0.type"},
		{"schema", param(map[string]any{"name": "c"}), "The schema.0.name field must be at least 2 characters.",
			"schema.0.name"},
		{"schema", param(map[string]any{"name": "C2"}), "", ""},
		{"schema", param(map[string]any{"name": strings.Repeat("c", 32)}), "", ""},
		{"schema", param(map[string]any{"name": strings.Repeat("c", 33)}),
			"The schema.0.name field must not be greater than 32 characters.", "schema.0.name"},
		{"schema", param(map[string]any{"name": "2c"}),
			"The schema.0.name field must contain only letters, digits and underscores, and start with a letter.",
			"schema.0.name"},
		{"schema", param(map[string]any{"description": "ab"}),
			"The schema.0.description field must be at least 3 characters.", "schema.0.description"},
		{"schema", param(map[string]any{"description": long(255)}), "", ""},
		{"schema", param(map[string]any{"description": long(256)}),
			"The schema.0.description field must not be greater than 255 characters.", "schema.0.description"},
		{"schema", append(param(nil).([]any), param(nil).([]any)...),
			"The schema.1.name field has a duplicate value.", "schema.1.name"},
	} {
		body := with(toolBody(), map[string]any{c.field: c.value})
		a := h.post("/user/tools", body)
		if c.want == "" {
			if a.status != 201 {
				t.Errorf("%s %.80v: %s", c.field, c.value, a.body)
			} else if c.field != "name" {
				got := a.json()["data"].(map[string]any)[c.field]
				if s, ok := c.value.(string); ok && got != s {
					t.Errorf("%s %.80v came back as %.80v", c.field, c.value, got)
				}
			}
			continue
		}
		at := c.at
		if at == "" {
			at = c.field
		}
		a.says(at, c.want)
	}
	h.post("/user/tools", nil, status(422)).fails("name", "description", "endpoint", "method")
	got := h.post("/user/tools", map[string]any{"name": "A", "timeout": 0, "method": 5,
		"headers": []any{map[string]any{"value": 1}, "x"},
		"schema":  []any{map[string]any{"name": "ok_name", "type": "x"}}}, status(422)).
		fails("name", "description", "endpoint", "method", "timeout", "headers.0.name", "headers.0.value",
			"headers.1", "schema.0.type", "schema.0.description")
	if len(got) != 10 {
		t.Errorf("%d fields failed", len(got))
	}
	h.post("/user/tools", nil, status(422)).is(`{"message":"The name field is required. (and 3 more errors)","errors":{"name":["The name field is required."],"description":["The description field is required."],"endpoint":["The endpoint field is required."],"method":["The method field is required."]}}`)
}

func TestToolNamesAreUnique(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		first := h.tool(map[string]any{"name": "look_up"})
		taken := "The name has already been taken."
		h.post("/user/tools", with(toolBody(), map[string]any{"name": "look_up"}), status(422)).says("name", taken)
		second := h.tool(nil)
		h.put(fmt.Sprintf("/user/tools/%d", second), map[string]any{"name": "look_up"}, status(422)).says("name", taken)
		h.put(fmt.Sprintf("/user/tools/%d", first), map[string]any{"name": "look_up", "timeout": 4}, status(200))
		// A rule about the row and a rule about the table are reported together.
		h.post("/user/tools", with(toolBody(), map[string]any{"name": "look_up", "timeout": 99}),
			status(422)).fails("name", "timeout")
		h.put(fmt.Sprintf("/user/tools/%d", second), map[string]any{"name": "look_up", "timeout": 99},
			status(422)).fails("name", "timeout")
		h.put(fmt.Sprintf("/user/tools/%d", first), map[string]any{"name": "look_up", "timeout": 99},
			status(422)).fails("timeout")
		h.post("/user/tools", map[string]any{"name": "end_call"}, status(422)).fails("name", "description",
			"endpoint", "method")
		h.stranger().tool(map[string]any{"name": "look_up"})
	})
}

func TestToolPlanLimit(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.user.Plan = "trial"
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.SaveUser(ctx, h.user) })
		var last int64
		for range 5 {
			last = h.tool(nil)
		}
		h.post("/user/tools", toolBody(), status(403)).
			is(`{"message":"Your plan allows 5 tools. Delete what you no longer need, or ask the operator of this server for a larger plan."}`)
		h.put(fmt.Sprintf("/user/tools/%d", last), map[string]any{"timeout": 3}, status(200))
		h.delete(fmt.Sprintf("/user/tools/%d", last), status(200))
		h.tool(nil)
		h.post("/user/tools", toolBody(), status(403))
	})
}

// Only a tool that a call does not wait for may take longer than half a minute.
func TestToolMode(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		body := map[string]any{"name": "look_up", "description": "Looks up.", "endpoint": "https://example.com/", "method": "GET", "timeout": 31}
		const long = "The timeout field must not be greater than 30."
		if got := h.post("/user/tools", body, status(422)).json()["errors"]; fmt.Sprint(got) != "map[timeout:["+long+"]]" {
			t.Errorf("a tool of 31 s: %v", got)
		}
		body["mode"] = "async"
		made := h.post("/user/tools", body, status(201)).json()["data"].(map[string]any)
		at := fmt.Sprintf("/user/tools/%d", id(made))
		if got := h.get(at).json(); got["mode"] != "async" || got["timeout"] != json.Number("31") {
			t.Errorf("it is %v", got)
		}
		if got := h.put(at, map[string]any{"mode": "sync"}, status(422)).json()["errors"]; fmt.Sprint(got) != "map[timeout:["+long+"]]" {
			t.Errorf("one that is waited for: %v", got)
		}
		h.put(at, map[string]any{"mode": "sync", "timeout": 30}, status(200))
		h.put(at, map[string]any{"mode": "later"}, status(422))
		h.put(at, map[string]any{"mode": "async", "timeout": 601}, status(422))
	})
}

// An auditor reads tools without what only those may see who may change them.
func TestToolsForAuditors(t *testing.T) {
	h, _ := rough(t)
	made := h.tool(map[string]any{"endpoint": "https://example.com/secret",
		"headers": []any{map[string]any{"name": "X-Key", "value": "s3cret"}}})
	auditor := header("Authorization", "Bearer "+h.credential(h.member(parley.RoleAuditor), "session", ""))
	for _, path := range []string{"/user/tools", fmt.Sprintf("/user/tools/%d", made)} {
		got := string(h.get(path, auditor, status(200)).body)
		if !strings.Contains(got, `"X-Key"`) || strings.Contains(got, "s3cret") || strings.Contains(got, "/secret") {
			t.Errorf("%s: %s", path, got)
		}
	}
	h.put(fmt.Sprintf("/user/tools/%d", made), map[string]any{"name": "x"}, auditor, status(403))
	if got := string(h.get(fmt.Sprintf("/user/tools/%d", made), status(200)).body); !strings.Contains(got, "s3cret") {
		t.Errorf("the owner reads %s", got)
	}
}
