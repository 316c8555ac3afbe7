package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"pgaccel/papers/cube"
)

// cubeWay is one algorithm of package cube with its options.
type cubeWay struct {
	name string
	what string
	run  cube.Executor[float64]
	opt  cube.Options
}

// cubeWays are compared in turns; the first is what the others' ratios refer to. Four
// hash functions are what the thesis found best, or near it, for most queries.
func cubeWays() []cubeWay {
	with := func(pre cube.Preaggregation) cube.Options {
		return cube.Options{Prefilter: true, HashFunctions: 4, Preaggregation: pre}
	}
	return []cubeWay{
		{"StOAP", "sequential, source-based, a hash map of target paths (section 4.1)", cube.SourceBased[float64], cube.Options{}},
		{"target", "target-based: each target cell searches the sorted fact table (2.3), parallel", cube.TargetBased[float64], cube.Options{}},
		{"source", "parallel source-based, prefilter, shared table with 4 hash functions (4.2)", cube.ParallelSourceBased[float64], with(cube.PreaggregateNone)},
		{"warp", "the same with warp preaggregation (4.2.1)", cube.ParallelSourceBased[float64], with(cube.PreaggregateWarp)},
		{"worker", "the same with a table for each worker", cube.ParallelSourceBased[float64], with(cube.PreaggregateWorker)},
		{"cdp", "dynamic parallelism as a queue of child blocks, strided preaggregation (4.3)", cube.DynamicParallelism[float64], with(cube.PreaggregateStride)},
		{"classes", "pgaccel: one addition a cell, by classes of elements; then up the hierarchies", cube.Aggregate[float64], cube.Options{}},
		{"1 thread", "the same on one thread", cube.Aggregate[float64], cube.Options{Workers: 1}},
	}
}

// thesisSpeedup are StOAP's response times over the best of its device variants (tables
// 5.3 to 5.6 and 5.8, Xeon E5-2643 and Tesla K40c).
var thesisSpeedup = map[string]float64{"B1": 110777. / 1367, "B2": 487705. / 8559, "B3": 387305. / 15209,
	"M1": 8498. / 163, "M2": 793631. / 3521, "M3": 256578. / 16067}

// papersCube compares sequential with parallel aggregation, by the names of Meinke's
// thesis, on cubes made after its Biker and Machines. All answers must be equal.
func papersCube(ctx context.Context, out io.Writer, quick bool) error {
	cells, budget := 1_000_000, 5*time.Second
	if quick {
		cells, budget = 20_000, 100*time.Millisecond
	}
	ways := cubeWays()
	fmt.Fprintln(out, "Aggregation of cubes (Meinke, \"In-memory OLAP aggregation on GPUs using CUDA Dynamic Parallelism\")")
	for _, w := range ways {
		fmt.Fprintf(out, "  %-9s %s\n", w.name, w.what)
	}
	fmt.Fprintf(out, "\n%-10s %5s %9s %9s %12s", "medians ms", "query", "relevant", "targets", "additions")
	for _, w := range ways {
		fmt.Fprintf(out, " %9s", w.name)
	}
	fmt.Fprintln(out)
	type row struct {
		query string
		times []time.Duration
	}
	var rows []row
	var interrupted error
samples:
	for _, make := range []func(int) (*cube.Sample, error){cube.Biker, cube.Machines} {
		s, err := make(cells)
		if err != nil {
			return err
		}
		for _, q := range s.Queries {
			r, stats, targets, err := timeCube(ctx, s, q, ways, budget)
			if err != nil && ctx.Err() == nil {
				return err
			}
			if interrupted = err; r == nil {
				break samples
			}
			rows = append(rows, row{q.Name, r})
			fmt.Fprintf(out, "%-10s %5s %9d %9d %12d", s.Name, q.Name, stats.Relevant, targets, stats.Adds)
			for _, t := range r {
				cell := "-"
				if t > 0 {
					cell = ms(t)
				}
				fmt.Fprintf(out, " %9s", cell)
			}
			fmt.Fprintln(out)
			if interrupted != nil {
				break samples
			}
		}
	}
	if len(rows) == 0 {
		return interrupted
	}
	fmt.Fprintf(out, "\n%-16s", "StOAP's time /")
	for _, w := range ways[1:] {
		fmt.Fprintf(out, " %9s", w.name)
	}
	fmt.Fprintf(out, " %9s\n", "thesis")
	all := make([][]float64, len(ways)+1)
	line := func(name string, ratios []float64) {
		fmt.Fprintf(out, "%-16s", name)
		for i, r := range ratios[1:] {
			if r == 0 {
				fmt.Fprintf(out, " %9s", "-")
				continue
			}
			fmt.Fprintf(out, " %9s", ratio(r))
			all[i+1] = append(all[i+1], r)
		}
		fmt.Fprintln(out)
	}
	for _, r := range rows {
		ratios := []float64{1}
		for _, t := range r.times[1:] {
			over := 0.0
			if t > 0 {
				over = float64(r.times[0]) / float64(t)
			}
			ratios = append(ratios, over)
		}
		line(r.query, append(ratios, thesisSpeedup[r.query]))
	}
	means := []float64{1}
	for _, r := range all[1:] {
		means = append(means, geomean(r))
	}
	line("geomean", means)
	fmt.Fprintln(out, "all answers equal; thesis: its sequential program against the best of its device variants, full-size cubes")
	return interrupted
}

// Rounds of the comparison. A way that has used up its budget of time is not run again.
const cubeRounds = 5

// targetsMax is how many target cells the target-based way searches for: most of M3's
// are empty.
const targetsMax = 100_000

// timeCube runs one query in all ways, in turns, and compares the answers with the
// first's. A way that was left out has no time. Where ctx ends, the medians are those of
// the runs until then, beside its error; nil where not each way has run.
func timeCube(ctx context.Context, s *cube.Sample, q cube.SampleQuery, ways []cubeWay, budget time.Duration) (medians []time.Duration, stats cube.Stats, targets int, err error) {
	times := make([][]time.Duration, len(ways))
	var want cube.Result[float64]
	used := make([]time.Duration, len(ways))
	var interrupted error
rounds:
	for round := range cubeRounds {
		for i, w := range ways {
			if used[i] > budget || i == 1 && q.Overall > targetsMax {
				continue
			}
			opt := w.opt
			if round == 0 && i == 0 {
				opt.Stats = &stats
			}
			start := time.Now()
			got, err := w.run(ctx, s.Cube, cube.Query{q.Area}, opt)
			took := time.Since(start)
			if interrupted = ctx.Err(); interrupted != nil {
				if round == 0 {
					return nil, stats, 0, interrupted
				}
				break rounds
			}
			times[i] = append(times[i], took)
			used[i] += took
			if err != nil {
				return nil, stats, 0, fmt.Errorf("%s by %s: %w", q.Name, w.name, err)
			}
			if i == 0 {
				want = got[0]
			}
			if !slices.Equal(got[0].Targets, want.Targets) || !slices.Equal(got[0].Values, want.Values) {
				return nil, stats, 0, fmt.Errorf("%s by %s: another answer than by %s", q.Name, w.name, ways[0].name)
			}
		}
	}
	for _, t := range times {
		if len(t) == 0 {
			medians = append(medians, 0)
			continue
		}
		medians = append(medians, median(t))
	}
	return medians, stats, len(want.Targets), interrupted
}
