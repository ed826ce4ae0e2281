package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/parley"
	"parley/internal/simulator/phone"
	"parley/internal/store/storetest"
	needs "parley/internal/testenv"
)

// registrar lets everybody register, and writes down who did.
type registrar struct {
	at netip.AddrPort

	mu   sync.Mutex
	seen map[string]time.Time // the latest REGISTER by the host and port of its Contact; undone ones are not here
}

// registering is a registrar that answers until the test ends.
func registering(t *testing.T) *registrar {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	r := &registrar{at: conn.LocalAddr().(*net.UDPAddr).AddrPort(), seen: map[string]time.Time{}}
	go func() {
		b := make([]byte, 8192)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			var answer strings.Builder
			answer.WriteString("SIP/2.0 200 OK\r\n")
			contact, undone := "", false
			for line := range strings.SplitSeq(string(b[:n]), "\r\n") {
				name, value, _ := strings.Cut(line, ":")
				switch name = strings.ToLower(name); name {
				case "to":
					line += ";tag=registrar"
					fallthrough
				case "via", "from", "call-id", "cseq":
					answer.WriteString(line + "\r\n")
				case "contact":
					answer.WriteString(line + "\r\n")
					contact = value
				}
				undone = undone || name == "expires" && strings.TrimSpace(value) == "0" || name == "contact" && strings.Contains(value, "expires=0")
			}
			if strings.HasPrefix(string(b[:n]), "REGISTER ") {
				_, contact, _ = strings.Cut(contact, "@")
				contact, _, _ = strings.Cut(contact, ">")
				contact, _, _ = strings.Cut(contact, ";")
				r.mu.Lock()
				if delete(r.seen, contact); !undone {
					r.seen[contact] = time.Now()
				}
				r.mu.Unlock()
				answer.WriteString("Expires: 60\r\n")
			}
			answer.WriteString("Content-Length: 0\r\n\r\n")
			_, _ = conn.WriteTo([]byte(answer.String()), from)
		}
	}()
	return r
}

// who are registered.
func (r *registrar) who() (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for at := range r.seen {
		list = append(list, at)
	}
	return list
}

// A node for the API and two for calls: what the API is asked about calls and trunks, the others do. One of them is registered with
// a trunk, and the other one follows it.
func TestNodeRoles(t *testing.T) {
	share(t, call)
	vendor := aitest.NewServer(t)
	vendor.Transcribe = func(aitest.Utterance) string { return "" }
	first := needs.Ports(t, 400)
	same := []string{"PARLEY_DATABASE=" + storetest.Postgres(t), "PARLEY_SECRET_KEY=the same on all nodes", "PARLEY_BLOB=" + t.TempDir(),
		"PARLEY_RATE_API=off",
		"PARLEY_EGRESS_ALLOW=127.0.0.0/8", "PARLEY_OPENAI_BASE_URL=" + vendor.URL, "PARLEY_OPENAI_CHAT_MODEL=" + aitest.ModelName,
		"PARLEY_OPENAI_TTS_MODEL=" + aitest.SpeechModel, "PARLEY_OPENAI_STT_MODEL=" + aitest.TranscriptionModel}
	l := &line{phone: handset(t, phone.Options{})}
	l.program = start(t, append(same, "PARLEY_ROLES=api", fmt.Sprintf("PARLEY_SIP_LISTEN=127.0.0.1:%d", first+300))...)
	nodes := map[string]*program{}
	for n := range 2 {
		sip := fmt.Sprintf("127.0.0.1:%d", first+2+n*120)
		p := &program{URL: fmt.Sprintf("http://127.0.0.1:%d", first+n), log: &logBuffer{}, env: append(append([]string{}, same...),
			"PARLEY_ROLES=calls", "PARLEY_DATA="+t.TempDir(), fmt.Sprintf("PARLEY_LISTEN=127.0.0.1:%d", first+n), "PARLEY_SIP_LISTEN="+sip,
			fmt.Sprintf("PARLEY_RTP_PORTS=%d-%d", first+10+n*120, first+100+n*120), "PARLEY_WEBRTC_LISTEN=off")}
		p.run(t, func(string) {})
		t.Cleanup(func() { p.stop(t) })
		p.ready(t)
		nodes[sip] = p
		if res, err := http.Get(p.URL + "/api/user"); err != nil || res.StatusCode != http.StatusNotFound {
			t.Errorf("a node without the API answers %v, %v", res, err)
		} else {
			res.Body.Close()
		}
	}
	if c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", first+300), time.Second); err == nil {
		c.Close()
		t.Error("a node without calls listens for SIP")
	}

	far := registering(t)
	var trunk struct{ Data parley.Trunk }
	if status := l.call(t, "POST", "/user/phone-numbers/sip-trunks", map[string]any{"name": "Registered", "phone_number": "+4930901829",
		"sip_address": far.at.String(), "sip_username": "bakery", "sip_password": "four-in-the-morning", "register": true,
		"inbound_authorization_type": "auth"}, &trunk); status != http.StatusCreated {
		t.Fatalf("the trunk is answered %d", status)
	}
	eventually(t, "the trunk to be registered", func() bool {
		var is struct{ Data parley.Trunk }
		l.call(t, "GET", fmt.Sprintf("/user/phone-numbers/sip-trunks/%d", trunk.Data.ID), nil, &is)
		return is.Data.Registered
	})
	holder := far.who()
	if len(holder) != 1 || nodes[holder[0]] == nil {
		t.Fatalf("%v are registered, not one of %v", holder, nodes)
	}
	var checked struct {
		Success    bool
		Registered bool
		Message    string
	}
	if status := l.call(t, "POST", fmt.Sprintf("/user/phone-numbers/sip-trunks/%d/check", trunk.Data.ID), nil,
		&checked); status != http.StatusOK || !checked.Registered {
		t.Errorf("the check of the trunk at another node: %d %+v", status, checked)
	}

	// A call is ordered at the node that has no telephone, and hung up there.
	l.trunk(t, int(l.phone.Addr().Port()), map[string]any{"post_call_evaluation": false, "record": false})
	id := l.dial(t, "+4930123456")
	ctx, cancel := timeout(t, patience)
	defer cancel()
	in, err := l.phone.Next(ctx)
	if err != nil {
		t.Fatalf("nobody calls: %v\n%s", err, l.log)
	}
	in.Ring()
	got, err := in.Answer()
	if err != nil {
		t.Fatal(err)
	}
	l.until(t, id, parley.CallInProgress)
	eventually(t, "sound", func() bool { return len(got.Packets()) > 20 })
	l.hangup(t, id)
	eventually(t, "the far end to be hung up on", func() bool { return got.Ended() == "bye" })
	eventually(t, "the call to end", func() bool { return !l.talk(t, id).Status.Live() })
	l.talk(t, id).expect(t, parley.CallCompleted, parley.APIHangup)

	died := time.Now()
	nodes[holder[0]].kill(t)
	var took time.Duration
	eventually(t, "the other node to be registered", func() bool {
		for _, at := range far.who() {
			if at != holder[0] && nodes[at] != nil {
				took = time.Since(died)
				return true
			}
		}
		return false
	})
	t.Logf("the other node was registered %s after the kill", took)
	if took > 15*time.Second {
		t.Errorf("the trunk was taken over after %s", took)
	}
}
