// Package mailtest is a mail server for tests: it speaks SMTP (RFC 5321) with STARTTLS (RFC 3207) and PLAIN (RFC 4954), keeps
// what it is given, and refuses what it is told to.
package mailtest

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	"net/mail"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"
)

// Message is what somebody was sent.
type Message struct {
	From, To string // of the envelope
	Header   mail.Header
	Text     string
	User     string // who had signed in
	TLS      bool
}

// Server is a mail server on loopback.
type Server struct {
	Address  string // host:port
	User     string // with Password: who must sign in; empty: nobody
	Password string

	Deferred int    // so many messages are refused for now first
	Refused  string // the address that has no mailbox here
	Plain    bool   // offers no STARTTLS

	t        testing.TB
	mu       sync.Mutex
	got      []Message
	news     chan struct{}
	tls      *tls.Config
	sessions sync.WaitGroup
}

// Serve starts a server that ends with the test. Its fields may be set until the first message.
func Serve(t testing.TB) *Server {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewTLSServer(nil) // for its certificate
	h.Close()
	s := &Server{Address: l.Addr().String(), t: t, news: make(chan struct{}, 1), tls: h.TLS}
	s.sessions.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.sessions.Go(func() { s.talk(c) })
		}
	})
	t.Cleanup(func() { l.Close(); s.sessions.Wait() })
	return s
}

// URL is the server's, for PARLEY_SMTP_URL, without encryption.
func (s *Server) URL() string {
	who := ""
	if s.User != "" {
		who = s.User + ":" + s.Password + "@"
	}
	return "smtp://" + who + s.Address + "?tls=off"
}

// Messages are those that came so far.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Message(nil), s.got...)
}

// Wait returns the messages once there are n.
func (s *Server) Wait(n int) []Message {
	s.t.Helper()
	late := time.After(20 * time.Second)
	for {
		if list := s.Messages(); len(list) >= n {
			return list
		}
		select {
		case <-s.news:
		case <-late:
			s.t.Fatalf("%d messages came, not %d", len(s.Messages()), n)
		}
	}
}

// talk is one session.
func (s *Server) talk(c net.Conn) {
	defer func() { c.Close() }()
	c.SetDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // it guards against a hang
	var m Message
	r := textproto.NewReader(bufio.NewReader(c))
	say := func(format string, args ...any) { fmt.Fprintf(c, format+"\r\n", args...) }
	say("220 mailtest ESMTP")
	for {
		line, err := r.ReadLine()
		if err != nil {
			return
		}
		verb, rest, _ := strings.Cut(line, " ")
		switch strings.ToUpper(verb) {
		case "EHLO", "HELO":
			list := []string{"mailtest", "8BITMIME", "AUTH PLAIN"}
			if !s.Plain && !m.TLS {
				list = append(list, "STARTTLS")
			}
			for i, l := range list {
				say("250%s%s", map[bool]string{true: " ", false: "-"}[i == len(list)-1], l)
			}
		case "STARTTLS":
			say("220 go ahead")
			c = tls.Server(c, s.tls)
			r, m = textproto.NewReader(bufio.NewReader(c)), Message{TLS: true}
		case "AUTH":
			m.User = s.auth(rest)
			if m.User == "" {
				say("535 5.7.8 wrong password")
				return
			}
			say("235 2.7.0 welcome")
		case "MAIL":
			if s.User != "" && m.User == "" {
				say("530 5.7.0 sign in first")
				return
			}
			m.From = address(rest)
			say("250 ok")
		case "RCPT":
			if m.To = address(rest); m.To == s.Refused {
				say("550 5.1.1 no such mailbox")
				continue
			}
			say("250 ok")
		case "DATA":
			s.data(r, m, say)
		case "NOOP", "RSET":
			say("250 ok")
		case "QUIT":
			say("221 bye")
			return
		default:
			say("502 not known here")
		}
	}
}

// auth returns the user that signs in with PLAIN, or nothing.
func (s *Server) auth(line string) string {
	_, word, _ := strings.Cut(line, " ")
	raw, _ := base64.StdEncoding.DecodeString(word)
	if parts := strings.Split(string(raw), "\x00"); len(parts) == 3 && parts[1] == s.User && parts[2] == s.Password {
		return s.User
	}
	return ""
}

// data takes a message.
func (s *Server) data(r *textproto.Reader, m Message, say func(string, ...any)) {
	say("354 end with a dot")
	raw, err := io.ReadAll(r.DotReader())
	if err != nil {
		return
	}
	s.mu.Lock()
	later := s.Deferred > 0
	if later {
		s.Deferred--
	}
	s.mu.Unlock()
	if later {
		say("451 4.3.0 try again later")
		return
	}
	read, err := mail.ReadMessage(strings.NewReader(string(raw)))
	if err != nil {
		say("554 5.6.0 this is not a message: %v", err)
		return
	}
	m.Header, m.Text = read.Header, body(read)
	s.mu.Lock()
	s.got = append(s.got, m)
	s.mu.Unlock()
	select {
	case s.news <- struct{}{}:
	default:
	}
	say("250 2.0.0 taken")
}

// address is what stands in the brackets of MAIL and RCPT.
func address(s string) string {
	_, s, _ = strings.Cut(s, "<")
	s, _, _ = strings.Cut(s, ">")
	return s
}

// body is the text of a message, as its transfer encoding has it.
func body(m *mail.Message) string {
	r := m.Body
	if strings.EqualFold(m.Header.Get("Content-Transfer-Encoding"), "quoted-printable") {
		r = quotedprintable.NewReader(r)
	}
	text, _ := io.ReadAll(r)
	return strings.ReplaceAll(strings.TrimRight(string(text), "\r\n"), "\r\n", "\n")
}
