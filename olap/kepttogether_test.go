package olap

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgaccel/plan"
	"pgaccel/vector"
)

// TestKeptTogether has executions of different versions use and make what is kept of segments at the same time, with
// scans that they share and few slots; some are cancelled, and some fail. No slot and no place is lost.
func TestKeptTogether(t *testing.T) {
	shareSmall(t)
	const slots, sessions, rounds = 3, 6, 12
	worlds := 5
	if testing.Short() {
		worlds = 3
	}
	type asked struct {
		q    *plan.Star
		opt  Options
		in   []Input // versions
		want []*vector.Batch
		errs []error
		kept *SegmentCache
	}
	var reused, cancelled atomic.Int64
	s, share := NewSlots(slots), NewSharer()
	for seed := range uint64(worlds) {
		w := newWorldOf(t, seed+7000, inPieces)
		var list []asked
		for n := range 6 {
			a := asked{q: keptQuery(w), opt: w.options, kept: NewSegmentCache(1<<20, &reused)}
			a.opt.Workers, a.opt.Eager, a.opt.grouping = 3, n%2 == 0, []strategy{groupHash, groupDense, groupSingle}[n%3]
			current := w.tables[0].table.Segments
			for range 4 {
				in := w.input()
				in.Tables[0] = versionOf(in.Tables[0], current)
				b, err := Execute(context.Background(), a.q, in, a.opt)
				a.in, a.want, a.errs = append(a.in, in), append(a.want, b), append(a.errs, err)
				current = changed(w.r, current)
			}
			list = append(list, a)
		}
		var wg sync.WaitGroup
		for k := range sessions {
			r := rand.New(rand.NewPCG(seed, uint64(k)))
			wg.Go(func() {
				for range rounds * len(list) {
					i := r.IntN(len(list))
					a := &list[i]
					v := r.IntN(len(a.in))
					ctx, cancel := context.WithCancel(context.Background())
					if r.IntN(4) == 0 {
						ctx, cancel = context.WithTimeout(context.Background(), time.Duration(r.IntN(2000))*time.Microsecond)
					}
					opt := a.opt
					opt.Slots, opt.Share = s, share
					if r.IntN(8) > 0 {
						opt.Kept = a.kept
					}
					got, err := Execute(ctx, a.q, a.in[v], opt)
					if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
						cancelled.Add(1)
					} else if problem, _ := compareOutcomes(a.q, got, err, a.want[v], a.errs[v]); problem != "" {
						t.Errorf("seed %d query %d version %d: %s\n%s", seed, i, v, problem, queryText(a.q))
					}
					cancel()
				}
			})
		}
		wg.Wait()
		eventually(t, "all slots are free", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.free == slots && len(s.turns) == 0
		})
		s.unused(t, slots)
		if len(share.scans) > 0 {
			t.Errorf("%d scans are left", len(share.scans))
		}
		if t.Failed() {
			break
		}
	}
	t.Logf("%d segments reused, %d executions cancelled, %d rides", reused.Load(), cancelled.Load(), share.Joined())
	if reused.Load() == 0 || cancelled.Load() == 0 || share.Joined() == 0 {
		t.Error("not all was tried")
	}
}
