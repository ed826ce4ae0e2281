package main

import (
	"bufio"
	"bytes"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/provider"
	"parley/internal/provider/local"
	"parley/internal/rehearsal"
)

type testCmd struct {
	Paths    []string       `arg:"" optional:"" name:"path" help:"Files of test cases, or directories that contain them."`
	Server   string         `name:"server" env:"-" help:"Base URL of a running server on this machine. Without it, a server is started for the tests, in a temporary directory."`
	Key      string         `env:"-" help:"API key for --server, of the account that owns the assistants."`
	SIP      netip.AddrPort `name:"sip" env:"-" default:"127.0.0.1:5060" help:"SIP address of --server."`
	Parallel int            `env:"-" help:"Cases that run at once (four per core)."`
	Ears     string         `env:"-" enum:"real,told" default:"real" help:"How the server gets the callers' words, unless a case says so: real, by the assistant's recognizer, or told."`
	Vendors  bool           `env:"-" help:"Start the server with this environment's settings too, such as provider keys. Tests may then cost money and send data elsewhere."`
	Model    string         `env:"-" help:"Model that plays personas and judges, as VENDOR/MODEL, with the provider settings of this environment. What is said in such tests leaves this machine, unless the model runs on it."`
	Only     string         `env:"-" help:"Run only the case with this title."`
	Seed     uint64         `env:"-" help:"Seed for all cases, instead of their own."`
	Repeat   int            `env:"-" help:"Rounds of every case, instead of its own."`
	JSON     string         `name:"json" env:"-" help:"File for the results as JSON; - for standard output."`
	JUnit    string         `name:"junit" env:"-" help:"File for the results as JUnit XML."`
	Out      string         `env:"-" default:"parley-test" help:"Directory for the sound (WAV) and the picture (SVG) of calls that failed."`
	Watch    bool           `env:"-" help:"Run the cases again whenever a file changes, until interrupted."`
	Schema   bool           `env:"-" help:"Print the JSON Schema of cases, for editors, and do nothing else."`
	Log      string         `name:"log" env:"-" help:"File for the log of the server that is started."`
}

// The exit statuses of parley test.
const (
	testsFailed    exitStatus = 1
	testsNotDone   exitStatus = 2
	serverPatience            = 30 * time.Second
)

