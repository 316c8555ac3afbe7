package simd

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// lengths are those where vectors, words and blocks begin and end.
var lengths = []int{0, 1, 7, 8, 9, 31, 32, 63, 64, 65, 127, 128, 129, 511, 512, 513, 1024}

func randomValues(r *rand.Rand, n int) []int64 {
	v := make([]int64, n)
	for i := range v {
		switch r.IntN(10) {
		case 0:
			v[i] = math.MinInt64
		case 1:
			v[i] = math.MaxInt64
		case 2:
			v[i] = int64(r.Uint64())
		default:
			v[i] = r.Int64N(2000) - 1000
		}
	}
	return v
}

// randomSel returns ascending positions below n.
func randomSel(r *rand.Rand, n int) []uint16 {
	sel := []uint16{}
	share := r.Float64()
	for i := range n {
		if r.Float64() < share {
			sel = append(sel, uint16(i))
		}
	}
	return slices.Clip(sel)
}

func equal[T comparable](t *testing.T, what string, n int, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s of %d: %v instead of %v", what, n, got, want)
	}
}

// guarded returns n elements inside memory that must stay as it is, and a check.
func guarded[T uint16 | uint32 | int64 | uint64](t *testing.T, n int) (dst []T, check func()) {
	all := make([]T, n+128)
	for i := range all {
		all[i] = T(i)*257 + 85
	}
	want := slices.Clone(all)
	return all[64 : 64+n : 64+n], func() {
		t.Helper()
		if !slices.Equal(all[:64], want[:64]) || !slices.Equal(all[64+n:], want[64+n:]) {
			t.Fatalf("memory beside %d elements is written", n)
		}
	}
}

func TestPositions(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(4, 4))
		for words := range 20 {
			for range 20 {
				mask := make([]uint64, words)
				for i := range mask {
					m := randomMask(r)
					mask[i] = m[0] & m[1]
				}
				dst, check := guarded[uint16](t, 64*words)
				n := Positions(dst, mask)
				check()
				want := []uint16{}
				for i := range 64 * words {
					if mask[i/64]>>(i%64)&1 != 0 {
						want = append(want, uint16(i))
					}
				}
				equal(t, "positions", words, dst[:n], want)
				if c := Count(mask); c != n {
					t.Fatalf("%d bits, %d positions", c, n)
				}
			}
		}
	})
}

func TestPick(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 5))
		for _, n := range lengths {
			for range 10 {
				src, sel := randomValues(r, n), randomSel(r, n)
				dst, check := guarded[int64](t, len(sel))
				Pick(dst, src, sel)
				check()
				entries := make([]uint32, n)
				for i := range entries {
					entries[i] = r.Uint32N(uint32(n))
				}
				far, checkFar := guarded[int64](t, len(sel))
				PickEntries(far, src, entries, sel)
				checkFar()
				for i, s := range sel {
					if dst[i] != src[s] || far[i] != src[entries[s]] {
						t.Fatalf("%d of %d: %d and %d", i, len(sel), dst[i], far[i])
					}
				}
			}
		}
	})
}

func TestSpreadNulls(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(15, 15))
		for _, n := range lengths {
			for range 10 {
				set := make([]uint64, (n+63)/64)
				for i := range set {
					m := randomMask(r)
					set[i] = m[0] & m[1]
				}
				fill := int64(r.Uint64())
				v, check := guarded[int64](t, n)
				copy(v, randomValues(r, n))
				was := slices.Clone(v)
				all := bytes.Repeat([]byte{7}, n+2)
				SpreadNulls(all[1:1+n], v, set, fill)
				check()
				if all[0] != 7 || all[n+1] != 7 {
					t.Fatalf("bytes beside %d are written", n)
				}
				for i, null := range all[1 : 1+n] {
					want := was[i]
					if null == 1 {
						want = fill
					}
					if uint64(null) != set[i>>6]>>(i&63)&1 || v[i] != want {
						t.Fatalf("%d of %d: %d, %d", i, n, null, v[i])
					}
				}
			}
		}
	})
}

