package olap

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/compress"
	"pgaccel/internal/oracle"
	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// The random tests build tables of one shape, with every kind, nulls and edge
// values, and queries over the whole vocabulary of package plan, and compare
// Execute with package oracle.

var (
	collC = vector.Collation{OID: 950, Deterministic: true, C: true}
	// collR sorts backwards: an order that is not memcmp's.
	collR = vector.Collation{OID: 12345, Deterministic: true}
)

func backwards(_ vector.Collation, a, b string) bool { return a > b }

func textType(k vector.Kind, c vector.Collation, typmod int32) vector.Type {
	return vector.Type{Kind: k, Typmod: typmod, Collation: c}
}

// The columns of every table, before those of otherKinds. id is unique, tid too, and (p1, p2) together.
var ownShape = []catalog.Column{
	{Name: "id", Type: vector.TypeOf(vector.Int4), NotNull: true},
	{Name: "tid", Type: textType(vector.Text, collC, -1), NotNull: true},
	{Name: "p1", Type: vector.TypeOf(vector.Int4), NotNull: true},
	{Name: "p2", Type: vector.TypeOf(vector.Int8), NotNull: true},
	{Name: "ref", Type: vector.TypeOf(vector.Int8)},
	{Name: "tref", Type: textType(vector.Varchar, collC, -1)},
	{Name: "b", Type: vector.TypeOf(vector.Bool)},
	{Name: "i2", Type: vector.TypeOf(vector.Int2)},
	{Name: "i4", Type: vector.TypeOf(vector.Int4)},
	{Name: "i8", Type: vector.TypeOf(vector.Int8)},
	{Name: "n2", Type: vector.NumericType(2)},
	{Name: "n4", Type: vector.NumericType(4)},
	{Name: "d", Type: vector.TypeOf(vector.Date)},
	{Name: "ts", Type: vector.TypeOf(vector.Timestamp)},
	{Name: "tz", Type: vector.TypeOf(vector.TimestampTZ)},
	{Name: "tm", Type: vector.TypeOf(vector.Time)},
	{Name: "f4", Type: vector.TypeOf(vector.Float4)},
	{Name: "f8", Type: vector.TypeOf(vector.Float8)},
	{Name: "t", Type: textType(vector.Text, collC, -1)},
	{Name: "v", Type: textType(vector.Varchar, collR, 14)},
	{Name: "c", Type: textType(vector.BPChar, collC, 4+5)},
	{Name: "skew", Type: vector.TypeOf(vector.Int4)},
}

const (
	colID = iota
	colTID
	colP1
	colP2
	colRef
	colTRef
)

type randomTable struct {
	meta  *catalog.Table
	rows  [][]vector.Datum
	table *colstore.Table
}

