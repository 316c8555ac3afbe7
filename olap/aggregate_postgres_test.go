package olap

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// aggColumns are the columns of the tables that aggregates are compared over.
var aggColumns = []catalog.Column{
	{Name: "g", Type: vector.TypeOf(vector.Int4), NotNull: true},
	{Name: "i2", Type: vector.TypeOf(vector.Int2)},
	{Name: "i4", Type: vector.TypeOf(vector.Int4)},
	{Name: "i8", Type: vector.TypeOf(vector.Int8)},
	{Name: "n", Type: vector.NumericType(2)},
	{Name: "f4", Type: vector.TypeOf(vector.Float4)},
	{Name: "f8", Type: vector.TypeOf(vector.Float8)},
	{Name: "t", Type: textType(vector.Text, collC, -1)},
	{Name: "v", Type: textType(vector.Varchar, collC, 4+12)},
	{Name: "c", Type: textType(vector.BPChar, collC, 4+6)},
	{Name: "d", Type: vector.TypeOf(vector.Date)},
	{Name: "tm", Type: vector.TypeOf(vector.Time)},
	{Name: "ts", Type: vector.TypeOf(vector.Timestamp)},
	{Name: "tz", Type: vector.TypeOf(vector.TimestampTZ)},
	{Name: "b", Type: vector.TypeOf(vector.Bool)},
}

// aggSQL are those of their types that have other names in SQL.
var aggSQL = map[vector.Kind]string{vector.Numeric: "numeric(20,2)", vector.Text: `text collate "C"`, vector.Varchar: `varchar(12) collate "C"`, vector.BPChar: `char(6) collate "C"`}

// aggRows makes rows; with odd those of floats that are no numbers, and integers at the
// ends of their types.
func aggRows(r *rand.Rand, n int, odd bool) [][]vector.Datum {
	rows := make([][]vector.Datum, n)
	for i := range rows {
		row := make([]vector.Datum, len(aggColumns))
		for c, col := range aggColumns {
			k := col.Type.Kind
			d := vector.Datum{Type: col.Type}
			special := odd && r.IntN(40) == 0
			switch k {
			case vector.Int2, vector.Int4, vector.Int8:
				if d.I = int64(r.IntN(2000) - 700); special {
					d.I = map[vector.Kind][]int64{vector.Int2: {math.MinInt16, math.MaxInt16}, vector.Int4: {math.MinInt32, math.MaxInt32}, vector.Int8: {math.MinInt64, math.MaxInt64}}[k][r.IntN(2)]
				}
				if c == 0 {
					d.I = int64(r.IntN(9))
				}
			case vector.Numeric:
				if d.I = int64(r.IntN(1000000) - 1000); special {
					d.I = 999999999999999999
				}
			case vector.Float4, vector.Float8:
				f := math.Round(1000*math.Exp(2*r.NormFloat64())) / 1000
				if r.IntN(30) == 0 {
					f = 0
				}
				if special {
					f = []float64{math.Inf(1), math.Inf(-1), math.NaN(), math.Copysign(0, -1), 1e30, -1e-30}[r.IntN(6)]
				}
				if k == vector.Float4 {
					f = float64(float32(f))
				}
				if d.I = int64(math.Float64bits(f)); f != f {
					d.I = vector.NaNBits
				}
			case vector.Bool:
				d.I = int64(r.IntN(2))
			case vector.Date:
				if d.I = int64(r.IntN(4000)); special {
					d.I = []int64{sqltype.DayOf(-4713, 11, 24), sqltype.DayOf(5874897, 12, 31)}[r.IntN(2)]
				}
			case vector.Time:
				if d.I = r.Int64N(500) * sqltype.MicrosPerSecond; special {
					d.I = []int64{0, sqltype.MicrosPerDay}[r.IntN(2)]
				}
			case vector.Timestamp, vector.TimestampTZ:
				if d.I = r.Int64N(500) * sqltype.MicrosPerDay; special {
					d.I = []int64{sqltype.DayOf(-4713, 11, 24) * sqltype.MicrosPerDay, sqltype.DayOf(294277, 1, 1)*sqltype.MicrosPerDay - 1}[r.IntN(2)]
				}
			default:
				d.Str = []string{"a", "B", "c", "é", ""}[r.IntN(5)] + strconv.Itoa(r.IntN(20))
				if k == vector.BPChar {
					d.Str += strings.Repeat(" ", 6-utf8.RuneCountInString(d.Str))
				}
			}
			if !col.NotNull && (r.IntN(9) == 0 || row[0].I == 3) { // group 3 has only nulls
				d = vector.Null(col.Type)
			}
			row[c] = d
		}
		rows[i] = row
	}
	return rows
}

