package olap

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/plan"
	"pgaccel/pushdown"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// makeMany turns one join of the world, if it has one, into a join on no unique key.
func (w *world) makeMany() bool {
	if len(w.joins) == 0 {
		return false
	}
	at := w.r.IntN(len(w.joins))
	j := plan.StarJoin{Table: w.joins[at].Table, Many: true, On: w.joins[at].On}
	keys := [][]string{{"skew"}, {"i2"}, {"p1"}, {"t"}, {"f8"}, {"skew", "b"}, {"n2"}, {"d"}, {"id"}}[w.r.IntN(9)]
	from := 0
	if w.r.IntN(3) == 0 {
		from = w.r.IntN(j.Table)
	}
	for _, name := range keys {
		j.Key = append(j.Key, w.columnOf(j.Table, name).(plan.Column).Column)
		j.Outer = append(j.Outer, w.columnOf(from, name))
	}
	w.joins[at] = j
	return true
}

// TestFanOutAgainstOracle runs random queries over joins on no unique key: duplicate
// keys, nulls, no partners and many, conditions on both sides and over both, outputs of
// the joined table within expressions and as group keys.
func TestFanOutAgainstOracle(t *testing.T) {
	worlds := uint64(60)
	if testing.Short() {
		worlds = 20
	}
	defer func(n, rows int) { pruneRows, bitmapMin = n, rows }(pruneRows, bitmapMin)
	pruneRows, bitmapMin = 20, 64
	tally := tally{}
	for seed := range worlds {
		w := newWorld(t, 1000+seed)
		if !w.makeMany() || w.pairs() > 60_000 {
			continue
		}
		for n := range 12 {
			q := w.query()
			if n%6 == 5 {
				q = w.rowQuery()
			}
			tally.ask(t, w, seed, n, q)
		}
	}
	if tally.end(t, 0); tally.reasons[""] < 100 {
		t.Errorf("only %d queries were answered", tally.reasons[""])
	}
}

// pairs bounds the rows that the world's joins make of each other.
func (w *world) pairs() int {
	n := len(w.tables[0].rows)
	for _, j := range w.joins {
		if j.Many {
			n *= max(len(w.tables[j.Table].rows)/3, 1)
		}
	}
	return n
}

// FuzzFanOut makes a world and a query from a seed.
func FuzzFanOut(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := newWorld(t, seed)
		if !w.makeMany() || w.pairs() > 10_000 {
			return
		}
		q := w.query()
		if problem, _ := w.outcome(q, 1+int(seed%3)); problem != "" {
			t.Errorf("%s\n%s", problem, queryText(q))
		}
	})
}

// hierarchy is a fact table (key, value) and a table (key, parent, weight) that is joined
// to it on its key, which is not unique.
func hierarchy(t testing.TB, segment int, facts, edges [][]any) (*plan.Star, Input) {
	f := ints(t, segment, []string{"key", "value"}, facts)
	h := ints(t, segment, []string{"key", "parent", "weight"}, edges)
	q := &plan.Star{Tables: []plan.Source{{Meta: f.meta}, {Meta: h.meta, Table: 1}},
		Joins: []plan.StarJoin{{Table: 1, Outer: []plan.Expr{bigint(0, 0)}, Key: []int{0}, Many: true}}}
	return q, Input{Tables: []*colstore.Table{f.table, h.table}}
}

// sumOfProducts makes q count the pairs and add up value * weight, by parent or altogether.
func sumOfProducts(q *plan.Star, by ...plan.Expr) *plan.Star {
	product := &plan.Call{Op: plan.OpMul, T: vector.TypeOf(vector.Int8), Args: []plan.Expr{bigint(0, 1), bigint(1, 2)}}
	q.Grouped, q.Group = true, by
	q.Aggs = []plan.AggregateCall{{Func: plan.CountStar, T: vector.TypeOf(vector.Int8)}, {Func: plan.Sum, Arg: product, T: vector.NumericType(0)}}
	for i, e := range by {
		q.Output = append(q.Output, plan.Key{Index: i, T: e.Type()})
	}
	for i, a := range q.Aggs {
		q.Output = append(q.Output, plan.Agg{Index: i, T: a.T})
	}
	return q
}

