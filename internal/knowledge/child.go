package knowledge

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"time"
)

// ChildCommand is the hidden command of the program that leads to [Child]:
//
//	if len(os.Args) > 1 && os.Args[1] == knowledge.ChildCommand {
//		os.Exit(knowledge.Child(os.Args[2:], os.Stdin, os.Stdout))
//	}
const ChildCommand = "read-document"

// setupFailed begins what a child says when its limits could not be set.
const setupFailed = "read-document: "

// Child is the other side of [Extractor]: it limits this process, reads the document on stdin, and writes its text to stdout. It returns
// the process's exit code. args are: bytes of memory, seconds of processor time, the document's kind.
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
	if err := gob.NewEncoder(stdout).Encode(readDocument(args[2], stdin)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// readDocument reads a file whole; a panic in a reader is a damaged file.
func readDocument(kind string, r io.Reader) (a answer) {
	defer func() {
		if recover() != nil {
			a = answer{Failure: errCrash.Error()}
		}
	}()
	b, err := io.ReadAll(r)
	if err != nil {
		return answer{Failure: errCrash.Error()}
	}
	t, err := read(kind, b)
	if err == nil && t.Size() > maxText {
		err = fail(tooLong)
	}
	if err != nil {
		return answer{Failure: err.Error()}
	}
	return answer{Text: *t}
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

// cpuSpent says whether a process was ended for its processor time: by the kernel's signal, or after having used what a signal would have
// followed.
func cpuSpent(p *os.ProcessState) bool {
	return p != nil && (overCPU(p) || p.UserTime()+p.SystemTime() >= defaultLimits.cpu-time.Second)
}
