package vector

import (
	"bufio"
	"context"
	"fmt"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pgaccel/internal/pgserver"
)

// varianceSample is a list of values of one scale.
type varianceSample struct {
	values []int64
	scale  int16
}

func (s varianceSample) sums() (n int64, x, x2 *big.Int) {
	x, x2 = new(big.Int), new(big.Int)
	for _, v := range s.values {
		b := big.NewInt(v)
		x.Add(x, b)
		x2.Add(x2, b.Mul(b, b))
	}
	return int64(len(s.values)), x, x2
}

func varianceSamples() []varianceSample {
	const top = 999999999999999999 // numeric(18, s)
	out := []varianceSample{
		{nil, 0}, {nil, 2}, {[]int64{0}, 0}, {[]int64{7}, 2}, {[]int64{5, 5}, 3}, {[]int64{-5, -5, -5}, 0},
		{[]int64{1, 2}, 0}, {[]int64{-1, 1}, 0}, {[]int64{0, 0, 1}, 18}, {[]int64{1, 2, 3, 4}, 2},
		{[]int64{top, -top}, 0}, {[]int64{top, -top}, 18}, {[]int64{top, top - 1}, 6}, {[]int64{top, -top, 0}, 9},
		{[]int64{1<<63 - 1, -1 << 63}, 0}, {[]int64{1<<63 - 1, 1<<63 - 2}, 0}, {[]int64{-1 << 63, -1 << 63, 0}, 0},
		{[]int64{9999, 10000}, 0}, {[]int64{9999, 10000, 10001}, 4}, {[]int64{0, 20000}, 4}, {[]int64{0, 2}, 4},
	}
	r := rand.New(rand.NewPCG(15, 4))
	for range 1500 {
		s := varianceSample{scale: int16(r.IntN(19))}
		span := int64(1) << r.IntN(60)
		from := int64(0)
		if r.IntN(2) == 0 {
			from = r.Int64N(span) - span/2
		}
		for range 1 + r.IntN(12) {
			s.values = append(s.values, max(-top, min(top, from+r.Int64N(span)-span/2)))
		}
		out = append(out, s)
	}
	return out
}

