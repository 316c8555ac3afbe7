package bench

import (
	"context"
	"fmt"
	"strings"

	"pgaccel/gpu/wah"
)

// wah measures range queries over compressed bitmaps, as the papers do.
func (r *gpuRun) wah(ctx context.Context) error {
	o := wah.Options{Quick: r.Quick, Runs: r.Runs, Bandwidth: r.copies.Device * 1e9,
		Progress: func(set string, rows int) { fmt.Fprintf(r.Progress, "wah: %s, %d rows\n", set, rows) }}
	if r.Quick {
		o.CPURuns, o.Sets, o.Bins = 1, []string{"KDD"}, []int{4, 8}
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
