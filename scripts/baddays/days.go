package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"parley/internal/ai/aitest"
)

// killed kills the program at random moments, also while it starts, and starts it again.
func killed(d *doing) error {
	random := rand.New(rand.NewPCG(d.seed, 7))
	slowest := time.Duration(0)
	early := 0
	for range d.kills {
		time.Sleep(time.Duration(random.Int64N(int64(1200 * time.Millisecond))))
		d.kill()
		if random.IntN(10) == 0 { // and once more, before it serves
			early++
			cmd := exec.Command(d.binary, "serve")
			cmd.Env = append(os.Environ(), d.env...)
			if err := cmd.Start(); err != nil {
				return err
			}
			time.Sleep(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
			cmd.Process.Kill()
			cmd.Wait()
		}
		began := time.Now()
		if err := d.start(); err != nil {
			return err
		}
		slowest = max(slowest, time.Since(began))
	}
	d.note("killed %d times, %d of them while it started; the slowest start took %v", d.kills+early, early, slowest.Round(10*time.Millisecond))
	return nil
}

// during has a disturbance last, and says how soon the program was ready after its end.
func (d *doing) during(name string, unready bool, begin, end func() error) error {
	if err := begin(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	told := "still ready"
	began := time.Now()
	var wrong error
	if unready {
		wrong = d.until(http.StatusServiceUnavailable, d.lasts+10*time.Second)
		told = fmt.Sprintf("not ready after %v", time.Since(began).Round(10*time.Millisecond))
	}
	time.Sleep(max(0, d.lasts-time.Since(began)))
	if err := end(); err != nil {
		return fmt.Errorf("end %s: %w", name, err)
	}
	if wrong != nil {
		return fmt.Errorf("%s: %w", name, wrong)
	}
	ended := time.Now()
	if err := d.ready(); err != nil {
		return fmt.Errorf("after %s: %w", name, err)
	}
	d.note("%s for %v: %s; ready %v after its end", name, d.lasts, told, time.Since(ended).Round(10*time.Millisecond))
	time.Sleep(time.Second) // a moment of an ordinary day
	return nil
}

// ownDisk gives the program a disk of its own, where this user may mount one.
func (w *world) ownDisk(dir string) {
	at := filepath.Join(dir, "disk")
	if os.Mkdir(at, 0o700) != nil || exec.Command("mount", "-t", "tmpfs", "-o", "size=256m,mode=700", "baddays", at).Run() != nil {
		return
	}
	w.mount = at
	w.undo = append(w.undo, func() { exec.Command("umount", "-l", at).Run() })
}

// noDisk has the program's files not grow, its disk full, and read-only at the start.
func noDisk(d *doing) error {
	if err := d.during("files that can't grow", true, func() error { return d.limit("fsize", "4096") },
		func() error { return d.limit("fsize", "unlimited") }); err != nil {
		return err
	}
	if d.mount == "" {
		d.note("no disk of its own could be mounted: it was not filled")
		return nil
	}
	fill := filepath.Join(d.mount, "fill")
	if err := d.during("a full disk", true, func() error {
		exec.Command("dd", "if=/dev/zero", "of="+fill, "bs=4096").Run() // it ends with the disk
		return nil
	}, func() error { return os.Remove(fill) }); err != nil {
		return err
	}
	return d.readOnly()
}

// readOnly starts the program on a disk that can't be written, which it must refuse with a reason, and then on one that can.
func (d *doing) readOnly() error {
	d.kill()
	remount := func(how string) error {
		if out, err := exec.Command("mount", "-o", "remount,"+how, d.mount).CombinedOutput(); err != nil {
			return fmt.Errorf("remount: %w: %s", err, out)
		}
		return nil
	}
	if err := remount("ro"); err != nil {
		return err
	}
	cmd := exec.Command(d.binary, "serve")
	cmd.Env = append(os.Environ(), d.env...)
	hang := time.AfterFunc(back, func() { cmd.Process.Kill() })
	out, err := cmd.CombinedOutput()
	hang.Stop()
	if err := remount("rw"); err != nil {
		return err
	}
	if err == nil || len(out) == 0 {
		return fmt.Errorf("on a read-only disk it ended with %v and said %q", err, out)
	}
	d.note("on a read-only disk it refuses to start: %.160s", out)
	return d.start()
}

// noModel has the model hang, refuse, and answer garbage.
func noModel(d *doing) error {
	for _, b := range []struct {
		name string
		is   aitest.Behaviour
	}{{"a model that hangs", aitest.Behaviour{Fault: aitest.Stall, FirstDelay: time.Minute}},
		{"a model that refuses with 429", aitest.Behaviour{Status: 429, RetryAfter: "1", Message: "Slow down."}},
		{"a model that answers garbage", aitest.Behaviour{Fault: aitest.Garbage, Text: "What?"}}} {
		if err := d.during(b.name, false, func() error { d.model.Usually(b.is); return nil },
			func() error { d.usual(); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// noFiles leaves the program no file handle.
func noFiles(d *doing) error {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.cmd.Process.Pid))
	if err != nil {
		return err
	}
	return d.during("no file handles", false, func() error { return d.limit("nofile", fmt.Sprint(len(open))) },
		func() error { return d.limit("nofile", "1024") })
}

// noReceiver has the receiver of webhooks break every connection.
func noReceiver(d *doing) error {
	return d.during("a receiver that breaks connections", false, func() error { d.receiverAway.Store(true); return nil },
		func() error { d.receiverAway.Store(false); return nil })
}
