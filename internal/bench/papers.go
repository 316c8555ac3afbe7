package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// PapersOptions are those of `pgaccel-bench papers`. The zero value runs everything at
// full size, which takes some minutes.
type PapersOptions struct {
	Quick   bool   // small inputs: about half a minute
	Only    string // one section of PapersSections; "" is all
	Roaring string // program of bench/roaring, to show RoaringBitmap beside WAH; "" leaves it out
}

// PapersSections are the sections of the benchmark, in the order in which they run.
func PapersSections() []string { return []string{"compression", "wah", "cube"} }

// Papers repeats on this machine the comparisons of the papers that pgaccel is built on:
// compressed formats, WAH bitmaps, aggregation of cubes. Each section writes its tables to
// out and checks its answers. A section that fails does not keep the others from running;
// the error tells of all that failed. Interrupted, it prints the medians that it has.
func Papers(ctx context.Context, o PapersOptions, out io.Writer) (err error) {
	defer interrupted(ctx, &err)
	sections := map[string]func() error{
		"compression": func() error { return papersCompression(ctx, out, o.Quick) },
		"wah":         func() error { return papersWAH(ctx, out, o.Quick, o.Roaring) },
		"cube":        func() error { return papersCube(ctx, out, o.Quick) },
	}
	if o.Only != "" && !slices.Contains(PapersSections(), o.Only) {
		return fmt.Errorf("no section %q: use one of %s", o.Only, strings.Join(PapersSections(), ", "))
	}
	var errs []error
	whole := 0
	for _, name := range PapersSections() {
		if o.Only != "" && o.Only != name {
			continue
		}
		if err := sections[name](); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		if ctx.Err() != nil {
			fmt.Fprintf(out, "\nINTERRUPTED in section %s, after %d others: its medians are of the runs until then.\n", name, whole)
			break
		}
		whole++
		fmt.Fprintln(out)
	}
	return errors.Join(errs...)
}
