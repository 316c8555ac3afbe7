package olap_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"pgaccel/gpu"
	"pgaccel/gpu/program"
	"pgaccel/olap"
	"pgaccel/plan"
	"pgaccel/vector"
)

// prompt is a device that answers at once, with so many groups as there are at most: what is
// left is the time of lowering a query and of making rows of a result.
type prompt struct {
	rows int
	made map[uint64]*program.Result // by Query.Groups
	last *program.Result
	// built counts the lookups that the last query had the device make.
	built int
}

func (d *prompt) Limits() (gpu.Limits, bool) {
	return gpu.Limits{SharedBytes: 227 << 10, Memory: 64 << 30}, true
}

func (d *prompt) Run(_ context.Context, q *program.Query, _ gpu.RunOptions) (*program.Result, gpu.Stats, error) {
	d.built = 0
	for i := range q.Lookups {
		if q.Lookups[i].Build != nil {
			d.built++
		}
	}
	r := d.made[q.Groups]
	if r == nil {
		r = someGroups(q, d.rows)
		d.made[q.Groups] = r
	}
	d.last = r
	return r, gpu.Stats{Device: "prompt:0"}, nil
}

// someGroups makes a result of n of the groups that a query may have, in no order.
func someGroups(q *program.Query, n int) *program.Result {
	r := &program.Result{Accs: make([]program.Values, len(q.Sink.Accs))}
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[uint64]bool{}
	for len(r.Numbers) < min(n, int(q.Groups)) {
		number := random.Uint64N(q.Groups)
		if seen[number] {
			continue
		}
		seen[number] = true
		r.Numbers, r.Rows = append(r.Numbers, number), append(r.Rows, 1+random.Int64N(1000))
		for i := range r.Accs {
			k := q.Sink.Accs[i].Kind
			r.Accs[i].Grow(k, len(r.Numbers))
			r.Accs[i].V[len(r.Numbers)-1] = random.Int64N(1 << 40)
		}
	}
	return r
}

// sumOf adds up the output that is the query's first aggregate.
func sumOf(q *plan.Star, b *vector.Batch) (sum int64) {
	for i, e := range q.Output {
		if _, ok := e.(plan.Agg); !ok {
			continue
		}
		for k := range b.Rows {
			if v := b.Columns[i].Ints; v != nil {
				sum += v[k]
			} else {
				sum += int64(b.Columns[i].Decimals[k].Unscaled.Lo)
			}
		}
		break
	}
	return sum
}

// BenchmarkRowsOfGroups is the time from a plan to its rows on a device that takes none, over
// 1831 segments, with the groups that the 13 queries have at scale factor 20: with lookups
// that the device has made, and with those that the processor made. PGACCEL_SSB_SCALE sets
// the scale factor of the dimensions.
func BenchmarkRowsOfGroups(b *testing.B) {
	scale := 1.0
	if s := os.Getenv("PGACCEL_SSB_SCALE"); s != "" {
		var err error
		if scale, err = strconv.ParseFloat(s, 64); err != nil {
			b.Fatal(err)
		}
	}
	rows := map[string]int{"q1.1": 1, "q1.2": 1, "q1.3": 1, "q2.1": 280, "q2.2": 56, "q2.3": 7, "q3.1": 150, "q3.2": 600, "q3.3": 24, "q3.4": 4, "q4.1": 35, "q4.2": 100, "q4.3": 800}
	queries := wideSSB(b, scale)
	for _, made := range []string{"device", "processor"} {
		after := 1 << 40
		if made == "processor" {
			after = 1
		}
		for _, q := range queries {
			b.Run(made+"/"+q.name, func(b *testing.B) {
				defer olap.KeepAfter(after)()
				olap.ForgetLookups()
				d := &prompt{rows: rows[q.name], made: map[uint64]*program.Result{}}
				once := func() *vector.Batch {
					var did olap.Report
					got, err := olap.Execute(context.Background(), q.q, q.in, olap.Options{Device: d, DeviceWait: true, Report: &did})
					if err != nil || did.Device == "" {
						b.Fatal(err, did.Fallback)
					}
					return got
				}
				for range 3 {
					once()
				}
				if (d.built > 0) != (made == "device" && q.name > "q2") {
					b.Fatalf("%d lookups are the device's", d.built)
				}
				b.ReportAllocs()
				for b.Loop() {
					got := once()
					want := int64(0)
					for _, v := range d.last.Accs[0].V {
						want += int64(v)
					}
					if got.Rows != len(d.last.Numbers) || sumOf(q.q, got) != want {
						b.Fatalf("%d rows with a sum of %d instead of %d with %d", got.Rows, sumOf(q.q, got), len(d.last.Numbers), want)
					}
				}
			})
		}
	}
}
