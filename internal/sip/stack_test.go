//go:build stacks

package sip

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/internal/audio"
)

// The tests in stack_*_test.go call the telephone stacks that this machine has, and are called by them: `make stacks`.
// They print the table in docs/lab/stacks.md. None of the stacks is ours; one that is not installed is reported as
// skipped.

// verdict is the result of one row with one stack, by direction.
type verdict map[string]string // in, out: yes, no, or why it was not tried

var table = struct {
	sync.Mutex
	stacks  []string
	rows    []string
	cells   map[string]verdict // by stack and row
	with    []string           // the versions
	missing []string           // what is not installed
}{cells: map[string]verdict{}, stacks: []string{"Asterisk", "pjsua", "baresip", "linphone", proxied, signalling},
	rows: strings.Split(rows, "\n")}

const (
	proxied    = "Kamailio, rtpengine, pjsua"
	signalling = "sipp (signalling)"
)

// rows are those of the table, in its order. A row that isn't there comes last.
const rows = `plain call, µ-law
A-law
G.722
Opus
packets of 10 ms
packets of 40 ms
packets of 60 ms
nothing is sent in silence (DTX)
TCP
TLS
IPv6
INVITE of more than 1,300 octets: by TCP
outbound proxy
SRTP optional
SRTP required, over TLS
SRTP by AES_CM_128_HMAC_SHA1_32
SRTP by AEAD_AES_128_GCM
DTLS-SRTP
reports of what they hear (RTCP)
RTCP on the port of the sound
reliable ringing (100rel)
early media heard
early media sent
late offer
session timer
session refreshed
UPDATE before the answer
UPDATE in an answered call
hold and back (re-INVITE)
fax (T.38) refused, the call goes on
keys (RFC 4733)
keys (INFO)
keys in band
transfer (REFER)
attended transfer to somebody (REFER with Replaces)
taken over by somebody (Replaces)
redirect (302)
registration
password, ours asked for
password, theirs asked for
wrong password
who calls (PAI), Diversion, X- headers
busy
they hang up
they give up while it rings
we give up while it rings`

func init() { afterwards = report }

// report prints the table.
func report() {
	table.Lock()
	defer table.Unlock()
	fmt.Print("\n| what |")
	for _, s := range table.stacks {
		fmt.Printf(" %s |", s)
	}
	fmt.Print("\n|---|" + strings.Repeat("---|", len(table.stacks)) + "\n")
	for _, row := range table.rows {
		fmt.Printf("| %s |", row)
		for _, s := range table.stacks {
			var cell []string
			for _, way := range []string{"in", "out"} {
				if how, ok := table.cells[s+"/"+row][way]; ok {
					cell = append(cell, way+" "+how)
				}
			}
			fmt.Printf(" %s |", strings.Join(cell, ", "))
		}
		fmt.Println()
	}
	fmt.Printf("\nwith %s\n", strings.Join(table.with, "; "))
	for _, name := range table.missing {
		fmt.Printf("skipped: %s is not installed\n", name)
	}
}

var versioned = regexp.MustCompile(`(?i)(?:version|asterisk|\bv)[^0-9\n]*([0-9]+(?:\.[0-9]+)+)`)

// installed skips the test if a program of a stack is missing. Otherwise it notes the version that the program prints.
func installed(t *testing.T, name string, args ...string) {
	t.Helper()
	table.Lock()
	defer table.Unlock()
	if _, err := exec.LookPath(name); err != nil {
		table.missing = append(table.missing, name)
		t.Skipf("%s is not installed", name)
	}
	text, _ := exec.Command(name, args...).CombinedOutput() // some end with an error
	version := "of an unknown version"
	if found := versioned.FindSubmatch(text); found != nil {
		version = string(found[1])
	}
	table.with = append(table.with, name+" "+version)
}

// try runs a row with a stack, in a direction: in is a call to us, out is a call of ours.
func try(t *testing.T, stack, row, way string, test func(t *testing.T)) {
	note := func(how string) {
		table.Lock()
		defer table.Unlock()
		if table.cells[stack+"/"+row] == nil {
			table.cells[stack+"/"+row] = verdict{}
		}
		table.cells[stack+"/"+row][way] = how
	}
	table.Lock()
	if !slices.Contains(table.stacks, stack) {
		table.stacks = append(table.stacks, stack)
	}
	if !slices.Contains(table.rows, row) {
		table.rows = append(table.rows, row)
	}
	table.Unlock()
	t.Run(row+" "+way, func(t *testing.T) {
		t.Parallel()
		t.Cleanup(func() {
			switch {
			case t.Skipped():
				note("skipped")
			case t.Failed():
				note("no")
			default:
				note("yes")
			}
		})
		test(t)
	})
}

// otherStack is a running program of a stack.
type otherStack struct {
	t   testing.TB
	dir string
	cmd *exec.Cmd
	in  io.Writer

	mu   sync.Mutex
	out  []byte
	over chan struct{}
}

func (f *otherStack) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.out = append(f.out, p...)
	return len(p), nil
}

func (f *otherStack) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return string(f.out)
}

