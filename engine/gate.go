package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// Positions of the gate's columns: what is the same in every row, then what is said
// of one table.
const (
	gateSnapshot = iota
	gateInsertLSN
	gateServer
	gateNoXID
	gateIsolation
	gateTimeZone
	gateFloatDigits
	gateByteaOutput
	gateMonetary
	gateReading
	gateDateStyle
	gateIntervalStyle
	gateClientEncoding
	gateTimeout
	gateSchemas
	gateMode
	gateStaleness
	gateFloatSum
	gateTies
	gateDevice
	gateIndex
	gateReuse
	gateOperators
	gateShadowed
	gateCallable
	gateOID
	gateAllowed
	gateRowSecurity
	gateFingerprint
	gateNames
	gateColumns
)

// gateRow is the gate's answer.
type gateRow struct {
	snapshot   colstore.Snapshot
	text       string    // of snapshot
	sent       time.Time // a time before it was taken, outside of REPEATABLE READ
	insertLSN  uint64
	server     string // that the session is on, see catalog.DatabaseSQL
	standby    bool
	noXID      bool // the transaction has written nothing
	isolation  string
	timeZone   string
	floatDigit string
	bytea      string // bytea_output
	monetary   string // lc_monetary
	dateStyle  string
	intervals  string // IntervalStyle
	reading    string // settings that change what a statement's text means
	schemas    string
	mode       string
	floatSum   string        // pgaccel.float_sum
	ties       string        // pgaccel.ties
	device     string        // pgaccel.device
	index      string        // pgaccel.index
	reuse      string        // pgaccel.reuse
	operators  string        // see catalog.OperatorsSQL
	shadowed   bool          // see catalog.ShadowedNowSQL
	callable   bool          // EXECUTE on every function that the statement calls
	timeout    time.Duration // statement_timeout or, if that is shorter, transaction_timeout; 0 for none
	staleness  time.Duration // pgaccel.max_staleness
	tables     []gateTable
	seen       *Seen  // the execution's
	known      *known // that some of it was taken from; nil: all was asked for

	badStaleness bool // it is set to what is no duration, and counts as 0
}

const repeatableRead = "repeatable read"

// repeatable reports whether all statements of the transaction see one snapshot.
func (g *gateRow) repeatable() bool { return g.isolation == repeatableRead }

// tiesForward is the setting of pgaccel.ties that leaves to PostgreSQL which of the rows are taken that tie where
// LIMIT cuts. What is no setting counts as it.
const tiesForward = "forward"

// takes reports whether the client takes the result, as far as ties go.
func (g *gateRow) takes(b *vector.Batch) bool { return !b.Ties || g.ties == "" || g.ties == "any" }

var errTies = forward(plan.ReasonTies, "pgaccel.ties")

// gateTable is what the gate says of one table reference.
type gateTable struct {
	oid         uint32 // what the statement's name means in this session, 0 for nothing
	allowed     bool   // SELECT on every column that the statement mentions
	rowSecurity bool
	fingerprint catalog.Fingerprint
	names       string // in REPEATABLE READ, the columns' names as of now
}

// GateSettings returns the settings, as the gate saw them, that decide how values are
// written and read on the wire. What a session has reported may be older: the server
// reports a change only with ReadyForQuery, a pipeline's statements see it at once.
// ok is false where rows are not the gate's.
func GateSettings(rows [][]*string) (timeZone, dateStyle, intervalStyle, clientEncoding string, ok bool) {
	if len(rows) == 0 || len(rows[0]) != gateColumns {
		return "", "", "", "", false
	}
	for _, c := range []struct {
		column int
		value  *string
	}{{gateTimeZone, &timeZone}, {gateDateStyle, &dateStyle}, {gateIntervalStyle, &intervalStyle}, {gateClientEncoding, &clientEncoding}} {
		if rows[0][c.column] == nil {
			return "", "", "", "", false
		}
		*c.value = *rows[0][c.column]
	}
	return timeZone, dateStyle, intervalStyle, clientEncoding, true
}

// gateText returns a column of the gate's first row; ok is false where it is null, or rows are not the gate's.
func gateText(rows [][]*string, column int) (text string, ok bool) {
	if len(rows) == 0 || len(rows[0]) != gateColumns || rows[0][column] == nil {
		return "", false
	}
	return *rows[0][column], true
}

