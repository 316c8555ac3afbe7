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

// descs are all that desc has made.
var descs []*prometheus.Desc

func desc(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(name, help, labels, nil)
	descs = append(descs, d)
	return d
}

var (
	queriesDesc          = desc("pgaccel_queries_total", "Executions of statements that name an accelerated table, by route and, where forwarded or partial, reason.", "route", "reason")
	rowsDesc             = desc("pgaccel_table_rows", "Rows of a copied table.", "table")
	sizeDesc             = desc("pgaccel_table_bytes", "Bytes of column memory that a table holds, dictionaries included.", "table")
	upDesc               = desc("pgaccel_table_ready", "1 where a table's copy answers queries, else 0; state says why.", "table", "state")
	usedDesc             = desc("pgaccel_store_bytes", "Bytes of column memory in use.")
	maxDesc              = desc("pgaccel_store_limit_bytes", "The limit of column memory (--memory).")
	queryMemoryDesc      = desc("pgaccel_query_memory_bytes", "Bytes that executions hold, and results until they are read.")
	tempFilesDesc        = desc("pgaccel_temp_files", "Temporary files that are open (--temp-dir).")
	tempBytesDesc        = desc("pgaccel_temp_bytes", "Bytes of the temporary files that are open.")
	tempWrittenDesc      = desc("pgaccel_temp_bytes_total", "Bytes written to temporary files.")
	reuseDesc            = desc("pgaccel_reuse_total", "Queries that were answered by the result of an earlier one, whose tables have not changed; segments that others did not scan, as an earlier one had.", "kind")
	reuseBytesDesc       = desc("pgaccel_reuse_bytes", "Bytes of what is kept for that (--reuse-memory).")
	queryMemoryLimitDesc = desc("pgaccel_query_memory_limit_bytes", "The limit of query memory (--query-memory).")
	waitingDesc          = desc("pgaccel_waiting_workers", "Goroutines of executions that wait for a core.")
	queuedDesc           = desc("pgaccel_waiting_executions", "Executions that wait until others have ended.")
	historyDesc          = desc("pgaccel_table_history_bytes", "Column memory of commits that are not folded into a table yet.", "table")
	deltasDesc           = desc("pgaccel_table_history_commits", "Commits that are not folded into a table yet.", "table")
	changesDesc          = desc("pgaccel_table_changes_total", "Rows changed since a table's copy.", "table", "change")
	pinsDesc             = desc("pgaccel_kept_snapshots", "Snapshots whose history is kept, for REPEATABLE READ transactions and shadow checks.")
	staleDesc            = desc("pgaccel_stale_forwards_total", "Executions forwarded because the replication stream did not come in time.")
	shadowDesc           = desc("pgaccel_shadow_total", "Answers compared with Postgres' (--shadow), by result.", "result")
	badStalenessDesc     = desc("pgaccel_bad_max_staleness_total", "Gates of sessions whose pgaccel.max_staleness is no duration; it counts as 0.")
	sharedDesc           = desc("pgaccel_shared_scans_total", "Executions that joined another one's scan of a table, so that columns were decoded once for both.")
	indexedDesc          = desc("pgaccel_index_answers_total", "Conditions that a bitmap index answered for a segment.")
	speculationsDesc     = desc("pgaccel_speculations_total", "Executions begun before their gate had answered, by what became of them.", "outcome")
	trialsDesc           = desc("pgaccel_trials_total", "Executions forwarded to see what PostgreSQL takes (--trials), by whether that was faster or slower than pgaccel.", "result")
	savedDesc            = desc("pgaccel_saved_seconds", "Time that accelerated and partial executions have saved: what PostgreSQL takes for such a statement, measured or by its estimate, less what they took. Those of which it is not known do not count; slower ones count against it.")
	retainedDesc         = desc("pgaccel_slot_retained_bytes", "Write-ahead log that the replication slot keeps the server from removing (--max-retained-wal).")
	buildDesc            = desc("pgaccel_build_info", "1, with the version of the program and of Go.", "version", "go")
	streamDesc           = desc("pgaccel_stream_connected", "1 while the replication stream is up, else 0.")
	streamsDesc          = desc("pgaccel_streams_total", "Replication streams that have come up.")
	lagBytesDesc         = desc("pgaccel_stream_lag_bytes", "How far the replication stream is behind the server's flushed log, as of about a second ago; absent while there is no stream.")
	lagDesc              = desc("pgaccel_stream_lag_seconds", "For how long it has been so by more than 64 KiB; absent while there is no stream.")
	copiesDesc           = desc("pgaccel_copies_total", "Copies of tables that were completed.")
	recopiesDesc         = desc("pgaccel_recopies_total", "Copies of tables that had been copied before by this process.")
	checkpointAgeDesc    = desc("pgaccel_checkpoint_age_seconds", "Time since the columns were last saved, or had not changed (--data-dir); absent before the first time.")
	checkpointFaultsDesc = desc("pgaccel_checkpoint_failures_total", "Attempts to save the columns that failed.")
	lsnDesc              = desc("pgaccel_stream_applied_lsn", "Log position up to which the replication stream has been seen.")
)

