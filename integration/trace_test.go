package integration

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// receivedSpan is one that a collector has got.
type receivedSpan struct {
	name, trace, id, parent string
	attributes              map[string]string
	status                  string
}

// spanCollector takes OTLP over HTTP.
type spanCollector struct {
	mu       sync.Mutex
	spans    []receivedSpan
	resource map[string]string
	secret   bool // somewhere in what came
}

func (c *spanCollector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &request)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, fmt.Sprint(r.URL.Path, err), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.secret = c.secret || bytes.Contains(body, []byte("secret"))
	for _, of := range request.ResourceSpans {
		c.resource = map[string]string{}
		for _, a := range of.Resource.Attributes {
			c.resource[a.Key] = a.Value.GetStringValue()
		}
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				one := receivedSpan{name: s.Name, trace: fmt.Sprintf("%x", s.TraceId), id: fmt.Sprintf("%x", s.SpanId), parent: fmt.Sprintf("%x", s.ParentSpanId), attributes: map[string]string{}}
				for _, a := range s.Attributes {
					if one.attributes[a.Key] = a.Value.GetStringValue(); a.Value.GetDoubleValue() > 0 {
						one.attributes[a.Key] = "time"
					}
				}
				if s.Status.GetCode() != 0 {
					one.status = s.Status.Message
				}
				if s.EndTimeUnixNano < s.StartTimeUnixNano {
					one.status = "it ends before it begins"
				}
				c.spans = append(c.spans, one)
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// of returns the spans of a trace.
func (c *spanCollector) of(trace string) (list []receivedSpan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.trace == trace {
			list = append(list, s)
		}
	}
	return list
}

// TestTraces: where the environment has an endpoint, spans of statements go there, below those of clients, with what they have come
// to, and without values.
func TestTraces(t *testing.T) {
	c := &spanCollector{}
	endpoint := httptest.NewServer(c)
	t.Cleanup(endpoint.Close)
	for name, value := range map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint.URL, "OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_SERVICE_NAME": "reports"} {
		t.Setenv(name, value)
	}
	s := deviceStack(t, "CREATE TABLE traced (id int PRIMARY KEY, v int, t text);\nINSERT INTO traced SELECT g, g % 10, 'row' FROM generate_series(1, 100000) g")
	direct, proxy, device := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres")), connect(t, s.proxy.url("postgres", demandDevice))
	const client = "00f067aa0ba902b7"
	traces := 0
	next := func() (trace, comment string) {
		traces++
		trace = fmt.Sprintf("4bf92f3577b34da6a3ce929d%08x", traces)
		return trace, fmt.Sprintf(" /*route='secret',traceparent='00-%s-%s-01'*/", trace, client)
	}
	// tree waits for the span of a statement, and for those wanted below it; below "execute" is written as execute/device.
	tree := func(trace string, wanted ...string) (root receivedSpan, names []string) {
		t.Helper()
		ok := func() bool {
			spans := c.of(trace)
			names = nil
			for _, one := range spans {
				if one.parent == client {
					root = one
				}
			}
			for _, one := range spans {
				if one.id == root.id {
					continue
				}
				at := slices.IndexFunc(spans, func(p receivedSpan) bool { return p.id == one.parent })
				switch {
				case at < 0:
					names = append(names, "? "+one.name)
				case spans[at].id == root.id:
					names = append(names, one.name)
				default:
					names = append(names, spans[at].name+"/"+one.name)
				}
			}
			return root.id != "" && !slices.ContainsFunc(wanted, func(w string) bool { return !slices.Contains(names, w) })
		}
		waitFor(t, fmt.Sprintf("%s of %s", wanted, trace), ok)
		return root, names
	}
	const grouped = "SELECT v, count(*) FROM traced WHERE t <> 'secret' GROUP BY v"
	const shape = "SELECT v, count(*) FROM traced WHERE t <> $1 GROUP BY v"
	for _, step := range []struct {
		name       string
		do         func(comment string)
		below      []string
		span       string
		attributes string
	}{
		{"accelerated", func(comment string) { ask(t, proxy, grouped+comment, nil) }, []string{"decide", "gate", "execute", "write"},
			"SELECT", "accelerated||" + shape + "|"},
		{"accelerated, extended", func(comment string) {
			ask(t, proxy, "SELECT v, count(*) FROM traced WHERE t <> $1 GROUP BY v"+comment, []int16{0}, "secret")
		}, []string{"decide", "gate", "execute", "write"}, "SELECT", "accelerated||" + shape + "|"},
		{"on a device", func(comment string) {
			ask(t, device, "SELECT v, count(*) FROM traced WHERE id > 7 GROUP BY v"+comment, nil)
		}, []string{"decide", "gate", "execute", "execute/device", "write"},
			"SELECT", "accelerated||SELECT v, count(*) FROM traced WHERE id > $1 GROUP BY v|"},
		{"refused behind the gate", func(comment string) { ask(t, proxy, "SELECT sum(1 / (v - 1)) FROM traced"+comment, nil) }, []string{"decide", "gate", "forward"},
			"statement", "forwarded|evaluation|SELECT sum($1 / (v - $2)) FROM traced|22012"},
		{"forwarded", func(comment string) {
			ask(t, proxy, "SELECT count(random()) FROM traced WHERE t <> 'secret'"+comment, nil)
		}, []string{"decide", "forward"},
			"SELECT", "forwarded|volatile|SELECT count(random()) FROM traced WHERE t <> $1|"},
		{"relayed", func(comment string) { ask(t, proxy, "SELECT 'secret'"+comment, nil) }, []string{"forward"}, "SELECT", "forwarded|no accelerated table|SELECT $1|"},
	} {
		trace, comment := next()
		step.do(comment)
		root, names := tree(trace, step.below...)
		for _, name := range names {
			if !slices.Contains(step.below, name) && name != "wait" && name != "execute" { // there may be one in vain
				t.Errorf("%s: %s below it", step.name, name)
			}
		}
		for _, one := range c.of(trace) {
			for _, name := range []string{"prepare", "round_trip", "worker", "busy", "kernels", "result"} {
				if one.name == "device" && one.attributes["pgaccel.device."+name+"_ms"] == "" {
					t.Errorf("%s: no %s of %+v", step.name, name, one)
				}
			}
		}
		a := root.attributes
		if got := strings.Join([]string{a["pgaccel.route"], a["pgaccel.reason"], a["db.query.text"], a["db.response.status_code"]}, "|"); got != step.attributes ||
			root.name != step.span || a["db.system.name"] != "postgresql" || a["db.namespace"] != "postgres" || root.status != a["db.response.status_code"] {
			t.Errorf("%s: %+v", step.name, root)
		}
	}
	waitFor(t, "a gate that waits", func() bool {
		trace, comment := next()
		if a := ask(t, direct, "UPDATE traced SET v = v", nil); a.err != "" {
			t.Fatal(a)
		}
		ask(t, proxy, grouped+comment, nil)
		_, names := tree(trace, "gate")
		return slices.Contains(names, "wait")
	})
	unsampled, comment := next()
	ask(t, proxy, grouped+strings.Replace(comment, "-01'", "-00'", 1), nil)
	last, comment := next()
	ask(t, proxy, grouped+comment, nil)
	tree(last, "gate")
	if list := c.of(unsampled); len(list) > 0 {
		t.Errorf("the client's trace is not sampled: %+v", list)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.secret || c.resource["service.name"] != "reports" || c.resource["service.version"] == "" {
		t.Errorf("secret %v, resource %v", c.secret, c.resource)
	}
}
