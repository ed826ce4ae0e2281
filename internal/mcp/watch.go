package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/internal/egress"
)

// answered is a server's own error, nil where it gave none: the SDK makes such errors of HTTP statuses too.
func answered(err error) *jsonrpc.Error {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Message != "rejected by transport" {
		return e
	}
	return nil
}

// watch is what was seen of the HTTP exchanges of a call: the SDK's errors keep little of it.
type watch struct {
	mu     sync.Mutex
	status int
	err    error  // of the last exchange
	told   string // the beginning of what a refused request was told
}

type watchKey struct{}

func watched(ctx context.Context) (context.Context, *watch) {
	w := &watch{}
	return context.WithValue(ctx, watchKey{}, w), w
}

// see notes how an exchange went.
func see(ctx context.Context, status int, err error) {
	if w, ok := ctx.Value(watchKey{}).(*watch); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.status, w.err, w.told = status, err, ""
	}
}

// hear notes what a refused request was told.
func hear(ctx context.Context, told string) {
	if w, ok := ctx.Value(watchKey{}).(*watch); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.told = strings.ToLower(told)
	}
}

func (w *watch) last() (status int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status, w.err
}

// forgotten reports whether the server doesn't know a session any more: it says 404, and some say 400 and speak of it.
func (w *watch) forgotten(cs *sdk.ClientSession, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cs.ID() != "" && (errors.Is(err, sdk.ErrSessionMissing) || w.status == http.StatusNotFound ||
		w.status == http.StatusBadRequest && strings.Contains(w.told, "session"))
}

// Answers of which no more is read.
var (
	errLarge = fmt.Errorf("the server's answer is larger than %d MB", maxAnswer>>20)
	errMany  = errors.New("the server sends too many messages before its answer")
)

// explain says in words why a server gave no answer. Errors of a context stay what they are.
func (w *watch) explain(ctx context.Context, err error) error {
	status, seen := w.last()
	denied, isDenied := errors.AsType[*refusal](errors.Join(err, seen))
	refused, isRefused := errors.AsType[*egress.Refused](errors.Join(err, seen))
	spoken := answered(err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case isDenied:
		return denied
	case isRefused:
		return errors.New(refused.Reason)
	case errors.Is(seen, errLarge), errors.Is(seen, errMany):
		return seen
	case seen != nil:
		return errors.New(egress.Explain(seen))
	case spoken != nil:
		return fmt.Errorf("the server answers: %s", cut(strings.ToValidUTF8(spoken.Message, "\uFFFD"), maxText))
	case status == http.StatusUnauthorized:
		return errors.New("the server wants other credentials (HTTP status 401 Unauthorized)")
	case status < 200 || status > 299:
		return fmt.Errorf("the server answers with HTTP status %s", strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status))))
	}
	return errors.New("the server's answer is not one of the MCP protocol")
}
