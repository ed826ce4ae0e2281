package local

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
)

const (
	maxText   = 4096             // characters that are said at once
	maxSound  = 10 * time.Minute // what comes of them at most
	pieceTime = 100 * time.Millisecond
	exitTime  = 2 * time.Second // a program that has closed its output ends within
	// A voice of Flite's begins with a fifth of a second of silence, which whoever waits for an answer would hear as
	// slowness. Of what comes before the first sample that is louder than quiet, this much is left: soft consonants.
	quiet    = 400
	leadTime = 40 * time.Millisecond
)

// defaultStall is how long a program may print nothing.
const defaultStall = 15 * time.Second

// program is one that prints speech as WAV on its standard output, run once for each text: one that is killed can't
// have said more, and with a few milliseconds to its first sample there is nothing that a pool would save.
type program struct {
	name, pkg string        // of the file, and of Debian's package
	path      string        // "": on the PATH
	stall     time.Duration // 0: defaultStall
}

// find looks where the program is.
func (p program) find() (string, error) {
	path, err := exec.LookPath(cmp.Or(p.path, p.name))
	if err != nil {
		return "", &ai.Error{Kind: ai.Config, Err: fmt.Errorf("%s is not installed: apt-get install %s (%w)",
			p.name, p.pkg, err),
			Mend: fmt.Sprintf("The voice is made by %s, which is not installed on this server. "+
				"Choose another voice, or ask its operator: apt-get install %s.", p.name, p.pkg)}
	}
	return path, nil
}

