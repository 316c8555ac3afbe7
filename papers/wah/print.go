package wah

import (
	"fmt"
	"io"
	"math"
)

// Print writes what Bench measured as tables, one for each set.
func Print(w io.Writer, rows []Row) {
	set := ""
	for _, r := range rows {
		if r.Set != set {
			set = r.Set
			fmt.Fprintln(w)
			fmt.Fprintf(w, "%s: %d rows, tiles of %d chunks; µs, median; x: CPU time over device time, by cores (fastest method of the CPU engine | the papers' column-oriented reduction)\n", r.Set, r.Rows, r.Tile)
			if t := r.Touch; t != nil {
				fmt.Fprintf(w, "a kernel of Fused's grid that is empty: %.2f; that reads a word a block: %.2f; two, one after the other, and writes one: %.2f; /l+f: over the empty one and the floor\n",
					1000*t.Empty, 1000*t.Read, 1000*t.Chain)
			}
			fmt.Fprintf(w, "%4s %-17s %9s %9s %9s %9s %9s %7s %7s %6s %7s  %s\n", "bins", "strategy", "MB", "of plain", "decomp.", "reduce", "total", "floor", "/floor", "/l+f", "GB/s", "x")
		}
		millis, empty := r.Millis(), 0.0
		if r.Touch != nil {
			empty = r.Touch.Empty
		}
		fmt.Fprintf(w, "%4d %-17s %9.3f %8.2f%% %9.2f %9.2f %9.2f %7.2f %7.2f %6.2f %7.0f ", r.Bins, r.Strategy, float64(r.Compressed+r.Result)/1e6,
			100*float64(r.Compressed)/float64(r.Plain), 1000*r.Decompress, 1000*r.Reduce, 1000*millis, 1000*r.Floor, millis/r.Floor, millis/(empty+r.Floor),
			float64(r.BytesRead+r.BytesWritten)/millis/1e6)
		for _, c := range r.CPU {
			fmt.Fprintf(w, " %d: %.1f | %.1f", c.Cores, c.Millis/millis, c.Published/millis)
		}
		if r.OverBest > 0 {
			fmt.Fprintf(w, "  over the best of four: %.1f (of reductions alone: %.1f)", r.OverBest, r.OverBestReduction)
		}
		fmt.Fprintln(w)
	}
	summarise(w, rows)
}

// summarise prints what the papers conclude with: factors over the parallel CPU method.
func summarise(w io.Writer, rows []Row) {
	fmt.Fprintln(w, "\nfactor over the CPU, all sets and numbers of bins and cores: geometric mean and largest, over the fastest method | over the papers' method")
	for _, s := range allStrategies() {
		var own, published factors
		var over factors
		for _, r := range rows {
			if r.Strategy != s.String() {
				continue
			}
			for _, c := range r.CPU {
				own.add(c.Millis / r.Millis())
				published.add(c.Published / r.Millis())
			}
			if r.OverBest > 0 {
				over.add(r.OverBest)
			}
		}
		if own.n == 0 {
			continue
		}
		fmt.Fprintf(w, "%-13s %7.1f %7.1f | %7.1f %7.1f", s, own.mean(), own.most, published.mean(), published.most)
		if over.n > 0 {
			fmt.Fprintf(w, "   over the best of four: %.1f %.1f", over.mean(), over.most)
		}
		fmt.Fprintln(w)
	}
}

// factors are numbers of which the geometric mean and the largest are wanted.
type factors struct {
	n    int
	logs float64
	most float64
}

func (f *factors) add(x float64) {
	f.n++
	f.logs += math.Log(x)
	f.most = max(f.most, x)
}

func (f *factors) mean() float64 { return math.Exp(f.logs / float64(f.n)) }
