package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"parley/internal/provider"
	"parley/internal/provider/openai"
)

// parse reads settings as the program does.
func parse(t *testing.T, args ...string) (*openai.Settings, *Settings, error) {
	t.Helper()
	vendor := &openai.Settings{}
	c := commands{Settings: settingsOf(provider.All(openai.Declare(vendor)), allChannels())}
	parser, err := kong.New(&c, kong.Name("parley"), kong.DefaultEnvars("PARLEY"), kong.Vars{"version": ""})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(append(args, "doctor")); err != nil {
		t.Fatal(err)
	}
	return vendor, &c.Settings, readSecrets(parser.Model.Flags)
}

func TestSecretFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("PARLEY_OPENAI_API_KEY_FILE", file("key", "sk- with space \n"))
	t.Setenv("PARLEY_OPENAI_TTS_API_KEY_FILE", file("windows", "sk-2\n\r\n"))
	t.Setenv("PARLEY_SECRET_KEY_FILE", file("secret", "sixteen-characters"))
	t.Setenv("PARLEY_DATABASE_FILE", file("database", "postgres://u:p@h/d\n"))
	t.Setenv("PARLEY_TLS_KEY_FILE", file("none", "not read"))
	vendor, s, err := parse(t)
	if err != nil || vendor.APIKey != "sk- with space " || vendor.TTSAPIKey != "sk-2\n" ||
		s.SecretKey != "sixteen-characters" || s.Database != "postgres://u:p@h/d" || s.TLSKey != "" {
		t.Errorf("got %+v, %q, %q, %v", vendor, s.SecretKey, s.Database, err)
	}
	for name, c := range map[string]struct {
		env  [2]string
		args []string
		want string
	}{
		"not there": {[2]string{"PARLEY_OPENAI_API_KEY_FILE", filepath.Join(dir, "nowhere")}, nil,
			"PARLEY_OPENAI_API_KEY_FILE: open"},
		"empty":     {[2]string{"PARLEY_SECRET_KEY_FILE", file("empty", "\n")}, nil, "is empty"},
		"both":      {[2]string{"PARLEY_OPENAI_API_KEY", "k3y"}, nil, "PARLEY_OPENAI_API_KEY_FILE are both set"},
		"by a flag": {[2]string{}, []string{"--secret-key=another-secret-key"}, "PARLEY_SECRET_KEY_FILE are both set"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.env[0] != "" {
				t.Setenv(c.env[0], c.env[1])
			}
			if _, _, err := parse(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) ||
				strings.Contains(err.Error(), "k3y") {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// The secrets that are never logged are the same as those that may be read from a file.
func TestSecretsAreAlike(t *testing.T) {
	c := commands{Settings: settingsOf(provider.All(), allChannels())}
	parser, err := kong.New(&c, kong.Name("parley"), kong.DefaultEnvars("PARLEY"), kong.Vars{"version": ""})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range parser.Model.Flags {
		if secretFlag.MatchString(f.Name) && f.Name != "tls-key" {
			names = append(names, f.Name)
		}
	}
	for _, name := range []string{"openai-api-key", "openai-stt-api-key", "anthropic-api-key", "gemini-api-key", "xai-api-key",
		"whatsapp-token", "whatsapp-app-secret", "carrier-sip-password", "twilio-auth-token", "secret-key",
		"database", "blob"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s can't stand in a file", name)
		}
	}
	if slices.Contains(names, "openai-base-url") {
		t.Error("a base URL is taken for a secret")
	}
	var b bytes.Buffer
	s := &Settings{Declared: kong.Plugins{&openai.Settings{STTAPIKey: "k3y-0123456789"}}}
	if _, err := s.redact(&b).Write([]byte("k3y-0123456789")); err != nil || strings.Contains(b.String(), "k3y") {
		t.Errorf("written %s, %v", b.String(), err)
	}
}
