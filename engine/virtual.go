package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/syntax"
)

// The virtual schema pgaccel has no tables in Postgres. A statement that names one is
// rewritten: the name becomes a subselect over rows in JSON, and Postgres does the
// rest, so that every feature of SELECT works on it, in every protocol and format.
//
// The rows are the value of a parameter behind the client's own, which is made anew at
// each Bind: current_query, pg_stat_activity and a plain log_statement show the text,
// which has none of them. What is in the parameter a role can get to see (by
// debug_print_plan, or log_parameter_max_length_on_error), and so can readers of a log
// that has parameters in it. So the session is asked first what its role may see, and
// nothing else is sent.

type tableRow struct {
	Name       string     `json:"name"`               // schema and name
	State      string     `json:"state"`              // `ready`; `copying`, `changed` (the stream brought what the copy cannot hold), `refused` (cannot be held) or `failed` (tried again), `left` (not copied; `choice` says why): forwarded
	Detail     string     `json:"detail"`             // why, in a sentence
	Rows       int64      `json:"rows"`               // rows now; as of its last moment where the copy is given up
	Bytes      int64      `json:"bytes"`              // column memory that it holds, dictionaries included
	Copied     *time.Time `json:"copied"`             // end of the last copy
	AppliedLSN string     `json:"applied_lsn"`        // log position up to which the stream has been seen
	Inserted   int64      `json:"inserted"`           // rows since the copy
	Updated    int64      `json:"updated"`            // likewise
	Deleted    int64      `json:"deleted"`            // likewise
	Deltas     int        `json:"deltas"`             // commits that are not folded into its segments yet
	History    int64      `json:"history_bytes"`      // what these take
	Segments   int        `json:"segments"`           // pieces of 65,536 rows
	OldestPin  float64    `json:"oldest_snapshot_ms"` // age of the oldest snapshot whose history is kept, of any table
	OnDevice   int64      `json:"device_bytes"`       // memory of devices that its columns have
	Choice     *string    `json:"choice"`             // why `--accelerate auto` has chosen or left it; null where a pattern names it
}

// Choice is a table that was chosen, or left, by what statements need.
type Choice struct {
	OID  uint32
	Name string // schema.name
	Take bool
	Why  string
}

// columnRow is what one codec takes of a column.
type columnRow struct {
	Table     string `json:"table"`        // schema and name
	Column    string `json:"column"`       // its name
	Codec     string `json:"codec"`        // how the segments are encoded
	Segments  int    `json:"segments"`     // how many of them are encoded so
	Bytes     int64  `json:"bytes"`        // what they take, dictionaries included
	NullBytes int64  `json:"null_bytes"`   // of these for nulls
	OnDevice  int64  `json:"device_bytes"` // memory of devices that they have
}

// deviceRow is one device; where there is none, one row says why.
type deviceRow struct {
	Device      string  `json:"device"`       // `cuda:0` and so on; `none (reason)` where there is none
	Model       string  `json:"model"`        // as the driver names it
	Memory      int64   `json:"memory_bytes"` // of the device
	Budget      int64   `json:"budget_bytes"` // that may be used (`--device-memory`)
	Used        int64   `json:"used_bytes"`   // in use
	Queries     uint64  `json:"queries"`      // that it answered
	Faults      uint64  `json:"faults"`       // that it had
	KernelMS    float64 `json:"kernel_ms"`    // time that queries have computed on it
	BytesCopied uint64  `json:"copied_bytes"` // copied to it
}

