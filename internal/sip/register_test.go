package sip

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// registrar answers a registration's requests, on its own clock.
type registrar struct {
	sync.Mutex
	asked  []time.Time
	wanted []int
	until  time.Time // until when our registration is valid
	lapsed int       // how often it had expired before we renewed it
	answer func(expires int) (int, error)
}

func (r *registrar) ask(_ context.Context, expires int) (int, error) {
	r.Lock()
	defer r.Unlock()
	now := time.Now()
	if len(r.asked) > 0 && now.After(r.until) {
		r.lapsed++
	}
	r.asked, r.wanted = append(r.asked, now), append(r.wanted, expires)
	got, err := r.answer(expires)
	if err == nil {
		r.until = now.Add(time.Duration(got) * time.Second)
	}
	return got, err
}

// becomes changes its answers from now on, and returns until when our registration is valid.
func (r *registrar) becomes(answer func(expires int) (int, error)) time.Time {
	r.Lock()
	defer r.Unlock()
	r.answer = answer
	return r.until
}

// late returns how often our registration has expired, and whether it is valid now.
func (r *registrar) late() (n int, knows bool) {
	r.Lock()
	defer r.Unlock()
	return r.lapsed, time.Now().Before(r.until)
}

// since returns the attempts after a time.
func (r *registrar) since(at time.Time) (list []time.Time) {
	r.Lock()
	defer r.Unlock()
	for _, a := range r.asked {
		if a.After(at) {
			list = append(list, a)
		}
	}
	return list
}

// TestRegistrationWeeks lasts four weeks: a working registrar, a night without it, a changed password, and recovery.
func TestRegistrationWeeks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &registrar{answer: func(expires int) (int, error) { return expires, nil }}
		s := New(Config{})
		reg := &registration{server: s, trunk: Trunk{ID: 1, Number: "+15550001111"}, wake: make(chan struct{}, 1),
			ask: r.ask}
		s.regs[1] = reg
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); reg.run(ctx) }()
		const week = 7 * 24 * time.Hour

		began := time.Now()
		for range 4 * 7 * 24 {
			time.Sleep(time.Hour)
			if _, knows := r.late(); !s.Registered(1) || !knows {
				t.Fatalf("after %s we are not registered", time.Since(began))
			}
		}
		lapsed, _ := r.late()
		if n := len(r.since(time.Time{})); lapsed > 0 || n < int(4*week/(time.Hour*86/100)) ||
			n > int(4*week/(time.Hour*74/100))+1 {
			t.Errorf("asked %d times in four weeks for an hour each, %d times too late", n, lapsed)
		}

		// Nobody answers: the registration holds until it expires, and it is retried, not too often and not too
		// seldom.
		until := r.becomes(func(int) (int, error) { return 0, errSilence })
		down := time.Now()
		time.Sleep(time.Until(until) - time.Second)
		if !s.Registered(1) {
			t.Error("what the registrar has granted is given up before it lapses")
		}
		time.Sleep(2 * time.Second)
		if s.Registered(1) {
			t.Error("registered, although it has lapsed")
		}
		time.Sleep(12 * time.Hour)
		tries := r.since(down)
		if n := len(tries); n < 90 || n > 200 {
			t.Errorf("tried %d times in a night", n)
		}
		for i := 1; i < len(tries); i++ {
			if d := tries[i].Sub(tries[i-1]); d < firstRetry || d > lastRetry*3/2 {
				t.Fatalf("tried again after %s", d)
			}
		}
		r.becomes(func(int) (int, error) { return 60, nil }) // it grants little now
		time.Sleep(lastRetry*3/2 + time.Second)
		if !s.Registered(1) {
			t.Error("not registered after the registrar's return")
		}
		back := time.Now()
		lapsed, _ = r.late()
		time.Sleep(week)
		again, _ := r.late()
		if n := len(r.since(back)); again != lapsed || n < int(week/(52*time.Second)) ||
			n > int(week/(44*time.Second)) {
			t.Errorf("asked %d times in a week for a minute each, %d times too late", n, again-lapsed)
		}

		// A wrong password is not retried often: some registrars ban clients for it.
		r.becomes(func(int) (int, error) { return 0, errPassword })
		time.Sleep(time.Hour)
		wrong := time.Now()
		time.Sleep(24 * time.Hour)
		if n := len(r.since(wrong)); n < 140 || n > 145 || s.Registered(1) {
			t.Errorf("a wrong password was tried %d times in a day", n)
		}
		r.becomes(func(expires int) (int, error) { return expires, nil })
		time.Sleep(wrongRetry + time.Second)
		if !s.Registered(1) {
			t.Error("not registered with the right password")
		}
		cancel()
		<-over
		if last := r.wanted[len(r.wanted)-1]; last != 0 || s.Registered(1) {
			t.Errorf("the last wish is for %d seconds", last)
		}
	})
}

// TestRegistrationHostile: a registrar that lies about times can't make us send more requests than any other.
func TestRegistrationHostile(t *testing.T) {
	for name, answer := range map[string]func(expires int) (int, error){
		"grants for ever":          func(int) (int, error) { return 1 << 62, nil },
		"wants ever more":          func(expires int) (int, error) { return 0, brief(expires + 1) },
		"wants more than there is": func(int) (int, error) { return 0, brief(1 << 40) },
		"fails":                    func(int) (int, error) { return 0, errors.New("no") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &registrar{answer: answer}
				reg := &registration{server: New(Config{}), wake: make(chan struct{}, 1), ask: r.ask}
				ctx, cancel := context.WithCancel(t.Context())
				over := make(chan struct{})
				go func() { defer close(over); reg.run(ctx) }()
				time.Sleep(7 * 24 * time.Hour)
				cancel()
				<-over
				if n := len(r.asked); n < 150 || n > 2100 {
					t.Errorf("asked %d times in a week", n)
				}
			})
		})
	}
}
