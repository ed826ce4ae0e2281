package rtp

import "time"

// flood limits how much sound is decoded, as a packet of Opus can have 120 ms of it and more of them can come than a call
// needs: in the long run no more than twice the time that passes. What the network held back for a few seconds and sends
// at once is taken.
type flood struct {
	began   bool
	at      time.Duration // when the last packet came
	left    time.Duration // of sound that is taken now
	refused int
}

const maxSoundAhead = 5 * time.Second

// takes reports whether a packet that has come is decoded, by how long its sound is; 0: it can't be sound.
func (f *flood) takes(sound, at time.Duration) bool {
	if !f.began {
		f.began, f.at, f.left = true, at, maxSoundAhead
	}
	f.left = min(f.left+2*max(at-f.at, 0), maxSoundAhead)
	f.at = max(f.at, at)
	if sound == 0 || sound > f.left {
		f.refused++
		return false
	}
	f.left -= sound
	return true
}