// Run performs cases and says how they went: 0 all passed, 1 some failed, 2 some could not be performed.
func (c *testCmd) Run(s *Settings, t *terminal) error {
	if c.Schema {
		_, err := t.Out.Write(rehearsal.Schema)
		return err
	}
	notDone := func(err error) error {
		fmt.Fprintln(os.Stderr, "parley test:", err)
		return testsNotDone
	}
	cases, err := c.cases()
	if err != nil {
		return notDone(err)
	}
	client := rehearsal.Client{URL: strings.TrimSuffix(c.Server, "/"), Key: c.Key,
		HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	phone, account := c.SIP, (func(context.Context) (string, error))(nil)
	asks := c.Watch || slices.ContainsFunc(cases, func(one rehearsal.Case) bool { return !one.Stranger() })
	switch {
	case !asks: // calls to SIP addresses alone
	case c.Server == "":
		own, err := c.start(t)
		if err != nil {
			return notDone(err)
		}
		defer own.stop()
		client.URL, client.Key, phone, account = own.url, own.key, own.sip, own.account
	case c.Key == "":
		return notDone(errors.New("--server needs --key, an API key of the assistants' owner"))
	}
	if c.Parallel <= 0 {
		c.Parallel = 4 * runtime.NumCPU()
	}
	var thinks ai.Model
	if c.Model != "" {
		set, model, err := s.thinker(c.Model)
		if err != nil {
			return notDone(err)
		}
		defer set.Close()
		thinks = model
	}
	run := &rehearsal.Runner{Server: &rehearsal.Server{Client: client, SIP: phone, Account: account}, Synthesize: new(callerVoices).say,
		Parallel: c.Parallel, Patient: true, Ears: rehearsal.Ears(c.Ears), Model: thinks, Done: progress(os.Stderr)}
	defer run.Close()
	if c.Watch {
		return c.watch(t, run)
	}
	results := run.Run(t, cases)
	if err := c.tell(t, results); err != nil {
		return notDone(err)
	}
	switch {
	case rehearsal.Broken(results):
		return testsNotDone
	case !rehearsal.Passed(results):
		return testsFailed
	}
	return nil
}

// thinker opens a model by its name, VENDOR/MODEL.
func (s *Settings) thinker(name string) (*provider.Set, ai.Model, error) {
	vendor, code, ok := strings.Cut(name, "/")
	if !ok {
		return nil, nil, fmt.Errorf("--model: %q is not a model such as openai/gpt-5-mini", name)
	}
	set, err := provider.Open(s.vendors)
	if err != nil {
		return nil, nil, err
	}
	model, err := set.Model(vendor, code)
	if err != nil {
		set.Close()
		return nil, nil, fmt.Errorf("--model: %w", err)
	}
	return set, model, nil
}

// tell writes the results, and keeps what shows the failures.
func (c *testCmd) tell(t *terminal, results []rehearsal.Result) error {
	var err error
	for i := range results {
		err = errors.Join(err, results[i].Keep(c.Out))
	}
	report := rehearsal.NewReport(results, c.again)
	if c.JSON == "-" {
		return errors.Join(err, report.JSON(t.Out))
	}
	rehearsal.Table(t.Out, results, c.again)
	return errors.Join(err, written(c.JSON, report.JSON), written(c.JUnit, report.JUnit))
}

// written writes a file, unless it has no name.
func written(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// progress keeps a line of a terminal up to date, and writes a line for each failure elsewhere.
func progress(w *os.File) func(r *rehearsal.Result, done, all int) {
	info, err := w.Stat()
	terminal, failed := err == nil && info.Mode()&os.ModeCharDevice != 0, 0
	return func(r *rehearsal.Result, done, all int) {
		if !r.Passed() {
			failed++
		}
		switch {
		case terminal && done == all:
			fmt.Fprint(w, "\r\x1b[K")
		case terminal:
			fmt.Fprintf(w, "\r\x1b[K%d of %d done, %d failed", done, all, failed)
		case !r.Passed():
			fmt.Fprintf(w, "%d of %d: %s did not pass\n", done, all, r.Title())
		}
	}
}

// lookAgain is how often files are looked at for changes.
const lookAgain = 500 * time.Millisecond

// watch performs the cases at once, and again when a file beside them has changed.
func (c *testCmd) watch(t *terminal, run *rehearsal.Runner) error {
	seen := ""
	for t.Err() == nil {
		if now := c.stamp(); now != seen {
			seen = now
			run.Server.Forget() // assistants may have changed
			cases, err := c.cases()
			if err == nil {
				err = c.tell(t, run.Run(t, cases))
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, "parley test:", err)
			}
			fmt.Fprintln(t.Out, "waiting for a change; end with Ctrl-C")
		}
		select {
		case <-time.After(lookAgain):
		case <-t.Done():
		}
	}
	return nil
}

// stamp changes when a YAML file of the paths, or beside them, does.
func (c *testCmd) stamp() string {
	var b strings.Builder
	for _, path := range c.Paths {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			path = filepath.Dir(path)
		}
		_ = filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil // it is looked at again
			}
			if info, err := e.Info(); err == nil && !e.IsDir() && (filepath.Ext(name) == ".yaml" || filepath.Ext(name) == ".yml") {
				fmt.Fprintln(&b, name, info.ModTime().UnixNano(), info.Size())
			}
			return nil
		})
	}
	return b.String()
}

