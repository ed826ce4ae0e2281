package sip

import (
	"strings"
	"testing"
	"time"

	"parley/internal/parley"
)

// TestFindings: what a trunk's answer to OPTIONS reveals, in words; a trunk that does not answer gets no findings.
func TestFindings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trunk   func(*Trunk)
		status  string
		body    string
		via     string // added to the parameters of our Via
		headers []string
		want    map[string]string // by topic: a state, and a part of the text
	}{
		"well": {body: "v=0\r\nm=audio 0 RTP/AVP 9 8 18 101\r\na=rtpmap:101 telephone-event/8000\r\na=rtpmap:18 G729/8000\r\n",
			headers: []string{"Server: PBX 1.0"},
			want: map[string]string{"dns": "ok no name had to", "options": "ok PBX 1.0 (200 OK)", "registration": "note No registration",
				"nat": "ok no NAT", "codecs": "ok It takes G722, PCMA, G729, keys (RFC 4733)."}},
		"silent":  {want: map[string]string{"codecs": "note doesn't say"}},
		"refuses": {status: "404 Not Found", want: map[string]string{"options": "note 404 Not Found"}},
		"strange": {body: "v=0\r\nm=audio 0 RTP/AVP 18\r\na=rtpmap:18 G729/8000\r\n",
			want: map[string]string{"codecs": "fail It takes G729, and none"}},
		"NAT":   {via: ";received=192.0.2.7", want: map[string]string{"nat": "fail PARLEY_EXTERNAL_IP=192.0.2.7"}},
		"port":  {via: ";rport=9", want: map[string]string{"nat": "note port 9 instead of"}},
		"known": {trunk: func(t *Trunk) { t.ByIP = true }, want: map[string]string{"registration": "ok their address"}},
		"keys":  {trunk: func(t *Trunk) { t.SRTP = "required" }, want: map[string]string{"encryption": "note keys go over UDP"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, s := newFar(t), start(t, Config{})
			trunk := f.trunk()
			if c.trunk != nil {
				c.trunk(&trunk)
			}
			type checked struct {
				Health
				error
			}
			out := make(chan checked, 1)
			go func() { h, err := s.Check(soon(t), trunk); out <- checked{h, err} }()
			m := f.take("OPTIONS")
			if c.via == "" {
				c.via = ";rport=" + s.Addr().String()[strings.LastIndexByte(s.Addr().String(), ':')+1:]
			}
			m = strings.Replace(m, ";rport", c.via, 1)
			if c.status == "" {
				c.status = "200 OK"
			}
			f.reply(m, c.status, c.body, c.headers...)
			got := get(t, out)
			if got.error != nil {
				t.Fatal(got.error)
			}
			for topic, want := range c.want {
				state, part, _ := strings.Cut(want, " ")
				found := false
				for _, one := range got.Findings {
					found = found || one.Topic == topic && one.State == parley.FindingState(state) && strings.Contains(one.Text, part)
				}
				if !found {
					t.Errorf("%s: no %q in %+v", topic, want, got.Findings)
				}
			}
		})
	}
	t.Run("absent", func(t *testing.T) {
		t.Parallel()
		s := prepare(t, Config{})
		s.asking = 200 * time.Millisecond
		launch(t, s)
		if h, err := s.Check(soon(t), newFar(t).trunk()); err == nil || len(h.Findings) != 0 {
			t.Errorf("%+v, %v", h, err)
		}
	})
}