func testEntries[T uint8 | uint16 | uint32](t *testing.T, r *rand.Rand, room int) {
	for _, n := range lengths {
		for range 6 {
			table := make([]T, 300, 300+room)
			for i := range table {
				if table[i] = T(r.Uint32()); r.IntN(2) == 0 {
					table[i] = ^T(0)
				}
			}
			absent := uint32(^T(0))
			if r.IntN(3) == 0 {
				absent = uint32(table[5])
			}
			lo := int64(r.Uint64())
			sel := randomSel(r, n)
			keys := make([]int64, len(sel))
			for i := range keys {
				keys[i] = lo + r.Int64N(300)
			}
			entries, checkEntries := guarded[uint32](t, n)
			next, checkNext := guarded[uint16](t, len(sel))
			k := Entries(table, lo, keys, sel, entries, next, absent)
			checkEntries()
			checkNext()
			want := []uint16{}
			for i, s := range sel {
				if e := uint32(table[keys[i]-lo]); e != absent {
					if want = append(want, s); entries[s] != e {
						t.Fatalf("entry %d instead of %d", entries[s], e)
					}
				}
			}
			equal(t, "rows with an entry", n, next[:k], want)
		}
	}
}

func TestEntries(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(6, 6))
		for _, room := range []int{0, EntryRoom} {
			testEntries[uint8](t, r, room)
			testEntries[uint16](t, r, room)
			testEntries[uint32](t, r, room)
		}
	})
}

func TestFilterValues(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for _, n := range lengths {
			for range 20 {
				values := randomValues(r, n)
				mask := make([]uint64, (n+63)/64)
				for i := range mask {
					mask[i] = randomMask(r)[0]
				}
				lo, hi := int64(r.Uint64()), int64(r.Uint64())
				if n > 0 {
					lo, hi = values[r.IntN(n)], values[r.IntN(n)]
				}
				span := []uint64{uint64(hi) - uint64(lo), 0, r.Uint64N(1000), 1<<63 - 1, 1 << 63, math.MaxUint64}[r.IntN(6)]
				got := slices.Clone(mask)
				FilterValues(got, values, lo, span)
				for i, v := range values {
					was := mask[i/64]>>(i%64)&1 != 0
					if in := got[i/64]>>(i%64)&1 != 0; in != (was && uint64(v)-uint64(lo) <= span) {
						t.Fatalf("%d from %d, span %d: %v", v, lo, span, in)
					}
				}
				if n%64 != 0 && (got[n/64]^mask[n/64])>>(n%64) != 0 {
					t.Fatalf("%d values: bits behind them", n)
				}
			}
		}
	})
}

func TestFilterSetValues(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 7))
		for _, n := range lengths {
			for range 10 {
				values := randomValues(r, n)
				mask := make([]uint64, (n+63)/64)
				for i := range mask {
					mask[i] = randomMask(r)[0]
				}
				lo := int64(r.Uint64())
				if n > 0 {
					lo = values[r.IntN(n)]
				}
				sets := slices.Clone(mask)
				size := r.Uint32N(3000)
				set := randomSet(r, size)
				FilterSetValues(sets, values, lo, uint64(size), set)
				for i, v := range values {
					was := mask[i/64]>>(i%64)&1 != 0
					k := uint64(v) - uint64(lo)
					if got := sets[i/64]>>(i%64)&1 != 0; got != (was && k < uint64(size) && set[k/64]>>(k%64)&1 != 0) {
						t.Fatalf("%d in a set of %d: %v", k, size, got)
					}
				}
			}
		}
	})
}

