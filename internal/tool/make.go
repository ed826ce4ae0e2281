package tool

import (
	"context"
	"maps"
	"net/http"
	"reflect"
	"slices"

	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/schema"
	"parley/internal/store"
)

// Create makes a tool of a user's from the fields of a request body. The error names every field that fails.
func Create(ctx context.Context, db *store.DB, userID int64, body map[string]any) (*parley.Tool, error) {
	t := &parley.Tool{}
	form.Defaults(t)
	if err := lay(ctx, db.Query, userID, body, t, true); err != nil {
		return nil, err
	}
	return t, db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.CreateTool(ctx, userID, t) })
}

// Change changes the fields that body names, which may depend on the tool as it is now; the whole must be valid
// afterwards. A body that changes nothing writes nothing.
func Change(ctx context.Context, db *store.DB, userID, id int64,
	body func(now parley.Tool) (map[string]any, error)) (t *parley.Tool, err error) {
	err = db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if t, err = tx.ToolForUpdate(ctx, userID, id); err != nil {
			return err
		}
		old := *t
		fields, err := body(old)
		if err == nil {
			err = lay(ctx, tx.Query, userID, fields, t, false)
		}
		if err != nil || reflect.DeepEqual(old, *t) {
			return err
		}
		if old.Kind != t.Kind || old.Endpoint != t.Endpoint { // another server has other tools
			t.Listing = nil
			if err := tx.DropToolListing(ctx, userID, id); err != nil {
				return err
			}
		}
		return tx.SaveTool(ctx, userID, t)
	})
	return t, err
}

// Delete removes a tool and takes it from its assistants.
func Delete(ctx context.Context, db *store.DB, userID, id int64) error {
	return db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteTool(ctx, userID, id) })
}

// lay lays a body over a tool. Among the fields that fail is the name where another tool has it: of a tool whose
// fields are right the database says so.
func lay(ctx context.Context, q store.Query, userID int64, body map[string]any, t *parley.Tool, whole bool) error {
	old := *t
	kind, sent := body["kind"]
	if !sent {
		kind = string(old.Kind)
	}
	if kind == string(parley.ToolMCP) || kind == string(parley.ToolClient) {
		if body = maps.Clone(body); body == nil {
			body = map[string]any{}
		}
		if body["method"] == nil {
			body["method"] = http.MethodPost
		}
		if kind == string(parley.ToolClient) { // it has none, whatever is sent: it is emptied below
			body["endpoint"] = "https://localhost"
		}
	}
	fields := form.Bind(body, t, whole)
	t.Check(&fields)
	settle(body, &old, t, &fields)
	if len(t.Allowed) == 0 {
		t.Allowed = nil
	}
	if t.Kind == parley.ToolMCP {
		t.Method, t.Schema, t.JSONSchema = http.MethodPost, []parley.ToolParam{}, nil
	}
	if t.Kind == parley.ToolClient {
		t.Method, t.Endpoint, t.Headers, t.OAuth, t.Allowed = http.MethodPost, "", []parley.ToolHeader{}, nil, nil
	}
	if len(fields) == 0 || fields.Has("name") {
		return fields.Err()
	}
	others, err := q.Tools(ctx, userID)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(others, func(o parley.Tool) bool { return o.Name == t.Name && o.ID != t.ID }) {
		fields.AddText("name", "The name has already been taken.")
	}
	return fields.Err()
}

// settle decides which form of the schema counts.
func settle(body map[string]any, old, t *parley.Tool, fields *parley.Fields) {
	if fields.Has("json_schema") {
		return
	}
	_, short := body["schema"]
	now, err := schema.ToolForms.Settle(forms(old), forms(t), short, body["json_schema"] != nil)
	if err != nil {
		fields.Add("json_schema", "%s.", err)
		return
	}
	t.Schema, t.JSONSchema = now.Short, now.Own
}

func forms(t *parley.Tool) schema.Both[parley.ToolParam] {
	return schema.Both[parley.ToolParam]{Short: t.Schema, Own: t.JSONSchema}
}