// wild makes values at the edges of their types.
func randomDatum(r *rand.Rand, t vector.Type, id, refs int, wild bool) vector.Datum {
	d := vector.Datum{Type: t}
	edge := wild && r.IntN(60) == 0
	switch t.Kind {
	case vector.Bool:
		d.I = int64(r.IntN(2))
	case vector.Int2:
		if d.I = int64(r.IntN(7) - 3); edge {
			d.I = []int64{math.MinInt16, math.MaxInt16}[r.IntN(2)]
		}
	case vector.Int4:
		if d.I = int64(r.IntN(200) - 50); edge {
			d.I = []int64{math.MinInt32, math.MaxInt32, math.MaxInt32 - 1}[r.IntN(3)]
		}
	case vector.Int8:
		if d.I = int64(r.IntN(1000000)) * 1000003; edge {
			d.I = []int64{math.MinInt64, math.MaxInt64, -1}[r.IntN(3)]
		}
	case vector.Numeric:
		if d.I = int64(r.IntN(20000) - 5000); edge {
			d.I = []int64{999999999999999999, -999999999999999999, 0}[r.IntN(3)]
		}
	case vector.Date:
		if d.I = int64(r.IntN(3000) - 1000); edge {
			d.I = []int64{math.MinInt32, math.MaxInt32, -2451545, 2145031948}[r.IntN(4)]
		}
	case vector.Timestamp, vector.TimestampTZ:
		if d.I = int64(r.IntN(3000)-1000)*dayMicros + r.Int64N(dayMicros); edge {
			d.I = []int64{math.MinInt64, math.MaxInt64, -211813488000000000, 9223371331199999999}[r.IntN(4)]
		}
	case vector.Time:
		if d.I = r.Int64N(dayMicros); edge {
			d.I = dayMicros
		}
	case vector.Float4, vector.Float8:
		f := float64(r.IntN(64)-20) / 4
		if edge {
			f = []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 1e38, -1e38}[r.IntN(6)]
			if t.Kind == vector.Float8 && r.IntN(3) == 0 {
				f = 1e308
			}
		}
		if t.Kind == vector.Float4 {
			f = float64(float32(f))
		}
		d.I = int64(math.Float64bits(f))
	case vector.Text, vector.Varchar, vector.BPChar:
		words := []string{"", "a", "ab", "abc", "b", "B", "%", "a_c", "zeta", "Zeta", "k1", "k2", "é", "aé", `a\b`, "x y"}
		s := words[r.IntN(len(words))]
		if r.IntN(3) == 0 {
			s += words[r.IntN(len(words))]
		}
		if t.Kind == vector.BPChar {
			rs := []rune(s)
			s = string(rs[:min(5, len(rs))])
			s = strings.TrimRight(s, " ")
			s += strings.Repeat(" ", 5-len([]rune(s)))
		}
		d.Str = s
	default:
		if t.Kind.IsDocument() {
			samples := sqltype.Of(t.Kind).Samples
			d, _ = sqltype.Of(t.Kind).Parse(samples[r.IntN(len(samples))])
			return d
		}
		other := otherDatum(r, t.Kind, edge)
		d.I, d.Str = other.I, other.Str
	}
	return d
}

// randomRows returns n rows whose references are to about so many others, and keys so far apart.
func randomRows(r *rand.Rand, n, refs int, apart int64) [][]vector.Datum {
	wild := r.IntN(3) == 0
	nulls := make([]int, len(shape)) // one in so many; 0: none
	for i := range nulls {
		if !shape[i].NotNull && r.IntN(2) == 0 {
			nulls[i] = []int{1, 2, 5, 30}[r.IntN(4)]
			if nulls[i] == 1 && r.IntN(3) > 0 {
				nulls[i] = 9
			}
		}
	}
	ids := r.Perm(n + n/4 + 1)[:n]
	rows := make([][]vector.Datum, n)
	for i := range rows {
		row := make([]vector.Datum, len(shape))
		for c, col := range shape {
			d := randomDatum(r, col.Type, ids[i], refs, wild)
			switch c {
			case colID:
				d.I = int64(ids[i]) * apart
			case colTID:
				d.Str = fmt.Sprintf("k%d", ids[i])
			case colP1:
				d.I = int64(ids[i] / 7)
			case colP2:
				d.I = int64(ids[i]%7) * 1000
			case colRef:
				d.I = int64(r.IntN(refs+refs/3+1)) * apart
			case colTRef:
				d.Str = fmt.Sprintf("k%d", r.IntN(refs+refs/3+1))
			}
			if col.Name == "skew" {
				d.I = int64(10 * math.Pow(r.Float64(), 8))
			}
			if nulls[c] > 0 && r.IntN(nulls[c]) == 0 {
				d = vector.Null(col.Type)
			}
			row[c] = d
		}
		rows[i] = row
	}
	return rows
}

func newStore(t testing.TB, segment int) *colstore.Store {
	s := colstore.New(colstore.Options{SegmentRows: segment})
	t.Cleanup(s.Close)
	return s
}

