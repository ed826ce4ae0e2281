package aitest

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/internal/ai"
)

// ConformEmbedder checks that an Embedder keeps the promises of ai.Embedder.
func ConformEmbedder(t *testing.T, e ai.Embedder) {
	bakery, bread, parking := "The bakery opens at seven in the morning.",
		"When does the bakery open in the morning?", "Parking costs four dollars behind the house."
	t.Run("has a name", func(t *testing.T) {
		if e.Name() == "" {
			t.Error("it has none")
		}
	})
	t.Run("places texts by what they mean", func(t *testing.T) {
		got := embedded(t, e, bakery, bread, parking, bakery)
		if near, far := cosine(got[0], got[1]), cosine(got[0], got[2]); near <= far {
			t.Errorf("question and answer are %.3f near, others %.3f", near, far)
		}
		if same := cosine(got[0], got[3]); same < 0.999 {
			t.Errorf("the same text twice is %.4f near", same)
		}
	})
	t.Run("keeps the order", func(t *testing.T) {
		var texts []string
		for i := range 40 {
			texts = append(texts, strings.Repeat([]string{"bread ", "parking ", "morning "}[i%3],
				i+1)+string(rune('a'+i%26)))
		}
		all := embedded(t, e, texts...)
		for _, i := range []int{0, 7, 39} {
			if alone := embedded(t, e, texts[i]); cosine(alone[0], all[i]) < 0.999 {
				t.Errorf("text %d is %.4f near to itself", i, cosine(alone[0], all[i]))
			}
		}
	})
	t.Run("takes odd texts", func(t *testing.T) {
		embedded(t, e, "", " ", "Zoë 4 € 🙂", "a\x00b", strings.Repeat("a long text ", 5000))
	})
	t.Run("takes none", func(t *testing.T) {
		if got := embedded(t, e); len(got) != 0 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("stops", func(t *testing.T) {
		cause := errors.New("nobody waits")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if _, err := e.Embed(ctx, []string{bakery}); err != cause { //nolint:errorlint // it must come back as it is
			t.Errorf("got %v", err)
		}
	})
	t.Run("serves many at once", func(t *testing.T) {
		want := embedded(t, e, bakery)[0]
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				got, err := e.Embed(t.Context(), []string{bakery})
				if err != nil || len(got) != 1 || cosine(got[0], want) < 0.999 {
					t.Errorf("got %d vectors, %v", len(got), err)
				}
			})
		}
		wg.Wait()
	})
}

func embedded(t *testing.T, e ai.Embedder, texts ...string) [][]float32 {
	t.Helper()
	got, err := e.Embed(t.Context(), texts)
	if err != nil || len(got) != len(texts) {
		t.Fatalf("%d vectors for %d texts: %v", len(got), len(texts), err)
	}
	for i, v := range got {
		bad := func(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }
		if len(v) == 0 || len(v) != len(got[0]) || slices.ContainsFunc(v, bad) {
			t.Fatalf("vector %d has %d numbers, the first %d", i, len(v), len(got[0]))
		}
	}
	return got
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}
