// Command parley is the whole product: `parley serve` runs it, the other commands are the operator's. All of them
// work on the same data directory or database, also while a server runs on it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // assistants live in time zones that a bare machine may not know

	"github.com/alecthomas/kong"

	"parley/internal/document"
	"parley/internal/provider"
	"parley/internal/store"
	"parley/internal/telemetry"
)

// commands is the command line; every flag is a setting PARLEY_… of the same name too.
type commands struct {
	Settings
	Version kong.VersionFlag `env:"-" help:"Print the version, commit and date of this build."`

	Serve     serveCmd    `cmd:"" help:"Run the server."`
	User      userCmd     `cmd:"" help:"Accounts: create, list, disable, password, plan, operator."`
	Key       keyCmd      `cmd:"" help:"API keys: create, revoke."`
	Credit    creditCmd   `cmd:"" help:"Credit an account (or debit it, with a negative amount)."`
	WhatsApp  whatsAppCmd `cmd:"" name:"whatsapp" help:"WhatsApp senders: assign."`
	Trunk     trunkCmd    `cmd:"" help:"SIP trunks: check."`
	Doctor    doctorCmd   `cmd:"" help:"Check what is configured, reachable and missing, and say how to fix it."`
	Ready     readyCmd    `cmd:"" help:"Ask the server of these settings, on this machine, whether it is ready."`
	Migrate   migrateCmd  `cmd:"" help:"Bring the database's schema up to date."`
	Backup    backupCmd   `cmd:"" help:"Write a consistent copy of the embedded database to a file."`
	Restore   restoreCmd  `cmd:"" help:"Put a copy of the embedded database in its place, while no server runs."`
	VersionOf versionCmd  `cmd:"" name:"version" help:"Print the version, commit and date of this build."`
	Test      testCmd     `cmd:"" help:"Test assistants with simulated callers: parley test PATH…"`
	Pull      pullCmd     `cmd:"" help:"Write an account's assistants, tools, knowledge and settings to files."`
	Diff      diffCmd     `cmd:"" help:"Show what differs between files and an account."`
	Push      pushCmd     `cmd:"" help:"Make an account like the files."`
	Import    importCmd   `cmd:"" help:"Make files of another product's export: parley import --from vapi FILE DIR"`
	MCP       mcpCmd      `cmd:"" name:"mcp" help:"Let a client of MCP on standard input and output use a server: parley mcp --server URL"`
	Prices    pricesCmd   `cmd:"" help:"Print the default prices and plans file; edit a copy and set PARLEY_PRICES to its path."`

	Env        envCmd        `cmd:"" help:"Print every setting with its help, as a file of environment variables."`
	Man        manCmd        `cmd:"" help:"Print the manual page: parley man | man -l -"`
	Completion completionCmd `cmd:"" help:"Print a script that completes commands and flags: bash, zsh or fish."`
}

// terminal is where a command writes for people and programs, and the context that ends with a signal.
type terminal struct {
	context.Context
	In    io.Reader
	Out   io.Writer
	Notes io.Writer // for people alone
	// Kill is closed by a second signal: stop at once.
	Kill <-chan struct{}
}

// exitStatus is the error of a command that has said what there is to say.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func main() {
	// this program again, with limits, for a stranger's file
	if len(os.Args) > 1 && os.Args[1] == document.ChildCommand {
		os.Exit(document.Child(os.Args[2:], os.Stdin, os.Stdout))
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// noRenamed refuses settings under their former names, which would be ignored without a word.
func noRenamed() error {
	for was, now := range map[string]string{"PARLEY_ENDPOINTS": "PARLEY_USER_ENDPOINTS (off, public or private)",
		"PARLEY_TURN_URLS": "PARLEY_TURN"} {
		if os.Getenv(was) != "" {
			return fmt.Errorf("the setting %s is called %s now", was, now)
		}
	}
	return nil
}

func run(args []string, stdout, stderr io.Writer) int {
	c := commands{Settings: settingsOf(provider.All(), allChannels())}
	parser, err := kong.New(&c, kong.Name("parley"), kong.DefaultEnvars("PARLEY"), kong.UsageOnError(),
		kong.Writers(stdout, stderr),
		kong.Description("Voice and chat assistants on your own server.\n\nEvery flag is also an environment variable: "+
			"--public-url is PARLEY_PUBLIC_URL. A secret can be read from a file: set PARLEY_OPENAI_API_KEY_FILE to its path."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.Vars{"version": built()})
	if err != nil {
		fmt.Fprintln(stderr, "parley:", err)
		return 2
	}
	parsed, err := parser.Parse(args)
	if err == nil {
		err = noRenamed()
	}
	if err == nil {
		err = readSecrets(parsed.Flags())
	}
	if err != nil {
		fmt.Fprintln(stderr, "parley:", err)
		return 2
	}
	stdout, stderr = c.Settings.redact(stdout), c.Settings.redact(stderr)
	slog.SetDefault(slog.New(telemetry.Logs(store.Calm(c.Settings.logHandler(stderr)))))
	ctx, kill, stop := signals()
	defer stop()
	if parsed.Command() != "serve" {
		ctx = store.By(ctx, store.Operator)
	}
	if err := parsed.Run(&c.Settings, &terminal{ctx, os.Stdin, stdout, stderr, kill}); err != nil {
		if code, ok := errors.AsType[exitStatus](err); ok { // it has said what there is to say
			return int(code)
		}
		if c.Settings.LogFormat == "json" { // what reads the log reads nothing else
			slog.Error("parley failed", "error", err)
		} else {
			fmt.Fprintln(stderr, "parley:", err)
		}
		return 1
	}
	return 0
}

// logHandler writes the log.
func (s *Settings) logHandler(w io.Writer) slog.Handler {
	o := &slog.HandlerOptions{Level: s.LogLevel}
	if s.LogFormat == "json" {
		return slog.NewJSONHandler(w, o)
	}
	return slog.NewTextHandler(w, o)
}

// signals gives a context that the first SIGINT or SIGTERM ends, and a channel that the second closes.
func signals() (context.Context, <-chan struct{}, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	kill, ch, done := make(chan struct{}), make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			if _, ok := <-ch; !ok {
				return
			}
			switch n {
			case 0:
				cancel()
			case 1:
				close(kill)
			}
		}
	}()
	return ctx, kill, func() {
		signal.Stop(ch)
		close(ch)
		<-done
		cancel()
	}
}
