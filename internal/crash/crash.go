// Package crash keeps a panic to the work in which it happens: that call, chat, document, webhook or job ends with an error, and the
// process goes on. TestHouseGoroutines checks that goroutines are begun by it.
package crash

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// Error is a panic that was stopped.
type Error struct {
	Value any
	Stack []byte
}

// Error has the stack, because nothing else says where the panic came from: log it, and tell nobody.
func (e *Error) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// Is reports whether an error was a panic.
func Is(err error) bool {
	_, ok := errors.AsType[*Error](err)
	return ok
}

// Contain, deferred, stops a panic and hands it to then, as an *Error.
func Contain(then func(error)) {
	if v := recover(); v != nil {
		then(&Error{v, debug.Stack()})
	}
}

// Run calls fn, and returns a panic as an error.
func Run(fn func() error) (err error) {
	defer Contain(func(e error) { err = e })
	return fn()
}

// Go runs fn in a goroutine of wg, and hands a panic to then before the goroutine ends.
func Go(wg *sync.WaitGroup, fn func(), then func(error)) {
	wg.Go(func() {
		defer Contain(then)
		fn()
	})
}

// again is how long a loop rests after a panic.
const again = 5 * time.Second

// Loop runs what ends with ctx. After a panic, which it logs, it begins it again.
func Loop(ctx context.Context, what string, fn func() error) error {
	for {
		err := Run(fn)
		if !Is(err) {
			return err
		}
		Log(what)(err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again):
		}
	}
}

// Every calls fn at once and then repeatedly until ctx ends. It logs what fails, and a panic as a failure; what says what fn does.
func Every(ctx context.Context, pause time.Duration, what string, fn func(context.Context) error) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		if err := Run(func() error { return fn(ctx) }); err != nil && ctx.Err() == nil {
			slog.Error(what, "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Log returns a function that logs a panic, for work whose failure nobody waits for.
func Log(what string, args ...any) func(error) {
	return func(err error) { slog.Error(what+" panicked", append(args[:len(args):len(args)], "error", err)...) }
}
