package pushdown

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgaccel/internal/events"
	"pgaccel/plan"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// setQueries returns queries with grouping sets of every form, nested as far as the
// grammar goes; the same each time.
func setQueries() []string {
	r := rand.New(rand.NewPCG(9, 14))
	keys := []string{"kind", "paid", "shop_id", "day", "flag", "qty % 3", "extract(year FROM at)", "coalesce(status, 'none')"}
	key := func() string { return keys[r.IntN(len(keys))] }
	list := func(n int, f func() string) string {
		out := make([]string, 1+r.IntN(n))
		for i := range out {
			out[i] = f()
		}
		return strings.Join(out, ", ")
	}
	composite := func() string {
		if r.IntN(3) == 0 {
			return "(" + key() + ", " + list(2, key) + ")"
		}
		return key()
	}
	var item func(depth int) string
	item = func(depth int) string {
		switch n := r.IntN(8); {
		case n < 2:
			return "ROLLUP (" + list(3, composite) + ")"
		case n < 3:
			return "CUBE (" + list(3, composite) + ")"
		case n < 5 && depth > 0:
			return "GROUPING SETS (" + list(3, func() string { return item(depth - 1) }) + ")"
		case n < 6:
			return "()"
		}
		return composite()
	}
	aggregates := []string{"count(*)", "sum(amount)", "count(DISTINCT customer_id)", "var_pop(qty)", "avg(rate)",
		"percentile_disc(0.4) WITHIN GROUP (ORDER BY day)", "percentile_cont(0.4) WITHIN GROUP (ORDER BY qty)", "max(kind)"}
	var out []string
	for range 250 {
		groupBy := list(2, func() string { return item(2) })
		var shown []string
		for _, k := range keys {
			if strings.Contains(groupBy, k) {
				shown = append(shown, k, "grouping("+k+")")
			}
		}
		shown = append(shown, aggregates[r.IntN(len(aggregates))])
		where := []string{"", " WHERE qty > 25", " WHERE qty > 1000"}[r.IntN(3)]
		distinct := []string{"", "", "DISTINCT "}[r.IntN(3)]
		out = append(out, fmt.Sprintf("SELECT %s FROM orders%s GROUP BY %s%s", strings.Join(shown, ", "), where, distinct, groupBy))
	}
	return out
}

// TestEvents plans the 20 queries of business intelligence tools, and compares their
// answers over a small table with a server's.
func TestEvents(t *testing.T) {
	const rows = 10_000
	cat := testCatalog(t)
	for _, q := range events.Queries(10_000_000) {
		st := Plan(syntax.Parse(q.SQL), nil, cat)
		if st.Forward != nil || st.Small != nil {
			t.Errorf("%s: %s", q.Name, formatStatement(st))
			continue
		}
		checkPlan(t, st)
		// The bounds are timestamptz with a zone: only truncation and fields depend on the session's.
		if dependent := strings.Contains(q.SQL, "date_trunc") || strings.Contains(q.SQL, "extract"); st.Deps.SessionZone != dependent || st.Deps.NeedsUTC {
			t.Errorf("%s: the session's zone: %v, UTC: %v", q.Name, st.Deps.SessionZone, st.Deps.NeedsUTC)
		}
	}
	s := startServer(t)
	var data bytes.Buffer
	if err := events.Generate(t.Context(), rows, &data); err != nil {
		t.Fatal(err)
	}
	if _, err := s.conn.PgConn().CopyFrom(context.Background(), &data, "COPY events FROM STDIN"); err != nil {
		t.Fatal(err)
	}
	tab := s.cat.Lookup("", "events")[0]
	s.rows[tab.OID] = s.load(t, tab)
	if n := len(s.rows[tab.OID]); n != rows {
		t.Fatalf("%d rows", n)
	}
	for _, q := range events.Queries(rows) {
		if _, planned := s.compare(t, q.SQL); !planned {
			t.Errorf("%s is not planned", q.Name)
		}
	}
}

