//go:build train

package audio

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// How networks learn.

// trainMinutes is how long: what PARLEY_TRAIN_MINUTES says, or as usual.
func trainMinutes(usual float64) float64 {
	minutes, _ := strconv.ParseFloat(os.Getenv("PARLEY_TRAIN_MINUTES"), 64)
	if minutes == 0 {
		return usual
	}
	return minutes
}

// forget draws the weights of a network that has learned nothing yet.
func (n *gru) forget(r *rand.Rand) {
	for i := range n.all {
		n.all[i] = float32(r.NormFloat64() * 0.12)
	}
	for u := range n.units {
		n.bias[0][u] = 1
	}
}

func (n *gru) write(t *testing.T, file string) {
	out := make([]byte, 0, 2*len(n.all))
	for _, w := range n.all {
		out = binary.LittleEndian.AppendUint16(out, uint16(int16(math.Round(float64(w)*2048))))
	}
	if err := os.WriteFile(file, out, 0o644); err != nil {
		t.Fatal(err)
	}
}

// descent is gradient descent with Adam.
type descent struct {
	n, g         *gru
	mean, square []float64
	steps        float64
}

func descend(n *gru) *descent {
	return &descent{n: n, g: newGRU(n.inputs, n.units, len(n.head)), mean: make([]float64, len(n.all)),
		square: make([]float64, len(n.all))}
}

// step follows the gradient that so many frames have made; done is how much of the training is over.
func (d *descent) step(frames int, fastest, done float64) {
	norm := 0.0
	for _, x := range d.g.all {
		norm += float64(x) * float64(x) / float64(frames) / float64(frames)
	}
	scale := 1 / float64(frames) / max(1, math.Sqrt(norm)/0.5)
	d.steps++
	rate := fastest * min(1, d.steps/50) * (0.02 + 0.98*0.5*(1+math.Cos(math.Pi*done)))
	rate /= 1 - math.Pow(0.9, d.steps)
	seen := 1 - math.Pow(0.999, d.steps)
	for i, x := range d.g.all {
		x := float64(x) * scale
		d.mean[i] += 0.1 * (x - d.mean[i])
		d.square[i] += 0.001 * (x*x - d.square[i])
		d.n.all[i] -= float32(rate * d.mean[i] / (math.Sqrt(d.square[i]/seen) + 1e-8))
		d.n.all[i] = max(-15.9, min(d.n.all[i], 15.9))
	}
}

// pass is the forward pass of one frame, kept for the backward pass.
type pass struct {
	n                           *gru
	x                           []float32 // the inputs, and the former units
	update, reset, fresh, under []float32 // under: what the reset gate lets through
	units                       []float32
	head                        []float32 // weighted output minus target
}

func newPass(n *gru) *pass {
	rest := make([]float32, n.inputs+6*n.units+len(n.head))
	take := func(size int) (part []float32) {
		part, rest = rest[:size:size], rest[size:]
		return part
	}
	return &pass{n: n, x: take(n.inputs + n.units), update: take(n.units), reset: take(n.units), fresh: take(n.units),
		under: take(n.units), units: take(n.units), head: take(len(n.head))}
}

// says is the probability that a value above the units stands for.
func (p *pass) says(head int) float32 {
	w := p.n.head[head]
	return squash(w[p.n.units] + inner(p.units, w[:p.n.units]))
}

// study runs a piece of a lesson forward and backward, and adds to the gradient. judge sets what is wrong with a frame, in
// head. units are those after the piece, in place of those before.
func study(n, g *gru, frames int, units []float32, inputs func(i int) []float32, judge func(p *pass, i int) float64) (loss float64) {
	passes := make([]*pass, frames)
	for i := range passes {
		p := newPass(n)
		passes[i] = p
		copy(p.x, inputs(i))
		copy(p.x[n.inputs:], units)
		for u := range units {
			p.update[u] = squash(n.bias[0][u] + inner(p.x, n.gate[0][u]))
			p.reset[u] = squash(n.bias[1][u] + inner(p.x, n.gate[1][u]))
			w := n.gate[2][u]
			p.under[u] = n.bias[3][u] + inner(p.x[n.inputs:], w[n.inputs:])
			p.fresh[u] = tanh(n.bias[2][u] + inner(p.x[:n.inputs], w[:n.inputs]) + p.reset[u]*p.under[u])
			p.units[u] = p.fresh[u] + p.update[u]*(p.x[n.inputs+u]-p.fresh[u])
		}
		copy(units, p.units)
		loss += judge(p, i)
	}
	d := make([]float32, n.units)
	for i := len(passes) - 1; i >= 0; i-- {
		passes[i].back(g, d)
	}
	return loss
}

// back adds this frame's gradient of the weights to g; d is the gradient of the units, and becomes that of the former
// units.
func (p *pass) back(g *gru, d []float32) {
	n := p.n
	for h, e := range p.head {
		if e != 0 {
			along(g.head[h][:n.units], p.units, e)
			g.head[h][n.units] += e
			along(d, n.head[h][:n.units], e)
		}
	}
	before := make([]float32, n.units)
	for u := range d {
		z, r, f := p.update[u], p.reset[u], p.fresh[u]
		before[u] += d[u] * z
		update := d[u] * (p.x[n.inputs+u] - f) * z * (1 - z)
		fresh := d[u] * (1 - z) * (1 - f*f)
		reset := fresh * p.under[u] * r * (1 - r)
		along(g.gate[0][u], p.x, update)
		along(g.gate[1][u], p.x, reset)
		along(g.gate[2][u][:n.inputs], p.x[:n.inputs], fresh)
		along(g.gate[2][u][n.inputs:], p.x[n.inputs:], fresh*r)
		g.bias[0][u] += update
		g.bias[1][u] += reset
		g.bias[2][u] += fresh
		g.bias[3][u] += fresh * r
		along(before, n.gate[0][u][n.inputs:], update)
		along(before, n.gate[1][u][n.inputs:], reset)
		along(before, n.gate[2][u][n.inputs:], fresh*r)
	}
	copy(d, before)
}
