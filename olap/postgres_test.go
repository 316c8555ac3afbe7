package olap

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pgaccel/catalog"
	"pgaccel/internal/oracle"
	"pgaccel/internal/pgserver"
	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// probeCase is an expression as SQL and as a plan.
type probeCase struct {
	sql string
	e   plan.Expr
}

// readsFewer reports whether the server reads more than is read here: text as other than an integer.
func (p *probeCase) readsFewer() bool {
	c, ok := p.e.(*plan.Call)
	return ok && c.Op == plan.OpCast && c.Args[0].Type().Kind.IsText() && !c.T.Kind.IsText() && !c.T.Kind.IsInt()
}

func timeLiteral(k vector.Kind, v int64) string {
	switch {
	case k == vector.Date && v == math.MinInt32, k != vector.Date && v == math.MinInt64:
		return fmt.Sprintf("'-infinity'::%s", k)
	case k == vector.Date && v == math.MaxInt32, k != vector.Date && v == math.MaxInt64:
		return fmt.Sprintf("'infinity'::%s", k)
	case k == vector.Date:
		return fmt.Sprintf("(date '2000-01-01' + %d)", v)
	case k == vector.Time:
		if v == dayMicros {
			return "time '24:00:00'"
		}
		return fmt.Sprintf("(time '00:00' + interval '%d microseconds')", v)
	}
	// Days and microseconds apart: an interval in microseconds is added exactly.
	day := sqltype.FloorDiv(v, dayMicros)
	return fmt.Sprintf("(%s '2000-01-01 00:00' + interval '%d days' + interval '%d microseconds')", k, day, v-day*dayMicros)
}

func constant(d vector.Datum) plan.Expr { return plan.Const{Datum: d} }

// calendarCases covers every field of every kind at days around the changes of
// week, year, leap year, century and era.
func calendarCases() (out []probeCase) {
	var days []int64
	for _, y := range []int64{-4712, -400, -99, -1, 0, 1, 4, 100, 1582, 1599, 1600, 1899, 1900, 1970, 1999, 2000, 2001, 2004, 2015, 2020, 2024, 2026, 9999, 294276} {
		for _, d := range []int64{sqltype.DayOf(y, 1, 1), sqltype.DayOf(y, 1, 4), sqltype.DayOf(y, 2, 28), sqltype.DayOf(y, 3, 1), sqltype.DayOf(y, 7, 15), sqltype.DayOf(y, 12, 28), sqltype.DayOf(y, 12, 31)} {
			days = append(days, d, d+1, d-1)
		}
	}
	fields := []string{"year", "quarter", "month", "day", "dow", "isodow", "doy", "week", "isoyear", "hour", "minute", "second", "epoch"}
	for i, day := range days {
		micros := []int64{0, 1, dayMicros - 1, 45296789012, 3600000000}[i%5]
		for _, k := range []vector.Kind{vector.Date, vector.Timestamp, vector.TimestampTZ, vector.Time} {
			v := day
			switch k {
			case vector.Timestamp, vector.TimestampTZ:
				v = day*dayMicros + micros
			case vector.Time:
				if v = micros; i%7 == 0 {
					v = dayMicros
				}
			}
			if v >= 9223371331200000000 {
				continue // no timestamp
			}
			arg := constant(vector.Int(k, v))
			text := timeLiteral(k, v)
			for _, f := range fields {
				if !sqlfn.Lookup("extract", vector.Text, k).Args[0].Takes(f) {
					continue
				}
				out = append(out, probeCase{fmt.Sprintf("extract(%s from %s)", f, text), timeFunction("extract", f, arg)})
				if i%9 == 0 && k != vector.Date {
					out = append(out, probeCase{fmt.Sprintf("date_part('%s', %s)", f, text), timeFunction("date_part", f, arg)})
				}
			}
			if k == vector.Timestamp || k == vector.TimestampTZ {
				for _, f := range []string{"year", "quarter", "month", "week", "day", "hour", "minute", "second"} {
					out = append(out, probeCase{fmt.Sprintf("date_trunc('%s', %s)", f, text),
						timeFunction("date_trunc", f, arg)})
				}
				out = append(out, probeCase{fmt.Sprintf("%s::date", text), call(plan.OpCast, vector.Date, arg)})
			}
			out = append(out, probeCase{fmt.Sprintf("(%s)::text", text), call(plan.OpCast, vector.Text, arg)})
			if k == vector.Date {
				out = append(out, probeCase{fmt.Sprintf("%s::timestamp", text), call(plan.OpCast, vector.Timestamp, arg)},
					probeCase{fmt.Sprintf("%s + 40", text), call(plan.OpAdd, vector.Date, arg, integer(40))},
					probeCase{fmt.Sprintf("%s - date '2000-02-29'", text), call(plan.OpSub, vector.Int4, arg, constant(vector.Int(vector.Date, 59)))})
			}
		}
	}
	return out
}

