package console

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TestCurves: rates over any window add up to what the counters have grown by, before and after the ring is full.
func TestCurves(t *testing.T) {
	registry := prometheus.NewRegistry()
	queries := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pgaccel_queries_total"}, []string{"route", "reason"})
	saved := prometheus.NewGauge(prometheus.GaugeOpts{Name: "pgaccel_saved_seconds"})
	latency := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "pgaccel_decision_seconds", Buckets: prometheus.ExponentialBuckets(50e-6, 2, 18)}, []string{"route"})
	registry.MustRegister(queries, saved, latency)
	h, at := newHistory(), time.Unix(1e9, 0)
	for name, w := range windows {
		if c := h.curves(w); len(c.Time) != 0 {
			t.Errorf("%s of no samples: %d points", name, len(c.Time))
		}
	}
	counted := []float64{}
	for i := range samplesMax + 100 {
		n := i % 17
		queries.WithLabelValues("accelerated", "").Add(float64(n))
		queries.WithLabelValues("forwarded", "cheap anyway").Inc()
		saved.Add(float64(n) / 4)
		for range n % 3 {
			latency.WithLabelValues("accelerated").Observe(0.004)
		}
		counted = append(counted, float64(n))
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		h.add(at.Add(time.Duration(i)*interval), families)
		if !slices.Contains([]int{0, 1, 2, 11, 12, 13, 179, 180, 181, samplesMax - 1, samplesMax, samplesMax + 99}, i) {
			continue
		}
		for name, w := range windows {
			c := h.curves(w)
			have := min(i, samplesMax-1) // differences
			points := min(w.points, have/w.step)
			if len(c.Time) != points || len(c.Curves["accelerated"]) != points {
				t.Fatalf("%s after %d samples: %d points, want %d", name, i+1, len(c.Time), points)
			}
			if points == 0 {
				continue
			}
			if last := at.Add(time.Duration(i) * interval).Unix(); c.Time[points-1] != last {
				t.Errorf("%s after %d samples: the last point is of %d, want %d", name, i+1, c.Time[points-1], last)
			}
			want := 0.0
			for _, v := range counted[i+1-points*w.step : i+1] {
				want += v
			}
			if sum := integral(c, "accelerated"); math.Abs(sum-want) > 1e-6*want {
				t.Errorf("%s after %d samples: the rates are of %v executions, want %v", name, i+1, sum, want)
			}
			if v := c.Curves["forwarded"][points-1]; math.Abs(*v-1/interval.Seconds()) > 1e-9 {
				t.Errorf("forwarded: %v", *v)
			}
			for j, v := range c.Curves["fast_mean"] {
				if v != nil && math.Abs(*v-0.004) > 1e-9 {
					t.Errorf("the mean of point %d is %v", j, *v)
				}
			}
		}
	}
	if len(h.ring) != samplesMax {
		t.Errorf("%d samples are kept", len(h.ring))
	}
	c := h.curves(windows["15m"])
	if !slices.Contains(c.Now.Reasons, reason{"forwarded", "cheap anyway", float64(samplesMax + 100)}) || len(c.Now.Reasons) != 1 {
		t.Errorf("reasons: %v", c.Now.Reasons)
	}
	if c.Curves["lag"][0] != nil {
		t.Error("a lag without a stream")
	}
}

// integral is what the rates of a curve are the rates of.
func integral(c curves, name string) (sum float64) {
	for _, v := range c.Curves[name] {
		sum += *v * float64(c.Interval)
	}
	return sum
}

// TestQuantile: within the bucket that has the value of the sorted observations.
func TestQuantile(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	bounds := prometheus.ExponentialBuckets(50e-6, 2, 18)
	for n := range 60 {
		var before, after timing
		all := []float64{}
		observe := func(into *timing, v float64) {
			into.count++
			for i, b := range bounds {
				if v <= b {
					into.buckets[i]++
				}
			}
		}
		for range 50 { // what came before does not count
			v := draw.ExpFloat64() * 0.1
			observe(&before, v)
			observe(&after, v)
		}
		for range n {
			v := draw.ExpFloat64() * 0.01
			all = append(all, v)
			observe(&after, v)
		}
		got := quantile(0.95, &before, &after, bounds)
		if n == 0 {
			if !math.IsNaN(got) {
				t.Errorf("of nothing: %v", got)
			}
			continue
		}
		slices.Sort(all)
		want := all[int(math.Ceil(0.95*float64(n)))-1]
		bucket := slices.IndexFunc(bounds, func(b float64) bool { return want <= b })
		lower := 0.0
		if bucket > 0 {
			lower = bounds[bucket-1]
		}
		if got < lower || got > bounds[bucket] {
			t.Errorf("of %d: %v, want between %v and %v", n, got, lower, bounds[bucket])
		}
	}
	if got := quantile(0.95, &timing{}, &timing{count: 3}, bounds); got != bounds[len(bounds)-1] {
		t.Errorf("beyond the last bucket: %v", got)
	}
}

// TestSeveralDatabases: what databases have each is added up, but for streams, where the worst counts, and tables are told apart.
func TestSeveralDatabases(t *testing.T) {
	registry := prometheus.NewRegistry()
	for name, up := range map[string]float64{"": 1, "shop": 0} {
		r := prometheus.WrapRegistererWith(prometheus.Labels{"database": name}, registry)
		gauge := func(name string, v float64, labels ...string) {
			g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name}, []string{"table", "state"}[:len(labels)])
			g.WithLabelValues(labels...).Set(v)
			r.MustRegister(g)
		}
		gauge("pgaccel_stream_connected", up)
		gauge("pgaccel_stream_lag_seconds", 3+up)
		gauge("pgaccel_saved_seconds", 2+up)
		gauge("pgaccel_table_rows", 10+up, "public.sale")
		gauge("pgaccel_table_ready", 1, "public.sale", "ready")
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var s sample
	now := newHistory().read(&s, families)
	if v := now.Values; v["pgaccel_stream_connected"] != 0 || v["pgaccel_stream_lag_seconds"] != 4 || v["pgaccel_saved_seconds"] != 5 || s.saved != 5 || s.lag != 4 {
		t.Errorf("%v %+v", v, s)
	}
	if want := []table{{"public.sale", "ready", 11, 0}, {"shop: public.sale", "ready", 10, 0}}; !slices.Equal(now.Tables, want) {
		t.Errorf("%+v", now.Tables)
	}
}
