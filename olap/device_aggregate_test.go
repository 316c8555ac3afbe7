package olap

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgaccel/catalog"
	"pgaccel/gpu"
	"pgaccel/gpu/program"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// aggregateQueries are grouped queries whose states are more than a word: a device computes them all.
var aggregateQueries = []string{
	// Sets of distinct values: of one group, of few, of many, of groups in a hash table.
	"select count(distinct a), count(*) from wide",
	"select count(distinct m), count(distinct t), count(distinct ok), count(distinct d) from wide",
	"select g, count(distinct a), count(distinct m) filter (where ok), count(*) from wide group by g",
	"select count(distinct a), count(distinct b) from wide where ok",
	"select b, count(distinct a) from wide group by b",
	"select t, g, count(distinct a) from wide group by t, g",
	"select t, count(distinct m), sum(distinct m), avg(distinct d), max(m) from wide where m > 2 group by t",
	"select a, count(distinct b) from wide group by a",
	"select id, count(distinct t), count(distinct x) from wide group by id",
	"select count(distinct y) from wide where id > 3",
	"select g, count(distinct m) from wide group by rollup (g, ok)",
	"select g, t, count(distinct a) from wide group by grouping sets ((g), (t), ())",
	"select g, sum(distinct m), variance(distinct m) from wide group by g",
	// Numbers of groups that 64 bits do not hold.
	"select a, b, count(*) from wide group by a, b",
	"select b, t, a, sum(m), min(d) from wide group by b, t, a",
	"select a, b, m, count(*), count(distinct t) from wide group by a, b, m",
	"select a, b, count(*) from wide group by rollup (a, b)",
	// Power sums.
	"select variance(m), stddev(m), var_pop(d), stddev_pop(d) from wide",
	"select g, var_samp(m), stddev_samp(d) filter (where ok), count(m) from wide group by g",
	"select id, var_pop(m), variance(d) from wide group by id",
	"select a, b, stddev(m) from wide group by a, b",
	// Sums of doubles.
	"select sum(x), avg(x) from wide",
	"select g, sum(x), avg(y), count(y) from wide group by g",
	"select t, sum(y) filter (where ok) from wide group by t",
	"select id, avg(x) from wide group by id",
	"select a, b, sum(x) from wide group by a, b",
	"select g, sum(case when ok then x else 0 end), avg(case when m > 4 then y when m > 2 then 2.5 end), sum(coalesce(y, x)) from wide group by g",
	"select avg(case t when 'a' then 0.25 when 'b' then 1e3 end::double precision), count(*) from wide",
	"select ok, sum(x), avg(y) from wide group by rollup (ok, g)",
	// Percentiles of few different values.
	"select percentile_cont(0.5) within group (order by m), percentile_disc(0.9) within group (order by m desc), count(*) from wide",
	"select g, percentile_disc(0.25) within group (order by m) filter (where ok), percentile_cont(0.9) within group (order by m) from wide group by g",
	"select g, ok, percentile_disc(0.5) within group (order by t) from wide where m > 1 group by g, ok",
	"select t, percentile_disc(0.5) within group (order by ok), percentile_cont(0.3) within group (order by g) from wide group by rollup (t)",
	// Functions of time, by units and by stretches.
	"select count(*), min(at + interval '0 seconds'), max(at - interval '1 day 1 microsecond') from wide",
	"select extract(hour from at + interval '0 seconds'), count(*) from wide group by 1",
	"select extract(year from at - interval '1 month'), sum(m) from wide group by 1",
	"select date_trunc('month', at + interval '1 month'), count(*) from wide group by 1",
	"select date_trunc('week', at - interval '3 months 2 hours'), count(*), min(at) from wide group by 1",
	"select date_trunc('hour', at), count(*) from wide group by 1",
	"select date_trunc('quarter', at), count(*) from wide where at + interval '11 months' < '2001-02-03' group by 1",
	"select count(*) from wide where extract(doy from at + interval '2 days') > 40 and date_trunc('year', at) < '2003-01-01'",
	// The least and the greatest double, which may be a zero of either sign.
	"select min(x), max(y), min(y) filter (where ok) from wide",
	"select g, min(x), max(x), min(y), max(y) from wide group by g",
	"select t, max(x), count(*) from wide where x <= 0 group by t",
	"select id, max(y), sum(distinct y) from wide group by id",
	// Of truths.
	"select bool_and(ok), bool_or(ok), every(m > 0) from wide",
	"select g, bool_and(ok), bool_or(m > 6) filter (where t > 'c') from wide group by g",
	"select a, b, bool_or(ok) from wide group by a, b",
}