func numericCases() (out []probeCase) {
	numbers := []string{"0", "1", "-1", "0.5", "-0.5", "2.5", "-2.5", "1.49", "99.99", "-99.99", "123456789.125", "0.000001", "99999999999999.9999", "12345678901234567890.5"}
	num := func(s string) plan.Expr {
		d, ok := vector.ParseDecimal(s)
		if !ok {
			panic("BUG: " + s)
		}
		return constant(vector.Datum{Type: vector.NumericType(d.Scale), Num: d})
	}
	scaleOf := func(e plan.Expr) int16 { return e.Type().Scale }
	add := func(sql string, op plan.Op, t vector.Type, args ...plan.Expr) {
		out = append(out, probeCase{sql, &plan.Call{Op: op, T: t, Args: args}})
	}
	for _, a := range numbers {
		x := num(a)
		for _, t := range []vector.Kind{vector.Int2, vector.Int4, vector.Int8, vector.Float8} {
			add(fmt.Sprintf("(%s)::numeric::%s", a, t), plan.OpCast, vector.TypeOf(t), x)
		}
		for s := int16(0); s < 6; s++ {
			t := vector.NumericType(s)
			t.Typmod = int32(10)<<16 | int32(s) + 4
			add(fmt.Sprintf("(%s)::numeric(10,%d)", a, s), plan.OpCast, t, x)
		}
		add("("+a+")::numeric::text", plan.OpCast, vector.TypeOf(vector.Text), x)
		add("-("+a+")", plan.OpNeg, x.Type(), x)
		add("abs("+a+")", plan.OpAbs, x.Type(), x)
		for _, b := range numbers {
			y := num(b)
			s := max(scaleOf(x), scaleOf(y))
			add(fmt.Sprintf("(%s)::numeric + (%s)::numeric", a, b), plan.OpAdd, vector.NumericType(s), x, y)
			add(fmt.Sprintf("(%s)::numeric - (%s)::numeric", a, b), plan.OpSub, vector.NumericType(s), x, y)
			add(fmt.Sprintf("(%s)::numeric * (%s)::numeric", a, b), plan.OpMul, vector.NumericType(scaleOf(x)+scaleOf(y)), x, y)
			add(fmt.Sprintf("(%s)::numeric / (%s)::numeric", a, b), plan.OpDiv, vector.NumericType(vector.VaryingScale), x, y)
			add(fmt.Sprintf("(%s)::numeric %% (%s)::numeric", a, b), plan.OpMod, vector.NumericType(s), x, y)
			add(fmt.Sprintf("(%s)::numeric < (%s)::numeric", a, b), plan.OpLt, vector.TypeOf(vector.Bool), x, y)
		}
	}
	ints := []int64{0, 1, -1, 2, 7, -7, math.MinInt32, math.MaxInt32}
	for _, a := range ints {
		for _, b := range ints {
			for op, text := range map[plan.Op]string{plan.OpAdd: "+", plan.OpSub: "-", plan.OpMul: "*", plan.OpDiv: "/", plan.OpMod: "%"} {
				add(fmt.Sprintf("(%d)::int %s (%d)::int", a, text, b), op, vector.TypeOf(vector.Int4), integer(a), integer(b))
			}
		}
		for _, t := range []vector.Kind{vector.Int2, vector.Int8, vector.Float8, vector.Text} {
			add(fmt.Sprintf("(%d)::int::%s", a, t), plan.OpCast, vector.TypeOf(t), integer(a))
		}
	}
	for _, a := range []float64{0, math.Copysign(0, -1), 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999999999999994, 32767.49, 32767.5, -32768.5, -32768.51,
		2147483647.4, 2147483647.5, -2147483648.5, -2147483648.6, 4503599627370497.5, 9223372036854774784, 9223372036854775807, -9223372036854775808, -9223372036854777856,
		1e300, math.Inf(1), math.Inf(-1), math.NaN()} {
		for _, t := range []vector.Kind{vector.Int2, vector.Int4, vector.Int8} {
			lit := strconv.FormatFloat(a, 'g', -1, 64)
			add(fmt.Sprintf("'%s'::float8::%s", lit, t), plan.OpCast, vector.TypeOf(t), constant(vector.Float(a)))
			if narrow := float64(float32(a)); math.Abs(a) < 1e38 || math.IsInf(a, 0) || math.IsNaN(a) {
				x := vector.Float(narrow)
				x.Type = vector.TypeOf(vector.Float4)
				add(fmt.Sprintf("'%s'::float8::float4::%s", lit, t), plan.OpCast, vector.TypeOf(t), constant(x))
			}
		}
	}
	floats := []float64{0, math.Copysign(0, -1), 1.5, -2.25, 1e308, -1e308, 1e-308, math.Inf(1), math.Inf(-1), math.NaN()}
	for _, a := range floats {
		for _, b := range floats {
			x, y := constant(vector.Float(a)), constant(vector.Float(b))
			lit := func(f float64) string { return "'" + strconv.FormatFloat(f, 'g', -1, 64) + "'::float8" }
			for op, text := range map[plan.Op]string{plan.OpAdd: "+", plan.OpSub: "-", plan.OpMul: "*", plan.OpDiv: "/"} {
				add(fmt.Sprintf("%s %s %s", lit(a), text, lit(b)), op, vector.TypeOf(vector.Float8), x, y)
			}
			for op, text := range map[plan.Op]string{plan.OpEq: "=", plan.OpLt: "<", plan.OpGe: ">=", plan.OpDistinct: "is distinct from"} {
				add(fmt.Sprintf("%s %s %s", lit(a), text, lit(b)), op, vector.TypeOf(vector.Bool), x, y)
			}
		}
	}
	return out
}

