package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// program is the program under test, as its operator and its clients meet it.
type program struct {
	binary, addr, data, token string
	env                       []string
	cmd                       *exec.Cmd
	log                       *os.File
}

// back is how soon it must be ready after a start, or after a disturbance has ended.
const back = time.Minute

var client = &http.Client{Timeout: 40 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 100}}

func (p *program) command(args ...string) (string, error) {
	cmd := exec.Command(p.binary, args...)
	cmd.Env = append(os.Environ(), p.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("parley %s: %w: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out)), err
}

// start runs the program, and returns when it is ready.
func (p *program) start() error {
	p.cmd = exec.Command(p.binary, "serve")
	p.cmd.Env, p.cmd.Stderr = append(os.Environ(), p.env...), p.log
	if err := p.cmd.Start(); err != nil {
		return err
	}
	return p.ready()
}

// kill ends it without a word.
func (p *program) kill() {
	if p.cmd != nil {
		p.cmd.Process.Kill()
		p.cmd.Wait()
		p.cmd = nil
	}
}

// ready waits until /readyz is 200.
func (p *program) ready() error { return p.until(http.StatusOK, back) }

// until waits until /readyz has a status.
func (p *program) until(status int, most time.Duration) error {
	last, got := "", 0
	for deadline := time.Now().Add(most); ; time.Sleep(20 * time.Millisecond) {
		res, err := client.Get("http://" + p.addr + "/readyz")
		if err == nil {
			text, _ := io.ReadAll(res.Body)
			res.Body.Close()
			last, got = strings.TrimSpace(string(text)), res.StatusCode
			if got == status {
				return nil
			}
		} else {
			last, got = err.Error(), 0
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("/readyz is not %d after %v: %d %s", status, most, got, last)
		}
	}
}

// limit sets a soft limit of the running program's (prlimit of util-linux), which another call takes back.
func (p *program) limit(name, value string) error {
	out, err := exec.Command("prlimit", "--pid", fmt.Sprint(p.cmd.Process.Pid), "--"+name+"="+value+":").CombinedOutput()
	if err != nil {
		return fmt.Errorf("prlimit: %w: %s", err, out)
	}
	return nil
}

// answer is what a request came to.
type answer struct {
	status int
	header http.Header
	body   []byte
	err    error // there was no answer
}

// ask sends a request with the account's key, JSON unless contentType says otherwise.
func (p *program) ask(method, path, contentType string, body []byte, header ...string) answer {
	req, err := http.NewRequest(method, "http://"+p.addr+"/api"+path, bytes.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	if body != nil {
		req.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, raw, err}
}

// must asks for JSON, and fails unless it is answered with a 2xx.
func (p *program) must(method, path string, body, out any) error {
	var raw []byte
	if body != nil {
		raw, _ = json.Marshal(body)
	}
	a := p.ask(method, path, "application/json", raw)
	if a.err != nil || a.status > 299 {
		return fmt.Errorf("%s %s: %d %.300s %w", method, path, a.status, a.body, a.err)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(a.body, out)
}

// all reads a whole list.
func all[T any](p *program, path string) (list []T, err error) {
	for page := 1; ; page++ {
		var got struct {
			Data  []T
			Total int
		}
		sign := "?"
		if strings.Contains(path, "?") {
			sign = "&"
		}
		if err := p.must("GET", fmt.Sprintf("%s%sper_page=100&page=%d", path, sign, page), nil, &got); err != nil {
			return nil, err
		}
		list = append(list, got.Data...)
		if len(got.Data) == 0 || len(list) >= got.Total {
			return list, nil
		}
	}
}

// keepLog saves the program's log for people to look at.
func (p *program) keepLog(name string) {
	to := filepath.Join("bin", "baddays-"+name+".log")
	raw, err := os.ReadFile(p.log.Name())
	if err == nil && os.MkdirAll("bin", 0o755) == nil && os.WriteFile(to, raw, 0o644) == nil {
		fmt.Println("  the program's log is in " + to)
	}
}
