package olap

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/internal/simd"
	"pgaccel/plan"
	"pgaccel/vector"
)

func TestInterlaced(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513, 2000, 65536} {
		for _, queries := range []int{1, 2, 3, 8} {
			var b interlaced
			b.reset(n+64, queries+1) // stale cells
			for i := range b.cells {
				b.cells[i] = r.Uint64()
			}
			b.reset(n, queries)
			lines := (n + 63) / 64
			truth := make([][]bool, queries)
			for q := range truth {
				truth[q] = make([]bool, n)
				cells := make([]uint64, lines)
				mode := r.IntN(4)
				for i := range truth[q] {
					truth[q][i] = mode == 3 || mode > 0 && r.IntN(1<<(3*mode)) == 0
					if truth[q][i] {
						cells[i>>6] |= 1 << (i & 63)
					}
				}
				// In pieces, as tiles come; some are left out, being empty.
				for at := 0; at < lines; at += 16 {
					part := cells[at:min(at+16, lines)]
					if simd.Count(part) > 0 {
						b.put(q, at, part)
					}
				}
			}
			for q := range truth {
				words := make([]uint64, lines)
				half := r.IntN(lines + 1)
				b.linearise(q, half, words[half:])
				b.linearise(q, 0, words[:half])
				var want []uint16
				for i, is := range truth[q] {
					if is {
						want = append(want, uint16(i))
					}
				}
				got := make([]uint16, 64*len(words))
				if k := simd.Positions(got, words); k != simd.Count(words) || !slices.Equal(got[:k], want) {
					t.Fatalf("%d rows, query %d of %d: %d rows, want %d", n, q, queries, k, len(want))
				}
			}
		}
	}
}

// TestBitmapRows compares rows that are read in a second pass with the oracle's.
func TestBitmapRows(t *testing.T) {
	defer func(n int) { bitmapMin = n }(bitmapMin)
	bitmapMin = 0
	answered := 0
	for seed := range uint64(60) {
		w := newWorld(t, seed+1000)
		for n := range 6 {
			q := w.rowQuery()
			q.Limit = nil
			if n%2 == 0 {
				q.Order = nil
			}
			problem, why := w.outcome(q, 1+n%3)
			if problem != "" {
				t.Fatalf("seed %d query %d: %s\n%s", seed, n, problem, queryText(q))
			}
			if why == "" {
				answered++
			}
		}
	}
	if answered < 180 {
		t.Errorf("only %d of 360 queries were answered", answered)
	}
}

// answerText is an execution's outcome as a set of rows.
func answerText(b *vector.Batch, err error) string {
	if err != nil {
		var f *plan.Forward
		if errors.As(err, &f) {
			return "forward: " + string(f.Reason)
		}
		return err.Error()
	}
	var rows []string
	for i := range b.Rows {
		rows = append(rows, rowText(b, i))
	}
	slices.Sort(rows)
	return strings.Join(rows, "\n")
}

func shareSmall(t testing.TB) {
	segments, unlike, bitmap := shareSegments, shareUnlike, bitmapMin
	t.Cleanup(func() { shareSegments, shareUnlike, bitmapMin = segments, unlike, bitmap })
	shareSegments, shareUnlike, bitmapMin = 1, 1e9, 0
}

// TestSharedScans runs queries together and alone: the answers, and the reasons to
// forward, are the same.
func TestSharedScans(t *testing.T) {
	shareSmall(t)
	var joined int64
	for seed, worlds := uint64(0), 0; worlds < 3 || joined == 0 && worlds < 12; seed++ { // not in each do two queries meet
		w := newWorld(t, seed)
		if len(w.tables[0].rows) < 2000 {
			continue
		}
		worlds++
		var queries []*plan.Star
		var want []string
		for n := range 24 {
			q := w.query()
			if n%3 == 2 {
				q = w.rowQuery()
				if n%2 == 0 {
					q.Limit = nil
				}
			}
			queries = append(queries, q)
			want = append(want, answerText(Execute(context.Background(), q, w.input(), Options{Workers: 2})))
		}
		share := NewSharer()
		for round := range 3 {
			got := make([]string, len(queries))
			var wg sync.WaitGroup
			var ended atomic.Int64
			if round == 0 { // all that share wait for each other
				share.hold = make(chan struct{})
			}
			for i, q := range queries {
				wg.Go(func() {
					got[i] = answerText(Execute(context.Background(), q, w.input(), Options{Workers: 2, Share: share}))
					ended.Add(1)
				})
			}
			for round == 0 {
				share.mu.Lock()
				waiting := 0
				for _, s := range share.scans {
					waiting += len(s.riders)
				}
				share.mu.Unlock()
				if waiting+int(ended.Load()) == len(queries) {
					close(share.hold)
					break
				}
				runtime.Gosched()
			}
			wg.Wait()
			for i := range queries {
				if got[i] != want[i] {
					t.Fatalf("seed %d: together\n%s\nalone\n%s\n%s", seed, got[i], want[i], queryText(queries[i]))
				}
			}
		}
		joined += share.Joined()
		// A scan ends after its last rider has got off.
		left := 1
		for began := time.Now(); left > 0 && time.Since(began) < 10*time.Second; time.Sleep(time.Millisecond) {
			share.mu.Lock()
			left = len(share.scans)
			share.mu.Unlock()
		}
		if left > 0 {
			t.Errorf("seed %d: %d scans go on without riders", seed, left)
		}
	}
	if joined == 0 {
		t.Error("no two queries met")
	}
}