func copyRows(ctx context.Context, conn *pgx.Conn, table string, rows [][]vector.Datum) error {
	var ddl, names []string
	for _, c := range aggColumns {
		t, ok := aggSQL[c.Type.Kind]
		if !ok {
			t = c.Type.Kind.String()
		}
		ddl, names = append(ddl, c.Name+" "+t), append(names, c.Name)
	}
	if _, err := conn.Exec(ctx, fmt.Sprintf("create table %s (%s)", table, strings.Join(ddl, ", "))); err != nil {
		return err
	}
	// As text: the server reads every type from it.
	var b strings.Builder
	var dates sqltype.DateFormat
	for _, row := range rows {
		for c, d := range row {
			if c > 0 {
				b.WriteByte('\t')
			}
			switch k := d.Type.Kind; {
			case d.Null:
				b.WriteString(`\N`)
			case k.IsString():
				b.WriteString(d.Str)
			case k == vector.Numeric:
				b.WriteString(vector.Decimal{Unscaled: vector.Int128Of(d.I), Scale: d.Type.Scale}.String())
			case k.IsFloat():
				b.WriteString(strconv.FormatFloat(d.Float64(), 'g', -1, 64))
			default:
				b.Write(appendHeld(nil, &dates, k, d.I))
			}
		}
		b.WriteByte('\n')
	}
	_, err := conn.PgConn().CopyFrom(ctx, strings.NewReader(b.String()), fmt.Sprintf("copy %s (%s) from stdin", table, strings.Join(names, ", ")))
	return err
}

// appendHeld appends the text form of the word by which a value of a type is held.
func appendHeld(dst []byte, dates *sqltype.DateFormat, k vector.Kind, v int64) []byte {
	switch k {
	case vector.Bool:
		return strconv.AppendBool(dst, v != 0)
	case vector.Date:
		return dates.AppendDate(dst, v)
	case vector.Time:
		return sqltype.AppendTime(dst, v)
	case vector.Timestamp:
		return dates.AppendTimestamp(dst, v)
	case vector.TimestampTZ:
		return dates.AppendTimestampTZ(dst, v)
	}
	return sqltype.AppendInt(dst, v)
}

// aggCase is an aggregate as SQL and as a plan.
type aggCase struct {
	sql string
	agg plan.AggregateCall
	// near allows Postgres' own sum of floats to differ in its last digits.
	near bool
}

// aggCases are all aggregates over all columns that they take.
func aggCases() (out []aggCase) {
	column := func(c int) plan.Expr { return plan.Column{Column: c, T: aggColumns[c].Type} }
	filter := call(plan.OpGt, vector.Bool, column(2), integer(0))
	add := func(sql string, a plan.AggregateCall) {
		near := a.AddsFloats()
		out = append(out, aggCase{sql, a, near})
		a.Filter = filter
		out = append(out, aggCase{sql + " filter (where i4 > 0)", a, near})
	}
	for _, f := range sqlfn.Aggregates {
		if f.Star {
			add(f.String(), plan.AggregateCall{Func: f, T: f.Result(vector.Type{})})
			continue
		}
		for c, col := range aggColumns {
			a := plan.AggregateCall{Func: f, Arg: column(c)}
			if k := col.Type.Kind; f == plan.PercentileCont && (k.IsInt() || k.IsFloat() || k == vector.Numeric) && k != vector.Float8 {
				a.Arg = call(plan.OpCast, vector.Float8, a.Arg)
			}
			if a.T = f.Result(a.Arg.Type()); a.T.Kind == vector.Invalid {
				continue
			}
			if !f.OrderedSet() {
				add(f.String()+"("+col.Name+")", a)
				if a.Distinct = !f.Idempotent; a.Distinct {
					add(f.String()+"(distinct "+col.Name+")", a)
				}
				continue
			}
			for _, p := range []float64{0, 0.1, 0.5, 1.0 / 3, 0.99, 1} {
				a.Fraction = plan.Const{Datum: vector.Float(p)}
				for _, a.Desc = range []bool{false, true} {
					add(fmt.Sprintf("%s(%v) within group (order by %s%s)", f, p, col.Name, map[bool]string{true: " desc"}[a.Desc]), a)
				}
			}
		}
	}
	return out
}

