package sip

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/internal/parley"
)

// TestReports: the far end gets the goodbye of the sound where its description says, and the leg keeps the counts.
func TestReports(t *testing.T) {
	t.Parallel()
	for name, attribute := range map[string]func(other *wire) string{
		"the port after": func(*wire) string { return "a=ptime:20" },
		"another":        func(other *wire) string { return "a=rtcp:" + strconv.Itoa(int(other.addr().Port())) },
		"the same":       func(*wire) string { return "a=rtcp-mux" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, a, w := taker(t, 1000)
			c := w.call(s, "")
			in := a.next(t)
			other := newWire(t, "127.0.0.1")
			res := c.ask("INVITE", sdp(c.rtp.addr(), attribute(other)))
			c.ack("")
			if !strings.HasPrefix(res, "SIP/2.0 200") || strings.Contains(res, "a=rtcp-mux") != (name == "the same") {
				t.Fatalf("answered with\n%s", res)
			}
			hush := c.rtp.talk(c.media(), 440, 1)
			in.phone.hears(t, 440)
			hush()
			c.ask("BYE", "")
			in.ends(t, parley.CustomerHangup)
			conn := map[string]*net.UDPConn{"the port after": c.rtp.control, "another": other.UDPConn,
				"the same": c.rtp.UDPConn}[name]
			for goodbye := false; !goodbye; {
				buf := make([]byte, 2048)
				_ = conn.SetReadDeadline(time.Now().Add(hang))
				n, _, err := conn.ReadFromUDPAddrPort(buf)
				if err != nil {
					t.Fatal("the end of the sound is not told")
				}
				b := buf[:n]
				if b[1] != 200 { // sound
					continue
				}
				for len(b) >= 8 {
					goodbye = goodbye || b[1] == 203 // in a report, the last of its packets
					b = b[min(len(b), 4+4*(int(b[2])<<8|int(b[3]))):]
				}
			}
			stats := in.leg.(*leg).Stats()
			if stats.Received == 0 || stats.Sent == 0 || stats.Lost != 0 {
				t.Errorf("the counts are %+v", stats)
			}
		})
	}
}
