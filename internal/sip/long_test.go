package sip

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	sipgo "github.com/emiago/sipgo/sip"
)

// spelled returns a message with the long names of the headers that a far end needs.
func spelled(m string) string {
	for short, name := range map[string]string{"v": "Via", "f": "From", "t": "To", "i": "Call-ID", "m": "Contact"} {
		m = strings.Replace(m, "\r\n"+short+": ", "\r\n"+name+": ", 1)
	}
	return m
}

// streamFar listens for TCP at a far end's address, and passes each message to take, which returns a status to answer
// with, "" for no answer.
func streamFar(t *testing.T, take func(m string) string) *far {
	t.Helper()
	for {
		f := newFar(t)
		l, err := net.Listen("tcp", f.addr().String())
		if err != nil {
			continue // the port is in use over TCP
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				t.Cleanup(func() { c.Close() })
				go answerStream(c, take)
			}
		}()
		return f
	}
}

func answerStream(c net.Conn, take func(m string) string) {
	var in []byte
	buf := make([]byte, 8192)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		in = append(in, buf[:n]...)
		size, err := messageSize(in)
		if size == 0 || err != nil {
			continue
		}
		m := string(in[:size])
		in = in[size:]
		status := take(m)
		if status == "" {
			continue
		}
		lines := []string{"SIP/2.0 " + status}
		for _, name := range []string{"Via", "From", "Call-ID", "CSeq"} {
			lines = append(lines, name+": "+field(m, name))
		}
		lines = append(lines, "To: "+field(m, "To")+";tag=far", "Content-Length: 0", "", "")
		_, _ = c.Write([]byte(strings.Join(lines, "\r\n")))
	}
}

// TestLargeInvite: an INVITE that doesn't fit into a packet goes by TCP, and by UDP where nobody answers over TCP.
func TestLargeInvite(t *testing.T) {
	t.Parallel()
	headers := map[string]string{}
	for i := range 10 {
		headers[fmt.Sprintf("X-Long-%d", i)] = strings.Repeat("x", 150)
	}
	call := func(t *testing.T, s *Server, f *far) <-chan error {
		out := make(chan error, 1)
		go func() {
			_, err := s.Dial(soon(t), Dialling{Trunk: f.trunk(), To: "+15550001111", From: "+15550002222", Headers: headers})
			out <- err
		}()
		return out
	}
	byUDP := func(t *testing.T, f *far, seq string) {
		t.Helper()
		m := spelled(f.take("INVITE"))
		if field(m, "CSeq") != seq {
			t.Errorf("CSeq %q, want %q", field(m, "CSeq"), seq)
		}
		f.reply(m, "486 Busy Here", "")
		f.take("ACK")
	}
	t.Run("it takes TCP", func(t *testing.T) {
		t.Parallel()
		came := make(chan string, 9)
		f := streamFar(t, func(m string) string {
			if came <- m; strings.HasPrefix(m, "INVITE ") {
				return "480 Temporarily Unavailable"
			}
			return ""
		})
		s := start(t, Config{})
		if err := get(t, call(t, s, f)); codeOf(err) != "480" {
			t.Error(err)
		}
		m := get(t, came)
		if via := field(m, "Via"); !strings.HasPrefix(via, "SIP/2.0/TCP ") || field(m, "Call-ID") == "" ||
			strings.Contains(field(m, "Contact"), "transport") {
			t.Errorf("over TCP came\n%s", m)
		}
		if ack := get(t, came); !strings.HasPrefix(ack, "ACK ") {
			t.Errorf("over TCP came\n%s", ack)
		}
		if m := f.receive(time.Millisecond); m != "" {
			t.Errorf("it came by UDP, too:\n%s", m)
		}
	})
	t.Run("it takes none", func(t *testing.T) {
		t.Parallel()
		f, s := newFar(t), start(t, Config{})
		for range 2 {
			out := call(t, s, f)
			byUDP(t, f, "1 INVITE")
			if err := get(t, out); codeOf(err) != "486" {
				t.Error(err)
			}
		}
		if !s.deaf.has(f.addr()) {
			t.Error("it would be tried again")
		}
	})
	t.Run("it says nothing over TCP", func(t *testing.T) {
		t.Parallel()
		came := make(chan string, 9)
		f := streamFar(t, func(m string) string { came <- m; return "" })
		s := prepare(t, Config{})
		s.passing = 4 * sipgo.T1
		launch(t, s)
		out := call(t, s, f)
		get(t, came)
		byUDP(t, f, "2 INVITE")
		if err := get(t, out); codeOf(err) != "486" {
			t.Error(err)
		}
		out = call(t, s, f)
		byUDP(t, f, "1 INVITE") // at once
		if err := get(t, out); codeOf(err) != "486" {
			t.Error(err)
		}
		if len(came) > 0 {
			t.Errorf("over TCP came\n%s", <-came)
		}
	})
}
