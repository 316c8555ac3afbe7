package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"pgaccel/colstore"
)

var (
	queriesDesc = prometheus.NewDesc("pgaccel_queries_total",
		"Executions of statements that name an accelerated table, by route and, where forwarded, reason.", []string{"route", "reason"}, nil)
	deviceDesc = prometheus.NewDesc("pgaccel_device_queries_total",
		"Accelerated executions by the device that ran them.", []string{"device"}, nil)
	rowsDesc = prometheus.NewDesc("pgaccel_table_rows", "Rows of a copied table.", []string{"table"}, nil)
	sizeDesc = prometheus.NewDesc("pgaccel_table_bytes", "Bytes of column memory that a table holds, dictionaries included.", []string{"table"}, nil)
	upDesc   = prometheus.NewDesc("pgaccel_table_ready", "1 where a table's copy answers queries, else 0; state says why.", []string{"table", "state"}, nil)
	usedDesc = prometheus.NewDesc("pgaccel_store_bytes", "Bytes of column memory in use.", nil, nil)
	maxDesc  = prometheus.NewDesc("pgaccel_store_limit_bytes", "The limit of column memory (--memory).", nil, nil)
	lsnDesc  = prometheus.NewDesc("pgaccel_stream_applied_lsn", "Log position up to which the replication stream has been seen.", nil, nil)
)

// storeCollector reads the store and the engine when it is scraped.
type storeCollector struct{ s *Server }

// Describe implements prometheus.Collector.
func (c *storeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{queriesDesc, deviceDesc, rowsDesc, sizeDesc, upDesc, usedDesc, maxDesc, lsnDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *storeCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	used, limit := c.s.store.Usage()
	gauge(usedDesc, float64(used))
	gauge(maxDesc, float64(limit))
	gauge(lsnDesc, float64(c.s.store.Applied()))
	for _, st := range c.s.store.Statuses() {
		gauge(rowsDesc, float64(st.Rows), st.Name)
		gauge(sizeDesc, float64(st.Bytes), st.Name)
		ready := 0.0
		if st.State == colstore.StateReady {
			ready = 1
		}
		gauge(upDesc, ready, st.Name, st.State.String())
	}
	accelerated := int64(0)
	if c.s.engine != nil {
		for _, n := range c.s.engine.Counts() {
			if n.Route == "accelerated" {
				accelerated += n.N
				continue
			}
			counter(queriesDesc, n.N, n.Route, string(n.Reason))
		}
	}
	// Present from the start, so that a rate over it is defined.
	counter(queriesDesc, accelerated, "accelerated", "")
	counter(deviceDesc, accelerated, "cpu")
}