// load makes a table of rows. Each of the ascending numbers in cuts begins a new run
// of segments, as a copy by several writers does.
func load(t testing.TB, s *colstore.Store, meta *catalog.Table, rows [][]vector.Datum, cuts ...int) *colstore.Table {
	t.Helper()
	l := s.NewLoader(meta)
	w := l.NewWriter()
	for n, row := range rows {
		for len(cuts) > 0 && cuts[0] <= n {
			cuts = cuts[1:]
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			w = l.NewWriter()
		}
		for c, d := range row {
			switch {
			case d.Null:
				w.Null(c)
			case d.Type.Kind.IsString():
				w.Text(c, []byte(d.Str))
			default:
				w.Int(c, d.I)
			}
		}
		if err := w.EndRow(); err != nil {
			t.Fatal(err)
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
	for c, d := range table.Dicts {
		if d == nil || meta.Columns[c].Type.Collation != collR {
			continue
		}
		order := make([]int, d.Len())
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int { return strings.Compare(d.At(int64(b)), d.At(int64(a))) })
		ranks := make([]int32, d.Len())
		for rank, code := range order {
			ranks[code] = int32(3*rank + 1) // with gaps, as after strings came and went
		}
		d.SetRanks(ranks)
	}
	return table
}

// world is a set of tables and the joins between them.
type world struct {
	r      *rand.Rand
	tables []*randomTable
	joins  []plan.StarJoin
	// options are of Execute, but for the workers.
	options Options
}

var forcedCodecs = []compress.Codec{compress.CodecFOR, compress.CodecDFOR, compress.CodecRFOR, compress.CodecALP,
	compress.CodecLookup, compress.CodecFOR64, compress.CodecDFOR64, compress.CodecRFOR64, compress.CodecPlain}

func newWorld(t testing.TB, seed uint64) *world {
	return newWorldOf(t, seed, func(t testing.TB, r *rand.Rand, s *colstore.Store, meta *catalog.Table, size int, apart int64) *randomTable {
		rows := randomRows(r, size, 30, apart)
		return &randomTable{meta, rows, load(t, s, meta, rows)}
	})
}

// newWorldOf makes a world of the tables that make makes: of size rows, with
// keys apart from each other.
func newWorldOf(t testing.TB, seed uint64, make func(t testing.TB, r *rand.Rand, s *colstore.Store, meta *catalog.Table, size int, apart int64) *randomTable) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	// Half of the worlds force a codec, wherever it can hold the values.
	codec := compress.CodecAuto
	if seed%2 == 1 {
		codec = forcedCodecs[seed/2%uint64(len(forcedCodecs))]
	}
	store := colstore.New(colstore.Options{SegmentRows: []int{1024, 2048}[r.IntN(2)], Codec: codec})
	t.Cleanup(store.Close)
	sizes := []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025, 2047, 2049, 3333}
	w := &world{r: r, options: Options{Rank: rankBackwards}}
	// Keys side by side have arrays; those far apart hash tables, with a set before them or without.
	apart := []int64{1, 1, 1, 60013, 200003}[seed%5]
	n := 1 + r.IntN(4)
	for i := range n {
		size := sizes[r.IntN(len(sizes))]
		if i > 0 {
			size = []int{0, 1, 5, 30, 100, 129}[r.IntN(6)]
		}
		meta := &catalog.Table{OID: uint32(100 + i), Schema: "public", Name: fmt.Sprintf("t%d", i), Columns: shape,
			Indexes: []catalog.Index{{Columns: []int{colID}, Unique: true}, {Columns: []int{colTID}, Unique: true}, {Columns: []int{colP1, colP2}, Unique: true}}}
		w.tables = append(w.tables, make(t, r, store, meta, size, apart))
	}
	for i := 1; i < n; i++ {
		from := r.IntN(i)
		j := plan.StarJoin{Table: i, Kind: plan.JoinKind(r.IntN(2))}
		switch r.IntN(5) {
		case 0:
			j.Outer, j.Key = []plan.Expr{w.column(from, colTRef)}, []int{colTID}
		case 2:
			j.Outer, j.Key = []plan.Expr{w.textKey(from)}, []int{colTID}
		case 1:
			other := from
			if r.IntN(3) == 0 {
				other = r.IntN(i)
			}
			j.Key = []int{colP1, colP2}
			j.Outer = []plan.Expr{w.columnOf(from, "skew"), w.column(other, colP2)}
		default:
			j.Outer, j.Key = []plan.Expr{w.column(from, colRef)}, []int{colID}
		}
		if r.IntN(4) == 0 {
			j.On = []plan.Expr{call(plan.OpLt, vector.Bool, w.columnOf(i, "skew"), integer(int64(r.IntN(8))))}
		}
		w.joins = append(w.joins, j)
	}
	return w
}

