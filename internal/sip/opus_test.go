package sip

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/rtp"
	handset "parley/internal/simulator/phone"
)

const opusHead = "v=0\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n"

// TestOpusDescribed: Opus is taken with its payload types, the keys of its clock and the far end's limit, and described
// by RFC 7587, in offers, in answers and in answers that are offered again.
func TestOpusDescribed(t *testing.T) {
	t.Parallel()
	const events8, events48 = "a=rtpmap:101 telephone-event/8000\r\n", "a=rtpmap:110 telephone-event/48000\r\n"
	const opus = "a=rtpmap:111 opus/48000/2\r\n"
	wide := rtp.Codec{Format: audio.Opus, Send: 111, Receive: 111}
	keys := wide
	keys.Event, keys.SendEvent, keys.ReceiveEvent, keys.EventClock = true, 110, 110, 48000
	old := wide
	old.Event, old.SendEvent, old.ReceiveEvent = true, 101, 101
	slow := wide
	slow.Bitrate = 20000
	for name, c := range map[string]struct {
		text string
		want rtp.Codec
	}{
		"alone":             {"m=audio 4000 RTP/AVP 111\r\n" + opus, wide},
		"keys of its clock": {"m=audio 4000 RTP/AVP 111 0 101 110\r\n" + events8 + events48 + opus, keys},
		"keys of 8 kHz":     {"m=audio 4000 RTP/AVP 111 101\r\n" + events8 + opus, old},
		"PCMU is preferred": {"m=audio 4000 RTP/AVP 0 111 110 101\r\n" + events8 + events48 + opus,
			rtp.Codec{Format: audio.PCMU, Event: true, SendEvent: 101, ReceiveEvent: 101}},
		"keys of no use":    {"m=audio 4000 RTP/AVP 0 110\r\n" + events48, rtp.Codec{Format: audio.PCMU}},
		"a limit":           {"m=audio 4000 RTP/AVP 111\r\na=fmtp:111 minptime=10; MaxAverageBitrate=20000;stereo=1\r\n" + opus, slow},
		"an impossible one": {"m=audio 4000 RTP/AVP 111\r\na=fmtp:111 maxaveragebitrate=5;maxaveragebitrate\r\n" + opus, wide},
		"one of another":    {"m=audio 4000 RTP/AVP 111\r\na=fmtp:112 maxaveragebitrate=20000\r\n" + opus, wide},
		"capitals":          {"m=audio 4000 RTP/AVP 111\r\na=rtpmap:111 OPUS/48000/2\r\n", wide},
		"without channels":  {"m=audio 4000 RTP/AVP 111\r\na=rtpmap:111 opus/48000\r\n", wide},
		"of another clock":  {"m=audio 4000 RTP/AVP 111 8\r\na=rtpmap:111 opus/16000\r\n", rtp.Codec{Format: audio.PCMA, Send: 8, Receive: 8}},
		"of several streams": {"m=audio 4000 RTP/AVP 111 8\r\na=rtpmap:111 multiopus/48000/6\r\n",
			rtp.Codec{Format: audio.PCMA, Send: 8, Receive: 8}},
	} {
		d, err := parseSDP([]byte(opusHead + c.text))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := d.audio(0, nil, srtpOff); !ok || got.codec != c.want {
			t.Errorf("%s: %+v, not %+v", name, got.codec, c.want)
		}
	}
	l := local{id: 5, addr: netip.MustParseAddrPort("198.51.100.1:20000")}
	mine := ours{codecs: codecs{audio.Opus, audio.PCMU}}
	offer := string(l.offer(mine, directions["sendrecv"], srtpOff))
	for _, want := range []string{"m=audio 20000 RTP/AVP 96 0 101 102\r\n", "a=rtpmap:96 opus/48000/2\r\n", "a=fmtp:96 maxplaybackrate=16000;",
		"a=rtpmap:101 telephone-event/8000\r\n", "a=rtpmap:102 telephone-event/48000\r\n", "a=rtpmap:0 PCMU/8000\r\n"} {
		if !strings.Contains(offer, want) {
			t.Errorf("the offer lacks %q:\n%s", want, offer)
		}
	}
	d, err := parseSDP([]byte(opusHead + "m=audio 4000 RTP/AVP 111 0 101 110\r\n" + events8 + events48 + opus))
	if err != nil {
		t.Fatal(err)
	}
	c, ok := d.audio(0, &mine, srtpOff)
	if want := (rtp.Codec{Format: audio.Opus, Send: 111, Receive: 96, Event: true, SendEvent: 110, ReceiveEvent: eventWide,
		EventClock: 48000}); !ok || c.codec != want {
		t.Errorf("by the answer %+v, not %+v", c.codec, want)
	}
	answer := string(l.answer(d, choice{codec: keys}, directions["sendrecv"]))
	for _, want := range []string{"m=audio 20000 RTP/AVP 111 110\r\n", opus, "a=fmtp:111 maxplaybackrate=16000;", events48} {
		if !strings.Contains(answer, want) {
			t.Errorf("the answer lacks %q:\n%s", want, answer)
		}
	}
	again, ok := d.audio(0, &ours{codecs: codecs{audio.Opus}, took: &keys}, srtpOff)
	if !ok || again.codec != keys {
		t.Errorf("our answer offered again has %+v, not %+v", again.codec, keys)
	}
}