// TestFanOutLengths meets the edges of tiles: numbers of rows, and of partners of one.
func TestFanOutLengths(t *testing.T) {
	lengths := []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025, 2049}
	for _, n := range lengths {
		for _, k := range lengths {
			// Row i has key i%3: 0 finds nothing, 1 one partner, 2 k of them.
			var facts, edges [][]any
			count, sum := int64(0), int64(0)
			for i := range int64(n) {
				facts = append(facts, []any{i % 3, i})
			}
			edges = append(edges, []any{int64(1), int64(7), int64(2)}, []any{nil, int64(7), int64(2)})
			for j := range int64(k) {
				edges = append(edges, []any{int64(2), j % 5, j})
			}
			for i := range int64(n) {
				switch i % 3 {
				case 1:
					count, sum = count+1, sum+2*i
				case 2:
					count, sum = count+int64(k), sum+i*int64(k)*int64(k-1)/2
				}
			}
			q, in := hierarchy(t, 1024, facts, edges)
			b, err := Execute(t.Context(), sumOfProducts(q), in, Options{Workers: 2})
			if err != nil {
				t.Fatal(n, k, err)
			}
			want := fmt.Sprintf("%d | %d | ", count, sum)
			if count == 0 {
				want = "0 | null | "
			}
			if got := rowText(b, 0); got != want {
				t.Errorf("%d rows, %d partners: %s, want %s", n, k, got, want)
			}
		}
	}
}

// TestFanOutCounts joins through each layout of a lookup, without reading anything of
// the joined table, and reading a group key of few values: no partner may be lost.
func TestFanOutCounts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, c := range []struct {
		layout string
		keys   int
		spread int64
	}{{"array8", 100, 1}, {"array16", 3000, 1}, {"array32", 100_000, 1}, {"hash", 3000, 1 << 40}} {
		partners := make([]int64, c.keys)
		var edges, facts [][]any
		for range 2 * c.keys {
			k := r.IntN(c.keys)
			partners[k]++
			edges = append(edges, []any{int64(k) * c.spread, int64(k % 4), int64(1)})
		}
		want := map[int64]int64{}
		total := int64(0)
		for i := range max(5000, c.keys/2) { // too many for a core
			k := r.IntN(c.keys + 10)
			facts = append(facts, []any{int64(k) * c.spread, int64(i)})
			if k < c.keys {
				want[int64(k%4)] += partners[k]
				total += partners[k]
			}
		}
		q, in := hierarchy(t, 2048, facts, edges)
		count := []plan.AggregateCall{{Func: plan.CountStar, T: vector.TypeOf(vector.Int8)}}
		q.Grouped, q.Aggs, q.Output = true, count, []plan.Expr{plan.Agg{T: count[0].T}}
		if text := Explain(q, in); !strings.Contains(text, c.layout) {
			t.Errorf("not %s:\n%s", c.layout, text)
		}
		b, err := Execute(t.Context(), q, in, Options{})
		if err != nil || b.Columns[0].Ints[0] != total {
			t.Errorf("%s: %v %v, want %d", c.layout, b, err, total)
		}
		q.Group = []plan.Expr{bigint(1, 1)}
		q.Output = append(q.Output, plan.Key{T: vector.TypeOf(vector.Int8)})
		if b, err = Execute(t.Context(), q, in, Options{}); err != nil || b.Rows != len(want) {
			t.Fatalf("%s: %v %v", c.layout, b, err)
		}
		for i := range b.Rows {
			if k := b.Columns[1].Ints[i]; b.Columns[0].Ints[i] != want[k] {
				t.Errorf("%s: %d rows of %d, want %d", c.layout, b.Columns[0].Ints[i], k, want[k])
			}
		}
	}
}

