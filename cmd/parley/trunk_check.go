package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"parley/internal/egress"
	"parley/internal/parley"
	"parley/internal/sip"
)

type trunkCmd struct {
	Check trunkCheck `cmd:"" help:"Check whether a SIP trunk answers, and report what its answer says."`
}

type trunkCheck struct {
	Trunk string `arg:"" help:"Its id, its phone number, or its address."`
}

// checkTime is how long a check may take.
const checkTime = 15 * time.Second

// Run asks the trunk from a port of its own, beside a server that runs. It does not register: a second registration
// could take the server's place.
func (c *trunkCheck) Run(s *Settings, t *terminal) error {
	db, err := s.open(t)
	if err != nil {
		return err
	}
	defer db.Close()
	list, err := db.AllTrunks(t)
	if err != nil {
		return err
	}
	trunk, err := c.pick(list)
	if err != nil {
		return err
	}
	p := &telephone{db: db}
	if p.carrier, err = s.carrierTrunk(); err == nil {
		p.rules, err = s.trunkRules()
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t, checkTime)
	defer cancel()
	hangUp, err := p.borrow(ctx, s)
	if err != nil {
		return err
	}
	defer hangUp()
	registers := trunk.Register
	trunk.Register = false
	health, err := p.Check(ctx, trunk)
	print := func(state, what, text string) { fmt.Fprintf(t.Out, "%-5s %-15s %s\n", state, what, text) }
	for _, f := range health.Findings {
		if f.Topic == "registration" && registers {
			f.State, f.Text = parley.FindingNote, "Not tested here: the running server registers; its console and API show the state."
		}
		state := string(f.State)
		if f.State == parley.FindingFail {
			state = "FAIL"
		}
		print(state, f.Topic, f.Text)
	}
	if err != nil {
		print("FAIL", "trunk", err.Error())
		return exitStatus(1)
	}
	return nil
}

// pick is the one trunk that is meant.
func (c *trunkCheck) pick(list []parley.Trunk) (*parley.Trunk, error) {
	var found *parley.Trunk
	for i := range list {
		t := &list[i]
		if id, err := strconv.ParseInt(c.Trunk, 10, 64); err == nil && id == t.ID {
			return t, nil
		}
		if number, ok := parley.NormalizePhone(c.Trunk); !strings.EqualFold(c.Trunk, t.SIPAddress) && (!ok || number != t.PhoneNumber) {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%s is the address of more than one trunk: give the id of one, such as %d or %d", c.Trunk, found.ID, t.ID)
		}
		found = t
	}
	if found == nil {
		return nil, fmt.Errorf("there is no trunk %s: give its id, phone number or address", c.Trunk)
	}
	return found, nil
}

// borrow opens a telephone line for questions, at the host of the server's with any port, and returns what closes it.
func (p *telephone) borrow(ctx context.Context, s *Settings) (hangUp func(), err error) {
	config, err := s.sipConfig()
	if err != nil {
		return nil, err
	}
	if config.Listen == "off" {
		return nil, errors.New("telephony is off (PARLEY_SIP_LISTEN)")
	}
	host, _, _ := net.SplitHostPort(config.Listen)
	config.Listen, config.Secure, config.Softphone = net.JoinHostPort(cmp.Or(host, "0.0.0.0"), "0"), "", false
	guard := egress.New([]netip.Addr{s.ExternalIP}, s.EgressAllow...)
	if s.TrunkPrivate == "off" {
		config.Reach = guard.Check
	}
	config.Trunks = func(context.Context) ([]sip.Trunk, error) { // those that others must not be at
		if p.carrier == nil {
			return nil, nil
		}
		return []sip.Trunk{*p.carrier}, nil
	}
	p.line = sip.New(config)
	if err := p.line.Listen(); err != nil {
		return nil, fmt.Errorf("open a telephone line: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = p.line.Run(ctx)
	}()
	return func() { stop(); <-over; guard.Close() }, nil
}
