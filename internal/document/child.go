package document

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// ChildCommand is the hidden command of the program that leads to [Child]:
//
//	if len(os.Args) > 1 && os.Args[1] == document.ChildCommand {
//		os.Exit(document.Child(os.Args[2:], os.Stdin, os.Stdout))
//	}
const ChildCommand = "read-document"

// setupFailed begins what a child says when its limits could not be set.
const setupFailed = "read-document: "

// Child is the other side of [Extractor]: it limits this process, does what is asked of it with what comes on stdin,
// and writes an answer to stdout. It returns the process's exit code. args are: bytes of memory, seconds of processor
// time, what is asked.
func Child(args []string, stdin io.Reader, stdout io.Writer) int {
	if len(args) != 3 {
		fmt.Fprintln(os.Stderr, setupFailed+"this command is for the program's own use")
		return 2
	}
	memory, err := strconv.ParseInt(args[0], 10, 64)
	seconds, err2 := strconv.ParseUint(args[1], 10, 32)
	if err := errors.Join(err, err2); err != nil {
		fmt.Fprintln(os.Stderr, setupFailed+err.Error())
		return 2
	}
	debug.SetMemoryLimit(memory / 4 * 3) // collect before the kernel says no
	if err := limitProcess(memory, seconds); err != nil {
		fmt.Fprintln(os.Stderr, setupFailed+err.Error())
		return 2
	}
	if err := gob.NewEncoder(stdout).Encode(do(args[2], stdin)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Tasks of a child, besides reading the kinds of files as they are. Their input is gob.
const (
	askPages = "pages" // what poppler said: a popplerText
	askPage  = "page"  // a web page: a WebPage
	askCut   = "cut"   // passages: the []Section
)

// answer is what a child writes, as gob.
type answer struct {
	Text    *Text
	Page    *Page
	Chunks  []Chunk
	Failure string
}

// do does what is asked. A panic in a reader is a damaged document.
func do(what string, r io.Reader) (a answer) {
	defer func() {
		if recover() != nil {
			a = answer{Failure: errCrash.Error()}
		}
	}()
	if err := a.make(what, r); err != nil {
		return answer{Failure: err.Error()}
	}
	return a
}

func (a *answer) make(what string, r io.Reader) (err error) {
	switch what {
	case askCut:
		var in []Section
		if err := gob.NewDecoder(r).Decode(&in); err != nil {
			return errCrash
		}
		a.Chunks = Split(in, ChunkSize, ChunkOverlap)
		return nil
	case askPage:
		var in WebPage
		if err := gob.NewDecoder(r).Decode(&in); err != nil {
			return errCrash
		}
		if a.Page, err = in.read(); err != nil {
			return err
		}
		if a.Page.Title = brief(a.Page.Title); a.Page.garbled() {
			a.Page = nil
			return Fail("its text doesn't read like any language")
		}
		return nil
	case askPages:
		var in popplerText
		if err := gob.NewDecoder(r).Decode(&in); err != nil {
			return errCrash
		}
		a.Text, err = in.read()
	default:
		var b []byte
		if b, err = io.ReadAll(r); err != nil {
			return errCrash
		}
		a.Text, err = read(what, b)
	}
	switch {
	case err != nil:
		return err
	case a.Text.Size() > maxText:
		return Fail(tooLong)
	case what != "pdf" && what != askPages && a.Text.garbled(): // pages are looked at one by one
		return errGarbled
	}
	a.Text.Title = brief(a.Text.Title)
	return nil
}

// brief is a title that may stand with every passage.
func brief(title string) string {
	if len(title) <= maxHeading {
		return title
	}
	return strings.ToValidUTF8(title[:maxHeading], "")
}

func read(kind string, b []byte) (*Text, error) {
	switch kind {
	case "pdf":
		return readPDF(b)
	case "docx":
		return readDocx(b)
	}
	return plain(b)
}

// cpuSpent says whether a process was ended for its processor time: by the kernel's signal, or after having used what
// a signal would have followed.
func cpuSpent(p *os.ProcessState) bool {
	return p != nil && (overCPU(p) || p.UserTime()+p.SystemTime() >= defaultLimits.cpu-time.Second)
}