type queryRow struct {
	Query       string    `json:"query"`              // its text (of a COPY, that of the SELECT of its rows; of a cursor, its SELECT); of more than 16 KiB the beginning, with the length and a checksum
	Route       string    `json:"route"`              // of its last execution: `accelerated`, `partial` or `forwarded`
	Reason      string    `json:"reason"`             // why that was not wholly accelerated
	Detail      *string   `json:"detail"`             // what about it
	Position    *int      `json:"position"`           // the character of `query` at which that begins; null where it is no part of the text
	Also        *string   `json:"also"`               // what else of it is refused, a line each, with its position
	Calls       int64     `json:"calls"`              // executions
	Accelerated int64     `json:"accelerated"`        // of these answered here
	Partial     int64     `json:"partial"`            // of these answered here in part
	Forwarded   int64     `json:"forwarded"`          // of these answered by PostgreSQL
	Rows        int64     `json:"rows"`               // of accelerated and partial executions
	TotalMS     float64   `json:"total_ms"`           // of accelerated ones the time to compute them, without the gate; of partial ones until their end
	MeanMS      float64   `json:"mean_ms"`            // likewise
	MinMS       float64   `json:"min_ms"`             // likewise
	ServerMS    float64   `json:"forwarded_total_ms"` // of forwarded executions that PostgreSQL completed: from sending one until its last row had been relayed, without the gate
	ServerMean  float64   `json:"forwarded_mean_ms"`  // likewise
	LastUsed    time.Time `json:"last_used"`          // when it was last executed
	Checks      int64     `json:"checks"`             // shadow checks that came to something
	Mismatches  int64     `json:"mismatches"`         // of these those that found a difference
	Device      string    `json:"device"`             // what computed the last accelerated execution; `cpu` for no device
	DeviceCalls int64     `json:"device_calls"`       // executions that a device computed
	DeviceMS    float64   `json:"device_mean_ms"`     // what these took there
	Share       float64   `json:"share"`              // of the time of all rows, `total_ms` and `forwarded_total_ms`
	Gain        *float64  `json:"gain_ms"`            // what an execution here saves: what PostgreSQL takes (`forwarded_mean_ms`, or else by its estimate) less `mean_ms`; null where one is not known
	Hint        *string   `json:"hint"`               // what would help, by `reason`; null where `detail` says all there is
}

// View is a statement over the schema pgaccel.
type View struct {
	SQL string
	// Parameter is the number of the parameter, of type text, that takes the rows. The
	// client's own are those before it.
	Parameter int
	// Ask begins an execution.
	Ask func() ViewRows
}

// ViewRows are the rows of one execution.
type ViewRows struct {
	// SQL asks what the role may see, in one row. Params are the values, in text format, of its parameters.
	SQL    string
	Params []string
	// Value makes the parameter's value of that statement's answer.
	Value func(rights [][]*string) (string, error)
}

// ViewRightsSQL asks, in the client's session, what its role may see: whether it is a
// member of pg_read_all_stats, the database's encoding, which database it is, and for each OID in $1 of a
// table, with an attribute number in $2 or 0 for any, t or f for the right to select.
const ViewRightsSQL = `SELECT pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE'), pg_catalog.current_setting('server_encoding'), ` + catalog.DatabaseSQL + `,
 (SELECT pg_catalog.string_agg(CASE WHEN c.n OPERATOR(pg_catalog.<>) 0 AND pg_catalog.has_column_privilege(c.oid, c.n, 'SELECT')
   OR c.n OPERATOR(pg_catalog.=) 0 AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT') THEN 't' ELSE 'f' END, ',' ORDER BY c.i)
  FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.oid[]), pg_catalog.unnest($2::pg_catalog.int2[])) WITH ORDINALITY AS c(oid, n, i))`

// sessionRightsSQL asks, behind that, for each process id in $3 and role's name in $4 whether pg_stat_activity shows the
// role all of that session. Where it does not, there is no backend_start.
const sessionRightsSQL = `, (SELECT pg_catalog.string_agg(CASE WHEN a.backend_start IS NOT NULL THEN 't' ELSE 'f' END, ',' ORDER BY c.i)
  FROM ROWS FROM (pg_catalog.unnest($3::pg_catalog.int4[]), pg_catalog.unnest($4::pg_catalog.name[])) WITH ORDINALITY AS c(pid, name, i)
  LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid OPERATOR(pg_catalog.=) c.pid AND a.usename OPERATOR(pg_catalog.=) c.name)`

