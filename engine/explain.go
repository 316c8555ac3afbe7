package engine

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"pgaccel/catalog"
	"pgaccel/explain"
	"pgaccel/gpu"
	"pgaccel/olap"
	"pgaccel/plan"
	"pgaccel/pushdown"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// An EXPLAIN of a SELECT is decided and gated as that SELECT is, and its rows say how that is computed: with
// ANALYZE once it has been. Where the SELECT would be forwarded, wholly or in part, so is the EXPLAIN, and a
// notice says why. It is counted nowhere, whatever becomes of it, and remembered nowhere.

// Explain is an EXPLAIN that may be answered here.
type Explain struct {
	// SQL is the statement that is explained, whose result is described in its place; "" where the EXPLAIN is
	// forwarded behind its gate, for which it need not be.
	SQL string
	// TypeOID is that of the one column.
	TypeOID uint32
}

// ExplainColumn is the name of an EXPLAIN's one column.
const ExplainColumn = "QUERY PLAN"

// OIDs of what EXPLAIN returns (ExplainResultDesc).
var explainTypes = map[string]uint32{"text": 25, "yaml": 25, "json": 114, "xml": 142}

// Notice is the error of an EXPLAIN that is forwarded: what the client is told before the server's answer.
type Notice struct {
	Message, Detail, Hint string
	Position              int // in the client's text, from 1; 0 for none
}

// Error implements error.
func (n *Notice) Error() string { return n.Message }

// explained is an EXPLAIN.
type explained struct {
	Explain
	options *syntax.Explain
	of      *decision // on what is explained, which may be forwarded
	refused []pushdown.Refusal
	before  string        // the client's text before the SELECT
	took    time.Duration // to plan it
	// bound and what follows are those of one execution.
	bound    *plan.Star
	scanned  *olap.Scanned
	onDevice gpu.Stats
}

// explainOf is Prepare for an EXPLAIN.
func (e *Engine) explainOf(sql string, paramOIDs []uint32) *statement {
	start, text := time.Now(), syntax.Parse(sql)
	options, query := text.Explain()
	if query == nil || len(e.named(query)) == 0 {
		return e.other
	}
	st := &statement{engine: e, sql: sql, paramOIDs: slices.Clone(paramOIDs), explain: &explained{options: options, before: strings.TrimSuffix(sql, query.SQL)}}
	st.last = &statement{engine: e, sql: query.SQL, paramOIDs: st.paramOIDs}
	st.last.decide(e.catalog(), query)
	st.explain.took = time.Since(start)
	return st
}

// named returns the copied tables and views that a SELECT names, as its gate asks for them.
func (e *Engine) named(query *syntax.Text) (tables []plan.Table) {
	cat := e.catalog()
	for _, name := range query.Relations() {
		of := func(t *catalog.Table) bool {
			return t.Name == name[1] && (name[0] == "" || t.Schema == name[0])
		}
		all := slices.Concat(cat.Tables, cat.Views)
		i := slices.IndexFunc(all, of)
		if i < 0 {
			continue
		}
		ref := catalog.QuoteIfNeeded(name[1])
		if name[0] != "" {
			ref = catalog.QuoteIfNeeded(name[0]) + "." + ref
		}
		tables = append(tables, plan.Table{Meta: all[i], Ref: ref})
	}
	return tables
}

// decide is Decide of the EXPLAIN that s is.
func (x *explained) decide(s *statement, in Session) Decision {
	in.Executes = false
	last := s.last.choose(in)
	d := &decision{statement: s.last, catalog: last.catalog, deps: last.deps, query: last.query, forced: last.forced, form: last.form, gate: last.gate,
		constants: last.constants, uncertain: new(atomic.Int64), tooMany: new(atomic.Int64), lateFailure: new(atomic.Pointer[lateFailure]), shape: last.shape}
	own := *x
	own.of, own.TypeOID, own.SQL = last, explainTypes[x.options.Format], s.last.sql
	if last.forward != nil || last.finish != nil {
		text := syntax.Parse(s.last.sql)
		d.deps, d.query, d.forced, d.constants = &plan.Deps{Tables: s.engine.named(text)}, nil, nil, nil
		if len(d.deps.Tables) == 0 { // not any more
			return s.engine.other.fixed
		}
		d.form, d.gate = gateFor(d.deps)
		own.SQL, own.refused = "", pushdown.Plan(text, s.paramOIDs, last.catalog).Refused
	}
	d.explain = &own
	return d
}

// Explain implements Decision.
func (d *decision) Explain() *Explain {
	if d.explain == nil {
		return nil
	}
	return &d.explain.Explain
}

// explainExecution is Execute for an EXPLAIN. An error of it is a Notice, unless nothing is to be said.
func (d *decision) explainExecution(ctx context.Context, tx *Transaction, gate Gate, described []Field, params []vector.Datum) (b *vector.Batch, err error) {
	defer recovered(&b, &err)
	one := *d
	x := *d.explain
	one.explain = &x
	if x.SQL == "" {
		return nil, one.forwardedPlan(gate)
	}
	x.scanned = &olap.Scanned{}
	a, err := one.execute(ctx, tx, gate, described, params)
	if err != nil {
		if f, ok := err.(*plan.Forward); ok && f.Reason != plan.ReasonMode && f.Reason != plan.ReasonPrivilege {
			return nil, one.notice(f)
		}
		return nil, err
	}
	st := &explain.Statement{Planning: x.took}
	o := explain.Options{Verbose: x.options.Verbose, Costs: x.options.Costs, Timing: x.options.Timing, Summary: x.options.Summary, Format: x.options.Format}
	st.Plan = explain.Plan(x.bound, o)
	if x.options.Analyze {
		s, dev := x.scanned, &x.onDevice
		millis := func(ms float64) time.Duration { return time.Duration(ms * 1e6) }
		st.Execution = &explain.Actual{Compile: dev.Compile, Copy: millis(dev.Copy), Compute: millis(dev.Kernel), Copied: dev.BytesCopied,
			Rows: a.batch.Rows, Took: a.took, Device: a.device, Scanned: s.Rows.Load(), Bytes: s.Bytes.Load(),
			Segments: s.Segments.Load(), Skipped: s.Skipped.Load(), Kept: s.Kept.Load(), Indexed: s.Indexed.Load()}
		a.batch.Release()
	}
	rows := st.Rows(o)
	return &vector.Batch{Rows: len(rows), Columns: []vector.Column{{Type: vector.TypeOf(vector.Text), Strs: rows}}}, nil
}