// TestManyDrivesTheLarger: of two tables that no unique key joins the larger one drives.
func TestManyDrivesTheLarger(t *testing.T) {
	cat := testCatalog(t)
	h := cat.Lookup("", "hierarchy")[0]
	sql := "SELECT h.parent, sum(o.amount * h.weight) FROM orders o JOIN hierarchy h ON o.shop_id = h.child GROUP BY h.parent"
	for _, c := range []struct {
		rows   int64
		drives string
	}{{20000, "orders"}, {60_000_000, "hierarchy"}} {
		h.Rows = c.rows
		q := Plan(syntax.Parse(sql), nil, cat).Star
		if q == nil || q.Tables[0].Meta.Name != c.drives || !q.Joins[0].Many || len(q.Filter) != 0 {
			t.Errorf("hierarchy of %d rows: %+v", c.rows, q)
		}
	}
}

// TestNewFunctionsAreNamed: the gate must learn of every function that is called
// without a schema; GROUPING is syntax.
func TestNewFunctionsAreNamed(t *testing.T) {
	cat := testCatalog(t)
	for sql, want := range map[string]string{
		"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY qty), percentile_disc(0.5) WITHIN GROUP (ORDER BY qty) FROM orders": "[percentile_cont percentile_disc]",
		"SELECT stddev(qty), variance(qty), count(DISTINCT qty), var_pop(qty) FROM orders":                                      "[count stddev var_pop variance]",
		"SELECT grouping(kind), pg_catalog.stddev_samp(qty) FROM orders GROUP BY ROLLUP (kind)":                                 "[]",
	} {
		st := Plan(syntax.Parse(sql), nil, cat)
		if st.Star == nil || fmt.Sprint(st.Deps.Functions) != want {
			t.Errorf("%s: %s", sql, formatStatement(st))
		}
	}
	shadowed := *cat
	shadowed.Shadowed = map[string]bool{"percentile_disc": true, "stddev": true, "grouping": true}
	for sql, want := range map[string]plan.Reason{
		"SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY qty) FROM orders": plan.ReasonShadowed,
		"SELECT stddev(qty) FROM orders":                                      plan.ReasonShadowed,
		"SELECT grouping(kind) FROM orders GROUP BY ROLLUP (kind)":            "",
	} {
		st := Plan(syntax.Parse(sql), nil, &shadowed)
		if got := forwardReason(st); got != want {
			t.Errorf("%s: %q", sql, got)
		}
	}
}

func forwardReason(st Statement) plan.Reason {
	if st.Forward == nil {
		return ""
	}
	return st.Forward.Reason
}

// TestSetLimits: what PostgreSQL refuses, or a plan cannot hold, is forwarded.
func TestSetLimits(t *testing.T) {
	cat := testCatalog(t)
	columns := make([]string, 70)
	for i := range columns {
		columns[i] = fmt.Sprintf("qty + %d", i)
	}
	f := func(groupBy string, sets int) {
		t.Helper()
		st := Plan(syntax.Parse("SELECT count(*) FROM orders GROUP BY "+groupBy), nil, cat)
		if sets == 0 {
			if forwardReason(st) != plan.ReasonShape {
				t.Errorf("GROUP BY %.60s...: %.200s", groupBy, formatStatement(st))
			}
			return
		}
		if st.Star == nil || len(st.Star.Sets) != sets {
			t.Errorf("GROUP BY %.60s...: %.200s", groupBy, formatStatement(st))
			return
		}
		checkPlan(t, st)
	}
	f("ROLLUP ("+strings.Join(columns[:64], ", ")+")", 65)
	f("ROLLUP ("+strings.Join(columns[:65], ", ")+")", 0)
	f("CUBE ("+strings.Join(columns[:12], ", ")+")", 4096)
	f("CUBE ("+strings.Join(columns[:12], ", ")+"), ROLLUP (kind)", 0)
	f("CUBE ("+strings.Join(columns[:13], ", ")+")", 0)
	f("DISTINCT CUBE ("+strings.Join(columns[:5], ", ")+"), CUBE ("+strings.Join(columns[:5], ", ")+")", 32)
	f("ROLLUP (kind), kind", 2)
	f("id, ROLLUP (kind)", 2)
	st := Plan(syntax.Parse("SELECT "+strings.Join(columns[:66], ", ")+", count(*) FROM orders GROUP BY "+strings.Join(columns[:66], ", ")), nil, cat)
	if st.Star == nil || st.Star.Sets != nil || len(st.Star.Group) != 66 || st.Star.Group[0].Type().Kind != vector.Int4 {
		t.Errorf("a plain GROUP BY has no limit: %.200s", formatStatement(st))
	}
}