// speak runs the program and yields what it prints, at the rate that is asked for. The text goes to its standard
// input, or is among args.
func (p program) speak(ctx context.Context, args []string, input string, rate audio.Rate,
	yield func([]int16) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	path, err := p.find()
	if err != nil {
		return err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return &ai.Error{Kind: ai.Overloaded, Err: fmt.Errorf("run %s: %w", p.name, err)}
	}
	defer out.Close()
	said := &tail{}
	cmd := exec.Command(path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader([]byte(input)), in, said
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8"} // the server's own holds secrets
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = exitTime
	err = cmd.Start()
	in.Close()
	if err != nil {
		return &ai.Error{Kind: ai.Overloaded, Err: fmt.Errorf("run %s: %w", p.name, err)}
	}
	r := &printed{ctx: ctx, f: out, stall: cmp.Or(p.stall, defaultStall)}
	defer context.AfterFunc(ctx, func() { _ = out.SetReadDeadline(time.Unix(1, 0)) })()

	began, err := r.pass(rate, yield)
	if err == nil {
		// It has closed its output and is about to end; one that isn't is helped.
		kill := time.AfterFunc(exitTime, func() { end(cmd) })
		err = cmd.Wait()
		kill.Stop()
	} else {
		end(cmd)
		_ = cmd.Wait() // it was killed, that is all that it would say
	}
	return p.errorOf(ctx, err, began, r, said)
}

// end kills the program and all that it has started. It is not reaped yet, so the number is still its own.
func end(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// errorOf says what an error means.
func (p program) errorOf(ctx context.Context, err error, began bool, r *printed, said *tail) error {
	if stop, ok := errors.AsType[refusal](err); ok {
		return stop.error
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, ok := errors.AsType[*ai.Error](err); ok {
		return err
	}
	exit, exited := errors.AsType[*exec.ExitError](err)
	fail := func(kind ai.Kind, format string, a ...any) error {
		return &ai.Error{Kind: kind, Err: fmt.Errorf("%s: %s%s", p.name, fmt.Sprintf(format, a...), said)}
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fail(ai.Stalled, "it printed nothing for %v", r.stall)
	case exited && began, err == nil && r.short():
		return fail(ai.Interrupted, "it broke off in the middle: %v", err)
	case exited && exit.Exited():
		return fail(ai.Config, "it ended with status %d and no sound", exit.ExitCode())
	case exited:
		return fail(ai.Unreachable, "it was killed: %v", err)
	case err == nil && r.size == 0:
		return fail(ai.Malformed, "it printed nothing")
	case err == nil:
		return nil
	case began:
		return fail(ai.Interrupted, "%v", err)
	}
	return fail(ai.Malformed, "%v", err)
}

// refusal is yield's error.
type refusal struct{ error }

// printed reads what a program prints.
type printed struct {
	ctx   context.Context
	f     *os.File
	stall time.Duration
	head  []byte // the first 44 octets
	size  int64
}

// Read implements io.Reader.
func (r *printed) Read(b []byte) (int, error) {
	_ = r.f.SetReadDeadline(time.Now().Add(r.stall))
	if r.ctx.Err() != nil { // ended before the deadline was set, which undid the one that should wake us
		return 0, context.Cause(r.ctx)
	}
	n, err := r.f.Read(b)
	if left := 44 - len(r.head); left > 0 {
		r.head = append(r.head, b[:min(n, left)]...)
	}
	r.size += int64(n)
	return n, err
}

// short says whether the header spoke of more sound than came. eSpeak's says a size that can't be.
func (r *printed) short() bool {
	if len(r.head) < 44 || string(r.head[36:40]) != "data" {
		return len(r.head) > 0
	}
	size := int64(binary.LittleEndian.Uint32(r.head[40:]))
	return size < 0x7FFFF000 && r.size < 44+size
}

// pass yields the sound, and says whether there was any.
func (r *printed) pass(rate audio.Rate, yield func([]int16) error) (began bool, err error) {
	wav, err := audio.NewWAVReader(r)
	if err != nil {
		if errors.Is(err, io.EOF) && r.size == 0 {
			err = nil // nothing to say; or it has died, which its status will tell
		}
		return false, err
	}
	if wav.Channels != 1 {
		return false, &ai.Error{Kind: ai.Malformed, Err: fmt.Errorf("speech in %d channels", wav.Channels)}
	}
	resample, err := audio.NewResampler(wav.Rate, int(rate))
	if err != nil {
		return false, &ai.Error{Kind: ai.Malformed, Err: err}
	}
	raw := make([]int16, int(pieceTime*time.Duration(wav.Rate)/time.Second))
	var pcm []int16
	start := lead{keep: int(leadTime * time.Duration(rate) / time.Second)}
	left := int(maxSound/time.Second) * wav.Rate
	for {
		n, err := wav.Read(raw)
		if errors.Is(err, io.EOF) {
			return began, nil
		}
		if err != nil {
			return began, err
		}
		if left -= n; left < 0 {
			return began, &ai.Error{Kind: ai.Malformed, Err: fmt.Errorf("more than %v of speech", maxSound)}
		}
		pcm = resample.Resample(pcm[:0], raw[:n])
		piece := start.cut(pcm)
		if len(piece) == 0 {
			continue
		}
		began = true
		if err := yield(piece); err != nil {
			return began, refusal{err}
		}
	}
}

// lead takes the silence from the beginning of a stream.
type lead struct {
	keep int // samples
	held []int16
	over bool
}

func (l *lead) cut(pcm []int16) []int16 {
	if l.over {
		return pcm
	}
	l.held = append(l.held, pcm...)
	at := slices.IndexFunc(l.held, func(s int16) bool { return s > quiet || s < -quiet })
	if l.over = at >= 0; l.over {
		return l.held[max(0, at-l.keep):]
	}
	if n := len(l.held) - l.keep; n > 0 {
		l.held = l.held[:copy(l.held, l.held[n:])]
	}
	return nil
}

// tail keeps the end of what a program says on its standard error, for the log.
type tail struct{ b []byte }

const tailSize = 300

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p[max(0, len(p)-tailSize):]...)
	t.b = t.b[max(0, len(t.b)-tailSize):]
	return len(p), nil
}

// String is what there is, as the end of a sentence.
func (t *tail) String() string {
	if len(bytes.TrimSpace(t.b)) == 0 {
		return ""
	}
	return fmt.Sprintf("; it said %q", bytes.TrimSpace(t.b))
}
