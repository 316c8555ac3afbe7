package trace

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestTags(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	f := func(text, traceparent, tracestate string) {
		t.Helper()
		var got [2]string
		if tags := tagsOf(text); tags != nil {
			got = [2]string{tags.Get("traceparent"), tags.Get("tracestate")}
		}
		if got != [2]string{traceparent, tracestate} {
			t.Errorf("%s: %q", text, got)
		}
	}
	f("SELECT 1 /*action='run',traceparent='"+parent+"',tracestate='congo%3Dt61rcWkgMzE%2Crojo%3D1'*/", parent, "congo=t61rcWkgMzE,rojo=1")
	f("/* traceparent = '"+parent+"' */ SELECT 1;", parent, "")
	f("SELECT 1 /*x*/ /*traceparent='"+parent+"'*/", parent, "")
	f("SELECT 'traceparent=''"+parent+"''' /*x*/", "", "")
	f("SELECT 1 -- traceparent='"+parent+"'", "", "")
	f("SELECT 1 /*traceparent='%zz'*/", "", "")
	f("SELECT traceparent FROM t", "", "")
	f("SELECT 1 */ traceparent='"+parent+"' /*", "", "")
	f("", "", "")
}

// TestOff: without an endpoint nothing is allocated, wherever a span would be made.
func TestOff(t *testing.T) {
	for _, environment := range []map[string]string{
		{},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_SDK_DISABLED": "true"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER": "none"},
	} {
		t.Run("", func(t *testing.T) {
			for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER"} {
				t.Setenv(name, environment[name])
			}
			tracer, err := FromEnvironment(t.Context(), "1", nil)
			if tracer != nil || err != nil {
				t.Fatal(tracer, err)
			}
			now, ctx := time.Now(), t.Context()
			if n := testing.AllocsPerRun(100, func() {
				s := tracer.Statement("SELECT 1 /*traceparent='00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'*/", now)
				s = Of(With(ctx, s)).Begin("execute", now)
				s.Record("device", now, now, "pgaccel.device", "cpu")
				s.Milliseconds("pgaccel.device.wait_ms", time.Millisecond)
				s.End(now, "pgaccel.device", "cpu")
				s.EndStatement(now, Outcome{Query: "SELECT 1"})
			}); n > 0 {
				t.Errorf("%g allocations", n)
			}
			tracer.Close(t.Context())
		})
	}
}

// TestProtocol: what is not sent is refused at the start, and not when spans are.
func TestProtocol(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	if _, err := FromEnvironment(t.Context(), "1", nil); err == nil || !strings.Contains(err.Error(), "http/protobuf") {
		t.Errorf("grpc: %v", err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf")
	tracer, err := FromEnvironment(t.Context(), "1", nil)
	if err != nil || tracer == nil {
		t.Fatal(tracer, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tracer.Close(ctx)
}
