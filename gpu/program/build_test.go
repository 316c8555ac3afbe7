package program

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgaccel/gpu/device"
)

// TestBuild builds lookups of keys in many orders: ascending, with gaps, across words,
// descending, shuffled, and with one key twice.
func TestBuild(t *testing.T) {
	d := newDevice(t)
	orders := map[string]func(keys []int64){
		"ascending":  func([]int64) {},
		"descending": slices.Reverse[[]int64],
		"shuffled":   func(k []int64) { rand.Shuffle(len(k), func(i, j int) { k[i], k[j] = k[j], k[i] }) },
		"in pairs": func(k []int64) {
			for i := 1; i < len(k); i += 2 {
				k[i-1], k[i] = k[i], k[i-1]
			}
		},
		"with gaps": func(k []int64) {
			for i := range k {
				k[i] += int64(i / 37 * 5)
			}
		},
		"every other": func(k []int64) {
			for i := range k {
				k[i] *= 2
			}
		},
	}
	for name, order := range orders {
		for i, n := range append([]int{1, 70}, edgeLengths...) {
			if n == 0 {
				continue
			}
			for _, twice := range []int{0, 1, 40} { // a key is that of so many rows before, too
				if twice >= n || twice > 0 && n > 600 {
					continue
				}
				keys := make([]int64, n)
				for i := range keys {
					keys[i] = int64(i)
				}
				order(keys)
				if twice > 0 {
					keys[n-1] = keys[n-1-twice]
				}
				checkBuild(t, d, fmt.Sprintf("%s, %d rows, twice %d", name, n, twice), keys, LookupKind(i%4), int64(i%3*13), false)
				if i%4 == 0 {
					for i := range keys {
						keys[i] /= int64(1 + i/5%4)
					}
					checkBuild(t, d, fmt.Sprintf("%s, %d rows, repeated", name, n), keys, LookupBits, int64(i%3*13), true)
				}
			}
		}
	}
}

func checkBuild(t *testing.T, d *onDevice, what string, keys []int64, kind LookupKind, before int64, repeats bool) {
	t.Helper()
	half := len(keys) / 2 &^ 31
	kind = []LookupKind{LookupBits, Lookup8, Lookup16, Lookup32}[kind]
	p := &Program{Columns: []Column{{}, {}, {}}, Nodes: []Node{{Op: OpColumn}, {Op: OpColumn, Index: 1}, {Op: OpColumn, Index: 2}},
		Steps: []Step{{Kind: StepRange, Node: 1}}, Sink: Sink{Kind: SinkBuild, Build: kind, Repeats: repeats, Key: 0}}
	q := &Query{Program: p, Ranges: []Range{{1, 4}}, BuildLo: -before, BuildSize: slices.Max(keys) + before + 1}
	if kind != LookupBits {
		p.Sink.Digits, q.Digits = []Digit{{Node: 2}}, []DigitData{{Lo: 7, Stride: 1}}
	}
	for _, part := range [][]int64{keys[:half], keys[half:]} {
		if len(part) == 0 {
			continue
		}
		passes, numbers := make([]int64, len(part)), make([]int64, len(part))
		for i := range part {
			passes[i], numbers[i] = 1+rand.Int64N(6)*rand.Int64N(2), 7+rand.Int64N(100)
		}
		q.Segments = append(q.Segments, Segment{Rows: len(part), Columns: []SegmentColumn{encode(part), encode(passes), encode(numbers)}})
	}
	want, err := Reference(q)
	if err != nil {
		t.Fatal(err)
	}
	got, built := d.compute(q, TuningFor(q, &d.info), 1)
	defer d.free()
	if got.Fault != want.Fault || repeats && want.Fault {
		t.Errorf("%s: fault %v, want %v", what, got.Fault, want.Fault)
	}
	if want.Fault {
		return
	}
	have := d.run(device.Command{Op: device.OpRead, Src: built, Bytes: uint64(BuiltBytes(q))}).Data[0]
	wanted := AppendLookup(nil, &Lookup{Kind: kind}, want.Lookup)
	bits := bitmapBytes(q.BuildSize)
	if n := bits + q.BuildSize*kind.EntryBytes(); !slices.Equal(have[:n], wanted[:n]) {
		t.Errorf("%s: another lookup was built", what)
	}
}

// TestClear clears regions, more than a launch does.
func TestClear(t *testing.T) {
	d := newDevice(t)
	m, err := d.e.Compile(t.Context(), 0, TranscodeSource())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 2, clearMax, clearMax + 1, 2*clearMax + 5} {
		var regions []Region
		var want []byte
		at := int64(0)
		for i := range n {
			r := Region{At: device.Pointer(at), Bytes: 16 * uint64([]int{1, 0, 31, 257, 5000}[i%5]), Value: rand.Uint32()}
			for range r.Bytes / 4 {
				want = binary.LittleEndian.AppendUint32(want, r.Value)
			}
			want = append(want, make([]byte, 16)...) // between them nothing is written
			at += int64(r.Bytes) + 16
			regions = append(regions, r)
		}
		memory := d.alloc(at)
		c := []device.Command{{Op: device.OpFill, Dst: memory, Bytes: uint64(at)}}
		for i := range regions {
			regions[i].At += memory
		}
		c = append(Clear(c, m, regions, 2), device.Command{Op: device.OpRead, Src: memory, Bytes: uint64(at)})
		if got := d.run(c...).Data[0]; !slices.Equal(got, want) {
			t.Errorf("%d regions: other bytes", n)
		}
		d.free()
	}
}
