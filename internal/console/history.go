package console

import (
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
)

const (
	// interval is between two samples, which are kept for historyLength: some 0.8 MB.
	interval      = 5 * time.Second
	historyLength = 4 * time.Hour
	samplesMax    = int(historyLength / interval)
	// bucketsMax is the most buckets of a histogram that are kept.
	bucketsMax = 20
)

// window is a span of time, and how many samples a point of its curves is of.
type window struct {
	points int
	step   int
}

var windows = map[string]window{"15m": {180, 1}, "1h": {240, 3}, "4h": {240, 12}}

// timing is a histogram of seconds. Counts are cumulative, over buckets and over time.
type timing struct {
	count   uint64
	sum     float64
	buckets [bucketsMax]uint64
}

// sample is what the metrics said at one moment.
type sample struct {
	at                                          time.Time
	accelerated, partial, forwarded, statements float64 // counters; statements are all that PostgreSQL has run
	fast, slow                                  timing  // of pgaccel to the first byte, of PostgreSQL to the end
	saved                                       float64 // seconds
	columns, query, reuse                       float64 // bytes
	lag                                         float64 // seconds; NaN without a stream
	clients                                     float64
}

// reason is how many executions one has had forwarded, or partial.
type reason struct {
	Route  string  `json:"route"`
	Reason string  `json:"reason"`
	N      float64 `json:"n"`
}

// table is one and its state.
type table struct {
	Name  string  `json:"name"`
	State string  `json:"state"`
	Rows  float64 `json:"rows"`
	Bytes float64 `json:"bytes"`
}

// present is what is kept of the last sample only.
type present struct {
	Values  map[string]float64 `json:"values"` // of metrics without labels
	Reasons []reason           `json:"reasons"`
	Tables  []table            `json:"tables"`
	Differs float64            `json:"mismatches"`
	Refused float64            `json:"refused_connections"`
	Totals  map[string]float64 `json:"totals"` // executions by route
}

// history is a ring of samples.
type history struct {
	mu   sync.Mutex
	ring []sample // of samplesMax once it is full; next is the oldest
	next int
	now  present
	// The upper bounds of the buckets of both timings, in seconds.
	fast, slow []float64
}

func newHistory() *history { return &history{} }

// add takes what Gather has returned.
func (h *history) add(at time.Time, families []*dto.MetricFamily) {
	s := sample{at: at, lag: math.NaN()}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.read(&s, families)
	if len(h.ring) < samplesMax {
		h.ring = append(h.ring, s)
		return
	}
	h.ring[h.next] = s
	h.next = (h.next + 1) % samplesMax
}

// read fills a sample, and returns what is the case now.
func (h *history) read(s *sample, families []*dto.MetricFamily) present {
	now := present{Values: map[string]float64{}, Totals: map[string]float64{}, Reasons: []reason{}, Tables: []table{}}
	tables := map[string]*table{}
	tableOf := func(name string) *table {
		if tables[name] == nil {
			tables[name] = &table{Name: name}
		}
		return tables[name]
	}
	for _, f := range families {
		for _, m := range f.Metric {
			v, label := value(m), labels(m)
			of := "" // the database, where several are told apart
			if database := label["database"]; database != "" {
				of = database + ": "
			}
			delete(label, "database")
			switch f.GetName() {
			case "pgaccel_queries_total":
				now.Totals[label["route"]] += v
				if label["reason"] != "" {
					now.Reasons = append(now.Reasons, reason{label["route"], label["reason"], v})
				}
			case "pgaccel_decision_seconds":
				if label["route"] == "accelerated" {
					s.fast, h.fast = timingOf(m.GetHistogram())
				}
			case "pgaccel_forwarded_seconds":
				s.slow, h.slow = timingOf(m.GetHistogram())
			case "pgaccel_shadow_total":
				if label["result"] == "different" {
					now.Differs += v
				}
			case "pgaccel_refused_connections_total":
				now.Refused += v
			case "pgaccel_table_rows":
				tableOf(of + label["table"]).Rows = v
			case "pgaccel_table_bytes":
				tableOf(of + label["table"]).Bytes = v
			case "pgaccel_table_ready":
				tableOf(of + label["table"]).State = label["state"]
			default:
				if len(label) == 0 && m.Histogram == nil {
					before, there := now.Values[f.GetName()]
					now.Values[f.GetName()] = v
					if there {
						now.Values[f.GetName()] = ofSeveral(f.GetName(), before, v)
					}
				}
			}
		}
	}
	for _, t := range tables {
		if t.State != "" { // else it is a view, which has none
			now.Tables = append(now.Tables, *t)
		}
	}
	slices.SortFunc(now.Tables, func(a, b table) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(now.Reasons, func(a, b reason) int { return strings.Compare(a.Route+a.Reason, b.Route+b.Reason) })
	s.fill(&now)
	return now
}

// ofSeveral makes one value of those of several databases: the worst of streams, the sum of all else.
func ofSeveral(name string, a, b float64) float64 {
	switch name {
	case "pgaccel_stream_connected":
		return min(a, b)
	case "pgaccel_stream_lag_seconds", "pgaccel_stream_lag_bytes", "pgaccel_checkpoint_age_seconds":
		return max(a, b)
	}
	return a + b
}

// fill takes what has no labels.
func (s *sample) fill(now *present) {
	s.accelerated, s.partial, s.forwarded = now.Totals["accelerated"], now.Totals["partial"], now.Totals["forwarded"]
	s.statements, s.saved = now.Values["pgaccel_forwarded_statements_total"], now.Values["pgaccel_saved_seconds"]
	s.columns, s.query, s.reuse = now.Values["pgaccel_store_bytes"], now.Values["pgaccel_query_memory_bytes"], now.Values["pgaccel_reuse_bytes"]
	s.clients = now.Values["pgaccel_connections"]
	if lag, ok := now.Values["pgaccel_stream_lag_seconds"]; ok {
		s.lag = lag
	}
}

func value(m *dto.Metric) float64 {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	}
	return 0
}

