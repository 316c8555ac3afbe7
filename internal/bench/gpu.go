package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"pgaccel/gpu/device"
)

// GPUOptions are those of `pgaccel-bench gpu`. The zero value runs every part at full
// size on the first CUDA devices there are.
type GPUOptions struct {
	Only         []string  // parts of GPUParts; nil is all
	Scale        float64   // scale factor of the Star Schema Benchmark; 0 is 20, or 0.02 with Quick
	SSBFiles     string    // folder with dbgen's tables of that scale factor; "" generates them
	Rows         int64     // of ClickBench's table; 0 is ten million, or 20,000 with Quick
	TPCH         float64   // scale factor of TPC-H; 0 is 10, or 0.01 with Quick
	IndexRows    int64     // of each table of the part index; 0 is 120 million, or 200,000 with Quick
	WireOf       string    // whose statements the part wire asks: ssb, clickbench or tpch; "" is ssb
	Queries      []string  // names of the statements of the parts clickbench, tpch and wire; nil is all
	DuckDB       string    // program of bench/duckdb; "" leaves it out
	Quick        bool      // tiny inputs, for a look or the emulator: the numbers mean little
	Device       string    // cuda, cuda:N[,M...] or emu; "" is cuda
	DeviceMemory int64     // bytes of each device to use; 0 is 85 % of what is free
	DeviceWorker string    // program that has the device; "" looks for it
	Runs         int       // measured runs of each query; 0 is 12, or 2 with Quick, and of the part wire 50, or 3
	Out          string    // FILE: writes FILE.json and FILE.md; "" writes neither
	Binary       string    // pgaccel, for end-to-end runs; "" is the one beside this program
	Progress     io.Writer // nil is standard error

	wireRuns int
}

// GPUParts are the parts of the benchmark, in the order in which they run.
func GPUParts() []string {
	return []string{"ssb", "decode", "wah", "cube", "rowout", "coprocessor", "e2e", "clickbench", "tpch", "index", "wire"}
}

func (o *GPUOptions) fill() error {
	orDefault(o.Quick, &o.Scale, 20, 0.02)
	o.wireRuns = o.Runs
	orDefault(o.Quick, &o.wireRuns, 50, 3)
	orDefault(o.Quick, &o.Runs, 12, 2)
	orDefault(o.Quick, &o.Rows, 10_000_000, 20_000)
	orDefault(o.Quick, &o.TPCH, 10, 0.01)
	orDefault(o.Quick, &o.IndexRows, 120_000_000, 200_000)
	if o.Device == "" {
		o.Device = "cuda"
	}
	if o.SSBFiles != "" {
		if _, err := findTblFiles(o.SSBFiles); err != nil {
			return err
		}
	}
	if !slices.Contains([]string{"", "ssb", "clickbench", "tpch"}, o.WireOf) {
		return fmt.Errorf("no statements %q: use ssb, clickbench or tpch", o.WireOf)
	}
	for _, part := range o.Only {
		if !slices.Contains(GPUParts(), part) {
			return fmt.Errorf("no part %q: use some of %s", part, strings.Join(GPUParts(), ", "))
		}
	}
	return orPgaccel(&o.Progress, &o.Binary)
}

// gpuRun is a benchmark under way.
type gpuRun struct {
	GPUOptions
	out    io.Writer
	report *gpuReport

	ex       device.Executor // nil once it was released
	ordinals []int           // of the devices to use; nil: all
	log      *slog.Logger
	copies   copyRates
	data     *ssbData // of the parts that share it; nil before the first
	dataErr  error    // why there is none
}

// GPU runs the benchmark of the device path: each part writes its tables to out and
// checks its answers. A part that fails does not keep the others from running; the error
// tells of all that failed. Interrupted, it prints what it has.
func GPU(ctx context.Context, o GPUOptions, out io.Writer) (err error) {
	defer interrupted(ctx, &err)
	if err := o.fill(); err != nil {
		return err
	}
	r := &gpuRun{GPUOptions: o, out: out}
	if err := r.open(ctx); err != nil {
		return err
	}
	defer r.dropData()
	defer r.close()
	for _, n := range r.ordinals {
		if n >= len(r.ex.Devices()) {
			return fmt.Errorf("--device %s: there are %d devices", o.Device, len(r.ex.Devices()))
		}
	}
	r.report = newGPUReport(o, r.ex.Devices())
	r.report.printHead(out)
	parts := map[string]func(context.Context) error{"ssb": r.ssb, "decode": r.decode, "wah": r.wah, "cube": r.cube, "rowout": r.rowout, "coprocessor": r.coprocessor, "e2e": r.endToEnd,
		"clickbench": r.clickbench, "tpch": r.tpch, "index": r.index, "wire": r.wire}
	var errs []error
	if r.copies, err = measureCopies(ctx, r.ex, r.first(), o.Quick); err != nil {
		return fmt.Errorf("measuring copies: %w", err)
	}
	r.report.Copies = r.copies
	fmt.Fprintln(out, r.copies)
	r.close()
	for _, name := range GPUParts() {
		if len(o.Only) > 0 && !slices.Contains(o.Only, name) {
			continue
		}
		fmt.Fprintln(out)
		began := time.Now()
		if err := r.part(ctx, parts[name]); err != nil {
			fmt.Fprintf(out, "%s: %v\n", name, err)
			r.report.Errors = append(r.report.Errors, fmt.Sprintf("%s: %v", name, err))
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		fmt.Fprintf(o.Progress, "%s took %v\n", name, time.Since(began).Round(100*time.Millisecond))
		if ctx.Err() != nil {
			fmt.Fprintf(out, "INTERRUPTED in part %s.\n", name)
			break
		}
	}
	if o.Out != "" {
		errs = append(errs, r.report.write(o.Out))
	}
	return errors.Join(errs...)
}

// part runs one part on a worker of its own, so that none meets what another left.
func (r *gpuRun) part(ctx context.Context, f func(context.Context) error) error {
	if err := r.open(ctx); err != nil {
		return err
	}
	defer r.close()
	return f(ctx)
}

// showSoFar shows what there is of a table whose measuring has ended with an error, such
// as that of an interruption, which it returns; all of it where err is nil.
func (r *gpuRun) showSoFar(t gpuTable, err error) error {
	if err != nil {
		t.Notes = append(t.Notes, "INCOMPLETE: "+err.Error())
	}
	if len(t.Rows) > 0 {
		r.show(t)
	}
	return err
}

// show prints a table and adds it to the report.
func (r *gpuRun) show(t gpuTable) {
	t.print(r.out)
	r.report.Tables = append(r.report.Tables, t)
	// What is measured is kept, whatever becomes of the rest of the run.
	if r.Out != "" {
		if err := r.report.write(r.Out); err != nil {
			fmt.Fprintln(r.Progress, err)
		}
	}
}

// processor is the name of this machine's processor.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	return runtime.GOARCH
}
