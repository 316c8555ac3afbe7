package program

import (
	"encoding/binary"
	"testing"

	"pgaccel/gpu/device"
)

// TestReadAhead has results of one shape become larger and smaller: what comes in the first
// part is enough for a result like the last ones, is not much more, and makes the same result
// with the rest or without.
func TestReadAhead(t *testing.T) {
	p := &Program{Columns: []Column{{}}, Nodes: []Node{{Op: OpColumn}},
		Sink: Sink{Kind: SinkGroups, Place: PlaceHash, Digits: []Digit{{}}, Accs: []Acc{{Kind: AccSum128}, {Kind: AccMin}}}}
	q := &Query{Program: p, Groups: 1 << 30, Expect: 1 << 20, Digits: []DigitData{{Stride: 1}}, MostRows: 1 << 16}
	g, err := Generate(p, TuningFor(q, &device.Info{Kind: device.CUDA, SMs: 132, SharedPerBlock: 227 << 10}))
	if err != nil {
		t.Fatal(err)
	}
	const groupBytes = (2 + 2 + 1) * 8
	b := &Buffers{Scratch: 1 << 20, Columns: make([]device.Pointer, 1)}
	compute := func(groups int) (first int, more bool) {
		head := g.Head(q, b)
		memory := make([]byte, headBytes, headBytes+groups*groupBytes)
		binary.LittleEndian.PutUint64(memory[16:], uint64(groups))
		for i := range groups {
			for w := range groupBytes / 8 {
				memory = binary.LittleEndian.AppendUint64(memory, uint64(i*10+w))
			}
		}
		read := func(c device.Command) []byte {
			if c.Op != device.OpRead || c.Src < head {
				t.Fatalf("%+v is read, a result is at %d", c, head)
			}
			data := make([]byte, c.Bytes)
			if at := int(c.Src - head); at < len(memory) {
				copy(data, memory[at:])
			}
			return data
		}
		c := g.Finish(nil, q, 0, b, 132)
		data := read(c[len(c)-1])
		var rest []byte
		next, more := g.Rest(q, b, data)
		if more {
			rest = read(next)
		}
		r, err := g.Parse(q, data, rest)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Numbers) != groups {
			t.Fatalf("%d groups instead of %d", len(r.Numbers), groups)
		}
		for i := range groups {
			v, accs := int64(i*10), r.Accs
			if r.Numbers[i] != uint64(v) || r.Rows[i] != v+1 || accs[0].V[i] != v+2 || accs[0].Hi[i] != v+3 || accs[1].V[i] != v+4 {
				t.Fatalf("%d groups: group %d is %d with %d rows, %v", groups, i, r.Numbers[i], r.Rows[i], accs)
			}
		}
		return len(data), more
	}
	for _, x := range []struct {
		groups int
		more   bool
		most   int // bytes of the first part
	}{
		{10, false, firstBytes},
		{10, false, leastBytes},
		{5000, true, leastBytes},
		{5000, false, 5000*groupBytes*9/8 + headBytes},
		{5100, false, 5000*groupBytes*9/8 + headBytes},
		{100000, true, 5100*groupBytes*9/8 + headBytes},
		{100000, false, 100000*groupBytes + spareBytes + headBytes},
		{0, false, 100000*groupBytes + spareBytes + headBytes},
	} {
		if first, more := compute(x.groups); more != x.more || first > x.most {
			t.Errorf("%d groups: %d bytes first, of at most %d, more %v", x.groups, first, x.most, more)
		}
	}
	for range 60 {
		compute(7)
	}
	if first, _ := compute(7); first != leastBytes {
		t.Errorf("after small results %d bytes are read", first)
	}
}