func labels(m *dto.Metric) map[string]string {
	if len(m.Label) == 0 {
		return nil
	}
	all := make(map[string]string, len(m.Label))
	for _, l := range m.Label {
		all[l.GetName()] = l.GetValue()
	}
	return all
}

func timingOf(m *dto.Histogram) (t timing, bounds []float64) {
	t.count, t.sum = m.GetSampleCount(), m.GetSampleSum()
	for i, b := range m.Bucket[:min(bucketsMax, len(m.Bucket))] {
		t.buckets[i] = b.GetCumulativeCount()
		bounds = append(bounds, b.GetUpperBound())
	}
	return t, bounds
}

// curves are points over time. A point that there is no value of is null.
type curves struct {
	Interval int64                 `json:"interval"` // seconds from point to point
	Since    int64                 `json:"since"`    // Unix time of the oldest sample that there is
	Time     []int64               `json:"time"`     // Unix time, of the end of each step
	Curves   map[string][]*float64 `json:"curves"`
	Now      present               `json:"now"`
}

// curves returns those of a window. Counters become rates by the samples at a step's ends, so that none is lost.
func (h *history) curves(w window) curves {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := curves{Interval: int64(w.step) * int64(interval/time.Second), Time: []int64{}, Curves: map[string][]*float64{}, Now: h.now}
	at := func(i int) *sample { return &h.ring[(h.next+i)%len(h.ring)] } // i from the oldest
	if len(h.ring) > 0 {
		out.Since = at(0).at.Unix()
	}
	last := len(h.ring) - 1
	first := max(last%w.step, last-w.points*w.step)
	for i := first + w.step; i <= last; i += w.step {
		out.add(at(i-w.step), at(i), h.fast, h.slow)
	}
	return out
}

// add adds the point between two samples.
func (c *curves) add(a, b *sample, fast, slow []float64) {
	c.Time = append(c.Time, b.at.Unix())
	seconds := b.at.Sub(a.at).Seconds()
	add := func(name string, v float64) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			c.Curves[name] = append(c.Curves[name], nil)
			return
		}
		c.Curves[name] = append(c.Curves[name], &v)
	}
	add("accelerated", (b.accelerated-a.accelerated)/seconds)
	add("partial", (b.partial-a.partial)/seconds)
	add("forwarded", (b.forwarded-a.forwarded)/seconds)
	// What names no copied table: a partial execution has the server run a statement, too.
	add("other", max(0, b.statements-a.statements-(b.forwarded-a.forwarded)-(b.partial-a.partial))/seconds)
	add("fast_mean", (b.fast.sum-a.fast.sum)/float64(b.fast.count-a.fast.count))
	add("fast_p95", quantile(0.95, &a.fast, &b.fast, fast))
	add("slow_mean", (b.slow.sum-a.slow.sum)/float64(b.slow.count-a.slow.count))
	add("slow_p95", quantile(0.95, &a.slow, &b.slow, slow))
	add("saved", (b.saved-a.saved)/seconds)
	add("columns", b.columns)
	add("query", b.query)
	add("reuse", b.reuse)
	add("lag", b.lag)
	add("clients", b.clients)
}

// quantile is that of what came between a and b, interpolated within its bucket as Prometheus' histogram_quantile does;
// beyond the last bucket its bound. NaN where nothing came.
func quantile(q float64, a, b *timing, bounds []float64) float64 {
	n := float64(b.count - a.count)
	if n <= 0 {
		return math.NaN()
	}
	lower, below := 0.0, 0.0
	for i, upper := range bounds {
		if count := float64(b.buckets[i] - a.buckets[i]); count >= q*n {
			return lower + (upper-lower)*(q*n-below)/(count-below)
		} else {
			lower, below = upper, count
		}
	}
	return lower
}
