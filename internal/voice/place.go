package voice

import (
	"log/slog"
	"sync"

	"parley/internal/audio"
)

// places are the ambient sounds requested so far. They never change, and all calls share them.
var places struct {
	sync.Mutex
	made map[placeKey]*audio.Ambient
}

type placeKey struct {
	name string
	rate audio.Rate
}

func placeOf(name string, rate audio.Rate) *audio.Ambient {
	places.Lock()
	defer places.Unlock()
	key := placeKey{name, rate}
	if a := places.made[key]; a != nil {
		return a
	}
	a, err := audio.NewAmbient(name, rate, 1)
	if err != nil {
		slog.Warn("no such ambient sound", "name", name, "error", err)
		return nil
	}
	if places.made == nil {
		places.made = map[placeKey]*audio.Ambient{}
	}
	places.made[key] = a
	return a
}
