package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	if err := flag.Set("test.parallel", "100"); err != nil { // share bounds them
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if free := freeCores(); free < 1.7 {
		shares = max(2, int64(3*free))
		fmt.Fprintf(os.Stderr, "other work leaves %.1f cores: fewer tests run at once (%d of %d shares), and it takes longer\n", free,
			shares, machine)
	}
	seats = semaphore.NewWeighted(shares)
	dir, err := os.MkdirTemp("", "parley-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "parley")
	build := exec.Command("go", "build", "-o", binary, "parley/cmd/parley")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
		return 1
	}
	if err := certify(dir); err != nil {
		fmt.Fprintf(os.Stderr, "make a certificate: %v\n", err)
		return 1
	}
	return m.Run()
}

// What a test takes of a machine with two cores, in sixths.
const (
	call       = 1 // it waits for speech most of the time
	browser    = 2
	webCall    = 3 // a browser whose sound is real
	recognizer = 3 // PocketSphinx
	compiler   = 3
	machine    = 6 // a test that has many calls at once, or measures
)

var (
	shares int64 = machine // that tests have at once; fewer where others use the machine
	seats  *semaphore.Weighted
)

// share has a test run beside others, as soon as its share of the machine is free, and until it ends.
func share(t *testing.T, n int64) {
	t.Helper()
	t.Parallel()
	n, waits := min(n, shares), time.Now()
	if err := seats.Acquire(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { seats.Release(n) })
	t.Logf("the test begins after %v", time.Since(waits).Round(time.Second)) // go test counts that, too
}

// freeCores measures how many cores this process gets where others want them, too. It computes on all of them for half a second.
func freeCores() float64 {
	used := func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	began, before := time.Now(), used()
	var all sync.WaitGroup
	for range runtime.NumCPU() {
		all.Go(func() {
			for time.Since(began) < time.Second/2 {
			}
		})
	}
	all.Wait()
	return float64(used()-before) / float64(time.Since(began))
}

// overHTTPS are the settings of a program that serves HTTPS on loopback, by a certificate that the tests' own requests trust.
var overHTTPS []string

// certify makes that certificate.
func certify(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(apartNet + "1")}, DNSNames: []string{"localhost"}, IsCA: true,
		BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	err = errors.Join(os.WriteFile(certFile, cert, 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(cert)
	http.DefaultTransport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: trusted}
	overHTTPS = []string{"PARLEY_TLS_CERT=" + certFile, "PARLEY_TLS_KEY=" + keyFile}
	return err
}

// patience bounds every wait: it only guards against a hang.
const patience = 30 * time.Second

// program is a running server with the account that its first start made.
type program struct {
	URL             string
	Email, Password string
	Key             string // an API key
	Assistant       int64  // the first assistant
	AssistantUUID   string

	env     []string
	cmd     *exec.Cmd
	log     *logBuffer
	reading *sync.WaitGroup // waits for the goroutine that reads its output
}

// start runs the program on an empty data directory until the test ends. env are further settings, NAME=value.
func start(t *testing.T, env ...string) *program {
	t.Helper()
	p := &program{log: &logBuffer{}, env: append([]string{"PARLEY_DATA=" + t.TempDir(), "PARLEY_LISTEN=127.0.0.1:0",
		"PARLEY_WEBRTC_LISTEN=off", "PARLEY_MAX_LATE=0"}, env...)} // a busy machine is none that has too many calls
	said := make(chan string, 1)
	p.run(t, func(printed string) {
		if strings.Contains(printed, "Assistant  ") {
			select {
			case said <- printed:
			default:
			}
		}
	})
	t.Cleanup(func() { p.stop(t) })
	select {
	case text := <-said:
		p.introduced(t, text)
		p.ready(t)
		return p
	case <-time.After(patience):
		t.Fatalf("the program did not come up:\n%s", p.log)
		return nil
	}
}

// run starts the process; heard is called at every line with all the output so far.
func (p *program) run(t *testing.T, heard func(printed string)) {
	t.Helper()
	p.cmd = exec.Command(binary, "serve")
	p.cmd.Env = append(os.Environ(), p.env...)
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.reading = &sync.WaitGroup{}
	p.reading.Go(func() {
		var text strings.Builder
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			text.WriteString(lines.Text() + "\n")
			heard(text.String())
		}
	})
}

// stop ends the program as an operator does, and expects a clean exit.
func (p *program) stop(t *testing.T) {
	t.Helper()
	if p.cmd == nil {
		return
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(patience, func() { p.cmd.Process.Kill() })
	p.reading.Wait()
	err := p.cmd.Wait()
	p.cmd = nil
	if kill.Stop(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
	if t.Failed() {
		t.Logf("the program's log:\n%s", p.log)
	}
}

// kill ends the program as a power cut does.
func (p *program) kill(t *testing.T) {
	t.Helper()
	p.cmd.Process.Kill()
	p.reading.Wait()
	p.cmd.Wait()
	p.cmd = nil
}

// restart runs the program again, after stop or kill, on the same data and address.
func (p *program) restart(t *testing.T) {
	t.Helper()
	p.env = append(p.env, "PARLEY_LISTEN="+strings.TrimPrefix(p.URL, "http://"))
	p.run(t, func(string) {})
	p.ready(t)
}

var introduction = regexp.MustCompile(`(?s)Console +(\S+).*Sign in +(\S+) +password +(\S+).*API key +(\S+).*id (\d+), (\S+)`)

// introduced reads what a first start prints.
func (p *program) introduced(t *testing.T, text string) {
	t.Helper()
	m := introduction.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("the first start printed:\n%s", text)
	}
	p.URL, p.Email, p.Password, p.Key, p.AssistantUUID = m[1], m[2], m[3], m[4], m[6]
	p.Assistant, _ = strconv.ParseInt(m[5], 10, 64)
}

// ready waits until the program serves.
func (p *program) ready(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		res, err := http.Get(p.URL + "/readyz")
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not ready: %v\n%s", p.URL, err, p.log)
		}
	}
}

// call sends a request to the API with the first key. out takes the JSON answer, unless it is nil.
func (p *program) call(t *testing.T, method, path string, body, out any) int {
	t.Helper()
	var sent io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		sent = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, p.URL+"/api"+path, sent)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.Key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if out != nil {
		if err := json.Unmarshal(raw, out); err != nil {
			t.Fatalf("%s %s answered %d %s", method, path, res.StatusCode, raw)
		}
	}
	return res.StatusCode
}

// artifact saves a file for people to look at: in the directory that PARLEY_ARTIFACTS names, else in bin/e2e.
func artifact(t *testing.T, name string, content []byte) {
	t.Helper()
	dir := cmp.Or(os.Getenv("PARLEY_ARTIFACTS"), "../bin/e2e")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// logBuffer collects a program's log and may be read by a test at any time.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// serveLocal runs a handler on loopback until the test ends: an outside system that the program calls.
func serveLocal(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}
