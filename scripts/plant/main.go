// Command plant puts faults into a copy of the tree, one at a time, and says whether the tests catch them. Run it in the
// root of the repository:
//
//	go run ./scripts/plant               every fault of scripts/faults
//	go run ./scripts/plant NAME…         these; "call" or "call.txt" is every fault of that file, "turn-*" all that match
//	go run ./scripts/plant -check        says which faults have lost their place in the code, and runs nothing
//	go run ./scripts/plant -apply NAME   in this tree, to look at one
//	go run ./scripts/plant -undo NAME    takes it back
//
// It prints a table, and "N passed, N failed", where passed means caught. It exits with 1 if a fault could not be tried,
// or more than one in twenty survived. The tests are run without any fault first, once for each set: a test that fails
// anyway catches nothing.
//
// A fault in scripts/faults/ROOM.txt:
//
//	== name
//	A sentence that says what is wrong.
//	test: ./internal/call -run TestHold
//	in: internal/call/hold.go, Center.hold
//	-	the lines that stand there, once in the file or, if one is named, in the function
//	+	the lines to put in their place, at least one: it must be found again
//
// "in:" may come several times.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

const dir = "scripts/faults"

func main() {
	log.SetFlags(0)
	check := flag.Bool("check", false, "say which faults have lost their place in the code")
	apply := flag.String("apply", "", "put this fault into the tree")
	undo := flag.String("undo", "", "take this fault back")
	flag.Parse()
	faults, err := readFaults(dir)
	if err != nil {
		log.Fatal(err)
	}
	switch {
	case *check:
		err = checkAll(".", faults)
	case *apply != "":
		err = change(faults, *apply, false)
	case *undo != "":
		err = change(faults, *undo, true)
	default:
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = run(ctx, faults, flag.Args())
	}
	if err != nil {
		log.Fatal(err)
	}
}

// change puts one fault into this tree, or takes it back.
func change(faults []fault, name string, undo bool) error {
	for _, f := range faults {
		if f.name == name {
			return f.plant(".", undo)
		}
	}
	return fmt.Errorf("there is no fault %s", name)
}

// checkAll reports the faults that have no place in the tree at root, or several.
func checkAll(root string, faults []fault) error {
	lost := 0
	for _, f := range faults {
		if err := f.check(root); err != nil {
			log.Printf("%s: %v", f.name, err)
			lost++
		}
	}
	if lost > 0 {
		return fmt.Errorf("%d of %d faults have lost their place", lost, len(faults))
	}
	return nil
}

// chosen returns the faults that the arguments name; without arguments, all.
func chosen(faults []fault, args []string) ([]fault, error) {
	if len(args) == 0 {
		return faults, nil
	}
	var some []fault
	for _, arg := range args {
		before := len(some)
		if of, err := os.ReadFile(filepath.Join(dir, strings.TrimSuffix(arg, ".txt")+".txt")); err == nil {
			room, err := parse(string(of))
			if err != nil {
				return nil, err
			}
			some = append(some, room...)
		}
		for _, f := range faults {
			if ok, _ := path.Match(arg, f.name); ok {
				some = append(some, f)
			}
		}
		if len(some) == before {
			return nil, fmt.Errorf("there is no fault %s", arg)
		}
	}
	return some, nil
}

// run plants faults in a copy of the tree and prints what the tests said.
func run(ctx context.Context, faults []fault, args []string) error {
	faults, err := chosen(faults, args)
	if err != nil {
		return err
	}
	// The copy keeps its place between faults, so that Go builds again only what a fault touched.
	tree, err := os.MkdirTemp("", "plant")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tree)
	copied := exec.CommandContext(ctx, "sh", "-c",
		`git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -pt "$1" 2>/dev/null; cd "$1" && git init -q .`, "sh", tree)
	if out, err := copied.CombinedOutput(); err != nil {
		return fmt.Errorf("copy the tree: %w: %s", err, out)
	}
	tests := &tests{ctx: ctx, tree: tree, sound: map[string]bool{}}
	caught, survived, broken := 0, 0, 0
	for _, f := range faults {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		verdict := tests.try(f)
		switch {
		case strings.HasPrefix(verdict, "caught"):
			caught++
		case verdict == "SURVIVED":
			survived++
		default:
			broken++
		}
		fmt.Printf("%-34s %-50s %s\n", f.name, verdict, f.what)
	}
	fmt.Printf("plant: %d passed, %d failed\n", caught, survived+broken)
	if broken > 0 || survived*20 > caught+survived {
		return fmt.Errorf("%d survived, %d could not be tried", survived, broken)
	}
	return nil
}

// tests runs the tests of faults in a copy of the tree.
type tests struct {
	ctx   context.Context
	tree  string
	sound map[string]bool // whether tests pass without a fault, by their arguments
}

var failed = regexp.MustCompile(`(?m)^ *--- FAIL: \S+|^panic: .*|^FAIL.*`)

// try plants a fault, runs its tests, and takes it back.
func (t *tests) try(f fault) string {
	key := strings.Join(f.tests, " ")
	sound, known := t.sound[key]
	if !known {
		_, err := t.test(f.tests)
		sound = err == nil
		t.sound[key] = sound
	}
	if !sound {
		return "the tests fail without it"
	}
	if err := f.plant(t.tree, false); err != nil {
		return err.Error()
	}
	out, err := t.test(f.tests)
	if undone := f.plant(t.tree, true); undone != nil {
		return undone.Error()
	}
	switch {
	case err == nil:
		return "SURVIVED"
	case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
		lines := strings.SplitN(out, "\n", 3)
		return "does not build: " + lines[min(1, len(lines)-1)]
	}
	return "caught: " + strings.TrimPrefix(strings.TrimLeft(failed.FindString(out), " "), "--- FAIL: ")
}

// test runs go test in the copy and returns what it printed. A missing tool fails a test instead of skipping it.
func (t *tests) test(args []string) (string, error) {
	cmd := exec.CommandContext(t.ctx, "go", append([]string{"test", "-count=1", "-failfast", "-timeout", "5m"}, args...)...)
	cmd.Dir, cmd.Env = t.tree, append(os.Environ(), "CI=true")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
