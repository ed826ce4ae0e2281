package local

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"parley/internal/ai"
)

//go:embed sphinx.py
var sphinxScript string

// nursery is the process that has loaded the library, and forks decoders. It lives as long as it is wanted; when it
// dies, its decoders do.
type nursery struct {
	limits  limits
	cmd     *exec.Cmd
	control *net.UnixConn
	said    *tail
	ready   chan struct{} // closed when decoders can be had
	gone    chan struct{} // closed when it has ended; err says why
	err     error
	number  int // of the last decoder
}

// startNursery starts the process; its goroutine ends with it.
func startNursery(python, model string, l limits) (*nursery, error) {
	ours, theirs, err := socketPair(syscall.SOCK_SEQPACKET)
	if err != nil {
		return nil, &ai.Error{Kind: ai.Overloaded, Err: err}
	}
	defer theirs.Close()
	n := &nursery{limits: l, control: ours, said: &tail{}, ready: make(chan struct{}), gone: make(chan struct{})}
	n.cmd = exec.Command(python, "-I", "-S", "-c", sphinxScript, model)
	n.cmd.Stderr = n.said
	n.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "OPENBLAS_NUM_THREADS=1"}
	n.cmd.Dir = "/"
	n.cmd.ExtraFiles = []*os.File{theirs} // descriptor 3
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	n.cmd.WaitDelay = exitTime
	if err := n.cmd.Start(); err != nil {
		ours.Close()
		return nil, &ai.Error{Kind: ai.Overloaded, Err: fmt.Errorf("run %s: %w", python, err)}
	}
	go n.run()
	return n, nil
}

// run waits until the process is ready, and until it has ended.
func (n *nursery) run() {
	defer close(n.gone)
	defer n.control.Close()
	_ = n.control.SetReadDeadline(time.Now().Add(n.limits.load))
	word := make([]byte, 16)
	size, err := n.control.Read(word)
	ready := string(word[:max(size, 0)]) == "ready"
	slow := errors.Is(err, os.ErrDeadlineExceeded)
	if ready {
		close(n.ready)
		_ = n.control.SetReadDeadline(time.Time{})
		_, _ = n.control.Read(word) // says nothing more; it ends
	}
	end(n.cmd)
	err = n.cmd.Wait()
	switch {
	case ready:
		n.err = &ai.Error{Kind: ai.Interrupted, Err: fmt.Errorf("the recognizer's process ended: %v%s", err, n.said)}
	case slow:
		n.err = &ai.Error{Kind: ai.Stalled, Err: fmt.Errorf("pocketsphinx was not loaded within %v%s",
			n.limits.load, n.said)}
	default:
		n.err = &ai.Error{Kind: ai.Config, Err: fmt.Errorf("pocketsphinx can't be loaded: %v%s", err, n.said)}
	}
}

// close ends the process and all decoders, and waits for it.
func (n *nursery) close() {
	n.control.Close() // run, which reads from it, kills the process
	<-n.gone
}

// wait waits until decoders can be had.
func (n *nursery) wait(ctx context.Context) error {
	select {
	case <-n.ready:
		return nil
	case <-n.gone:
		return n.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// open forks a decoder; calls are one at a time. The nursery is ready.
func (n *nursery) open() (*decoder, error) {
	ours, theirs, err := socketPair(syscall.SOCK_STREAM)
	if err != nil {
		return nil, &ai.Error{Kind: ai.Overloaded, Err: err}
	}
	defer theirs.Close()
	n.number++
	_ = n.control.SetWriteDeadline(time.Now().Add(exitTime))
	if _, _, err := n.control.WriteMsgUnix([]byte("open "+strconv.Itoa(n.number)),
		syscall.UnixRights(int(theirs.Fd())), nil); err != nil {
		ours.Close()
		return nil, &ai.Error{Kind: ai.Unreachable, Err: fmt.Errorf("fork a recognizer: %w", err)}
	}
	return &decoder{nursery: n, number: n.number, conn: ours, lines: bufio.NewReader(ours)}, nil
}

// decoder is a forked process that hears one utterance at a time.
type decoder struct {
	nursery *nursery
	number  int
	conn    *net.UnixConn
	lines   *bufio.Reader
	buffer  []byte
	owner   *sphinxRecognition // while it waits for the next utterance
}

const (
	soundGoesOn = 'a'
	soundEnds   = 'e'
)

// hear passes sound on, at 16 kHz, and returns the text of the utterance so far.
func (d *decoder) hear(ctx context.Context, kind byte, pcm []int16) (string, error) {
	d.buffer = append(d.buffer[:0], kind)
	d.buffer = binary.LittleEndian.AppendUint32(d.buffer, uint32(2*len(pcm)))
	for _, s := range pcm {
		d.buffer = binary.LittleEndian.AppendUint16(d.buffer, uint16(s))
	}
	_ = d.conn.SetDeadline(time.Now().Add(d.nursery.limits.decode))
	defer context.AfterFunc(ctx, func() { _ = d.conn.SetDeadline(time.Unix(1, 0)) })()
	_, err := d.conn.Write(d.buffer)
	var line string
	if err == nil {
		line, err = d.lines.ReadString('\n')
	}
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "", &ai.Error{Kind: ai.Stalled, Err: fmt.Errorf("the recognizer said nothing for %v",
			d.nursery.limits.decode)}
	case err != nil:
		return "", &ai.Error{Kind: ai.Interrupted, Err: fmt.Errorf("the recognizer has died: %w", err)}
	}
	return strings.TrimSpace(line), nil
}

// close kills the process and waits until it is gone, which closes its end of the stream.
func (d *decoder) close(kill func(number int)) {
	kill(d.number)
	_ = d.conn.SetDeadline(time.Now().Add(exitTime))
	_, _ = io.Copy(io.Discard, d.lines)
	d.conn.Close()
}

// socketPair makes two ends of a socket: ours as a connection, theirs to be handed to another process and closed.
func socketPair(kind int) (*net.UnixConn, *os.File, error) {
	syscall.ForkLock.RLock() // not every system has SOCK_CLOEXEC
	fds, err := syscall.Socketpair(syscall.AF_UNIX, kind, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "socket")
	f := os.NewFile(uintptr(fds[0]), "socket")
	defer f.Close() // FileConn has its own
	c, err := net.FileConn(f)
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("make a socket: %w", err)
	}
	return c.(*net.UnixConn), theirs, nil
}
