package pushdown

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/catalog"
	"pgaccel/internal/oracle"
	"pgaccel/internal/pgserver"
	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/syntax"
	"pgaccel/vector"
	"pgaccel/wire"
)

// server is a real PostgreSQL with the tests' tables and rows.
type server struct {
	conn *pgx.Conn
	cat  *catalog.Catalog
	rows map[uint32][][]vector.Datum // of each table, by OID

	compared int // trees whose rows were compared with the server's
}

// startPostgres starts a server for the test and connects to it.
func startPostgres(t *testing.T) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	pgs, err := pgserver.Start(ctx, pgserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pgs.Stop)
	conn, err := pgx.Connect(ctx, pgs.URL("postgres", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(ctx) })
	return conn
}

func startServer(t *testing.T) *server {
	t.Helper()
	conn := startPostgres(t)
	s := &server{conn: conn, cat: testCatalog(t), rows: map[uint32][][]vector.Datum{}}
	data, err := os.ReadFile("testdata/data.sql")
	if err != nil {
		t.Fatal(err)
	}
	_, every := everyType()
	s.exec(t, schemaText(t)+string(data)+every+callsFunction)
	for _, tab := range s.cat.Tables {
		s.rows[tab.OID] = s.load(t, tab)
	}
	return s
}

func (s *server) exec(t *testing.T, sql string) [][][]byte {
	t.Helper()
	res, err := s.conn.PgConn().Exec(context.Background(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s\n%v", sql, err)
	}
	return res[len(res)-1].Rows
}

// load reads a table as the store would hold it.
func (s *server) load(t *testing.T, tab *catalog.Table) [][]vector.Datum {
	var out [][]vector.Datum
	for _, row := range s.exec(t, "SELECT * FROM "+catalog.QuoteIdentifier(tab.Name)) {
		r := make([]vector.Datum, len(row))
		for i, text := range row {
			typ := tab.Columns[i].Type
			switch {
			case typ.Kind == vector.Invalid:
			case text == nil:
				r[i] = vector.Null(typ)
			case typ.Kind == vector.Numeric:
				d, ok := vector.ParseDecimal(string(text))
				if !ok || d.Scale != typ.Scale {
					t.Fatalf("%s.%s: %s", tab.Name, tab.Columns[i].Name, text)
				}
				n, _ := d.Unscaled.Int64()
				r[i] = vector.Datum{Type: typ, I: n}
			default:
				d, ok := sqltype.Of(typ.Kind).Parse(string(text))
				if !ok {
					t.Fatalf("%s.%s: %s", tab.Name, tab.Columns[i].Name, text)
				}
				d.Type = typ
				r[i] = d
			}
		}
		out = append(out, r)
	}
	return out
}

// compare makes a tree of sql, and where there is one compares types and values with what the
// server says. It returns whether there is a tree, and whether it is planned.
func (s *server) compare(t *testing.T, sql string) (bound, planned bool) {
	t.Helper()
	ctx := context.Background()
	st := Plan(syntax.Parse(sql), nil, s.cat)
	desc, err := s.conn.PgConn().Prepare(ctx, "", sql, nil)
	if err != nil {
		var pgErr *pgconn.PgError
		if !errors.As(err, &pgErr) {
			t.Fatal(err)
		}
		if pgErr.Code == "42601" && (st.Forward == nil || st.Forward.Reason != plan.ReasonNotSelect) && !strings.Contains(pgErr.Message, "SELECT") {
			t.Errorf("%s\nsyntax error in PostgreSQL (%s), but: %s", sql, pgErr.Message, formatStatement(st))
		}
		if st.Star != nil {
			t.Errorf("%s\nrefused by PostgreSQL (%s), but planned:\n%s", sql, pgErr.Message, formatStatement(st))
		}
		return false, false
	}
	if st.Forward != nil && st.Forward.Reason == plan.ReasonNotSelect && strings.HasPrefix(strings.ToUpper(sql), "SELECT") && !strings.Contains(sql, "INTO") {
		t.Errorf("%s\naccepted by PostgreSQL, but: %s", sql, formatStatement(st))
	}
	if st.Tree == nil {
		return false, false
	}
	planned = st.Star != nil
	outputs := st.Tree.Exprs
	if len(desc.Fields) != len(outputs) {
		t.Errorf("%s\n%d output columns, PostgreSQL has %d", sql, len(outputs), len(desc.Fields))
		return true, planned
	}
	for i, f := range desc.Fields {
		if of := outputs[i].Type(); sqltype.OIDOf(of) != f.DataTypeOID {
			t.Errorf("%s\ncolumn %d is %s, type OID %d in PostgreSQL", sql, i+1, of.Kind, f.DataTypeOID)
			return true, planned
		}
	}
	for i, oid := range desc.ParamOIDs {
		k := st.Deps.Params[i].Kind
		if k == vector.Invalid && len(st.Deps.ServerParams) > i && st.Deps.ServerParams[i] == oid {
			continue // the server alone reads it
		}
		if sqltype.OID(k) != oid {
			t.Errorf("%s\n$%d is %s, type OID %d in PostgreSQL", sql, i+1, k, oid)
		}
	}
	if planned {
		s.wantCalls(t, sql, desc.ParamOIDs, st)
	}
	if len(desc.ParamOIDs) == 0 {
		s.compareValues(t, sql, st)
	}
	return true, planned
}

// compareValues runs the text with the server, and with the oracle the tree and the star that is
// made of it.
func (s *server) compareValues(t *testing.T, sql string, st Statement) {
	t.Helper()
	if st.Forward != nil && strings.HasPrefix(st.Forward.Detail, "ORDER BY a key of grouping sets") {
		return // in an order that depends on the server's version (setorder.go)
	}
	if len(st.Deps.ServerConsts) > 0 {
		s.exec(t, "BEGIN")
		defer s.exec(t, "ROLLBACK")
		values := s.serverConsts(t, sql, st.Deps.ServerConsts)
		res := s.conn.PgConn().ExecParams(context.Background(), sql, nil, nil, nil, nil).Read()
		if values != nil && st.Star != nil {
			s.compareTree(t, sql, res, st.Star.Bind(nil, values, plan.Rules{}).Tree(), st.Deps.Tables)
		}
		return
	}
	res := s.conn.PgConn().ExecParams(context.Background(), sql, nil, nil, nil, nil).Read()
	s.compareTree(t, sql, res, st.Tree, st.Deps.Tables)
	if st.Star != nil {
		s.compareTree(t, sql, res, st.Star.Tree(), st.Deps.Tables)
	}
}

// serverConsts asks the server for constants; nil where one of them is an error.
func (s *server) serverConsts(t *testing.T, sql string, list []plan.ServerConst) (values []vector.Datum) {
	t.Helper()
	for _, c := range list {
		s.exec(t, "SAVEPOINT constant")
		res := s.conn.PgConn().ExecParams(context.Background(), "SELECT "+c.SQL, nil, nil, nil, []int16{1}).Read()
		if res.Err != nil {
			t.Logf("%s\n%s: %v", sql, c.SQL, res.Err)
			s.exec(t, "ROLLBACK TO constant")
			return nil
		}
		d, err := wire.DecodeParam(res.FieldDescriptions[0].DataTypeOID, wire.FormatBinary, res.Rows[0][0])
		if err != nil || d.Type.Kind != c.T.Kind {
			t.Errorf("%s\n%s is %v, planned %v: %v", sql, c.SQL, d.Type, c.T, err)
			return nil
		}
		if c.T.Kind == vector.Numeric && !c.T.Varying() {
			if n, ok := d.Decimal().Unscaled.Int64(); !ok || d.Decimal().Scale != c.T.Scale {
				t.Errorf("%s\n%s has other decimals than planned: %v", sql, c.SQL, d.Decimal())
			} else {
				d.I, d.Num = n, vector.Decimal{}
			}
		}
		d.Type = c.T
		values = append(values, d)
	}
	return values
}

func (s *server) compareTree(t *testing.T, sql string, res *pgconn.Result, tree *plan.Project, tables []plan.Table) {
	t.Helper()
	batch, err := oracle.Run(tree, func(i int) [][]vector.Datum { return s.rows[tables[i].Meta.OID] }, nil)
	if err != nil {
		var f *plan.Forward
		if !errors.As(err, &f) {
			t.Errorf("%s\noracle: %v", sql, err)
		}
		if res.Err == nil && f.Reason != plan.ReasonTies {
			t.Logf("%s\nnot evaluated: %v", sql, err)
		}
		return
	}
	if res.Err != nil {
		t.Errorf("%s\nfails in PostgreSQL (%v), but was evaluated", sql, res.Err)
		return
	}
	s.compared++
	// Rows that the order leaves equal may come in any order.
	rounded := make([]bool, len(tree.Exprs))
	for i, e := range tree.Exprs {
		rounded[i] = addsFloats(tree, e)
	}
	by := map[int]bool{}
	order := orderOf(tree)
	for i, e := range tree.Exprs {
		if slices.ContainsFunc(order, func(o plan.Order) bool { return newInterner().same(o.Expr, e) }) {
			by[i] = true
		}
	}
	keysShown := len(by) > 0 && len(by) == len(order)
	var want, got, wantOrder, gotOrder []string
	keys := func(cells []string) string {
		var k []string
		for i, c := range cells {
			if by[i] {
				k = append(k, c)
			}
		}
		return strings.Join(k, "|")
	}
	for _, row := range res.Rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = "null"
			if c != nil {
				cells[i] = canonical(string(c), tree.Exprs[i].Type().Kind)
				if rounded[i] {
					cells[i] = roundFloat(cells[i])
				}
			}
		}
		want, wantOrder = append(want, strings.Join(cells, "|")), append(wantOrder, keys(cells))
	}
	for r := range batch.Rows {
		cells := make([]string, len(batch.Columns))
		for i := range batch.Columns {
			if cells[i] = cell(&batch.Columns[i], r); rounded[i] {
				cells[i] = roundFloat(cells[i])
			}
		}
		got, gotOrder = append(got, strings.Join(cells, "|")), append(gotOrder, keys(cells))
	}
	if keysShown && !slices.Equal(wantOrder, gotOrder) {
		t.Errorf("%s\nin another order\n%s", sql, plan.Format(tree, tables))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		for i := range max(len(want), len(got)) {
			w, g := "nothing", "nothing"
			if i < len(want) {
				w = want[i]
			}
			if i < len(got) {
				g = got[i]
			}
			if w != g {
				t.Errorf("%s\nrow %d: got %s, PostgreSQL %s\n%s", sql, i, g, w, plan.Format(tree, tables))
				return
			}
		}
	}
}

