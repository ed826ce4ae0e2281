package main

import "testing"

func TestSlack(t *testing.T) {
	for kept, want := range map[uint64]int{0: 300, 5 << 20: 300, 8 << 20: 200, 16 << 20: 100, 64 << 20: 50,
		1 << 30: 50} {
		if got := slackOf(kept); got != want {
			t.Errorf("%d MB kept: %d %%, want %d", kept>>20, got, want)
		}
	}
}
