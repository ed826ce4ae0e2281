package phone

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"parley/internal/audio"
)

// echoDelay is how long the far end's sound takes to come back.
const echoDelay = 120 * time.Millisecond

// line is what lies between the mouth and the network: noise behind the voice, an echo of what is heard, packets that
// are lost or late. The same seed makes the same line.
type line struct {
	options Options
	lose    *rand.Rand
	late    *rand.Rand
	noise   int // the next sample of it
	gain    float64
	echo    []int16 // what is heard, as it comes back
}

func newLine(o Options, rate audio.Rate) *line {
	seed := o.Seed
	if seed == 0 {
		seed = 1
	}
	l := &line{options: o, lose: rand.New(rand.NewPCG(seed, 2)), late: rand.New(rand.NewPCG(seed, 3))}
	if o.Echo < 0 {
		l.gain = math.Pow(10, o.Echo/20)
		l.echo = make([]int16, int(echoDelay*time.Duration(rate)/time.Second))
	}
	return l
}

// heard takes what the far end says, for the echo.
func (l *line) heard(pcm []int16) {
	if l.gain > 0 && len(l.echo) < 16_000 {
		l.echo = append(l.echo, pcm...)
	}
}

// color adds noise and echo to a frame.
func (l *line) color(frame []int16) {
	add := func(i int, x float64) {
		frame[i] = int16(max(min(float64(frame[i])+x, math.MaxInt16), math.MinInt16))
	}
	if n := len(l.options.Noise); n > 0 {
		for i := range frame {
			add(i, float64(l.options.Noise[l.noise]))
			l.noise = (l.noise + 1) % n
		}
	}
	if l.gain > 0 {
		n := min(len(frame), len(l.echo))
		for i, x := range l.echo[:n] {
			add(i, l.gain*float64(x))
		}
		l.echo = l.echo[:copy(l.echo, l.echo[n:])]
	}
}

// lost says whether the next packet is.
func (l *line) lost() bool { return l.options.Loss > 0 && l.lose.Float64() < l.options.Loss }

// delay is how late the next packet is.
func (l *line) delay() time.Duration {
	if l.options.Jitter <= 0 {
		return 0
	}
	return time.Duration(l.late.Float64() * float64(l.options.Jitter))
}

// post sends packets when they are due, whatever came before them.
type post struct {
	mu   sync.Mutex
	wait sync.WaitGroup
	off  bool
}

// send has a packet sent after a while.
func (p *post) send(after time.Duration, raw []byte, fn func(raw []byte)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.off {
		return
	}
	raw = append([]byte(nil), raw...)
	p.wait.Add(1)
	time.AfterFunc(after, func() { defer p.wait.Done(); fn(raw) })
}

// close takes no more and waits for those under way: none takes longer than the line's jitter.
func (p *post) close() {
	p.mu.Lock()
	p.off = true
	p.mu.Unlock()
	p.wait.Wait()
}