// tableQueries call every aggregate that takes one argument over every column of orders that it
// takes.
func tableQueries(cat *catalog.Catalog) (sqls []string) {
	orders := cat.Tables[slices.IndexFunc(cat.Tables, func(t *catalog.Table) bool { return t.Name == "orders" })]
	for _, a := range sqlfn.Aggregates {
		if a.Star || a.OrderedSet() {
			continue
		}
		for _, c := range orders.Columns {
			if c.Unsupported != "" || a.Result(c.Type).Kind == vector.Invalid {
				continue
			}
			for _, name := range a.Names {
				sqls = append(sqls,
					fmt.Sprintf("SELECT shop_id, %s(%s) FROM orders GROUP BY 1", name, c.Name),
					fmt.Sprintf("SELECT %s(DISTINCT %s) FILTER (WHERE qty > 5) FROM orders", name, c.Name))
			}
		}
	}
	return sqls
}

// orderOf returns the order of a tree's rows.
func orderOf(tree *plan.Project) []plan.Order {
	in := tree.Input
	if l, ok := in.(*plan.Limit); ok {
		in = l.Input
	}
	if o, ok := in.(*plan.Sort); ok {
		return o.By
	}
	return nil
}

// addsFloats reports whether a value depends on a sum of floats, whose last digits depend in
// PostgreSQL on the order of rows.
func addsFloats(tree *plan.Project, e plan.Expr) (adds bool) {
	sums := map[int][]plan.AggregateCall{}
	any := false // of some aggregation
	plan.WalkRel(tree, func(r plan.Rel) bool {
		if a, ok := r.(*plan.Aggregate); ok {
			sums[a.Number] = a.Aggs
			any = any || slices.ContainsFunc(a.Aggs, func(g plan.AggregateCall) bool { return g.AddsFloats() })
		}
		return true
	})
	plan.Walk(e, func(x plan.Expr) bool {
		switch x := x.(type) {
		case plan.Agg:
			adds = adds || sums[x.Of][x.Index].AddsFloats() || any && len(sums) > 1
		case plan.Output:
			adds = adds || any
		}
		return !adds
	})
	return adds && e.Type().Kind.IsFloat()
}

