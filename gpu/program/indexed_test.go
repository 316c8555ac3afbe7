package program

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"pgaccel/bitmapidx"
	"pgaccel/gpu/device"
)

// randomIndexed makes columns of values that come in runs, whose indexes some segments have, and terms
// over them.
func randomIndexed(r *rand.Rand, lengths []int) (q *Query) {
	x := &Indexed{}
	q = &Query{Program: &Program{}, Indexed: x}
	for c := range 1 + r.IntN(3) {
		values, run := int64(1+r.IntN(100)), []int{1, 40, 700, 30000}[r.IntN(4)]
		words := make([][]uint64, len(lengths))
		for i, rows := range lengths {
			if r.IntN(8) == 0 {
				continue
			}
			of, nulls := make([]int64, rows), make([]uint64, (rows+63)/64)
			v := r.Int64N(values)
			for row := range of {
				if r.IntN(run) == 0 {
					v = r.Int64N(values)
				}
				if of[row] = v; r.IntN(10*run) == 0 {
					nulls[row>>6] |= 1 << (row & 63)
				}
			}
			words[i] = bitmapidx.Build(of, nulls, nil).Words()
		}
		x.Columns = append(x.Columns, IndexedColumn{Column: c, Version: 1, Of: func(segment int) (uint64, []uint64) { return 1, words[segment] }})
	}
	for range 1 + r.IntN(4) {
		lo := r.Int64N(100) - 2
		t := IndexTerm{Column: r.IntN(len(x.Columns)), Kind: []StepKind{StepRange, StepBits, StepFilter}[r.IntN(3)], Range: Range{lo, lo + r.Int64N(60)}, Or: r.IntN(3) == 0}
		switch t.Kind {
		case StepRange:
			t.Index, q.Ranges = len(q.Ranges), append(q.Ranges, t.Range)
		case StepFilter:
			if t.In = r.IntN(2) == 0; t.In {
				set := []int64{lo}
				for range r.IntN(20) {
					set = append(set, set[len(set)-1]+1+r.Int64N(10))
				}
				t.Index, q.Sets = len(q.Sets), append(q.Sets, set)
			}
		case StepBits:
			b := Bits{}
			b.Lo, b.Size, b.Bits = lo, 1+r.Int64N(60), []uint64{r.Uint64() & r.Uint64()}
			t.Index, q.Bits = len(q.Bits), append(q.Bits, b)
		}
		x.Terms = append(x.Terms, t)
	}
	x.Terms[len(x.Terms)-1].Or = false
	return q
}

// TestNarrow compares what a device leaves of live rows with a look at each row.
func TestNarrow(t *testing.T) {
	d := newDevice(t)
	m, err := d.e.Compile(t.Context(), 0, TranscodeSource())
	if err != nil {
		t.Fatal(err)
	}
	decided := 0
	for seed := range uint64(20) {
		decided += testNarrow(t, d, m, rand.New(rand.NewPCG(3, seed)))
		d.free()
	}
	if decided == 0 {
		t.Error("no step was decided")
	}
}

func testNarrow(t *testing.T, d *onDevice, m device.Module, r *rand.Rand) (decided int) {
	lengths := []int{1, 31, 32, 33, 62, 63, 64, 65, 126, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025, 20000, 65535, 65536}
	q := randomIndexed(r, lengths)
	live := make([][]uint64, len(lengths))
	var heads []byte
	var list []uint32
	for i, rows := range lengths {
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
	at := &Narrowing{List: d.upload(AppendList(nil, list)), Heads: d.upload(heads), Narrowed: d.alloc(int64(len(heads))), Bitmaps: d.alloc(NarrowBytes(len(list))),
		Alive: d.upload(make([]byte, AliveBytes(len(list))))}
	for _, c := range q.Indexed.Columns {
		var pointers []byte
		for i := range lengths {
			_, words := c.Of(i)
			pointers = binary.LittleEndian.AppendUint64(pointers, uint64(d.bitmap(words)))
		}
		at.Indexes = append(at.Indexes, d.upload(pointers))
	}
	for i := range q.Bits {
		at.Bits = append(at.Bits, d.upload(AppendBits(nil, &q.Bits[i])))
	}
	for i := range q.Sets {
		at.Sets = append(at.Sets, d.upload(AppendSet(nil, q.Sets[i])))
	}
	d.run(Narrow(m, q, len(list), at))
	narrowed := d.run(device.Command{Op: device.OpRead, Src: at.Narrowed, Bytes: uint64(len(heads))}).Data[0]
	var alive []uint32
	for _, i := range list {
		rows := lengths[i]
		left, steps := q.Indexed.narrow(q, int(i), rows, func(bits int, v int64) bool { return q.Bits[bits].Has(v) })
		want := make([]uint64, (rows+63)/64)
		some := false
		for row := range rows {
			if left[row] && (live[i] == nil || live[i][row>>6]>>(row&63)&1 != 0) {
				want[row>>6] |= 1 << (row & 63)
				some = true
				if v := i<<6 | uint32(row/VectorRows); len(alive) == 0 || alive[len(alive)-1] != v {
					alive = append(alive, v)
				}
			}
		}
		head := narrowed[SegmentHeadBytes*i:]
		if n := int(binary.LittleEndian.Uint32(head[8:])); n != rows && some || n != 0 && !some {
			t.Fatalf("%d rows, some are left: %v: %d rows", rows, some, n)
		}
		if !some {
			continue
		}
		if got := binary.LittleEndian.Uint32(head[12:]); got != steps {
			t.Fatalf("%d rows, terms %+v: steps %b are decided, want %b", rows, q.Indexed.Terms, got, steps)
		} else if got != 0 {
			decided++
		}
		bits := d.run(device.Command{Op: device.OpRead, Src: device.Pointer(binary.LittleEndian.Uint64(head)), Bytes: uint64((rows + 31) / 32 * 4)}).Data[0]
		got := make([]uint64, len(want))
		for k := range len(bits) / 4 {
			got[k/2] |= uint64(binary.LittleEndian.Uint32(bits[4*k:])) << (k % 2 * 32)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%d rows, terms %+v:\n%x, want\n%x", rows, q.Indexed.Terms, cut(got), cut(want))
		}
	}
	data := d.run(device.Command{Op: device.OpRead, Src: at.Alive, Bytes: uint64(AliveBytes(len(list)))}).Data[0]
	listed := make([]uint32, binary.LittleEndian.Uint32(data))
	for i := range listed {
		listed[i] = binary.LittleEndian.Uint32(data[4+4*i:])
	}
	slices.Sort(listed)
	if !slices.Equal(listed, alive) {
		t.Fatalf("vectors %x are left, want %x", listed, alive)
	}
	return decided
}
