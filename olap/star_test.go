package olap

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/internal/oracle"
	"pgaccel/plan"
	"pgaccel/vector"
)

// star is data of the Star Schema Benchmark's shape: the columns that its queries
// read, with the benchmark's cardinalities and value ranges.
type star struct {
	metas  []*catalog.Table // lineorder, dates, customer, supplier, part
	tables []*colstore.Table
	rows   [][][]vector.Datum // where kept
}

const (
	lineorder = iota
	dates
	customer
	supplier
	parts
)

var varcharC = textType(vector.Varchar, collC, -1)

func columns(names ...string) (out []catalog.Column) {
	for _, n := range names {
		t := vector.TypeOf(vector.Int4)
		if n[0] == '$' {
			n, t = n[1:], varcharC
		}
		out = append(out, catalog.Column{Name: n, Type: t, NotNull: true})
	}
	return out
}

var nations = []string{"ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "EGYPT", "ETHIOPIA", "FRANCE", "GERMANY", "INDIA", "INDONESIA", "IRAN", "IRAQ", "JAPAN",
	"JORDAN", "KENYA", "MOROCCO", "MOZAMBIQUE", "PERU", "CHINA", "ROMANIA", "SAUDI ARABIA", "VIETNAM", "RUSSIA", "UNITED KINGDOM", "UNITED STATES"}

var regionOf = []int{0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1}

var regions = []string{"AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"}

