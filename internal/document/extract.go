package document

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// maxText bounds the text of a document, in bytes. 20 MB of an older character set are up to 60 MB of UTF-8.
const maxText = 64 << 20

const tooLong = "The document holds more than 64 MB of text: split it and upload the parts."

// limits are what a child process may take.
type limits struct {
	memory int64         // bytes of address space, beyond what the program needs to start
	cpu    time.Duration // of processor time
	wall   time.Duration
}

var defaultLimits = limits{memory: 1 << 30, cpu: 60 * time.Second, wall: 3 * time.Minute}

// Extractor takes the text out of uploaded files and web pages, and cuts it into passages. It does so in child
// processes, which have no environment, can write no file, and are ended with their context, or when they take more
// memory or time than a document needs: a hostile one costs that and never the server. The zero Extractor is ready.
type Extractor struct {
	Program   []string // the command line that leads to [Child]; nil for this program with ChildCommand
	PDFToText string   // poppler's pdftotext; "" looks for it, "off" reads PDFs in pure Go
	limits    limits   // zero for the default ones
}

// Extract reads a document of a kind: pdf, docx or txt. An *os.File is handed to the child as it is, anything else
// through a temporary file. A fault of the document is a *[Failure]; other errors are this machine's.
func (x *Extractor) Extract(ctx context.Context, kind string, r io.Reader) (*Text, error) {
	f, ok := r.(*os.File)
	if !ok {
		var err error
		if f, err = spool(r); err != nil {
			return nil, fmt.Errorf("spool a document: %w", err)
		}
		defer os.Remove(f.Name())
		defer f.Close()
	}
	lim := x.bounds()
	ctx, cancel := context.WithTimeoutCause(ctx, lim.wall, errSlow)
	defer cancel()
	if kind == "pdf" && x.PDFToText != "off" {
		tool := x.PDFToText
		if tool == "" {
			tool = "pdftotext"
		}
		if tool, err := exec.LookPath(tool); err == nil {
			got, err := x.poppler(ctx, tool, f, lim)
			if !errors.Is(err, errBroken) && !errors.Is(err, errCrash) && !errors.Is(err, errFonts) {
				return got, err
			}
			// If poppler gives up, the other reader may manage, or name the fault better.
		}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("rewind a document: %w", err)
	}
	a, err := x.child(ctx, f, lim, kind)
	return a.Text, err
}

// Cut cuts a document into passages, as [Split] does.
func (x *Extractor) Cut(ctx context.Context, sections []Section) ([]Chunk, error) {
	a, err := x.ask(ctx, askCut, sections)
	return a.Chunks, err
}

// Here is Cut without a child: for texts that are nobody's.
func Here(_ context.Context, sections []Section) ([]Chunk, error) {
	return Split(sections, ChunkSize, ChunkOverlap), nil
}

// Page reads a web page. The words of its *[Failure] go on from the page's address.
func (x *Extractor) Page(ctx context.Context, p WebPage) (*Page, error) {
	a, err := x.ask(ctx, askPage, p)
	failure := (*Failure)(nil)
	switch {
	case errors.Is(err, errSlow):
		err = errSlowPage
	case errors.Is(err, errMemory):
		err = errMemoryPage
	case errors.As(err, &failure) && failure.Reason == errCrash.Error():
		err = errCrashPage
	}
	return a.Page, err
}

// ask has a child do what is no file's reading.
func (x *Extractor) ask(ctx context.Context, what string, with any) (answer, error) {
	var in bytes.Buffer
	if err := gob.NewEncoder(&in).Encode(with); err != nil {
		return answer{}, fmt.Errorf("ask a child: %w", err)
	}
	lim := x.bounds()
	ctx, cancel := context.WithTimeoutCause(ctx, lim.wall, errSlow)
	defer cancel()
	return x.child(ctx, &in, lim, what)
}

func (x *Extractor) bounds() limits {
	if x.limits == (limits{}) {
		return defaultLimits
	}
	return x.limits
}

func spool(r io.Reader) (*os.File, error) {
	f, err := os.CreateTemp("", "parley-document-*")
	if err != nil {
		return nil, err
	}
	if _, err = io.Copy(f, r); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, err
	}
	return f, nil
}

// poppler reads a PDF with pdftotext, and its title with pdfinfo beside it.
func (x *Extractor) poppler(ctx context.Context, tool string, f *os.File, lim limits) (*Text, error) {
	out, err := limited(ctx, f, lim, tool, "-enc", "UTF-8", "-eol", "unix", "-l", fmt.Sprint(maxPages+1),
		"/dev/stdin", "-")
	if err != nil {
		return nil, err
	}
	title := ""
	if info, err := exec.LookPath(filepath.Join(filepath.Dir(tool), "pdfinfo")); err == nil {
		// a title is worth no failure
		if out, err := limited(ctx, f, lim, info, "-enc", "UTF-8", "/dev/stdin"); err == nil {
			for line := range strings.Lines(string(out)) {
				if t, ok := strings.CutPrefix(line, "Title:"); ok {
					title = t
				}
			}
		}
	}
	a, err := x.ask(ctx, askPages, popplerText{title, out})
	return a.Text, err
}