// endingContext is cancelled after its error has been asked for n times.
type endingContext struct {
	context.Context
	left atomic.Int64
}

func (c *endingContext) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestFanOutExplodes: 10^9 pairs, of which one segment of 1024 rows and 100,000
// partners each makes a tenth, must neither be written out nor outlive their query.
func TestFanOutExplodes(t *testing.T) {
	var facts, edges [][]any
	for i := range int64(10 * 1024) {
		facts = append(facts, []any{int64(1), i})
	}
	for j := range int64(100_000) {
		edges = append(edges, []any{int64(1), j, j})
	}
	q, in := hierarchy(t, 1024, facts, edges)
	rows := *q
	rows.Output = []plan.Expr{bigint(0, 1), bigint(1, 1)}
	wantForward(t, &rows, in, Options{MemoryLimit: 64 << 20}, plan.ReasonMemory)
	ctx := &endingContext{Context: t.Context()}
	ctx.left.Store(300)
	if _, err := Execute(ctx, sumOfProducts(q), in, Options{Workers: 2}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if more := -ctx.left.Load(); more > 100 {
		t.Errorf("went on for %d tiles", more)
	}
}

// TestFanOutRefusals: what is not done is forwarded, and Supports knows it.
func TestFanOutRefusals(t *testing.T) {
	meta := &catalog.Table{Columns: shape}
	w := &world{}
	many := func(table, outer int) plan.StarJoin {
		return plan.StarJoin{Table: table, Outer: []plan.Expr{w.columnOf(outer, "i4")}, Key: []int{8}, Many: true}
	}
	one := plan.StarJoin{Table: 1, Outer: []plan.Expr{w.columnOf(0, "ref")}, Key: []int{colID}}
	left := many(1, 0)
	left.Kind = plan.Left
	tables := []plan.Source{{Meta: meta}, {Meta: meta, Table: 1}, {Meta: meta, Table: 2}}
	for name, c := range map[string]struct {
		joins []plan.StarJoin
		fine  bool
	}{
		"one":                      {[]plan.StarJoin{many(1, 0)}, true},
		"one beside another":       {[]plan.StarJoin{one, many(2, 0)}, true},
		"two":                      {[]plan.StarJoin{many(1, 0), many(2, 0)}, false},
		"outer":                    {[]plan.StarJoin{left}, true},
		"of a joined table":        {[]plan.StarJoin{one, many(2, 1)}, true},
		"below one on no such key": {[]plan.StarJoin{many(1, 0), {Table: 2, Outer: []plan.Expr{w.columnOf(1, "ref")}, Key: []int{colID}}}, true},
	} {
		q := &plan.Star{Tables: tables[:len(c.joins)+1], Joins: c.joins, Output: []plan.Expr{w.column(0, 0)}}
		if f := Supports(q); (f == nil) != c.fine {
			t.Errorf("%s: %v", name, f)
		}
	}
}

// TestHierarchyAgainstPostgres asks a server and Execute for sums over a hierarchy with
// weights, planned from their SQL: a many-to-many table between facts and elements.
func TestHierarchyAgainstPostgres(t *testing.T) {
	ctx, conn := connected(t)
	if _, err := conn.Exec(ctx, `
		create table fact (id bigint primary key, element bigint, month bigint not null, value numeric(12,2));
		create table reach (element bigint, parent bigint, weight numeric(6,3));
		create table element (id bigint primary key, level bigint not null);
		select setseed(0.5);
		insert into fact select i, nullif((random()*120)::bigint, 7), 1 + i % 12, case when i % 17 > 0 then (random()*2000 - 500)::numeric(12,2) end from generate_series(1, 6000) i;
		insert into element select i, (random()*3)::bigint from generate_series(0, 40) i;
		insert into reach select (random()*110)::bigint, (random()*44)::bigint, case when i % 13 > 0 then (random()*3 - 1)::numeric(6,3) end from generate_series(1, 400) i;
		insert into reach values (null, 1, 1), (3, null, 1), (5, 2, 0.5), (5, 2, 0.5)`); err != nil {
		t.Fatal(err)
	}
	i8, n2, n3 := vector.TypeOf(vector.Int8), vector.NumericType(2), vector.NumericType(3)
	key := []catalog.Index{{Columns: []int{0}, Unique: true}}
	c := &catalog.Catalog{}
	var tables []*randomTable
	for _, meta := range []*catalog.Table{
		{Name: "fact", Indexes: key, Rows: 6000, Columns: []catalog.Column{{Name: "id", Type: i8, NotNull: true}, {Name: "element", Type: i8}, {Name: "month", Type: i8, NotNull: true}, {Name: "value", Type: n2}}},
		{Name: "reach", Rows: 404, Columns: []catalog.Column{{Name: "element", Type: i8}, {Name: "parent", Type: i8}, {Name: "weight", Type: n3}}},
		{Name: "element", Indexes: key, Rows: 41, Columns: []catalog.Column{{Name: "id", Type: i8, NotNull: true}, {Name: "level", Type: i8, NotNull: true}}},
	} {
		meta.OID, meta.Schema = uint32(20000+len(tables)), "public"
		for i := range meta.Columns {
			meta.Columns[i].AttNum = int16(i + 1)
		}
		found := pgText(t, conn, "select * from "+meta.Name)
		var rows [][]vector.Datum
		for _, r := range found {
			var row []vector.Datum
			for i, text := range r {
				d := vector.Null(meta.Columns[i].Type)
				if text != "null" {
					v, ok := vector.ParseDecimal(text)
					if !ok {
						t.Fatal(text)
					}
					n, _ := v.Unscaled.Int64()
					d = vector.Datum{Type: meta.Columns[i].Type, I: n}
				}
				row = append(row, d)
			}
			rows = append(rows, row)
		}
		tables = append(tables, &randomTable{meta, rows, load(t, newStore(t, 1024), meta, rows)})
		c.Tables = append(c.Tables, meta)
	}
	for _, sql := range []string{
		"select r.parent, sum(f.value * r.weight), count(*), count(f.value) from fact f join reach r on r.element = f.element group by r.parent",
		"select e.level, f.month, sum(f.value * r.weight) from fact f join reach r on f.element = r.element join element e on e.id = r.parent group by e.level, f.month",
		"select e.level, sum(f.value), min(r.weight), max(f.value) from fact f, reach r, element e where f.element = r.element and e.id = r.parent and r.weight > 0 and f.month between 3 and 8 group by 1",
		"select count(*) from fact f join reach r on f.element = r.element",
		"select e.level, r.element, sum(f.value * r.weight), count(*) from fact f join element e on e.id = f.element join reach r on r.parent = e.level group by 1, 2",
		"select count(*) from fact f join element e on e.id = f.element join reach r on r.parent = e.level",
		"select count(*), sum(f.value) from fact f join reach r on f.element = r.element where r.parent = 2",
		"select f.id, r.parent, f.value * r.weight from fact f join reach r on f.element = r.element where f.month > r.parent + 1 and f.value > 0",
		"select r.parent, f.id from fact f join reach r on f.element = r.element order by f.id desc, r.parent, r.weight limit 50",
		"select f.month, avg(f.value * r.weight) from fact f join reach r on f.element = r.element where r.parent in (1, 5, 9) or f.month = 4 group by f.month having count(*) > 20",
	} {
		st := pushdown.Plan(syntax.Parse(sql), nil, c)
		if st.Forward != nil {
			t.Errorf("%s\nis not planned: %v", sql, st.Forward)
			continue
		}
		if !slices.ContainsFunc(st.Star.Joins, func(j plan.StarJoin) bool { return j.Many }) {
			t.Errorf("%s\nhas no join on no unique key", sql)
		}
		var in Input
		for _, table := range st.Deps.Tables {
			in.Tables = append(in.Tables, tables[table.Meta.OID-20000].table)
		}
		b, err := Execute(ctx, st.Star, in, Options{})
		if err != nil {
			t.Errorf("%s\n%v", sql, err)
			continue
		}
		var got, want []string
		for i := range b.Rows {
			got = append(got, rowText(b, i))
		}
		for _, r := range pgText(t, conn, sql) {
			want = append(want, strings.Join(r, " | ")+" | ")
		}
		if len(st.Star.Order) == 0 {
			slices.Sort(got)
			slices.Sort(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s\n%d rows, Postgres has %d: %.300v\nwant %.300v", sql, len(got), len(want), got, want)
		}
	}
}

// pgText returns the server's rows as text.
func pgText(t *testing.T, conn *pgx.Conn, sql string) (out [][]string) {
	t.Helper()
	res, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s\n%v", sql, err)
	}
	for _, r := range res[0].Rows {
		var row []string
		for _, v := range r {
			if v == nil {
				row = append(row, "null")
			} else {
				row = append(row, string(v))
			}
		}
		out = append(out, row)
	}
	return out
}

// TestFanOutShares: queries that scan together fan out each by themselves.
func TestFanOutShares(t *testing.T) {
	var facts, edges [][]any
	for i := range int64(8 * 1024) {
		facts = append(facts, []any{i % 50, i})
	}
	for j := range int64(400) {
		edges = append(edges, []any{j % 40, j % 6, j})
	}
	q, in := hierarchy(t, 1024, facts, edges)
	byParent, plain := *q, *q
	sumOfProducts(&byParent, bigint(1, 1))
	plain.Tables, plain.Joins = plain.Tables[:1], nil
	plain.Grouped, plain.Aggs = true, []plan.AggregateCall{{Func: plan.Sum, Arg: bigint(0, 1), T: vector.NumericType(0)}}
	plain.Output = []plan.Expr{plan.Agg{T: vector.NumericType(0)}}
	text := func(q *plan.Star, opt Options) (out []string, err error) {
		tables := Input{Tables: in.Tables[:len(q.Tables)]}
		b, err := Execute(t.Context(), q, tables, opt)
		if err != nil {
			return nil, err
		}
		for i := range b.Rows {
			out = append(out, rowText(b, i))
		}
		slices.Sort(out)
		return out, nil
	}
	share := NewSharer()
	for range 20 {
		var work errgroup.Group
		for _, q := range []*plan.Star{&byParent, &plain, &byParent} {
			work.Go(func() error {
				want, err := text(q, Options{Workers: 1})
				if err != nil {
					return err
				}
				got, err := text(q, Options{Workers: 2, Share: share})
				if err == nil && !slices.Equal(got, want) {
					err = fmt.Errorf("%v, want %v", got, want)
				}
				return err
			})
		}
		if err := work.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkFanOut compares a pair of a join on no unique key with a row of one on a
// unique key.
func BenchmarkFanOut(b *testing.B) {
	const rows, elements = 1 << 19, 10_000
	r := rand.New(rand.NewPCG(5, 5))
	var facts, edges, unique [][]any
	for range rows {
		facts = append(facts, []any{int64(r.IntN(elements)), int64(r.IntN(1000))})
	}
	for i := range 4 * elements {
		edges = append(edges, []any{int64(i % elements), int64(r.IntN(500)), int64(r.IntN(4))})
	}
	for i := range elements {
		unique = append(unique, []any{int64(i), int64(r.IntN(500)), int64(r.IntN(4))})
	}
	for _, c := range []struct {
		name  string
		edges [][]any
		many  bool
		fan   int
	}{{"unique", unique, false, 1}, {"many of 1", unique, true, 1}, {"many of 4", edges, true, 4}} {
		q, in := hierarchy(b, 65536, facts, c.edges)
		q.Joins[0].Many = c.many
		sumOfProducts(q, bigint(1, 1))
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Execute(b.Context(), q, in, Options{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows*c.fan), "ns/pair")
		})
	}
}
