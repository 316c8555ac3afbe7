//go:build tuning

package bench

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"pgaccel/gpu/program"
	"pgaccel/olap"
	"pgaccel/vector"
)

var (
	tuneDevice = flag.String("device", "cuda", "as of pgaccel-bench gpu")
	tuneWorker = flag.String("worker", "", "the program that has the device")
	tuneScale  = flag.Float64("scale", 20, "scale factor")
	tuneRuns   = flag.Int("runs", 9, "measured runs of each query")
	tuneOnly   = flag.String("variants", "", "names, by commas; empty: all")
)

// tuned are the choices that are compared.
var tuned = []struct {
	name string
	c    program.Choices
}{
	{"before", program.Choices{Threads: 1024, Blocks: 1}},
	{"carries", program.Choices{Carries: true, Threads: 1024, Blocks: 1}},
	{"windows", program.Choices{Carries: true, Windows: true, Threads: 1024, Blocks: 1}},
	{"search", program.Choices{Carries: true, Windows: true, Search: true, Threads: 1024, Blocks: 1}},
	{"together", program.Choices{Carries: true, Windows: true, Search: true, Together: true, Threads: 1024, Blocks: 1}},
	{"2 rows", program.Choices{Carries: true, Windows: true, Search: true, Together: true, Rows: 2, Threads: 1024, Blocks: 1}},
	{"768 threads", program.Choices{Carries: true, Windows: true, Search: true, Together: true, Threads: 768, Blocks: 1}},
	{"2 blocks", program.Choices{Carries: true, Windows: true, Search: true, Together: true, Threads: 512, Blocks: 2}},
}

// TestTuning prints the milliseconds of the benchmark's queries' kernels with each of
// some choices, and checks their answers.
func TestTuning(t *testing.T) {
	r := &gpuRun{GPUOptions: GPUOptions{Device: *tuneDevice, DeviceWorker: *tuneWorker, Scale: *tuneScale, Runs: *tuneRuns, Progress: os.Stderr, Binary: os.Args[0]}, out: io.Discard}
	if err := r.fill(); err != nil {
		t.Fatal(err)
	}
	d, err := r.ssbData(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.dropData()
	queries, err := d.queries()
	if err != nil {
		t.Fatal(err)
	}
	want := make([]*vector.Batch, len(queries))
	fmt.Printf("%-20s %-5s", "ms", "")
	for i, q := range queries {
		if want[i], err = olap.Execute(t.Context(), q.q, q.in, olap.Options{}); err != nil {
			t.Fatal(err)
		}
		fmt.Printf(" %7s", q.name)
	}
	fmt.Printf(" %8s\n", "geomean")
	for _, v := range tuned {
		if *tuneOnly != "" && !slices.Contains(strings.Split(*tuneOnly, ","), v.name) {
			continue
		}
		program.Choose(v.c)
		if err := r.part(t.Context(), func(ctx context.Context) error { return tuningVariant(ctx, t, r, d, v.name, queries, want) }); err != nil {
			t.Errorf("%s: %v", v.name, err)
		}
	}
}

func tuningVariant(ctx context.Context, t *testing.T, r *gpuRun, d *ssbData, name string, queries []ssbPlanned, want []*vector.Batch) error {
	olap.ForgetLookups()
	m, err := r.manager(d.store, r.DeviceMemory, false)
	if err != nil {
		return err
	}
	defer m.close()
	flush, err := newCacheFlush(r.ex)
	if err != nil {
		return err
	}
	defer flush.close()
	var times [2][]float64
	for i, q := range queries {
		for cold := range 2 {
			var kernel []float64
			for run := range r.Runs + 2 {
				if cold == 1 {
					m.Forget()
					olap.ForgetLookups()
				}
				if err := flush.run(ctx); err != nil {
					return err
				}
				got, did, err := q.onDevice(ctx, m, 0)
				if err != nil {
					return fmt.Errorf("%s: %w", q.name, err)
				}
				if text := differentRows(want[i], got); text != "" {
					t.Errorf("%s, %s: %s", name, q.name, text)
				}
				if run >= 2 {
					kernel = append(kernel, did.Stats.Kernel)
				}
			}
			slices.Sort(kernel)
			times[cold] = append(times[cold], kernel[len(kernel)/2])
		}
	}
	for cold, list := range times {
		fmt.Printf("%-20s %-5s", name, [2]string{"warm", "cold"}[cold])
		for _, ms := range list {
			fmt.Printf(" %7.4f", ms)
		}
		fmt.Printf(" %8.4f\n", geomean(list))
	}
	return nil
}
