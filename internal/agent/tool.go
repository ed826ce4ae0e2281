package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"parley/internal/ai"
	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/telemetry"
)

const (
	maxResult = 64 << 10 // bytes of a tool's result that are told to the model
	// tokens of a tool's result that are told to a session, which gets it once and keeps it
	sessionResult = 4_000
	maxCalls      = 32 // calls of one step; a model that makes more is told so
	maxParallel   = 8  // of them run at the same time
)

// call runs the calls of one step, the first of them being the turn's n-th. It returns when all have finished, with
// their records in the same order, and whether one of them ended the turn. An error means that they could not be
// stored: then none ran.
func (t *Turn) call(ctx context.Context, n int, calls []ai.ToolCall) (records []ToolCall, ended bool, err error) {
	records = make([]ToolCall, len(calls))
	ends, unfit := make([]bool, len(calls)), make([]bool, len(calls))
	var (
		mu   sync.Mutex // the sink takes one thing at a time
		wg   sync.WaitGroup
		room = make(chan struct{}, maxParallel)
	)
	tell := func(f func(Sink)) {
		if t.Sink != nil {
			mu.Lock()
			defer mu.Unlock()
			f(t.Sink)
		}
	}
	for i, c := range calls {
		records[i] = ToolCall{ID: c.ID, Name: c.Name, Arguments: written(c.Arguments)}
		if of := slices.IndexFunc(t.Tools, func(tool Tool) bool { return tool.Name == c.Name }); of >= 0 {
			records[i].Fillers = t.Tools[of].Fillers
		}
	}
	keep := t.Keep
	if keep == nil {
		keep = func(context.Context, int, []ToolCall, bool) error { return nil }
	}
	if err := keep(ctx, n, records, false); err != nil {
		return nil, false, err
	}
	for _, started := range records {
		tell(func(s Sink) { s.ToolStarted(started) })
	}
	before := t.misfits.now()
	for i, c := range calls {
		room <- struct{}{}
		crash.Go(&wg, func() {
			defer func() { <-room }()
			if i < maxCalls {
				records[i].Result, unfit[i], ends[i] = t.run(ctx, c)
				if unfit[i] && before[c.Name] {
					records[i].Result = cut(records[i].Result, maxResult-len(hopeless)) + hopeless
				}
			} else {
				records[i].Result = fmt.Sprintf("Error: more than %d calls at once.", maxCalls)
			}
			// the turn goes on with what it has
			if err := keep(context.WithoutCancel(ctx), n+i, records[i:i+1], true); err != nil {
				slog.WarnContext(ctx, "keep the result of a tool", "tool", c.Name, "error", err)
			}
			tell(func(s Sink) { s.ToolFinished(records[i]) })
		}, crash.Log("what a tool came to", "tool", c.Name))
	}
	wg.Wait()
	t.misfits.learn(records, unfit)
	return records, slices.Contains(ends, true), nil
}

// Misfit is the error of a tool that was not run since its arguments don't fit, with all that the model is told of it.
type Misfit string

func (m Misfit) Error() string { return string(m) }

// run makes one call, and reports whether its arguments did not fit, and whether it ended the turn. Whatever goes wrong
// becomes what the model is told.
func (t *Turn) run(ctx context.Context, c ai.ToolCall) (result string, unfit, ends bool) {
	defer crash.Contain(func(err error) {
		slog.ErrorContext(ctx, "a tool panicked", "tool", c.Name, "error", err)
		result, unfit, ends = "Error: the tool failed.", false, false
	})
	i := slices.IndexFunc(t.Tools, func(tool Tool) bool { return tool.Name == c.Name })
	if i < 0 {
		return "Error: there is no tool of this name.", false, false
	}
	if ctx.Err() != nil {
		return "Error: " + ctx.Err().Error(), false, false
	}
	args, err := arguments(t.Tools[i].Schema, c.Arguments)
	if err != nil {
		return "Error: " + err.Error(), true, false
	}
	ctx, span := telemetry.Start(ctx, "execute_tool "+c.Name, trace.SpanKindInternal,
		attribute.String("gen_ai.operation.name", "execute_tool"),
		attribute.String("gen_ai.tool.name", c.Name), attribute.String("gen_ai.tool.call.id", c.ID))
	result, err = t.Tools[i].Run(ctx, args)
	failure := ""
	if err != nil {
		failure = "tool"
	}
	telemetry.End(span, failure)
	result, unfit = Told(result, err)
	return result, unfit, t.Tools[i].Ends && err == nil
}