// explainable is compute for an EXPLAIN without ANALYZE: only the moment is waited for.
func (d *decision) explainable(ctx context.Context, g *gateRow) (a answered, err error) {
	in, f := d.statement.engine.snapshot(ctx, d.deps, g)
	if f != nil {
		return a, f
	}
	releaseAll(in)
	return a, nil
}

// forwardedPlan says why what is explained is not answered here, to a role that may read the tables.
func (d *decision) forwardedPlan(gate Gate) error {
	g, err := parseGate(gate, len(d.deps.Tables))
	if err != nil {
		return err
	}
	if g.mode == "off" {
		return forward(plan.ReasonMode, "")
	}
	for i, t := range g.tables {
		if t.oid != d.deps.Tables[i].Meta.OID || !t.allowed {
			return forward(plan.ReasonPrivilege, "")
		}
	}
	return d.notice(d.explain.of.forward)
}

// notice words why the statement is forwarded because of f, or, without, why a part of it is.
func (d *decision) notice(f *plan.Forward) *Notice {
	n := &Notice{Message: "pgaccel forwards this statement to PostgreSQL, whose plan follows"}
	var lines []string
	of := d.explain.of
	if f == nil {
		n.Message = "pgaccel computes a part of this statement, and PostgreSQL the rest; the plan that follows is PostgreSQL's for all of it"
		f = of.left
		star := explain.Plan(of.query, explain.Options{})
		lines = append(lines, "computed here:")
		lines = append(lines, (&explain.Statement{Plan: star}).Rows(explain.Options{Format: "text"})...)
		lines = append(lines, "left to PostgreSQL:")
	}
	if reasons := d.reasons(n); len(reasons) > 0 && reasons[0].Reason == f.Reason {
		for _, r := range reasons {
			lines = append(lines, alsoRefused([]plan.Forward{r}))
		}
	} else {
		n.Position = 0
		one := *f
		one.Position, one.Also = 0, nil
		lines = append(lines, alsoRefused([]plan.Forward{one}))
	}
	n.Detail, n.Hint = strings.Join(lines, "\n"), hints[f.Reason]
	return n
}

// reasons are all refusals of the statement, with their positions in the client's text. The first position is the
// notice's, too.
func (d *decision) reasons(n *Notice) (all []plan.Forward) {
	for i, r := range d.explain.refused {
		f := *r.Forward
		if f.Position, f.Also = 0, nil; r.At >= 0 {
			f.Position = utf8.RuneCountInString(d.explain.before+d.statement.sql[:r.At]) + 1
		}
		if all = append(all, f); i == 0 {
			n.Position = f.Position
		}
	}
	return all
}

// hints say what would help, by reason; of others the detail does.
var hints = map[plan.Reason]string{
	plan.ReasonSmall:       "SET pgaccel.mode = 'force' takes it all the same.",
	plan.ReasonNoTable:     "Only tables that --accelerate names are copied: SELECT * FROM pgaccel.tables.",
	plan.ReasonNotReady:    "It will be taken once its tables are copied: SELECT * FROM pgaccel.tables.",
	plan.ReasonRefused:     "SELECT * FROM pgaccel.tables says why the table is not copied.",
	plan.ReasonChanged:     "It will be taken once the table is copied again: SELECT * FROM pgaccel.tables.",
	plan.ReasonOwnWrites:   "It would be taken before the transaction writes, or after it has ended.",
	plan.ReasonIsolation:   "It would be taken under READ COMMITTED and REPEATABLE READ.",
	plan.ReasonStale:       "It may be taken when it is tried again; pgaccel.max_staleness allows older answers.",
	plan.ReasonTies:        "SET pgaccel.ties = 'any' takes it, or an ORDER BY that leaves no ties.",
	plan.ReasonQueryMemory: "It may be taken when it is tried again, or with more --query-memory.",
	plan.ReasonMemory:      "It would be taken with more --query-memory.",
	plan.ReasonMode:        "SET pgaccel.mode = 'auto'.",
	plan.ReasonSlower:      "PostgreSQL is the faster one; it is tried here again now and then.",
	plan.ReasonDDL:         "It will be taken once the definition is known here: SELECT * FROM pgaccel.tables.",
	plan.ReasonRLS:         "It would be taken for a role that no policy is for.",
	plan.ReasonShadowed:    "It would be taken without the function, operator or cast that somebody has made.",
	plan.ReasonTemp:        "It would be taken with more --temp-limit, or more --query-memory.",
	plan.ReasonTimeout:     "It may be taken with a longer statement_timeout.",
	plan.ReasonServer:      "It will be taken once the stream comes from the session's server; of several databases each has to be configured (databases).",
	plan.ReasonStandby:     "It would be taken where --upstream is a primary.",
	plan.ReasonMismatch:    "A shadow check of such a statement has found a difference: SELECT * FROM pgaccel.queries.",
}
