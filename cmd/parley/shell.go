package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// envCmd prints the settings as a file of environment variables.
type envCmd struct{}

// manCmd prints the manual page.
type manCmd struct{}

// completionCmd prints a script that completes commands and flags in a shell.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints each setting as a comment, below its help. A setting without a default is empty.
func (envCmd) Run(k *kong.Kong, t *terminal) error {
	var b strings.Builder
	b.WriteString(`# Settings of Parley. Each line with # shows the default: remove the # to set something else, and restart Parley.
# A secret can stand in a file of its own: set PARLEY_OPENAI_API_KEY_FILE to the path of the file.
`)
	for _, f := range settingFlags(k) {
		fmt.Fprintf(&b, "\n%s#%s=%s\n", wrapped(f.Help, "# ", 120), f.Envs[0], f.Default)
	}
	_, err := io.WriteString(t.Out, b.String())
	return err
}

// settingFlags returns the flags that are settings, in the order in which they are declared.
func settingFlags(k *kong.Kong) (list []*kong.Flag) {
	for _, f := range k.Model.Flags {
		if len(f.Envs) == 1 && f.Envs[0] != "-" && f.Name != "help" && f.Name != "version" {
			list = append(list, f)
		}
	}
	return list
}

// wrapped breaks a text into lines of at most width characters with a prefix.
func wrapped(text, prefix string, width int) string {
	var b strings.Builder
	line := prefix
	for word := range strings.FieldsSeq(text) {
		if len(line)+len(word) > width && line != prefix {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = prefix
		}
		line += word + " "
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
	return b.String()
}

// command is one that can be typed: its words after "parley", its help, the commands below it and its own flags.
type command struct {
	path, help string
	below      []string
	flags      []*kong.Flag
}

// commandsOf returns the commands of a node and below it, itself first.
func commandsOf(n *kong.Node, path string) []command {
	c := command{path: path, help: n.Help}
	if path != "" {
		c.flags = n.Flags
	}
	var all []command
	for _, child := range n.Children {
		if child.Hidden {
			continue
		}
		c.below = append(c.below, child.Name)
		all = append(all, commandsOf(child, strings.TrimSpace(path+" "+child.Name))...)
	}
	return append([]command{c}, all...)
}

// roff escapes a text for a manual page.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}

// Run prints the page in roff (man 7).
func (manCmd) Run(k *kong.Kong, t *terminal) error {
	var b strings.Builder
	fmt.Fprintf(&b, `.TH PARLEY 1 "" "Parley %s"
.ad l
.nh
.SH NAME
parley \- voice and chat assistants on your own server
.SH SYNOPSIS
.B parley
.I command
[\fIflags\fR]
.SH DESCRIPTION
Parley serves an HTTP API and a web console. Assistants answer and place telephone calls, talk in the browser, and chat.
\fBparley serve\fR runs the server; the other commands are the operator's. They work on the same data while a server runs on it.
.SH COMMANDS
`, roff(release(version, nil)))
	for _, c := range commandsOf(k.Model.Node, "")[1:] {
		if len(c.below) > 0 {
			continue
		}
		fmt.Fprintf(&b, ".TP\n.B parley %s\n%s\n", roff(c.path), roff(c.help))
		for _, f := range c.flags {
			fmt.Fprintf(&b, ".br\n\\fB\\-\\-%s\\fR: %s\n", roff(f.Name), roff(f.Help))
		}
	}
	b.WriteString(".SH SETTINGS\nEach is an environment variable, and a flag of all commands: PARLEY_PUBLIC_URL is \\-\\-public\\-url.\n" +
		"A secret can stand in a file: PARLEY_OPENAI_API_KEY_FILE names it.\n")
	for _, f := range settingFlags(k) {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", f.Envs[0], roff(f.Help))
		if f.Default != "" {
			fmt.Fprintf(&b, "The default is %s.\n", roff(f.Default))
		}
	}
	b.WriteString(".SH FILES\n.TP\n.I /etc/parley/parley.env\nThe settings of the installed service.\n" +
		".TP\n.I /var/lib/parley\nIts database, uploads, recordings and generated keys.\n")
	_, err := io.WriteString(t.Out, b.String())
	return err
}

// Run prints the script.
func (c completionCmd) Run(k *kong.Kong, t *terminal) error {
	all := commandsOf(k.Model.Node, "")
	settings := []*kong.Flag{}
	for _, f := range k.Model.Flags {
		if !f.Hidden {
			settings = append(settings, f)
		}
	}
	script := bashCompletion(all, settings)
	switch c.Shell {
	case "zsh":
		script = "#compdef parley\nautoload -U +X compinit bashcompinit && compinit && bashcompinit\n" + script
	case "fish":
		script = fishCompletion(all, settings)
	}
	_, err := io.WriteString(t.Out, script)
	return err
}

// bashCompletion follows the commands that have been typed, and offers the commands below them, or flags after a dash.
func bashCompletion(all []command, settings []*kong.Flag) string {
	var known, below, flags strings.Builder
	for _, c := range all {
		if c.path != "" {
			fmt.Fprintf(&known, "%q|", " "+c.path)
		}
		if len(c.below) > 0 {
			fmt.Fprintf(&below, "\t%q) words=%q ;;\n", prefixed(c.path), strings.Join(c.below, " "))
		}
		if own := flagWords(c.flags); own != "" {
			fmt.Fprintf(&flags, "\t\t%q) words+=%q ;;\n", prefixed(c.path), " "+own)
		}
	}
	return fmt.Sprintf(`_parley() {
	local cur=${COMP_WORDS[COMP_CWORD]} path= words= w
	for w in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		case "$path $w" in
		%s) path+=" $w" ;;
		esac
	done
	case $path in
%s	esac
	case $cur in
	-*)
		words=%q
		case $path in
%s		esac
		;;
	esac
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _parley parley
`, strings.TrimSuffix(known.String(), "|"), below.String(), flagWords(settings), flags.String())
}

// prefixed is a command's words with a blank before each, "" for none.
func prefixed(path string) string {
	if path == "" {
		return ""
	}
	return " " + path
}

func flagWords(flags []*kong.Flag) string {
	words := make([]string, len(flags))
	for i, f := range flags {
		words[i] = "--" + f.Name
	}
	return strings.Join(words, " ")
}

// fishCompletion is a line for each command and flag.
func fishCompletion(all []command, settings []*kong.Flag) string {
	var b strings.Builder
	quote := func(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'" }
	help := map[string]string{}
	for _, c := range all {
		help[c.path] = c.help
	}
	for _, c := range all {
		when := "__fish_use_subcommand"
		if c.path != "" {
			when = "__fish_seen_subcommand_from " + c.path[strings.LastIndexByte(c.path, ' ')+1:]
			if len(c.below) > 0 {
				when += "; and not __fish_seen_subcommand_from " + strings.Join(c.below, " ")
			}
		}
		for _, name := range c.below {
			fmt.Fprintf(&b, "complete -c parley -f -n %s -a %s -d %s\n", quote(when), name, quote(help[strings.TrimSpace(c.path+" "+name)]))
		}
		for _, f := range c.flags {
			fmt.Fprintf(&b, "complete -c parley -n %s -l %s -d %s\n", quote(when), f.Name, quote(f.Help))
		}
	}
	for _, f := range settings {
		fmt.Fprintf(&b, "complete -c parley -l %s -d %s\n", f.Name, quote(f.Help))
	}
	return b.String()
}
