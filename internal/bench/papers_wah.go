package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"pgaccel/bitmapidx"
	"pgaccel/compress"
	"pgaccel/papers/wahbits"
	"pgaccel/papers/wahdata"
)

// wahBins are the sizes of the papers' range queries.
var wahBins = []int{4, 8, 16, 32, 64}

// papersWAH compares the papers' strategies for range queries on their data sets, WAH
// with RoaringBitmap where its program is given, and an index with a scan of the packed
// column, so as to show where WAH loses.
func papersWAH(ctx context.Context, out io.Writer, quick bool, roaring string) error {
	sets := wahdata.Sets(quick)
	workers := runtime.GOMAXPROCS(0)
	runs := 5
	if quick {
		runs = 3
	}
	fmt.Fprintf(out, "WAH range queries: the union of random bins, µs (median of %d), %d cores; of the decompressing strategies,\n", runs, workers)
	fmt.Fprintln(out, "decompression and compression of the result included")
	for _, s := range sets {
		bins := s.Bitmaps(s.Pick(wahBins[len(wahBins)-1]))
		if err := printStrategies(ctx, out, s, bins, runs, workers); err != nil {
			return err
		}
	}
	if roaring != "" {
		if err := printRoaring(ctx, out, quick, roaring); err != nil {
			return err
		}
	}
	return printIndexes(ctx, out, sets, runs)
}

