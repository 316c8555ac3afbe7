package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// span is one of pgaccel's.
type span struct {
	name       string
	began      time.Time
	took       time.Duration
	attributes map[string]float64 // those that are numbers
	below      []*span
}

// spanReceiver takes OTLP over HTTP. It decodes nothing before it is asked to: that would be work beside what is measured.
type spanReceiver struct {
	server http.Server
	url    string

	mu      sync.Mutex
	bodies  [][]byte
	byID    map[string]*span
	orphans map[string][]*span // by parent
	found   map[uint32][]*span // statements by the server's process
}

func newSpanReceiver() (*spanReceiver, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &spanReceiver{url: "http://" + l.Addr().String(), byID: map[string]*span{}, orphans: map[string][]*span{}, found: map[uint32][]*span{}}
	r.server.Handler = r
	go r.server.Serve(l)
	return r, nil
}

func (r *spanReceiver) close() { r.server.Close() }

// spansDelay is how long pgaccel collects spans before it sends them.
const spansDelay = 500 * time.Millisecond

// environment has a pgaccel send its spans here: in few large pieces, and all of them.
func (r *spanReceiver) environment() []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + r.url, fmt.Sprintf("OTEL_BSP_SCHEDULE_DELAY=%d", spansDelay.Milliseconds()),
		"OTEL_BSP_MAX_QUEUE_SIZE=1000000", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=8192"}
}

// ServeHTTP implements http.Handler.
func (r *spanReceiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil || request.URL.Path != "/v1/traces" {
		http.Error(w, fmt.Sprint(request.URL.Path, err), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	r.bodies = append(r.bodies, body)
	r.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// statements are those that have come, by the server's process of their session, in the order in which they began.
func (r *spanReceiver) statements() (map[uint32][]*span, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, body := range r.bodies {
		var request collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &request); err != nil {
			return nil, err
		}
		for _, resource := range request.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, s := range scope.Spans {
					r.add(s)
				}
			}
		}
	}
	r.bodies = nil
	for _, list := range r.found {
		slices.SortFunc(list, func(a, b *span) int { return a.began.Compare(b.began) })
	}
	return r.found, nil
}

// add takes a span, which may come before the one that it is below.
func (r *spanReceiver) add(from *otlp.Span) {
	s := &span{name: from.Name, began: time.Unix(0, int64(from.StartTimeUnixNano)), took: time.Duration(from.EndTimeUnixNano - from.StartTimeUnixNano),
		attributes: map[string]float64{}}
	trace := string(from.TraceId)
	id, parent := trace+string(from.SpanId), trace+string(from.ParentSpanId)
	pid := uint32(0)
	for _, a := range from.Attributes {
		if a.Key == "pgaccel.server_pid" {
			pid = uint32(a.Value.GetIntValue())
		}
		if v := a.Value.GetDoubleValue(); v != 0 {
			s.attributes[a.Key] = v
		}
	}
	r.byID[id], s.below = s, r.orphans[id]
	delete(r.orphans, id)
	if from.Kind == otlp.Span_SPAN_KIND_SERVER {
		r.found[pid] = append(r.found[pid], s)
	} else if p := r.byID[parent]; p != nil {
		p.below = append(p.below, s)
	} else {
		r.orphans[parent] = append(r.orphans[parent], s)
	}
}

// forget drops what came.
func (r *spanReceiver) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies = nil
	clear(r.byID)
	clear(r.orphans)
	clear(r.found)
}

// spansWait bounds how long spans are waited for.
const spansWait = 20 * spansDelay

// attach finds the statements of executions, and returns how many have none.
func (r *spanReceiver) attach(ctx context.Context, list []wireExecution) (missing int, err error) {
	for began := time.Now(); ; {
		found, err := r.statements()
		if err != nil {
			return 0, err
		}
		missing = 0
		for i := range list {
			x := &list[i]
			of := found[x.pid]
			at, _ := slices.BinarySearchFunc(of, x.sent, func(s *span, sent time.Time) int { return s.began.Compare(sent) })
			if x.statement = nil; at < len(of) && of[at].began.Sub(x.sent) < x.took {
				x.statement = of[at]
			} else {
				missing++
			}
		}
		if missing == 0 || time.Since(began) > spansWait {
			return missing, nil
		}
		select {
		case <-ctx.Done():
			return missing, ctx.Err()
		case <-time.After(spansDelay / 5):
		}
	}
}

// sum is the time of the spans of a name directly below.
func (s *span) sum(name string) (sum time.Duration) {
	for _, b := range s.below {
		if b.name == name {
			sum += b.took
		}
	}
	return sum
}

// uncovered is the time of a span in which none is below it.
func (s *span) uncovered() time.Duration {
	left, at, end := s.took, s.began, s.began.Add(s.took)
	below := slices.SortedFunc(slices.Values(s.below), func(a, b *span) int { return cmp.Or(a.began.Compare(b.began), cmp.Compare(a.took, b.took)) })
	for _, b := range below {
		from, to := b.began, b.began.Add(b.took)
		if from.Before(at) {
			from = at
		}
		if to.After(end) { // one in vain
			to = end
		}
		if to.After(from) {
			left -= to.Sub(from)
			at = to
		}
	}
	return left
}
