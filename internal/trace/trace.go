package trace

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"regexp"
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
	otrace "go.opentelemetry.io/otel/trace"
)

// Tracer makes the spans of a process. nil makes none.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   otrace.Tracer
}

// FromEnvironment returns a tracer where the environment says where spans go, else nil. The variables are OpenTelemetry's: the
// exporter, the SDK's sampler, batches and resource read their own.
func FromEnvironment(ctx context.Context, version string, log *slog.Logger) (*Tracer, error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" ||
		os.Getenv("OTEL_TRACES_EXPORTER") == "none" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return nil, nil
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if p := os.Getenv(name); p != "" && p != "http/protobuf" {
			return nil, fmt.Errorf("%s=%s: pgaccel sends http/protobuf only (port 4318 of most collectors)", name, p)
		} else if p != "" {
			break
		}
	}
	otel.SetErrorHandler(&complaints{log: log})
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_...: %w", err)
	}
	of, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(attribute.String("service.name", "pgaccel"), attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	p := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(of))
	return &Tracer{provider: p, tracer: p.Tracer("pgaccel", otrace.WithInstrumentationVersion(version))}, nil
}

// Close sends what has not been sent, until ctx ends.
func (t *Tracer) Close(ctx context.Context) {
	if t != nil {
		t.provider.Shutdown(ctx)
	}
}

// complaintEvery is how often the log has that spans cannot be sent.
const complaintEvery = time.Minute

// complaints logs what goes wrong behind everybody's back.
type complaints struct {
	log  *slog.Logger
	last atomic.Int64 // nanoseconds since 1970
}

// Handle implements otel.ErrorHandler.
func (c *complaints) Handle(err error) {
	now, last := time.Now().UnixNano(), c.last.Load()
	if now-last >= int64(complaintEvery) && c.last.CompareAndSwap(last, now) {
		c.log.Warn("spans are lost: they cannot be sent to OTEL_EXPORTER_OTLP_ENDPOINT", "error", err)
	}
}

// Span is one that others may be below. nil is none.
type Span struct {
	tracer otrace.Tracer
	ctx    context.Context // that has it
	span   otrace.Span
}

// Statement begins the span of a statement that came at a time. It is nil where it is not sampled.
func (t *Tracer) Statement(text string, began time.Time) *Span {
	if t == nil {
		return nil
	}
	ctx := context.Background()
	if parent := tagsOf(text); parent != nil {
		ctx = propagation.TraceContext{}.Extract(ctx, parent)
	}
	return newSpan(t.tracer, ctx, "statement", began, otrace.WithSpanKind(otrace.SpanKindServer))
}

func newSpan(t otrace.Tracer, ctx context.Context, name string, began time.Time, opts ...otrace.SpanStartOption) *Span {
	s := &Span{tracer: t}
	s.ctx, s.span = t.Start(ctx, name, append(opts, otrace.WithTimestamp(began))...)
	if !s.span.IsRecording() {
		return nil
	}
	return s
}

// tag finds the tags of sqlcommenter that matter: key='value', the value URL-encoded.
var tag = regexp.MustCompile(`\b(traceparent|tracestate)\s*=\s*'([^'\\]*)'`)

// tagsOf returns the tags of the last comment of a text, nil without any.
func tagsOf(text string) propagation.TextMapCarrier {
	if !strings.Contains(text, "traceparent") {
		return nil
	}
	start, end := strings.LastIndex(text, "/*"), strings.LastIndex(text, "*/")
	if start < 0 || end < start {
		return nil
	}
	found := propagation.MapCarrier{}
	for _, m := range tag.FindAllStringSubmatch(text[start:end], -1) {
		if value, err := url.PathUnescape(m[2]); err == nil {
			found[m[1]] = value
		}
	}
	return found
}

// Begin begins a span below s.
func (s *Span) Begin(name string, began time.Time) *Span {
	if s == nil {
		return nil
	}
	return newSpan(s.tracer, s.ctx, name, began)
}

// Record adds a span below s that is over. attributes are keys and values.
func (s *Span) Record(name string, began, ended time.Time, attributes ...string) {
	if s != nil {
		s.Begin(name, began).End(ended, attributes...)
	}
}

// Milliseconds gives a span a duration as an attribute.
func (s *Span) Milliseconds(name string, d time.Duration) {
	if s != nil {
		s.span.SetAttributes(attribute.Float64(name, float64(d)/float64(time.Millisecond)))
	}
}

// End ends a span.
func (s *Span) End(at time.Time, attributes ...string) {
	if s == nil {
		return
	}
	for i := 0; i+1 < len(attributes); i += 2 {
		if attributes[i+1] != "" {
			s.span.SetAttributes(attribute.String(attributes[i], attributes[i+1]))
		}
	}
	s.span.End(otrace.WithTimestamp(at))
}

// Outcome is what a statement has come to, "" for what is not known. Nothing in it is a value of a client's.
type Outcome struct {
	Query, Command, Database string
	Route, Reason            string
	SQLState                 string // of the error that it has ended with
	Rows                     int
	PID                      int32 // of the server's process
}

// EndStatement ends the span of a statement.
func (s *Span) EndStatement(at time.Time, o Outcome) {
	if s == nil {
		return
	}
	if o.Command != "" {
		s.span.SetName(o.Command)
	}
	s.span.SetAttributes(attribute.Int("pgaccel.server_pid", int(o.PID)))
	if o.SQLState != "" {
		s.span.SetStatus(codes.Error, o.SQLState)
	} else {
		s.span.SetAttributes(attribute.Int("db.response.returned_rows", o.Rows))
	}
	s.End(at, "db.system.name", "postgresql", "db.namespace", o.Database, "db.query.text", o.Query, "db.operation.name", o.Command,
		"db.response.status_code", o.SQLState, "pgaccel.route", o.Route, "pgaccel.reason", o.Reason)
}

type key struct{}

// With returns a context that has a span.
func With(ctx context.Context, s *Span) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, key{}, s)
}

// Of returns the context's span.
func Of(ctx context.Context) *Span {
	s, _ := ctx.Value(key{}).(*Span)
	return s
}