func (w *world) column(t, c int) plan.Expr { return plan.Column{Table: t, Column: c, T: shape[c].Type} }

func (w *world) columnOf(t int, name string) plan.Expr {
	return w.column(t, slices.IndexFunc(shape, func(c catalog.Column) bool { return c.Name == name }))
}

func call(op plan.Op, k vector.Kind, args ...plan.Expr) *plan.Call {
	return &plan.Call{Op: op, Args: args, T: vector.TypeOf(k)}
}

// timeFunction calls a function of a field or unit and a date or time.
func timeFunction(name, field string, arg plan.Expr) *plan.Call {
	return functionCall(sqlfn.Lookup(name, vector.Text, arg.Type().Kind), plan.Const{Datum: vector.String(field)}, arg)
}

func functionCall(f *sqlfn.Function, args ...plan.Expr) *plan.Call {
	c := &plan.Call{Op: plan.OpFunc, Func: f, Args: args}
	c.T = f.ResultType(c.Site())
	return c
}

func integer(v int64) plan.Expr { return plan.Const{Datum: vector.Int(vector.Int4, v)} }

func (w *world) input() Input {
	var in Input
	for _, t := range w.tables {
		in.Tables = append(in.Tables, t.table)
	}
	return in
}

func rowText(b *vector.Batch, i int) string {
	var s strings.Builder
	for c := range b.Columns {
		col := &b.Columns[c]
		switch {
		case col.IsNull(i):
			s.WriteString("null")
		case col.Type.Kind.IsString():
			fmt.Fprintf(&s, "%q", col.Strs[i])
		case col.Type.Kind == vector.Numeric:
			s.WriteString(col.Decimals[i].String())
		case col.Type.Kind.IsFloat():
			fmt.Fprint(&s, math.Float64frombits(uint64(col.Ints[i])))
		default:
			fmt.Fprint(&s, col.Ints[i])
		}
		s.WriteString(" | ")
	}
	return s.String()
}

func exprText(e plan.Expr) string {
	switch e := e.(type) {
	case plan.Column:
		return fmt.Sprintf("t%d.%s", e.Table, shape[e.Column].Name)
	case plan.Const:
		if e.Null {
			return "null::" + e.Datum.Type.Kind.String()
		}
		if e.Datum.Type.Kind.IsString() {
			return fmt.Sprintf("%q", e.Str)
		}
		return fmt.Sprintf("%d::%s/%d", e.I, e.Datum.Type.Kind, e.Datum.Type.Scale)
	case plan.Key:
		return fmt.Sprintf("key%d", e.Index)
	case plan.Agg:
		return fmt.Sprintf("agg%d", e.Index)
	case *plan.Call:
		names := []string{"?", "+", "-", "*", "/", "%", "neg", "abs", "=", "<>", "<", "<=", ">", ">=", "distinct", "and", "or", "not",
			"isnull", "notnull", "istrue", "isfalse", "in", "like", "case", "coalesce", "cast", ""}
		name := names[e.Op]
		if e.Func != nil {
			name = e.Func.Name
		}
		var args []string
		for _, a := range e.Args {
			args = append(args, exprText(a))
		}
		return fmt.Sprintf("%s%s:%s/%d(%s)", map[bool]string{true: "i"}[e.Insensitive], name, e.T.Kind, e.T.Scale, strings.Join(args, ", "))
	}
	return fmt.Sprint(e)
}

