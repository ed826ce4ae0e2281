package audio

// melody says whether what sounds is music. Notes stay where they are for an eighth of a second and longer, where the
// pitch of a voice glides and its syllables follow each other; and speech is full of gaps, and music is not. A voice
// that sings, and music that is all drums, it doesn't tell from speech.
type melody struct {
	fine   [melodyLag + 1]lines
	frames int
	peak   float64 // dB: the loudest frame lately
	steady float64 // how alike the tones are to those an eighth of a second before, lately
	gaps   float64 // the share of frames that are much fainter than the loudest, lately
	silent int     // frames since there was any sound
	run    int     // frames since this sound began
}

const (
	melodyLag    = 6        // frames
	melodyQuiet  = -50      // dBFS: nothing below is music
	melodyGap    = 15       // dB
	melodyFade   = 0.06     // dB by which the loudest frame is forgotten with each one
	melodySlow   = 1.0 / 75 // frames: lately is a second and a half
	melodyTime   = 100      // frames, 2 s: so much of a sound is heard before it is judged,
	melodyAgain  = 25       // and then it is told every half a second
	minMelody    = 0.38     // so much more alike than broken by gaps is music
	melodySilent = 50       // frames, 1 s: what comes after so much silence is another sound
)

// hear takes a frame's spectrum and its level in dBFS, and says whether music has sounded for a while.
func (m *melody) hear(spectrum []complex64, level float64) bool {
	m.frames++
	now, before := &m.fine[m.frames%len(m.fine)], &m.fine[(m.frames+1)%len(m.fine)]
	now.set(spectrum)
	if level < melodyQuiet {
		if m.silent++; m.silent >= melodySilent {
			m.run, m.steady, m.gaps = 0, 0, 0
		}
	} else {
		m.silent = 0
	}
	switch {
	case m.run == 0 && m.silent > 0:
		return false
	case m.run == 0:
		m.peak = level
	}
	m.run++
	m.peak = max(level, m.peak-melodyFade)
	slow := max(melodySlow, 1/float64(m.run))
	gap := 0.0
	if level < m.peak-melodyGap {
		gap = 1
	} else if m.run > melodyLag {
		m.steady += slow * (float64(now.like(before)) - m.steady)
	}
	m.gaps += slow * (gap - m.gaps)
	return m.run >= melodyTime && m.run%melodyAgain == 0 && gap == 0 && m.silent == 0 && m.steady-m.gaps >= minMelody
}
