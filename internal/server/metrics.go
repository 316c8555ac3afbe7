package server

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"pgaccel/colstore"
	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/replica"
)

// databaseDescs and processDescs are what describes a database's metrics, and the process's.
var databaseDescs, processDescs []*prometheus.Desc

func databaseDesc(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(name, help, labels, nil)
	databaseDescs = append(databaseDescs, d)
	return d
}

func processDesc(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(name, help, labels, nil)
	processDescs = append(processDescs, d)
	return d
}

var (
	queriesDesc          = databaseDesc("pgaccel_queries_total", "Executions of statements that name an accelerated table, by route and, where forwarded or partial, reason.", "route", "reason")
	rowsDesc             = databaseDesc("pgaccel_table_rows", "Rows of a copied table.", "table")
	sizeDesc             = databaseDesc("pgaccel_table_bytes", "Bytes of column memory that a table holds, dictionaries included.", "table")
	upDesc               = databaseDesc("pgaccel_table_ready", "1 where a table's copy answers queries, else 0; state says why.", "table", "state")
	usedDesc             = processDesc("pgaccel_store_bytes", "Bytes of column memory in use.")
	maxDesc              = processDesc("pgaccel_store_limit_bytes", "The limit of column memory (--memory).")
	queryMemoryDesc      = processDesc("pgaccel_query_memory_bytes", "Bytes that executions hold, and results until they are read.")
	tempFilesDesc        = processDesc("pgaccel_temp_files", "Temporary files that are open (--temp-dir).")
	tempBytesDesc        = processDesc("pgaccel_temp_bytes", "Bytes of the temporary files that are open.")
	tempWrittenDesc      = processDesc("pgaccel_temp_bytes_total", "Bytes written to temporary files.")
	reuseDesc            = processDesc("pgaccel_reuse_total", "Queries that were answered by the result of an earlier one, whose tables have not changed; segments that others did not scan, as an earlier one had.", "kind")
	reuseBytesDesc       = processDesc("pgaccel_reuse_bytes", "Bytes of what is kept for that (--reuse-memory).")
	queryMemoryLimitDesc = processDesc("pgaccel_query_memory_limit_bytes", "The limit of query memory (--query-memory).")
	waitingDesc          = processDesc("pgaccel_waiting_workers", "Goroutines of executions that wait for a core.")
	queuedDesc           = processDesc("pgaccel_waiting_executions", "Executions that wait until others have ended.")
	historyDesc          = databaseDesc("pgaccel_table_history_bytes", "Column memory of commits that are not folded into a table yet.", "table")
	deltasDesc           = databaseDesc("pgaccel_table_history_commits", "Commits that are not folded into a table yet.", "table")
	changesDesc          = databaseDesc("pgaccel_table_changes_total", "Rows changed since a table's copy.", "table", "change")
	pinsDesc             = databaseDesc("pgaccel_kept_snapshots", "Snapshots whose history is kept, for REPEATABLE READ transactions and shadow checks.")
	staleDesc            = databaseDesc("pgaccel_stale_forwards_total", "Executions forwarded because the replication stream did not come in time.")
	shadowDesc           = databaseDesc("pgaccel_shadow_total", "Answers compared with Postgres' (--shadow), by result.", "result")
	badStalenessDesc     = databaseDesc("pgaccel_bad_max_staleness_total", "Gates of sessions whose pgaccel.max_staleness is no duration; it counts as 0.")
	sharedDesc           = databaseDesc("pgaccel_shared_scans_total", "Executions that joined another one's scan of a table, so that columns were decoded once for both.")
	indexedDesc          = processDesc("pgaccel_index_answers_total", "Conditions that a bitmap index answered for a segment.")
	speculationsDesc     = databaseDesc("pgaccel_speculations_total", "Executions begun before their gate had answered, by what became of them.", "outcome")
	trialsDesc           = databaseDesc("pgaccel_trials_total", "Executions forwarded to see what PostgreSQL takes (--trials), by whether that was faster or slower than pgaccel.", "result")
	savedDesc            = databaseDesc("pgaccel_saved_seconds", "Time that accelerated and partial executions have saved: what PostgreSQL takes for such a statement, measured or by its estimate, less what they took. Those of which it is not known do not count; slower ones count against it.")
	retainedDesc         = databaseDesc("pgaccel_slot_retained_bytes", "Write-ahead log that the replication slot keeps the server from removing (--max-retained-wal).")
	buildDesc            = processDesc("pgaccel_build_info", "1, with the version of the program and of Go.", "version", "go")
	streamDesc           = databaseDesc("pgaccel_stream_connected", "1 while the replication stream is up, else 0.")
	streamsDesc          = databaseDesc("pgaccel_streams_total", "Replication streams that have come up.")
	lagBytesDesc         = databaseDesc("pgaccel_stream_lag_bytes", "How far the replication stream is behind the server's flushed log, as of about a second ago; absent while there is no stream.")
	lagDesc              = databaseDesc("pgaccel_stream_lag_seconds", "For how long it has been so by more than 64 KiB; absent while there is no stream.")
	copiesDesc           = databaseDesc("pgaccel_copies_total", "Copies of tables that were completed.")
	recopiesDesc         = databaseDesc("pgaccel_recopies_total", "Copies of tables that had been copied before by this process.")
	checkpointAgeDesc    = databaseDesc("pgaccel_checkpoint_age_seconds", "Time since the columns were last saved, or had not changed (--data-dir); absent before the first time.")
	checkpointFaultsDesc = databaseDesc("pgaccel_checkpoint_failures_total", "Attempts to save the columns that failed.")
	lsnDesc              = databaseDesc("pgaccel_stream_applied_lsn", "Log position up to which the replication stream has been seen.")
)

