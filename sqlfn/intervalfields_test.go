package sqlfn

import (
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// anyIntervals are intervals of any fields. Those at the ends of a field fail in most functions.
var anyIntervals = append([]string{"1 mon 29 days", "7 mons -3 days 11:13:17.000019", "-5 days +23:59:59.999999", "10 years 1 day", "1 microsecond", "30 days 24:00:00", "2 mons 00:00:00.1", "400 days 7 hours"},
	sqltype.OpaqueOf(sqltype.OID(vector.Interval)).Samples...)

// TestIntervalFunctions compares the functions of intervals of any fields with the server's, of which some fail near the ends.
func TestIntervalFunctions(t *testing.T) {
	conn := connect(t)
	if _, err := conn.Exec(t.Context(), `CREATE FUNCTION run(text) RETURNS text LANGUAGE plpgsql AS
		$$ DECLARE r text; BEGIN EXECUTE $1 INTO r; RETURN r; EXCEPTION WHEN others THEN RETURN 'error'; END $$`); err != nil {
		t.Fatal(err)
	}
	values := map[string]vector.Value{}
	for _, s := range anyIntervals {
		var raw []byte
		if err := conn.QueryRow(t.Context(), "SELECT interval_send($1::text::interval)", s).Scan(&raw); err != nil {
			t.Fatal(err)
		}
		values[s] = vector.Value{Str: string(raw)}
	}
	type call struct {
		sql  string
		f    *Function
		args []vector.Value
	}
	calls := map[string][]call{}
	add := func(name, sql string, f *Function, args ...vector.Value) {
		calls[name] = append(calls[name], call{sql, f, args})
	}
	sent := func(sql string) string { return "SELECT encode(interval_send(" + sql + "), 'hex')" }
	for _, a := range anyIntervals {
		l := "interval '" + a + "'"
		add("-", sent("-"+l), IntervalNegated, values[a])
		for _, b := range anyIntervals {
			add("+", sent(l+" + interval '"+b+"'"), IntervalPlus, values[a], values[b])
			add("- -", sent(l+" - interval '"+b+"'"), IntervalMinus, values[a], values[b])
		}
		for _, by := range []float64{0, 1, -1, 2, 0.5, 1.0 / 3, -0.1, 7, 1e-3, 12.34, 1e6, 1e300, math.NaN()} {
			v := vector.Value{I: int64(math.Float64bits(by))}
			add("*", sent(fmt.Sprintf("%s * '%v'::float8", l, by)), IntervalTimesFloat, values[a], v)
			add("/", sent(fmt.Sprintf("%s / '%v'::float8", l, by)), IntervalOverFloat, values[a], v)
		}
		for _, field := range extractedParts {
			add("extract", fmt.Sprintf("SELECT extract(%s FROM %s)", field, l), IntervalExtract, vector.Value{Str: field}, values[a])
			add("date_part", fmt.Sprintf("SELECT date_part('%s', %s)", field, l), IntervalPart, vector.Value{Str: field}, values[a])
		}
		for _, at := range timestampSamples {
			add("timestamp +", fmt.Sprintf("SELECT timestamp '%s' + %s", at, l), TimestampPlus, parse(t, vector.Timestamp, "'"+at+"'"), values[a])
		}
	}
	for name, list := range calls {
		t.Run(name, func(t *testing.T) {
			var statements []string
			for _, c := range list {
				statements = append(statements, c.sql)
			}
			want := runAll(t, conn, statements)
			answered := 0
			for i, c := range list {
				v, err := c.f.Eval(c.args)
				if err != nil {
					continue
				}
				answered++
				got := ""
				switch c.f.Result {
				case vector.Opaque:
					got = hex.EncodeToString([]byte(v.Str))
				case vector.Numeric:
					got = v.Num.String()
				case vector.Float8:
					got = string(sqltype.Of(vector.Float8).AppendText(nil, v.I))
				default:
					got = string(sqltype.Of(c.f.Result).AppendText(nil, v.I))
				}
				if got != want[i] {
					t.Errorf("%s: %s, the server has %s", c.sql, got, want[i])
				}
			}
			if answered*5 < len(list)*2 {
				t.Errorf("%d of %d are answered", answered, len(list))
			}
		})
	}
}

// TestIntervalSums compares sums and averages of intervals with the server's, and the bytes by which they sort.
func TestIntervalSums(t *testing.T) {
	conn := connect(t)
	for _, list := range [][]string{{"1 day", "2 days 03:00:00"}, {"1 mon", "-5 days +10:00:00", "23:59:59.999999"}, {"1 mon", "1 mon", "1 day"}, {"7 days", "1 day", "00:00:01"}, {"-1 mon", "-1 day -00:00:00.000001", "1 year"},
		{"10 mons", "11 days", "-12:13:14.151617", "1 mon 1 day", "100 days", "3 mons", "5 hours"}, {"2147483645 days"}} {
		var rows []string
		var months, days, micros int64
		for i, s := range list {
			rows = append(rows, fmt.Sprintf("(%d, interval '%s')", i, s))
			var raw []byte
			if err := conn.QueryRow(t.Context(), "SELECT interval_send($1::text::interval)", s).Scan(&raw); err != nil {
				t.Fatal(err)
			}
			for _, p := range []struct {
				sum *int64
				f   *Function
			}{{&months, IntervalMonths}, {&days, IntervalDays}, {&micros, IntervalMicros}} {
				v, _ := p.f.Eval([]vector.Value{{Str: string(raw)}})
				*p.sum += v.I
			}
		}
		args := []vector.Value{{I: months}, {}, {I: days}, {}, {I: micros}, {}, {I: int64(len(list))}}
		var sum, mean []byte
		err := conn.QueryRow(t.Context(), "SELECT interval_send(sum(x)), interval_send(avg(x)) FROM (VALUES "+strings.Join(rows, ", ")+") v(i, x)").Scan(&sum, &mean)
		if err != nil {
			t.Fatal(list, err)
		}
		s, sumErr := IntervalSum.Eval(args[:6])
		m, meanErr := IntervalMean.Eval(args)
		if sumErr != nil || meanErr != nil || s.Str != string(sum) || m.Str != string(mean) {
			t.Errorf("%v: sum %x, avg %x, the server has %x and %x", list, s.Str, m.Str, sum, mean)
		}
	}
	for i, a := range anyIntervals {
		for _, b := range anyIntervals[:i] {
			var want int
			var x, y []byte
			if err := conn.QueryRow(t.Context(), "SELECT interval_cmp(a, b), interval_send(a), interval_send(b) FROM (SELECT $1::text::interval, $2::text::interval) v(a, b)", a, b).Scan(&want, &x, &y); err != nil {
				t.Fatal(err)
			}
			k, _ := IntervalKey.Eval([]vector.Value{{Str: string(x)}})
			l, _ := IntervalKey.Eval([]vector.Value{{Str: string(y)}})
			if got := strings.Compare(k.Str, l.Str); got != want {
				t.Errorf("%s and %s: %d, the server has %d", a, b, got, want)
			}
			if months, days, micros := sqltype.IntervalFields(string(x)); months == 0 {
				if v, ok := sqltype.WholeInterval(months, days, micros); ok {
					w, _ := IntervalWordKey.Eval([]vector.Value{{I: v}})
					of, _ := IntervalOf.Eval([]vector.Value{{I: v}})
					if w != k || of.Str != string(x) {
						t.Errorf("%s has another key or other fields as a word", a)
					}
				}
			}
		}
	}
}

// TestSizes adds sizes up to the ends of 32 and of 64 bits.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		f       *Function
		v, want int64
	}{{SizeOfInt4, 0, 0}, {SizeOfInt4, -1, 1 << 32}, {SizeOfInt4, math.MaxInt32, math.MaxInt32 << 32}, {SizeOfInt4, math.MinInt32, math.MaxInt64}, {SizeOfInt8, 5, 5}, {SizeOfInt8, -math.MaxInt64, math.MaxInt64}, {SizeOfInt8, math.MinInt64, math.MaxInt64}} {
		v, _ := c.f.Eval([]vector.Value{{I: c.v}})
		k := c.f.Kernel(Call{}, 0)
		w, _ := k.F(c.v)
		if lo, hi, _ := k.Range(min(c.v, 0), max(c.v, 3)); v.I != c.want || w != c.want || lo != 0 || hi < c.want {
			t.Errorf("the size of %d is %d and %d, within %d and %d; want %d", c.v, v.I, w, lo, hi, c.want)
		}
	}
}
