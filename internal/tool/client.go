package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/internal/parley"
)

// RunInClient has a program of the customer's run a tool of kind client, with decoded JSON values as arguments, and waits for its answer
// as long as the tool may take. What goes wrong is told in the result.
func RunInClient(ctx context.Context, t *parley.Tool, args map[string]any,
	ask func(context.Context, json.RawMessage) (string, error)) Result {
	values, err := given(t, args)
	if err != nil {
		return Result{Error: "The tool was not called: " + err.Error() + ".", Misfit: true}
	}
	own, cancel := context.WithTimeout(ctx, time.Duration(t.Timeout)*time.Second)
	defer cancel()
	start := time.Now()
	text, err := ask(own, json.RawMessage(encode(values)))
	result := Result{Status: 200, DurationMS: time.Since(start).Milliseconds()}
	switch {
	case err == nil:
		text = parley.CleanText(text)
		result.Body, result.Truncated = cmp.Or(cut(text, MaxAnswer), "The tool succeeded."), len(text) > MaxAnswer
		return result
	case ctx.Err() == nil && errors.Is(own.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("the customer's page did not answer within %d s", t.Timeout)
	}
	return Result{DurationMS: result.DurationMS, Error: "The tool failed: " + strings.TrimRight(err.Error(), ".") + "."}
}
