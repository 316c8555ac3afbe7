package sqlfn

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// moments are random timestamps, many of them at the ends of months, of days and of leap years.
func moments(r *rand.Rand, n int) []int64 {
	list := make([]int64, n)
	for i := range list {
		day := sqltype.DayOf(int64(1896+r.IntN(140)), 1+r.IntN(12), 1) - int64(r.IntN(4)) + int64(r.IntN(2)*r.IntN(31))
		list[i] = day*dayMicros + []int64{0, 0, dayMicros - 1, r.Int64N(dayMicros), 3600e6}[r.IntN(5)]
	}
	return list
}

// TestAges compares the fields of random ages with the server's.
func TestAges(t *testing.T) {
	conn := connect(t)
	r := rand.New(rand.NewPCG(1, 2))
	all := append(moments(r, 400), sqltype.TimestampFirst, 0)
	for _, field := range ageParts {
		var rows []string
		text := func(v int64) string { return string(sqltype.Of(vector.Timestamp).AppendText(nil, v)) }
		for i := 1; i < len(all); i++ {
			rows = append(rows, fmt.Sprintf("(%d, timestamp '%s', timestamp '%s')", i, text(all[i]), text(all[i-1])))
		}
		got, err := conn.Query(context.Background(), fmt.Sprintf("SELECT extract(%s FROM age(a, b))::text, date_part('%[1]s', age(a, b)) FROM (VALUES %s) v(i, a, b) ORDER BY i", field, strings.Join(rows, ", ")))
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; got.Next(); i++ {
			var exact string
			var part float64
			if err := got.Scan(&exact, &part); err != nil {
				t.Fatal(err)
			}
			word, err := AgeOf.Eval([]vector.Value{{I: all[i]}, {I: all[i-1]}})
			if err != nil {
				t.Fatal(err)
			}
			args := []vector.Value{{Str: field}, word}
			x, _ := AgeExtract.Eval(args)
			p, _ := AgePart.Eval(args)
			if x.Num.String() != exact || math.Float64frombits(uint64(p.I)) != part {
				t.Fatalf("%s of age(%s, %s): %s and %v, the server has %s and %v", field, text(all[i]), text(all[i-1]), x.Num, math.Float64frombits(uint64(p.I)), exact, part)
			}
			k := AgeExtract.Kernel(Call{Args: []Arg{{Const: &args[0]}, {}}}, 1)
			if v, _ := k.F(word.I); v < k.Min || v > k.Max {
				t.Errorf("%s: %d is not within its bounds", field, v)
			}
		}
		if err := got.Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestIntervalTimes adds products of intervals to a timestamp, as the server does.
func TestIntervalTimes(t *testing.T) {
	conn := connect(t)
	r := rand.New(rand.NewPCG(3, 4))
	failures := 0
	for range 2000 {
		days, micros := int64(r.IntN(3)*(r.IntN(9)-4)), int64(r.IntN(2))*(r.Int64N(90000e6)-45000e6)
		by := []float64{float64(r.IntN(100) - 50), float64(r.IntN(100)-50) / 4, r.NormFloat64() * 100, math.NaN(), 0}[r.IntN(5)]
		text := IntervalText(0, days, micros)
		v, err := IntervalTimes.Eval([]vector.Value{{Str: text}, {I: int64(math.Float64bits(by))}})
		var want string
		wrong := conn.QueryRow(context.Background(), "SELECT (timestamp '2000-01-01' + $1::text::interval * $2::float8)::text", text, by).Scan(&want)
		if err != nil {
			failures++
			continue
		}
		if got := string(sqltype.Of(vector.Timestamp).AppendText(nil, v.I)); wrong != nil || got != want {
			t.Errorf("%s * %v: %s, the server has %s, %v", text, by, got, want, wrong)
		}
	}
	if failures > 1500 {
		t.Errorf("%d of 2000 are left to the server", failures)
	}
}

// TestDateBins compares date_bin() of random moments, many of them at the beginnings of bins.
func TestDateBins(t *testing.T) {
	conn := connect(t)
	r := rand.New(rand.NewPCG(5, 6))
	all := moments(r, 1000)
	text := func(v int64) string { return string(sqltype.Of(vector.Timestamp).AppendText(nil, v)) }
	for i := 1; i < len(all); i++ {
		by := []int64{900e6, 1, 7 * dayMicros, 1 + r.Int64N(1e12)}[r.IntN(4)]
		v, err := dateBin(by, all[i], all[i-1])
		if err != nil {
			if all[i] >= all[i-1] {
				t.Errorf("%s from %s: %v", text(all[i]), text(all[i-1]), err)
			}
			continue
		}
		var want string
		if err := conn.QueryRow(context.Background(), "SELECT date_bin($1::text::interval, $2::text::timestamp, $3::text::timestamp)::text", IntervalText(0, 0, by), text(all[i]), text(all[i-1])).Scan(&want); err != nil || text(v) != want {
			t.Errorf("date_bin(%d, %s, %s): %s, the server has %s, %v", by, text(all[i]), text(all[i-1]), text(v), want, err)
		}
	}
}
