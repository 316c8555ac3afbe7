package compress

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgaccel/internal/simd"
)

// checkLevels compares what a column yields, at every level, with its values.
func checkLevels(t *testing.T, c Column, values []int64, r *rand.Rand) {
	t.Helper()
	n := len(values)
	start := 0
	if n > 0 {
		start = r.IntN(n) / blockRows * blockRows
	}
	rows := min(n-start, 1+r.IntN(2048), 1<<16-1)
	tile := values[start : start+rows]
	sel := []uint16{}
	share := []float64{1, 0.5, 0.1, 0.01}[r.IntN(4)]
	for i := range tile {
		if r.Float64() < share {
			sel = append(sel, uint16(i))
		}
	}
	mask := make([]uint64, (rows+63)/64)
	for i := range mask {
		if mask[i] = r.Uint64(); r.IntN(2) == 0 {
			mask[i] = math.MaxUint64
		}
	}
	lo, hi := int64(r.Uint64()), int64(r.Uint64())
	set := Set{Lo: lo, Size: []int64{0, 1, 64, 1000, 5000}[r.IntN(5)]}
	if rows > 0 {
		lo, hi = tile[r.IntN(rows)], tile[r.IntN(rows)]
		if set.Lo = lo - r.Int64N(set.Size+1); set.Lo > lo {
			set.Lo = lo
		}
	}
	if set.Lo > math.MaxInt64-set.Size {
		set.Lo = math.MaxInt64 - set.Size
	}
	set.Bits = make([]uint64, (set.Size+63)/64)
	for i := range set.Bits {
		set.Bits[i] = r.Uint64()
	}
	was := simd.Active()
	defer simd.Use(was)
	for level := simd.Plain; level <= simd.Best(); level++ {
		simd.Use(level)
		got := make([]int64, rows)
		c.Decode(got, start)
		if !slices.Equal(got, tile) {
			t.Fatalf("%v, %v: decoded otherwise", c.Codec(), level)
		}
		picked := make([]int64, len(sel))
		c.Gather(picked, start, sel)
		ranges, members := slices.Clone(mask), slices.Clone(mask)
		c.FilterRange(ranges, start, rows, lo, hi)
		var f SetFilter
		for range 2 { // the second time with memory that is used
			copy(members, mask)
			f.Reset(c, set)
			f.Filter(members, start, rows)
		}
		for i, s := range sel {
			if picked[i] != tile[s] {
				t.Fatalf("%v, %v: gathered %d instead of %d", c.Codec(), level, picked[i], tile[s])
			}
		}
		for i, v := range tile {
			on := mask[i/64]>>(i%64)&1 != 0
			if got := ranges[i/64]>>(i%64)&1 != 0; got != (on && v >= lo && v <= hi) {
				t.Fatalf("%v, %v: row %d, %d within %d and %d: %v", c.Codec(), level, i, v, lo, hi, got)
			}
			if got := members[i/64]>>(i%64)&1 != 0; got != (on && set.Has(v)) {
				t.Fatalf("%v, %v: row %d, %d in %d+%d: %v", c.Codec(), level, i, v, set.Lo, set.Size, got)
			}
		}
	}
}

// TestLevels compares plain Go, AVX2 and AVX-512 on columns of every kind and codec.
func TestLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 3))
	for _, n := range append([]int{2048, 3000}, lengths...) {
		data(n, r, func(name string, values []int64) {
			for _, codec := range allCodecs {
				c := EncodeAs(codec, values, words64)
				checkLevels(t, c, values, r)
				if t.Failed() {
					t.Fatalf("%d rows, %s, %v", n, name, codec)
				}
			}
		})
	}
}

// FuzzLevels is TestLevels for values made of bytes: a shift and deltas.
func FuzzLevels(f *testing.F) {
	f.Add([]byte("some bytes that become values, more than eight of them"), uint64(1), uint8(3))
	f.Fuzz(func(t *testing.T, in []byte, seed uint64, shift uint8) {
		r := rand.New(rand.NewPCG(seed, 1))
		var values []int64
		for v := int64(seed); len(in) >= 4 && len(values) < 4096; in = in[1:] {
			v += int64(int32(binary.LittleEndian.Uint32(in))) >> (shift % 64)
			values = append(values, v)
		}
		for _, codec := range allCodecs {
			checkLevels(t, EncodeAs(codec, values, words64), values, r)
		}
	})
}

// BenchmarkLevels measures the levels side by side: decoding beside a memcpy of the
// same bytes, and a filter on the encoded form beside one over a plain []int32.
func BenchmarkLevels(b *testing.B) {
	was := simd.Active()
	defer simd.Use(was)
	const rows = 1 << 22
	best := func(f func()) float64 {
		f()
		least := math.MaxFloat64
		for range 7 {
			began := time.Now()
			f()
			least = min(least, float64(time.Since(began).Nanoseconds()))
		}
		return least / rows
	}
	from, to := make([]int64, rows), make([]int64, rows)
	narrow := make([]int32, rows)
	mask := make([]uint64, rows/64)
	for i := range from {
		from[i] = int64(i)
	}
	for range b.N {
		memcpy := best(func() { copy(to, from) })
		scan := best(func() {
			for w := range mask {
				m := uint64(0)
				for i, v := range narrow[w*64 : w*64+64] {
					if uint32(v-100) <= 1000 {
						m |= 1 << i
					}
				}
				mask[w] &= m
			}
		})
		b.Logf("memcpy %.3f ns a value, filter over []int32 %.3f", memcpy, scan)
	}
	for _, w := range []int{1, 2, 4, 7, 8, 11, 12, 16, 17, 20, 24, 32} {
		b.Run(fmt.Sprint(w), func(b *testing.B) {
			memcpy := best(func() { copy(to, from) })
			r := rand.New(rand.NewPCG(1, 1))
			for i := range from {
				from[i] = int64(r.Uint64() & (1<<w - 1))
			}
			c := EncodeAs(CodecFOR, from, func(n int) []uint32 { return make([]uint32, n) })
			bits := make([]uint64, 1<<min(w, 16)/64+1)
			for i := range bits {
				bits[i] = r.Uint64()
			}
			sel := make([]uint16, 1024/20)
			for i := range sel {
				sel[i] = uint16(i * 20)
			}
			for level := simd.Plain; level <= simd.Best(); level++ {
				simd.Use(level)
				decode := best(func() { c.Decode(to, 0) })
				tile := best(func() {
					for start := 0; start < rows; start += 1024 {
						c.Decode(to[:1024], start)
					}
				})
				filter := best(func() {
					for i := range mask {
						mask[i] = math.MaxUint64
					}
					c.FilterRange(mask, 0, rows, 1, 1<<w/2)
				})
				var f SetFilter
				f.Reset(c, Set{Size: 1 << min(w, 16), Bits: bits})
				set := best(func() {
					for i := range mask {
						mask[i] = math.MaxUint64
					}
					f.Filter(mask, 0, rows)
				})
				gather := best(func() {
					for start := 0; start < rows; start += 1024 {
						c.Gather(to[:len(sel)], start, sel)
					}
				})
				b.Logf("width %2d %-6v: decode %.3f (%.0f%% of memcpy), in cache %.3f, filter %.3f, set %.3f, gather %.2f", w, level, decode, 100*memcpy/decode, tile, filter, set, gather*1024/float64(len(sel)))
			}
		})
	}
}
