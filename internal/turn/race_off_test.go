//go:build !race

package turn

const raced = false
