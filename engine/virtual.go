package engine

import (
	"encoding/json"
	"fmt"
	"time"

	"pgaccel/pushdown"
)

// The virtual schema pgaccel has no tables in Postgres. A statement that names one
// is rewritten: the name becomes a subselect over a JSON constant, and Postgres does
// the rest. So every SQL feature works on it, in every protocol and format. A
// prepared statement keeps showing what was true when it was parsed.

type tableRow struct {
	Name       string     `json:"name"`
	State      string     `json:"state"`
	Detail     string     `json:"detail"`
	Rows       int64      `json:"rows"`
	Bytes      int64      `json:"bytes"`
	Copied     *time.Time `json:"copied"`
	AppliedLSN string     `json:"applied_lsn"`
	Inserted   int64      `json:"inserted"`
	Updated    int64      `json:"updated"`
	Deleted    int64      `json:"deleted"`
	Deltas     int        `json:"deltas"`
	History    int64      `json:"history_bytes"`
	Segments   int        `json:"segments"`
	OldestPin  float64    `json:"oldest_snapshot_ms"`
	OnDevice   int64      `json:"device_bytes"`
}

// columnRow is what one codec takes of a column.
type columnRow struct {
	Table     string `json:"table"`
	Column    string `json:"column"`
	Codec     string `json:"codec"`
	Segments  int    `json:"segments"`
	Bytes     int64  `json:"bytes"`
	NullBytes int64  `json:"null_bytes"`
	OnDevice  int64  `json:"device_bytes"`
}

// deviceRow is one device; where there is none, one row says why.
type deviceRow struct {
	Device      string  `json:"device"`
	Model       string  `json:"model"`
	Memory      int64   `json:"memory_bytes"`
	Budget      int64   `json:"budget_bytes"`
	Used        int64   `json:"used_bytes"`
	Queries     uint64  `json:"queries"`
	Faults      uint64  `json:"faults"`
	KernelMS    float64 `json:"kernel_ms"`
	BytesCopied uint64  `json:"copied_bytes"`
}

type queryRow struct {
	Query       string    `json:"query"`
	Route       string    `json:"route"`
	Reason      string    `json:"reason"`
	Calls       int64     `json:"calls"`
	Accelerated int64     `json:"accelerated"`
	Forwarded   int64     `json:"forwarded"`
	Rows        int64     `json:"rows"`
	TotalMS     float64   `json:"total_ms"`
	MeanMS      float64   `json:"mean_ms"`
	MinMS       float64   `json:"min_ms"`
	LastUsed    time.Time `json:"last_used"`
	Checks      int64     `json:"checks"`
	Mismatches  int64     `json:"mismatches"`
	Device      string    `json:"device"`
	DeviceCalls int64     `json:"device_calls"`
	DeviceMS    float64   `json:"device_mean_ms"`
}

// relations maps the names in the schema pgaccel to SELECTs that stand for them.
// What others ask is shown as pg_stat_statements would show it: to members of
// pg_read_all_stats.
func (e *Engine) relation(name string) (string, bool) {
	switch name {
	case "tables":
		return recordset(e.tableRows(), `"name" text, "state" text, "detail" text, "rows" bigint, "bytes" bigint, "copied" timestamptz, "applied_lsn" pg_lsn, "inserted" bigint, "updated" bigint, "deleted" bigint, "deltas" integer, "history_bytes" bigint, "segments" integer, "oldest_snapshot_ms" double precision, "device_bytes" bigint`, "*"), true
	case "columns":
		return recordset(e.columnRows(), `"table" text, "column" text, "codec" text, "segments" integer, "bytes" bigint, "null_bytes" bigint, "device_bytes" bigint`, "*"), true
	case "devices":
		return recordset(e.deviceRows(), `"device" text, "model" text, "memory_bytes" bigint, "budget_bytes" bigint, "used_bytes" bigint, "queries" bigint, "faults" bigint, "kernel_ms" double precision, "copied_bytes" bigint`, "*"), true
	case "queries":
		return recordset(e.queryRows(), `"query" text, "route" text, "reason" text, "calls" bigint, "accelerated" bigint, "forwarded" bigint, "rows" bigint, "total_ms" double precision, "mean_ms" double precision, "min_ms" double precision, "last_used" timestamptz, "checks" bigint, "mismatches" bigint, "device" text, "device_calls" bigint, "device_mean_ms" double precision`,
			`CASE WHEN pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE') THEN "query" ELSE '<insufficient privilege>' END AS "query", "route", "reason", "calls", "accelerated", "forwarded", "rows", "total_ms", "mean_ms", "min_ms", "last_used", "checks", "mismatches", "device", "device_calls", "device_mean_ms"`), true
	}
	return "", false
}