// GateByteaOutput returns the session's bytea_output, which the server never reports; "" where the rows are not the gate's.
func GateByteaOutput(rows [][]*string) string {
	text, _ := gateText(rows, gateByteaOutput)
	return text
}

// GateSchemas returns the schemas of the session's search_path, as an array's text; "" where the rows are not the gate's.
func GateSchemas(rows [][]*string) string {
	text, _ := gateText(rows, gateSchemas)
	return text
}

// GateRepeatable reports that all statements of the gate's transaction see one snapshot, or
// that rows are not the gate's.
func GateRepeatable(rows [][]*string) bool {
	text, ok := gateText(rows, gateIsolation)
	return !ok || text == repeatableRead
}

// Unwrappable reports that a statement outside of a transaction block is not the same
// when it is run in a REPEATABLE READ block of its own: the session's transactions are
// SERIALIZABLE, or rows are not the gate's.
func Unwrappable(rows [][]*string) bool {
	text, ok := gateText(rows, gateIsolation)
	return !ok || !slices.Contains(isolations, text)
}

// CanShadow reports whether an execution behind this gate can be checked against
// Postgres. In READ COMMITTED a second gate is needed behind the statement, which
// a timeout could let fail where the statement has not.
func CanShadow(rows [][]*string) bool {
	isolation, known := gateText(rows, gateIsolation)
	timeout, ok := gateText(rows, gateTimeout)
	return known && ok && (isolation == repeatableRead || parseTimeout(timeout) == 0)
}

// GateSnapshot returns the snapshot that the gate's rows show, as text.
func GateSnapshot(rows [][]*string) string {
	text, _ := gateText(rows, gateSnapshot)
	return text
}

// gateParams builds the gate's parameters for a query: for each table the name as
// the statement wrote it, its schema where it wrote one, its OID, and the attribute
// numbers of the columns that the statement mentions; then the functions' names, and the
// OIDs of those that it calls; and the role whose rights count. The name is null for what a view
// reads, which is known by its OID. The text of a known snapshot comes behind them (Engine.call).
func gateParams(q *plan.Deps) []string {
	var refs, schemas, oids, attnums, roles []string
	tables := references(q)
	for i := range tables {
		t := &tables[i]
		ref := "NULL"
		if t.Ref != "" {
			ref = quoteElement(t.Ref)
		}
		refs = append(refs, ref)
		roles = append(roles, strconv.FormatUint(uint64(t.Role), 10))
		schema := "NULL"
		if strings.Contains(t.Ref, `"."`) {
			schema = quoteElement(t.Meta.Schema)
		}
		schemas = append(schemas, schema)
		oids = append(oids, strconv.FormatUint(uint64(t.Meta.OID), 10))
		var nums []string
		for _, c := range t.Columns {
			nums = append(nums, strconv.Itoa(int(t.Meta.Columns[c].AttNum)))
		}
		attnums = append(attnums, quoteElement("{"+strings.Join(nums, ",")+"}"))
	}
	array := func(elements []string) string { return "{" + strings.Join(elements, ",") + "}" }
	return []string{array(refs), array(schemas), array(oids), array(attnums), nameArray(q.Functions), oidArray(q.Calls), array(roles)}
}

// nameArray is an array of names in text form.
func nameArray(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = quoteElement(name)
	}
	return "{" + strings.Join(quoted, ",") + "}"
}

// oidArray is an array of OIDs in text form.
func oidArray(oids []uint32) string {
	b := []byte{'{'}
	for i, o := range oids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(o), 10)
	}
	return string(append(b, '}'))
}

// references returns what the gate has a row for: tables, then views.
func references(q *plan.Deps) []plan.Table {
	if len(q.Views) == 0 {
		return q.Tables
	}
	return slices.Concat(q.Tables, q.Views)
}

// gateFor chooses the form of the gate for a query, and builds its parameters.
func gateFor(q *plan.Deps) (GateForm, []string) {
	if len(q.Tables) != 1 || len(q.Views) > 0 || q.Tables[0].Meta.Fingerprint.Partitioned() {
		return GateFull, gateParams(q)
	}
	t := &q.Tables[0]
	schema := ""
	if strings.Contains(t.Ref, `"."`) {
		schema = t.Meta.Schema
	}
	nums := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		nums[i] = strconv.Itoa(int(t.Meta.Columns[c].AttNum))
	}
	return GatePlain, []string{t.Ref, schema, strconv.FormatUint(uint64(t.Meta.OID), 10),
		"{" + strings.Join(nums, ",") + "}", nameArray(q.Functions), oidArray(q.Calls)}
}