func TestArithmetic(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(8, 8))
		for _, n := range lengths {
			for range 5 {
				a, b := randomValues(r, n), randomValues(r, n)
				lo, span := int64(r.IntN(100)), uint64(r.IntN(1000))
				var sum int64
				least, most := int64(math.MaxInt64), int64(math.MinInt64)
				for _, x := range a {
					sum += x
					least, most = min(least, x), max(most, x)
				}
				if s := Sum(a); s != sum {
					t.Fatalf("sum of %d: %d instead of %d", n, s, sum)
				}
				if x, y := Bounds(a); x != least || y != most {
					t.Fatalf("bounds of %d: %d, %d instead of %d, %d", n, x, y, least, most)
				}
				for _, f := range []struct {
					name string
					run  func(dst []int64)
					want func(x, y int64) int64
				}{
					{"add", func(dst []int64) { Add(dst, a, b) }, func(x, y int64) int64 { return x + y }},
					{"sub", func(dst []int64) { Sub(dst, a, b) }, func(x, y int64) int64 { return x - y }},
					{"mul", func(dst []int64) { Mul(dst, a, b) }, func(x, y int64) int64 { return x * y }},
					{"eq", func(dst []int64) { Eq(dst, a, b) }, func(x, y int64) int64 { return bit(x == y) }},
					{"ne", func(dst []int64) { Ne(dst, a, b) }, func(x, y int64) int64 { return bit(x != y) }},
					{"lt", func(dst []int64) { Lt(dst, a, b) }, func(x, y int64) int64 { return bit(x < y) }},
					{"le", func(dst []int64) { Le(dst, a, b) }, func(x, y int64) int64 { return bit(x <= y) }},
					{"inside", func(dst []int64) { Inside(dst, a, lo, span, 1) }, func(x, _ int64) int64 { return bit(uint64(x)-uint64(lo) <= span) }},
					{"outside", func(dst []int64) { Inside(dst, a, lo, span, 0) }, func(x, _ int64) int64 { return bit(uint64(x)-uint64(lo) > span) }},
				} {
					dst, check := guarded[int64](t, n)
					f.run(dst)
					check()
					want := make([]int64, n)
					for i := range want {
						want[i] = f.want(a[i], b[i])
					}
					equal(t, f.name, n, dst, want)
				}
			}
		}
	})
}

func TestGatherFOR(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 9))
		for range 300 {
			blocks, wide := 1+r.IntN(12), r.IntN(2) == 0
			widest := uint32(32)
			if wide {
				widest = []uint32{32, 57, 58, 64}[r.IntN(4)]
			}
			var starts, data []uint32
			var want []int64
			var width []uint32
			for range blocks {
				ref := int64(int32(r.Uint32()))
				starts = append(starts, uint32(len(data)))
				data = append(data, uint32(ref))
				if wide {
					ref = int64(r.Uint64())
					data = append(data[:len(data)-1], uint32(ref), uint32(ref>>32))
				}
				at := len(data)
				data = append(data, 0)
				for m := range 4 {
					w := r.Uint32N(widest + 1)
					data[at] |= w << (8 * m)
					words := make([]uint32, w)
					for i := range 32 {
						v := r.Uint64() >> (64 - w)
						for b := range w {
							words[(uint32(i)*w+b)/32] |= uint32(v>>b&1) << ((uint32(i)*w + b) % 32)
						}
						want, width = append(want, ref+int64(v)), append(width, w)
					}
					data = append(data, words...)
				}
			}
			starts = slices.Clip(append(starts, uint32(len(data))))
			data = slices.Clip(append(data, r.Uint32(), r.Uint32()))
			start := r.IntN(blocks) * BlockRows
			sel := randomSel(r, min(len(want)-start, 1024))
			fits := true
			for _, s := range sel {
				fits = fits && width[start+int(s)] <= gatherWidth
			}
			dst, check := guarded[int64](t, len(sel))
			if ok := GatherFOR(dst, starts, data, wide, start, sel); ok != fits {
				t.Fatalf("%v where all widths fit: %v", ok, fits)
			}
			check()
			for i, s := range sel {
				if fits && dst[i] != want[start+int(s)] {
					t.Fatalf("row %d of %d blocks: %d instead of %d", start+int(s), blocks, dst[i], want[start+int(s)])
				}
			}
		}
	})
}

func TestLevels(t *testing.T) {
	for setting, want := range map[string]Level{"off": Plain, "avx2": min(AVX2, Best()), "avx512": Best(), "": Best()} {
		if got := chosen(setting); got != want {
			t.Errorf("PGACCEL_SIMD=%s: %v instead of %v", setting, got, want)
		}
	}
}

func TestFindBytes(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 9))
		for _, n := range lengths {
			for share := range 5 {
				var set ByteSet
				want := map[byte]bool{}
				for b := range 256 {
					if r.IntN(4) < share {
						set.Add(byte(b))
						want[byte(b)] = true
					}
				}
				text := make([]byte, n+r.IntN(2)*64) // with more of it behind, and without
				for i := range text {
					text[i] = byte(r.Uint32())
				}
				found, check := guarded[uint64](t, (n+63)/64)
				FindBytes(found, text, n, &set)
				check()
				for i, b := range text[:n] {
					if got := found[i/64]>>(i%64)&1 != 0; got != want[b] || set.Has(b) != want[b] {
						t.Fatalf("byte %d of %d, %d: %v, want %v", i, n, b, got, want[b])
					}
				}
			}
		}
	})
}