func queryText(q *plan.Star) string {
	var b strings.Builder
	list := func(name string, es []plan.Expr) {
		for _, e := range es {
			fmt.Fprintf(&b, "  %s %s\n", name, exprText(e))
		}
	}
	for _, j := range q.Joins {
		fmt.Fprintf(&b, "  join t%d kind %d key %v\n", j.Table, j.Kind, j.Key)
		list("  outer", j.Outer)
		list("  on", j.On)
	}
	list("filter", q.Filter)
	list("group", q.Group)
	for _, set := range q.Sets {
		fmt.Fprintf(&b, "  set %b\n", set)
	}
	for _, a := range q.Aggs {
		fmt.Fprintf(&b, "  agg %v", a.Func)
		if a.Arg != nil {
			b.WriteString(" " + exprText(a.Arg))
		}
		if a.Filter != nil {
			b.WriteString(" filter " + exprText(a.Filter))
		}
		if a.Distinct || a.Desc {
			fmt.Fprintf(&b, " distinct %v desc %v", a.Distinct, a.Desc)
		}
		if a.Fraction != nil {
			fmt.Fprintf(&b, " of %v", a.Fraction.(plan.Const).Float64())
		}
		b.WriteString("\n")
	}
	list("having", q.Having)
	list("output", q.Output)
	for _, o := range q.Order {
		fmt.Fprintf(&b, "  order %s desc %v nulls first %v\n", exprText(o.Expr), o.Desc, o.NullsFirst)
	}
	if q.Limit != nil {
		fmt.Fprintf(&b, "  limit %s\n", exprText(q.Limit))
	}
	if q.Offset != nil {
		fmt.Fprintf(&b, "  offset %s\n", exprText(q.Offset))
	}
	return b.String()
}

// rankBackwards is the server that knows collR.
func rankBackwards(_ context.Context, c vector.Collation, texts []string) ([]int32, error) {
	if c.OID != collR.OID {
		return nil, errors.New("another collation")
	}
	sorted := slices.Sorted(slices.Values(texts))
	ranks := make([]int32, len(texts))
	for i, s := range texts {
		at, _ := slices.BinarySearch(sorted, s)
		ranks[i] = int32(len(texts) - 1 - at)
	}
	return ranks, nil
}

// outcome compares Execute with the oracle; what went wrong, or "".
func (w *world) outcome(q *plan.Star, workers int) (problem string, forwarded plan.Reason) {
	opt := w.options
	opt.Workers = workers
	got, err := Execute(context.Background(), q, w.input(), opt)
	if opt.forceSpill && plan.ReasonOf(err) == plan.ReasonMemory { // it is none of those that can
		opt.forceSpill = false
		got, err = Execute(context.Background(), q, w.input(), opt)
	}
	if err == nil {
		got, err = whole(got)
	}
	want, wantErr := w.reference(q)
	if err == nil && plan.ReasonOf(wantErr) == plan.ReasonEvaluation {
		// The server computes conditions on one table before those on several, and what is left of the
		// others last: another order of them may have no error.
		want, wantErr = w.reference(narrowFirst(q))
	}
	return compareOutcomes(q, got, err, want, wantErr)
}

// narrowFirst returns a star whose conditions on few tables come first, of these the last written.
func narrowFirst(q *plan.Star) *plan.Star {
	b := *q
	b.Filter = slices.Clone(q.Filter)
	slices.Reverse(b.Filter)
	tables := func(e plan.Expr) int {
		read := map[int]bool{}
		plan.Walk(e, func(x plan.Expr) bool {
			if c, ok := x.(plan.Column); ok {
				read[c.Table] = true
			}
			return true
		})
		return len(read)
	}
	slices.SortStableFunc(b.Filter, func(x, y plan.Expr) int { return tables(x) - tables(y) })
	return &b
}

