package rest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
)

// Events are read whatever their line ends are, whatever stands between them, and however long they are. An event that
// is cut off at the end is dropped.
func TestEvents(t *testing.T) {
	long := strings.Repeat("0123456789", 2000)
	for name, c := range map[string]struct{ text, want string }{
		"plain":          {"event: a\ndata: 1\n\ndata: 2\n\n", "[a=1][=2]"},
		"carriage":       {"event:a\r\ndata:1\r\n\r\n", "[a=1]"},
		"comments":       {": hello\n\n: x\nevent: a\n: y\ndata: 1\nid: 5\nretry: 3\n\n\n", "[a=1]"},
		"several lines":  {"data: 1\ndata: 2\n\n", "[=1\n2]"},
		"without a text": {"event: ping\n\ndata: 1\n\n", "[=1]"},
		"one space":      {"data:  1\n\n", "[= 1]"},
		"cut off":        {"data: 1\n\ndata: 2\n", "[=1]"},
		"in its line":    {"data: 1\n\ndata: 2", "[=1]"},
		"long":           {"data: " + long + "\n\ndata: " + long + "x\n\ndata: 1\n\n", "[=" + long + "][=" + long + "x][=1]"},
		"the last":       {"data: end\n\ndata: 2\n\n", "[=end]"},
	} {
		var got strings.Builder
		err := events(t.Context(), iotest.HalfReader(strings.NewReader(c.text)), func(name string, data []byte) error {
			fmt.Fprintf(&got, "[%s=%s]", name, data)
			if string(data) == "end" {
				return ErrEnough
			}
			return nil
		})
		if err != nil || got.String() != c.want {
			t.Errorf("%s: got %.100q, %v, want %.100q", name, got.String(), err, c.want)
		}
	}
	broken := errors.New("gone")
	err := events(t.Context(), iotest.ErrReader(broken), func(string, []byte) error { return nil })
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
