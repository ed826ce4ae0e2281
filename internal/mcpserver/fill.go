package mcpserver

import (
	"cmp"
	"context"
	"net/url"
	"strings"

	"parley/internal/parley"
)

// fills complete what was sent, from other operations.
var fills = map[string]func(ctx context.Context, s *Server, args object) error{
	"choose": choose, "language": language, "website": website, "free": free}

// get reads an operation that needs no path.
func (s *Server) get(ctx context.Context, op string, query url.Values) (any, error) {
	a, err := s.ask(ctx, s.ops()[op], nil, query, nil, "")
	if err == nil && a.failed() {
		err = parley.Errorf(parley.Refused, "%s", a.refusal(&tool{Name: op}))
	}
	if err != nil {
		return nil, err
	}
	return unwrapped(a.value), nil
}

// first is the first thing of a list with a value in a field; "" for any.
func first(list any, field, value string) object {
	things, _ := list.([]any)
	for _, one := range things {
		if o, _ := one.(object); field == "" || strings.EqualFold(textOf(o[field]), value) {
			return o
		}
	}
	return nil
}

// choose completes a new assistant with what the server has: a language, a voice, a model, the account's time zone.
func choose(ctx context.Context, s *Server, args object) error {
	unset := func(name string) bool { return args[name] == nil }
	for name, value := range map[string]string{"type": "inbound", "mode": "pipeline"} {
		if unset(name) {
			args[name] = value
		}
	}
	if err := language(ctx, s, args); err != nil {
		return err
	}
	mode := textOf(args["mode"])
	if unset("voice_id") {
		list, err := s.get(ctx, "listVoices", url.Values{"language_id": {textOf(args["language_id"])}, "mode": {mode}})
		if err != nil {
			return err
		}
		voice := first(list, "", "")
		if voice == nil {
			return parley.Errorf(parley.Refused, "No voice of this server speaks this language in mode %s.", mode)
		}
		args["voice_id"] = voice["id"]
	}
	model, kind := "llm_model_id", "llm"
	if mode != "pipeline" {
		model, kind = "multimodal_model_id", mode
	}
	if unset(model) {
		list, err := s.get(ctx, "listModels", url.Values{"type": {kind}})
		if err != nil {
			return err
		}
		if found := first(list, "", ""); found != nil { // else the API says what is missing
			args[model] = found["id"]
		}
	}
	if unset("timezone") {
		me, err := s.get(ctx, "getMe", nil)
		if err != nil {
			return err
		}
		args["timezone"] = at(me, "timezone")
	}
	return nil
}

// language puts a language's id in place of its code.
func language(ctx context.Context, s *Server, args object) error {
	code := cmp.Or(textOf(args["language"]), "en")
	delete(args, "language")
	if args["language_id"] != nil {
		return nil
	}
	list, err := s.get(ctx, "listLanguages", nil)
	if err != nil {
		return err
	}
	found := first(list, "iso_2", code)
	if found == nil {
		return parley.Errorf(parley.Refused, "No language has the code %q. Codes have two letters, as in ISO 639-1: en, de, fr.", code)
	}
	args["language_id"] = found["id"]
	return nil
}

// website says that what is added to a knowledgebase is one.
func website(_ context.Context, _ *Server, args object) error {
	args["type"] = "website"
	return nil
}

// free begins a conversation as a test, unless it is said to be another.
func free(_ context.Context, _ *Server, args object) error {
	if args["type"] == nil {
		args["type"] = "test"
	}
	return nil
}
