package rtp

import "time"

// way is how a key comes. Later ones are more reliable.
type way uint8

const (
	byTone way = iota + 1
	byInfo
	byEvent
)

// keys tells each key once, although some telephones send it in two ways: once a better way has brought a key, the
// worse ones are not believed any more.
type keys struct {
	best way
	key  byte
	at   time.Duration
}

// first says whether a key is a new one.
func (k *keys) first(key byte, w way, at time.Duration) bool {
	if w < k.best {
		return false
	}
	again := w > k.best && k.best != 0 && key == k.key && at-k.at < time.Second
	k.best, k.key, k.at = w, key, at
	return !again
}
