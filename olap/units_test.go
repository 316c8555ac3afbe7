package olap

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

const (
	secondMicros = sqltype.MicrosPerSecond
	minuteMicros = 60 * secondMicros
	hourMicros   = 60 * minuteMicros
	dayMicros    = sqltype.MicrosPerDay
)

// firstMicro and lastMicro are the first and the last timestamp.
const firstMicro, lastMicro = -2451545 * dayMicros, 9223371331200000000 - 1

func TestUnits(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 21))
	near := func(v int64) int64 { return min(max(v+r.Int64N(2000)-1000, firstMicro), lastMicro) }
	orders := map[string]func(n int) []int64{
		"sorted": func(n int) []int64 {
			v, at := make([]int64, n), r.Int64N(1<<50)
			for i := range v {
				at += r.Int64N(40 * hourMicros)
				v[i] = at
			}
			return v
		},
		"nearly sorted": func(n int) []int64 {
			v, at := make([]int64, n), r.Int64N(1<<50)
			for i := range v {
				at += r.Int64N(minuteMicros)
				v[i] = at + r.Int64N(20*secondMicros)
			}
			return v
		},
		"random": func(n int) []int64 {
			v := make([]int64, n)
			for i := range v {
				v[i] = min(max(int64(r.Uint64())>>r.IntN(20), firstMicro), lastMicro)
			}
			return v
		},
		"ends": func(n int) []int64 {
			v := make([]int64, n)
			for i := range v {
				day := r.Int64N(800)*dayMicros + 7*dayMicros
				v[i] = near([]int64{firstMicro + day, lastMicro - day, lastMicro, day, -day}[r.IntN(5)])
			}
			return v
		},
	}
	checked := map[string]int{}
	for _, field := range []string{"year", "quarter", "month", "week", "day", "hour", "minute", "second", "dow", "isodow", "doy"} {
		var f func(v int64) (int64, error)
		check := func(kind string, x *node) {
			w := &worker{bufs: make([]buffers, 1)}
			for name, order := range orders {
				for _, n := range []int{0, 1, 63, 64, 65, 127, 128, 129, 511, 512, 513, tileRows} {
					for range 3 {
						v := order(n)
						got, want := make([]int64, n), make([]int64, n)
						fails := false // units that begin before the first timestamp
						for i := range v {
							var err error
							if want[i], err = f(v[i]); err != nil {
								want[i], fails = x.lo, true
							}
						}
						w.err = nil
						if w.mapUnits(x, vec{v: v}, got); !slices.Equal(got, want) || (w.err != nil) != fails {
							t.Fatalf("%s %s of %d values, %s: %v, %v instead of %v", kind, field, n, name, w.err, got, want)
						}
					}
				}
			}
		}
		for _, name := range []string{"date_trunc", "extract"} {
			k := timeKernel(name, field)
			if k == nil || k.Around == nil {
				continue
			}
			f = k.F
			check(name, &node{around: k.Around, f: f})
			checked[name]++
		}
	}
	if checked["date_trunc"] != 8 || checked["extract"] != 10 {
		t.Errorf("%v", checked)
	}
}

// timeKernel returns the kernel of a function of a field and a timestamptz; nil where there
// is no such field.
func timeKernel(name, field string) *sqlfn.Kernel {
	f := sqlfn.Lookup(name, vector.Text, vector.TimestampTZ)
	if !f.Args[0].Takes(field) {
		return nil
	}
	return f.Kernel(sqlfn.Call{Args: []sqlfn.Arg{{Const: &vector.Value{Str: field}}, {}}}, 1)
}

// Infinite timestamps fail, but not as the hidden value of a null.
func TestUnitsInfinite(t *testing.T) {
	week := timeKernel("date_trunc", "week")
	x := &node{around: week.Around, lo: 3, f: week.F}
	v := []int64{lastMicro, 1<<63 - 1, lastMicro, -1 << 63}
	last, err := x.f(lastMicro)
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{bufs: make([]buffers, 1)}
	out := make([]int64, 4)
	w.mapUnits(x, vec{v, []uint8{0, 1, 0, 1}}, out)
	if want := []int64{last, 3, last, 3}; w.err != nil || !slices.Equal(out, want) {
		t.Fatalf("%v instead of %v: %v", out, want, w.err)
	}
	for range 2 { // with and without a unit that is known
		w.err = nil
		if w.mapUnits(x, vec{v: v}, out); w.err == nil {
			t.Fatal("no error for infinity")
		}
	}
}

func TestUnitNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 22))
	c := &compiler{}
	for _, field := range []string{"year", "quarter", "month", "week", "day", "hour", "minute", "second"} {
		for range 50 {
			lo := int64(r.Uint64())>>(8+r.IntN(10)) + dayMicros
			hi := lo + r.Int64N(1<<(20+r.IntN(30)))
			k := timeKernel("date_trunc", field)
			f := k.F
			n := &node{kind: nodeMap, t: vector.TypeOf(vector.Timestamp), around: k.Around, f: f, args: []*node{{lo: lo, hi: hi}}}
			var err1, err2 error
			n.lo, err1 = f(lo)
			n.hi, err2 = f(hi)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			m := c.unitNumbers(n)
			if m == nil {
				if (n.hi-n.lo)/maxUnits < secondMicros {
					t.Fatalf("%s of %d to %d has no numbers", field, lo, hi)
				}
				continue
			}
			if m.lo != 0 || m.hi != int64(len(m.starts)-1) || m.starts[m.hi] != n.hi || len(m.starts) > 2*maxUnits {
				t.Fatalf("%s of %d to %d: %d starts", field, lo, hi, len(m.starts))
			}
			for range 100 {
				v := lo + r.Int64N(hi-lo+1)
				want, err := f(v)
				if err != nil {
					t.Fatal(err)
				}
				if i, err := m.f(v); err != nil || i < 0 || i > m.hi || m.starts[i] != want {
					t.Fatalf("%s of %d is %d instead of %d: %v", field, v, i, want, err)
				}
			}
		}
	}
	for name, n := range map[string]*node{
		"risky":      {kind: nodeMap, t: vector.TypeOf(vector.Timestamp), around: timeKernel("date_trunc", "day").Around, args: []*node{{}}, risky: true},
		"too many":   {kind: nodeMap, t: vector.TypeOf(vector.Timestamp), around: timeKernel("date_trunc", "second").Around, args: []*node{{hi: maxUnits * 2 * secondMicros}}},
		"an extract": {kind: nodeMap, t: vector.NumericType(0), around: timeKernel("date_trunc", "day").Around, args: []*node{{}}},
	} {
		if c.unitNumbers(n) != nil {
			t.Errorf("%s has numbers", name)
		}
	}
}

// TestTabulateSteps: what is written out for the steps of a function is what it is of each argument.
func TestTabulateSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 23))
	f := sqlfn.Lookup("to_char", vector.Timestamp, vector.Text)
	for pattern, most := range map[string]int64{"YYYY": 5000 * 365 * dayMicros, "YYYY-MM": 900 * 365 * dayMicros, "\"Q\"Q YY": 900 * 365 * dayMicros, "IYYY-IW": 40 * 365 * dayMicros, "FMDay": 40 * 365 * dayMicros,
		"HH24": 600 * dayMicros, "HH12:MI AM": 11 * dayMicros, "YYYY-MM-DD HH24:MI:SS": dayMicros / 6, "SS.MS": 0} {
		for n := range 60 {
			lo := sqltype.DayOf(1800, 1, 1)*dayMicros + r.Int64N(300*365*dayMicros)
			hi := lo
			if n > 2 && most > 0 {
				hi += r.Int64N(min(most, 1<<uint(20+r.IntN(40))))
			}
			site := sqlfn.Call{Args: []sqlfn.Arg{{Type: vector.TypeOf(vector.Timestamp)}, {Type: vector.TypeOf(vector.Text), Const: &vector.Value{Str: pattern}}}}
			around := f.Around(site, 0)
			if most == 0 {
				if around != nil {
					t.Errorf("%s has steps", pattern)
				}
				continue
			}
			c := &compiler{p: &pipeline{x: &execution{memory: new(atomic.Int64), room: 1 << 40}}}
			a := &node{t: vector.TypeOf(vector.Timestamp), lo: lo, hi: hi, nullable: n%2 == 0}
			call := &plan.Call{Op: plan.OpFunc, Func: f, T: vector.TypeOf(vector.Text)}
			m, err := c.tabulateSteps(&node{kind: nodeFunction, t: call.T, call: call, args: []*node{a}, places: []int{0}, given: []vector.Value{{}, {Str: pattern}}}, around)
			if m == nil || err != nil {
				t.Fatalf("%s of %d to %d: %v, %v", pattern, lo, hi, m, err)
			}
			number := m.args[0]
			check := func(v int64) {
				t.Helper()
				i, err := number.f(v)
				if err != nil || i < number.lo || i > number.hi {
					t.Fatalf("%s of %d to %d: step %d of %d, %v", pattern, lo, hi, i, v, err)
				}
				want, err := f.Eval([]vector.Value{{I: v}, {Str: pattern}})
				if got := m.dict.at(m.tab.Values[i]); err != nil || got != want.Str {
					t.Fatalf("%s of %d: %q, not %q, %v", pattern, v, got, want.Str, err)
				}
				first, last := around(v)
				for _, edge := range []int64{first, last} {
					if same, err := f.Eval([]vector.Value{{I: edge}, {Str: pattern}}); err != nil || same.Str != want.Str {
						t.Fatalf("%s of %d is %q, and of %d in the same step %q, %v", pattern, v, want.Str, edge, same.Str, err)
					}
				}
			}
			check(lo)
			check(hi)
			for range 100 {
				check(lo + r.Int64N(hi-lo+1))
			}
		}
	}
}
