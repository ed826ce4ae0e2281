package manifest

import (
	"errors"

	"parley/internal/parley"
)

// WriteAssistant is the file of one assistant, without some of the API's fields. name says what an id in a field of the API
// stands for, such as that in voice_id or tools.assistant_id.
func WriteAssistant(a *parley.Assistant, name func(field string, id int64) string, without ...string) []byte {
	k := kindOf(assistantDir)
	own := *a
	own.Tools = nil
	for _, t := range a.Tools {
		if t.Type != parley.MidCall {
			own.Tools = append(own.Tools, t)
		}
	}
	t := &Thing{Kind: k, Path: assistantDir + "/" + slug(a.Name) + fileExtension, Body: treeOf(&own, k.typ)}
	for _, field := range without {
		delete(t.Body, field)
	}
	k.name(t.Body, func(f ref, id int64) any {
		field := f.id
		if f.in != "" {
			field = f.in + "." + f.id
		}
		if text := name(field, id); text != "" {
			return text
		}
		return number(id)
	})
	used := map[string]bool{}
	for _, tool := range a.MidCallTools {
		for _, h := range tool.Headers {
			useIn(used, h.Value)
		}
	}
	t.conceal(used, map[string]bool{})
	return k.write(t.written(nil))
}

// ReadAssistant is what the file of an assistant says: all its fields, with names in place of ids. Secrets that it refers to
// are empty; concealed are their places, such as variables.api_key.
func ReadAssistant(text []byte) (body map[string]any, concealed []string, err error) {
	t, wrong := kindOf(assistantDir).read("assistant.yaml", text)
	if len(wrong) > 0 {
		var all []error
		for _, m := range wrong {
			all = append(all, m)
		}
		return nil, nil, errors.Join(all...)
	}
	body, _ = t.revealed(func(string) (string, bool) { return "", true })
	t.Kind.eachSecret(t.Body, func(place, text string) string {
		if len(references(text)) > 0 {
			concealed = append(concealed, place)
		}
		return text
	})
	return body, concealed, nil
}

// AssistantFile is what the file of an assistant is called.
func AssistantFile(name string) string { return slug(name) + fileExtension }
