package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// The floor of the voice group: a process that does nothing but send every packet back, a socket and a goroutine for
// each call. What it costs is what the system asks for the packets alone.

// echo is that process: it prints its ports and serves until its input ends.
func echo(calls int) error {
	var running sync.WaitGroup
	var conns []*net.UDPConn
	for range calls {
		conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return err
		}
		conns = append(conns, conn)
		running.Go(func() {
			buf := make([]byte, 2000)
			for {
				n, from, err := conn.ReadFromUDPAddrPort(buf)
				if err != nil {
					return
				}
				conn.WriteToUDPAddrPort(buf[:n], from)
			}
		})
		fmt.Println(conn.LocalAddr().(*net.UDPAddr).Port)
	}
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadByte()
	for _, conn := range conns {
		conn.Close()
	}
	running.Wait()
	return nil
}

// echoFloor runs that process with as many calls for a while: what a call costs it in a second, and how long a packet
// takes there and back.
func echoFloor(calls int, period time.Duration) (cpu time.Duration, trip result, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, result{}, err
	}
	cmd := exec.Command(self, "-echo", strconv.Itoa(calls))
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, result{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, result{}, err
	}
	if err := cmd.Start(); err != nil {
		return 0, result{}, err
	}
	defer func() { in.Close(); cmd.Wait() }()
	var ports []int
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
		port, err := strconv.Atoi(lines.Text())
		if err != nil {
			return 0, result{}, fmt.Errorf("the echo said %q", lines.Text())
		}
		ports = append(ports, port)
	}
	if len(ports) != calls {
		return 0, result{}, fmt.Errorf("the echo has %d of %d ports", len(ports), calls)
	}
	before := cpuTime(cmd.Process.Pid)
	began := time.Now()
	trips := make([][]time.Duration, calls)
	errs := make([]error, calls)
	var running sync.WaitGroup
	for i, port := range ports {
		running.Go(func() {
			time.Sleep(20 * time.Millisecond * time.Duration(i) / time.Duration(calls)) // calls don't begin together
			trips[i], errs[i] = stream(port, period)
		})
	}
	running.Wait()
	used, took := cpuTime(cmd.Process.Pid)-before, time.Since(began)
	for _, err := range errs {
		if err != nil {
			return 0, result{}, err
		}
	}
	all := slices.Concat(trips...)
	slices.Sort(all)
	return time.Duration(float64(used) / took.Seconds() / float64(calls)),
		result{p50: quantile(all, .5), p99: quantile(all, .99)}, nil
}

// stream sends 50 packets of G.711 a second and takes the times until each is back.
func stream(port int, period time.Duration) (trips []time.Duration, err error) {
	conn, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	var hearing sync.WaitGroup
	hearing.Go(func() {
		buf := make([]byte, 2000)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			if n == 172 {
				trips = append(trips, time.Since(began)-time.Duration(binary.BigEndian.Uint64(buf[12:])))
			}
		}
	})
	packet := make([]byte, 172)
	for at := time.Duration(0); at < period; at += 20 * time.Millisecond {
		time.Sleep(time.Until(began.Add(at)))
		binary.BigEndian.PutUint64(packet[12:], uint64(time.Since(began)))
		if _, err = conn.Write(packet); err != nil {
			break
		}
	}
	time.Sleep(50 * time.Millisecond) // the last ones
	conn.Close()
	hearing.Wait()
	return trips, err
}

// cpuTime is how long a process has been on a processor, to the nanosecond, with all of its threads that are and were.
func cpuTime(pid int) time.Duration {
	var t syscall.Timespec
	clock := int32(^pid<<3 | 2) // clock_getcpuclockid(3)
	if _, _, e := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&t)), 0); e != 0 {
		return 0
	}
	return time.Duration(t.Nano())
}

// memory is what a process has of its own and its share of what it shares: PSS, in KB.
func memory(pid int) (int, error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "Pss:" {
			return strconv.Atoi(f[1])
		}
	}
	return 0, fmt.Errorf("no Pss in %q", raw)
}
