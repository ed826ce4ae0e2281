package rtp

import "time"

// way is how a key arrives. Later ones are more reliable.
type way uint8

const (
	byTone way = iota + 1
	byInfo
	byEvent
)

// keys reports each key once, although some telephones send it in two ways: once a key has come in a better way, the
// worse ones are ignored.
type keys struct {
	best way
	key  byte
	at   time.Duration
}

// first reports whether a key is new.
func (k *keys) first(key byte, w way, at time.Duration) bool {
	if w < k.best {
		return false
	}
	again := w > k.best && k.best != 0 && key == k.key && at-k.at < time.Second
	k.best, k.key, k.at = w, key, at
	return !again
}
