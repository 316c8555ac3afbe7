package compress

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// use reads everything that a column can be asked; whatever Parse lets through
// must bear it.
func use(t *testing.T, c Column) {
	n := c.Len()
	if n > 1<<18 {
		return // a few words are millions of equal values: reading them takes seconds
	}
	values := make([]int64, n)
	c.Decode(values, 0)
	step := 1 + n/256 // the reference of a delta reads all before it
	for i := 0; i < n; i += step {
		if ref := decodeReference(Words(c), i); ref != values[i] {
			t.Fatalf("%v: row %d is %d, by the reference %d", c.Codec(), i, values[i], ref)
		}
	}
	for start := 0; start < n; start += blockRows {
		rows := min(n-start, 1024)
		sel := make([]uint16, rows)
		for i := range sel {
			sel[i] = uint16(i)
		}
		got := make([]int64, rows)
		c.Gather(got, start, sel)
		lo, hi := c.Bounds(start, rows)
		mask := make([]uint64, (rows+63)/64)
		for i := range mask {
			mask[i] = ^uint64(0)
		}
		c.FilterRange(mask, start, rows, values[start], hi)
		a := AggregatorOf(c)
		if gotLo, gotHi := a.MinMax(start, rows); gotLo != slices.Min(values[start:start+rows]) || gotHi != slices.Max(values[start:start+rows]) {
			t.Fatalf("%v: rows from %d on lie within %d, %d, not %d, %d", c.Codec(), start,
				slices.Min(values[start:start+rows]), slices.Max(values[start:start+rows]), gotLo, gotHi)
		}
		var sum, kept sum128
		for i, v := range values[start : start+rows] {
			sum.addValue(v)
			if mask[i/64]>>(i%64)&1 == 1 {
				kept.addValue(v)
			}
		}
		if gotHi, gotLo := a.Sum(start, rows); gotHi != sum.hi || gotLo != sum.lo {
			t.Fatalf("%v: rows from %d on sum up to %d, %d, want %v", c.Codec(), start, gotHi, gotLo, sum)
		}
		if gotHi, gotLo := a.SumSelected(mask, start, rows); gotHi != kept.hi || gotLo != kept.lo {
			t.Fatalf("%v: selected rows from %d on sum up to %d, %d, want %v", c.Codec(), start, gotHi, gotLo, kept)
		}
		for i, v := range got {
			if v != values[start+i] || v < lo && hi != 1<<63-1 {
				t.Fatalf("%v: row %d is %d, gathered %d, bounds %d, %d", c.Codec(), start+i, values[start+i], v, lo, hi)
			}
			if in := v >= values[start] && v <= hi; mask[i/64]>>(i%64)&1 == 1 != in {
				t.Fatalf("%v: row %d filtered wrongly", c.Codec(), start+i)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 130} {
		data(n, r, func(name string, values []int64) {
			if r.IntN(12) == 0 {
				for _, codec := range allCodecs {
					f.Add(Bytes(EncodeAs(codec, values, words64)))
				}
			}
		})
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		words := words64(len(b) / 4)
		for i := range words {
			words[i] = binary.LittleEndian.Uint32(b[4*i:])
		}
		c, err := Parse(words)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) || c != nil {
				t.Fatalf("%v, %v", c, err)
			}
			return
		}
		use(t, c)
	})
}

// FuzzEncode makes values of bytes, in a way that all formats have something to do, and
// reads them back from every codec.
func FuzzEncode(f *testing.F) {
	f.Add(uint8(CodecALP), uint8(3), []byte("0123456789abcdef"))
	f.Add(uint8(CodecDFOR), uint8(1), make([]byte, 300))
	f.Add(uint8(CodecRFOR), uint8(2), []byte("\x00\x01\x02\xff\x03 and so on, and so on, and so on"))
	f.Fuzz(func(t *testing.T, codec, kind uint8, b []byte) {
		if len(b) > 5000 {
			return
		}
		var values []int64
		switch last := int64(0); kind % 4 {
		case 0: // bytes
			for _, x := range b {
				values = append(values, int64(int8(x)))
			}
		case 1: // deltas
			for i, x := range b {
				last += int64(int8(x)) << (i % 3 * 7)
				values = append(values, last)
			}
		case 2: // runs, and far jumps
			for i := 0; i+1 < len(b); i += 2 {
				last += int64(int8(b[i])) << (b[i] % 61)
				for range b[i+1] % 60 {
					values = append(values, last)
				}
			}
		case 3: // whole words, decimals among them
			for ; len(b) >= 8; b = b[8:] {
				x := binary.LittleEndian.Uint64(b)
				values = append(values, int64(x), int64(math.Float64bits(float64(int16(x))/100)))
			}
		}
		c := EncodeAs(allCodecs[int(codec)%len(allCodecs)], values, words64)
		parsed, err := Parse(Words(c))
		if err != nil {
			t.Fatalf("%v: %v", c.Codec(), err)
		}
		got := make([]int64, len(values))
		if parsed.Decode(got, 0); !slices.Equal(got, values) {
			t.Fatalf("%v: other values come back", c.Codec())
		}
		use(t, parsed)
	})
}

// TestParseDamaged flips every bit of small columns, and cuts them at every word:
// what is not found out must still be readable without harm.
func TestParseDamaged(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	found := 0
	data(130, r, func(name string, values []int64) {
		if r.IntN(24) > 0 {
			return
		}
		for _, codec := range allCodecs[1:] {
			words := Words(EncodeAs(codec, values, words64))
			for bit := range 32 * min(len(words), 64) {
				words[bit/32] ^= 1 << (bit % 32)
				if c, err := Parse(words); err != nil {
					found++
				} else {
					use(t, c)
				}
				words[bit/32] ^= 1 << (bit % 32)
			}
			for n := range words {
				if _, err := Parse(words[:n]); err == nil {
					t.Fatalf("%s, %v: %d of %d words parsed", name, codec, n, len(words))
				}
			}
		}
	})
	if found == 0 {
		t.Error("no damage was found")
	}
	if _, err := ParseBytes(make([]byte, 5)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("5 bytes: %v", err)
	}
}
