//go:build race

package voice

// raced: what is pure and slow is left to runs without the race detector.
const raced = true