// TestVarianceAsPostgres compares all four functions with a server's, to the byte.
func TestVarianceAsPostgres(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	pg, err := pgserver.Start(ctx, pgserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer pg.Stop()
	conn, err := pgx.Connect(ctx, pg.URL("postgres", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	samples := varianceSamples()
	var rows strings.Builder
	w := bufio.NewWriter(&rows)
	for i, s := range samples {
		fmt.Fprintf(w, "%d,", i) // a row of nulls keeps the empty ones
		fmt.Fprintln(w)
		for _, v := range s.values {
			fmt.Fprintf(w, "%d,%s\n", i, Decimal{Int128Of(v), s.scale})
		}
	}
	w.Flush()
	for _, q := range []string{"CREATE TABLE v (i int, x numeric)"} {
		if _, err := conn.Exec(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.PgConn().CopyFrom(ctx, strings.NewReader(rows.String()), "COPY v FROM STDIN (FORMAT csv)"); err != nil {
		t.Fatal(err)
	}
	check := func(sql string, wanted func(varianceSample) bool) {
		t.Helper()
		res := conn.PgConn().ExecParams(ctx, sql, nil, nil, nil, nil).Read()
		if res.Err != nil {
			t.Fatal(res.Err)
		}
		compared := 0
		for _, row := range res.Rows {
			var i int
			fmt.Sscan(string(row[0]), &i)
			s := samples[i]
			if !wanted(s) {
				continue
			}
			n, x, x2 := s.sums()
			for k, f := range []struct{ sample, root bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
				d, null, ok := Variance(n, x, x2, s.scale, f.sample, f.root)
				got := d.String()
				if null {
					got = ""
				}
				compared++
				if want := string(row[k+1]); !ok || got != want || null != (row[k+1] == nil) {
					t.Errorf("%v scale %d %+v: %s (%v %v), want %s", s.values, s.scale, f, got, null, ok, want)
				}
			}
		}
		if compared == 0 {
			t.Error("nothing was compared")
		}
	}
	check("SELECT i, var_pop(x), var_samp(x), stddev_pop(x), stddev_samp(x) FROM v GROUP BY i", func(varianceSample) bool { return true })
	isInt := func(s varianceSample) bool { return s.scale == 0 }
	check(`SELECT i, var_pop(x::bigint), var_samp(x::bigint), stddev_pop(x::bigint), stddev_samp(x::bigint) FROM v
		WHERE i IN (SELECT i FROM v GROUP BY i HAVING max(scale(x)) = 0 OR max(x) IS NULL) GROUP BY i`, isInt)
	check(`SELECT i, var_pop(x::int), var_samp(x::int), stddev_pop(x::int), stddev_samp(x::int) FROM v
		WHERE i IN (SELECT i FROM v GROUP BY i HAVING max(scale(x)) = 0 AND max(abs(x)) < 2000000000) GROUP BY i`, isInt)
}

func FuzzVariance(f *testing.F) {
	f.Add(int64(3), int64(-4), int64(5), int16(2))
	f.Add(int64(1<<62), int64(-1<<62), int64(0), int16(0))
	f.Fuzz(func(t *testing.T, a, b, c int64, scale int16) {
		s := varianceSample{[]int64{a, b, c}, scale & 15}
		n, x, x2 := s.sums()
		v, null, ok := Variance(n, x, x2, s.scale, true, false)
		r, _, ok2 := Variance(n, x, x2, s.scale, true, true)
		if null || v.Unscaled.Sign() < 0 || r.Unscaled.Sign() < 0 {
			t.Fatal(v, null, r)
		}
		if !ok || !ok2 {
			return
		}
		// r is v's root: (r - 1/2)^2 <= v < (r + 1/2)^2 in units of the last place.
		two := new(big.Int).Lsh(r.Unscaled.Big(), 1)
		four := new(big.Int).Mul(v.Unscaled.Big(), BigPow10(int(v.Scale)))
		four.Lsh(four, 2)
		lo, hi := new(big.Int).Sub(two, big.NewInt(1)), new(big.Int).Add(two, big.NewInt(1))
		if two.Sign() > 0 && lo.Mul(lo, lo).Cmp(four) > 0 || hi.Mul(hi, hi).Cmp(four) <= 0 {
			t.Fatalf("root of %s is %s", v, r)
		}
	})
}

// TestVarianceWords compares words with math/big: samples of few and of many digits, alike and not.
func TestVarianceWords(t *testing.T) {
	samples := varianceSamples()
	r := rand.New(rand.NewPCG(3, 5))
	for range 20000 {
		s := varianceSample{scale: int16(r.IntN(7))}
		for range r.IntN(9) {
			s.values = append(s.values, r.Int64N(1<<r.IntN(31)+1)-r.Int64N(1<<r.IntN(20)+1))
		}
		samples = append(samples, s)
	}
	var known [2]int
	for _, s := range samples {
		n, x, x2 := s.sums()
		if !x.IsInt64() || !x2.IsUint64() {
			continue
		}
		for _, f := range []struct{ sample, root bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
			got, null, ok := VarianceWords(n, x.Int64(), x2.Uint64(), s.scale, f.sample, f.root)
			if !ok {
				continue
			}
			if f.root {
				known[1]++
			} else {
				known[0]++
			}
			want, wantNull, wantOK := Variance(n, x, x2, s.scale, f.sample, f.root)
			if got != want || null != wantNull || !wantOK {
				t.Fatalf("%v scale %d %+v: %v %v, want %v %v", s.values, s.scale, f, got, null, want, wantNull)
			}
		}
	}
	if known[0] < 20000 || known[1] < 10000 {
		t.Errorf("words did for %d variances and %d deviations only", known[0], known[1])
	}
}

func TestWordRoot(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 200000 {
		var w word128
		switch i % 3 {
		case 0:
			w.hi, w.lo = r.Uint64()>>(2+r.UintN(62)), r.Uint64()
		case 1: // next to a square
			a := r.Uint64() >> (1 + r.UintN(63))
			w.hi, w.lo = bits.Mul64(a, a)
			d := uint64(r.IntN(3)) - 1
			lo, carry := bits.Add64(w.lo, d, 0)
			if w.hi += carry + uint64(int64(d)>>63); w.hi>>62 != 0 {
				continue
			}
			w.lo = lo
		default:
			w.lo = r.Uint64() >> r.UintN(64)
		}
		want := new(big.Int).SetUint64(w.hi)
		want.Lsh(want, 64).Add(want, new(big.Int).SetUint64(w.lo)).Sqrt(want)
		if got := w.root(); got != want.Uint64() {
			t.Fatalf("root of %v is %d, not %v", w, got, want)
		}
	}
}