// newStar builds n rows of lineorder and dimensions of the given sizes.
func newStar(t testing.TB, n, customers, suppliers, partCount, segment int, keep bool) *star {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	s := &star{}
	store := newStore(t, segment)
	add := func(name string, cols []catalog.Column, count int, row func(i int) []any) {
		meta := &catalog.Table{OID: uint32(len(s.metas) + 1), Schema: "public", Name: name, Columns: cols, Indexes: []catalog.Index{{Columns: []int{0}, Unique: true}}}
		l := store.NewLoader(meta)
		w := l.NewWriter()
		var kept [][]vector.Datum
		for i := range count {
			var datums []vector.Datum
			for c, v := range row(i) {
				switch v := v.(type) {
				case int:
					w.Int(c, int64(v))
					datums = append(datums, vector.Datum{Type: cols[c].Type, I: int64(v)})
				case string:
					w.Text(c, []byte(v))
					datums = append(datums, vector.Datum{Type: cols[c].Type, Str: v})
				}
			}
			if err := w.EndRow(); err != nil {
				t.Fatal(err)
			}
			if keep {
				kept = append(kept, datums)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		table, err := l.Finish()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(table.Release)
		s.metas, s.tables, s.rows = append(s.metas, meta), append(s.tables, table), append(s.rows, kept)
	}
	var days []int
	for d := time.Date(1992, 1, 1, 0, 0, 0, 0, time.UTC); d.Year() < 1999; d = d.AddDate(0, 0, 1) {
		days = append(days, d.Year()*10000+int(d.Month())*100+d.Day())
	}
	add("lineorder", columns("lo_orderkey", "lo_custkey", "lo_partkey", "lo_suppkey", "lo_orderdate", "lo_quantity", "lo_extendedprice", "lo_discount", "lo_revenue", "lo_supplycost"), n,
		func(i int) []any {
			q, p, d := 1+r.IntN(50), 90000+r.IntN(120000), r.IntN(11)
			return []any{i, 1 + r.IntN(customers), 1 + r.IntN(partCount), 1 + r.IntN(suppliers), days[r.IntN(2406)], q, q * p, d, q * p * (100 - d) / 100, p * 6 / 10}
		})
	add("dates", columns("d_datekey", "d_year", "d_yearmonthnum", "$d_yearmonth"), len(days), func(i int) []any {
		d := days[i]
		return []any{d, d / 10000, d / 100, time.Date(d/10000, time.Month(d/100%100), 1, 0, 0, 0, 0, time.UTC).Format("Jan2006")}
	})
	place := func(i int) []any {
		n := r.IntN(25)
		return []any{i + 1, fmt.Sprintf("%-9.9s%d", nations[n], r.IntN(10)), nations[n], regions[regionOf[n]]}
	}
	add("customer", columns("c_custkey", "$c_city", "$c_nation", "$c_region"), customers, place)
	add("supplier", columns("s_suppkey", "$s_city", "$s_nation", "$s_region"), suppliers, place)
	add("part", columns("p_partkey", "$p_mfgr", "$p_category", "$p_brand1"), partCount, func(i int) []any {
		m, c, b := 1+r.IntN(5), 1+r.IntN(5), 1+r.IntN(40)
		return []any{i + 1, fmt.Sprintf("MFGR#%d", m), fmt.Sprintf("MFGR#%d%d", m, c), fmt.Sprintf("MFGR#%d%d%d", m, c, b)}
	})
	return s
}

// builder writes plans over a star by column names.
type builder struct {
	s *star
	q *plan.Star
	m map[int]int // position in q.Tables by table
}

func (s *star) query(dims ...int) *builder {
	b := &builder{s: s, q: &plan.Star{Tables: []plan.Source{{Meta: s.metas[lineorder]}}, Grouped: true}, m: map[int]int{lineorder: 0}}
	keys := []string{"", "lo_orderdate", "lo_custkey", "lo_suppkey", "lo_partkey"}
	for _, d := range dims {
		b.m[d] = len(b.q.Tables)
		b.q.Tables = append(b.q.Tables, plan.Source{Meta: s.metas[d], Table: len(b.q.Tables)})
		b.q.Joins = append(b.q.Joins, plan.StarJoin{Table: b.m[d], Outer: []plan.Expr{b.col(keys[d])}, Key: []int{0}})
	}
	return b
}

func (b *builder) col(name string) plan.Expr {
	for d, m := range b.s.metas {
		if c := m.Column(name); c >= 0 {
			return plan.Column{Table: b.m[d], Column: c, T: m.Columns[c].Type}
		}
	}
	panic("BUG: no column " + name)
}

func constOf(v any) plan.Expr {
	if s, ok := v.(string); ok {
		return plan.Const{Datum: vector.Datum{Type: varcharC, Str: s}}
	}
	return integer(int64(v.(int)))
}

func (b *builder) where(name string, op plan.Op, v any) *builder {
	b.q.Filter = append(b.q.Filter, call(op, vector.Bool, b.col(name), constOf(v)))
	return b
}

func (b *builder) either(name string, values ...any) *builder {
	or := call(plan.OpOr, vector.Bool)
	for _, v := range values {
		or.Args = append(or.Args, call(plan.OpEq, vector.Bool, b.col(name), constOf(v)))
	}
	b.q.Filter = append(b.q.Filter, or)
	return b
}

func (b *builder) sum(e plan.Expr, group ...string) *plan.Star {
	b.q.Aggs = []plan.AggregateCall{{Func: plan.Sum, Arg: e, T: vector.TypeOf(vector.Int8)}}
	for i, g := range group {
		b.q.Group = append(b.q.Group, b.col(g))
		b.q.Output = append(b.q.Output, plan.Key{Index: i, T: b.col(g).Type()})
		b.q.Order = append(b.q.Order, plan.Order{Expr: b.q.Output[i]})
	}
	b.q.Output = append(b.q.Output, plan.Agg{Index: 0, T: vector.TypeOf(vector.Int8)})
	return b.q
}

type namedQuery struct {
	name string
	q    *plan.Star
}

func (s *star) queries() []namedQuery {
	ge, le, lt, eq := plan.OpGe, plan.OpLe, plan.OpLt, plan.OpEq
	years := func(b *builder) *builder { return b.where("d_year", ge, 1992).where("d_year", le, 1997) }
	us := "UNITED STATES"
	rev := func(b *builder, group ...string) *plan.Star { return b.sum(b.col("lo_revenue"), group...) }
	times := func(b *builder) *plan.Star {
		return b.sum(call(plan.OpMul, vector.Int4, b.col("lo_extendedprice"), b.col("lo_discount")))
	}
	profit := func(b *builder, group ...string) *plan.Star {
		return b.sum(call(plan.OpSub, vector.Int4, b.col("lo_revenue"), b.col("lo_supplycost")), group...)
	}
	b43 := s.query(dates, customer, supplier, parts).where("c_region", eq, "AMERICA").where("s_nation", eq, us).either("d_year", 1997, 1998).where("p_category", eq, "MFGR#14")
	return []namedQuery{
		{"Q1.1", times(s.query(dates).where("d_year", eq, 1993).where("lo_discount", ge, 1).where("lo_discount", le, 3).where("lo_quantity", lt, 25))},
		{"Q1.2", times(s.query(dates).where("d_yearmonthnum", eq, 199401).where("lo_discount", ge, 4).where("lo_discount", le, 6).where("lo_quantity", ge, 26).where("lo_quantity", le, 35))},
		{"Q2.1", rev(s.query(dates, parts, supplier).where("p_category", eq, "MFGR#12").where("s_region", eq, "AMERICA"), "d_year", "p_brand1")},
		{"Q2.2", rev(s.query(dates, parts, supplier).where("p_brand1", ge, "MFGR#2221").where("p_brand1", le, "MFGR#2228").where("s_region", eq, "ASIA"), "d_year", "p_brand1")},
		{"Q3.1", rev(years(s.query(customer, supplier, dates).where("c_region", eq, "ASIA").where("s_region", eq, "ASIA")), "c_nation", "s_nation", "d_year")},
		{"Q3.2", rev(years(s.query(customer, supplier, dates).where("c_nation", eq, us).where("s_nation", eq, us)), "c_city", "s_city", "d_year")},
		{"Q3.4", rev(s.query(customer, supplier, dates).either("c_city", "UNITED KI1", "UNITED KI5").either("s_city", "UNITED KI1", "UNITED KI5").where("d_yearmonth", eq, "Dec1997"), "c_city", "s_city", "d_year")},
		{"Q4.1", profit(s.query(dates, customer, supplier, parts).where("c_region", eq, "AMERICA").where("s_region", eq, "AMERICA").either("p_mfgr", "MFGR#1", "MFGR#2"), "d_year", "c_nation")},
		{"Q4.3", profit(b43, "d_year", "s_city", "p_brand1")},
	}
}

func (s *star) input(q *plan.Star) Input {
	var in Input
	for _, t := range q.Tables {
		in.Tables = append(in.Tables, s.tables[slices.Index(s.metas, t.Meta)])
	}
	return in
}

func TestStarAgainstOracle(t *testing.T) {
	s := newStar(t, 2200, 60, 20, 300, 1024, true)
	for _, nq := range s.queries() {
		got, err := Execute(context.Background(), nq.q, s.input(nq.q), Options{Workers: 2})
		if err != nil {
			t.Fatal(nq.name, err)
		}
		want, err := oracle.Run(nq.q.Tree(), func(i int) [][]vector.Datum { return s.rows[slices.Index(s.metas, nq.q.Tables[i].Meta)] }, nil)
		if err != nil {
			t.Fatal(nq.name, err)
		}
		if got.Rows != want.Rows {
			t.Fatalf("%s: %d rows, want %d", nq.name, got.Rows, want.Rows)
		}
		for i := range got.Rows {
			if a, b := rowText(got, i), rowText(want, i); a != b {
				t.Fatalf("%s row %d: %s, want %s", nq.name, i, a, b)
			}
		}
	}
}

// BenchmarkStar reports the time for a row of lineorder on one core.
func BenchmarkStar(b *testing.B) {
	const n = 1 << 20
	s := newStar(b, n, 30000, 2000, 200000, 0, false)
	for _, nq := range s.queries() {
		b.Run(nq.name, func(b *testing.B) {
			in := s.input(nq.q)
			for b.Loop() {
				if _, err := Execute(context.Background(), nq.q, in, Options{Workers: 1}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
		})
	}
}
