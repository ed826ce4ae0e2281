package main

import "testing"

func TestSlack(t *testing.T) {
	for kept, want := range map[uint64]int{0: 300, 5 << 20: 300, 16 << 20: 200, 32 << 20: 100, 1 << 30: 100} {
		if got := slackOf(kept); got != want {
			t.Errorf("%d MB kept: %d %%, want %d", kept>>20, got, want)
		}
	}
}
