package rehearsal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// assistantOf is an assistant's file, with the lines of its fields.
type assistantOf struct {
	file   string
	fields map[string]any
	lines  map[string]int
	tools  []assistantOf // under mid_call_tools
}

// readAssistant reads the file of an assistant.
func readAssistant(file string) (*assistantOf, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		m := yamlMistake(err)
		if wrong, ok := errors.AsType[*Mistake](m); ok {
			wrong.File = file
		}
		return nil, m
	}
	if len(doc.Content) == 0 {
		return nil, &Mistake{File: file, Text: "it is empty: write the fields of an assistant, such as system_prompt"}
	}
	a, err := fieldsOf(file, doc.Content[0], "an assistant")
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(doc.Content[0].Content); i += 2 {
		key, list := doc.Content[0].Content[i], doc.Content[0].Content[i+1]
		if key.Value != "mid_call_tools" {
			continue
		}
		if list.Kind != yaml.SequenceNode {
			return nil, &Mistake{file, list.Line, "mid_call_tools must be a list of tools, as POST /user/tools takes them"}
		}
		for _, one := range list.Content {
			tool, err := fieldsOf(file, one, "a tool")
			if err != nil {
				return nil, err
			}
			a.tools = append(a.tools, *tool)
		}
	}
	delete(a.fields, "mid_call_tools")
	return a, nil
}

func fieldsOf(file string, n *yaml.Node, what string) (*assistantOf, error) {
	if n.Kind != yaml.MappingNode {
		return nil, &Mistake{file, n.Line, what + " must be written as field: value"}
	}
	fields, err := writtenValues(n)
	if err != nil {
		return nil, &Mistake{file, n.Line, err.Error()}
	}
	a := &assistantOf{file: file, fields: fields, lines: map[string]int{"": n.Line}}
	for i := 0; i+1 < len(n.Content); i += 2 {
		a.lines[n.Content[i].Value] = n.Content[i].Line
	}
	return a, nil
}

// unknown is the mistake of a field that the server does not know; known is empty where that can't be told.
func (a *assistantOf) unknown(what string, known []string) error {
	if len(known) == 0 {
		return nil
	}
	names := slices.SortedFunc(maps.Keys(a.fields), func(x, y string) int { return a.lines[x] - a.lines[y] })
	for _, name := range names {
		if !slices.Contains(known, name) {
			return &Mistake{a.file, a.lines[name], fmt.Sprintf("%s has no %q%s", what, name, like(name, known))}
		}
	}
	return nil
}

// like names the fields that a wrong one may mean.
func like(name string, known []string) string {
	nearest, least := "", 1+len(name)/3
	for _, k := range known {
		if d := distance(strings.Split(name, ""), strings.Split(k, "")); d <= least && (nearest == "" || d < least) {
			nearest, least = k, d
		}
	}
	if nearest == "" {
		return ": its fields are those of the API reference"
	}
	return fmt.Sprintf(": is it %q?", nearest)
}

// mistaken tells the line of a field that the server refuses.
func (a *assistantOf) mistaken(err error) error {
	refusal, ok := errors.AsType[*Refusal](err)
	if !ok {
		return fmt.Errorf("%s: %w", a.file, err)
	}
	for _, name := range sortedKeys(refusal.Fields) {
		field, _, _ := strings.Cut(name, ".")
		if line := a.lines[field]; line > 0 {
			return &Mistake{a.file, line, refusal.Error()}
		}
	}
	return &Mistake{a.file, a.lines[""], refusal.Error()}
}

// usual sets fields that are not there.
func (a *assistantOf) usual(fields map[string]any) {
	for k, v := range fields {
		if _, ok := a.fields[k]; !ok {
			a.fields[k] = v
		}
	}
}

