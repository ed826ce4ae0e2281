package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// starts runs a program that was built for a target until it serves, under an emulator where its architecture is another one, and
// stops it. It says why a program can't be started here.
func starts(ctx context.Context, program string, t target) error {
	command := []string{program, "serve"}
	if t.os != runtime.GOOS {
		log.Printf("not started: the program for %s: this is %s", t, runtime.GOOS)
		return nil
	}
	if t.arch != runtime.GOARCH {
		emulator, err := exec.LookPath(emulators[t.arch])
		if err != nil {
			log.Printf("not started: the program for %s: there is no %s", t, emulators[t.arch])
			return nil
		}
		command = append([]string{emulator}, command...)
	}
	dir, err := os.MkdirTemp("", "starts")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return err
	}
	began := time.Now()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PARLEY_DATA=" + dir, "PARLEY_LISTEN=" + address, "PARLEY_SIP_LISTEN=off",
		"PARLEY_WEBRTC_LISTEN=off"}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the program for %s: %w", t, err)
	}
	defer cmd.Process.Kill() // does nothing when it has ended
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ready := time.Duration(0)
	for ready == 0 {
		select {
		case err := <-ended:
			return fmt.Errorf("the program for %s ended: %w\n%s", t, err, out.Bytes())
		case <-time.After(50 * time.Millisecond):
		}
		if answer, err := http.Get("http://" + address + "/readyz"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				ready = time.Since(began)
			}
		}
		if time.Since(began) > 5*time.Minute {
			return fmt.Errorf("the program for %s did not serve within five minutes", t)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	if err := <-ended; err != nil {
		return fmt.Errorf("the program for %s stopped badly: %w\n%s", t, err, out.Bytes())
	}
	log.Printf("%-14s started, ready after %s", t, ready.Round(time.Millisecond))
	return nil
}
