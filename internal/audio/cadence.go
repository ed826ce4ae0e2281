package audio

import "math"

// cadence hears how a voice ends: who has finished lets pitch and level fall below what they usually are, ends with
// sounds that have no pitch, and doesn't draw out the last syllable, as those do who are about to go on. What is usual is
// the speaker's own. It is computed from what the VAD knows of each frame, at the first frame of a pause.
type cadence struct {
	pitches [cadencePitches]uint16 // how often each was heard, in half semitones
	levels  [cadenceLevels]uint16  // likewise of frames of speech, in dB
	pitched int                    // frames with a pitch
	spoken  int                    // frames of speech
	high    float32                // dB that one frame of speech in ten exceeds

	recent   [cadenceLong]sounding // the newest frames, the last of them at at
	at       int
	nucleus  int     // frames of the nucleus of a syllable that goes on
	last     int     // and of the one before
	since    int     // frames since that ended
	usual    float32 // their mean before the last one
	nuclei   int
	speaking bool
	ending   cadenceTraits // of the last speech
	score    float32
}

// sounding is a frame: its pitch in half semitones, 0 without one, and its level in dB.
type sounding struct{ pitch, level float32 }

const (
	cadenceLong    = 25 // frames, half a second: so much tells the pitch at the end
	cadenceShort   = 12 // and so much the level
	cadencePitches = 72 // from 65 Hz on
	cadenceLevels  = 112
	minCadence     = 25   // frames with a pitch, without which nothing is known of a speaker
	cadenceMemory  = 3000 // frames, a minute of speech, after which older ones count half
	cadencePitch   = 0.55 // so clear is the pitch of a nucleus
	cadenceBelow   = 14   // dB below the loudest frames: so loud is a nucleus at least
	cadenceNucleus = 6    // frames of one, as long as none is known
	cadenceFold    = 18   // half semitones from the usual pitch: it must be an octave off
	maxCadence     = 1    // of a score: nobody speaks in so clear a way that the words count for nothing
)

// cadenceTraits are what is measured of an end, in the order of cadenceWeights.
type cadenceTraits [4]float32

// cadenceWeights are the logarithms of odds that a unit of each trait is worth, and of an end without any.
// TestCadenceTrain has learned them.
var cadenceWeights = [len(cadenceTraits{}) + 1]float32{-0.41, -0.32, -0.21, 0.20, -0.46}

// hear takes a frame: whether it is speech, how clear a pitch it has, which (as pitch gives it), and its level in dB.
func (c *cadence) hear(voiced bool, clear, high float32, loud float64) {
	f := sounding{level: float32(loud)}
	if voiced && clear > cadencePitch {
		f.pitch = 1 + 24*float32(math.Log2(float64(4000/(61-51*high))/65))
	}
	if voiced {
		c.count(f)
	}
	c.syllable(f)
	if c.speaking && !voiced {
		c.judge()
	} else if voiced {
		c.score = 0
	}
	c.speaking = voiced
	c.at = (c.at + 1) % cadenceLong
	c.recent[c.at] = f
}

// count adds a frame to what is usual.
func (c *cadence) count(f sounding) {
	c.levels[bin(f.level, cadenceLevels)]++
	if c.spoken++; c.spoken >= cadenceMemory {
		c.spoken = halve(c.levels[:])
	}
	if c.spoken%16 == 1 {
		c.high = quantile(c.levels[:], c.spoken, 0.9)
	}
	if f.pitch == 0 {
		return
	}
	c.pitches[bin(f.pitch, cadencePitches)]++
	if c.pitched++; c.pitched >= cadenceMemory {
		c.pitched = halve(c.pitches[:])
	}
}

// syllable follows the nuclei of syllables: what is loud and has a pitch.
func (c *cadence) syllable(f sounding) {
	c.since++
	if f.pitch > 0 && f.level > c.high-cadenceBelow {
		c.nucleus++
		return
	}
	if c.nucleus >= 2 {
		if c.last > 0 {
			c.nuclei = min(c.nuclei+1, 100)
			c.usual += (float32(c.last) - c.usual) / float32(c.nuclei)
		}
		c.last, c.since = c.nucleus, 1
	}
	c.nucleus = 0
}

// judge sets the score at the end of speech.
func (c *cadence) judge() {
	c.score = 0
	if c.pitched < minCadence {
		return
	}
	sum := cadenceWeights[len(cadenceWeights)-1]
	c.ending = c.traits()
	for i, x := range c.ending {
		sum += cadenceWeights[i] * x
	}
	c.score = min(max(sum, -maxCadence), maxCadence)
}

// traits measures the end of speech.
func (c *cadence) traits() (t cadenceTraits) {
	middle, level := quantile(c.pitches[:], c.pitched, 0.5), quantile(c.levels[:], c.spoken, 0.5)
	sum, n, peak := float32(0), float32(0), float32(-100)
	for i := range cadenceLong {
		f := c.recent[(c.at+cadenceLong-i)%cadenceLong]
		if i < cadenceShort {
			peak = max(peak, f.level)
		}
		if f.pitch == 0 {
			continue
		}
		if off := f.pitch - middle; off > cadenceFold {
			f.pitch -= 24
		} else if off < -cadenceFold {
			f.pitch += 24
		}
		sum, n = sum+f.pitch-middle, n+1
	}
	usual := c.usual
	if c.nuclei == 0 {
		usual = cadenceNucleus
	}
	t[0] = min(max(sum/max(n, 1)/8, -2), 2)  // 4 semitones
	t[1] = min(max((peak-level-3)/6, -2), 2) // dB
	t[2] = float32(math.Log(float64(c.last+1) / float64(usual+1)))
	t[3] = float32(min(c.since-1, cadenceShort)) / 6
	return t
}

func bin(x float32, n int) int { return min(max(int(x+0.5), 0), n-1) }

// quantile is what a share of n values is below.
func quantile(counts []uint16, n int, share float32) float32 {
	left := share * float32(n)
	for i, c := range counts {
		if left -= float32(c); left <= 0 {
			return float32(i) + left/float32(max(c, 1)) + 0.5
		}
	}
	return float32(len(counts))
}

// halve forgets half of the values, and gives how many are left.
func halve(counts []uint16) (n int) {
	for i := range counts {
		counts[i] /= 2
		n += int(counts[i])
	}
	return n
}

// Cadence says, in a pause, how much the voice before it sounded like the end of what somebody has to say, in logarithms of
// odds from -1 to 1; 0 while they speak, and where too little of their voice is known.
func (v *VAD) Cadence() float32 { return v.cadence.score }
