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
	Version         string     `json:"version"`
	Started         time.Time  `json:"started_at"`
	Uptime          string     `json:"uptime"`
	ServerVersion   *string    `json:"server_version"`
	Connected       bool       `json:"stream_connected"`
	AppliedLSN      string     `json:"applied_lsn"`
	LagBytes        *int64     `json:"lag_bytes"`
	LagSeconds      *float64   `json:"lag_seconds"`
	LastError       *string    `json:"last_error"`
	LastErrorAt     *time.Time `json:"last_error_at"`
	Copies          int64      `json:"copies"`
	Recopies        int64      `json:"recopies"`
	Checkpoint      *time.Time `json:"checkpoint_at"`
	CheckpointFails int64      `json:"checkpoint_failures"`
	Columns         int64      `json:"column_bytes"`
	ColumnsLimit    int64      `json:"column_limit_bytes"`
	Query           int64      `json:"query_bytes"`
	QueryLimit      int64      `json:"query_limit_bytes"`
	Reuse           int64      `json:"reuse_bytes"`
	ReuseLimit      int64      `json:"reuse_limit_bytes"`
	Heap            int64      `json:"heap_bytes"`
	HeapLimit       *int64     `json:"heap_limit_bytes"`
	Sessions        int        `json:"sessions"`
	Device          string     `json:"device"`
}

type sessionRow struct {
	PID         int32      `json:"pid"`
	User        string     `json:"usename"`
	Database    string     `json:"datname"`
	Application string     `json:"application_name"`
	Address     *string    `json:"client_addr"`
	Port        *int       `json:"client_port"`
	Started     *time.Time `json:"backend_start"`
	State       *string    `json:"state"`
	Since       *time.Time `json:"state_change"`
	Route       *string    `json:"route"`
	Accelerated *int64     `json:"accelerated"`
	Partial     *int64     `json:"partial"`
	Forwarded   *int64     `json:"forwarded"`
	Held        *int64     `json:"held_bytes"`
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
		ReuseLimit: e.opt.ReuseMemory, Sessions: s.Sessions, Device: s.Device}
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
