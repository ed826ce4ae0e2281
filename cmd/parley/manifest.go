package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/internal/manifest"
)

// accountFlags say whose account on which server a command is about.
type accountFlags struct {
	Server string `env:"PARLEY_SERVER" default:"http://127.0.0.1:8080" help:"Base URL of the server."`
	Key    string `env:"PARLEY_KEY" help:"API key of the account. It can be read from a file: set PARLEY_KEY_FILE to its path."`
}

type pullCmd struct {
	accountFlags
	Dir    string `arg:"" help:"Directory of the files."`
	Prune  bool   `env:"-" help:"Remove files of what the server does not have (any more)."`
	DryRun bool   `env:"-" help:"Say which files would change, and write nothing."`
}

type diffCmd struct {
	accountFlags
	Dir   string `arg:"" help:"Directory of the files."`
	Prune bool   `env:"-" help:"Include what push --prune would delete."`
}

type pushCmd struct {
	accountFlags
	Dir    string `arg:"" help:"Directory of the files."`
	Prune  bool   `env:"-" help:"Delete what the server has and the files don't."`
	DryRun bool   `env:"-" help:"Show the plan, and change nothing."`
	Yes    bool   `env:"-" help:"Don't ask before changing anything. Needed where nobody can be asked."`
}

// changes is the exit status of a command that found or made changes.
const changes exitStatus = 2

// open connects with the server.
func (a *accountFlags) open(t *terminal) (*manifest.Server, error) {
	if a.Key == "" {
		return nil, errors.New("--key is missing: an API key of the account, also as PARLEY_KEY; the console makes one under API keys")
	}
	client := &http.Client{Timeout: 5 * time.Minute} // the longest document takes less
	s, err := manifest.Open(t, &manifest.Client{URL: strings.TrimSuffix(a.Server, "/"), Key: a.Key, HTTP: client})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Server, err)
	}
	return s, nil
}

// Run writes the account's files: 0 where all are as they are, 2 where some change.
func (c *pullCmd) Run(t *terminal) error {
	s, err := c.open(t)
	if err != nil {
		return err
	}
	before, _ := manifest.Load(os.DirFS(c.Dir)) // what can't be read is written anew
	account, err := s.Read(t, before)
	if err != nil {
		return err
	}
	for _, w := range account.Warnings {
		fmt.Fprintln(t.Notes, "note:", w)
	}
	files := account.Files(before)
	there, err := manifest.Names(os.DirFS(c.Dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	changed := false
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(c.Dir, filepath.FromSlash(name))
		old, err := os.ReadFile(path)
		if err == nil && bytes.Equal(old, files[name]) {
			continue
		}
		op := "~"
		if err != nil {
			op = "+"
		}
		changed = true
		fmt.Fprintln(t.Out, op, name)
		if c.DryRun {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return err
		}
	}
	for _, name := range there {
		switch _, kept := files[name]; {
		case kept:
		case !c.Prune:
			fmt.Fprintf(t.Out, "  %s is not of the server: it stays; --prune removes it\n", name)
		default:
			changed = true
			fmt.Fprintln(t.Out, "-", name)
			if !c.DryRun {
				if err := os.Remove(filepath.Join(c.Dir, filepath.FromSlash(name))); err != nil {
					return err
				}
			}
		}
	}
	if changed {
		return changes
	}
	return nil
}

// planned reads the files and the account and says what differs.
func planned(t *terminal, a *accountFlags, dir string, prune bool) (*manifest.Server, *manifest.Plan, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, nil, fmt.Errorf("there is no directory %s: parley pull makes one", dir)
	}
	files, err := manifest.Load(os.DirFS(dir))
	if err != nil {
		return nil, nil, err
	}
	if len(files.Things) == 0 {
		return nil, nil, fmt.Errorf("%s has no files of an account: parley pull writes them", dir)
	}
	s, err := a.open(t)
	if err != nil {
		return nil, nil, err
	}
	now, err := s.Read(t, nil)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range now.Warnings {
		fmt.Fprintln(t.Notes, "note:", w)
	}
	plan, err := s.NewPlan(files, now, prune, os.LookupEnv)
	if err != nil {
		return nil, nil, err
	}
	return s, plan, plan.Write(t.Out)
}

// Run shows what push would do: 0 nothing, 2 something.
func (c *diffCmd) Run(t *terminal) error {
	_, plan, err := planned(t, &c.accountFlags, c.Dir, c.Prune)
	if err == nil && !plan.Empty() {
		err = changes
	}
	return err
}

// Run makes the account like the files: 0 where it is, 2 where something changed.
func (c *pushCmd) Run(t *terminal) error {
	s, plan, err := planned(t, &c.accountFlags, c.Dir, c.Prune)
	switch {
	case err != nil:
		return err
	case plan.Empty():
		return nil
	case c.DryRun:
		return changes
	case !c.Yes:
		if err := confirmed(t); err != nil {
			return err
		}
	}
	if err := s.Apply(t, plan, func(ch *manifest.Change) { fmt.Fprintln(t.Out, ch) }); err != nil {
		return fmt.Errorf("%w\nWhat was done until then stays: push again goes on from there", err)
	}
	return changes
}

// confirmed asks whether to go on.
func confirmed(t *terminal) error {
	nobody := errors.New("nobody can be asked here: add --yes to change the account, or --dry-run to only show the plan")
	in, ok := t.In.(*os.File)
	if !ok {
		return nobody
	}
	if info, err := in.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nobody
	}
	fmt.Fprint(t.Out, "Make these changes? Only yes is taken: ")
	line, err := bufio.NewReader(in).ReadString('\n')
	switch {
	case errors.Is(err, io.EOF) && line == "": // /dev/null
		return nobody
	case strings.TrimSpace(line) != "yes":
		return errors.New("nothing was changed")
	}
	return nil
}

type importCmd struct {
	From string `required:"" env:"-" enum:"bland,dograh,elevenlabs,retell,vapi" help:"Whose export it is: bland, dograh, elevenlabs, retell or vapi."`
	File string `arg:"" help:"The export (JSON); - for standard input."`
	Dir  string `arg:"" help:"Directory for the files. Files that are there stay."`
}

// Run makes files of another product's export, and says line by line what became of it.
func (c *importCmd) Run(t *terminal) error {
	var raw []byte
	var err error
	if c.File == "-" {
		raw, err = io.ReadAll(t.In)
	} else {
		raw, err = os.ReadFile(c.File)
	}
	if err != nil {
		return err
	}
	account, notes, err := manifest.Convert(c.From, raw)
	if err != nil {
		return err
	}
	files := account.Files(nil)
	var there []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, err := os.Stat(filepath.Join(c.Dir, filepath.FromSlash(name))); err == nil {
			there = append(there, name)
		}
	}
	if len(there) > 0 {
		return fmt.Errorf("%s has these files already: %s; choose another directory, or remove them", c.Dir, strings.Join(there, ", "))
	}
	for _, n := range notes {
		fmt.Fprintln(t.Out, n)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(c.Dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return err
		}
		fmt.Fprintln(t.Out, "+", name)
	}
	return nil
}
