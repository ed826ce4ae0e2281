package main

import (
	"encoding/binary"
	"fmt"
	"sync"
	"syscall"
	"time"

	"parley/internal/simulator/phone"
)

// capture sees the RTP packets on this machine's loopback with the kernel's own times: it needs the right to open raw
// sockets (CAP_NET_RAW), as tcpdump does.
type capture struct {
	fd      int
	running sync.WaitGroup

	mu       sync.Mutex
	arrived  map[uint64]time.Time // by SSRC and sequence number, as they arrived
	departed map[int][]departure  // by the port they left from
}

// departure is a packet with sound in it, or without.
type departure struct {
	at    time.Time
	sound bool
}

const (
	everything = 0x0300 // ETH_P_ALL in network order
	forceRead  = 33     // SO_RCVBUFFORCE
	outgoing   = 4      // PACKET_OUTGOING
)

func newCapture() (*capture, error) {
	fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_DGRAM, everything)
	if err != nil {
		return nil, fmt.Errorf("open a raw socket: %w", err)
	}
	c := &capture{fd: fd, arrived: map[uint64]time.Time{}, departed: map[int][]departure{}}
	wait := syscall.NsecToTimeval(int64(200 * time.Millisecond))
	for _, err := range []error{syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1),
		syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, forceRead, 64<<20),
		syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &wait)} {
		if err != nil {
			syscall.Close(fd)
			return nil, fmt.Errorf("set up a raw socket: %w", err)
		}
	}
	return c, nil
}

// run captures until stop is closed.
func (c *capture) run(stop <-chan struct{}) {
	c.running.Go(func() {
		buf, control := make([]byte, 4096), make([]byte, 256)
		for {
			select {
			case <-stop:
				return
			default:
			}
			n, m, _, from, err := syscall.Recvmsg(c.fd, buf, control, 0)
			if err != nil {
				continue // nothing came
			}
			if link, ok := from.(*syscall.SockaddrLinklayer); ok {
				c.take(buf[:n], phone.KernelTime(control[:m]), link.Pkttype == outgoing)
			}
		}
	})
}

func (c *capture) close() {
	c.running.Wait()
	syscall.Close(c.fd)
}

// take notes an IPv4 packet if it is 20 ms of G.711.
func (c *capture) take(p []byte, at time.Time, leaves bool) {
	if len(p) < 20 || p[0]>>4 != 4 || p[9] != syscall.IPPROTO_UDP || at.IsZero() {
		return
	}
	udp := p[4*int(p[0]&15):]
	if len(udp) != 8+12+160 || udp[8] != 0x80 || udp[9]&127 != 0 {
		return
	}
	port, rtp := int(binary.BigEndian.Uint16(udp)), udp[8:]
	c.mu.Lock()
	defer c.mu.Unlock()
	if !leaves {
		c.arrived[uint64(binary.BigEndian.Uint32(rtp[8:]))<<16|uint64(binary.BigEndian.Uint16(rtp[2:]))] = at
		return
	}
	d := departure{at: at}
	for _, b := range rtp[12:] {
		d.sound = d.sound || b != 0xFF // what silence is in PCMU
	}
	c.departed[port] = append(c.departed[port], d)
}

// spoken is when the first and the last packet with sound left from a port between two times.
func (c *capture) spoken(port int, from, to time.Time) (first, last time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.departed[port] {
		if !d.sound || d.at.Before(from) || d.at.After(to) {
			continue
		}
		if first.IsZero() {
			first = d.at
		}
		last = d.at
	}
	return first, last
}
