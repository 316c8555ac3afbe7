// Command roaring compares WAH bitmaps with RoaringBitmap's Go package, on the data
// sets of the WAH papers, both in this process and in turns. It is a module of its
// own, so that nobody who builds pgaccel builds Roaring.
//
// Usage:
//
//	roaring [-quick] [-runs 7] [-best] [-set KDD]
//
// It prints a line of JSON for each data set and operation. AND, OR, XOR and ANDNOT
// are those of 32 pairs of bins, one after the other; a range query is the union of
// as many bins as it says. Roaring's containers are run-optimised; its union is the
// fastest of its functions for one core. A result that differs is an error.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"pgaccel/papers/wahbits"
	"pgaccel/papers/wahdata"
)

// line is what is printed. Times are medians of all pairs or of the query.
type line struct {
	Set          string  `json:"set"`
	Rows         int     `json:"rows"`
	Op           string  `json:"op"`
	Bins         int     `json:"bins"`
	WAHMicros    float64 `json:"wah_us"`
	RoarMicros   float64 `json:"roaring_us"`
	WAHBytes     int     `json:"wah_bytes"`     // of all bins that take part
	RoaringBytes int     `json:"roaring_bytes"` // likewise
}

func main() {
	quick := flag.Bool("quick", false, "shorter data sets")
	runs := flag.Int("runs", 7, "measured runs of each")
	flag.BoolVar(&best, "best", false, "report the fastest run, not the median: for a busy machine")
	only := flag.String("set", "", "one data set")
	flag.Parse()
	for _, s := range wahdata.Sets(*quick) {
		if *only != "" && s.Name != *only {
			continue
		}
		if err := compare(s, *runs); err != nil {
			fmt.Fprintln(os.Stderr, "roaring:", err)
			os.Exit(1)
		}
	}
}

var best bool

// binsMax is how many bins the largest range query has.
const binsMax = 64

type bins struct {
	wah     []*wahbits.Bitmap
	roaring []*roaring.Bitmap
}

func load(s *wahdata.Set) bins {
	b := bins{wah: s.Bitmaps(s.Pick(binsMax))}
	for _, w := range b.wah {
		b.roaring = append(b.roaring, toRoaring(w))
	}
	return b
}

func toRoaring(w *wahbits.Bitmap) *roaring.Bitmap {
	r := roaring.New()
	var rows []uint32
	const tile = 1 << 20
	for at := 0; at < w.Len(); at += tile {
		rows = wahbits.AppendRows(rows[:0], w, at, min(tile, w.Len()-at))
		for i := range rows {
			rows[i] += uint32(at)
		}
		r.AddMany(rows)
	}
	r.RunOptimize()
	return r
}

func compare(s *wahdata.Set, runs int) error {
	b := load(s)
	type pair struct {
		name    string
		wah     func(dst, x, y *wahbits.Bitmap) *wahbits.Bitmap
		roaring func(x, y *roaring.Bitmap) *roaring.Bitmap
	}
	for _, p := range []pair{{"AND", wahbits.And, roaring.And}, {"OR", wahbits.Or, roaring.Or}, {"XOR", wahbits.Xor, roaring.Xor}, {"ANDNOT", wahbits.AndNot, roaring.AndNot}} {
		for i := 0; i < len(b.wah); i += 2 {
			if err := same(s, p.name, p.wah(nil, b.wah[i], b.wah[i+1]), p.roaring(b.roaring[i], b.roaring[i+1])); err != nil {
				return err
			}
		}
		l := line{Op: p.name, Bins: 2}
		l.WAHMicros, l.RoarMicros = inTurns(runs, func() {
			for i := 0; i < len(b.wah); i += 2 {
				p.wah(nil, b.wah[i], b.wah[i+1])
			}
		}, func() {
			for i := 0; i < len(b.roaring); i += 2 {
				p.roaring(b.roaring[i], b.roaring[i+1])
			}
		})
		l.print(s, b)
	}
	for _, n := range []int{4, 8, 16, 32, binsMax} {
		q := bins{b.wah[:n], b.roaring[:n]}
		var fastest float64
		l := line{Op: "range", Bins: n}
		for _, union := range []func(...*roaring.Bitmap) *roaring.Bitmap{roaring.FastOr, roaring.HeapOr} {
			if err := same(s, fmt.Sprintf("range of %d", n), wahbits.OrAll(nil, q.wah), union(q.roaring...)); err != nil {
				return err
			}
			w, r := inTurns(runs, func() { wahbits.OrAll(nil, q.wah) }, func() { union(q.roaring...) })
			if fastest == 0 || r < fastest {
				fastest, l.WAHMicros, l.RoarMicros = r, w, r
			}
		}
		l.print(s, q)
	}
	return nil
}

// inTurns measures both, one after the other, after one run of each that does not
// count, and returns their medians in microseconds.
func inTurns(runs int, f, g func()) (float64, float64) {
	var a, b []time.Duration
	for i := range runs + 1 {
		start := time.Now()
		f()
		middle := time.Now()
		g()
		end := time.Now()
		if i > 0 {
			a, b = append(a, middle.Sub(start)), append(b, end.Sub(middle))
		}
	}
	return median(a), median(b)
}

func median(d []time.Duration) float64 {
	slices.Sort(d)
	if best {
		return float64(d[0]) / float64(time.Microsecond)
	}
	return float64(d[len(d)/2]) / float64(time.Microsecond)
}

// same compares every row.
func same(s *wahdata.Set, what string, w *wahbits.Bitmap, r *roaring.Bitmap) error {
	if uint64(w.Count()) != r.GetCardinality() {
		return fmt.Errorf("%s, %s: %d rows and %d", s.Name, what, w.Count(), r.GetCardinality())
	}
	it := r.Iterator()
	for row := range w.All() {
		if got := int(it.Next()); got != row {
			return fmt.Errorf("%s, %s: row %d and row %d", s.Name, what, row, got)
		}
	}
	return nil
}

func (l line) print(s *wahdata.Set, b bins) {
	l.Set, l.Rows = s.Name, s.Rows
	for i := range b.wah {
		l.WAHBytes += b.wah[i].Bytes()
		l.RoaringBytes += int(b.roaring[i].GetSerializedSizeInBytes())
	}
	json.NewEncoder(os.Stdout).Encode(l)
}