// Told is what the model is told of what a tool returned, and whether its arguments did not fit.
func Told(result string, err error) (text string, unfit bool) {
	if why, ok := errors.AsType[Misfit](err); ok {
		result, unfit = string(why), true
	} else if err != nil {
		result = "Error: " + err.Error()
	}
	return cut(parley.CleanText(result), maxResult), unfit
}

// misfits are the tools whose arguments did not fit in the last step that called them.
type misfits struct {
	mu    sync.Mutex
	names map[string]bool
}

func (m *misfits) now() map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.names)
}

// learn takes the calls of a step, and which of them did not fit.
func (m *misfits) learn(records []ToolCall, unfit []bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names == nil {
		m.names = map[string]bool{}
	}
	for _, r := range records {
		m.names[r.Name] = false
	}
	for i, r := range records {
		m.names[r.Name] = m.names[r.Name] || unfit[i]
	}
}

// What a model is told that didn't mend what it was told is wrong.
const hopeless = " This is the second time: don't call this tool again now, and say that it did not work."

// cut shortens s to at most n bytes, between runes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// written is the model's arguments as JSON that can be stored and sent.
func written(raw string) json.RawMessage {
	if strings.TrimSpace(raw) == "" {
		return json.RawMessage("{}")
	}
	raw = parley.CleanText(raw)
	if json.Valid([]byte(raw)) {
		return json.RawMessage(raw)
	}
	quoted, _ := json.Marshal(raw) // a string can't fail
	return quoted
}

// object is the part of JSON Schema that arguments and extracted values are checked against.
type object struct {
	Properties map[string]struct {
		Type    any             `json:"type"` // a string, or a list of them
		Default json.RawMessage `json:"default"`
	} `json:"properties"`
	Required []string `json:"required"`
}

// plain reports whether a property has one type, which null is not of.
func (o *object) plain(name string) bool {
	typ, ok := o.Properties[name].Type.(string)
	return ok && typ != "null"
}

// arguments checks the model's arguments against the tool's schema. The error is written for the model.
func arguments(schema json.RawMessage, raw string) (json.RawMessage, error) {
	if s := strings.TrimSpace(raw); s == "" || s == "null" {
		raw = "{}"
	}
	var args map[string]any
	if err := json.Unmarshal([]byte(raw), &args); err != nil {
		return nil, fmt.Errorf("the arguments are not a JSON object: %w", err)
	}
	var o object
	if len(schema) > 0 {
		if err := json.Unmarshal(schema, &o); err != nil {
			return nil, fmt.Errorf("the tool's schema can't be read: %w", err)
		}
	}
	var wrong []error
	for _, name := range o.Required {
		v, ok := args[name]
		if !ok && o.Properties[name].Default == nil || ok && v == nil && o.plain(name) {
			wrong = append(wrong, fmt.Errorf("the argument %s is missing", strconv.Quote(name)))
		}
	}
	for name, v := range args {
		if want, ok := o.Properties[name].Type.(string); ok && v != nil && !isType(v, want) {
			wrong = append(wrong, fmt.Errorf("the argument %s must be of type %s", strconv.Quote(name), want))
		}
	}
	slices.SortFunc(wrong, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return json.RawMessage(raw), errors.Join(wrong...)
}

// isType reports whether a decoded JSON value has a JSON Schema type. Types that none of our tools use are accepted.
func isType(v any, want string) bool {
	switch want {
	case "string":
		_, ok := v.(string)
		return ok
	case "number":
		_, ok := v.(float64)
		return ok
	case "integer":
		f, ok := v.(float64)
		return ok && f == float64(int64(f))
	case "boolean":
		_, ok := v.(bool)
		return ok
	}
	return true
}

// Call runs calls made by a model that hears and speaks by itself, as Run does. The records are in the same order, and
// ended reports that one of them ended the turn. They use the turn's sink and tools. Its session keeps what it is told,
// so a result is shortened to what a session can hold several of.
func (t *Turn) Call(ctx context.Context, calls []ai.ToolCall) (records []ToolCall, ended bool, err error) {
	records, ended, err = t.call(ctx, 0, calls)
	for i := range records {
		records[i].Result = Shorten(records[i].Result, sessionResult)
	}
	return records, ended, err
}
