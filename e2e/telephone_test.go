package e2e

import (
	"bufio"
	"context"
	octets "encoding/binary"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/simulator/phone"
	needs "parley/internal/testenv"
)

// The tests of the telephone call the program, or are called by it, over real SIP and RTP on loopback: from
// telephones of this process (package phone), from sipp and from baresip.

// line is a program with a telephone line, and a telephone beside it.
type line struct {
	*program
	sip   netip.AddrPort
	phone *phone.Phone
	ports int // those from 400 up are for other telephones
}

// telephone starts the program with a telephone line.
func telephone(t *testing.T, env ...string) *line {
	t.Helper()
	first := needs.Ports(t, 800)
	l := &line{sip: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(first)), ports: first + 600}
	l.program = start(t, append([]string{"PARLEY_SIP_LISTEN=" + l.sip.String(),
		fmt.Sprintf("PARLEY_RTP_PORTS=%d-%d", first+2, first+501), "PARLEY_RATE_API=off",
		"PARLEY_EGRESS_ALLOW=127.0.0.0/8"}, env...)...)
	l.phone = handset(t, phone.Options{})
	return l
}

// handset is a telephone that is closed at the end of the test.
func handset(t *testing.T, o phone.Options) *phone.Phone {
	t.Helper()
	p, err := phone.Listen()
	if err != nil {
		t.Fatal(err)
	}
	p.Options = o
	t.Cleanup(func() {
		p.Close()
		for _, odd := range p.Odd() {
			t.Errorf("the telephone got %s", odd)
		}
	})
	return p
}

// change changes the first assistant.
func (l *line) change(t *testing.T, fields map[string]any) {
	t.Helper()
	var answer map[string]any
	if status := l.call(t, "PUT", "/user/assistant/"+strconv.FormatInt(l.Assistant, 10), fields,
		&answer); status != http.StatusOK {
		t.Fatalf("the assistant is answered %d: %v", status, answer)
	}
}

// ring calls the first assistant from a telephone, as a softphone would.
func (l *line) ring(t *testing.T, p *phone.Phone) *phone.Call {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := p.Call(ctx, "visitor", strconv.FormatInt(l.Assistant, 10), l.sip)
	if err != nil {
		t.Fatalf("call the assistant: %v\n%s", err, l.log)
	}
	return c
}

// talk is a call as the API returns it.
type talk struct {
	ID          int64
	Type        string
	Status      parley.CallStatus
	EndedReason parley.EndedReason `json:"ended_reason"`
	Duration    int64
	Transcript  string
	Turns       []parley.CallTurn
	AnsweredBy  parley.AnsweredBy `json:"answered_by"`
	TotalCost   float64           `json:"total_cost"`
	Recording   string            `json:"recording_url"`
	Own         string            `json:"assistant_phone_number"`
	Customer    string            `json:"client_phone_number"`
}

// talks returns the account's calls, the newest first.
func (l *line) talks(t *testing.T) []talk {
	t.Helper()
	var page struct{ Data []talk }
	if status := l.call(t, "GET", "/user/calls?per_page=100", nil, &page); status != http.StatusOK {
		t.Fatalf("the list of calls is answered %d", status)
	}
	return page.Data
}

// talk reads a call.
func (l *line) talk(t *testing.T, id int64) (c talk) {
	t.Helper()
	if status := l.call(t, "GET", fmt.Sprintf("/user/calls/%d", id), nil, &c); status != http.StatusOK {
		t.Fatalf("call %d is answered %d", id, status)
	}
	return c
}

// over waits until the newest call is over, and reads it.
func (l *line) over(t *testing.T) (c talk) {
	t.Helper()
	eventually(t, "the call's end", func() bool {
		all := l.talks(t)
		if len(all) == 0 || all[0].Status.Live() {
			return false
		}
		c = l.talk(t, all[0].ID)
		return true
	})
	return c
}

// expect checks how a call ended.
func (c talk) expect(t *testing.T, status parley.CallStatus, reason parley.EndedReason) {
	t.Helper()
	if c.Status != status || c.EndedReason != reason {
		t.Errorf("call %d is %s by %s, not %s by %s\n%s", c.ID, c.Status, c.EndedReason, status, reason, c.Transcript)
	}
}

// said returns the texts of one side, turn by turn.
func (c talk) said(speaker string) (texts []string) {
	for _, turn := range c.Turns {
		if turn.Speaker == speaker {
			texts = append(texts, turn.Text)
		}
	}
	return texts
}

// hears waits for the far end's first sound after a time, and returns when it came.
func hears(t *testing.T, c *phone.Call, after time.Time) (at time.Time) {
	t.Helper()
	eventually(t, "sound from the far end", func() bool {
		packets := c.Packets()
		i := slices.IndexFunc(packets, func(p phone.Packet) bool { return p.Loud() && p.At.After(after) })
		if i >= 0 {
			at = packets[i].At
		} else if c.Ended() != "" {
			t.Fatalf("the call ended by %s while sound was awaited", c.Ended())
		}
		return i >= 0
	})
	return at
}

