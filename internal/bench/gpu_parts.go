package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"pgaccel/papers/gpucube"
	"pgaccel/papers/rowout"
	"pgaccel/papers/tile"
	"pgaccel/papers/wah"
)

// decode measures the formats by bit width: a column decoded alone, added up or written.
func (r *gpuRun) decode(ctx context.Context) error {
	o := tile.Options{Runs: r.Runs}
	if r.Quick {
		o = tile.Options{SegmentRows: 1 << 14, Segments: 2, Widths: []int{7, 16}, Runs: r.Runs, Warm: 1}
	}
	rows, err := tile.Bench(ctx, r.ex, r.first(), o)
	t := gpuTable{Part: "decode", Title: "One column decoded alone: uniform values by bit width",
		Columns: []string{"decoder", "bits", "values", "rows", "ms", "MB compressed", "MB plain", "GB/s", "of copy"}, Data: rows}
	for _, x := range rows {
		what := "written"
		if x.Sum {
			what = "added up"
		}
		t.Rows = append(t.Rows, []any{x.Decoder, x.Width, what, x.Rows, x.Millis, float64(x.Compressed) / 1e6, float64(x.Plain) / 1e6, x.GBs, share(x.OfCopy, 1)})
	}
	t.Notes = []string{"GB/s: compressed bytes read and, where they are written, plain bytes written. of copy: of a copy of plain values, measured beside."}
	if len(rows) > 0 {
		r.show(t)
	}
	return err
}

// cube measures the thesis' aggregation queries in all variants.
func (r *gpuRun) cube(ctx context.Context) error {
	o := gpucube.Options{Rounds: r.Runs, Progress: r.Progress}
	if r.Quick {
		o.BikerCells, o.MachinesCells, o.BaselineCells, o.Limit, o.Progress = 2000, 2000, 2000, time.Hour, nil
		for _, v := range gpucube.Variants() {
			// Many replicas and child grids are what an emulator is slowest at.
			if name := v.String(); name == "source/f1" || name == "source/prefilter/f1" || strings.HasPrefix(name, "classes/") || strings.HasSuffix(name, "fixed/sync/f4") {
				o.Variants = append(o.Variants, v)
			}
		}
	}
	rows, err := gpucube.Bench(ctx, r.ex, r.first(), o)
	t := gpuTable{Part: "cube", Title: "Aggregation of cubes: the thesis' queries in all variants; medians in ms",
		Columns: []string{"query", "variant", "cells", "targets", "device", "run", "end to end", "runs", "sequential", "sequential / end to end", "over best", "chosen"}, Data: rows}
	for _, x := range rows {
		if x.Unavailable != "" {
			t.Rows = append(t.Rows, []any{x.Cube + " " + x.Query, fmt.Sprint(x.Variant), x.Cells, nil, nil, nil, nil, nil, nil, nil, nil, x.Unavailable})
			continue
		}
		mark := ""
		if x.Chosen {
			mark = "chosen"
		}
		sequential := cell(x.BaselineMillis)
		if x.BaselineScaled {
			sequential += " scaled"
		}
		t.Rows = append(t.Rows, []any{x.Cube + " " + x.Query, fmt.Sprint(x.Variant), x.Cells, x.Targets, x.DeviceMillis, x.RunMillis, x.EndToEndMillis, x.Rounds, sequential, x.Factor, x.OverBest, mark})
	}
	for _, s := range gpucube.Summarize(rows) {
		t.Notes = append(t.Notes, s.String())
	}
	if len(rows) > 0 {
		r.show(t)
	}
	return err
}

// rowout measures how rows leave the device: bitmaps against atomic appends.
func (r *gpuRun) rowout(ctx context.Context) error {
	o := rowout.Options{Runs: r.Runs, Progress: func(results float64) { fmt.Fprintf(r.Progress, "rowout: %v results a query\n", results) }}
	if r.Quick {
		o = rowout.Options{Objects: 2000, Results: []float64{1, 16}, Runs: r.Runs, Warm: 1}
	}
	rows, err := rowout.Bench(ctx, r.ex, r.first(), o)
	if len(rows) > 0 {
		var text strings.Builder
		rowout.Print(&text, rows)
		r.show(gpuTable{Part: "rowout", Title: "Rows out of the device: interlaced bitmaps against atomic appends", Text: text.String(), Data: rows})
	}
	return err
}

// wah measures range queries over compressed bitmaps, as the papers do.
func (r *gpuRun) wah(ctx context.Context) error {
	o := wah.Options{Quick: r.Quick, Runs: r.Runs, Bandwidth: r.copies.Device * 1e9, Shapes: wah.Compared(),
		Progress: func(set string, rows int) { fmt.Fprintf(r.Progress, "wah: %s, %d rows\n", set, rows) }}
	if r.Quick {
		o.CPURuns, o.Sets, o.Bins, o.Large, o.Shapes = 1, []string{"KDD"}, []int{4, 8}, -1, nil
	}
	rows, err := wah.Bench(ctx, r.ex, r.first(), o)
	if len(rows) > 0 {
		var text strings.Builder
		wah.Print(&text, rows)
		r.show(gpuTable{Part: "wah", Title: "Range queries over WAH bitmaps", Text: text.String(), Data: rows})
	}
	return err
}

// first is the device that parts of one device use.
func (r *gpuRun) first() int {
	if len(r.ordinals) > 0 {
		return r.ordinals[0]
	}
	return 0
}
