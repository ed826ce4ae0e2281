//go:build !race

package voice

const raced = false
