package provider

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"parley/internal/ai"
	"parley/internal/telemetry"
)

// broken is a model that fails.
type broken struct{ ai.Model }

func (broken) Generate(context.Context, ai.Request, func(ai.Delta) error) (ai.Reply, error) {
	return ai.Reply{}, &ai.Error{Kind: ai.Interrupted, Err: errors.New("the stream broke")}
}

// A vendor's failure is counted once, and a request that was called off is none.
func TestFailuresAreCounted(t *testing.T) {
	all := prometheus.NewRegistry()
	all.MustRegister(telemetry.Collectors()...)
	failures := func() (n float64) {
		families, err := all.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() != "parley_vendor_errors_total" {
				continue
			}
			for _, m := range f.GetMetric() {
				n += m.GetCounter().GetValue()
			}
		}
		return n
	}
	m := countedModel{broken{}, &source{vendor: &ai.Vendor{Code: "test"}}, "model"}
	ask := func(ctx context.Context) float64 {
		before := failures()
		if _, err := m.Generate(ctx, ai.Request{}, func(ai.Delta) error { return nil }); err == nil {
			t.Error("it did not fail")
		}
		return failures() - before
	}
	if n := ask(t.Context()); n != 1 {
		t.Errorf("a failure is counted as %v", n)
	}
	off, stop := context.WithCancel(t.Context())
	stop()
	if n := ask(off); n != 0 {
		t.Errorf("a request that was called off is counted as %v failures", n)
	}
}
