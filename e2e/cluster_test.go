package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/parley"
	"parley/internal/simulator/phone"
	"parley/internal/store/storetest"
	needs "parley/internal/testenv"
)

// cluster is the layout of deploy/cluster on this machine: nodes on one PostgreSQL, Kamailio and HAProxy before them. Its
// files are the ones that operators begin with; only the addresses differ.
type cluster struct {
	*line             // of the first node, asked through HAProxy
	nodes  []*program // asked without it
	places *strings.Replacer
	proxy  netip.AddrPort
	sips   []string // the nodes' SIP addresses
	call   atomic.Int64
}

const clusterFiles = "../deploy/cluster/"

// sbin is a program that Debian keeps where not everybody looks.
func sbin(t *testing.T, name string) string {
	t.Helper()
	if path := "/usr/sbin/" + name; exec.Command(path, "-v").Run() == nil {
		return path
	}
	return needs.Program(t, name)
}

// clustered starts the layout with so many nodes.
func clustered(t *testing.T, nodes int, env ...string) *cluster {
	t.Helper()
	kamailio, haproxy := sbin(t, "kamailio"), sbin(t, "haproxy")
	const each = 64
	first := needs.Ports(t, 16+nodes*each)
	at := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
	c := &cluster{proxy: netip.MustParseAddrPort(at(first))}
	dir := t.TempDir()
	swaps := []string{"/etc/kamailio", dir, "/etc/haproxy", dir, "192.0.2.10:5060", at(first), "192.0.2.10:443", at(first + 1),
		"https://voice.example.com", "https://" + at(first+1), "192.0.2.10", "127.0.0.1", "198.51.100.0 24", "127.0.0.1 32"}
	for n := range nodes {
		own := first + 16 + n*each
		host := fmt.Sprintf("192.0.2.%d", 11+n)
		swaps = append(swaps, host+":5060", at(own), host+":8443", at(own+1))
		c.sips = append(c.sips, at(own))
	}
	c.places = strings.NewReplacer(swaps...)
	for _, name := range []string{"kamailio.cfg", "dispatcher.list", "address.list", "haproxy.cfg"} {
		c.write(t, dir, name)
	}
	tlsCert, tlsKey := strings.TrimPrefix(overHTTPS[0], "PARLEY_TLS_CERT="), strings.TrimPrefix(overHTTPS[1], "PARLEY_TLS_KEY=")
	cert, err := os.ReadFile(tlsCert)
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(tlsKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"parley.pem": string(cert) + string(key), "nodes.pem": string(cert)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	beside(t, haproxy, "-db", "-f", filepath.Join(dir, "haproxy.cfg"))
	beside(t, kamailio, "-DD", "-E", "-f", filepath.Join(dir, "kamailio.cfg"), "-Y", dir, "-P", filepath.Join(dir, "kamailio.pid"), "-m",
		"32", "-M", "4")

	prices := filepath.Join(dir, "prices.yaml")
	if err := os.WriteFile(prices, []byte("plans:\n  default: {parallel_calls: 60}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	same := append([]string{"PARLEY_DATABASE=" + storetest.Postgres(t), "PARLEY_SECRET_KEY=the same on all nodes",
		"PARLEY_BLOB=" + t.TempDir(),
		"PARLEY_PRICES=" + prices, "PARLEY_RATE_API=off", "PARLEY_EGRESS_ALLOW=127.0.0.0/8", "PARLEY_DRAIN=1m"}, env...)
	for n := range nodes {
		own := first + 16 + n*each
		settings := append(c.settings(t, n, tlsCert, tlsKey), fmt.Sprintf("PARLEY_RTP_PORTS=%d-%d", own+4, own+each-1))
		settings = append(settings, same...)
		if n == 0 {
			c.line = &line{program: start(t, settings...), phone: handset(t, phone.Options{})}
			c.nodes = append(c.nodes, c.program)
			continue
		}
		p := &program{URL: c.URL, Email: c.Email, Password: c.Password, Key: c.Key, Assistant: c.Assistant,
			log: &logBuffer{}, env: append(settings, "PARLEY_DATA="+t.TempDir())}
		p.run(t, func(string) {})
		t.Cleanup(func() { p.stop(t) })
		c.nodes = append(c.nodes, p)
	}
	for n, p := range c.nodes { // from here on each is asked by its own address; the line goes through HAProxy
		own := *p
		own.URL = "https://" + at(first+16+n*each+1)
		own.ready(t)
	}
	return c
}

// write writes a file of the layout with this machine's addresses.
func (c *cluster) write(t *testing.T, dir, name string) {
	t.Helper()
	text, err := os.ReadFile(clusterFiles + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(c.places.Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
}

// settings are those of node.env that a node on this machine can have as they are.
func (c *cluster) settings(t *testing.T, node int, cert, key string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(clusterFiles + "node.env")
	if err != nil {
		t.Fatal(err)
	}
	own := strings.ReplaceAll(string(text), "192.0.2.11", fmt.Sprintf("192.0.2.%d", 11+node))
	own = strings.NewReplacer("/etc/parley/cert.pem", cert, "/etc/parley/key.pem", key, ":8189", ":0").Replace(c.places.Replace(own))
	lines := bufio.NewScanner(strings.NewReader(own))
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), "="); ok && strings.HasPrefix(name, "PARLEY_") {
			if host, _, err := net.SplitHostPort(value); err == nil && strings.HasPrefix(host, "192.0.2.") {
				value = "127.0.0.1:0"
			}
			list = append(list, name+"="+value)
		}
	}
	return list
}