// send sends a metric.
type send func(d *prometheus.Desc, v float64, labels ...string)

func senders(ch chan<- prometheus.Metric) (gauge, counter send) {
	of := func(t prometheus.ValueType) send {
		return func(d *prometheus.Desc, v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, t, v, labels...)
		}
	}
	return of(prometheus.GaugeValue), of(prometheus.CounterValue)
}

// register registers pgaccel's metrics. Where clients ask for databases by name, what is of one has the label database; it is
// empty, which to Prometheus is no label, of the database that has all other names.
func (s *Server) register(r prometheus.Registerer) {
	r.MustRegister(&processCollector{s}, s.observer)
	for _, d := range s.databases {
		of := r
		if len(s.cfg.Databases) > 0 {
			of = prometheus.WrapRegistererWith(prometheus.Labels{"database": d.name}, r)
		}
		of.MustRegister(&databaseCollector{d, s.device})
	}
}

// processCollector reads what databases share when it is scraped.
type processCollector struct{ s *Server }

// Describe implements prometheus.Collector.
func (c *processCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range processDescs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *processCollector) Collect(ch chan<- prometheus.Metric) {
	gauge, counter := senders(ch)
	used, limit := c.s.memory.Usage()
	gauge(usedDesc, float64(used))
	gauge(maxDesc, float64(limit))
	gauge(buildDesc, 1, Version(), runtime.Version())
	c.s.device.collect(gauge, counter)
	if !c.s.copies() {
		return
	}
	shared := c.s.shared
	gauge(waitingDesc, float64(shared.Waiting()))
	gauge(queuedDesc, float64(shared.Queued()))
	used, limit = shared.QueryMemory()
	gauge(queryMemoryDesc, float64(used))
	gauge(queryMemoryLimitDesc, float64(limit))
	reused, segments, kept := shared.Reused()
	counter(reuseDesc, float64(reused), "result")
	counter(reuseDesc, float64(segments), "segments")
	gauge(reuseBytesDesc, float64(kept))
	counter(indexedDesc, float64(shared.IndexesAsked()))
	if t := c.s.temp; t != nil {
		files, bytes, written := t.Usage()
		gauge(tempFilesDesc, float64(files))
		gauge(tempBytesDesc, float64(bytes))
		counter(tempWrittenDesc, float64(written))
	}
}

