package wahbits

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// lengths are where words, chunks, tiles and windows begin and end.
var lengths = []int{0, 1, 62, 63, 64, 65, 125, 126, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025, 4095, 65535, 65536, 63 * 1024, 63*1024 + 1, 2*65536 + 17}

// shapes are ways to fill a bit vector.
var shapes = map[string]func(rng *rand.Rand, bits []bool){
	"none": func(*rand.Rand, []bool) {},
	"all": func(_ *rand.Rand, bits []bool) {
		for i := range bits {
			bits[i] = true
		}
	},
	"last": func(_ *rand.Rand, bits []bool) { bits[len(bits)-1] = true },
	"all but one": func(rng *rand.Rand, bits []bool) {
		fillRuns(bits, func() int { return len(bits) }, true)
		bits[rng.IntN(len(bits))] = false
	},
	"half":       func(rng *rand.Rand, bits []bool) { scatter(rng, bits, 0.5) },
	"few":        func(rng *rand.Rand, bits []bool) { scatter(rng, bits, 0.007) },
	"most":       func(rng *rand.Rand, bits []bool) { scatter(rng, bits, 0.993) },
	"rare":       func(rng *rand.Rand, bits []bool) { scatter(rng, bits, 0.0003) },
	"short runs": func(rng *rand.Rand, bits []bool) { fillRuns(bits, func() int { return 1 + rng.IntN(100) }, false) },
	"long runs": func(rng *rand.Rand, bits []bool) {
		fillRuns(bits, func() int { return 1 + rng.IntN(5000) }, rng.IntN(2) == 0)
	},
	"whole chunks": func(rng *rand.Rand, bits []bool) {
		fillRuns(bits, func() int { return 63 * (1 + rng.IntN(4)) }, rng.IntN(2) == 0)
	},
	"mixed": func(rng *rand.Rand, bits []bool) {
		for len(bits) > 0 {
			n := min(len(bits), 1+rng.IntN(3000))
			scatter(rng, bits[:n], []float64{0, 0.001, 0.03, 0.5, 0.97, 1}[rng.IntN(6)])
			bits = bits[n:]
		}
	},
}

func scatter(rng *rand.Rand, bits []bool, p float64) {
	for i := range bits {
		bits[i] = rng.Float64() < p
	}
}

func fillRuns(bits []bool, length func() int, set bool) {
	for i := 0; i < len(bits); set = !set {
		for end := min(len(bits), i+length()); i < end; i++ {
			bits[i] = set
		}
	}
}

// shaped is a bit vector of the shape, both ways.
func shaped(name string, rng *rand.Rand, n int) ([]bool, *Bitmap) {
	bits := make([]bool, n)
	if n > 0 {
		shapes[name](rng, bits)
	}
	return bits, compressed(bits)
}

func compressed(bits []bool) *Bitmap {
	var b Builder
	for _, set := range bits {
		b.AppendBit(set)
	}
	return b.Finish(nil)
}

func shapeNames() []string {
	var names []string
	for name := range shapes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// sameBits fails unless b is canonical and has exactly those bits.
func sameBits(t *testing.T, what string, b *Bitmap, want []bool) {
	t.Helper()
	stored := b
	if b.Words() == nil {
		stored = b.Store(nil)
	}
	parsed, n, err := ParseWords(stored.Words())
	if err != nil || n != len(stored.Words()) {
		t.Fatalf("%s: ParseWords: %d of %d words, %v", what, n, len(stored.Words()), err)
	}
	if w := compressed(want); !parsed.Equal(w) {
		for i := range want {
			if i >= b.Len() || b.Get(i) != want[i] {
				t.Fatalf("%s: row %d of %d (%d) differs", what, i, b.Len(), len(want))
			}
		}
		t.Fatalf("%s: other atoms for the same bits", what)
	}
}

func TestBuilderAndReaders(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range lengths {
		if testing.Short() && n > 5000 {
			continue
		}
		for _, name := range shapeNames() {
			bits, b := shaped(name, rng, n)
			what := fmt.Sprintf("%s, %d rows", name, n)
			sameBits(t, what, b, bits)
			var rows []int
			dense := make([]uint64, (n+63)/64)
			for i, set := range bits {
				if set {
					rows = append(rows, i)
					dense[i>>6] |= 1 << (i & 63)
				}
				if b.Get(i) != set {
					t.Fatalf("%s: Get(%d) = %v", what, i, !set)
				}
			}
			if got := slices.Collect(b.All()); !slices.Equal(got, rows) {
				t.Fatalf("%s: All: %d rows, want %d", what, len(got), len(rows))
			}
			if b.Count() != len(rows) || b.Empty() != (len(rows) == 0) {
				t.Fatalf("%s: Count %d, Empty %v, want %d", what, b.Count(), b.Empty(), len(rows))
			}
			got := make([]uint64, len(dense))
			if b.Dense(got, 0, n); !slices.Equal(got, dense) {
				t.Fatalf("%s: Dense differs", what)
			}
			if !fromDense(dense, n).Equal(b) {
				t.Fatalf("%s: fromDense differs", what)
			}
			var byRow, byRun Builder
			for _, r := range rows {
				byRow.Add(r)
			}
			byRow.AppendRun(false, n-byRow.Len())
			for i := 0; i < n; {
				j := i + 1
				for j < n && bits[j] == bits[i] {
					j++
				}
				byRun.AppendRun(bits[i], j-i)
				i = j
			}
			if !byRow.Finish(nil).Equal(b) || !byRun.Finish(nil).Equal(b) {
				t.Fatalf("%s: Add or AppendRun differs from AppendBit", what)
			}
		}
	}
}

func TestDenseOfRanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range lengths {
		if testing.Short() && n > 5000 {
			continue
		}
		for _, name := range shapeNames() {
			bits, b := shaped(name, rng, n)
			result := Or(nil, b, b) // no directory
			sequential, anyhow := newReader(b), newReader(b)
			check := func(r *reader, start, m int) {
				t.Helper()
				dst := make([]uint64, (m+63)/64+1)
				for i := range dst {
					dst[i] = rng.Uint64()
				}
				guard := dst[len(dst)-1]
				r.Dense(dst, start, m)
				if dst[len(dst)-1] != guard {
					t.Fatalf("%s, %d rows: Dense(%d, %d) writes too far", name, n, start, m)
				}
				rows := AppendRows([]uint32(nil), result, start, m)
				for i := range m {
					set := dst[i>>6]>>(i&63)&1 != 0
					if set != bits[start+i] {
						t.Fatalf("%s, %d rows: Dense(%d, %d): row %d is %v", name, n, start, m, i, set)
					}
					if set {
						if len(rows) == 0 || rows[0] != uint32(i) {
							t.Fatalf("%s, %d rows: AppendRows(%d, %d): want row %d", name, n, start, m, i)
						}
						rows = rows[1:]
					}
				}
				if len(rows) != 0 || m&63 != 0 && dst[m>>6]>>(m&63) != 0 {
					t.Fatalf("%s, %d rows: Dense(%d, %d): bits past the end", name, n, start, m)
				}
			}
			for start := 0; start < n; start += 1024 {
				check(&sequential, start, min(1024, n-start))
			}
			for range 20 {
				start := rng.IntN(n + 1)
				check(&anyhow, start, rng.IntN(min(n-start, 2000)+1))
			}
		}
	}
}