func textCases() (out []probeCase) {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	patterns := []string{"", "%", "_", "a%", "%a", "%a%", "a_", `\%`, `a\`, `%\`, "%%b", "_%_", `\a%`, "é", "_b", "%é_", "a%b%c", "%_", "A%", "abc", "%ab%ab%"}
	for _, s := range []string{"", "a", "ab", "abc", "é", "aéb", "AÉB", "%", "a%", "ababab", "ABC", "a     "} {
		x := constant(vector.String(s))
		for _, p := range patterns {
			y := constant(vector.String(p))
			out = append(out, probeCase{fmt.Sprintf("%s::text like %s::text", quote(s), quote(p)), call(plan.OpLike, vector.Bool, x, y)})
			c := call(plan.OpLike, vector.Bool, x, y)
			c.Insensitive, c.Func = true, sqlfn.ByOID(sqlfn.OIDLower).InASCII
			out = append(out, probeCase{fmt.Sprintf("%s::text ilike %s::text collate \"C\"", quote(s), quote(p)), c})
		}
		padded := s + strings.Repeat(" ", max(0, 6-len([]rune(s))))
		bp := constant(vector.Datum{Type: textType(vector.BPChar, collC, 10), Str: padded})
		for _, p := range patterns {
			out = append(out, probeCase{fmt.Sprintf("%s::char(6) like %s::text", quote(s), quote(p)), call(plan.OpLike, vector.Bool, bp, constant(vector.String(p)))})
		}
		out = append(out, probeCase{fmt.Sprintf("%s::char(6)::text", quote(s)), call(plan.OpCast, vector.Text, bp)})
		for _, o := range []string{"a", "a ", "b", "ab"} {
			ob := constant(vector.Datum{Type: textType(vector.BPChar, collC, -1), Str: o})
			for op, text := range map[plan.Op]string{plan.OpEq: "=", plan.OpLt: "<", plan.OpGe: ">="} {
				out = append(out, probeCase{fmt.Sprintf("%s::char(6) %s %s::bpchar", quote(s), text, quote(o)), call(op, vector.Bool, bp, ob)})
			}
		}
	}
	for _, s := range []string{"", " ", "0", "-0", "+7", "- 7", "+-7", "-", "+", " 12 ", "\t\n\v\f\r12\r", "\u00a012", "12\u2003", "1 2", "1.0", "1e3", "12a", "x", "0012", "０", "٣",
		"32767", "32768", "-32768", "-32769", "2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
		"-9223372036854775809", "00000000000000000000000000000012", "99999999999999999999999999", "NaN", "infinity", "true", "'5'",
		"-infinity", "-inf", "inf", "+Inf", "-nan", "nan", " nAn", "1.50", ".5", "5.", ".", "-.5e1", "1e", "e5", "1e+3", "1E-3", "1.5e3", "1.50e1", "12e400", "1e-400", "1e308", "4.9e-324", "1e-324", "3.4e38", "3.5e38", "1e-46",
		"0.1", "-0.0", "- 1", "--1", "+-1", "1e5 ", "1 e5", "1e 5", "123456789012345678901234567890.123456789", "1f", "1d", "1.0.0", "1,5", "1e2147483648", "00", "-00.00", "１.５",
		"t", "T", "tr", "TRUE", " tRue ", "yes", "ye", "y", "on", "o", "off", "of", "OFF", "no", "f", "fals", "FALSE", "2", "tru e",
		"2024-02-29", " 2024-02-29 ", "2023-02-29", "2024-2-9", "20240229", "2024-02-29 12:34:56", "2024-02-29T12:34:56.789Z", "2024-02-29 12:34:56.1234567", "2024-02-29 12:34", "2024-02-29 24:00:00", "2024-02-29 12:34:60",
		"2024-02-29 12:34:56+02", "2024-02-29 12:34:56 +02:30", "2024-02-29T12:34:56-0800", "2024-02-29 Z", "2024-02-29  12:34:56", "2024-02-29T12:34:56.5+05:30:15", "0044-03-15 BC", "0000-01-01", "10000-01-01", "2024-13-01", "2024-00-01", "4714-11-24 BC", "5874897-12-31", "294277-01-01", "294276-12-31 23:59:59.999999",
		"now", "today", "epoch", "Jan 1 2024", "01/02/2024", "2024-001", "12:34:56", "12:34", "24:00:00", "24:00:01", "12:34:56.7891234", "12:34 PM", "12:34:56+02", "12", "1234", "23:59:60", "T12:34:56"} {
		for _, t := range []vector.Kind{vector.Int2, vector.Int4, vector.Int8, vector.Bool, vector.Float4, vector.Float8, vector.Date, vector.Time, vector.Timestamp, vector.TimestampTZ, vector.Numeric} {
			call := call
			if t == vector.Numeric {
				call = func(op plan.Op, _ vector.Kind, args ...plan.Expr) *plan.Call {
					return &plan.Call{Op: op, T: vector.NumericType(vector.VaryingScale), Args: args}
				}
			}
			for _, from := range []vector.Kind{vector.Text, vector.Varchar} {
				x := constant(vector.Datum{Type: textType(from, collC, -1), Str: s})
				out = append(out, probeCase{fmt.Sprintf("%s::%s::%s", quote(s), from, t), call(plan.OpCast, t, x)})
			}
			bp := constant(vector.Datum{Type: textType(vector.BPChar, collC, 44), Str: s + strings.Repeat(" ", max(0, 40-len([]rune(s))))})
			out = append(out, probeCase{fmt.Sprintf("%s::char(40)::%s", quote(s), t), call(plan.OpCast, t, bp)})
		}
	}
	yes, no, null := constant(vector.Int(vector.Bool, 1)), constant(vector.Int(vector.Bool, 0)), constant(vector.Null(vector.TypeOf(vector.Bool)))
	names := map[plan.Expr]string{yes: "true", no: "false", null: "null::bool"}
	for a, at := range names {
		for b, bt := range names {
			out = append(out, probeCase{at + " and " + bt, call(plan.OpAnd, vector.Bool, a, b)}, probeCase{at + " or " + bt, call(plan.OpOr, vector.Bool, a, b)},
				probeCase{at + " is distinct from " + bt, call(plan.OpDistinct, vector.Bool, a, b)}, probeCase{at + " in (false, " + bt + ")", call(plan.OpIn, vector.Bool, a, no, b)})
		}
		out = append(out, probeCase{"not " + at, call(plan.OpNot, vector.Bool, a)}, probeCase{at + " is true", call(plan.OpIsTrue, vector.Bool, a)}, probeCase{at + " is false", call(plan.OpIsFalse, vector.Bool, a)})
	}
	return out
}

// sqlOf renders a result so that Postgres can render the same; null is "null".
func sqlOf(e plan.Expr) string {
	switch t := e.Type(); {
	case t.Kind == vector.Date:
		return "case when isfinite(x) then (x - date '2000-01-01')::text else x::text end"
	case t.Kind == vector.Timestamp || t.Kind == vector.TimestampTZ:
		return "case when isfinite(x) then (extract(epoch from x) * 1000000 - 946684800000000)::numeric(30,0)::text else x::text end"
	case t.Kind == vector.Bool:
		return "x::int::text"
	case t.Kind == vector.Time:
		return "(extract(epoch from x) * 1000000)::bigint::text"
	case t.Kind == vector.Float4:
		return "x::float8::text"
	}
	return "x::text"
}

func render(v vector.Value, t vector.Type) string {
	switch {
	case v.Null:
		return "null"
	case t.Kind.HeldAsText():
		return v.Str
	case t.Kind.IsString():
		return string(sqltype.Of(t.Kind).AppendString(nil, v.Str))
	case t.Kind == vector.Numeric:
		return v.Num.String()
	case t.Kind.IsFloat():
		f := math.Float64frombits(uint64(v.I))
		if math.IsInf(f, 0) {
			return strings.TrimPrefix(map[bool]string{true: "Infinity", false: "-Infinity"}[f > 0], "+")
		}
		return strconv.FormatFloat(f, 'g', -1, 64)
	case infinite(t.Kind, v.I):
		return map[bool]string{true: "infinity", false: "-infinity"}[v.I > 0]
	}
	return strconv.FormatInt(v.I, 10)
}

// connected starts a server and returns a connection to it, for three minutes at most.
func connected(t *testing.T) (context.Context, *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	server, err := pgserver.Start(ctx, pgserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	conn, err := pgx.Connect(ctx, server.URL("postgres", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(ctx) })
	return ctx, conn
}

// TestFunctionsAgainstPostgres compares both evaluators, olap's and the oracle's,
// with a server, function by function. Where Postgres raises an error both must
// forward; where it does not, they may only by the documented exceptions.
func TestFunctionsAgainstPostgres(t *testing.T) {
	ctx, conn := connected(t)
	if _, err := conn.Exec(ctx, "set timezone = 'UTC'"); err != nil {
		t.Fatal(err)
	}
	// One statement an expression, so that an error is one expression's.
	if _, err := conn.Exec(ctx, `create function run(text) returns text language plpgsql as
		$$ declare r text; begin execute $1 into r; return coalesce(r, 'null'); exception when others then return 'error ' || sqlerrm; end $$`); err != nil {
		t.Fatal(err)
	}
	cases := append(append(calendarCases(), numericCases()...), textCases()...)
	var texts []string
	for _, c := range cases {
		texts = append(texts, fmt.Sprintf("select %s from (select %s as x) q", sqlOf(c.e), c.sql))
	}
	rows, err := conn.Query(ctx, "select run(s) from unnest($1::text[]) with ordinality u(s, n) order by n", texts)
	if err != nil {
		t.Fatal(err)
	}
	want, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	one := &catalog.Table{Columns: shape[:1]}
	bad, beyond, fewer := 0, 0, 0
	for i, c := range cases {
		got, err := (&env{}).eval(c.e)
		text := ""
		if err == nil {
			text = render(got, c.e.Type())
		}
		q := &plan.Star{Tables: []plan.Source{{Meta: one}}, Output: []plan.Expr{c.e}}
		b, oracleErr := oracle.Run(q.Tree(), func(int) [][]vector.Datum { return [][]vector.Datum{{vector.Int(vector.Int4, 1)}} }, nil)
		oracleText := ""
		if oracleErr == nil {
			col := &b.Columns[0]
			v := vector.Value{Null: col.IsNull(0)}
			switch {
			case v.Null:
			case col.Strs != nil:
				v.Str = col.Strs[0]
			case col.Decimals != nil:
				v.Num = col.Decimals[0]
			default:
				v.I = col.Ints[0]
			}
			oracleText = render(v, c.e.Type())
		}
		if c.e.Type().Kind.IsFloat() && !strings.HasPrefix(want[i], "error") {
			f, err := strconv.ParseFloat(want[i], 64)
			if err != nil && want[i] != "null" {
				t.Fatalf("%s: %v", c.sql, err)
			} else if err == nil {
				want[i] = render(vector.Value{I: int64(math.Float64bits(f))}, c.e.Type())
			}
		}
		failed := strings.HasPrefix(want[i], "error")
		for who, r := range map[string]struct {
			text string
			err  error
		}{"olap": {text, err}, "oracle": {oracleText, oracleErr}} {
			switch {
			case failed && r.err != nil, !failed && r.err == nil && r.text == want[i]:
			case !failed && r.err != nil && c.readsFewer():
				fewer++
			case !failed && r.err != nil && strings.Contains(c.sql, "epoch") && strings.Contains(c.sql, "+ interval '10675"):
				// Beyond 64 bits Postgres computes in doubles.
			case !failed && r.err != nil && strings.Contains(c.sql, "numeric") && len(strings.Trim(want[i], "-.")) > 38:
				beyond++ // more than 127 bits
			default:
				if bad++; bad < 30 {
					t.Errorf("%s: %s says %q (%v), Postgres %q", c.sql, who, r.text, r.err, want[i])
				}
			}
		}
	}
	t.Logf("%d expressions, %d differences, %d results beyond 128 bits, %d texts not read", len(cases), bad, beyond, fewer)
	if beyond > 8 {
		t.Errorf("%d results were beyond 128 bits", beyond)
	}
}
