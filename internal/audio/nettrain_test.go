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

// outgrow gives a network what a smaller one has learned. What it has more of begins at random, and is hardly listened to at first.
func (n *gru) outgrow(old *gru, r *rand.Rand) {
	n.forget(r)
	for g, rows := range n.gate {
		for u, row := range rows[:old.units] {
			for i := range row {
				row[i] = float32(r.NormFloat64() * 0.01)
			}
			copy(row, old.gate[g][u][:old.inputs])
			clear(row[n.inputs:])
			copy(row[n.inputs:], old.gate[g][u][old.inputs:])
		}
	}
	for k := range n.bias {
		clear(n.bias[k][old.units:])
		copy(n.bias[k], old.bias[k])
	}
	for u := old.units; u < n.units; u++ {
		n.bias[0][u] = 1
	}
	for h, row := range n.head {
		for u := range row {
			row[u] = float32(r.NormFloat64() * 0.01)
		}
		copy(row, old.head[h][:old.units])
		row[n.units] = old.head[h][old.units]
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

// says is the probability that a value above the units stands for.
func (p *pass) says(head int) float32 {
	w := p.n.head[head]
	return squash(w[p.n.units] + inner(p.units, w[:p.n.units]))
}

// study runs a piece of a lesson forward and backward, and adds to the gradient. judge sets what is wrong with a frame, in
// head. units are those after the piece, in place of those before. Sums over whole rows take much less time than one
// product after the other, so weights are turned and what is wrong with all frames is kept.
func study(n, g *gru, frames int, units []float32, inputs func(i int) []float32, judge func(p *pass, i int) float64) (loss float64) {
	I, U, H := n.inputs, n.units, len(n.head)
	W := I + U
	rest := make([]float32, frames*(W+5*U+H)+3*W*U+frames*(4*U+H)+6*U)
	take := func(size int) (part []float32) {
		part, rest = rest[:size:size], rest[size:]
		return part
	}
	x, after := take(frames*W), take(frames*U)
	var turned [3][]float32
	for k := range turned {
		turned[k] = take(W * U)
		for u, w := range n.gate[k] {
			for i, v := range w {
				turned[k][i*U+u] = v
			}
		}
	}
	passes := make([]pass, frames)
	for i := range passes {
		p := &passes[i]
		*p = pass{n: n, x: x[i*W : (i+1)*W], update: take(U), reset: take(U), fresh: take(U), under: take(U),
			units: after[i*U : (i+1)*U], head: take(H)}
		copy(p.x, inputs(i))
		copy(p.x[I:], units)
		copy(p.update, n.bias[0])
		copy(p.reset, n.bias[1])
		copy(p.fresh, n.bias[2])
		copy(p.under, n.bias[3])
		gather(p.update, p.x, turned[0], U)
		gather(p.reset, p.x, turned[1], U)
		gather(p.fresh, p.x[:I], turned[2], U)
		gather(p.under, p.x[I:], turned[2][I*U:], U)
		for u := range units {
			p.update[u], p.reset[u] = squash(p.update[u]), squash(p.reset[u])
			p.fresh[u] = tanh(p.fresh[u] + p.reset[u]*p.under[u])
			p.units[u] = p.fresh[u] + p.update[u]*(units[u]-p.fresh[u])
		}
		copy(units, p.units)
		loss += judge(p, i)
	}
	var wrong [4][]float32 // of update, reset, fresh, and what fresh hears of the former units
	for k := range wrong {
		wrong[k] = take(frames * U)
	}
	heads, d, before := take(frames*H), take(U), take(U)
	var now [4][]float32
	for k := range now {
		now[k] = take(U)
	}
	for i := frames - 1; i >= 0; i-- {
		p := &passes[i]
		for h, e := range p.head {
			if e != 0 {
				heads[h*frames+i] = e
				g.head[h][U] += e
				along(d, n.head[h][:U], e)
			}
		}
		for u := range d {
			z, r, f := p.update[u], p.reset[u], p.fresh[u]
			before[u] = d[u] * z
			fresh := d[u] * (1 - z) * (1 - f*f)
			now[0][u] = d[u] * (p.x[I+u] - f) * z * (1 - z)
			now[1][u] = fresh * p.under[u] * r * (1 - r)
			now[2][u] = fresh
			now[3][u] = fresh * r
			for k := range wrong {
				wrong[k][u*frames+i] = now[k][u]
				g.bias[k][u] += now[k][u]
			}
		}
		for k, e := range [][]float32{now[0], now[1], now[3]} {
			gather(before, e, n.all[k*U*W+I:], W)
		}
		d, before = before, d
	}
	for u := range U {
		e := func(k int) []float32 { return wrong[k][u*frames : (u+1)*frames] }
		gather(g.gate[0][u], e(0), x, W)
		gather(g.gate[1][u], e(1), x, W)
		gather(g.gate[2][u][:I], e(2), x, W)
		gather(g.gate[2][u][I:], e(3), x[I:], W)
	}
	for h := range H {
		gather(g.head[h][:U], heads[h*frames:(h+1)*frames], after, U)
	}
	return loss
}

func tanh(x float32) float32 { return 2*squash(2*x) - 1 }
