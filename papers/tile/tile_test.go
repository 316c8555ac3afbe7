package tile

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgaccel/gpu/device"
	"pgaccel/gpu/emulator"
)

func start(t *testing.T) *emulator.Emulator {
	t.Helper()
	e, err := emulator.New(emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// lengths are of segments that are decoded at once.
var lengths = []int{1, 31, 32, 33, 63, 64, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025, 3000, 8192, 9001, 0}

// shape is what values are like.
type shape struct {
	name      string
	reference int64
	value     func(i int, last int64) int64 // less the reference
}

// shapes have widths of all sorts; what bits of their values are 0 makes deltas fit, too.
func shapes(spare int) []shape {
	return []shape{
		{"small", int64(int32(rand.Uint32())) >> 2, func(int, int64) int64 { return int64(rand.Uint32() % 7) }},
		{"large", math.MinInt32, func(int, int64) int64 { return int64(rand.Uint32() >> spare) }},
		{"runs", 77, func(i int, last int64) int64 {
			if i > 0 && rand.Uint32()%20 > 0 {
				return last
			}
			return int64(rand.Uint32() % 1000)
		}},
		{"long runs", math.MinInt32, func(i int, last int64) int64 {
			if i > 0 && rand.Uint32()%2000 > 0 {
				return last
			}
			return int64(rand.Uint32() >> spare)
		}},
		{"constant", -5, func(int, int64) int64 { return 0 }},
		{"sorted", -2000, func(i int, _ int64) int64 { return int64(i)*3 + int64(rand.Uint32()%5) }},
		{"mixed", math.MinInt32, func(i int, _ int64) int64 { return int64(rand.Uint32() >> (spare + (i/32*7)%(32-spare))) }},
	}
}

// TestDecoders decodes segments of many lengths with each decoder, to values and sums.
func TestDecoders(t *testing.T) {
	e := start(t)
	for _, d := range allDecoders() {
		if d.Format == "lanes" || testing.Short() && d.D > 4 {
			continue
		}
		t.Run(d.Name(), func(t *testing.T) {
			spare := 0
			if d.Format == "dfor" {
				spare = 2
			}
			for _, s := range shapes(spare) {
				var segments [][]int64
				for _, n := range lengths {
					v := make([]int64, n)
					last := int64(0)
					for i := range v {
						last = s.value(i, last)
						v[i] = s.reference + last
					}
					segments = append(segments, v)
				}
				check(t, e, d, s.name, segments, 0, 0)
			}
		})
	}
}

// TestLanes decodes lanes of each width.
func TestLanes(t *testing.T) {
	e := start(t)
	for width := 1; width <= 32; width++ {
		if testing.Short() && width%5 != 1 {
			continue
		}
		for _, d := range allDecoders() {
			if d.Format != "lanes" {
				continue
			}
			var segments [][]int64
			reference := int32(rand.Uint32()) >> 1
			if width >= 31 {
				reference = -1 << 31
			}
			for _, n := range lengths {
				v := make([]int64, n)
				for i := range v {
					v[i] = int64(reference) + int64(rand.Uint64()&(1<<width-1))
				}
				segments = append(segments, v)
			}
			check(t, e, d, fmt.Sprintf("%d bits", width), segments, width, reference)
		}
	}
}

// check decodes segments on a device and compares values and sum.
func check(t *testing.T, ex device.Executor, d Decoder, what string, segments [][]int64, width int, reference int32) {
	t.Helper()
	alloc := func(bytes int) device.Pointer {
		p, err := ex.Alloc(0, int64(max(bytes, 1)))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	var held []device.Pointer
	var commands []device.Command
	var heads []byte
	var sum uint32
	most := 0
	for _, v := range segments {
		most = max(most, len(v))
		words, err := encode(d.Format, v, width, reference)
		if err != nil {
			t.Fatal(err)
		}
		var data []byte
		for _, w := range words {
			data = binary.LittleEndian.AppendUint32(data, w)
		}
		in, out := alloc(len(data)), alloc((len(v)+1023)/1024*4096)
		held = append(held, in, out)
		commands = append(commands, device.Command{Op: device.OpWrite, Dst: in, Data: data})
		heads = appendSegment(heads, in, out, len(v), reference)
		for _, x := range v {
			sum += uint32(x)
		}
	}
	head, sums := alloc(len(heads)), alloc(sumSlots*4)
	held = append(held, head, sums)
	commands = append(commands, device.Command{Op: device.OpWrite, Dst: head, Data: heads}, device.Command{Op: device.OpFill, Dst: sums, Bytes: sumSlots * 4})
	for _, adds := range []bool{true, false} {
		m, err := ex.Compile(context.Background(), 0, d.Source(width, adds))
		if err != nil {
			t.Fatal(err)
		}
		commands = append(commands, d.Launch(m, head, sums, len(segments), most, width))
	}
	for i, v := range segments {
		commands = append(commands, device.Command{Op: device.OpRead, Src: held[2*i+1], Bytes: uint64(4 * len(v))})
	}
	reply, err := ex.Run(context.Background(), 0, &device.Batch{Commands: append(commands, device.Command{Op: device.OpRead, Src: sums, Bytes: sumSlots * 4})})
	if err != nil {
		t.Fatalf("%s, %s: %v", d.Name(), what, err)
	}
	for i, v := range segments {
		for row, x := range v {
			if got := int32(binary.LittleEndian.Uint32(reply.Data[i][4*row:])); int64(got) != x {
				t.Errorf("%s, %s, %d rows: row %d is %d, want %d", d.Name(), what, len(v), row, got, x)
				break
			}
		}
	}
	got := uint32(0)
	for i := range sumSlots {
		got += binary.LittleEndian.Uint32(reply.Data[len(segments)][4*i:])
	}
	if got != sum {
		t.Errorf("%s, %s: the sum is %d, want %d", d.Name(), what, got, sum)
	}
	for _, p := range held {
		if err := ex.Free(0, p); err != nil {
			t.Error(err)
		}
	}
}

// TestBench runs the benchmark small, all of it but widths.
func TestBench(t *testing.T) {
	opt := Options{SegmentRows: 5000, Segments: 3, Widths: []int{2, 16, 30}, Runs: 1, Warm: 1}
	if testing.Short() {
		opt.Widths = []int{16}
	}
	rows, err := Bench(context.Background(), start(t), 0, opt)
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 + len(opt.Widths)*2*len(allDecoders()); len(rows) != want {
		t.Errorf("%d measurements, want %d", len(rows), want)
	}
	for _, r := range rows {
		if r.Millis <= 0 || r.GBs <= 0 || r.OfCopy <= 0 || r.Compressed <= 0 {
			t.Errorf("%+v", r)
		}
		if r.Decoder == "lanes quads" && r.Compressed != 3*4*int64(5*32*r.Width+128) {
			t.Errorf("lanes of %d bits have %d bytes", r.Width, r.Compressed)
		}
	}
}

// TestBenchFails checks that a device that computes something else is found out.
func TestBenchFails(t *testing.T) {
	for _, at := range []device.Pointer{400, 2048*4 + 800} {
		_, err := Bench(context.Background(), &liar{Executor: start(t), at: at}, 0, Options{SegmentRows: 2000, Segments: 2, Widths: []int{5}, Runs: 1,
			Decoder: func(d Decoder) bool { return d.Step == "base" }})
		if err == nil || !strings.Contains(err.Error(), "1 values are wrong") {
			t.Errorf("a wrong value at byte %d: %v", at, err)
		}
	}
}

// liar changes a value after it was decoded.
type liar struct {
	device.Executor
	at device.Pointer
}

func (l *liar) Run(ctx context.Context, dev int, b *device.Batch) (*device.Reply, error) {
	for i, c := range b.Commands {
		if c.Op == device.OpLaunch && c.Function == "tile_for_base" && b.Commands[0].Value == 0x5a5a5a5a {
			wrong := device.Command{Op: device.OpFill, Dst: b.Commands[0].Dst + l.at, Bytes: 4, Value: 99}
			b = &device.Batch{Commands: slices.Insert(slices.Clone(b.Commands), i+1, wrong)}
			break
		}
	}
	return l.Executor.Run(ctx, dev, b)
}