// columns defines the relations of the schema pgaccel.
var columns = map[string]string{
	"tables":   `"name" text, "state" text, "detail" text, "rows" bigint, "bytes" bigint, "copied" timestamptz, "applied_lsn" pg_lsn, "inserted" bigint, "updated" bigint, "deleted" bigint, "deltas" integer, "history_bytes" bigint, "segments" integer, "oldest_snapshot_ms" double precision, "device_bytes" bigint, "choice" text`,
	"columns":  `"table" text, "column" text, "codec" text, "segments" integer, "bytes" bigint, "null_bytes" bigint, "device_bytes" bigint`,
	"devices":  `"device" text, "model" text, "memory_bytes" bigint, "budget_bytes" bigint, "used_bytes" bigint, "queries" bigint, "faults" bigint, "kernel_ms" double precision, "copied_bytes" bigint`,
	"status":   `"version" text, "started_at" timestamptz, "uptime" interval, "server_version" text, "stream_connected" boolean, "applied_lsn" pg_lsn, "lag_bytes" bigint, "lag_seconds" double precision, "last_error" text, "last_error_at" timestamptz, "copies" bigint, "recopies" bigint, "checkpoint_at" timestamptz, "checkpoint_failures" bigint, "column_bytes" bigint, "column_limit_bytes" bigint, "query_bytes" bigint, "query_limit_bytes" bigint, "reuse_bytes" bigint, "reuse_limit_bytes" bigint, "heap_bytes" bigint, "heap_limit_bytes" bigint, "sessions" integer, "device" text`,
	"sessions": `"pid" integer, "usename" name, "datname" name, "application_name" text, "client_addr" inet, "client_port" integer, "backend_start" timestamptz, "state" text, "state_change" timestamptz, "route" text, "accelerated" bigint, "partial" bigint, "forwarded" bigint, "held_bytes" bigint`,
	"queries":  `"query" text, "route" text, "reason" text, "detail" text, "position" integer, "also" text, "calls" bigint, "accelerated" bigint, "partial" bigint, "forwarded" bigint, "rows" bigint, "total_ms" double precision, "mean_ms" double precision, "min_ms" double precision, "forwarded_total_ms" double precision, "forwarded_mean_ms" double precision, "last_used" timestamptz, "checks" bigint, "mismatches" bigint, "device" text, "device_calls" bigint, "device_mean_ms" double precision, "share" double precision, "gain_ms" double precision, "hint" text`,
}

// parametersMax is what a Bind can carry.
const parametersMax = 65535

// viewOf rewrites a statement over the schema pgaccel; nil for any other.
func (e *Engine) viewOf(t *syntax.Text, declared int) *View {
	names := map[string]bool{}
	text, param := t.RewriteVirtual(declared, func(name string, param int) (string, bool) {
		definition, ok := columns[name]
		names[name] = ok
		return fmt.Sprintf("SELECT * FROM pg_catalog.jsonb_to_recordset(pg_catalog.jsonb_object_field($%d::pg_catalog.jsonb, '%s')) AS r(%s)",
			param, name, definition), ok
	})
	if param == 0 || param > parametersMax {
		return nil
	}
	return &View{SQL: text, Parameter: param, Ask: func() ViewRows { return e.askRights(names) }}
}

// attribute names a column of a table, or the table where number is 0.
type attribute struct {
	table  uint32
	number int16
}

// askRights begins an execution over the named relations. What the store has got in
// between is not shown: nobody has asked for its rights.
func (e *Engine) askRights(names map[string]bool) ViewRows {
	var asked []attribute
	if names["tables"] {
		for _, st := range e.store.Statuses() {
			asked = append(asked, attribute{st.OID, 0})
		}
		for _, c := range e.choices() {
			if a := (attribute{c.OID, 0}); !slices.Contains(asked, a) {
				asked = append(asked, a)
			}
		}
	}
	if names["columns"] {
		for _, c := range e.store.ColumnSizes() {
			if a := (attribute{c.TableOID, c.AttNum}); len(asked) == 0 || asked[len(asked)-1] != a {
				asked = append(asked, a)
			}
		}
	}
	oids, numbers := make([]string, len(asked)), make([]string, len(asked))
	for i, a := range asked {
		oids[i], numbers[i] = strconv.FormatUint(uint64(a.table), 10), strconv.Itoa(int(a.number))
	}
	rows := ViewRows{SQL: ViewRightsSQL, Params: []string{"{" + strings.Join(oids, ",") + "}", "{" + strings.Join(numbers, ",") + "}"}}
	var sessions []SessionInfo
	columns := 4
	if names["sessions"] && e.opt.Sessions != nil {
		sessions = e.opt.Sessions()
		pids, users := make([]string, len(sessions)), make([]string, len(sessions))
		for i, s := range sessions {
			pids[i] = strconv.Itoa(int(s.PID))
			if isASCII(s.User) { // else the server would read it by this session's client_encoding
				users[i] = arrayElement(s.User)
			} else {
				users[i] = `""`
			}
		}
		rows.SQL += sessionRightsSQL
		rows.Params = append(rows.Params, "{"+strings.Join(pids, ",")+"}", "{"+strings.Join(users, ",")+"}")
		columns++
	}
	rows.Value = func(rights [][]*string) (string, error) {
		if len(rights) != 1 || len(rights[0]) != columns || rights[0][0] == nil || rights[0][1] == nil || rights[0][2] == nil {
			return "", fmt.Errorf("what the role may see came in %d rows", len(rights))
		}
		all := *rights[0][0] == "t"
		// In another database of the server the OIDs are those of other tables.
		here := *rights[0][2] == e.store.Server() || !catalog.SameServer(*rights[0][2], e.store.Server())
		answers, err := rightsOf(rights[0][3], len(asked))
		if err != nil {
			return "", err
		}
		allowed := map[attribute]bool{}
		for i, a := range asked {
			allowed[a] = answers[i] && here
		}
		var shown []bool
		if columns > 4 {
			if shown, err = rightsOf(rights[0][4], len(sessions)); err != nil {
				return "", err
			}
		}
		view := viewer{all: all, allowed: func(a attribute) bool { return all || allowed[a] }, utf8: *rights[0][1] == "UTF8",
			sessions: sessionRows(sessions, func(i int) bool { return all || shown[i] })}
		return e.viewRows(names, &view), nil
	}
	return rows
}

