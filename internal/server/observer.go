package server

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"pgaccel/proxy"
)

// observer turns what sessions tell into metrics.
type observer struct {
	open     prometheus.Gauge
	sessions prometheus.Counter
	bytes    *prometheus.CounterVec
	cancels  *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	waits    prometheus.Histogram
	fresh    prometheus.Histogram
	ran      prometheus.Counter
	served   prometheus.Histogram
	refused  *prometheus.CounterVec
}

var _ proxy.Observer = (*observer)(nil)

func newObserver() *observer {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pgaccel_refused_connections_total",
		Help: "Clients that got no session: the server cannot be connected to (server), there are too many clients (limit), the process ends (shutdown), they must use TLS (tls), or there is no database of that name (database)."}, []string{"reason"})
	for _, why := range []proxy.Refusal{proxy.RefusedServer, proxy.RefusedLimit, proxy.RefusedShutdown, proxy.RefusedTLS, proxy.RefusedDatabase} {
		refused.WithLabelValues(string(why)) // present from the start
	}
	return &observer{refused: refused,
		ran: prometheus.NewCounter(prometheus.CounterOpts{Name: "pgaccel_forwarded_statements_total",
			Help: "Statements of clients that PostgreSQL has run (Query, Execute), whatever they name."}),
		served: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "pgaccel_forwarded_seconds",
			Help:    "Time from the arrival of a Query, or of a batch up to its Sync, that PostgreSQL alone answers to the end of the answer.",
			Buckets: prometheus.ExponentialBuckets(50e-6, 2, 18)}),
		open: prometheus.NewGauge(prometheus.GaugeOpts{Name: "pgaccel_connections",
			Help: "Client connections open now."}),
		sessions: prometheus.NewCounter(prometheus.CounterOpts{Name: "pgaccel_connections_total",
			Help: "Client connections opened."}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pgaccel_relayed_bytes_total",
			Help: "Bytes that closed connections relayed, by the side that they came from."}, []string{"from"}),
		cancels: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pgaccel_cancels_total",
			Help: "Cancel requests, by what was running."}, []string{"running"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "pgaccel_decision_seconds",
			Help:    "Time from a candidate's arrival to its answer's first byte (accelerated) or its release to Postgres (forwarded).",
			Buckets: prometheus.ExponentialBuckets(50e-6, 2, 18)}, []string{"route"}),
		waits: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "pgaccel_gate_wait_seconds",
			Help:    "How long gates waited for the replication stream; most need not wait.",
			Buckets: prometheus.ExponentialBuckets(50e-6, 2, 14)}),
		fresh: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "pgaccel_freshness_seconds",
			Help:    "What freshness costs a query: the time from sending the gate to the end of its wait for the replication stream.",
			Buckets: prometheus.ExponentialBuckets(25e-6, math.Sqrt2, 26)}),
	}
}

// Describe implements prometheus.Collector.
func (o *observer) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range o.collectors() {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (o *observer) Collect(ch chan<- prometheus.Metric) {
	for _, c := range o.collectors() {
		c.Collect(ch)
	}
}

func (o *observer) collectors() []prometheus.Collector {
	return []prometheus.Collector{o.open, o.sessions, o.bytes, o.cancels, o.latency, o.waits, o.fresh, o.ran, o.served, o.refused}
}

// waited is told of each gate's wait.
func (o *observer) waited(d time.Duration) { o.waits.Observe(d.Seconds()) }

// passed is told of the time from a gate's sending to the end of its wait.
func (o *observer) passed(d time.Duration) { o.fresh.Observe(d.Seconds()) }

// SessionOpened implements proxy.Observer.
func (o *observer) SessionOpened() {
	o.open.Inc()
	o.sessions.Inc()
}

// SessionClosed implements proxy.Observer.
func (o *observer) SessionClosed(fromClient, fromServer int64) {
	o.open.Dec()
	o.bytes.WithLabelValues("client").Add(float64(fromClient))
	o.bytes.WithLabelValues("server").Add(float64(fromServer))
}

// CancelRequested implements proxy.Observer.
func (o *observer) CancelRequested(accelerated bool) {
	running := "server"
	if accelerated {
		running = "accelerated"
	}
	o.cancels.WithLabelValues(running).Inc()
}

// Answered implements proxy.Observer.
func (o *observer) Answered(accelerated bool, d time.Duration) {
	route := "forwarded"
	if accelerated {
		route = "accelerated"
	}
	o.latency.WithLabelValues(route).Observe(d.Seconds())
}

// Forwarded implements proxy.Observer.
func (o *observer) Forwarded(statements int) { o.ran.Add(float64(statements)) }

// Served implements proxy.Observer.
func (o *observer) Served(d time.Duration) { o.served.Observe(d.Seconds()) }

// Refused implements proxy.Observer.
func (o *observer) Refused(why proxy.Refusal) { o.refused.WithLabelValues(string(why)).Inc() }