func printStrategies(ctx context.Context, out io.Writer, s *wahdata.Set, bins []*wahbits.Bitmap, runs, workers int) error {
	bytes := 0
	for _, b := range bins {
		bytes += b.Bytes()
	}
	fmt.Fprintf(out, "\n%s: %d rows, %d attributes, %d bins; compressed to %.1f %%\n", s.Name, s.Rows, len(s.Bins), s.Total(),
		100*8*float64(bytes)/float64(len(bins)*s.Rows))
	fmt.Fprintf(out, "%-27s", "bins")
	for _, n := range wahBins {
		fmt.Fprintf(out, " %9d", n)
	}
	fmt.Fprintln(out, "   fused is faster by")
	times := make(map[wahbits.Strategy][]time.Duration)
	var interrupted error
	for _, n := range wahBins {
		query := bins[:n]
		var answer *wahbits.Bitmap
		samples := make(map[wahbits.Strategy][]time.Duration)
		for run := range runs + 1 {
			for _, strategy := range wahbits.Strategies() {
				if interrupted = ctx.Err(); interrupted != nil {
					break
				}
				start := time.Now()
				got := strategy.Union(query, workers)
				if took := time.Since(start); run > 0 { // the first one is not measured
					samples[strategy] = append(samples[strategy], took)
				}
				if answer == nil {
					answer = got
				}
				if !got.Equal(answer) {
					return fmt.Errorf("%s, %d bins: %v gives other rows than %v", s.Name, n, strategy, wahbits.Strategies()[0])
				}
			}
		}
		if len(samples) < len(wahbits.Strategies()) {
			break // interrupted before each had run
		}
		for strategy, d := range samples {
			times[strategy] = append(times[strategy], median(d))
		}
	}
	for _, strategy := range wahbits.Strategies() {
		if len(times) == 0 {
			break
		}
		fmt.Fprintf(out, "%-27s", strategy)
		var ratios []float64
		for i, d := range times[strategy] {
			fmt.Fprintf(out, " %9s", digits(microseconds(d)))
			ratios = append(ratios, float64(d)/float64(times[wahbits.Fused][i]))
		}
		fmt.Fprintf(out, "   %sx\n", ratio(geomean(ratios)))
	}
	return interrupted
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// roaringLine is a line of bench/roaring's output.
type roaringLine struct {
	Set          string  `json:"set"`
	Op           string  `json:"op"`
	Bins         int     `json:"bins"`
	WAHMicros    float64 `json:"wah_us"`
	RoarMicros   float64 `json:"roaring_us"`
	WAHBytes     int64   `json:"wah_bytes"`
	RoaringBytes int64   `json:"roaring_bytes"`
}

// printRoaring runs the program, which checks that both have the same rows.
func printRoaring(ctx context.Context, out io.Writer, quick bool, program string) error {
	args := []string{"-runs", "7"}
	if quick {
		args = append(args, "-quick")
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("comparing with Roaring (make build/roaring makes the program): %w\n%s", err, stderr.String())
	}
	fmt.Fprintln(out, "\nWAH against RoaringBitmap's Go package, run-optimised, one core: µs of 32 pairs of bins, or of a union")
	fmt.Fprintf(out, "%-8s %-12s %10s %10s %10s %10s %11s\n", "set", "operation", "WAH", "Roaring", "speed-up", "WAH KB", "Roaring KB")
	ratios := make(map[string][]float64)
	var names []string
	for lines := json.NewDecoder(&stdout); ; {
		var l roaringLine
		if err := lines.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		name := l.Op
		if l.Op == "range" {
			name = fmt.Sprintf("union of %d", l.Bins)
		}
		r := l.RoarMicros / l.WAHMicros
		if ratios[l.Set] == nil {
			names = append(names, l.Set)
		}
		ratios[l.Set] = append(ratios[l.Set], r)
		fmt.Fprintf(out, "%-8s %-12s %10s %10s %9sx %10s %11s%s\n", l.Set, name, digits(l.WAHMicros), digits(l.RoarMicros),
			ratio(r), digits(float64(l.WAHBytes)/1e3), digits(float64(l.RoaringBytes)/1e3), loses(r))
	}
	for _, name := range names {
		fmt.Fprintf(out, "%-8s geomean %36sx\n", name, ratio(geomean(ratios[name])))
	}
	return nil
}

// loses marks a ratio below one.
func loses(r float64) string {
	if r < 1 {
		return "  WAH loses"
	}
	return ""
}

// segmentRows is how many rows a segment of the store has, and so an index.
const segmentRows = 65536

// indexed is an attribute of a set, as the store would keep a segment of it.
type indexed struct {
	values []int64
	index  *bitmapidx.Index
	column compress.Column
	worth  bool
}

// printIndexes compares, for a segment of each attribute, the index with the packed
// column: bytes, and the time of a range of a quarter and of half the bins.
func printIndexes(ctx context.Context, out io.Writer, sets []*wahdata.Set, runs int) error {
	fmt.Fprintln(out, "\nIndexes against scans of the packed column: one segment of each attribute, one core; ns a row")
	fmt.Fprintf(out, "%-8s %10s %10s %10s %10s %10s %12s %12s\n", "set", "index KB", "column KB", "index", "scan", "speed-up", "worth it", "speed-up")
	fmt.Fprintf(out, "%-8s %10s %10s %10s %10s %10s %12s %12s\n", "", "", "", "", "", "of all", "attributes", "of those")
	for _, s := range sets {
		all := make([]indexed, len(s.Bins))
		n := min(segmentRows, s.Rows)
		var column []uint8
		indexBytes, columnBytes, worth := 0, 0, 0
		for a := range s.Bins {
			if err := ctx.Err(); err != nil {
				return err
			}
			column = s.Column(a, column)
			x := indexed{values: make([]int64, n)}
			for i := range x.values {
				x.values[i] = int64(column[i+(s.Rows-n)/2])
			}
			x.index = bitmapidx.Build(x.values, nil, nil)
			x.column = compress.Encode(x.values, func(words int) []uint32 { return make([]uint32, words) })
			x.worth = bitmapidx.Profiled(x.values, nil).Worth(x.column.Bytes())
			indexBytes += x.index.Bytes()
			columnBytes += x.column.Bytes()
			if x.worth {
				worth++
			}
			all[a] = x
		}
		var byIndex, byScan, ratios, worthRatios []float64
		for _, x := range all {
			for _, share := range []int{4, 2} {
				lo, _, _ := x.index.Bounds()
				_, hi := x.index.Bin((x.index.Bins()+share-1)/share - 1)
				i, c, err := indexOrScan(x, lo, hi, runs)
				if err != nil {
					return fmt.Errorf("%s: %w", s.Name, err)
				}
				byIndex, byScan, ratios = append(byIndex, i/float64(n)), append(byScan, c/float64(n)), append(ratios, c/i)
				if x.worth {
					worthRatios = append(worthRatios, c/i)
				}
			}
		}
		ofThose := "-"
		if len(worthRatios) > 0 {
			ofThose = ratio(geomean(worthRatios)) + "x"
		}
		fmt.Fprintf(out, "%-8s %10.1f %10.1f %10s %10s %9sx %12s %12s%s\n", s.Name, float64(indexBytes)/1e3, float64(columnBytes)/1e3,
			small(geomean(byIndex)), small(geomean(byScan)), ratio(geomean(ratios)), fmt.Sprintf("%d of %d", worth, len(all)), ofThose, loses(geomean(ratios)))
	}
	fmt.Fprintln(out, strings.TrimSpace(`
worth it: the index is half as large as the column, or smaller, and the query estimated twice as fast; the others get none.
The scan is that of this build's fastest kernels. Times are geometric means.`))
	return nil
}

// small prints numbers far below 1.
func small(v float64) string { return fmt.Sprintf("%.4f", v) }

// indexOrScan answers a range both ways, in turns, into a bitmap of the rows, and
// returns the nanoseconds of each.
func indexOrScan(x indexed, lo, hi int64, runs int) (byIndex, byScan float64, err error) {
	n := len(x.values)
	words := (n + 63) / 64
	fromIndex, fromScan := make([]uint64, words), make([]uint64, words)
	const repeat = 20
	var a, b []time.Duration
	for run := range runs + 1 {
		start := time.Now()
		for range repeat {
			if x.index.Range(fromIndex, lo, hi) != nil {
				return 0, 0, fmt.Errorf("a range of whole bins has candidates")
			}
		}
		middle := time.Now()
		for range repeat {
			for i := range fromScan {
				fromScan[i] = math.MaxUint64
			}
			x.column.FilterRange(fromScan, 0, n, lo, hi)
		}
		if run > 0 {
			a, b = append(a, middle.Sub(start)), append(b, time.Since(middle))
		}
	}
	for i, v := range x.values {
		in := lo <= v && v <= hi
		if fromIndex[i>>6]>>(i&63)&1 != 0 != in || fromScan[i>>6]>>(i&63)&1 != 0 != in {
			return 0, 0, fmt.Errorf("row %d of value %d is wrong for %d to %d", i, v, lo, hi)
		}
	}
	return float64(median(a)) / repeat, float64(median(b)) / repeat, nil
}