// roundFloat keeps ten digits of a float, and nothing of what rounding leaves of zero.
func roundFloat(s string) string {
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil:
		return s
	case f != 0 && math.Abs(f) < 1e-12:
		f = 0
	}
	return strconv.FormatFloat(f, 'g', 10, 64)
}

// canonical brings PostgreSQL's text to a form that cell writes too; only floats
// need it.
func canonical(text string, k vector.Kind) string {
	if k.IsFloat() {
		size := 64
		if k == vector.Float4 {
			size = 32
		}
		f, err := strconv.ParseFloat(text, size)
		if err == nil {
			return fmt.Sprint(f)
		}
	}
	return text
}

func cell(c *vector.Column, r int) string {
	if r>>6 < len(c.Nulls) && c.IsNull(r) {
		return "null"
	}
	switch k := c.Type.Kind; {
	case k.HeldAsText():
		return c.Strs[r]
	case k.IsString():
		return sqltype.Text(vector.Datum{Type: c.Type, Str: c.Strs[r]})
	case k == vector.Numeric:
		return c.Decimals[r].String()
	case k.IsFloat():
		return fmt.Sprint(math.Float64frombits(uint64(c.Ints[r])))
	}
	return string(sqltype.Of(c.Type.Kind).AppendText(nil, c.Ints[r]))
}

