package audio

import "math"

// MusicLevel is the rms of the hold music, in dBFS: about as loud as speech.
const MusicLevel = -24

// NewMusic makes what people hear while they wait: a quiet figure of broken chords, as a loop of 16 seconds without a
// seam. It is made of tones here, so it belongs to nobody.
func NewMusic(rate Rate) *Ambient {
	s := &scene{rate: float64(rate), sound: make([]float64, ambientSeconds*int(rate))}
	const beat = 0.5                                                                           // seconds
	chords := [][4]int{{57, 60, 64, 67}, {53, 57, 60, 64}, {48, 55, 60, 64}, {55, 59, 62, 67}} // Am7, F, C, G
	for i := range ambientSeconds * 2 {
		chord := chords[i/8%len(chords)]
		s.note(float64(i)*beat, 0.5, chord[[]int{0, 1, 2, 3, 2, 3, 1, 2}[i%8]]+12)
		if i%8 == 0 {
			s.note(float64(i)*beat, 0.8, chord[0]-12)
		}
	}
	return s.loop(MusicLevel)
}

// note is a plucked tone, by its number as in MIDI: 69 is 440 Hz.
func (s *scene) note(at, amplitude float64, number int) {
	hz := 440 * math.Pow(2, float64(number-69)/12)
	for i := range int(2.5 * s.rate) {
		t := float64(i) / s.rate
		v := math.Sin(2*math.Pi*hz*t) + 0.3*math.Sin(4*math.Pi*hz*t)*math.Exp(-3*t)
		s.add(int(at*s.rate)+i, amplitude*v*min(t/0.01, 1)*math.Exp(-2*t))
	}
}
