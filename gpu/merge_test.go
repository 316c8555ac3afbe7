package gpu

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"pgaccel/gpu/program"
)

// TestMerge spreads rows over parts and compares with sums over all of them.
func TestMerge(t *testing.T) {
	kinds := []program.AccKind{program.AccRows, program.AccCount, program.AccSum, program.AccSum128, program.AccMin, program.AccMax}
	p := &program.Program{}
	for _, k := range kinds {
		p.Sink.Accs = append(p.Sink.Accs, program.Acc{Kind: k})
	}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 2))
		parts := make([]*program.Result, 1+r.IntN(4))
		type group struct {
			rows, sum int64
			sum128    *big.Int
			min, max  int64
		}
		want := map[[2]uint64]*group{}
		of := make([]map[[2]uint64]int, len(parts))
		p.Sink.Prefix = int(seed % 2)
		for i := range parts {
			parts[i] = &program.Result{Accs: make([]program.Values, len(kinds))}
			of[i] = map[[2]uint64]int{}
		}
		for range r.IntN(400) {
			i, number, v := r.IntN(len(parts)), [2]uint64{r.Uint64N(60) << (seed % 40)}, int64(r.Uint64())
			if p.Sink.Prefix > 0 {
				number = [2]uint64{r.Uint64N(9), r.Uint64N(9) << 40}
			}
			part := parts[i]
			g, ok := of[i][number]
			if !ok {
				g = len(part.Numbers)
				of[i][number] = g
				part.Numbers = append(part.Numbers, number[0])
				if p.Sink.Prefix > 0 {
					part.Prefix = append(part.Prefix, number[1])
				}
				part.Rows = append(part.Rows, 0)
				for a, k := range kinds {
					part.Accs[a].Grow(k, g+1)
				}
			}
			part.Rows[g]++
			for a, k := range kinds {
				one := program.Values{V: []int64{v}, Hi: []int64{v >> 63}}
				if k == program.AccRows || k == program.AccCount {
					one.V[0] = 1
				}
				part.Accs[a].Merge(k, g, &one, 0)
			}
			if want[number] == nil {
				want[number] = &group{sum128: new(big.Int), min: math.MaxInt64, max: math.MinInt64}
			}
			w := want[number]
			w.rows++
			w.sum += v
			w.sum128.Add(w.sum128, big.NewInt(v))
			w.min, w.max = min(w.min, v), max(w.max, v)
		}
		got := merge(p, parts)
		if len(got.Numbers) != len(want) {
			t.Fatalf("%d groups, not %d", len(got.Numbers), len(want))
		}
		for g := range got.Numbers {
			number := [2]uint64{got.Numbers[g]}
			if p.Sink.Prefix > 0 {
				number[1] = got.Prefix[g]
			}
			w := want[number]
			sum := new(big.Int).Lsh(big.NewInt(got.Accs[3].Hi[g]), 64)
			sum.Add(sum, new(big.Int).SetUint64(uint64(got.Accs[3].V[g])))
			if w == nil || got.Rows[g] != w.rows || got.Accs[0].V[g] != w.rows || got.Accs[1].V[g] != w.rows || got.Accs[2].V[g] != w.sum ||
				sum.Cmp(w.sum128) != 0 || got.Accs[4].V[g] != w.min || got.Accs[5].V[g] != w.max {
				t.Fatalf("group %d: %+v", number, w)
			}
			delete(want, number)
		}
	}
}

// TestMergeDistinct has groups of several parts stay one, with one row.
func TestMergeDistinct(t *testing.T) {
	p := &program.Program{Sink: program.Sink{Distinct: true, Prefix: 1}}
	got := merge(p, []*program.Result{{Numbers: []uint64{1, 2}, Prefix: []uint64{7, 7}, Rows: []int64{1, 1}}, {Numbers: []uint64{2, 2, 1}, Prefix: []uint64{8, 7, 7}, Rows: []int64{1, 1, 1}}})
	if err := sameResult(p, got, &program.Result{Numbers: []uint64{1, 2, 2}, Prefix: []uint64{7, 7, 8}, Rows: []int64{1, 1, 1}}); err != nil {
		t.Error(err)
	}
}

func TestMergeBitmapsAndFaults(t *testing.T) {
	p := &program.Program{Sink: program.Sink{Kind: program.SinkBitmap}}
	got := merge(p, []*program.Result{{Bitmaps: [][]uint64{{1}, nil, {3, 4}}}, {Bitmaps: [][]uint64{nil, {2}, nil}}})
	if !slices.EqualFunc(got.Bitmaps, [][]uint64{{1}, {2}, {3, 4}}, slices.Equal) {
		t.Fatal(got.Bitmaps)
	}
	if got := merge(p, []*program.Result{{Fault: true}, {Full: true}}); !got.Fault || !got.Full {
		t.Fatal(got)
	}
}