// newWideWorld has one table, whose doubles are of so many exponents.
func newWideWorld(t testing.TB, r *rand.Rand, n, exponents int) *relationWorld {
	i4, i8, f8 := vector.TypeOf(vector.Int4), vector.TypeOf(vector.Int8), vector.TypeOf(vector.Float8)
	text := vector.Type{Kind: vector.Text, Typmod: -1, Collation: vector.Collation{OID: 950, C: true, Deterministic: true}}
	num := vector.NumericType(2)
	num.Typmod = 10<<16 | 2 + 4
	meta := &catalog.Table{OID: 30000, Schema: "public", Name: "wide", Rows: int64(n), Columns: []catalog.Column{
		{Name: "id", Type: i8, NotNull: true}, {Name: "a", Type: i8, NotNull: true}, {Name: "b", Type: i8}, {Name: "g", Type: i4, NotNull: true}, {Name: "m", Type: i4},
		{Name: "t", Type: text}, {Name: "d", Type: num}, {Name: "x", Type: f8, NotNull: true}, {Name: "y", Type: f8}, {Name: "ok", Type: vector.TypeOf(vector.Bool)},
		{Name: "at", Type: vector.TypeOf(vector.Timestamp)}}}
	double := func() int64 {
		v := math.Ldexp(1+r.Float64(), r.IntN(exponents)-exponents/2)
		return int64(math.Float64bits(v * float64(1-2*r.IntN(2))))
	}
	var rows [][]vector.Datum
	for id := range n {
		var row []vector.Datum
		for i := range meta.Columns {
			c := &meta.Columns[i]
			c.AttNum = int16(i + 1)
			d := vector.Datum{Type: c.Type}
			switch {
			case c.Name == "id":
				d.I = int64(id)
			case !c.NotNull && r.IntN(7) == 0:
				d = vector.Null(c.Type)
			case c.Name == "a":
				d.I = []int64{math.MinInt64 + 9, math.MaxInt64 - 9, r.Int64N(20) << 58, r.Int64N(9)}[r.IntN(4)]
			case c.Name == "b":
				d.I = []int64{0, 1 << 28, r.Int64N(9)}[r.IntN(3)]
			case c.Name == "t":
				d.Str = string(rune('a' + r.IntN(12)))
			case c.Name == "d":
				d.I = int64(r.IntN(2000) - 500)
			case c.Name == "at": // some years, days apart or less, the ends of months among them
				if d.I = r.Int64N(1500) * sqltype.MicrosPerDay; r.IntN(3) > 0 {
					d.I += r.Int64N(sqltype.MicrosPerDay)
				}
			case c.Name == "ok":
				d.I = int64(r.IntN(4) / 3)
			case c.Type.Kind == vector.Float8:
				if d.I = double(); r.IntN(9) == 0 {
					d.I = 0
				}
			default:
				d.I = int64(r.IntN(9))
			}
			row = append(row, d)
		}
		rows = append(rows, row)
	}
	w := &relationWorld{cat: &catalog.Catalog{Shadowed: map[string]bool{}, Tables: []*catalog.Table{meta}}}
	w.tables = []*randomTable{{meta, rows, load(t, newStore(t, 1024), meta, rows)}}
	return w
}

// TestDeviceAggregates has a device compute them, at edge lengths and over several segments, with groups
// in every place.
func TestDeviceAggregates(t *testing.T) {
	d := newPlainDevice()
	for i, n := range []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513, 1300} {
		w := newWideWorld(t, rand.New(rand.NewPCG(3, uint64(n))), n, 30)
		for _, sql := range aggregateQueries {
			onDevice(t, w, sql, d, n > 0)
		}
		d.limits = deviceLimits[i%len(deviceLimits)]
	}
	if d.prefixes == 0 || d.counted == 0 || d.distinct == d.counted || d.ops[program.OpFixedHigh] == 0 || d.ops[program.OpStep] == 0 {
		t.Errorf("%d programs with a prefix, %d of distinct values, operations %v", d.prefixes, d.distinct, d.ops)
	}
}

// onDevice compares a query with the reference and asserts that a device has computed it.
func onDevice(t *testing.T, w *relationWorld, sql string, d gpu.Runner, wanted bool) {
	t.Helper()
	var did Report
	if !w.run(t, sql, Options{Device: d, DeviceWait: true, Report: &did, Workers: 2}) || wanted && did.Device == "" && did.Fallback != fallbackEmpty {
		t.Errorf("%s: %+v", sql, did)
	}
}

// TestDeviceAggregatesEmulated has the kernels compute some of them.
func TestDeviceAggregatesEmulated(t *testing.T) {
	m := emulated(t)
	for i, n := range []int{1, 129, 1300} {
		w := newWideWorld(t, rand.New(rand.NewPCG(3, uint64(n))), n, 30)
		for k, sql := range aggregateQueries {
			if (k+i)%3 == 0 || n > 600 && !testing.Short() {
				onDevice(t, w, sql, m, true)
			}
		}
	}
}

// TestDeviceDoubles: doubles too small for the window, and those that are no finite numbers, are the
// processor's.
func TestDeviceDoubles(t *testing.T) {
	for name, c := range map[string]struct {
		exponents int
		v         float64
	}{"too small": {80, 0}, "infinite": {4, math.Inf(1)}, "NaN": {4, math.NaN()}, "minus zero": {4, math.Copysign(0, -1)}, "subnormal": {4, 5e-324},
		"too large": {4, 1e200}} {
		t.Run(name, func(t *testing.T) {
			w := newWideWorld(t, rand.New(rand.NewPCG(3, 3)), 300, c.exponents)
			if c.v != 0 || math.Signbit(c.v) {
				tab := w.tables[0]
				bits := int64(math.Float64bits(c.v))
				if c.v != c.v {
					bits = vector.NaNBits
				}
				tab.rows[17][7].I = bits
				tab.table = load(t, newStore(t, 1024), tab.meta, tab.rows)
			}
			var did Report
			w.run(t, "select sum(x), avg(x) from wide", Options{Device: newPlainDevice(), DeviceWait: true, Report: &did})
			if did.Device != "" || did.Fallback != fallbackData && did.Fallback != "aggregate" {
				t.Errorf("%+v", did)
			}
			// Least and greatest, of groups with zeros of one sign, and of both.
			for _, sql := range []string{"select g, min(x), max(x) from wide where x <= 0 group by g", "select id, max(x) from wide where x <= 0 group by id"} {
				here := w.run(t, sql, Options{})
				if there := w.run(t, sql, Options{Device: newPlainDevice(), DeviceWait: true}); here != there {
					t.Errorf("%s: answered by the processor %v, with a device %v", sql, here, there)
				}
			}
		})
	}
}
