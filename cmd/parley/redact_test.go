package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"parley/internal/ai/aitest"
)

// Whatever is printed or logged, an address keeps its host and loses what opens it.
func TestRedact(t *testing.T) {
	s := &Settings{
		Database: "postgres://parley:parley@db.example.com:5432/parley?sslmode=disable", Blob: "s3://AKIAEXAMPLE:s3cr/et+@bucket/p?endpoint=https://s3.example.com&region=eu",
		OpenAIBaseURL: "https://team:pa%40ss@ai.example.com/v1?key=topsecretvalue&api-version=2", OpenAIAPIKey: "sk-0123456789", SecretKey: "sixteen-characters", TLSKey: "/etc/tls/private.key",
		TwilioBaseURL: "https://user@twilio.example.com", TwilioAuthToken: "short",
	}
	for text, want := range map[string]string{
		"connect to " + s.Database:                        "connect to postgres://[secret]@db.example.com:5432/parley?sslmode=disable",
		s.OpenAIBaseURL + " with gpt":                     "https://[secret]@ai.example.com/v1?key=[secret]&api-version=2 with gpt",
		`Post "https://team:pa%40ss@ai.example.com/v1/x"`: `Post "https://[secret]@ai.example.com/v1/x"`,
		"the key sk-0123456789 is refused":                "the key [secret] is refused",
		"GET /?k=sixteen-characters":                      "GET /?k=[secret]",
		s.TwilioBaseURL + " says no":                      "https://[secret]@twilio.example.com says no",
		"parley: the parley database":                     "parley: the parley database", // a word that is a password elsewhere stays a word
		"/etc/tls/private.key":                            "/etc/tls/private.key",
	} {
		var b bytes.Buffer
		if n, err := s.redact(&b).Write([]byte(text)); err != nil || n != len(text) || b.String() != want {
			t.Errorf("%s is written as %s, want %s", text, b.String(), want)
		}
	}
	var b bytes.Buffer
	if (&Settings{}).redact(&b) != &b {
		t.Error("there is nothing to hide, and yet something is looked for")
	}
	for _, secret := range []string{"s3cr/et+", "AKIAEXAMPLE:s3cr"} {
		fmt.Fprint(s.redact(&b), s.Blob)
		if strings.Contains(b.String(), secret) {
			t.Errorf("%s is written", b.String())
		}
	}
}

// The doctor and the log of a failing vendor: neither tells the password that stands in the vendor's address.
func TestRedactOfAVendor(t *testing.T) {
	srv := aitest.NewServer(t)
	s := &Settings{OpenAIBaseURL: strings.Replace(srv.URL, "://", "://proxy:hunter2secret@", 1), OpenAIChatModel: []string{aitest.ModelName}, OpenAIEmbeddingModel: "none"}
	var b bytes.Buffer
	out := s.redact(&b)
	for _, f := range append(checkModels(t.Context(), s), checkEmbedder(t.Context(), s)) {
		fmt.Fprintln(out, f)
	}
	s.OpenAIBaseURL = "http://proxy:hunter2secret@127.0.0.1:1/v1?token=querysecret"
	out = s.redact(&b)
	for _, f := range checkModels(t.Context(), s) {
		fmt.Fprintln(out, f)
	}
	_, err := http.Get(s.OpenAIBaseURL)
	slog.New(slog.NewTextHandler(out, nil)).Error("ask the model", "error", errors.Join(err, errors.New(s.OpenAIBaseURL)))
	if text := b.String(); strings.Contains(text, "hunter2") || strings.Contains(text, "querysecret") || !strings.Contains(text, "127.0.0.1") {
		t.Errorf("written:\n%s", text)
	}
}
