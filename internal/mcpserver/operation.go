package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/web"
)

type object = map[string]any

// operation is an operation of the API, as its reference describes it.
type operation struct {
	Method, Path string
	path         []string // the names of its path's parameters
	query        []string
	fields       []string // of its body
	required     []string // of them
	schema       object   // of each parameter and field, by name
	idempotent   bool     // it takes an Idempotency-Key
	body         bool
}

// readReference reads the API reference, once.
func (s *Server) readReference() map[string]*operation {
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Parameters  []struct {
				Name, In, Description string
				Schema                object
			}
			RequestBody struct {
				Content map[string]struct{ Schema object }
			} `json:"requestBody"`
		}
		Components struct{ Schemas object }
	}
	if err := json.Unmarshal(s.API.Reference(), &doc); err != nil {
		panic(err) // of our own making
	}
	ops := map[string]*operation{}
	for path, methods := range doc.Paths {
		for method, d := range methods {
			o := &operation{Method: strings.ToUpper(method), Path: path, schema: object{}}
			for _, p := range d.Parameters {
				switch p.In {
				case "path":
					o.path = append(o.path, p.Name)
				case "query":
					o.query = append(o.query, p.Name)
				case "header":
					o.idempotent = o.idempotent || p.Name == "Idempotency-Key"
					continue
				}
				sc := plain(p.Schema, doc.Components.Schemas, 0).(object)
				if p.Description != "" {
					sc["description"] = p.Description
				}
				o.schema[p.Name] = sc
			}
			if c, ok := d.RequestBody.Content["application/json"]; ok {
				o.body = true
				whole, _ := plain(c.Schema, doc.Components.Schemas, 0).(object)
				props, _ := whole["properties"].(object)
				o.fields = slices.Sorted(maps.Keys(props))
				maps.Copy(o.schema, props)
				required, _ := whole["required"].([]any)
				for _, name := range required {
					o.required = append(o.required, name.(string))
				}
			}
			ops[d.OperationID] = o
		}
	}
	return ops
}

// plain is a schema with what it refers to in its place, and without null: a model leaves out what it doesn't set.
func plain(v any, components object, depth int) any {
	switch v := v.(type) {
	case object:
		if ref, ok := v["$ref"].(string); ok {
			if depth > 6 {
				return object{"type": "object"}
			}
			return plain(components[strings.TrimPrefix(ref, "#/components/schemas/")], components, depth+1)
		}
		out := object{}
		for k, e := range v {
			out[k] = plain(e, components, depth)
		}
		for _, k := range []string{"type", "enum", "anyOf"} {
			list, ok := out[k].([]any)
			if !ok {
				continue
			}
			list = slices.DeleteFunc(slices.Clone(list), func(e any) bool {
				of, _ := e.(object)
				return e == nil || e == "null" || of["type"] == "null"
			})
			out[k] = list
			if len(list) != 1 || k == "enum" {
				continue
			}
			delete(out, k)
			if of, ok := list[0].(object); ok {
				maps.Copy(out, of)
			} else {
				out[k] = list[0]
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plain(e, components, depth)
		}
		return out
	}
	return v
}

// maxAnswer is how much of an answer of the API is read.
const maxAnswer = 8 << 20

// answer is what the API answered.
type answer struct {
	status int
	header http.Header
	value  any
}

// ask runs an operation in the caller's name.
func (s *Server) ask(ctx context.Context, o *operation, path map[string]string, query url.Values, body any, key string) (*answer, error) {
	c := callerOf(ctx)
	at := o.Path
	for name, value := range path {
		if value == "." || value == ".." { // a path would be cleaned of it
			return nil, parley.Errorf(parley.Refused, "%q is no id: list the things first, and take one of theirs.", value)
		}
		at = strings.ReplaceAll(at, "{"+name+"}", url.PathEscape(value))
	}
	var sent io.Reader
	if o.body {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		sent = strings.NewReader(string(text))
	}
	r, err := http.NewRequestWithContext(ctx, o.Method, s.Front.Base(c.from)+"/api"+at, sent)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", o.Path, err)
	}
	r.URL.RawQuery = query.Encode()
	r.RequestURI = r.URL.RequestURI()
	// limits count by the address that it came from, and links name the host that was asked
	r.RemoteAddr, r.Host, r.TLS = c.from.RemoteAddr, c.from.Host, c.from.TLS
	for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Proto"} {
		r.Header[name] = c.from.Header[name]
	}
	r.Header.Set("Accept", "application/json")
	if o.body {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	res, err := s.API.For(c.Who, s.Front.Address(c.from)).RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", o.Path, err)
	}
	a := &answer{status: res.StatusCode, header: res.Header}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		a.value = string(text)
		return a, nil
	}
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.UseNumber()
	if err := dec.Decode(&a.value); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", o.Path, err)
	}
	return a, nil
}

// failed says whether the API refused, or sent elsewhere: then nothing was done.
func (a *answer) failed() bool { return a.status >= http.StatusMultipleChoices }

// known is an error of asking, as a model may read it.
func known(ctx context.Context, err error) string {
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, Path, nil)
	text := web.Known(r, store.Told(err), "Server error. Quote the request id "+web.RequestID(ctx)+" when you report it.").Message
	var later interface {
		error
		Wait() int
	}
	if errors.As(err, &later) {
		text += fmt.Sprintf(" Try again in %d seconds.", later.Wait())
	}
	return text
}