// popplerText is what poppler says of a PDF.
type popplerText struct {
	Title string
	Out   []byte
}

func (p popplerText) read() (*Text, error) {
	pages := strings.Split(string(p.Out), "\f")
	pages = pages[:len(pages)-1] // each ends with one
	if len(pages) > maxPages {
		return nil, errPages
	}
	return pagesText(p.Title, pages, nil)
}

var (
	errSlow   = Fail("The file takes too long to read: it may be damaged. Save it anew, or split it and upload the parts.")
	errMemory = Fail("The file needs more memory to read than a document may take: it may be damaged. " +
		"Save it anew, or split it and upload the parts.")
	errCrash = Fail("The file could not be read: it may be damaged. Open it, save it anew, and upload that.")

	errSlowPage   = Fail("it takes too long to read")
	errMemoryPage = Fail("it needs more memory to read than a page may take")
	errCrashPage  = Fail("the page could not be read")
)

// self is this program, with the command of children; tests under the race detector have another.
var self = os.Executable

// child runs this program again, as a child with limits that is asked for something, and gives its answer.
func (x *Extractor) child(ctx context.Context, in io.Reader, lim limits, what string) (a answer, err error) {
	program := x.Program
	if program == nil {
		path, err := self()
		if err != nil {
			return a, fmt.Errorf("find this program: %w", err)
		}
		program = []string{path, ChildCommand}
	}
	command := append(program[:len(program):len(program)], fmt.Sprint(lim.memory), lim.seconds(), what)
	if nice, err := exec.LookPath("nice"); err == nil { // calls come first
		command = append([]string{nice, "-n", "10"}, command...)
	}
	out, err := output(ctx, in, exec.CommandContext(ctx, command[0], command[1:]...))
	if err != nil {
		return a, err
	}
	if err := gob.NewDecoder(bytes.NewReader(out)).Decode(&a); err != nil {
		return a, fmt.Errorf("read a child's answer: %w", err)
	}
	if a.Failure != "" {
		return a, &Failure{a.Failure}
	}
	return a, nil
}

// limited runs another program in the same way.
func limited(ctx context.Context, f *os.File, lim limits, command ...string) ([]byte, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("rewind a document: %w", err)
	}
	args := append([]string{"-c", within, "sh", lim.seconds(), fmt.Sprint(lim.memory >> 10)}, command...)
	return output(ctx, f, exec.CommandContext(ctx, "/bin/sh", args...))
}

func (l limits) seconds() string { return fmt.Sprint(max(1, int(l.cpu.Seconds()))) }

// maxAnswer bounds what a child writes: what passages repeat, and the headings above each, come on top of the text.
const maxAnswer = 2 * maxText

// output runs a child that reads something, and gives what it wrote.
func output(ctx context.Context, in io.Reader, cmd *exec.Cmd) ([]byte, error) {
	cmd.Env = childEnv
	cmd.Dir = "/"
	cmd.Stdin = in
	cmd.WaitDelay = 5 * time.Second
	var stderr tail
	cmd.Stderr = &stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a reader: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a reader: %w", err)
	}
	out, readErr := io.ReadAll(io.LimitReader(pipe, maxAnswer))
	if len(out) >= maxAnswer {
		readErr = Fail(tooLong)
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			readErr = fmt.Errorf("end a reader: %w", err)
		}
	}
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case readErr != nil:
		return nil, readErr
	case err != nil:
		return nil, explain(cmd, stderr.String())
	}
	return out, nil
}

// tail keeps the beginning of what a child complains of.
type tail struct{ bytes.Buffer }

func (t *tail) Write(b []byte) (int, error) {
	if room := 16<<10 - t.Len(); room > 0 {
		t.Buffer.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

// explain makes a reason of the way a child ended.
func explain(cmd *exec.Cmd, stderr string) error {
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(stderr, w) {
				return true
			}
		}
		return false
	}
	switch {
	case cpuSpent(cmd.ProcessState):
		return errSlow
	case has("out of memory", "Out of memory", "cannot allocate", "bad_alloc", "failed to create new OS thread",
		"address space collisions"):
		return errMemory
	case has(setupFailed):
		return fmt.Errorf("limit a reader: %s", stderr)
	case has("Incorrect password", "requires a password"):
		return errPassword
	case has("May not be a PDF file") && !has("xref", "trailer", "Couldn't read"):
		return errNotPDF
	case has("Syntax Error", "Syntax Warning", "xref", "Command Line Error"):
		return errBroken
	}
	return errCrash
}

// childEnv is a child's whole environment; this process's holds secrets. Few threads leave address space for the
// document.
var childEnv = []string{"LC_ALL=C.UTF-8", "GOMAXPROCS=2", "MALLOC_ARENA_MAX=1"}