// TestOpusOfferedAgain: what was taken from the far end's offer keeps its payload types in offers of ours, and nothing
// else gets them.
func TestOpusOfferedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		took  rtp.Codec
		lines []string
		back  string // what an answer takes
		want  rtp.Codec
	}{
		"other numbers": {rtp.Codec{Format: audio.Opus, Send: 111, Receive: 111, Event: true, SendEvent: 110, ReceiveEvent: 110,
			EventClock: 48000},
			[]string{"RTP/AVP 111 9 101 110\r\n", "a=rtpmap:111 opus/48000/2\r\n", "a=rtpmap:110 telephone-event/48000\r\n",
				"a=rtpmap:101 telephone-event/8000\r\n"},
			"111 110\r\na=rtpmap:111 opus/48000/2\r\na=rtpmap:110 telephone-event/48000",
			rtp.Codec{Format: audio.Opus, Send: 111, Receive: 111, Event: true, SendEvent: 110, ReceiveEvent: 110, EventClock: 48000}},
		"the numbers of our events": {rtp.Codec{Format: audio.Opus, Send: 101, Receive: 101, Event: true, SendEvent: 96, ReceiveEvent: 96},
			[]string{"RTP/AVP 101 9 96 102\r\n", "a=rtpmap:101 opus/48000/2\r\n", "a=rtpmap:96 telephone-event/8000\r\n",
				"a=rtpmap:102 telephone-event/48000\r\n"},
			"101 102\r\na=rtpmap:101 opus/48000/2\r\na=rtpmap:102 telephone-event/48000",
			rtp.Codec{Format: audio.Opus, Send: 101, Receive: 101, Event: true, SendEvent: 102, ReceiveEvent: 102, EventClock: 48000}},
		"the number of our Opus": {rtp.Codec{Format: audio.G722, Send: 9, Receive: 9, Event: true, SendEvent: 96, ReceiveEvent: 96},
			[]string{"RTP/AVP 106 9 96 102\r\n", "a=rtpmap:106 opus/48000/2\r\n", "a=rtpmap:96 telephone-event/8000\r\n"},
			"106 102\r\na=rtpmap:106 opus/48000/2\r\na=rtpmap:102 telephone-event/48000",
			rtp.Codec{Format: audio.Opus, Send: 106, Receive: 106, Event: true, SendEvent: 102, ReceiveEvent: 102, EventClock: 48000}},
	} {
		leg := &leg{}
		leg.state.agreed.Codec = c.took
		o := leg.offer(codecs{audio.Opus, audio.G722})
		l := local{id: 5, addr: netip.MustParseAddrPort("198.51.100.1:20000")}
		offer := string(l.offer(*o, directions["sendrecv"], srtpOff))
		for _, want := range c.lines {
			if !strings.Contains(offer, want) {
				t.Errorf("%s: the offer lacks %q:\n%s", name, want, offer)
			}
		}
		d, err := parseSDP([]byte(opusHead + "m=audio 4000 RTP/AVP " + c.back + "\r\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := d.audio(audio.Wide, o, srtpOff); !ok || got.codec != c.want {
			t.Errorf("%s: by the answer %+v, not %+v", name, got.codec, c.want)
		}
	}
}

