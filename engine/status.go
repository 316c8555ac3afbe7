package engine

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"time"
)

// What pgaccel.status and pgaccel.sessions show comes from those who know it (Options.Status, Options.Sessions).

// Status is what the process knows of itself beside the engine.
type Status struct {
	Version     string
	Started     time.Time
	Connected   bool // the stream is up
	LagBytes    int64
	Lag         time.Duration
	LastError   string // "" for none
	LastErrorAt time.Time
	Copies      int64
	Recopies    int64
	Saved       time.Time // zero where columns are not saved
	SaveFaults  int64
	Device      string
	Sessions    int
}

// SessionInfo is one session of a client.
type SessionInfo struct {
	PID            int32 // of its backend, as the server has said
	User, Database string
	Application    string
	Address        string // of the client; "" for a Unix socket
	Port           int    // -1 for a Unix socket
	Started        time.Time
	State          string // as pg_stat_activity has it
	Since          time.Time
	Route          string // of the statement that runs; "" for none
	Accelerated    int64
	Partial        int64
	Forwarded      int64
	Held           int64 // bytes
}

type statusRow struct {
	Version         string     `json:"version"`             // of pgaccel
	Started         time.Time  `json:"started_at"`          // when the process began
	Uptime          string     `json:"uptime"`              // since then
	ServerVersion   *string    `json:"server_version"`      // of the server that is copied from
	Connected       bool       `json:"stream_connected"`    // whether the replication stream is up
	AppliedLSN      string     `json:"applied_lsn"`         // how far it has been seen
	LagBytes        *int64     `json:"lag_bytes"`           // how far it is behind the server's flushed log, as of about a second ago; null while there is none
	LagSeconds      *float64   `json:"lag_seconds"`         // for how long by more than 64 KiB; likewise
	LastError       *string    `json:"last_error"`          // why the stream ended or did not begin, or columns could not be saved, the last time; the text for members of pg_read_all_stats
	LastErrorAt     *time.Time `json:"last_error_at"`       // when
	Copies          int64      `json:"copies"`              // of tables that were completed
	Recopies        int64      `json:"recopies"`            // of these those of a table that this process had copied before
	Checkpoint      *time.Time `json:"checkpoint_at"`       // when the columns were last saved, or had not changed (`--data-dir`)
	CheckpointFails int64      `json:"checkpoint_failures"` // attempts that failed
	Columns         int64      `json:"column_bytes"`        // column memory in use
	ColumnsLimit    int64      `json:"column_limit_bytes"`  // `--memory`
	Query           int64      `json:"query_bytes"`         // query memory in use
	QueryLimit      int64      `json:"query_limit_bytes"`   // `--query-memory`
	Reuse           int64      `json:"reuse_bytes"`         // what is kept of results
	ReuseLimit      int64      `json:"reuse_limit_bytes"`   // `--reuse-memory`
	Heap            int64      `json:"heap_bytes"`          // Go's heap
	HeapLimit       *int64     `json:"heap_limit_bytes"`    // null for no limit
	Sessions        int        `json:"sessions"`            // clients
	Device          string     `json:"device"`              // the devices, or why there is none
}

type sessionRow struct {
	PID         int32      `json:"pid"`              // what `pg_backend_pid()` says
	User        string     `json:"usename"`          // role at login
	Database    string     `json:"datname"`          // database, as the client calls it
	Application string     `json:"application_name"` // as the client says
	Address     *string    `json:"client_addr"`      // the client's own, not pgaccel's; null for a Unix socket
	Port        *int       `json:"client_port"`      // -1 for a Unix socket
	Started     *time.Time `json:"backend_start"`    // when it came
	State       *string    `json:"state"`            // as in `pg_stat_activity`, `active` while pgaccel executes, too; null of one that is only relayed
	Since       *time.Time `json:"state_change"`     // since when
	Route       *string    `json:"route"`            // `accelerated` (up to the last row) or `forwarded` while a statement runs
	Accelerated *int64     `json:"accelerated"`      // statements answered here
	Partial     *int64     `json:"partial"`          // in part
	Forwarded   *int64     `json:"forwarded"`        // by PostgreSQL, those that name no copied table included
	Held        *int64     `json:"held_bytes"`       // results that the client has not read
}

// given returns a pointer to v, nil where v is the zero value.
func given[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// statusRows shows the text of an error, which may name what others have, to members of pg_read_all_stats only.
func (e *Engine) statusRows(all bool) []statusRow {
	var s Status
	if e.opt.Status != nil {
		s = e.opt.Status()
	}
	r := statusRow{Version: s.Version, Started: s.Started, Uptime: strconv.FormatFloat(time.Since(s.Started).Seconds(), 'f', 3, 64) + " seconds",
		Connected: s.Connected, AppliedLSN: lsnText(e.store.Applied()), Copies: s.Copies, Recopies: s.Recopies, CheckpointFails: s.SaveFaults,
		ReuseLimit: e.results.limit, Sessions: s.Sessions, Device: s.Device}
	if v := e.catalog().ServerVersion; v != 0 {
		r.ServerVersion = given(strconv.Itoa(v/10000) + "." + strconv.Itoa(v%10000))
	}
	if s.Connected {
		lag := s.Lag.Seconds()
		r.LagBytes, r.LagSeconds = &s.LagBytes, &lag
	}
	if all {
		r.LastError = given(s.LastError)
	}
	if !s.LastErrorAt.IsZero() {
		r.LastErrorAt = &s.LastErrorAt
	}
	if !s.Saved.IsZero() {
		r.Checkpoint = &s.Saved
	}
	r.Columns, r.ColumnsLimit = e.store.Usage()
	r.Query, r.QueryLimit = e.QueryMemory()
	_, _, r.Reuse = e.Reused()
	r.Heap = heapBytes()
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		r.HeapLimit = &limit
	}
	return []statusRow{r}
}

// heapBytes is what lives on Go's heap, and what has died since the last collection.
func heapBytes() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// sessionRows shows of a session to whom pg_stat_activity would not show its state what it would.
func sessionRows(list []SessionInfo, allowed func(i int) bool) []sessionRow {
	out := []sessionRow{}
	for i, s := range list {
		r := sessionRow{PID: s.PID, User: s.User, Database: s.Database, Application: s.Application}
		if allowed(i) {
			r.Address, r.Port, r.Started, r.State, r.Since, r.Route = given(s.Address), &s.Port, &s.Started, given(s.State), &s.Since, given(s.Route)
			r.Accelerated, r.Partial, r.Forwarded, r.Held = &s.Accelerated, &s.Partial, &s.Forwarded, &s.Held
		}
		out = append(out, r)
	}
	return out
}