// beside runs a program that serves until the test ends.
func beside(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd, said := exec.Command(name, args...), &logBuffer{}
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }() //nolint:errcheck // by our signal
	t.Cleanup(func() {
		select {
		case <-ended:
			t.Errorf("%s ended by itself:\n%s", name, said)
			return
		default:
		}
		cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(patience, func() { cmd.Process.Kill() })
		<-ended
		kill.Stop()
		if t.Failed() {
			t.Logf("%s said:\n%.4000s", name, said)
		}
	})
}

// visit is a call as the far end has it.
type visit struct {
	*phone.Call
	node int // that has it, by the address that it answered from
}

// comes calls the trunk's number through Kamailio; the error is why nobody took it.
func (c *cluster) comes(t *testing.T, number string) (v visit, err error) {
	t.Helper()
	ctx, cancel := timeout(t, patience)
	defer cancel()
	from := fmt.Sprintf("+49301%06d", c.call.Add(1))
	got, err := c.phone.Call(ctx, from, number, c.proxy)
	if err != nil {
		return v, err
	}
	for n, at := range c.sips {
		if strings.Contains(got.Target(), at) {
			return visit{got, n}, nil
		}
	}
	return v, fmt.Errorf("it was answered by %s, which is no node", got.Target())
}

// come makes so many calls at once.
func (c *cluster) come(t *testing.T, number string, calls int) (list []visit) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range calls {
		wg.Go(func() {
			v, err := c.comes(t, number)
			if err != nil {
				t.Errorf("a call was not taken: %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			list = append(list, v)
		})
	}
	wg.Wait()
	return list
}

// heard says whether the far end has heard something of the call since then, and nobody hung up.
func (v visit) heard(since time.Time) bool {
	got := v.Packets()
	return v.Ended() == "" && len(got) > 0 && got[len(got)-1].At.After(since)
}

// by counts calls by their node.
func by(list []visit, nodes int) []int {
	n := make([]int, nodes)
	for _, v := range list {
		n[v.node]++
	}
	return n
}

// lost are the calls that the far end hears nothing of any more, from now until it has heard all those of other nodes than dead.
func lost(t *testing.T, list []visit, nodes, dead int) (silent []visit, counted []int) {
	t.Helper()
	since := time.Now()
	eventually(t, "sound in all calls", func() bool {
		silent = nil
		for _, v := range list {
			if !v.heard(since) {
				silent = append(silent, v)
			}
		}
		return by(silent, nodes)[dead] == len(silent)
	})
	return silent, by(silent, nodes)
}

// watcher asks the API through HAProxy again and again, and counts what goes wrong.
type watcher struct {
	asked, failed atomic.Int64
	mu            sync.Mutex
	last          string
}

func (w *watcher) run(ctx context.Context, p *program) {
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, "GET", p.URL+"/api/user/assistants/get", nil)
		if err != nil {
			return
		}
		req.Header.Set("Authorization", "Bearer "+p.Key)
		res, err := http.DefaultClient.Do(req)
		w.asked.Add(1)
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				continue
			}
			err = errors.New(res.Status)
		}
		if ctx.Err() == nil {
			w.failed.Add(1)
			w.mu.Lock()
			w.last = err.Error()
			w.mu.Unlock()
		}
	}
}

