package program

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"pgaccel/gpu/device"
)

// appendAtoms appends the atoms of a bin: rows that are in it, as package bitmapidx would, but that
// fills need not be as long as they can be.
func appendAtoms(atoms []uint64, in []bool, r *rand.Rand) []uint64 {
	for at := 0; at < len(in); at += atomRows {
		word := uint64(0)
		for i, is := range in[at:min(at+atomRows, len(in))] {
			if is {
				word |= 1 << i
			}
		}
		kind := uint64(atomFill)
		switch word {
		case 1<<atomRows - 1:
			kind |= atomOnes
			fallthrough
		case 0:
			if n := len(atoms); at > 0 && atoms[n-1]&^(atomOnes-1) == kind && r.IntN(50) > 0 {
				atoms[n-1]++
			} else {
				atoms = append(atoms, kind|1)
			}
		default:
			atoms = append(atoms, word)
		}
	}
	return atoms
}

// randomTerm is a term over bins of which each row is in one, in runs of about so many rows.
func randomTerm(rows int, r *rand.Rand) IndexTerm {
	bins := make([][]bool, 1+r.IntN(6))
	for i := range bins {
		bins[i] = make([]bool, rows)
	}
	bin, run := 0, []int{1, 40, 700, 30000}[r.IntN(4)]
	for i := range rows {
		if r.IntN(run) == 0 {
			bin = r.IntN(len(bins))
		}
		bins[bin][i] = true
	}
	t := IndexTerm{Not: r.IntN(3) == 0, Or: r.IntN(3) == 0}
	for _, in := range bins {
		from := uint32(len(t.Atoms))
		t.Atoms = appendAtoms(t.Atoms, in, r)
		to := uint32(len(t.Atoms))
		switch n := len(t.Parts); {
		case r.IntN(2) == 0:
		case n > 0 && t.Parts[n-1].To == from && r.IntN(2) == 0:
			t.Parts[n-1].To = to // several bins
		default:
			t.Parts = append(t.Parts, IndexPart{from, to})
		}
	}
	return t
}

// TestNarrow compares what a device leaves of live rows with a look at each row.
func TestNarrow(t *testing.T) {
	d := newDevice(t)
	m, err := d.e.Compile(t.Context(), 0, TranscodeSource())
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(6) {
		testNarrow(t, d, m, rand.New(rand.NewPCG(3, seed)))
		d.free()
	}
}

func testNarrow(t *testing.T, d *onDevice, m device.Module, r *rand.Rand) {
	lengths := []int{1, 31, 32, 33, 62, 63, 64, 65, 126, 127, 1023, 1024, 1025, 20000, 65535, 65536}
	x := &Indexed{Terms: make([][]IndexTerm, len(lengths))}
	live := make([][]uint64, len(lengths))
	var heads []byte
	var list []uint32
	for i, rows := range lengths {
		for range r.IntN(4) {
			x.Terms[i] = append(x.Terms[i], randomTerm(rows, r))
		}
		if n := len(x.Terms[i]); n > 0 {
			x.Terms[i][n-1].Or = false
		}
		if r.IntN(2) == 0 {
			live[i] = make([]uint64, (rows+63)/64)
			for k := range live[i] {
				live[i][k] = r.Uint64() | r.Uint64()
			}
		}
		heads = AppendSegmentHead(heads, d.bitmap(live[i]), rows)
		if r.IntN(8) > 0 {
			list = append(list, uint32(i))
		}
	}
	o, err := PackIndexed(x, list, func(t *IndexTerm) (device.Pointer, error) { return d.bitmap(t.Atoms), nil })
	if err != nil {
		t.Fatal(err)
	}
	at := &Narrowing{Segments: d.upload(o.Segments), Terms: d.upload(o.Terms), Parts: d.upload(o.Parts), Heads: d.upload(heads),
		Narrowed: d.alloc(int64(len(heads))), Bitmaps: d.alloc(NarrowBytes(len(list)))}
	d.run(Narrow(m, len(list), at))
	narrowed := d.run(device.Command{Op: device.OpRead, Src: at.Narrowed, Bytes: uint64(len(heads))}).Data[0]
	for _, i := range list {
		rows := lengths[i]
		want := make([]uint64, (rows+63)/64)
		some := false
		for row := range rows {
			if x.allows(int(i), row, rows) && (live[i] == nil || live[i][row>>6]>>(row&63)&1 != 0) {
				want[row>>6] |= 1 << (row & 63)
				some = true
			}
		}
		head := narrowed[SegmentHeadBytes*i:]
		if n := int(binary.LittleEndian.Uint32(head[8:])); n != rows && some || n != 0 && !some {
			t.Fatalf("%d rows, some are left: %v: %d rows", rows, some, n)
		}
		bits := d.run(device.Command{Op: device.OpRead, Src: device.Pointer(binary.LittleEndian.Uint64(head)), Bytes: uint64((rows + 31) / 32 * 4)}).Data[0]
		got := make([]uint64, len(want))
		for k := range len(bits) / 4 {
			got[k/2] |= uint64(binary.LittleEndian.Uint32(bits[4*k:])) << (k % 2 * 32)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%d rows, terms %+v:\n%x, want\n%x", rows, x.Terms[i], cut(got), cut(want))
		}
	}
}
