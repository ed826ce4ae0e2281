package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"parley/internal/ai/aitest"
	"parley/internal/provider/openai"
)

// Whatever is printed or logged, an address keeps its host and loses its credentials.
func TestRedact(t *testing.T) {
	vendor := &openai.Settings{BaseURL: "https://team:pa%40ss@ai.example.com/v1?key=topsecretvalue&api-version=2",
		APIKey: "sk-0123456789"}
	s := &Settings{
		Database: "postgres://parley:parley@db.example.com:5432/parley?sslmode=disable",
		Blob:     "s3://AKIAEXAMPLE:s3cr/et+@bucket/p?endpoint=https://s3.example.com&region=eu",
		Declared: kong.Plugins{vendor}, SecretKey: "sixteen-characters", TLSKey: "/etc/tls/private.key",
		SIPTLSKey: "/etc/tls/sip.key", STIRKey: "/etc/tls/stir.key",
		TwilioBaseURL: "https://user@twilio.example.com", TwilioAuthToken: "short",
	}
	for text, want := range map[string]string{
		"connect to " + s.Database:                        "connect to postgres://[secret]@db.example.com:5432/parley?sslmode=disable",
		vendor.BaseURL + " with gpt":                      "https://[secret]@ai.example.com/v1?key=[secret]&api-version=2 with gpt",
		`Post "https://team:pa%40ss@ai.example.com/v1/x"`: `Post "https://[secret]@ai.example.com/v1/x"`,
		"the key sk-0123456789 is refused":                "the key [secret] is refused",
		"GET /?k=sixteen-characters":                      "GET /?k=[secret]",
		s.TwilioBaseURL + " says no":                      "https://[secret]@twilio.example.com says no",
		// a word stays even if it is the password elsewhere
		"parley: the parley database": "parley: the parley database",
		"/etc/tls/private.key":        "/etc/tls/private.key",
		"/etc/tls/sip.key":            "/etc/tls/sip.key",
		"open /etc/tls/stir.key":      "open /etc/tls/stir.key",
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
	with := &Settings{entered: &entered{}}
	w := with.redact(&b)
	with.entered.hide(0, "key-entered+later")
	fmt.Fprint(w, "key-entered+later, key-entered%2Blater")
	if got := b.String(); got != "[secret], [secret]" {
		t.Errorf("what was entered is written as %s", got)
	}
	b.Reset()
	for _, secret := range []string{"s3cr/et+", "AKIAEXAMPLE:s3cr"} {
		fmt.Fprint(s.redact(&b), s.Blob)
		if strings.Contains(b.String(), secret) {
			t.Errorf("%s is written", b.String())
		}
	}
}

// Neither the doctor nor the log of a failing vendor shows the password in the vendor's address.
func TestRedactOfAVendor(t *testing.T) {
	srv := aitest.NewServer(t)
	vendor := &openai.Settings{BaseURL: strings.Replace(srv.URL, "://", "://proxy:hunter2secret@", 1),
		ChatModel: []string{aitest.ModelName}, EmbeddingModel: "none"}
	s := &Settings{Declared: kong.Plugins{vendor}}
	var b bytes.Buffer
	out := s.redact(&b)
	for _, f := range openai.Declare(vendor).Check(t.Context()) {
		fmt.Fprintln(out, f)
	}
	vendor.BaseURL = "http://proxy:hunter2secret@127.0.0.1:1/v1?token=querysecret"
	out = s.redact(&b)
	for _, f := range openai.Declare(vendor).Check(t.Context()) {
		fmt.Fprintln(out, f)
	}
	_, err := http.Get(vendor.BaseURL)
	slog.New(slog.NewTextHandler(out, nil)).Error("ask the model", "error",
		errors.Join(err, errors.New(vendor.BaseURL)))
	if text := b.String(); strings.Contains(text, "hunter2") || strings.Contains(text, "querysecret") ||
		!strings.Contains(text, "127.0.0.1") {
		t.Errorf("written:\n%s", text)
	}
}

// An account's secrets are hidden as far as they look like keys: it can neither choose what the log lacks nor push others' secrets
// out of what is looked for.
func TestRedactOfAccounts(t *testing.T) {
	var b bytes.Buffer
	s := &Settings{entered: &entered{}}
	w := s.redact(&b)
	written := func(text string) string {
		b.Reset()
		fmt.Fprint(w, text)
		return b.String()
	}
	key := func(n int) string { return fmt.Sprintf("sk-%020d+", n) }
	s.entered.hide(0, "server01")
	s.entered.hide(7, key(7))
	for _, text := range []string{"level=ERROR", "level=ERROR-level=ERROR-1", "2001:db8:85a3:8d3:1319:8a2e:370:7348",
		"[2001:db8:85a3:8d3::7348]:5060", "https://example.com/20", "somebody20@example.com",
		`"internal/campaign/1"`, "a-line-of-words-in-the-log"} {
		if s.entered.hide(8, text); written(text) != text {
			t.Errorf("an account has %q hidden", text)
		}
	}
	for n := range maxOwn + 1 {
		s.entered.hide(8, key(100+n))
	}
	if got := written(key(7) + " " + key(100) + " " + key(101) + " " + key(100+maxOwn) + " server01"); got !=
		"[secret] "+key(100)+" [secret] [secret] [secret]" {
		t.Errorf("after one account's many: %s", got)
	}
	padded := "c2VjcmV0LXNlY3JldC0x=="
	if s.entered.hide(9, padded); written(padded) != "[secret]" {
		t.Error("a key that ends in signs of equality is shown")
	}
	s.entered.list = nil
	s.entered.hide(0, "server01")
	for n := range maxEntered {
		s.entered.list = append(s.entered.list, ownSecret{int64(n + 1), key(n)})
	}
	s.entered.hide(5000, key(5000))
	if got := written(key(0) + " " + key(1) + " " + key(5000) + " server01"); got != key(0)+" [secret] [secret] [secret]" {
		t.Errorf("after those of many accounts: %s", got)
	}
}