// cases reads the cases that are to be performed.
func (c *testCmd) cases() ([]rehearsal.Case, error) {
	if len(c.Paths) == 0 {
		return nil, errors.New("name files of test cases, or directories that contain them")
	}
	all, err := rehearsal.Load(c.Paths)
	if err != nil {
		return nil, err
	}
	cases := all[:0]
	for _, one := range all {
		title := (&rehearsal.Result{Case: &rehearsal.Case{Name: one.Name, Values: one.Values}}).Title()
		if c.Only != "" && title != c.Only {
			continue
		}
		if c.Seed != 0 {
			one.Seed = c.Seed
		}
		if c.Repeat > 0 {
			one.Repeat = c.Repeat
		}
		cases = append(cases, one)
	}
	if len(cases) == 0 {
		return nil, fmt.Errorf("no case has the title %q", c.Only)
	}
	return cases, nil
}

// again is the command that performs one case again as it was.
func (c *testCmd) again(r *rehearsal.Result) string {
	one := rehearsal.Result{Case: &rehearsal.Case{Name: r.Case.Name, Values: r.Case.Values}}
	line := fmt.Sprintf("parley test %s --only %s --seed %d", quotedArg(r.Case.File), quotedArg(one.Title()), r.Seed())
	if c.Ears != "real" {
		line += " --ears " + c.Ears
	}
	if c.Model != "" {
		line += " --model " + c.Model
	}
	if c.Server != "" {
		line += " --server " + c.Server + " --key …"
	}
	return line
}

func quotedArg(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// callerVoices say what callers say with the local voices, each text once.
type callerVoices struct {
	mu   sync.Mutex
	said map[string][]int16
}

func (m *callerVoices) say(ctx context.Context, voice string, pace float64, rate audio.Rate, words string) ([]int16, error) {
	if voice == "" {
		voice = "slt"
	}
	key := fmt.Sprint(voice, pace, rate, words)
	m.mu.Lock()
	pcm := m.said[key]
	m.mu.Unlock()
	if pcm != nil {
		return pcm, nil
	}
	var speaker ai.Plain = local.ESpeak{}
	switch voice {
	case "rms", "slt", "awb", "kal16", "kal":
		speaker = local.Flite{}
	}
	err := ai.Say(ctx, ai.Streamed(speaker), ai.Speech{Voice: voice, Language: "en", Rate: rate, Speed: pace}, words,
		func(part []int16) error { pcm = append(pcm, part...); return nil })
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.said == nil {
		m.said = map[string][]int16{}
	}
	m.said[key] = pcm
	return pcm, nil
}

// ownServer is the server that is started for the tests.
type ownServer struct {
	url, key string
	sip      netip.AddrPort
	dir      string
	cmd      *exec.Cmd
	reading  sync.WaitGroup
	log      io.Closer
	accounts int
}

var introduction = regexp.MustCompile(`(?s)Console +(\S+).*API key +(\S+).*Softphone +sip:\d+@(\S+)`)

// start starts this program as a server with an empty database in a folder of its own. It knows no settings of this
// environment, so that nothing leaves the machine, unless that is asked for.
func (c *testCmd) start(ctx context.Context) (o *ownServer, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	own := &ownServer{}
	o = own
	if o.dir, err = os.MkdirTemp("", "parley-test-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			own.stop()
		}
	}()
	prices := filepath.Join(o.dir, "prices.yaml")
	if err := os.WriteFile(prices,
		[]byte("plans:\n  default: {parallel_calls: 1000, tools: 10000, assistants: 10000, test_conversations: 100000, test_messages: 1000000, "+
			"test_calls: 1000000, test_minutes: 10000000, requests_together: 100000, streams: 100000}\n"), 0o600); err != nil {
		return nil, err
	}
	o.cmd = exec.Command(program, "serve")
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PARLEY_") || c.Vendors && !ownSetting(v) {
			o.cmd.Env = append(o.cmd.Env, v)
		}
	}
	o.cmd.Env = append(o.cmd.Env, "PARLEY_DATA="+o.dir, "PARLEY_LISTEN=127.0.0.1:0", "PARLEY_PRICES="+prices,
		"PARLEY_SIP_LISTEN=127.0.0.1:0", "PARLEY_RTP_PORTS=20000-29999",
		"PARLEY_WEBRTC_LISTEN=off", "PARLEY_RATE_API=off", "PARLEY_RATE_PUBLIC=off",
		"PARLEY_CALL_PREFIXES=+", "PARLEY_TRUNKS=all", "PARLEY_TRUNK_PRIVATE=on", "PARLEY_TRUNK_CALLER_ID=any")
	o.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a signal from the keyboard is ours, and we stop it
	log := &bytes.Buffer{}
	o.cmd.Stderr = log
	if c.Log != "" {
		f, err := os.Create(c.Log)
		if err != nil {
			return nil, err
		}
		o.cmd.Stderr, o.log = f, f
	}
	out, err := o.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := o.cmd.Start(); err != nil {
		o.cmd = nil
		return nil, err
	}
	said := make(chan []string, 1)
	o.reading.Go(func() {
		defer close(said)
		text, lines := "", bufio.NewScanner(out)
		for lines.Scan() {
			text += lines.Text() + "\n"
			if m := introduction.FindStringSubmatch(text); m != nil {
				select {
				case said <- m:
				default:
				}
			}
		}
	})
	select {
	case m := <-said:
		if m == nil {
			err = o.cmd.Wait()
			o.cmd = nil
			told := log.String()
			if c.Log != "" {
				raw, _ := os.ReadFile(c.Log)
				told = string(raw)
			}
			return nil, fmt.Errorf("the server for the tests did not start: %v\n%s", err, told)
		}
		o.url, o.key = m[1], m[2]
		if o.sip, err = netip.ParseAddrPort(m[3]); err != nil {
			return nil, fmt.Errorf("the server for the tests says where its telephone is: %w", err)
		}
		return o, o.ready(ctx)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(serverPatience):
		return nil, errors.New("the server for the tests did not start in time")
	}
}

