package main

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// printed runs a command and returns what it printed.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var out, wrong strings.Builder
	if code := run(args, &out, &wrong); code != 0 {
		t.Fatalf("parley %s ended with %d: %s", strings.Join(args, " "), code, wrong.String())
	}
	return out.String()
}

// The file of settings has each setting once, as a comment, with its default, and its help above it.
func TestEnv(t *testing.T) {
	lines := strings.Split(printed(t, "env"), "\n")
	setting := regexp.MustCompile(`^#(PARLEY_[A-Z_]+)=(.*)$`)
	seen := map[string]string{}
	for i, line := range lines {
		if m := setting.FindStringSubmatch(line); m != nil {
			if _, twice := seen[m[1]]; twice || !strings.HasPrefix(lines[i-1], "# ") {
				t.Errorf("%s: twice %v, above it %q", m[1], twice, lines[i-1])
			}
			seen[m[1]] = m[2]
		} else if line != "" && !strings.HasPrefix(line, "# ") || len(line) > 120 && strings.Contains(line[2:], " ") {
			t.Errorf("line %d: %q", i+1, line)
		}
	}
	if len(seen) < 100 || seen["PARLEY_LISTEN"] != "127.0.0.1:8080" || seen["PARLEY_DRAIN"] != "1h" || seen["PARLEY_OPENAI_API_KEY"] != "" {
		t.Errorf("%d settings: %v", len(seen), seen)
	}
	if _, there := seen["PARLEY_OPENAI_API_KEY"]; !there {
		t.Error("the settings of vendors are missing")
	}
}

// A real bash completes commands, the commands below them, and flags.
func TestCompletion(t *testing.T) {
	script := printed(t, "completion", "bash")
	for line, want := range map[string][]string{
		"parley ser":                  {"serve"},
		"parley user cre":             {"create"},
		"parley --data /x user pass":  {"password"},
		"parley --public":             {"--public-url", "--public-daily-spend"},
		"parley user create --em":     {"--email"},
		"parley user list --em":       nil,
		"parley trunk ":               {"check"},
		"parley test ":                nil, // files
		"parley completion ser":       nil,
		"parley whatsapp assign --se": {"--sender", "--secret-key", "--session-for"},
	} {
		words := strings.Split(line, " ")
		cmd := exec.Command("bash", "-c", script+`
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_parley
printf '%s\n' "${COMPREPLY[@]}"`, "bash")
		cmd.Args = append(cmd.Args, words...)
		out, err := cmd.CombinedOutput()
		got := strings.Fields(string(out))
		slices.Sort(got)
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q %v, want %q", line, got, err, want)
		}
	}
	if zsh := printed(t, "completion", "zsh"); !strings.HasPrefix(zsh, "#compdef parley\n") || !strings.HasSuffix(zsh, script) {
		t.Errorf("zsh: %q", zsh[:100])
	}
	fish := printed(t, "completion", "fish")
	for _, want := range []string{"complete -c parley -f -n '__fish_use_subcommand' -a serve -d 'Run the server.'\n",
		"complete -c parley -f -n '__fish_seen_subcommand_from user; and not __fish_seen_subcommand_from create list",
		"complete -c parley -l public-url -d 'Public base URL"} {
		if !strings.Contains(fish, want) {
			t.Errorf("fish has no line %q", want)
		}
	}
}

// The manual page has every command and every setting, and only requests that man knows.
func TestMan(t *testing.T) {
	page := printed(t, "man")
	request := regexp.MustCompile(`(?m)^[.'](\S*)`)
	for _, m := range request.FindAllStringSubmatch(page, -1) {
		if !slices.Contains([]string{"TH", "SH", "TP", "B", "I", "br", "ad", "nh"}, m[1]) {
			t.Errorf("a request .%s", m[1])
		}
	}
	for _, want := range []string{".B parley serve\n", ".B parley user two\\-factor\n", ".B PARLEY_LISTEN\n", "The default is 127.0.0.1:8080.",
		".B PARLEY_ANTHROPIC_API_KEY\n"} {
		if strings.Count(page, want) != 1 {
			t.Errorf("%q is there %d times", want, strings.Count(page, want))
		}
	}
}