// silent waits until the far end has been silent for d, and returns when its last sound came.
func silent(t *testing.T, c *phone.Call, d time.Duration) (last time.Time) {
	t.Helper()
	eventually(t, "silence of the far end", func() bool {
		packets := c.Packets()
		if len(packets) == 0 {
			return false
		}
		last = c.Answered
		for _, p := range slices.Backward(packets) {
			if p.Loud() {
				last = p.At
				break
			}
		}
		return packets[len(packets)-1].At.Sub(last) >= d
	})
	return last
}

// gone waits until the far end has hung up.
func gone(t *testing.T, c *phone.Call) {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(patience):
		t.Fatal("the far end did not hang up")
	}
	if c.Ended() != "bye" {
		t.Errorf("the call ended by %s", c.Ended())
	}
}

// need skips a test when a Debian program that it needs is missing. Where tests must be complete the test fails.
// The recognizer takes much of a processor, and callers don't wait for it: tests that need it are not parallel.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		needs.Program(t, name)
	}
}

var (
	spokenMu sync.Mutex
	spoken   = map[string][]int16{}
)

// speech is a sentence as one of flite's voices says it, at 8 kHz, from its first sound to its last.
func speech(t *testing.T, text string) []int16 {
	t.Helper()
	need(t, "flite")
	spokenMu.Lock()
	defer spokenMu.Unlock()
	if pcm, ok := spoken[text]; ok {
		return pcm
	}
	file := filepath.Join(t.TempDir(), "speech.wav")
	if out, err := exec.CommandContext(t.Context(), "flite", "-voice", "rms", "-t", text, "-o",
		file).CombinedOutput(); err != nil {
		t.Fatalf("flite: %v %s", err, out)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := audio.NewWAVReader(f)
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]int16, 60*w.Rate)
	n, err := w.Read(raw)
	if err != nil {
		t.Fatal(err)
	}
	r, err := audio.NewResampler(w.Rate, 8000)
	if err != nil {
		t.Fatal(err)
	}
	const frame = 160
	pcm := r.Resample(nil, raw[:n])
	for len(pcm) > frame && audio.Level(pcm[:frame]) < -45 {
		pcm = pcm[frame:]
	}
	for len(pcm) > frame && audio.Level(pcm[len(pcm)-frame:]) < -45 {
		pcm = pcm[:len(pcm)-frame]
	}
	spoken[text] = pcm
	return pcm
}

// recording reads a call's recording: the customer's channel, the assistant's, and the sample rate.
func (l *line) recording(t *testing.T, c talk) (left, right []int16, rate int) {
	t.Helper()
	eventually(t, "the recording", func() bool { c = l.talk(t, c.ID); return c.Recording != "" })
	res, err := http.Get(c.Recording)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "audio/wav" {
		t.Fatalf("the recording is answered %s, %s", res.Status, res.Header.Get("Content-Type"))
	}
	w, err := audio.NewWAVReader(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if w.Channels != 2 {
		t.Fatalf("the recording has %d channels", w.Channels)
	}
	pcm := make([]int16, 16000)
	for {
		n, err := w.Read(pcm)
		for i := 0; i < n; i += 2 {
			left, right = append(left, pcm[i]), append(right, pcm[i+1])
		}
		if err == io.EOF {
			return left, right, w.Rate
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// keep saves what a telephone heard, for people to listen to.
func keep(t *testing.T, c *phone.Call) {
	t.Helper()
	artifact(t, strings.ReplaceAll(t.Name(), "/", "-")+".wav", wav(c.Sound(), int(c.Rate())))
}

// wav makes a WAV file of mono sound.
func wav(pcm []int16, rate int) []byte {
	file := audio.AppendWAVHeader(nil, rate, 1, int64(2*len(pcm)))
	for _, s := range pcm {
		file = octets.LittleEndian.AppendUint16(file, uint16(s))
	}
	return file
}

func timeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}

// tone makes a tone at 8 kHz, such as an answering machine's.
func tone(hz float64, d time.Duration) []int16 {
	pcm := make([]int16, int(d*8000/time.Second))
	for i := range pcm {
		pcm[i] = int16(8000 * math.Sin(2*math.Pi*hz*float64(i)/8000))
	}
	return pcm
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// listen follows the live events of a call.
func (l *line) listen(t *testing.T, id int64) <-chan string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET",
		fmt.Sprintf("%s/api/user/calls/%d/events", l.URL, id), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+l.Key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		t.Fatalf("the call's events are answered %s", res.Status)
	}
	lines, over := make(chan string, 1000), make(chan struct{})
	go func() {
		defer close(over)
		for sc := bufio.NewScanner(res.Body); sc.Scan(); {
			lines <- sc.Text()
		}
	}()
	t.Cleanup(func() { res.Body.Close(); <-over })
	return lines
}
