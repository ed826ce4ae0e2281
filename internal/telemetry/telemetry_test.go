package telemetry_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"parley/internal/telemetry"
)

// What the environment says about traces is followed, and what can't be done is refused in words.
func TestEnvironment(t *testing.T) {
	const here = "http://127.0.0.1:4318"
	for name, c := range map[string]struct {
		env   []string
		to    string
		wrong string
	}{
		"nothing":     {nil, "", ""},
		"an endpoint": {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", here}, here, ""},
		"for traces": {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", here, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", here + "/v1/traces"},
			here + "/v1/traces", ""},
		"switched off": {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", here, "OTEL_SDK_DISABLED", "true"}, "", ""},
		"no exporter":  {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", here, "OTEL_TRACES_EXPORTER", "none"}, "", ""},
		"gRPC": {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", here, "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}, here,
			"OTEL_EXPORTER_OTLP_PROTOCOL is \"grpc\""},
		"JSON for traces": {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", here, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"}, here,
			"only http/protobuf"},
	} {
		t.Run(name, func(t *testing.T) {
			for i := 0; i < len(c.env); i += 2 {
				t.Setenv(c.env[i], c.env[i+1])
			}
			if to, ok := telemetry.Traced(); to != c.to || ok != (c.to != "") {
				t.Errorf("traces go to %q, %v", to, ok)
			}
			if c.wrong == "" {
				return
			}
			if _, err := telemetry.Open(t.Context(), "v1"); err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("opened: %v", err)
			}
		})
	}
}

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" // the example of the W3C

// A stored parent is continued: in headers, in further parents, and in lines of the log. Without one nothing is added.
func TestContinue(t *testing.T) {
	ctx := telemetry.Continue(t.Context(), parent)
	h := http.Header{}
	telemetry.Inject(ctx, h)
	if h.Get("traceparent") != parent || telemetry.Parent(ctx) != parent {
		t.Errorf("continued as %q and %q", h.Get("traceparent"), telemetry.Parent(ctx))
	}
	var log bytes.Buffer
	l := slog.New(telemetry.Logs(slog.NewTextHandler(&log, nil))).With("call", 7).WithGroup("sound")
	l.WarnContext(ctx, "late", "ms", 3)
	if !strings.Contains(log.String(), "call=7") || !strings.Contains(log.String(), "trace_id=0af7651916cd43dd8448eb211c80319c") {
		t.Errorf("logged %s", log.String())
	}
	for _, none := range []string{"", "nonsense", "00-00000000000000000000000000000000-b7ad6b7169203331-01"} {
		ctx, h := telemetry.Continue(t.Context(), none), http.Header{}
		telemetry.Inject(ctx, h)
		if len(h) != 0 || telemetry.Parent(ctx) != "" {
			t.Errorf("%q is continued: %v", none, h)
		}
	}
	log.Reset()
	l.Warn("late")
	if strings.Contains(log.String(), "trace_id") {
		t.Errorf("logged %s", log.String())
	}
}

// Where nothing is traced, a span costs next to nothing.
func TestUntraced(t *testing.T) {
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		_, s := telemetry.Start(ctx, "reply", trace.SpanKindInternal)
		telemetry.End(s, "")
	}); n > 5 {
		t.Errorf("%v allocations", n)
	}
}
