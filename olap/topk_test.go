package olap

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"pgaccel/plan"
	"pgaccel/vector"
)

func TestNthSmallest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	x := &execution{ctx: t.Context(), opt: Options{Workers: 3}}
	for _, n := range []int{1, 2, 16, 17, 63, 64, 127, 128, 129, 511, 512, 513, 5000, 2*buildChunk + 7} {
		for _, values := range []int64{1, 2, 10, 1 << 62} {
			list := make([]int64, n)
			for i := range list {
				list[i] = r.Int64N(values) - values/2
			}
			sorted := slices.Sorted(slices.Values(list))
			for range 20 {
				k := r.IntN(n)
				if got := nthSmallest(slices.Clone(list), k); got != sorted[k] {
					t.Fatalf("%d values, number %d: %d, want %d", n, k, got, sorted[k])
				}
				places := make([]uint32, n)
				for i := range places {
					places[i] = uint32(i)
				}
				if got := x.nthKey(list, places, k); got != sorted[k] {
					t.Fatalf("%d values, number %d by a bound: %d, want %d", n, k, got, sorted[k])
				}
			}
		}
	}
}

func TestFirstRows(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, n := range []int{1, 2, 63, 64, 65, 129, 513, 3000} {
		for _, values := range []int{1, 5, 1 << 30} {
			list := make([]int, n)
			for i := range list {
				list[i] = r.IntN(values)
			}
			compare := func(a, b uint32) int { return cmp.Compare(list[a], list[b]) }
			order := &rowOrder{compare: compare}
			all := firstRows(n, n, order)
			for _, k := range []int{1, 2, 3, n / 9, n / 2, n} {
				k = min(max(k, 1), n)
				want := all
				for len(want) > k && compare(want[len(want)-1], all[k-1]) > 0 {
					want = want[:len(want)-1]
				}
				if got := firstRows(n, k, order); !slices.Equal(got[:min(len(want), len(got))], want) {
					t.Fatalf("%d rows of %d values, the first %d: %d rows, want %d", n, values, k, len(got), len(want))
				}
			}
		}
	}
}

func TestRenumber(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for _, n := range edgeLengths {
		for _, share := range []int{1, 2, 50} {
			var kept, list []uint32
			for i := range uint32(n) {
				if r.IntN(2) == 0 {
					continue
				}
				if kept = append(kept, i); r.IntN(share) == 0 {
					list = append(list, i)
				}
			}
			got := slices.Clone(list)
			renumber(got, kept)
			for i, at := range list {
				if want, _ := slices.BinarySearch(kept, at); got[i] != uint32(want) {
					t.Fatalf("%d of %d: place %d, want %d", i, n, got[i], want)
				}
			}
		}
	}
}

// TestFirstGroupsAgainstOracle orders many groups by keys and aggregates, with ties, and
// takes few.
func TestFirstGroupsAgainstOracle(t *testing.T) {
	withSmallGroups(t)
	r := rand.New(rand.NewPCG(5, 5))
	forwards := 0
	for _, groups := range []int{40, 3000} {
		table := manyGroups(t, 5000, groups)
		w := &world{tables: []*randomTable{table}}
		for n := range 60 {
			q := groupedBy(table, 1, 4)
			q.Aggs = append(q.Aggs, plan.AggregateCall{Func: plan.Avg, Arg: bigint(0, 0), T: vector.NumericType(vector.VaryingScale)})
			q.Output = append(q.Output, plan.Agg{Index: 4, T: q.Aggs[4].T})
			for len(q.Order) < 1+r.IntN(3) {
				q.Order = append(q.Order, plan.Order{Expr: q.Output[r.IntN(len(q.Output))], Desc: r.IntN(2) == 0, NullsFirst: r.IntN(2) == 0})
			}
			if n%3 > 0 { // a total order
				q.Order = append(q.Order, plan.Order{Expr: q.Output[0]}, plan.Order{Expr: q.Output[1]})
			}
			q.Limit = plan.Const{Datum: vector.Int(vector.Int8, int64(1+r.IntN(30)))}
			if r.IntN(3) == 0 {
				q.Offset = plan.Const{Datum: vector.Int(vector.Int8, int64(r.IntN(20)))}
			}
			if r.IntN(3) == 0 {
				q.Having = []plan.Expr{call(plan.OpGe, vector.Bool, q.Output[2+r.IntN(2)*2], integer(int64(r.IntN(3))))}
			}
			if r.IntN(4) == 0 {
				q.Sets = []uint64{3, 1, 2}
			}
			want, wantErr := w.reference(q)
			for _, s := range strategies {
				got, err := Execute(t.Context(), q, w.input(), Options{Workers: 1 + n%3, grouping: s.how})
				problem, why := compareOutcomes(q, got, err, want, wantErr)
				if problem != "" {
					t.Fatalf("%d groups, query %d %s: %s\n%s", groups, n, s.name, problem, queryText(q))
				}
				if why != "" {
					forwards++
				}
			}
		}
	}
	if forwards > 2*60*len(strategies)/2 {
		t.Errorf("%d answers were forwarded", forwards)
	}
}

