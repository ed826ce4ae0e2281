package campaign

import "testing"

func TestValue(t *testing.T) {
	for v, want := range map[any]string{-5.5: "-5.5", true: "true", "-5": "'-5"} {
		if got := value(v); got != want {
			t.Errorf("%v is written as %q, want %q", v, got, want)
		}
	}
	if got := value(map[string]any{"a": "x;=1"}); got != `{"a":"x;'=1"}` {
		t.Errorf("an object is written as %s", got)
	}
}