// sameFloat compares as the text that the server sends, or nearly: Postgres' sums round
// after every row, ours once.
func sameFloat(bits int64, want string, near bool) bool {
	w, err := strconv.ParseFloat(want, 64)
	got := math.Float64frombits(uint64(bits))
	switch {
	case err != nil:
		return false
	case w != w:
		return bits == vector.NaNBits
	case got == w && math.Signbit(got) == math.Signbit(w):
		return true
	}
	return near && math.Abs(got-w) <= 1e-10*math.Max(math.Abs(w), 1e-3)
}

// TestAggregatesAgainstPostgres compares every aggregate of every type, grouped and not,
// with a server.
func TestAggregatesAgainstPostgres(t *testing.T) {
	ctx, conn := connected(t)
	r := rand.New(rand.NewPCG(5, 5))
	answered, forwarded, bad := 0, 0, 0
	var dates sqltype.DateFormat
	for name, odd := range map[string]bool{"plain": false, "odd": true} {
		rows := aggRows(r, 2500, odd)
		if err := copyRows(ctx, conn, name, rows); err != nil {
			t.Fatal(err)
		}
		meta := &catalog.Table{OID: 7, Schema: "public", Name: name, Columns: aggColumns}
		in := Input{Tables: []*colstore.Table{load(t, newStore(t, 1024), meta, rows)}}
		for _, grouped := range []bool{false, true} {
			for _, c := range aggCases() {
				value := c.sql
				if c.agg.T.Kind == vector.Float4 {
					value = "(" + value + ")::float8" // as it is held
				}
				sql := fmt.Sprintf("select '', (%s)::text from %s", value, name)
				q := &plan.Star{Tables: []plan.Source{{Meta: meta}}, Grouped: true, Aggs: []plan.AggregateCall{c.agg}, Output: []plan.Expr{plan.Agg{T: c.agg.T}}}
				if grouped {
					sql = fmt.Sprintf("select g::text, (%s)::text from %s group by g", value, name)
					q.Group = []plan.Expr{plan.Column{T: aggColumns[0].Type}}
					q.Output = append(q.Output, plan.Key{T: aggColumns[0].Type})
				}
				want := map[string]*string{}
				found, failure := conn.Query(ctx, sql)
				if failure == nil {
					var key string
					var v *string
					_, failure = pgx.ForEachRow(found, []any{&key, &v}, func() error {
						want[key] = v
						return nil
					})
				}
				got, err := Execute(ctx, q, in, Options{Workers: 2})
				var f *plan.Forward
				if err != nil {
					if !errors.As(err, &f) || f.Reason != plan.ReasonEvaluation {
						t.Fatalf("%s: %v", sql, err)
					}
					forwarded++
					if !odd {
						t.Errorf("%s: forwarded: %v", sql, err)
					}
					continue
				}
				answered++
				if failure != nil || got.Rows != len(want) {
					t.Fatalf("%s: %d rows, Postgres has %d, %v", sql, got.Rows, len(want), failure)
				}
				for i := range got.Rows {
					key := ""
					if grouped {
						key = fmt.Sprint(got.Columns[1].Ints[i])
					}
					col := &got.Columns[0]
					w := want[key]
					same := false
					switch {
					case col.IsNull(i) || w == nil:
						same = col.IsNull(i) && w == nil
					case col.Type.Kind.IsFloat():
						same = sameFloat(col.Ints[i], *w, c.near)
					case col.Type.Kind.IsString():
						same = col.Strs[i] == *w || col.Type.Kind == vector.BPChar && strings.TrimRight(col.Strs[i], " ") == *w
					case col.Type.Kind == vector.Numeric:
						same = col.Decimals[i].String() == *w
					default:
						same = string(appendHeld(nil, &dates, col.Type.Kind, col.Ints[i])) == *w
					}
					if bad += int(b2i(!same)); !same && bad < 20 {
						text := "null"
						if w != nil {
							text = *w
						}
						t.Errorf("%s: group %q has %s, Postgres says %s", sql, key, rowText(got, i), text)
					}
				}
			}
		}
	}
	t.Logf("%d queries answered, %d forwarded, %d differences", answered, forwarded, bad)
	if forwarded > answered/10 {
		t.Error("too many are forwarded")
	}
}
