package voice_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/audio"
	"parley/internal/rtp"
)

// network is what a call's packets go through.
type network struct {
	name   string
	loss   float64
	late   time.Duration // a packet at most; those behind it overtake it
	drift  float64       // the far end's clock against ours, in parts per million
	source bool          // in the middle another source goes on (SSRC), with other numbers
}

var networks = []network{
	{name: "nothing wrong"},
	{name: "5 % lost", loss: 0.05},
	{name: "10 % lost", loss: 0.1},
	{name: "20 % lost", loss: 0.2},
	{name: "up to 100 ms late, out of order", late: 100 * time.Millisecond},
	{name: "a clock 1,000 ppm fast", drift: 1000},
	{name: "another source in the middle", source: true},
	{name: "all of it, with 5 % lost", loss: 0.05, late: 100 * time.Millisecond, drift: 1000, source: true},
	{name: "all of it, with 20 % lost", loss: 0.2, late: 100 * time.Millisecond, drift: 1000, source: true},
}

// carry sends sound at 8 kHz through a network as packets of G.711, and returns what is heard of it: at once, as a
// recognizer does, and by the clock, as a recording and another leg do.
func (n network) carry(pcm []int16, seed uint64) (live, clocked []int16) {
	type arrival struct {
		at      time.Duration
		seq     uint16
		ts, of  uint32
		payload []byte
	}
	r := rand.New(rand.NewPCG(seed, 15))
	var list []arrival
	in, out := audio.NewEncoder(audio.PCMU), audio.NewDecoder(audio.PCMU)
	frames := len(pcm) / 160
	for i := range frames {
		a := arrival{seq: uint16(i) + 65_530, ts: uint32(160 * i), of: 1, payload: in.Encode(nil, pcm[160*i:160*i+160])}
		a.at = time.Duration(float64(i) * float64(audio.FrameTime) / (1 + n.drift/1e6))
		if n.source && i >= frames/2 {
			a.seq, a.ts, a.of = a.seq+9999, a.ts+1e6, 2
		}
		a.at += time.Duration(r.Float64() * float64(n.late))
		if r.Float64() >= n.loss {
			list = append(list, a)
		}
	}
	slices.SortStableFunc(list, func(a, b arrival) int { return int(a.at - b.at) })
	receiver := rtp.NewReceiver(audio.Narrow, 8000, func(f audio.Frame) { live = append(live, f...) })
	frame := make(audio.Frame, audio.Narrow.FrameSize())
	for at := time.Duration(0); at < time.Duration(frames+50)*audio.FrameTime; at += audio.FrameTime {
		for len(list) > 0 && list[0].at <= at {
			a := list[0]
			list = list[1:]
			receiver.Put(a.at, a.seq, a.ts, a.of, out.Decode(nil, a.payload))
		}
		receiver.Pull(at, frame)
		clocked = append(clocked, frame...)
	}
	return live, clocked
}

// How many of a caller's words a recognizer understands that come over a bad network.
func TestImpairedRecognition(t *testing.T) {
	if !whole(t) {
		return // it is a measurement, and takes minutes
	}
	sphinx := recognizer(t)
	texts := []string{
		"please tell me when the bakery opens in the morning", "I want to cancel my appointment for tomorrow",
		"I am calling about my order from last week", "can you tell me how much a room costs",
		"I would like to speak with somebody about my bill", "we need a table for four people on Friday evening",
		"is there a train to the airport after midnight", "the package has not arrived and I am not happy about it",
		"could you send me the address of the office", "do you have anything that is less expensive",
		"I have lost my card and I need a new one", "my name is John Miller and I live in Boston",
	}
	shares := make([][2]float64, len(networks))
	for k, n := range networks {
		var wrong [2]int
		words := 0
		for i, text := range texts {
			clean := leveled(say(t, []string{"slt", "awb", "rms", "kal16"}[i%4], text), -14)
			line := append(append(make([]int16, wide/2), clean...), make([]int16, wide/2)...)
			live, clocked := n.carry(atRate(t, line, wide, 8000), uint64(i))
			words += len(strings.Fields(text))
			for which, heard := range [][]int16{live, clocked} {
				wrong[which] += wordErrors(recognized(t, sphinx, audio.NewMirrorResampler().Resample(nil, heard)), text)
			}
		}
		for which := range wrong {
			shares[k][which] = 100 * (1 - float64(wrong[which])/float64(words))
		}
		const format = "recognition over a network with %s: %.1f %% of %d words right, by the clock %.1f %%"
		if n.loss > 0 {
			t.Logf("quality: "+format, n.name, shares[k][0], words, shares[k][1])
			continue
		}
		// where nothing is lost, five words in a hundred at most are
		told(t, false, shares[k][0], shares[0][0]-5, true, format, n.name, shares[k][0], words, shares[k][1])
	}
}

func atRate(t testing.TB, pcm []int16, from, to int) []int16 {
	t.Helper()
	r, err := audio.NewResampler(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return r.Resample(nil, pcm)
}