// account makes an account that has money, and returns an API key of it.
func (o *ownServer) account(ctx context.Context) (string, error) {
	o.accounts++
	email := fmt.Sprintf("owner%d@test.invalid", o.accounts)
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, o.cmd.Path, args...)
		cmd.Env = o.cmd.Env
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("make an account: %w: %s", err, out)
		}
		return string(out), err
	}
	if _, err := run("user", "create", "--email", email, "--password", crand.Text(), "--balance", "1000"); err != nil {
		return "", err
	}
	out, err := run("key", "create", "--user", email, "--name", "test")
	if key := keyText.FindString(out); err == nil && key != "" {
		return key, nil
	}
	return "", errors.Join(err, errors.New("no key was made"))
}

var keyText = regexp.MustCompile(`\d+\|\S+`)

// ready waits until the server serves.
func (o *ownServer) ready(ctx context.Context) error {
	for deadline := time.Now().Add(serverPatience); ; {
		res, err := http.Get(o.url + "/readyz")
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return fmt.Errorf("the server for the tests is not ready: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// stop ends the server and removes its folder.
func (o *ownServer) stop() {
	if o.cmd != nil {
		o.cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(serverPatience, func() { o.cmd.Process.Kill() })
		o.reading.Wait()
		o.cmd.Wait()
		kill.Stop()
	}
	if o.log != nil {
		o.log.Close()
	}
	os.RemoveAll(o.dir)
}

// ownSetting says whether a setting is not for the server of tests: where it keeps things, where it listens, whom it
// calls.
func ownSetting(v string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(v, "PARLEY_"), "=")
	for _, own := range []string{"DATA", "DATABASE", "BLOB", "PRICES", "LISTEN", "PUBLIC_", "TLS_", "SIP_", "RTP_",
		"WEBRTC_", "SOFTPHONE", "CARRIER_", "TWILIO_", "WHATSAPP_", "SECRET_KEY", "TRUSTED_", "CONNECTIONS_", "LOG_", "RATE_",
		"CALL_PREFIXES", "TRUNK"} {
		if strings.HasPrefix(name, own) {
			return true
		}
	}
	return false
}
