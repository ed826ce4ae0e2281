package opus

// allocation is how the bits of a frame are shared between its bands (section 4.3.3): for the shape of each, in eighths
// of bits, and for its fine energy, in bits. Encoder and decoder find the same from the number of bits alone.
type allocation struct {
	shape   [bands]int
	fine    [bands]int
	later   [bands]bool // the band's energy is among the last to get left over bits
	coded   int         // bands with a shape
	balance int         // what is left over for them
}

// binsOf is the number of bins in a band.
func binsOf(i int) int { return (edges[i+1] - edges[i]) << logShorts }

// most is what a band can use, in eighths of bits.
func most(i int) int { return (limits[i] + 64) * binsOf(i) >> 2 }

// share divides so many eighths of bits. Bands above highest, which have no sound, are left out where the format lets
// us.
func (a *allocation) share(c *coder, total, highest int) {
	total = max(total, 0)
	skipping := 0
	if total >= 1<<eighth {
		skipping = 1 << eighth
	}
	total -= skipping
	var least, moved, low, more [bands]int
	for i := range bands {
		width := edges[i+1] - edges[i]
		least[i] = max(1<<eighth, 3*width<<logShorts<<eighth>>4)
		moved[i] = width * (tilt - 5 - logShorts) * (bands - i - 1) * (1 << (logShorts + eighth)) >> 6
	}
	wanted := func(row, i int) int {
		b := most(i)
		if row < len(shares) {
			b = binsOf(i) * shares[row][i] >> 2
		}
		if b > 0 {
			b = max(0, b+moved[i])
		}
		return b
	}
	from, to := 1, len(shares)-1
	for from <= to {
		mid := (from + to) >> 1
		if sum(&least, func(i int) int { return wanted(mid, i) }) > total {
			to = mid - 1
		} else {
			from = mid + 1
		}
	}
	for i := range bands {
		low[i] = wanted(from-1, i)
		more[i] = max(0, wanted(from, i)-low[i])
	}
	const parts = 6 // between two rows
	at, high := 0, 1<<parts
	for range parts {
		mid := (at + high) >> 1
		if sum(&least, func(i int) int { return low[i] + mid*more[i]>>parts }) > total {
			high = mid
		} else {
			at = mid
		}
	}
	spent, begun := 0, false
	for i := bands - 1; i >= 0; i-- {
		b := low[i] + at*more[i]>>parts
		switch begun = begun || b >= least[i]; {
		case begun:
		case b >= 1<<eighth:
			b = 1 << eighth
		default:
			b = 0
		}
		a.shape[i] = min(b, most(i))
		spent += a.shape[i]
	}
	a.skip(c, total, spent, skipping, highest, &least)
}

// sum is what the bands take that want so much; those at the upper end that get too little take hardly any.
func sum(least *[bands]int, wanted func(i int) int) (total int) {
	begun := false
	for i := bands - 1; i >= 0; i-- {
		b := wanted(i)
		switch begun = begun || b >= least[i]; {
		case begun:
			total += min(b, most(i))
		case b >= 1<<eighth:
			total += 1 << eighth
		}
	}
	return total
}

// skip says which bands at the upper end go without a shape, and shares what they leave.
func (a *allocation) skip(c *coder, total, spent, skipping, highest int, least *[bands]int) {
	for a.coded = bands; ; a.coded-- {
		i := a.coded - 1
		if i == 0 { // the first band is never left out
			total += skipping
			break
		}
		left := total - spent
		each := left / edges[a.coded]
		left -= edges[a.coded] * each
		width := edges[a.coded] - edges[i]
		b := a.shape[i] + each*width + max(left-edges[i], 0)
		if b >= max(least[i], 2<<eighth) {
			keep := a.coded <= 2 || b > width<<logShorts<<eighth>>1 && i <= highest
			c.bit(keep, 1)
			if keep {
				break
			}
			spent += 1 << eighth
			b -= 1 << eighth
		}
		spent -= a.shape[i]
		a.shape[i] = 0
		if b >= 1<<eighth {
			a.shape[i] = 1 << eighth
			spent += 1 << eighth
		}
	}
	left := total - spent
	each := left / edges[a.coded]
	left -= edges[a.coded] * each
	for i := range a.coded {
		width := edges[i+1] - edges[i]
		extra := min(left, width)
		a.shape[i] += each*width + extra
		left -= extra
	}
	a.refine()
}

// refine divides each band's bits between its energy and its shape.
func (a *allocation) refine() {
	a.balance = 0
	for i := range a.coded {
		n := binsOf(i)
		b := a.shape[i] + a.balance
		over := max(b-most(i), 0)
		b -= over
		log := n * (logWidths[i] + logShorts<<eighth)
		offset := log>>1 - n*fineOffset
		switch {
		case b+offset < n*2<<eighth:
			offset += log >> 2
		case b+offset < n*3<<eighth:
			offset += log >> 3
		}
		fine := max(0, b+offset+n<<(eighth-1)) / n >> eighth
		if fine > b>>eighth {
			fine = b >> eighth
		}
		fine = min(fine, maxFine)
		a.later[i] = fine*n<<eighth >= b+offset
		b -= fine << eighth
		if over > 0 {
			extra := min(over>>eighth, maxFine-fine)
			fine += extra
			a.later[i] = extra<<eighth >= over-a.balance
			over -= extra << eighth
		}
		a.shape[i], a.fine[i], a.balance = b, fine, over
	}
	for i := a.coded; i < bands; i++ {
		a.fine[i] = a.shape[i] >> eighth
		a.shape[i] = 0
		a.later[i] = a.fine[i] < 1
	}
}