func TestOutOfMemory(t *testing.T) {
	none := func(int) []uint64 { return nil }
	var b Builder
	b.AppendRun(true, 100)
	if b.Finish(none) != nil {
		t.Error("Finish without memory")
	}
	if b.Len() != 0 {
		t.Error("the builder keeps what it could not store")
	}
	if Full(100, true).Store(none) != nil {
		t.Error("Store without memory")
	}
}

func TestParseRejects(t *testing.T) {
	var b Builder
	b.AppendRun(false, 63*2)
	b.AppendRun(true, 5)
	b.AppendRun(false, 100)
	good := b.Finish(nil).Words() // fill of 2, literal, fill of 1, and where they begin
	for what, bad := range map[string][]uint64{
		"no words":               {},
		"no room for the atoms":  good[:4],
		"no room for directory":  good[:5],
		"rows beyond the limit":  {1 << 62, 0},
		"atoms beyond the words": {63, 1 << 63, zeroRun | 1, 0},
		"rows without atoms":     {1, 0},
		"atoms without rows":     {0, 1, zeroRun | 1, 0},
		"too few chunks":         {64, 1, zeroRun | 1, 0},
		"too many chunks":        {63, 1, zeroRun | 2, 0},
		"a run that overflows":   {126, 2, zeroRun | runMask, oneRun | 3, 0},
		"an empty fill":          {63, 2, zeroRun, oneRun | 1, 0},
		"a literal of zeros":     {63, 1, 0, 0},
		"a literal of ones":      {63, 1, allOnes, 0},
		"two fills for one":      {126, 2, oneRun | 1, oneRun | 1, 0},
		"a literal's padding":    {2, 1, 4, 0},
		"a fill's padding":       {64, 1, oneRun | 2, 0},
		"a wrong directory":      {63, 1, 5, 1},
		"a directory too full":   {63, 1, 5, 1 << 32},
	} {
		if b, _, err := ParseWords(bad); err == nil {
			t.Errorf("%s: no error but %x", what, b.Atoms())
		}
	}
	for i := range good {
		for bit := range 64 {
			other := slices.Clone(good)
			other[i] ^= 1 << bit
			if parsed, _, err := ParseWords(other); err == nil && !parsed.Equal(fromDense(denseOf(parsed), parsed.Len())) {
				t.Errorf("bit %d of word %d changed: %x is not canonical", bit, i, parsed.Atoms())
			}
		}
	}
}

func FuzzParseWords(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, name := range shapeNames() {
		_, b := shaped(name, rng, 3000)
		f.Add(wordBytes(b.Words()))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, n, err := ParseWords(bytesWords(data))
		if err != nil || b.Len() > 1<<20 {
			return
		}
		again := fromDense(denseOf(b), b.Len()).Store(nil)
		if !slices.Equal(again.Words(), bytesWords(data)[:n]) {
			t.Fatalf("a bitmap in two forms: %x and %x", again.Words(), bytesWords(data)[:n])
		}
	})
}

func denseOf(b *Bitmap) []uint64 {
	dense := make([]uint64, (b.Len()+63)/64)
	b.Dense(dense, 0, b.Len())
	return dense
}

func wordBytes(words []uint64) []byte {
	var data []byte
	for _, w := range words {
		for i := range 8 {
			data = append(data, byte(w>>(8*i)))
		}
	}
	return data
}

func bytesWords(data []byte) []uint64 {
	words := make([]uint64, len(data)/8)
	for i := range words {
		for j := range 8 {
			words[i] |= uint64(data[8*i+j]) << (8 * j)
		}
	}
	return words
}
