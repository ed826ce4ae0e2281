//go:build race

package turn

// raced: what is pure and slow is left to runs without the race detector.
const raced = true