// storeCollector reads the store and the engine when it is scraped.
type storeCollector struct{ s *Server }

// Describe implements prometheus.Collector.
func (c *storeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range descs {
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
	if r := c.s.replicator; r != nil {
		gauge(retainedDesc, float64(r.RetainedWAL()))
		collectStream(r.Health(), gauge, counter)
	}
	gauge(buildDesc, 1, Version(), runtime.Version())
	collectTables(c.s.store.Statuses(), gauge, counter)
	accelerated, stale := int64(0), int64(0)
	if e := c.s.engine; e != nil {
		gauge(waitingDesc, float64(e.Waiting()))
		gauge(queuedDesc, float64(e.Queued()))
		used, limit := e.QueryMemory()
		gauge(queryMemoryDesc, float64(used))
		gauge(queryMemoryLimitDesc, float64(limit))
		reused, segments, kept := e.Reused()
		counter(reuseDesc, reused, "result")
		counter(reuseDesc, segments, "segments")
		gauge(reuseBytesDesc, float64(kept))
		if t := c.s.temp; t != nil {
			files, bytes, written := t.Usage()
			gauge(tempFilesDesc, float64(files))
			gauge(tempBytesDesc, float64(bytes))
			counter(tempWrittenDesc, written)
		}
		gauge(pinsDesc, float64(e.Pins()))
		counter(badStalenessDesc, e.BadStaleness())
		counter(sharedDesc, e.SharedScans())
		counter(indexedDesc, e.IndexesAsked())
		gauge(savedDesc, e.Saved().Seconds())
		for result, n := range e.Trials() {
			counter(trialsDesc, n, result)
		}
		for outcome, n := range e.Speculations() {
			counter(speculationsDesc, n, outcome)
		}
		for _, v := range []engine.Verdict{engine.Equal, engine.Different, engine.Inconclusive, engine.Uncompared} {
			counter(shadowDesc, e.Verdicts(v), v.String())
		}
		for _, n := range c.s.engine.Counts() {
			if n.Route == "accelerated" {
				accelerated += n.N
				continue
			}
			if n.Reason == plan.ReasonStale {
				stale = n.N
			}
			counter(queriesDesc, n.N, n.Route, string(n.Reason))
		}
	}
	// Present from the start, so that a rate over it is defined.
	counter(queriesDesc, accelerated, "accelerated", "")
	counter(staleDesc, stale)
	c.collectDevices(ch)
}

// collectStream sends what there is to say of the stream.
func collectStream(h replica.Health, gauge func(*prometheus.Desc, float64, ...string), counter func(*prometheus.Desc, int64, ...string)) {
	up := 0.0
	if h.Connected {
		up = 1
		gauge(lagBytesDesc, float64(h.LagBytes))
		gauge(lagDesc, h.Lag.Seconds())
	}
	gauge(streamDesc, up)
	counter(streamsDesc, h.Streams)
	counter(copiesDesc, h.Copies)
	counter(recopiesDesc, h.Recopies)
	if !h.Saved.IsZero() {
		gauge(checkpointAgeDesc, time.Since(h.Saved).Seconds())
	}
	counter(checkpointFaultsDesc, h.SaveFailures)
}

// collectTables sends what there is to say of tables.
func collectTables(tables []colstore.Status, gauge func(*prometheus.Desc, float64, ...string), counter func(*prometheus.Desc, int64, ...string)) {
	for i, st := range tables {
		if i+1 < len(tables) && tables[i+1].Name == st.Name {
			continue // replaced by a table of that name: a metric may be there but once
		}
		gauge(rowsDesc, float64(st.Rows), st.Name)
		gauge(sizeDesc, float64(st.Bytes), st.Name)
		gauge(historyDesc, float64(st.HistoryBytes), st.Name)
		gauge(deltasDesc, float64(st.Deltas), st.Name)
		counter(changesDesc, st.Inserted, st.Name, "inserted")
		counter(changesDesc, st.Updated, st.Name, "updated")
		counter(changesDesc, st.Deleted, st.Name, "deleted")
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