func (w *world) reference(q *plan.Star) (*vector.Batch, error) {
	return oracle.Run(q.Tree(), func(t int) [][]vector.Datum { return w.tables[t].rows }, backwards)
}

func compareOutcomes(q *plan.Star, got *vector.Batch, err error, want *vector.Batch, wantErr error) (problem string, forwarded plan.Reason) {
	var f *plan.Forward
	if err != nil && !errors.As(err, &f) {
		return "error " + err.Error(), ""
	}
	switch {
	case wantErr != nil && err == nil:
		return fmt.Sprintf("%d rows, the oracle fails: %v", got.Rows, wantErr), ""
	case wantErr != nil:
		return "", f.Reason
	case err != nil:
		if f.Reason != plan.ReasonEvaluation && f.Reason != plan.ReasonCollation {
			return fmt.Sprintf("forwarded: %v; the oracle has %d rows", f, want.Rows), ""
		}
		return "", f.Reason
	}
	if len(got.Columns) != len(want.Columns) || got.Rows != want.Rows {
		return fmt.Sprintf("%d rows, want %d", got.Rows, want.Rows), ""
	}
	var a, b []string
	for i := range got.Rows {
		a, b = append(a, rowText(got, i)), append(b, rowText(want, i))
	}
	// The order keys are outputs; they must agree place by place.
	for _, o := range q.Order {
		c := slices.IndexFunc(q.Output, func(e plan.Expr) bool { return e == o.Expr })
		for i := range got.Rows {
			x := rowText(&vector.Batch{Columns: got.Columns[c : c+1]}, i)
			y := rowText(&vector.Batch{Columns: want.Columns[c : c+1]}, i)
			if x != y && !(got.Columns[c].Type.Kind.IsFloat() && strings.TrimPrefix(x, "-") == strings.TrimPrefix(y, "-")) {
				return fmt.Sprintf("order: row %d has %s, want %s", i, x, y), ""
			}
		}
	}
	slices.Sort(a)
	slices.Sort(b)
	for i := range a {
		if a[i] != b[i] {
			return fmt.Sprintf("row %s\nwant %s", a[i], b[i]), ""
		}
	}
	return "", ""
}

// tally counts queries that random worlds were asked, by why they were not answered.
type tally struct {
	queries, failures int
	reasons           map[plan.Reason]int
}

// ask compares the answer to query n of a world with the oracle's.
func (c *tally) ask(t *testing.T, w *world, seed uint64, n int, q *plan.Star) {
	c.queries++
	problem, why := w.outcome(q, 1+n%3)
	if c.reasons == nil {
		c.reasons = map[plan.Reason]int{}
	}
	c.reasons[why]++
	if problem != "" {
		if c.failures++; c.failures < 8 {
			t.Errorf("seed %d query %d: %s\n%s", seed, n, problem, queryText(q))
		}
	}
}

// end fails the test where less than a share of the queries was answered.
func (c *tally) end(t *testing.T, share float64) {
	t.Logf("%d queries, %d wrong; %v", c.queries, c.failures, c.reasons)
	if float64(c.reasons[""]) < share*float64(c.queries) {
		t.Errorf("only %d of %d queries were answered", c.reasons[""], c.queries)
	}
}

func TestRandomQueriesAgainstOracle(t *testing.T) {
	worlds := 100
	if testing.Short() {
		worlds = 30
	}
	defer func(n int) { pruneRows = n }(pruneRows)
	pruneRows = 20
	tally := tally{}
	for seed := range uint64(worlds) {
		w := newWorld(t, seed)
		for n := range 30 {
			q := w.query()
			if n%6 == 5 {
				q = w.rowQuery()
			}
			tally.ask(t, w, seed, n, q)
		}
	}
	tally.end(t, 0.5)
}