// quoteElement quotes one element of an array's text form.
func quoteElement(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// expectedNames is what namesSQL returns while nothing is renamed.
func expectedNames(t *plan.Table) string {
	var parts []string
	for _, c := range t.Columns {
		parts = append(parts, catalog.QuoteIfNeeded(t.Meta.Schema)+"."+catalog.QuoteIfNeeded(t.Meta.Name)+"."+catalog.QuoteIfNeeded(t.Meta.Columns[c].Name))
	}
	return strings.Join(parts, ",")
}

// parseGate reads the gate's rows. Their shape is ours, so that an error here is a
// bug or a server that is no Postgres.
func parseGate(gate Gate, tables int) (*gateRow, error) {
	rows := gate.Rows
	if len(rows) != tables {
		return nil, fmt.Errorf("the gate returned %d rows for %d tables", len(rows), tables)
	}
	g := &gateRow{}
	for i, row := range rows {
		if len(row) != gateColumns {
			return nil, fmt.Errorf("the gate returned %d columns, not %d", len(row), gateColumns)
		}
		text := func(c int) string {
			if row[c] == nil {
				return ""
			}
			return *row[c]
		}
		if i == 0 {
			*g = gateRow{text: text(gateSnapshot), sent: gate.Sent, seen: gate.Seen, server: text(gateServer), standby: row[gateInsertLSN] == nil, noXID: text(gateNoXID) == "t", isolation: text(gateIsolation),
				timeZone: text(gateTimeZone), floatDigit: text(gateFloatDigits), bytea: text(gateByteaOutput), monetary: text(gateMonetary), dateStyle: text(gateDateStyle), intervals: text(gateIntervalStyle), reading: text(gateReading), schemas: text(gateSchemas), mode: strings.ToLower(text(gateMode)), floatSum: strings.ToLower(text(gateFloatSum)), ties: strings.ToLower(text(gateTies)), device: strings.ToLower(text(gateDevice)), index: strings.ToLower(text(gateIndex)), reuse: strings.ToLower(text(gateReuse)), operators: text(gateOperators), shadowed: text(gateShadowed) != "f", callable: text(gateCallable) == "t",
				timeout: parseTimeout(text(gateTimeout))}
			var ok bool
			g.staleness, ok = parseStaleness(text(gateStaleness))
			g.badStaleness = !ok
			var err error
			if g.snapshot, err = colstore.ParseSnapshot(text(gateSnapshot)); err != nil {
				return nil, err
			}
			if !g.standby {
				if g.insertLSN, err = catalog.ParseLSN(text(gateInsertLSN)); err != nil {
					return nil, err
				}
			}
		}
		oid, _ := strconv.ParseUint(text(gateOID), 10, 32)
		g.tables = append(g.tables, gateTable{
			oid: uint32(oid), allowed: text(gateAllowed) == "t",
			// Anything but a clear no counts as active.
			rowSecurity: text(gateRowSecurity) != "f",
			fingerprint: catalog.Fingerprint(text(gateFingerprint)), names: text(gateNames)})
	}
	if k := gate.Asked.known; k != nil && g.text == k.text && g.server == k.server && rows[0][gateOperators] == nil {
		k.fill(g)
	}
	return g, nil
}

// checkGate returns why this execution must be forwarded, nil where it may be
// answered here.
func (e *Engine) checkGate(d *decision, g *gateRow) *plan.Forward {
	switch {
	case g.mode == "off":
		return forward(plan.ReasonMode, "")
	case e.stats.wrong(d.shape):
		return forward(plan.ReasonMismatch, "")
	case d.forced != nil && g.mode != "force":
		return d.forced
	case g.standby:
		return forward(plan.ReasonStandby, "")
	case g.server != e.store.Server():
		// Before all that is compared with the catalog of the stream's server.
		return e.otherServer(g.server)
	case !g.noXID:
		return forward(plan.ReasonOwnWrites, "")
	case !slices.Contains(isolations, g.isolation):
		return forward(plan.ReasonIsolation, g.isolation)
	case !systemSchemaFirst(g.schemas):
		return forward(plan.ReasonShadowed, "pg_catalog is not first in search_path")
	case g.shadowed || g.operators != d.catalog.Operators:
		return errShadowed
	case !g.callable:
		return forward(plan.ReasonPrivilege, "EXECUTE on a built-in function")
	case g.reading != "on off on":
		return forward(plan.ReasonSettings, "standard_conforming_strings, transform_null_equals or array_nulls")
	case d.query.AddsFloats() && g.floatSum != "" && g.floatSum != "exact":
		return forward(plan.ReasonSettings, "pgaccel.float_sum")
	case d.deps.NeedsUTC && !sqltype.IsUTC(g.timeZone):
		return forward(plan.ReasonTimeZone, "")
	case d.deps.NamesUTC && redefinesUTC(g.timeZone):
		return forward(plan.ReasonTimeZone, "its abbreviations may have UTC or GMT with another meaning")
	case d.deps.NeedsISO && !strings.HasPrefix(g.dateStyle, "ISO, "):
		return forward(plan.ReasonSettings, "DateStyle")
	case (d.deps.NeedsIntervalStyle || returns(d.query, vector.Interval)) && g.intervals != "postgres":
		return forward(plan.ReasonSettings, "IntervalStyle")
	case (d.deps.NeedsMonetary || returns(d.query, vector.Money)) && !sqltype.MoneyIn(g.monetary):
		return forward(plan.ReasonSettings, "lc_monetary")
	case d.finish != nil && d.finish.Cuts && g.ties == tiesForward:
		return errTies
	case returnsFloat(d.query) && !g.wholeFloats():
		return forward(plan.ReasonSettings, "extra_float_digits")
	}
	if f := g.checkOpaque(d.query); f != nil {
		return f
	}
	tables := references(d.deps)
	for i := range g.tables {
		have, want := &g.tables[i], &tables[i]
		switch {
		case have.oid == 0 && strings.Contains(want.Ref, `"."`):
			return forward(plan.ReasonPrivilege, "the role has no USAGE on the schema of "+want.Ref+", or the table is gone")
		case have.oid == 0:
			return forward(plan.ReasonResolved, "no schema of search_path that the role may use has "+want.Ref)
		case have.oid != want.Meta.OID:
			return forward(plan.ReasonResolved, want.Ref+" is a temporary table, or one of another schema of search_path, in this session")
		case !have.allowed:
			return forward(plan.ReasonPrivilege, noSelect(want))
		case have.rowSecurity:
			return forward(plan.ReasonRLS, "")
		case have.fingerprint != want.Meta.Fingerprint,
			g.repeatable() && have.names != expectedNames(want):
			return e.redefined(want)
		}
	}
	return nil
}

// noSelect says which right is missing.
func noSelect(t *plan.Table) string {
	switch {
	case t.Ref != "":
		return "no SELECT on " + t.Ref + ", or on a column of it that the statement names"
	case t.Role != 0:
		return "the owner of the view may not read " + t.Meta.QualifiedName()
	}
	return "no SELECT on " + t.Meta.QualifiedName() + ", which the view reads"
}

var errShadowed = forward(plan.ReasonShadowed, "a function, operator, cast or type has been created")

func (e *Engine) redefined(t *plan.Table) *plan.Forward {
	if e.opt.CheckDefinition != nil {
		e.opt.CheckDefinition(t.Meta.OID)
	}
	return forward(plan.ReasonDDL, "")
}

// checkPresent looks at definitions as of now. In REPEATABLE READ the gate reads the
// catalog as of the transaction's snapshot, while Postgres resolves names, and finds
// a table's inheritance children, partitions and functions, as of now. So the gate is
// run once more, on a session of our own on the same server; what else it says of that
// session does not count. The position that it returns is of now, too, 0 where nobody looked.
func (e *Engine) checkPresent(ctx context.Context, d *decision, server string) (lsn uint64, err error) {
	if e.opt.Look == nil {
		return 0, nil
	}
	// Always in one form: the session of our own has only one statement prepared.
	rows, err := e.opt.Look(ctx, gateSQL, append(gateParams(d.deps), ""))
	if err != nil {
		return 0, forward(plan.ReasonNotReady, err.Error())
	}
	tables := references(d.deps)
	g, err := parseGate(Gate{Rows: rows}, len(tables))
	if err != nil {
		return 0, err
	}
	if g.server != server {
		return 0, e.otherServer(server)
	}
	if g.shadowed || g.operators != d.catalog.Operators {
		return 0, errShadowed
	}
	for i := range g.tables {
		if want := &tables[i]; g.tables[i].fingerprint != want.Meta.Fingerprint {
			return 0, e.redefined(want)
		}
	}
	return g.insertLSN, nil
}

// isolations are the levels whose reads a snapshot decides. Reads under
// SERIALIZABLE take predicate locks in Postgres, so that they cannot be answered
// elsewhere.
var isolations = []string{"read committed", "read uncommitted", repeatableRead}

// systemSchemaFirst reports whether functions and operators resolve in pg_catalog
// before any other schema. Temporary schemas hold no functions that a plain name
// could mean.
func systemSchemaFirst(schemas string) bool {
	list := strings.Split(strings.Trim(schemas, "{}"), ",")
	if strings.HasPrefix(list[0], "pg_temp_") && len(list) > 1 {
		list = list[1:]
	}
	return list[0] == "pg_catalog"
}

// redefinesUTC reports whether a time zone may be one in POSIX form that names an abbreviation UTC or GMT.
// Those of the tz database that do so mean UTC.
func redefinesUTC(timeZone string) bool {
	z := strings.ToUpper(timeZone)
	return (strings.Contains(z, "UTC") || strings.Contains(z, "GMT")) && strings.ContainsAny(z, "0123456789") && !strings.HasPrefix(z, "ETC/")
}

func returnsFloat(q *plan.Star) bool {
	return slices.ContainsFunc(q.Output, func(x plan.Expr) bool { return x.Type().Kind.Element().IsFloat() })
}

// returns reports whether a result has values of a kind, in arrays or not: moments are written in the session's time zone, intervals in its
// IntervalStyle.
func returns(q *plan.Star, k vector.Kind) bool {
	return slices.ContainsFunc(q.Output, func(x plan.Expr) bool { return x.Type().Kind.Element() == k })
}

// wholeFloats reports whether floats are written so that they are read as the same.
func (g *gateRow) wholeFloats() bool { return len(g.floatDigit) == 1 && g.floatDigit >= "1" }

// checkOpaque returns why values of an opaque type cannot be written under the settings, nil where they can.
func (g *gateRow) checkOpaque(q *plan.Star) *plan.Forward {
	settings := sqltype.WritingSettings{WholeFloats: g.wholeFloats(), DateStyle: g.dateStyle, TimeZone: g.timeZone, IntervalStyle: g.intervals, ByteaOutput: g.bytea, Monetary: g.monetary}
	for _, x := range q.Output {
		if x.Type().Kind != vector.Opaque {
			continue
		}
		switch setting, _ := sqltype.OpaqueOfType(x.Type()).Unmet(settings); setting {
		case "":
		case "TimeZone":
			return forward(plan.ReasonTimeZone, "")
		default:
			return forward(plan.ReasonSettings, setting)
		}
	}
	return nil
}

// checkDescription compares the plan's result columns with Postgres' description.
func checkDescription(q *plan.Star, described []Field) *plan.Forward {
	if len(described) != len(q.Output) {
		return forward(plan.ReasonDescription, fmt.Sprintf("%d columns, planned %d", len(described), len(q.Output)))
	}
	for i, f := range described {
		if t := q.Output[i].Type(); sqltype.OIDOf(t) != f.TypeOID {
			return forward(plan.ReasonDescription, fmt.Sprintf("column %d has type OID %d, planned %s", i+1, f.TypeOID, t.Kind))
		}
	}
	return nil
}

// parseTimeout reads time settings as current_setting shows them, with spaces between, and
// returns the shortest, 0 where none is set. What cannot be read is taken for the shortest
// there is, which forwards.
func parseTimeout(s string) time.Duration {
	settings := strings.Fields(s)
	if len(settings) == 0 {
		return timeoutUnknown
	}
	shortest := time.Duration(0)
	for _, one := range settings {
		if d := parseDuration(one); d > 0 && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	return shortest
}

// parseDuration reads one of them: an integer with the largest unit that keeps it one.
func parseDuration(s string) time.Duration {
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyz")
	n, err := strconv.ParseInt(digits, 10, 32)
	unit, ok := timeUnits[s[len(digits):]]
	if err != nil || !ok || n < 0 {
		return timeoutUnknown
	}
	return time.Duration(n) * unit
}

var timeUnits = map[string]time.Duration{"": time.Millisecond, "us": time.Microsecond, "ms": time.Millisecond,
	"s": time.Second, "min": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

// timeoutUnknown is over before anything is computed.
const timeoutUnknown = time.Duration(1)