// rightsOf reads n answers of t or f.
func rightsOf(list *string, n int) ([]bool, error) {
	var answers []string
	if list != nil {
		answers = strings.Split(*list, ",")
	}
	if len(answers) != n {
		return nil, fmt.Errorf("%d answers for %d rights", len(answers), n)
	}
	out := make([]bool, n)
	for i, v := range answers {
		out[i] = v == "t"
	}
	return out, nil
}

func isASCII(s string) bool { return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0 }

// arrayElement writes a text as an element of an array's text form.
func arrayElement(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// viewer is who asks.
type viewer struct {
	all      bool // a member of pg_read_all_stats
	allowed  func(attribute) bool
	utf8     bool // the database's encoding is
	sessions []sessionRow
}

// viewRows returns the rows that a role may see, in JSON that is ASCII: its characters
// are the same in every client_encoding. A database whose encoding is not UTF8 may not
// know the others.
func (e *Engine) viewRows(names map[string]bool, v *viewer) string {
	doc := map[string]any{}
	for name := range names {
		switch name {
		case "tables":
			doc[name] = e.tableRows(v.allowed)
		case "columns":
			doc[name] = e.columnRows(v.allowed)
		case "devices":
			doc[name] = e.deviceRows()
		case "queries":
			doc[name] = e.queryRows(v.all)
		case "status":
			doc[name] = e.statusRows(v.all)
		case "sessions":
			doc[name] = v.sessions
		}
	}
	b, err := json.Marshal(doc)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	out := make([]byte, 0, len(b))
	for _, r := range string(b) {
		switch {
		case r < 0x80:
			out = append(out, byte(r))
		case !v.utf8:
			out = append(out, '?')
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				out = fmt.Appendf(out, `\u%04x`, unit)
			}
		}
	}
	return string(out)
}

// lsnText writes a log position as pg_lsn does.
func lsnText(lsn uint64) string { return fmt.Sprintf("%X/%X", lsn>>32, uint32(lsn)) }

func (e *Engine) choices() []Choice {
	if e.opt.Choices == nil {
		return nil
	}
	return e.opt.Choices()
}

func (e *Engine) tableRows(allowed func(attribute) bool) []tableRow {
	out := []tableRow{}
	lsn := e.store.Applied()
	resident := e.resident()
	chosen := map[uint32]Choice{}
	for _, c := range e.choices() {
		chosen[c.OID] = c
	}
	for _, st := range e.store.Statuses() {
		if !allowed(attribute{st.OID, 0}) {
			continue
		}
		r := tableRow{Name: st.Name, State: st.State.String(), Detail: st.Detail, Rows: st.Rows, Bytes: st.Bytes,
			AppliedLSN: lsnText(lsn),
			Inserted:   st.Inserted, Updated: st.Updated, Deleted: st.Deleted, Deltas: st.Deltas, History: st.HistoryBytes, Segments: st.Segments,
			OldestPin: float64(st.OldestPin.Microseconds()) / 1000, OnDevice: resident[st.Name]}
		if !st.Copied.IsZero() {
			c := st.Copied
			r.Copied = &c
		}
		if c, ok := chosen[st.OID]; ok {
			r.Choice = &c.Why
		}
		delete(chosen, st.OID)
		out = append(out, r)
	}
	for _, c := range chosen {
		if !c.Take && allowed(attribute{c.OID, 0}) {
			out = append(out, tableRow{Name: c.Name, State: "left", AppliedLSN: lsnText(lsn), Choice: &c.Why})
		}
	}
	return out
}