// Three nodes behind Kamailio and HAProxy hold calls. One is killed: the far end loses its calls and no others, new ones are taken
// at once, and the others close its rows. Another is restarted by draining: nobody loses anything.
func TestCluster(t *testing.T) {
	share(t, recognizer)
	vendor := aitest.NewServer(t)
	vendor.Transcribe = func(aitest.Utterance) string { return "" }
	c := clustered(t, 3, "PARLEY_OPENAI_BASE_URL="+vendor.URL, "PARLEY_OPENAI_CHAT_MODEL="+aitest.ModelName,
		"PARLEY_OPENAI_TTS_MODEL="+aitest.SpeechModel, "PARLEY_OPENAI_STT_MODEL="+aitest.TranscriptionModel)
	const number = "+4930901820"
	var trunk struct {
		Data struct {
			PhoneNumberID int64 `json:"phone_number_id"`
		}
	}
	if status := c.line.call(t, "POST", "/user/phone-numbers/sip-trunks", map[string]any{"name": "The carrier", "phone_number": number,
		"sip_address": c.phone.Addr().String(), "outbound_proxy": c.proxy.String(), "inbound_authorization_type": "ip",
		"allowed_inbound_ips": []string{"127.0.0.1"}}, &trunk); status != http.StatusCreated {
		t.Fatalf("the trunk is answered %d", status)
	}
	c.change(t, map[string]any{"initial_message": welcome, "post_call_evaluation": false, "record": false,
		"phone_number_id": trunk.Data.PhoneNumberID, "max_duration": 300})

	// Kamailio lets calls go to a node once it has answered that it takes them.
	begun := time.Now()
	seen := map[int]bool{}
	eventually(t, "all nodes to take calls", func() bool {
		v, err := c.comes(t, number)
		if err != nil {
			return false
		}
		seen[v.node] = true
		v.Hangup()
		return len(seen) == len(c.nodes)
	})
	t.Logf("all nodes take calls after %s", time.Since(begun))

	w := new(watcher)
	watching, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { w.run(watching, c.program) })

	calls := c.come(t, number, 12)
	if n := by(calls, 3); n[0] == 0 || n[1] == 0 || n[2] == 0 {
		t.Fatalf("the calls are on the nodes %v", n)
	}
	eventually(t, "sound in all calls", func() bool { silent, _ := lost(t, calls, 3, 1); return len(silent) == 0 })

	// The second node dies.
	before := by(calls, 3)
	died := time.Now()
	c.nodes[1].kill(t)
	later := c.come(t, number, 4)
	t.Logf("four new calls were taken %s after the kill, by the nodes %v", time.Since(died), by(later, 3))
	silent, n := lost(t, append(calls, later...), 3, 1)
	if n[0] != 0 || n[2] != 0 || n[1] != before[1] || by(later, 3)[1] != 0 {
		t.Errorf("the far end lost the calls %v of %v", n, before)
	}
	for _, v := range silent {
		v.Drop()
	}
	eventually(t, "the others to close its calls", func() bool { return c.ended(t, parley.NodeLost) == before[1] })
	if took := time.Since(died); took > 30*time.Second {
		t.Errorf("its calls were closed after %s", took)
	}
	t.Logf("the far end lost %v of %v calls; their rows were closed %s after the kill", n, before, time.Since(died))
	cut := w.failed.Load()
	if cut > 1 {
		t.Errorf("%d of %d requests failed when a node was killed, at last by %s", cut, w.asked.Load(), w.last)
	}

	// The first node is restarted: it drains.
	c.nodes[0].cmd.Process.Signal(syscall.SIGTERM)
	eventually(t, "the first node to drain", func() bool { return strings.Contains(c.nodes[0].log.String(), "stopping:") })
	after := c.come(t, number, 4)
	if n := by(after, 3); n[1] != 0 || n[0] > 1 { // one may come before it refuses
		t.Errorf("while the first node drains and the second is gone, calls are taken by the nodes %v", n)
	}
	var rest []visit
	for _, v := range append(append(calls, later...), after...) {
		if v.Ended() == "" {
			rest = append(rest, v)
		}
	}
	if silent, n := lost(t, rest, 3, 1); len(silent) > 0 {
		t.Errorf("while the first node drains, the far end lost the calls %v", n)
	}
	for _, v := range rest {
		if err := v.Hangup(); err != nil {
			t.Errorf("hang up a call of node %d: %v", v.node, err)
		}
	}
	c.nodes[0].stop(t)
	if n := c.ended(t, parley.NodeLost); n != before[1] {
		t.Errorf("%d calls were lost, not %d", n, before[1])
	}
	c.nodes[0].run(t, func(string) {})
	eventually(t, "the restarted node to take calls", func() bool {
		v, err := c.comes(t, number)
		if err != nil {
			t.Fatalf("a call was not taken: %v", err)
		}
		v.Hangup()
		return v.node == 0
	})
	if failed := w.failed.Load() - cut; failed > 0 {
		t.Errorf("%d of %d requests failed when a node was restarted, at last by %s", failed, w.asked.Load(), w.last)
	}
}

// ended counts the account's calls that ended for a reason.
func (c *cluster) ended(t *testing.T, reason parley.EndedReason) (n int) {
	t.Helper()
	for _, one := range c.talks(t) {
		if one.EndedReason == reason {
			n++
		}
	}
	return n
}