// make makes an assistant of a file: the fields of the API, with language, voice and model by their names, its tools under
// mid_call_tools, and files under knowledge. With a number it calls, and without one it is called. before are the files of the
// assistants that hand over to it.
func (s *Client) make(ctx context.Context, file string, number int64, before ...string) (*callee, error) {
	a, err := readAssistant(file)
	if err != nil {
		return nil, err
	}
	if slices.Contains(before, file) {
		return nil, &Mistake{file, 0, "these assistants hand over to each other in a circle: give one of them no assistant_transfer"}
	}
	known, knownOfTools := s.fields(ctx, "/user/assistant"), s.fields(ctx, "/user/tools")
	if len(known) > 0 {
		known = append(known, "language", "voice", "model", "knowledge")
	}
	if err := a.unknown("an assistant", known); err != nil {
		return nil, err
	}
	kind := "inbound"
	if number != 0 {
		kind, a.fields["phone_number_id"] = "outbound", number
	}
	a.usual(map[string]any{"name": strings.TrimSuffix(filepath.Base(file), assistantFile), "type": kind, "mode": "pipeline",
		"status": "active", "timezone": "UTC", "post_call_evaluation": false})
	if err := s.choose(ctx, a.fields); err != nil {
		return nil, a.mistaken(err)
	}
	ids := []int64{}
	for i := range a.tools {
		tool := &a.tools[i]
		if err := tool.unknown("a tool", knownOfTools); err != nil {
			return nil, err
		}
		tool.usual(map[string]any{"method": "POST", "endpoint": "https://example.invalid/"})
		var made struct{ Data struct{ ID int64 } }
		if err := s.ask(ctx, "POST", "/user/tools", tool.fields, &made); err != nil {
			return nil, tool.mistaken(err)
		}
		ids = append(ids, made.Data.ID)
	}
	if len(ids) > 0 {
		a.fields["tool_ids"] = ids
	}
	if err := s.handOver(ctx, a, append(before, file)); err != nil {
		return nil, err
	}
	if err := s.learn(ctx, a); err != nil {
		return nil, err
	}
	var made struct{ Data callee }
	if err := s.ask(ctx, "POST", "/user/assistants", a.fields, &made); err != nil {
		return nil, a.mistaken(err)
	}
	made.Data.Client = s
	return &made.Data, nil
}

// handOver makes the assistants that an assistant's tools name by their files.
func (s *Client) handOver(ctx context.Context, a *assistantOf, before []string) error {
	tools, _ := a.fields["tools"].([]any)
	for _, one := range tools {
		tool, _ := one.(map[string]any)
		name, ok := tool["assistant"].(string)
		if !ok {
			continue
		}
		file := filepath.Join(filepath.Dir(a.file), strings.TrimSuffix(name, assistantFile)+assistantFile)
		if _, err := os.Stat(file); err != nil {
			return &Mistake{a.file, a.lines["tools"], fmt.Sprintf("there is no file %s beside it", filepath.Base(file))}
		}
		next, err := s.make(ctx, file, 0, before...)
		if err != nil {
			return err
		}
		delete(tool, "assistant")
		tool["assistant_id"] = next.ID
	}
	return nil
}

