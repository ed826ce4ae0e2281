package audio

import (
	"bufio"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// recording is a recording of people or of noises. Its row in testdata/real.tsv says what it is for ("train", "choose" or
// "held" out), its kind, its path, its licence and who made it.
type recording struct {
	kind string
	who  string  // the directory, and of LibriSpeech the reader
	pcm  []int16 // at 16 kHz
}

// recordings reads those that are wanted (of some kinds, or of all) from the directory that PARLEY_RECORDINGS names: it
// holds the repositories of the list, each as owner/name. What is missing there is left out; none at all, and the test
// is skipped.
func recordings(t *testing.T, use string, kinds ...string) (all []recording) {
	t.Helper()
	dir := os.Getenv("PARLEY_RECORDINGS")
	if dir == "" {
		t.Log("quality: recordings of real people: not measured, as PARLEY_RECORDINGS names no directory with them")
		t.Skip("PARLEY_RECORDINGS names no directory with the recordings of testdata/real.tsv")
	}
	for _, row := range listed(t) {
		if row[0] != use || len(kinds) > 0 && !slices.Contains(kinds, row[1]) {
			continue
		}
		files, err := filepath.Glob(filepath.Join(dir, row[2]))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if pcm := decoded(t, f); len(pcm) > 16000/4 {
				reader, _, _ := strings.Cut(filepath.Base(f), "-")
				all = append(all, recording{kind: row[1], who: filepath.Join(filepath.Dir(f), reader), pcm: pcm})
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("no recording of testdata/real.tsv is below %s", dir)
	}
	return all
}

// listed are the rows of the list.
func listed(t *testing.T) (rows [][]string) {
	t.Helper()
	list, err := os.ReadFile("testdata/real.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(strings.NewReader(string(list))); lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), "#") {
			rows = append(rows, strings.Split(lines.Text(), "\t"))
		}
	}
	return rows
}

// decoded is a file's sound, at most a minute and a half of it. The decoded sound is cached beside the file.
func decoded(t *testing.T, file string) []int16 {
	t.Helper()
	kept := file + ".s16"
	raw, err := os.ReadFile(kept)
	if err != nil {
		raw, err = exec.Command("ffmpeg", "-v", "error", "-nostdin", "-i", file, "-t", "90", "-ar", "16000", "-ac", "1",
			"-f", "s16le", "-").Output()
		if err != nil {
			t.Logf("%s: %v", file, err)
			return nil
		}
		if err := os.WriteFile(kept, raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pcm := make([]int16, len(raw)/2)
	for i := range pcm {
		pcm[i] = int16(binary.LittleEndian.Uint16(raw[2*i:]))
	}
	return pcm
}

// marked says for each frame of clean speech whether somebody speaks: 1, or 0 in pauses, or -1 where that is unclear.
// Frames within 20 dB of the active level are speech; pauses are frames at least 15 dB below that, from 100 ms after
// the last frame of speech.
func marked(clean []int16, rate Rate) []int8 {
	n, since := rate.FrameSize(), 100
	floor := 20*log10(activeLevel(clean, rate)) - 20
	marks := make([]int8, len(clean)/n)
	for i := range marks {
		l := level(clean[i*n : (i+1)*n])
		since++
		marks[i] = -1
		if l > floor {
			since, marks[i] = 0, 1
		} else if since > 4 && l < floor-15 {
			marks[i] = 0
		}
	}
	return marks
}

// still says whether a recording has so little noise that its pauses can be found.
func still(pcm []int16) bool {
	loud, low, n := 20*log10(activeLevel(pcm, Wide)), 0, Wide.FrameSize()
	for i := 0; i+n <= len(pcm); i += n {
		if level(pcm[i:i+n]) < loud-33 {
			low++
		}
	}
	return low > len(pcm)/n/20
}

// alone is the speech without the noise of its recording: its pauses are silent.
func alone(pcm []int16, rate Rate) []int16 {
	n, gain := rate.FrameSize(), 0.0
	out := make([]int16, len(pcm))
	for i, mark := range marked(pcm, rate) {
		next := 1.0
		if mark == 0 {
			next = 0
		}
		for j := range n {
			out[i*n+j] = int16(float64(pcm[i*n+j]) * (gain + (next-gain)*float64(j)/float64(n)))
		}
		gain = next
	}
	return out
}