// TestOpusCall calls a telephone by Opus, and is called by it: sound and keys both ways, by a clock of 48 kHz.
func TestOpusCall(t *testing.T) {
	t.Parallel()
	opened := func() *handset.Phone {
		p, err := handset.Listen()
		if err != nil {
			t.Fatal(err)
		}
		p.Options = handset.Options{Types: []int{96}}
		t.Cleanup(p.Close)
		return p
	}
	talk := func(r *running, c *handset.Call) {
		t.Helper()
		r.phone.await(t, "it is under way", func() bool { return r.phone.ticks > 5 })
		said := c.Say(toneOf(audio.Wide, 440, 75))
		c.Press("12#")
		r.phone.hears(t, 440)
		<-said.Done()
		r.phone.await(t, "keys came", func() bool { return r.phone.keys == "12#" })
		if err := r.leg.Dial("98*"); err != nil {
			t.Error(err)
		}
		r.phone.await(t, "keys went", func() bool { return c.Digits() == "98*" })
		if m := r.leg.(*leg).Media(); m.Codec != "opus" || m.Heard.JitterMS > 100 || m.Heard.MOS < 4 {
			t.Errorf("%+v", m)
		}
		list := c.Packets()
		for i, p := range list[1:] {
			if step := p.TS - list[i].TS; p.Type == 96 && list[i].Type == 96 && (step == 0 || step%960 != 0) {
				t.Fatalf("packet %d comes %d ticks after the one before", i+1, step)
			}
		}
		if heard := c.Sound(); len(heard) < 20000 || share(heard[9600:12800], 1000, audio.Wide) < 0.95 {
			t.Errorf("of %d samples the middle is no tone", len(heard))
		}
	}
	p := opened()
	s := start(t, Config{})
	trunk := Trunk{ID: 7, Number: "+15550002222", Address: p.Addr().String(), Transport: "udp",
		Codecs: []audio.Format{audio.Opus, audio.PCMU}}
	calls := make(chan *handset.Call, 1)
	go func() {
		in, err := p.Next(soon(t))
		if err != nil {
			t.Error(err)
			return
		}
		c, err := in.Answer()
		if err != nil {
			t.Error(err)
		}
		calls <- c
	}()
	l, err := s.Dial(soon(t), Dialling{Trunk: trunk, To: "+15550001111", From: "+15550002222"})
	if err != nil {
		t.Fatal(err)
	}
	r := run(l, newPhone(1000))
	talk(r, get(t, calls))
	r.hangUp(t)

	a := newAnswerer(1000)
	callee := start(t, Config{Softphone: true, Answer: a.answer})
	c, err := opened().Call(soon(t), "visitor", "7", callee.Addr())
	if err != nil {
		t.Fatal(err)
	}
	in := a.next(t)
	talk(in.running, c)
	if err := c.Hold(soon(t)); err != nil {
		t.Fatal(err)
	}
	if err := c.Resume(soon(t)); err != nil {
		t.Fatal(err)
	}
	heard := len(c.Packets())
	in.phone.await(t, "sound goes on after a hold", func() bool { return len(c.Packets()) > heard+10 })
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	in.ends(t, parley.CustomerHangup)
}

// TestOpusJoined joins a leg of Opus with one of PCMU: each telephone hears the other.
func TestOpusJoined(t *testing.T) {
	t.Parallel()
	a := newAnswerer(0)
	s := start(t, Config{Softphone: true, Answer: a.answer})
	pair := audio.NewPair(audio.Wide, audio.Narrow)
	one, two := pair.Ends()
	var calls []*handset.Call
	for _, c := range []struct {
		types int
		end   *audio.End
	}{{96, one}, {0, two}} {
		p, err := handset.Listen()
		if err != nil {
			t.Fatal(err)
		}
		p.Options = handset.Options{Types: []int{c.types}}
		t.Cleanup(p.Close)
		call, err := p.Call(soon(t), "visitor", "7", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		in := a.next(t)
		in.phone.mu.Lock()
		in.phone.through = c.end.Tick
		in.phone.mu.Unlock()
		calls = append(calls, call)
	}
	for i, c := range calls {
		c.Say(toneOf(c.Rate(), 440+float64(i)*400, 200))
	}
	for i, c := range calls {
		n := c.Rate().FrameSize()
		for end := time.Now().Add(hang); ; time.Sleep(20 * time.Millisecond) {
			heard := c.Sound()
			if len(heard) > 100*n && share(heard[len(heard)-20*n:], 440+float64(1-i)*400, c.Rate()) > 0.95 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("telephone %d does not hear the other: %d samples", i, len(heard))
			}
		}
	}
}

// FuzzDescription: no description breaks us, and what is chosen from one can be said.
func FuzzDescription(f *testing.F) {
	f.Add(opusHead + "m=audio 4000 RTP/AVP 111 0 101\r\na=rtpmap:111 opus/48000/2\r\n" +
		"a=fmtp:111 useinbandfec=1;maxaveragebitrate=20000\r\na=ptime:40\r\n")
	f.Add(opusHead + "m=audio 4000 RTP/AVP 96 97\r\na=rtpmap:97 telephone-event/48000\r\na=rtpmap:96 OPUS/48000\r\n" +
		"a=fmtp:96 ;=;maxaveragebitrate=-1\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseSDP([]byte(text))
		if err != nil {
			return
		}
		c, ok := d.audio(0, nil, srtpOptional)
		if !ok {
			return
		}
		if c.codec.Bitrate != 0 && (c.codec.Bitrate < 6000 || c.codec.Bitrate > maxRate) || c.codec.Receive > 127 {
			t.Errorf("%+v", c.codec)
		}
		l := local{id: 5, addr: netip.MustParseAddrPort("198.51.100.1:20000")}
		if again, err := parseSDP(l.answer(d, c, directions["sendrecv"])); err != nil || len(again.streams) != len(d.streams) {
			t.Errorf("our answer can't be read: %v", err)
		}
	})
}

func toneOf(rate audio.Rate, hz float64, frames int) []int16 {
	p := newPhone(hz)
	var pcm []int16
	for range frames {
		in, out := make(audio.Frame, rate.FrameSize()), make(audio.Frame, rate.FrameSize())
		p.Tick(in, out)
		pcm = append(pcm, out...)
	}
	return pcm
}
