package advise

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/catalog"
	"pgaccel/olap"
	"pgaccel/plan"
	"pgaccel/pushdown"
	"pgaccel/replica"
	"pgaccel/syntax"
)

// statement is one of pg_stat_statements, and what becomes of it.
type statement struct {
	Query   string  `json:"query"`
	Calls   int64   `json:"calls"`
	TotalMS float64 `json:"total_ms"`
	MeanMS  float64 `json:"mean_ms"`
	Share   float64 `json:"share"` // of the total time of all
	Route   route   `json:"route"`
	// Reasons say why it is not accelerated, wholly.
	Reasons []reason `json:"reasons,omitempty"`
	// Note says what the route supposes, or why it is not known.
	Note   string   `json:"note,omitempty"`
	Tables []string `json:"tables,omitempty"` // that are read here
	// EstimatedMS is the mean time here, and GainMS what all calls would have saved: by the rows of the tables,
	// at rowsPerSecond. Of partial statements it is the most, of others 0.
	EstimatedMS float64 `json:"estimated_ms,omitempty"`
	GainMS      float64 `json:"estimated_gain_ms,omitempty"`

	reads  []*catalog.Table
	rows   int64
	forms  *forms  // once they are known
	hereMS float64 // measured mean here, 0 for none; then EstimatedMS is this
}

// reason is a refusal.
type reason struct {
	Reason   plan.Reason `json:"reason"`
	Detail   string      `json:"detail,omitempty"`
	Position int         `json:"position,omitempty"` // character of the query, from 1; 0 where it is not known
}

// route is who would answer.
type route string

const (
	accelerated route = "accelerated"
	partial     route = "partial"
	forwarded   route = "forwarded"
	unknown     route = "unknown"
)

// What an execution here is supposed to take: what is measured is ten times faster for filters and sums, and some times
// slower for groups that are many.
const (
	rowsPerSecond = 50e6
	gateMS        = 0.5
)

// hiddenText is what pg_stat_statements has in place of other roles' texts.
const hiddenText = "<insufficient privilege>"

// statements are those of pg_stat_statements in this database, by their total time.
type statements struct {
	list    []*statement
	totalMS float64 // of all, those that are not in list included
	count   int64   // of all
	schema  string  // of the extension, quoted
}

// errNoStatements says how to have pg_stat_statements.
func errNoStatements(why string) error {
	return errors.New("--pg-stat-statements: " + why + `; what it takes: shared_preload_libraries = 'pg_stat_statements' (ALTER SYSTEM, and a restart), then CREATE EXTENSION pg_stat_statements in this database, ` +
		`and some time. Without the flag, advice is by the statistics of tables`)
}

// readStatements reads the first top statements by their total time.
func readStatements(ctx context.Context, s *replica.Survey, top int) (*statements, error) {
	var schema, database string
	err := s.Conn.QueryRow(ctx, `SELECT coalesce((SELECT n.nspname::pg_catalog.text FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
		WHERE e.extname = 'pg_stat_statements'), ''), pg_catalog.current_database()`).Scan(&schema, &database)
	if err != nil {
		return nil, err
	}
	if schema == "" {
		return nil, errNoStatements("the extension pg_stat_statements is not in database " + database)
	}
	// toplevel is not there in all versions of the extension; what functions run does not come to pgaccel.
	rows, err := s.Conn.Query(ctx, `WITH s AS (SELECT coalesce(s.query, '') AS query, pg_catalog.sum(s.calls)::pg_catalog.int8 AS calls, pg_catalog.sum(s.total_exec_time)::pg_catalog.float8 AS total
			FROM `+catalog.QuoteIdentifier(schema)+`.pg_stat_statements s WHERE s.dbid = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
			AND coalesce((pg_catalog.to_jsonb(s)->>'toplevel')::pg_catalog.bool, true) GROUP BY 1)
		SELECT s.query, s.calls, s.total, pg_catalog.sum(s.total) OVER (), pg_catalog.count(*) OVER () FROM s ORDER BY s.total DESC, s.query LIMIT $1`, top)
	var refused *pgconn.PgError
	all := &statements{schema: catalog.QuoteIdentifier(schema)}
	if err == nil {
		var one statement
		_, err = pgx.ForEachRow(rows, []any{&one.Query, &one.Calls, &one.TotalMS, &all.totalMS, &all.count}, func() error {
			st := one
			all.list = append(all.list, &st)
			return nil
		})
	}
	if errors.As(err, &refused) && refused.Code == "42501" { // insufficient_privilege
		return nil, fmt.Errorf("--pg-stat-statements: %s; what it takes: GRANT USAGE ON SCHEMA %[2]s TO %[3]s; GRANT SELECT ON %[2]s.pg_stat_statements TO %[3]s", refused.Message, catalog.QuoteIfNeeded(schema), catalog.QuoteIdentifier(s.Role))
	} else if errors.As(err, &refused) {
		return nil, errNoStatements("the server refuses: " + refused.Message)
	} else if err != nil {
		return nil, err
	}
	for _, st := range all.list {
		st.MeanMS = st.TotalMS / float64(max(st.Calls, 1))
		if all.totalMS > 0 {
			st.Share = st.TotalMS / all.totalMS
		}
	}
	return all, nil
}

// decide says who would answer each statement, by the catalog as it would be.
func (all *statements) decide(ctx context.Context, s *replica.Survey, cat *catalog.Catalog) error {
	return s.Under(ctx, func() error {
		for _, st := range all.list {
			if err := st.decide(ctx, s, cat); err != nil {
				return err
			}
		}
		return nil
	})
}

