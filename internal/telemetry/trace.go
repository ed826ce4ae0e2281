// Package telemetry shows operators what a server does: a trace of each conversation by OpenTelemetry, and metrics for
// Prometheus. Spans follow the semantic conventions for generative AI
// (https://opentelemetry.io/docs/specs/semconv/gen-ai/). What people say is never in them.
package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// The variables by which OpenTelemetry is told where traces go
// (https://opentelemetry.io/docs/specs/otel/protocol/exporter/). Without one of the first two there are none. The
// official SDK reads the others, such as OTEL_TRACES_SAMPLER and OTEL_EXPORTER_OTLP_HEADERS, itself.
const (
	endpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	disabled       = "OTEL_SDK_DISABLED"
	exporter       = "OTEL_TRACES_EXPORTER"
	protocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	tracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
)

// Traced reports whether the environment asks for traces, and where they go.
func Traced() (to string, ok bool) {
	if strings.EqualFold(os.Getenv(disabled), "true") || os.Getenv(exporter) == "none" {
		return "", false
	}
	if to = os.Getenv(tracesEndpoint); to == "" {
		to = os.Getenv(endpoint)
	}
	return to, to != ""
}

// complain logs that traces can't be sent, at most once a minute: a collector that is away fails every few seconds.
func complain() otel.ErrorHandlerFunc {
	var last atomic.Int64 // in seconds since 1970
	return func(err error) {
		now, before := time.Now().Unix(), last.Load()
		if now-before >= 60 && last.CompareAndSwap(before, now) {
			slog.Warn("sending traces failed; they are dropped until the collector answers", "error", err)
		}
	}
}

// Open begins to send traces by OTLP over HTTP, where the environment asks for it. Spans wait in a queue of bounded
// length, beyond which they are dropped: nothing waits for the collector. close sends what is left, as long as its
// context lets it.
func Open(ctx context.Context, version string) (close func(context.Context) error, err error) {
	if _, ok := Traced(); !ok {
		return func(context.Context) error { return nil }, nil
	}
	for _, name := range []string{tracesProtocol, protocol} {
		if p := os.Getenv(name); p != "" && p != "http/protobuf" {
			return nil, fmt.Errorf("%s is %q: only http/protobuf is spoken here, which collectors take on port 4318", name, p)
		}
	}
	out, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the exporter of traces (%s): %w", endpoint, err)
	}
	about, err := resource.Merge(resource.NewSchemaless(attribute.String("service.name", "parley"),
		attribute.String("service.version", version)), resource.Environment())
	if err != nil {
		return nil, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(out), sdk.WithResource(about))
	otel.SetErrorHandler(complain())
	otel.SetTracerProvider(provider)
	return func(ctx context.Context) error {
		if err := provider.Shutdown(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("send the last traces: %w", err)
		}
		return nil
	}, nil
}

const scope = "parley"

// Start begins a span below that of the context.
func Start(ctx context.Context, name string, kind trace.SpanKind, about ...attribute.KeyValue) (context.Context, trace.Span) {
	return otel.Tracer(scope).Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(about...))
}

// End ends a span. failure is the kind of error that its work had, "" for none: the text of an error may hold what a
// trace must not.
func End(s trace.Span, failure string) {
	if failure != "" {
		s.SetAttributes(attribute.String("error.type", failure))
		s.SetStatus(codes.Error, failure)
	}
	s.End()
}

// Note adds a span of something that is over.
func Note(ctx context.Context, name string, from, to time.Time, about ...attribute.KeyValue) context.Context {
	ctx, s := otel.Tracer(scope).Start(ctx, name, trace.WithTimestamp(from), trace.WithAttributes(about...))
	s.End(trace.WithTimestamp(to))
	return ctx
}

var propagator propagation.TraceContext

// Inject adds the traceparent header of the context's span to a request (https://www.w3.org/TR/trace-context/).
func Inject(ctx context.Context, h http.Header) { propagator.Inject(ctx, propagation.HeaderCarrier(h)) }

// Parent returns the context's span as the value of a traceparent header, "" if nothing is traced.
func Parent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagator.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// Continue returns a context whose spans belong below a parent that was stored.
func Continue(ctx context.Context, parent string) context.Context {
	if parent == "" {
		return ctx
	}
	return propagator.Extract(ctx, propagation.MapCarrier{"traceparent": parent})
}

// Logs returns a handler that adds the trace to lines that are logged with its context.
func Logs(h slog.Handler) slog.Handler { return logs{h} }

type logs struct{ slog.Handler }

// Handle implements slog.Handler.
func (h logs) Handle(ctx context.Context, r slog.Record) error {
	if c := trace.SpanContextFromContext(ctx); c.IsValid() {
		r.AddAttrs(slog.String("trace_id", c.TraceID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h logs) WithAttrs(list []slog.Attr) slog.Handler { return logs{h.Handler.WithAttrs(list)} }

// WithGroup implements slog.Handler.
func (h logs) WithGroup(name string) slog.Handler { return logs{h.Handler.WithGroup(name)} }