func recordset[T any](rows []T, definition, columns string) string {
	if rows == nil {
		rows = []T{}
	}
	doc, err := json.Marshal(rows)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return fmt.Sprintf("SELECT %s FROM pg_catalog.jsonb_to_recordset(%s::pg_catalog.jsonb) AS r(%s)", columns, quoteLiteral(string(doc)), definition)
}

func (e *Engine) rewriteVirtual(sql string) (string, bool) {
	text, found, err := pushdown.RewriteVirtual(sql, e.relation)
	return text, found && err == nil
}

func (e *Engine) tableRows() []tableRow {
	var out []tableRow
	lsn := e.store.Applied()
	resident := e.resident()
	for _, st := range e.store.Statuses() {
		r := tableRow{Name: st.Name, State: st.State.String(), Detail: st.Detail, Rows: st.Rows, Bytes: st.Bytes,
			AppliedLSN: fmt.Sprintf("%X/%X", lsn>>32, uint32(lsn)),
			Inserted:   st.Inserted, Updated: st.Updated, Deleted: st.Deleted, Deltas: st.Deltas, History: st.HistoryBytes, Segments: st.Segments,
			OldestPin: float64(st.OldestPin.Microseconds()) / 1000, OnDevice: resident[st.Name]}
		if !st.Copied.IsZero() {
			c := st.Copied
			r.Copied = &c
		}
		out = append(out, r)
	}
	return out
}

func (e *Engine) columnRows() []columnRow {
	var out []columnRow
	for _, c := range e.store.ColumnSizes() {
		out = append(out, columnRow{c.Table, c.Column, c.Codec, c.Segments, c.Bytes, c.NullBytes, e.residentOf(c.IDs)})
	}
	return out
}

func (e *Engine) deviceRows() []deviceRow {
	if e.opt.Devices == nil {
		return []deviceRow{{Device: "none (--device cpu)"}}
	}
	var out []deviceRow
	for _, d := range e.opt.Devices() {
		r := deviceRow{Device: d.Name, Model: d.Model, Memory: d.Memory, Budget: d.Budget, Used: d.Used, Queries: d.Queries,
			KernelMS: d.KernelSeconds * 1000, BytesCopied: d.BytesCopied}
		for _, n := range d.Faults {
			r.Faults += n
		}
		out = append(out, r)
	}
	return out
}

func (e *Engine) queryRows() []queryRow {
	var out []queryRow
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	for _, sh := range e.stats.list() {
		sh.mu.Lock()
		r := queryRow{Query: sh.text, Route: "forwarded", Reason: string(sh.reason), Calls: sh.accelerated + sh.forwarded,
			Accelerated: sh.accelerated, Forwarded: sh.forwarded, Rows: sh.rows, TotalMS: ms(sh.busy), MinMS: ms(sh.fastest), LastUsed: sh.last,
			Checks: sh.checks, Mismatches: sh.mismatches, Device: sh.device, DeviceCalls: sh.onDevice}
		if sh.accelerated > 0 {
			r.Route = "accelerated"
			r.MeanMS = r.TotalMS / float64(sh.accelerated)
		}
		if sh.onDevice > 0 {
			r.DeviceMS = ms(sh.deviceBusy) / float64(sh.onDevice)
		}
		sh.mu.Unlock()
		if r.Calls > 0 {
			out = append(out, r)
		}
	}
	return out
}