// corpus returns the lines of a file without comments.
func corpus(t *testing.T, name string) []string {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(string(text), "\n"), func(l string) bool { return l == "" || strings.HasPrefix(l, "--") })
}

// TestAgainstPostgres compares every plan that is made of the corpus with a real
// server: result types and parameter types with its Describe, the answer (as the
// oracle computes it from the plan) with its answer.
func TestAgainstPostgres(t *testing.T) {
	s := startServer(t)
	count := func(t *testing.T, atLeast int, sqls []string) {
		t.Helper()
		trees, planned := 0, 0
		for _, sql := range sqls {
			bound, taken := s.compare(t, sql)
			if bound {
				trees++
			}
			if taken {
				planned++
			}
		}
		t.Logf("%d of %d statements planned, %d have a tree", planned, len(sqls), trees)
		if planned < atLeast {
			t.Errorf("only %d of %d statements planned, at least %d were once", planned, len(sqls), atLeast)
		}
	}
	t.Run("expressions", func(t *testing.T) {
		var sqls []string
		for _, e := range corpus(t, "testdata/expressions.sql") {
			sqls = append(sqls, "SELECT id, "+e+" FROM orders")
		}
		count(t, 350, sqls)
	})
	t.Run("grouped by expressions", func(t *testing.T) {
		var sqls []string
		for _, e := range corpus(t, "testdata/expressions.sql") {
			if !strings.Contains(e, "1e30") { // a constant would be an ordinal
				sqls = append(sqls, "SELECT ("+e+") AS g, count(*) FROM orders WHERE qty > 0 GROUP BY g")
			}
		}
		count(t, 350, sqls)
	})
	t.Run("conditions", func(t *testing.T) {
		var conds []string
		for _, e := range corpus(t, "testdata/expressions.sql") {
			if st := Plan(syntax.Parse("SELECT "+e+" FROM orders"), nil, s.cat); st.Star != nil && st.Star.Output[0].Type().Kind == vector.Bool {
				conds = append(conds, e)
			}
		}
		r := rand.New(rand.NewPCG(1, 2))
		pick := func() string { return conds[r.IntN(len(conds))] }
		forms := []string{"(%s) AND (%s)", "(%s) OR (%s)", "NOT (%s) AND (%s)", "NOT ((%s) OR (%s))", "(%s) = (%s)",
			"CASE WHEN %s THEN %s END", "((%s) IS TRUE) <> ((%s) IS NULL)"}
		var sqls []string
		for range 600 {
			sqls = append(sqls, "SELECT count(*), sum(qty) FROM orders WHERE "+fmt.Sprintf(forms[r.IntN(len(forms))], pick(), pick()))
		}
		count(t, 500, sqls)
	})
	t.Run("aggregates", func(t *testing.T) {
		var sqls []string
		for _, e := range corpus(t, "testdata/aggregates.sql") {
			sqls = append(sqls,
				"SELECT "+e+" FROM orders",
				"SELECT shop_id, "+e+" AS x FROM orders GROUP BY shop_id",
				"SELECT "+e+" FROM orders WHERE qty > 1000",
				"SELECT o.shop_id, "+e+" FROM orders o WHERE paid OR qty < 0 GROUP BY 1 ORDER BY 1")
		}
		table := tableQueries(s.cat)
		count(t, 676+len(table), append(sqls, table...))
	})
	t.Run("aggregates of floats", func(t *testing.T) {
		var sqls []string
		for _, e := range corpus(t, "testdata/floats.sql") {
			sqls = append(sqls,
				"SELECT "+e+" FROM floats WHERE g < 4",
				"SELECT "+e+" FROM floats WHERE g > 99",
				"SELECT g, "+e+" FROM floats WHERE g <= 2 GROUP BY ROLLUP (g)",
				"SELECT g, "+e+" AS x FROM floats WHERE g < 8 OR g > 11 GROUP BY g")
			// By itself, because one that cannot be computed forwards all.
			for g := 3; g <= 14; g++ {
				sqls = append(sqls, fmt.Sprintf("SELECT %s FROM floats WHERE g = %d", e, g))
			}
		}
		count(t, 560, sqls)
	})
	t.Run("grouping sets", func(t *testing.T) {
		count(t, 250, setQueries())
	})
	t.Run("parameters", func(t *testing.T) {
		count(t, 41, corpus(t, "testdata/parameters.sql"))
	})
	for name, atLeast := range map[string]int{"testdata/select.txt": 59, "testdata/joins.txt": 35, "testdata/sets.txt": 44, "testdata/ssb.txt": 13, "testdata/bi.txt": 17, "testdata/jsonb.txt": 20} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var sqls []string
			for _, block := range strings.Split(string(text), "\n\n") {
				if sql, _, ok := strings.Cut(block, "\n----"); ok {
					sqls = append(sqls, sql)
				}
			}
			count(t, atLeast, sqls)
		})
	}
	t.Run("trees", func(t *testing.T) {
		files, _ := filepath.Glob("testdata/trees/*.txt")
		trees := 0
		s.compared = 0
		for _, name := range files {
			for _, block := range strings.Split(readText(t, name), "\n\n") {
				sql, want, ok := strings.Cut(block, "\n----")
				if !ok {
					continue
				}
				bound, _ := s.compare(t, sql)
				if bound != strings.Contains(want, "\nproject") {
					t.Errorf("%s: has a tree: %t", sql, bound)
				}
				if bound {
					trees++
				}
			}
		}
		t.Logf("%d trees, %d compared, stars included", trees, s.compared)
		if s.compared < trees {
			t.Errorf("%d trees, %d compared", trees, s.compared)
		}
	})
}
