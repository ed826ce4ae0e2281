package main

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

// secretFlag are the settings that are secrets, and the addresses that have one in them.
var secretFlag = regexp.MustCompile(`(^|-)(key|token|secret|password)$|^(database|blob)$`)

// readSecrets fills in the secrets that stand in files: PARLEY_OPENAI_API_KEY_FILE names the one of
// PARLEY_OPENAI_API_KEY. One newline at the file's end is none of the secret.
func readSecrets(flags []*kong.Flag) error {
	for _, f := range flags {
		if !secretFlag.MatchString(f.Name) || f.Name == "tls-key" || f.Target.Kind() != reflect.String || len(f.Envs) == 0 || f.Envs[0] == "-" {
			continue // tls-key is the name of a file already
		}
		name := "PARLEY_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		path := os.Getenv(name + "_FILE")
		if path == "" {
			continue
		}
		if f.Target.String() != "" {
			return fmt.Errorf("%s and %s_FILE are both set: set only one", name, name)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("%s_FILE: %w", name, err)
		}
		text := strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r")
		if text == "" {
			return fmt.Errorf("%s_FILE: %s is empty", name, path)
		}
		f.Target.SetString(text)
	}
	return nil
}
