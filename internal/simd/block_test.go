package simd

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// levels calls f at every level of this machine, named.
func levels(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	for l := Plain; l <= Best(); l++ {
		t.Run(l.String(), func(t *testing.T) {
			defer Use(Use(l))
			f(t)
		})
	}
}

// block returns the words of a block of these widths, packed bit by bit, its offsets,
// and room for past words, at the end of its memory.
func block(r *rand.Rand, widths uint32, past int) (src []uint32, offsets [BlockRows]uint32) {
	words, _ := blockWords(widths)
	src = make([]uint32, words+past)
	bit := 0
	for i := range offsets {
		w := int(widths >> (i / 32 * 8) & 255)
		v := r.Uint64() & (1<<w - 1)
		switch r.IntN(8) {
		case 0:
			v = 0
		case 1:
			v = 1<<w - 1
		}
		offsets[i] = uint32(v)
		for b := range w {
			src[bit/32] |= uint32(v>>b&1) << (bit % 32)
			bit++
		}
	}
	for i := words; i < len(src); i++ {
		src[i] = r.Uint32() // a column's tail is 0, but nothing depends on it
	}
	return slices.Clip(src), offsets
}

// widthsOf returns widths that have w at each place, and random ones beside it.
func widthsOf(r *rand.Rand, w uint32) (out []uint32) {
	out = append(out, w*0x01010101)
	for m := range 4 {
		x := w << (8 * m)
		for o := range 4 {
			if o != m {
				x |= r.Uint32N(33) << (8 * o)
			}
		}
		out = append(out, x)
	}
	return out
}

// pasts are how many words follow a block: none, and as many as kernels want, or one
// less.
var pasts = []int{0, 7, 8, 15, 16}

func TestUnpackBlock(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		for w := range uint32(33) {
			for _, widths := range widthsOf(r, w) {
				for _, past := range pasts {
					src, offsets := block(r, widths, past)
					for _, ref := range []int64{0, -1, math.MinInt64, math.MaxInt64 - math.MaxUint32, int64(r.Uint64())} {
						var got [BlockRows]int64
						UnpackBlock(&got, src, widths, ref)
						for i, v := range offsets {
							if got[i] != ref+int64(v) {
								t.Fatalf("widths %#x, %d words past, reference %d, value %d: %d instead of offset %d", widths, past, ref, i, got[i], v)
							}
						}
					}
				}
			}
		}
	})
}

// randomMask returns two words, sometimes with miniblocks that have no row left.
func randomMask(r *rand.Rand) (mask [2]uint64) {
	for i := range mask {
		switch r.IntN(4) {
		case 0:
			mask[i] = math.MaxUint64
		case 1:
			mask[i] = r.Uint64() << 32
		default:
			mask[i] = r.Uint64()
		}
	}
	return mask
}

func TestFilterBlock(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(2, 2))
		for w := range uint32(33) {
			for _, widths := range widthsOf(r, w) {
				for _, past := range pasts {
					src, offsets := block(r, widths, past)
					from := offsets[r.IntN(BlockRows)]
					for _, span := range []uint32{0, 1, offsets[r.IntN(BlockRows)] - from, math.MaxUint32, r.Uint32()} {
						mask := randomMask(r)
						was := mask
						FilterBlock(&mask, src, widths, from, span)
						for i, v := range offsets {
							want := was[i/64]>>(i%64)&1 != 0 && v-from <= span
							if got := mask[i/64]>>(i%64)&1 != 0; got != want {
								t.Fatalf("widths %#x, %d words past, offset %d from %d by %d: %v", widths, past, v, from, span, got)
							}
						}
					}
				}
			}
		}
	})
}

// randomSet returns a set of size numbers in words that end where its memory does, or
// with room behind.
func randomSet(r *rand.Rand, size uint32) []uint64 {
	words := int(size+63) / 64
	set := make([]uint64, words, words+r.IntN(2)*16)
	for i := range set {
		set[i] = r.Uint64()
	}
	return set
}

func TestFilterSet(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 3))
		for w := range uint32(33) {
			for _, widths := range widthsOf(r, w) {
				for _, past := range pasts {
					src, offsets := block(r, widths, past)
					for _, size := range []uint32{0, 1, 63, 64, 65, 1023, 1024, 1025, 5000} {
						set := randomSet(r, size)
						add := -offsets[r.IntN(BlockRows)] + r.Uint32N(size+1)
						mask := randomMask(r)
						was := mask
						FilterSet(&mask, src, widths, add, size, set)
						for i, v := range offsets {
							k := v + add
							want := was[i/64]>>(i%64)&1 != 0 && k < size && set[k/64]>>(k%64)&1 != 0
							if got := mask[i/64]>>(i%64)&1 != 0; got != want {
								t.Fatalf("widths %#x, %d words past, %d in a set of %d: %v", widths, past, k, size, got)
							}
						}
					}
				}
			}
		}
	})
}

// FuzzBlock compares the levels on any words and widths.
func FuzzBlock(f *testing.F) {
	f.Add([]byte("0123456789abcdef0123456789abcdef"), uint32(0x03020100), uint32(5), uint32(9))
	f.Fuzz(func(t *testing.T, data []byte, widths, from, span uint32) {
		widths %= 33 * 0x01010101
		for m := range 4 {
			if widths>>(8*m)&255 > 32 {
				widths &^= 0xdf << (8 * m)
			}
		}
		words, narrow := blockWords(widths)
		if !narrow {
			t.Fatalf("widths %#x", widths)
		}
		for len(data) < 4*words {
			data = append(data, byte(len(data)*37))
		}
		src := make([]uint32, len(data)/4)
		for i := range src {
			src[i] = binary.LittleEndian.Uint32(data[4*i:])
		}
		src = slices.Clip(src)
		set := []uint64{0x5555_1234_5678_9abc, uint64(from)<<32 | uint64(span), 7}
		size := min(span, 192)
		type result struct {
			wide           [BlockRows]int64
			filter, member [2]uint64
		}
		run := func(l Level) (r result) {
			defer Use(Use(l))
			r.filter = [2]uint64{math.MaxUint64, uint64(from) * 0x9e3779b97f4a7c15}
			r.member = r.filter
			UnpackBlock(&r.wide, src, widths, int64(from))
			FilterBlock(&r.filter, src, widths, from, span)
			FilterSet(&r.member, src, widths, -from, size, set)
			return r
		}
		want := run(Plain)
		for l := AVX2; l <= Best(); l++ {
			if got := run(l); got != want {
				t.Fatalf("%v differs: widths %#x\n%v\n%v", l, widths, got, want)
			}
		}
	})
}