// learn makes a knowledgebase of the files that are named under knowledge, and waits until it can be searched.
func (s *Client) learn(ctx context.Context, a *assistantOf) error {
	named, ok := a.fields["knowledge"]
	delete(a.fields, "knowledge")
	if !ok {
		return nil
	}
	wrong := func(format string, args ...any) error {
		return &Mistake{a.file, a.lines["knowledge"], fmt.Sprintf(format, args...)}
	}
	names, _ := named.([]any)
	if one, ok := named.(string); ok {
		names = []any{one}
	}
	if len(names) == 0 {
		return wrong("knowledge must be a list of files beside this one, such as [menu.txt]")
	}
	var made struct{ Data struct{ ID int64 } }
	if err := s.ask(ctx, "POST", "/user/knowledgebases", map[string]any{"name": filepath.Base(a.file)}, &made); err != nil {
		return wrong("%v", err)
	}
	at := fmt.Sprintf("/user/knowledgebases/%d/documents", made.Data.ID)
	for _, one := range names {
		name := fmt.Sprint(one)
		kind := strings.TrimPrefix(filepath.Ext(name), ".")
		if kind == "md" {
			kind = "txt"
		}
		if !slices.Contains([]string{"txt", "pdf", "docx"}, kind) {
			return wrong("%s is none of a text (.txt, .md), .pdf or .docx", name)
		}
		content, err := os.ReadFile(filepath.Join(filepath.Dir(a.file), name))
		if err == nil {
			err = s.upload(ctx, at, map[string]string{"name": name, "type": kind}, name, content)
		}
		if err != nil {
			return wrong("%s: %v", name, err)
		}
	}
	for {
		var list struct {
			Data []struct{ Name, Status string }
		}
		if err := s.ask(ctx, "GET", at, nil, &list); err != nil {
			return err
		}
		ready := 0
		for _, d := range list.Data {
			switch d.Status {
			case "failed":
				return wrong("the server can't read %s", d.Name)
			case "active":
				ready++
			}
		}
		if ready == len(names) {
			a.fields["knowledgebase_id"] = made.Data.ID
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return wrong("the server has not read the documents in time: %v", context.Cause(ctx))
		}
	}
}

// upload sends a form with a file.
func (s *Client) upload(ctx context.Context, path string, fields map[string]string, name string, content []byte) error {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, k := range sortedKeys(fields) {
		if err := form.WriteField(k, fields[k]); err != nil {
			return err
		}
	}
	part, err := form.CreateFormFile("file", filepath.Base(name))
	if err == nil {
		_, err = part.Write(content)
	}
	if err = errors.Join(err, form.Close()); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/api"+path, &body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	return s.send(req, nil)
}

// fields are those of what is made with POST at a path, by the server's own reference; none where it does not tell.
func (s *Client) fields(ctx context.Context, path string) (names []string) {
	type schema struct {
		Ref        string                     `json:"$ref"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var reference struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct{ Schema schema }
			}
		}
		Components struct{ Schemas map[string]schema }
	}
	if s.ask(ctx, "GET", "/openapi.json", nil, &reference) != nil {
		return nil
	}
	one := reference.Paths[path]["post"].RequestBody.Content["application/json"].Schema
	if one.Properties == nil {
		one = reference.Components.Schemas[one.Ref[strings.LastIndexByte(one.Ref, '/')+1:]]
	}
	return sortedKeys(one.Properties)
}

// choose puts ids in place of the names of a language, a voice and a model.
func (s *Client) choose(ctx context.Context, fields map[string]any) error {
	type thing struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
		Code string `json:"code"`
		ISO2 string `json:"iso_2"`
	}
	pick := func(field, id, path, usual string) error {
		want, named := fields[field].(string)
		delete(fields, field)
		if _, ok := fields[id]; ok && !named {
			return nil
		}
		if !named {
			want = usual
		}
		var all []thing
		if err := s.ask(ctx, "GET", path, nil, &all); err != nil {
			return err
		}
		var codes []string
		for _, t := range all {
			for _, name := range []string{t.Code, t.Name, t.ISO2} {
				short, _, _ := strings.Cut(name, " (")
				if want == "" || name != "" && (strings.EqualFold(name, want) || strings.EqualFold(short, want)) {
					fields[id] = t.ID
					return nil
				}
			}
			codes = append(codes, t.Name)
		}
		return fmt.Errorf("there is no %s %q: the server has %s", field, want, strings.Join(codes[:min(len(codes), 12)], ", "))
	}
	if err := pick("language", "language_id", "/user/assistants/languages", "English"); err != nil {
		return err
	}
	if err := pick("voice", "voice_id", fmt.Sprintf("/user/assistants/voices?language_id=%v", fields["language_id"]), ""); err != nil {
		return err
	}
	return pick("model", "llm_model_id", "/user/assistants/models?type=llm", "built-in")
}
