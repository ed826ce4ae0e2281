package voice

import (
	"context"
	"encoding/json"
	"testing"

	"parley/internal/agent"
)

// A tool goes on when the reply that called it is interrupted, unless it changes nothing.
func TestOutlasting(t *testing.T) {
	call, reply := t.Context(), t.Context()
	reply, interrupt := context.WithCancel(reply)
	interrupt()
	does := func(ctx context.Context, _ json.RawMessage) (string, error) { return "done", ctx.Err() }
	r := &run{ctx: call}
	for _, tool := range r.outlasting([]agent.Tool{{Run: does}, {Run: does, Idle: true}}) {
		if _, err := tool.Run(reply, nil); (err != nil) != tool.Idle {
			t.Errorf("idle %v: %v", tool.Idle, err)
		}
	}
}