// TestSharedScanFailures: what happens to one rider does not touch the others.
func TestSharedScanFailures(t *testing.T) {
	shareSmall(t)
	var rows [][]any
	for i := range 40000 {
		rows = append(rows, []any{int64(i), int64(i % 7)})
	}
	w := ints(t, 1024, []string{"id", "v"}, rows)
	in := Input{Tables: []*colstore.Table{w.table}}
	q := &plan.Star{Tables: []plan.Source{{Meta: w.meta}}, Grouped: true,
		Aggs: []plan.AggregateCall{{Func: plan.Sum, Arg: bigint(0, 1), T: vector.NumericType(0)}, {Func: plan.CountStar, T: vector.TypeOf(vector.Int8)}}}
	q.Output = []plan.Expr{plan.Agg{Index: 0, T: vector.NumericType(0)}, plan.Agg{Index: 1, T: vector.TypeOf(vector.Int8)}}
	// 1/(v-6) fails in every segment.
	bad := *q
	minus := call(plan.OpSub, vector.Int8, bigint(0, 1), plan.Const{Datum: vector.Int(vector.Int8, 6)})
	bad.Filter = []plan.Expr{call(plan.OpGt, vector.Bool, call(plan.OpDiv, vector.Int8, bigint(0, 0), minus), plan.Const{Datum: vector.Int(vector.Int8, 0)})}
	want := answerText(Execute(context.Background(), q, in, Options{Workers: 2}))
	share := NewSharer()
	for round := range 20 {
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				opt := Options{Workers: 2, Share: share}
				switch i % 4 {
				case 0:
					if got := answerText(Execute(context.Background(), &bad, in, opt)); got != "forward: "+string(plan.ReasonEvaluation) {
						t.Errorf("division by zero: %s", got)
					}
				case 1:
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(round*20)*time.Microsecond)
					defer cancel()
					got := answerText(Execute(ctx, q, in, opt))
					if got != want && got != context.DeadlineExceeded.Error() {
						t.Errorf("cancelled: %s", got)
					}
				default:
					if got := answerText(Execute(context.Background(), q, in, opt)); got != want {
						t.Errorf("%s, want %s", got, want)
					}
				}
			})
		}
		wg.Wait()
	}
}

// BenchmarkSharedScan runs k queries over the same columns at the same time, each by
// itself or together: ns/op is for all of them.
func BenchmarkSharedScan(b *testing.B) {
	s := newStar(b, 2_000_000, 30000, 2000, 200000, 65536, false)
	queries := s.queries()
	for _, k := range []int{1, 2, 4, 8, 16} {
		for _, together := range []bool{false, true} {
			b.Run(fmt.Sprintf("queries=%d/shared=%v", k, together), func(b *testing.B) {
				share := NewSharer()
				for b.Loop() {
					opt := Options{}
					if together {
						opt.Share = share
					}
					var wg sync.WaitGroup
					for i := range k {
						q := queries[i%len(queries)].q
						wg.Go(func() {
							if _, err := Execute(context.Background(), q, s.input(q), opt); err != nil {
								b.Error(err)
							}
						})
					}
					wg.Wait()
				}
			})
		}
	}
}

// BenchmarkRowOutput collects two columns of the rows of a range, by the wait-free bitmap
// (filter, count, read) and by appending tile for tile.
func BenchmarkRowOutput(b *testing.B) {
	defer func(n int) { bitmapMin = n }(bitmapMin)
	const n = 1 << 20
	s := newStar(b, n, 30000, 2000, 200000, 0, false)
	meta := s.metas[lineorder]
	column := func(name string) plan.Expr {
		i := slices.IndexFunc(meta.Columns, func(c catalog.Column) bool { return c.Name == name })
		return plan.Column{Table: 0, Column: i, T: meta.Columns[i].Type}
	}
	for _, below := range []int64{100, 10_000, 300_000, 10_000_000} {
		q := &plan.Star{Tables: []plan.Source{{Meta: meta}}, Output: []plan.Expr{column("lo_orderdate"), column("lo_revenue")},
			Filter: []plan.Expr{call(plan.OpLt, vector.Bool, column("lo_partkey"), integer(below))}}
		var rows [2]int
		for i, how := range []string{"append", "bitmap"} {
			b.Run(fmt.Sprintf("partkey<%d/%s", below, how), func(b *testing.B) {
				if bitmapMin = 0; how == "append" {
					bitmapMin = math.MaxInt
				}
				for b.Loop() {
					got, err := Execute(context.Background(), q, s.input(q), Options{})
					if err != nil {
						b.Fatal(err)
					}
					rows[i] = got.Rows
				}
				b.ReportMetric(float64(rows[i]), "rows")
			})
		}
		if rows[0] != rows[1] {
			b.Errorf("%d rows appended, %d by the bitmap", rows[0], rows[1])
		}
	}
}
