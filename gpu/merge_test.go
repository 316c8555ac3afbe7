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
		want := map[uint64]*group{}
		of := make([]map[uint64]int, len(parts))
		for i := range parts {
			parts[i] = &program.Result{Accs: make([]program.Values, len(kinds))}
			of[i] = map[uint64]int{}
		}
		for range r.IntN(400) {
			i, number, v := r.IntN(len(parts)), r.Uint64N(60)<<(seed%40), int64(r.Uint64())
			part := parts[i]
			g, ok := of[i][number]
			if !ok {
				g = len(part.Numbers)
				of[i][number] = g
				part.Numbers = append(part.Numbers, number)
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
		for g, number := range got.Numbers {
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

func TestMergeBitmapsAndFaults(t *testing.T) {
	p := &program.Program{Sink: program.Sink{Kind: program.SinkBitmap}}
	got := merge(p, []*program.Result{{Bitmaps: [][]uint64{{1}, {0}, {3, 4}}}, {Bitmaps: [][]uint64{{0}, {2}, {0, 0}}}})
	if !slices.EqualFunc(got.Bitmaps, [][]uint64{{1}, {2}, {3, 4}}, slices.Equal) {
		t.Fatal(got.Bitmaps)
	}
	if got := merge(p, []*program.Result{{Fault: true}, {Full: true}}); !got.Fault || !got.Full {
		t.Fatal(got)
	}
}
