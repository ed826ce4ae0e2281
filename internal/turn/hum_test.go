package turn

import "testing"

// A hum doesn't silence a reply; what has words does, and so does a sound of which nothing is known.
func TestSilences(t *testing.T) {
	for words, want := range map[float32]bool{0: true, 3: true, -1: true, -6: false} {
		if got := Silences(words); got != want {
			t.Errorf("words %v: %v", words, got)
		}
	}
}
