package turn

import (
	"testing"
	"time"
)

// Words of listening come in the pauses of a long story alone: not where the customer asks, dictates or may have finished,
// not twice within six seconds, and not where they aren't wanted.
func TestNods(t *testing.T) {
	and := []string{"so I went there and", "then they told me the", "and because of the", "I said to the", "and then with the",
		"which was in the", "and I gave it to the", "but they had the", "and so the", "and when the", "I saw that the", "and my"}
	for _, c := range []struct {
		name, asks string
		groups     []string
		off        bool
		want       int
	}{
		{"a long story", "How can I help?", append(and[:len(and):len(and)], and...), false, 4},
		{"not wanted", "How can I help?", and, true, 0},
		{"a short one", "How can I help?", and[:7], false, 0},
		{"long enough", "How can I help?", and[:8], false, 1},
		{"a number", "What is your twelve-digit code?",
			[]string{"four", "seven", "one", "five", "three", "three", "nine", "two", "eight"}, false, 0},
		{"a question", "How can I help?", append(and[:7:7], "do you know when the?"), false, 0},
		{"it may be over", "How can I help?", append(and[:7:7], "old one was broken"), false, 0},
	} {
		x := asked("en", c.asks, true)
		x.m.manner.Nods = !c.off
		for n, group := range c.groups {
			x.tell(n, group)
			if n == len(c.groups)-1 || len(c.groups) > len(and) {
				x.wait(340 * time.Millisecond)
			}
		}
		if len(x.nods) != c.want || len(x.turns) != 0 && c.want > 0 {
			t.Errorf("%s: words of listening at %v, want %d; turns %q", c.name, x.nods, c.want, x.turns)
		}
		for i := range x.nods {
			if i > 0 && x.nods[i]-x.nods[i-1] < 6*time.Second {
				t.Errorf("%s: words of listening at %v", c.name, x.nods)
			}
		}
	}
}