func (e *Engine) columnRows(allowed func(attribute) bool) []columnRow {
	out := []columnRow{}
	for _, c := range e.store.ColumnSizes() {
		if allowed(attribute{c.TableOID, c.AttNum}) {
			out = append(out, columnRow{c.Table, c.Column, c.Codec, c.Segments, c.Bytes, c.NullBytes, e.residentOf(c.IDs)})
		}
	}
	return out
}

func (e *Engine) deviceRows() []deviceRow {
	if e.opt.Devices == nil {
		return []deviceRow{{Device: "none (--device cpu)"}}
	}
	out := []deviceRow{}
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

// queryRows shows the texts to members of pg_read_all_stats only, as
// pg_stat_statements does those of others: a shape is not one role's.
func (e *Engine) queryRows(texts bool) []queryRow {
	out := []queryRow{}
	total := 0.0
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	for _, sh := range e.stats.list() {
		sh.mu.Lock()
		r := queryRow{Query: sh.text, Route: sh.route, Reason: string(sh.why.Reason), Calls: sh.accelerated + sh.partial + sh.forwarded,
			Accelerated: sh.accelerated, Partial: sh.partial, Forwarded: sh.forwarded, Rows: sh.rows, TotalMS: ms(sh.busy), MinMS: ms(sh.fastest), LastUsed: sh.last,
			Checks: sh.checks, Mismatches: sh.mismatches, Device: sh.device, DeviceCalls: sh.onDevice}
		if detail := sh.why.Detail; detail != "" {
			r.Detail = &detail
		}
		if position := sh.why.Position; position > 0 {
			r.Position = &position
		}
		if also := alsoRefused(sh.why.Also); also != "" {
			r.Also = &also
		}
		if n := sh.accelerated + sh.partial; n > 0 {
			r.MeanMS = r.TotalMS / float64(n)
		}
		if sh.completed > 0 {
			r.ServerMS = ms(sh.server)
			r.ServerMean = r.ServerMS / float64(sh.completed)
		}
		if sh.onDevice > 0 {
			r.DeviceMS = ms(sh.deviceBusy) / float64(sh.onDevice)
		}
		if server, known := sh.serverTime(e.trials.unit()); known && r.MeanMS > 0 {
			gain := server.Seconds()*1000 - r.MeanMS
			r.Gain = &gain
		}
		sh.mu.Unlock()
		if !texts {
			r.Query, r.Detail, r.Position, r.Also = "<insufficient privilege>", nil, nil, nil
		}
		r.Hint = given(hints[plan.Reason(r.Reason)])
		if r.Calls > 0 {
			out = append(out, r)
			total += r.TotalMS + r.ServerMS
		}
	}
	for i := range out {
		if total > 0 {
			out[i].Share = (out[i].TotalMS + out[i].ServerMS) / total
		}
	}
	return out
}

// serverTime is what the server takes for an execution, as it has, or else by its estimate. The shape is locked.
func (sh *shape) serverTime(unit time.Duration) (d time.Duration, known bool) {
	if sh.completed > 0 {
		return sh.server / time.Duration(sh.completed), true
	}
	sh.routing.mu.Lock()
	defer sh.routing.mu.Unlock()
	return sh.routing.estimate.time(unit), sh.routing.estimate.known()
}

// alsoRefused writes what else of a statement is refused, a line each, with its position.
func alsoRefused(all []plan.Forward) string {
	lines := make([]string, len(all))
	for i, f := range all {
		lines[i] = string(f.Reason)
		if f.Detail != "" {
			lines[i] += ": " + f.Detail
		}
		if f.Position > 0 {
			lines[i] += fmt.Sprintf(" (at %d)", f.Position)
		}
	}
	return strings.Join(lines, "\n")
}