// begin runs a program of a stack, or skips the test.
func begin(t testing.TB, dir, name string, args ...string) *otherStack {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	f := &otherStack{t: t, dir: dir, cmd: exec.Command(path, args...), over: make(chan struct{})}
	f.cmd.Dir, f.cmd.Stdout, f.cmd.Stderr = dir, f, f
	if f.in, err = f.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	f.cmd.WaitDelay = time.Second // its children may hold the pipe
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(f.over); _ = f.cmd.Wait() }()
	t.Cleanup(func() {
		_ = f.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-f.over:
		case <-time.After(2 * time.Second):
			_ = f.cmd.Process.Kill()
			<-f.over
		}
		if t.Failed() {
			text := f.text()
			t.Logf("%s:\n%s", name, text[max(0, len(text)-100000):])
		}
	})
	return f
}

// types sends it a line of input.
func (f *otherStack) types(line string) { fmt.Fprintln(f.in, line) }

// says waits until it has printed something.
func (f *otherStack) says(text string) {
	f.t.Helper()
	awaits(f.t, fmt.Sprintf("it to print %q", text), func() bool { return strings.Contains(f.text(), text) })
}

// quits waits until it has ended.
func (f *otherStack) quits() {
	f.t.Helper()
	select {
	case <-f.over:
	case <-time.After(hang):
		f.t.Error("it does not end")
	}
}

// awaits polls: a otherStack stack has no channel to wait on.
func awaits(t testing.TB, what string, so func() bool) {
	t.Helper()
	for give := time.Now().Add(2 * hang); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(give) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

var given atomic.Int32

// ownPort is a port, for UDP and TCP, that no other test is given, nor the seven after it: below those of our sound.
func ownPort(t testing.TB) int {
	t.Helper()
	for {
		port := 10000 + 8*int(given.Add(1))
		if port > 19990 {
			t.Fatal("no port is left")
		}
		at := fmt.Sprintf("127.0.0.1:%d", port)
		u, err := net.ListenPacket("udp", at)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", at)
		u.Close()
		if err == nil && l.Close() == nil {
			return port
		}
	}
}

// toned writes a WAV file with half a minute of a tone.
func toned(t testing.TB, dir string, hz float64, rate int) string {
	t.Helper()
	pcm := make([]int16, 30*rate)
	for i := range pcm {
		pcm[i] = int16(8000 * math.Sin(2*math.Pi*hz*float64(i)/float64(rate)))
	}
	b := []byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00")
	b = binary.LittleEndian.AppendUint32(b, uint32(rate))
	b = binary.LittleEndian.AppendUint32(b, uint32(2*rate))
	b = append(b, 2, 0, 16, 0, 'd', 'a', 't', 'a')
	b = binary.LittleEndian.AppendUint32(b, uint32(2*len(pcm)))
	for _, s := range pcm {
		b = binary.LittleEndian.AppendUint16(b, uint16(s))
	}
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	file := filepath.Join(dir, fmt.Sprintf("%g.wav", hz))
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// recorded asserts that somewhere in a stack's recording there are 200 ms of a tone.
func recorded(t testing.TB, file string, hz float64) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	w, err := audio.NewWAVReader(f)
	if err != nil {
		t.Error(err)
		return
	}
	pcm := make([]int16, 1<<20)
	n, _ := w.Read(pcm)
	if w.Channels == 2 { // of one sound
		n /= 2
		for i := range n {
			pcm[i] = pcm[2*i]
		}
	}
	size := int(w.Rate) / 5
	for at := 0; at+size <= n; at += size / 2 {
		if share(pcm[at:at+size], hz, audio.Rate(w.Rate)) > 0.9 {
			return
		}
	}
	t.Errorf("of %d samples that it recorded nothing is a tone of %g Hz", n, hz)
}

// answering starts a server of ours that answers with a tone of 1000 Hz.
func answering(t testing.TB, c Config) (*Server, *answerer, *authority) {
	t.Helper()
	ca := newAuthority(t)
	a := newAnswerer(1000)
	a.ring = make(chan struct{})
	close(a.ring)
	c.Answer, c.Secure, c.TLS, c.Softphone = a.answer, "127.0.0.1:0", ca.config(t, tomorrow, "127.0.0.1"), c.Trunks == nil
	return start(t, c), a, ca
}

// dials calls a stack, and runs the answered call with a tone of 1000 Hz.
func dials(t testing.TB, s *Server, trunk Trunk, to string) *running {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	l, err := s.Dial(ctx, Dialling{Trunk: trunk, To: to, From: trunk.Number})
	if err != nil {
		t.Fatal(err)
	}
	return run(l, newPhone(1000))
}

func (r *running) own() *leg { return r.leg.(*leg) }

// listening waits until a port accepts connections.
func listening(t testing.TB, port int) {
	t.Helper()
	awaits(t, fmt.Sprintf("port %d", port), func() bool {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		c.Close()
		return true
	})
}

// still reports whether nothing happens in a call for a while: a hold.
func (r *running) still() bool {
	ticks := func() int {
		r.phone.mu.Lock()
		defer r.phone.mu.Unlock()
		return r.phone.ticks
	}
	before := ticks()
	time.Sleep(200 * time.Millisecond)
	return ticks() == before
}
