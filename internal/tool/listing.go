package tool

import (
	"context"
	"sync"

	"parley/internal/crash"
	"parley/internal/parley"
)

// maxListing is how many servers are listed in the background at the same time.
const maxListing = 16

// listing are the lists of MCP servers that are being made in the background.
type listing struct {
	ctx  context.Context
	stop context.CancelFunc
	wait sync.WaitGroup
	mu   sync.Mutex
	// those who want to know, by the tool
	under map[int64][]func(*parley.ToolListing)
}

// Background has a server listed without waiting for it, once at a time, and tells done. Where too many are being listed
// nothing happens: the next conversation tries again.
func (r *Runner) Background(toolID int64, list func(context.Context) *parley.ToolListing, done func(*parley.ToolListing)) {
	b := &r.listing
	b.mu.Lock()
	defer b.mu.Unlock()
	if others, there := b.under[toolID]; there {
		b.under[toolID] = append(others, done)
		return
	}
	if len(b.under) >= maxListing || b.ctx.Err() != nil {
		return
	}
	if b.under == nil {
		b.under = map[int64][]func(*parley.ToolListing){}
	}
	b.under[toolID] = []func(*parley.ToolListing){done}
	crash.Go(&b.wait, func() {
		var l *parley.ToolListing
		defer func() {
			b.mu.Lock()
			all := b.under[toolID]
			delete(b.under, toolID)
			b.mu.Unlock()
			for _, tell := range all {
				if l != nil {
					tell(l)
				}
			}
		}()
		l = list(b.ctx)
	}, crash.Log("the list of an MCP server's tools", "tool", toolID))
}
