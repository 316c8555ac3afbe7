package olap

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"pgaccel/gpu"
	"pgaccel/gpu/program"
)

// listening notes the programs that a device was given to run, and those that it was to prepare.
type listening struct {
	gpu.Runner
	mu            sync.Mutex
	ran, prepared map[string]bool
}

func (d *listening) Run(ctx context.Context, q *program.Query, opt gpu.RunOptions) (*program.Result, gpu.Stats, error) {
	key := fmt.Sprintf("%+v", *q.Program)
	d.mu.Lock()
	switch {
	case opt.Prepare:
		d.prepared[key] = true
	case slices.ContainsFunc(q.Program.Nodes, func(n program.Node) bool { return n.Op == program.OpShift }):
		// A pass of percentiles of many values: which the next is depends on what this one counts.
	default:
		d.ran[key] = true
	}
	d.mu.Unlock()
	if opt.Prepare {
		return nil, gpu.Stats{}, nil
	}
	return d.Runner.Run(ctx, q, opt)
}

// TestPrepare: the kernels that an execution needs are those that were prepared for it, and nothing is computed for that.
func TestPrepare(t *testing.T) {
	buildsSmall(t)
	shapes := 0
	for seed := range uint64(30) {
		w := newWorld(t, 15000+seed)
		for n := range 12 {
			q := w.deviceQuery()
			if n%3 == 0 {
				q = w.rowQuery()
			} else if n%4 == 0 {
				addSets(w.r, q)
			}
			d := &listening{Runner: newPlainDevice(), ran: map[string]bool{}, prepared: map[string]bool{}}
			opt := w.options
			opt.Workers, opt.Device, opt.DeviceWait, opt.Prepare = 2, d, true, true
			// Another error may come first, and of no rows there is nothing to compute.
			b, err := Execute(t.Context(), q, w.input(), opt)
			if (b == nil) == (err == nil) || b != nil && b.Rows > 0 || len(d.ran) > 0 {
				t.Fatalf("seed %d query %d: %v, %v, and %d programs ran\n%s", seed, n, b, err, len(d.ran), queryText(q))
			}
			opt.Prepare = false
			b, err = Execute(t.Context(), q, w.input(), opt)
			b.Release()
			if err != nil {
				continue
			}
			for key := range d.ran {
				if shapes++; !d.prepared[key] {
					t.Fatalf("seed %d query %d: %d of %d programs were prepared, not\n%s\n%s", seed, n, len(d.prepared), len(d.ran), key, queryText(q))
				}
			}
		}
	}
	if shapes < 100 {
		t.Errorf("%d programs ran", shapes)
	}
}
