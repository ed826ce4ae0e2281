package rtp

import (
	"net/netip"
	"testing"
	"time"

	"parley/internal/audio"
	"parley/internal/crash"
)

// A packet on which a decoder panics ends its own session: the session takes and sends nothing more, says why once, and no lock is
// held. The panic may come with the packet, or in a tick, when a packet that waited for another is decoded.
func TestDecoderPanics(t *testing.T) {
	for name, format := range map[string]audio.Format{"packet": audio.PCMU, "tick": audio.Opus} {
		t.Run(name, func(t *testing.T) {
			peer := &still{}
			m, w := desk(t, format, true, peer)
			to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(m.socket.Port))
			sound := audio.NewEncoder(format).Encode(nil, tone(format.Rate(), 500))
			send := func(seq uint16) {
				p := packet(format.PayloadType(), false, seq, uint32(seq)*uint32(format.ClockRate()/50), 9, sound)
				if _, err := w.WriteToUDPAddrPort(p, to); err != nil {
					t.Error(err)
				}
			}
			m.mu.Lock()
			m.decoder = &audio.Decoder{} // has no codec
			m.mu.Unlock()
			done, seen, over := make(chan struct{}), 0, make(chan struct{})
			go func() {
				defer close(over)
				m.Run(done, func() {
					if seen == 0 && crash.Is(m.Failed()) {
						close(done)
						seen++
					}
				})
			}()
			send(1)
			send(3) // in its turn only when the one before is given up
			select {
			case <-over:
			case <-time.After(hang):
				t.Fatal("the session goes on")
			}
			m.mu.Lock()
			m.decoder = audio.NewDecoder(format) // what came would be heard now
			m.mu.Unlock()
			first, heard, stats := m.Failed(), peer.heard, m.Stats()
			m.packet(packet(format.PayloadType(), false, 4, 4*960, 9, sound), w.addr(), m.time())
			m.tick(m.time(), 0)
			if now := m.Stats(); m.Failed() != first || peer.heard != heard || now.Sent != stats.Sent || now.Received != stats.Received {
				t.Errorf("it went on: %v, %d frames heard, before %+v, now %+v", m.Failed(), peer.heard-heard, stats, now)
			}
		})
	}
}
