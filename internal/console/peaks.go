package console

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"

	"parley/internal/audio"
)

// peaks is the shape of a recording: how loud each side was, from 0 to 100, in equal parts of its length.
type peaks struct {
	Seconds   float64 `json:"seconds"`
	Customer  []int   `json:"customer"`
	Assistant []int   `json:"assistant"`
}

const (
	maxPeaks  = 600
	wavHeader = 44 // octets before the sound of a recording of ours
)

// readPeaks reads a recording, piece by piece.
func readPeaks(r io.ReadSeeker) (*peaks, error) {
	size, err := r.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = r.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, err
	}
	w, err := audio.NewWAVReader(bufio.NewReaderSize(r, 64<<10))
	if err != nil {
		return nil, err
	}
	frames := max(1, (size-wavHeader)/int64(2*w.Channels))
	part := max(1, (frames+maxPeaks-1)/maxPeaks) // frames that a peak stands for
	p := &peaks{Customer: []int{}, Assistant: []int{}}
	buffer := make([]int16, 4096)
	var loud [2]int
	var n int64
	end := func() {
		p.Customer = append(p.Customer, (loud[0]*100+16384)/32768)
		p.Assistant = append(p.Assistant, (loud[w.Channels-1]*100+16384)/32768)
		loud = [2]int{}
	}
	for {
		got, err := w.Read(buffer)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		for i := 0; i < got; i += w.Channels {
			for side := range w.Channels {
				loud[side] = max(loud[side], abs(int(buffer[i+side])))
			}
			if n++; n%part == 0 {
				end()
			}
		}
		if err != nil || got == 0 {
			break
		}
	}
	if n%part != 0 {
		end()
	}
	p.Seconds = float64(n) / float64(w.Rate)
	return p, nil
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

// callPeaks is the shape of a call's recording, for the player to draw.
func (c *Console) callPeaks(r *request) (*answer, error) {
	_, o, err := c.recording(r)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	p, err := readPeaks(o)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	r.w.Header().Set("Content-Type", "application/json")
	r.w.Write(raw)
	return nil, nil
}
