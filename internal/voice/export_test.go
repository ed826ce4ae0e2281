package voice

import (
	"runtime"

	"parley/internal/audio"
)

// Settle waits until the owner has taken everything that the leg gave it. It allocates nothing.
func Settle(p audio.Peer) {
	r := p.(*peer).r
	for len(r.frames) > 0 || r.ticked.Load() {
		runtime.Gosched()
	}
}