func (st *statement) decide(ctx context.Context, s *replica.Survey, cat *catalog.Catalog) error {
	st.Route = unknown
	switch st.Query {
	case hiddenText:
		st.Note = "texts of other roles, which pg_read_all_stats may see: GRANT pg_read_all_stats TO " + catalog.QuoteIdentifier(s.Role)
		return nil
	case "":
		st.Note = "pg_stat_statements has lost the text"
		return nil
	}
	text := syntax.Parse(st.Query)
	switch sel, _ := text.Select(); {
	case !hasParams(st.Query) && unparsable(text):
		st.Note = "cannot be parsed: the text may be cut off"
		return nil
	case !hasParams(st.Query), sel == nil && !unparsable(text) && text.Written() == nil: // what is no SELECT is none whatever its constants are
		st.take(planned(text, nil, cat), text)
		return nil
	}
	if st.forms == nil {
		f, err := formsOf(ctx, s, st.Query)
		if err != nil {
			return err
		}
		st.forms = &f
	}
	f := st.forms
	if f.problem != "" {
		st.Note = f.problem
		return nil
	}
	var best outcome
	if f.params != "" {
		text = syntax.Parse(f.params)
		best = planned(text, f.types, cat)
		st.take(best, text)
	}
	if best.route == accelerated {
		return nil
	}
	text = syntax.Parse(f.constants)
	if other := planned(text, nil, cat); other.better(best) {
		st.take(other, nil)
		if f.replaced {
			st.Note = "with constants in place of $n"
		}
	}
	return nil
}

// unparsable reports whether a text has no tree.
func unparsable(text *syntax.Text) bool {
	sel, other := text.Select()
	return sel == nil && other != "" && !strings.HasSuffix(other, " statements")
}

// outcome is what planning comes to.
type outcome struct {
	route   route
	refused []pushdown.Refusal
	tables  []plan.Table
	star    *plan.Star
}

var routeRanks = map[route]int{accelerated: 4, partial: 3, forwarded: 2, unknown: 1}

// better reports whether a is nearer to be accelerated than b, which may be none.
func (a outcome) better(b outcome) bool { return routeRanks[a.route] > routeRanks[b.route] }

// planned decides as package engine does, were all tables copied.
func planned(text *syntax.Text, types []uint32, cat *catalog.Catalog) outcome {
	text = rowsOf(text)
	p := pushdown.Plan(text, types, cat)
	if p.Forward == nil {
		o := outcome{route: accelerated, tables: p.Deps.Tables, star: p.Star}
		f := olap.Supports(p.Star)
		if f == nil {
			f = p.Small
		}
		if f != nil {
			o.route, o.refused = forwarded, []pushdown.Refusal{{Forward: f, At: -1}}
		}
		return o
	}
	o := outcome{route: forwarded, refused: p.Refused}
	if !p.Finishable(text) {
		return o
	}
	core, finish := pushdown.PlanFinish(text, types, cat)
	// Who orders rows by a key that has ties leaves them to the server; that is looked at when it is executed.
	if finish == nil || olap.Supports(core.Star) != nil || core.Small != nil || finish.Ordered && len(core.Star.Order) == 0 {
		return o
	}
	o.route, o.tables, o.star = partial, core.Deps.Tables, core.Star
	return o
}

// rowsOf is the SELECT of a COPY or a cursor, or the text itself.
func rowsOf(text *syntax.Text) *syntax.Text {
	if c, rows := text.Copy(); c != nil && rows != nil {
		return rows
	}
	if c, rows := text.Cursor(); c != nil && rows != nil {
		return rows
	}
	return text
}

// take notes an outcome. text is the one that it is of, nil where positions in it are none of the query.
func (st *statement) take(o outcome, text *syntax.Text) {
	st.Route, st.Reasons, st.Tables, st.reads, st.rows = o.route, nil, nil, nil, 0
	for _, r := range o.refused {
		one := reason{Reason: r.Forward.Reason, Detail: strings.TrimSuffix(r.Forward.Detail, pushdown.ForceTakesIt)}
		if text != nil && text.SQL == st.Query && r.At >= 0 && r.At <= len(st.Query) {
			one.Position = utf8.RuneCountInString(st.Query[:r.At]) + 1
		}
		st.Reasons = append(st.Reasons, one)
	}
	for _, t := range o.tables {
		if !slices.Contains(st.reads, t.Meta) {
			st.reads = append(st.reads, t.Meta)
			st.Tables = append(st.Tables, t.Meta.QualifiedName())
		}
	}
	st.EstimatedMS, st.GainMS = 0, 0
	if o.star == nil || o.route != accelerated && o.route != partial {
		return
	}
	o.star.Walk(func(s *plan.Star) {
		for i := range s.Tables {
			if t := &s.Tables[i]; t.Relation == nil {
				st.rows += t.Meta.Rows
			}
		}
	})
	if st.EstimatedMS = st.hereMS; st.EstimatedMS == 0 {
		st.EstimatedMS = gateMS + float64(st.rows)/rowsPerSecond*1000
	}
	st.GainMS = max(0, st.MeanMS-st.EstimatedMS) * float64(st.Calls)
}

// String words a reason.
func (r reason) String() string {
	text := string(r.Reason)
	if r.Detail != "" {
		text += ": " + r.Detail
	}
	if r.Position > 0 {
		text += fmt.Sprintf(" (at character %d)", r.Position)
	}
	return text
}