// databaseCollector reads a database's store and engine when it is scraped.
type databaseCollector struct {
	d      *database
	device *deviceSide
}

// Describe implements prometheus.Collector.
func (c *databaseCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range databaseDescs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *databaseCollector) Collect(ch chan<- prometheus.Metric) {
	gauge, counter := senders(ch)
	gauge(lsnDesc, float64(c.d.store.Applied()))
	if r := c.d.replicator; r != nil {
		gauge(retainedDesc, float64(r.RetainedWAL()))
		collectStream(r.Health(), gauge, counter)
	}
	collectTables(c.d.store.Statuses(), gauge, counter)
	accelerated, stale := int64(0), int64(0)
	if e := c.d.engine; e != nil {
		gauge(pinsDesc, float64(e.Pins()))
		counter(badStalenessDesc, float64(e.BadStaleness()))
		counter(sharedDesc, float64(e.SharedScans()))
		gauge(savedDesc, e.Saved().Seconds())
		for result, n := range e.Trials() {
			counter(trialsDesc, float64(n), result)
		}
		for outcome, n := range e.Speculations() {
			counter(speculationsDesc, float64(n), outcome)
		}
		for _, v := range []engine.Verdict{engine.Equal, engine.Different, engine.Inconclusive, engine.Uncompared} {
			counter(shadowDesc, float64(e.Verdicts(v)), v.String())
		}
		for _, n := range e.Counts() {
			if n.Route == "accelerated" {
				accelerated += n.N
				continue
			}
			if n.Reason == plan.ReasonStale {
				stale = n.N
			}
			counter(queriesDesc, float64(n.N), n.Route, string(n.Reason))
		}
	}
	// Present from the start, so that a rate over it is defined.
	counter(queriesDesc, float64(accelerated), "accelerated", "")
	counter(staleDesc, float64(stale))
	c.collectDevices(gauge, counter)
}

// collectStream sends what there is to say of the stream.
func collectStream(h replica.Health, gauge, counter send) {
	up := 0.0
	if h.Connected {
		up = 1
		gauge(lagBytesDesc, float64(h.LagBytes))
		gauge(lagDesc, h.Lag.Seconds())
	}
	gauge(streamDesc, up)
	counter(streamsDesc, float64(h.Streams))
	counter(copiesDesc, float64(h.Copies))
	counter(recopiesDesc, float64(h.Recopies))
	if !h.Saved.IsZero() {
		gauge(checkpointAgeDesc, time.Since(h.Saved).Seconds())
	}
	counter(checkpointFaultsDesc, float64(h.SaveFailures))
}

// collectTables sends what there is to say of tables.
func collectTables(tables []colstore.Status, gauge, counter send) {
	for i, st := range tables {
		if i+1 < len(tables) && tables[i+1].Name == st.Name {
			continue // replaced by a table of that name: a metric may be there but once
		}
		gauge(rowsDesc, float64(st.Rows), st.Name)
		gauge(sizeDesc, float64(st.Bytes), st.Name)
		gauge(historyDesc, float64(st.HistoryBytes), st.Name)
		gauge(deltasDesc, float64(st.Deltas), st.Name)
		counter(changesDesc, float64(st.Inserted), st.Name, "inserted")
		counter(changesDesc, float64(st.Updated), st.Name, "updated")
		counter(changesDesc, float64(st.Deleted), st.Name, "deleted")
		if st.State == colstore.StateRefused && replica.IsNoTable(st.Detail) {
			continue // it is nothing that could be ready
		}
		ready := 0.0
		if st.State == colstore.StateReady {
			ready = 1
		}
		gauge(upDesc, ready, st.Name, st.State.String())
	}
}
