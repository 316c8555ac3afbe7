package wahbits

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

var operations = []struct {
	name string
	op   op
	do   func(dst, a, b *Bitmap) *Bitmap
	bit  func(x, y bool) bool
}{
	{"AND", opAnd, And, func(x, y bool) bool { return x && y }},
	{"OR", opOr, Or, func(x, y bool) bool { return x || y }},
	{"XOR", opXor, Xor, func(x, y bool) bool { return x != y }},
	{"ANDNOT", opAndNot, AndNot, func(x, y bool) bool { return x && !y }},
}

// eachWay combines a and b by runs, by windows, as chosen, and one atom at a time.
func eachWay(o op, do func(dst, a, b *Bitmap) *Bitmap, a, b *Bitmap) map[string]*Bitmap {
	chunks := chunksOf(a.rows)
	room := func() []uint64 { return make([]uint64, min(chunks, len(a.atoms)+len(b.atoms))) }
	runs, windows, driven := room(), room(), room()
	runs = runs[:combineRuns(runs, o, a, b)]
	windows = windows[:combineWindows(windows, o, a.atoms, b.atoms, chunks)]
	if o.y == 0 {
		x, y, not := drivers(o, a, b)
		driven = driven[:combineDriven(driven, x.atoms, y.atoms, not, chunks)]
	} else {
		driven = windows
	}
	return map[string]*Bitmap{
		"driven":  {rows: a.rows, atoms: driven},
		"plain":   combinePlain(o, a, b),
		"runs":    {rows: a.rows, atoms: runs},
		"windows": {rows: a.rows, atoms: windows},
		"chosen":  do(nil, a, b),
	}
}

func TestOperations(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, n := range lengths {
		if testing.Short() && n > 5000 {
			continue
		}
		for _, left := range shapeNames() {
			for _, right := range shapeNames() {
				x, a := shaped(left, rng, n)
				y, b := shaped(right, rng, n)
				want := make([]bool, n)
				for _, o := range operations {
					for i := range want {
						want[i] = o.bit(x[i], y[i])
					}
					expected := compressed(want)
					for way, got := range eachWay(o.op, o.do, a, b) {
						if !got.Equal(expected) {
							sameBits(t, fmt.Sprintf("%s %s %s, %d rows, %s", left, o.name, right, n, way), got, want)
						}
					}
				}
			}
		}
	}
}

func TestNot(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, n := range lengths {
		for _, name := range shapeNames() {
			bits, b := shaped(name, rng, n)
			for i := range bits {
				bits[i] = !bits[i]
			}
			sameBits(t, fmt.Sprintf("NOT %s, %d rows", name, n), not(nil, b), bits)
		}
	}
}

// TestLaws holds whatever the reference may have wrong.
func TestLaws(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	names := shapeNames()
	for range 400 {
		n := lengths[rng.IntN(len(lengths))]
		if testing.Short() {
			n = min(n, 5000)
		}
		_, a := shaped(names[rng.IntN(len(names))], rng, n)
		_, b := shaped(names[rng.IntN(len(names))], rng, n)
		_, c := shaped(names[rng.IntN(len(names))], rng, n)
		equal := func(law string, x, y *Bitmap) {
			t.Helper()
			if !x.Equal(y) {
				t.Fatalf("%s fails on %d rows", law, n)
			}
		}
		equal("NOT NOT a = a", not(nil, not(nil, a)), a)
		equal("NOT (a AND b) = NOT a OR NOT b", not(nil, And(nil, a, b)), Or(nil, not(nil, a), not(nil, b)))
		equal("NOT (a OR b) = NOT a AND NOT b", not(nil, Or(nil, a, b)), And(nil, not(nil, a), not(nil, b)))
		equal("a XOR b = (a ANDNOT b) OR (b ANDNOT a)", Xor(nil, a, b), Or(nil, AndNot(nil, a, b), AndNot(nil, b, a)))
		equal("a ANDNOT b = a AND NOT b", AndNot(nil, a, b), And(nil, a, not(nil, b)))
		equal("a AND (b OR c) = (a AND b) OR (a AND c)", And(nil, a, Or(nil, b, c)), Or(nil, And(nil, a, b), And(nil, a, c)))
		equal("(a XOR b) XOR b = a", Xor(nil, Xor(nil, a, b), b), a)
		equal("OrAll = OR of OR", OrAll(nil, []*Bitmap{a, b, c}), Or(nil, Or(nil, a, b), c))
		if a.Count()+b.Count() != Or(nil, a, b).Count()+And(nil, a, b).Count() {
			t.Fatalf("counts of a, b, a OR b, a AND b disagree on %d rows", n)
		}
	}
}

func TestOrAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	names := shapeNames()
	for _, n := range lengths {
		for _, m := range []int{1, 2, 3, 4, 5, 8, 17, 64} {
			if testing.Short() && n*m > 1<<18 {
				continue
			}
			want := make([]bool, n)
			var bins []*Bitmap
			atoms := 0
			for range m {
				bits, b := shaped(names[rng.IntN(len(names))], rng, n)
				for i, set := range bits {
					want[i] = want[i] || set
				}
				bins = append(bins, b)
				atoms += len(b.atoms)
			}
			what := fmt.Sprintf("union of %d, %d rows", m, n)
			sameBits(t, what, OrAll(nil, bins), want)
			sameBits(t, what+", windows", orWindows(nil, bins, chunksOf(n), atoms), want)
			if m > 1 {
				sameBits(t, what+", pairs", orPairs(nil, bins), want)
			}
		}
	}
}

// TestReusedMemory runs operations through the memory of one result.
func TestReusedMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	names := shapeNames()
	var dst *Bitmap
	for range 300 {
		n := lengths[rng.IntN(len(lengths))]
		if testing.Short() {
			n = min(n, 5000)
		}
		x, a := shaped(names[rng.IntN(len(names))], rng, n)
		y, b := shaped(names[rng.IntN(len(names))], rng, n)
		o := operations[rng.IntN(len(operations))]
		dst = o.do(dst, a, b)
		for i := range x {
			x[i] = o.bit(x[i], y[i])
		}
		sameBits(t, o.name+" into used memory", dst, x)
		dst = not(dst, b)
		for i := range y {
			y[i] = !y[i]
		}
		sameBits(t, "NOT into used memory", dst, y)
		if a.Words()[0] != uint64(n) {
			t.Fatal("an operand was written")
		}
		a = And(a, b, b) // a stored bitmap is never overwritten
		sameBits(t, "stored as dst", a, invert(y))
	}
}

func invert(bits []bool) []bool {
	out := make([]bool, len(bits))
	for i, set := range bits {
		out[i] = !set
	}
	return out
}

// fuzzBits reads a bit vector of n rows from data: runs and scattered bits.
func fuzzBits(data []byte, n int) []bool {
	bits := make([]bool, n)
	for i, at := 0, 0; at < n && i+1 < len(data); i += 2 {
		length := 1 + int(data[i])
		if data[i+1]&4 != 0 {
			length *= 63
		}
		for j := 0; j < length && at < n; j++ {
			switch data[i+1] & 3 {
			case 1:
				bits[at] = true
			case 2:
				bits[at] = data[i+1]>>(j%8)&1 != 0
			}
			at++
		}
	}
	return bits
}

func FuzzOperations(f *testing.F) {
	f.Add([]byte{62, 0, 10, 1, 9, 2}, []byte{3, 5, 100, 2}, uint16(2000))
	f.Add([]byte{255, 5}, []byte{255, 4, 1, 1}, uint16(63*255+1))
	f.Add([]byte{}, []byte{0, 1}, uint16(1))
	f.Fuzz(func(t *testing.T, left, right []byte, rows uint16) {
		x, y := fuzzBits(left, int(rows)), fuzzBits(right, int(rows))
		a, b := compressed(x), compressed(y)
		want := make([]bool, rows)
		for _, o := range operations {
			for i := range want {
				want[i] = o.bit(x[i], y[i])
			}
			for way, got := range eachWay(o.op, o.do, a, b) {
				sameBits(t, o.name+", "+way, got, want)
			}
		}
		for i := range want {
			want[i] = !x[i]
		}
		sameBits(t, "NOT", not(nil, a), want)
	})
}
