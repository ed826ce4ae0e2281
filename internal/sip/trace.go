package sip

import (
	"math"
	"time"

	"parley/internal/parley"
)

// Media is the audio quality of the call, nil if no audio was agreed on.
func (l *leg) Media() *parley.CallMedia {
	s := l.Stats()
	l.state.Lock()
	codec := l.state.agreed.Codec.Format.String()
	l.state.Unlock()
	if s.Sent+s.Received == 0 {
		return nil
	}
	lost, mos := s.Heard()
	m := &parley.CallMedia{Codec: codec, Encryption: string(s.Suite), Unreadable: s.Unreadable, Refused: s.Refused, Still: s.Still,
		Heard: sound(s.Received, lost, s.Jitter, mos)}
	if m.Strangers = s.Strangers; s.Stranger.IsValid() {
		m.Stranger = s.Stranger.String()
	}
	if s.RoundTrip > 0 {
		ms := s.RoundTrip.Milliseconds()
		m.RoundTripMS = &ms
	}
	if lost, mos, told := s.Said(); told {
		said := sound(s.Sent, lost, s.FarJitter, mos)
		m.Said = &said
	}
	return m
}

func sound(packets int, lost float64, jitter time.Duration, mos float64) parley.CallSound {
	return parley.CallSound{Packets: packets, LossPercent: rounded(100*lost, 100),
		JitterMS: rounded(float64(jitter)/float64(time.Millisecond), 10), MOS: rounded(mos, 100)}
}

func rounded(v, steps float64) float64 { return math.Round(v*steps) / steps }
