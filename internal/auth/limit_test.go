package auth_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/auth"
	"parley/internal/parley"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]auth.Rate{"200/s": {PerSecond: 200, Burst: 400},
		"60/min": {PerSecond: 1, Burst: 60}, "10/min": {PerSecond: 10. / 60, Burst: 10},
		"5/s": {PerSecond: 5, Burst: 10}, "off": {}} {
		var r auth.Rate
		if err := r.UnmarshalText([]byte(text)); err != nil || r != want {
			t.Errorf("%s is %+v: %v", text, r, err)
		}
	}
	for _, text := range []string{"", "0/s", "-1/s", "1.5/s", "5", "5/", "/s", "5/h", "5/S", "5 / s", " 5/s", "OFF",
		"9999999999/s", "99999999999999999999/s", "5/s/s", "x/s"} {
		if r, err := auth.ParseRate(text); err == nil {
			t.Errorf("%q is %+v", text, r)
		}
	}
}

func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := auth.NewLimiter(auth.Rate{PerSecond: 10. / 60, Burst: 10})
		take := func(name string) (int, error) { return l.Take(name, time.Now()) }
		for want := 9; want >= 0; want-- {
			if left, err := take("a"); err != nil || left != want {
				t.Fatalf("%d left, want %d: %v", left, want, err)
			}
		}
		var e *auth.LimitError
		var p *parley.Error
		_, err := take("a")
		if !errors.As(err, &e) || e.RetryAfter != 6 || !errors.As(err, &p) || p.Kind != parley.TooMany ||
			err.Error() != "Too Many Attempts." {
			t.Errorf("refused with %+v", err)
		}
		if left, err := take("b"); err != nil || left != 9 {
			t.Errorf("another name has %d: %v", left, err)
		}
		time.Sleep(5 * time.Second) // by the bubble's clock
		if _, err = take("a"); !errors.As(err, &e) || e.RetryAfter != 1 {
			t.Errorf("after 5 s: %+v", err)
		}
		time.Sleep(time.Second) // as long as Retry-After said
		if left, err := take("a"); err != nil || left != 0 {
			t.Errorf("after 6 s: %d, %v", left, err)
		}
		time.Sleep(time.Hour)
		if left, err := take("a"); err != nil || left != 9 {
			t.Errorf("after an hour: %d, %v", left, err)
		}
		if l.Limit() != 10 {
			t.Errorf("limit %d", l.Limit())
		}
	})
}

func TestLimiterThatIsOff(t *testing.T) {
	l := auth.NewLimiter(auth.Rate{})
	for range 1000 {
		if left, err := l.Take("a", time.Now()); err != nil || left < 1000 {
			t.Fatal(left, err)
		}
	}
	if l.Limit() != 0 {
		t.Errorf("limit %d", l.Limit())
	}
}

// However many requests come at once, no more than the burst gets through; a name that is forgotten gets no extra
// requests.
func TestLimiterTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := auth.NewLimiter(auth.Rate{PerSecond: 1, Burst: 20})
		for round := range 3 {
			var ok atomic.Int64
			var wg sync.WaitGroup
			for i := range 100 {
				wg.Go(func() {
					l.Take(fmt.Sprint(round, i), time.Now())
					if _, err := l.Take("a", time.Now()); err == nil {
						ok.Add(1)
					}
				})
			}
			wg.Wait()
			if ok.Load() != 20 {
				t.Errorf("%d got through", ok.Load())
			}
			time.Sleep(2 * time.Minute)
		}
	})
}