// TestWordTables compares with a map, across growth.
func TestWordTables(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for words := 1; words <= 3; words++ {
		for _, n := range []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513, 1024, 1025, 20000} {
			keys := make([]uint64, 0, n*words)
			for range n {
				k := r.Uint64N(uint64(n)) << (r.IntN(2) * 40)
				for i := range words {
					keys = append(keys, k*uint64(i+1))
				}
			}
			table, one := newWordTable(words, 0), newWordTable(words, n)
			index := make([]uint32, n)
			table.insertAll(keys, index)
			known := map[string]uint32{}
			for i := range n {
				k := keys[i*words : (i+1)*words]
				want, seen := known[fmt.Sprint(k)]
				if !seen {
					want = uint32(len(known))
					known[fmt.Sprint(k)] = want
				}
				got, fresh := one.insert(k)
				if at, ok := table.find(k); got != want || fresh == seen || index[i] != want || !ok || at != want {
					t.Fatalf("%d words, key %d of %d: %d and %d, found %d %v, want %d", words, i, n, got, index[i], at, ok, want)
				}
			}
			if table.n != len(known) || one.n != len(known) {
				t.Errorf("%d words: %d and %d keys, want %d", words, table.n, one.n, len(known))
			}
			missing := make([]uint64, words)
			missing[0] = 1 << 63
			if _, ok := table.find(missing); ok {
				t.Errorf("%d words: a key that was never added was found", words)
			}
		}
	}
}

// FuzzGroups groups rows made of the input by every strategy, by sets, and compares with
// the oracle.
func FuzzGroups(f *testing.F) {
	f.Add([]byte("a few rows of some keys and some values"), uint8(3), uint8(1))
	f.Add(make([]byte, 3000), uint8(0), uint8(255))
	f.Fuzz(func(t *testing.T, data []byte, sets, spread uint8) {
		withSmallGroups(t)
		if len(data) > 1<<14 {
			return
		}
		var rows [][]any
		for ; len(data) >= 4; data = data[4:] {
			v := binary.LittleEndian.Uint32(data)
			row := []any{int64(int8(v)), int64(v>>8&0xff) << (spread & 63), int64(v>>16&0xf) - int64(spread), int64(v >> 24)}
			if v>>20&0xf == 0 {
				row[v&3] = nil
			}
			rows = append(rows, row)
		}
		w := &world{tables: []*randomTable{ints(t, 1024, []string{"x", "a", "b", "c"}, rows)}}
		q := groupedBy(w.tables[0], 1, 2, 3)
		for set := range uint64(8) {
			if sets>>set&1 != 0 {
				q.Sets = append(q.Sets, set)
			}
		}
		want, wantErr := w.reference(q)
		for _, s := range strategies {
			got, err := Execute(context.Background(), q, w.input(), Options{Workers: 2, grouping: s.how})
			if problem, why := compareOutcomes(q, got, err, want, wantErr); problem != "" || why != "" {
				t.Fatalf("%s: %s %s\n%s", s.name, problem, why, queryText(q))
			}
		}
	})
}

// TestRoughly: a double is near the value, where 64 bits end and where 128 do.
func TestRoughly(t *testing.T) {
	for _, hi := range []int64{math.MinInt64, -2, -1, 0, 1, math.MaxInt64} {
		for _, lo := range []uint64{0, 1, 1<<63 - 1, 1 << 63, 1<<63 + 1, math.MaxUint64} {
			exact := new(big.Int).Lsh(big.NewInt(hi), 64)
			want, _ := new(big.Float).SetInt(exact.Add(exact, new(big.Int).SetUint64(lo))).Float64()
			if got := roughly(vector.Decimal{Unscaled: vector.Int128{Hi: hi, Lo: lo}}); math.Abs(got-want) > math.Abs(want)*1e-15 {
				t.Errorf("%d * 2^64 + %d: %g, want %g", hi, lo, got, want)
			}
		}
	}
}
