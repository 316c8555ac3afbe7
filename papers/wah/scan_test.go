package wah

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"pgaccel/gpu/device"
)

func valueBytes(values []uint32) []byte {
	var p []byte
	for _, v := range values {
		p = binary.LittleEndian.AppendUint32(p, v)
	}
	return p
}

// TestScan scans rows of many lengths at once, and sums of more parts than a block has
// threads.
func TestScan(t *testing.T) {
	ex := emulated(t)
	ctx := context.Background()
	module, err := ex.Compile(ctx, 0, Source(scanFile, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(21, 22))
	var values, want []uint32
	begins := []uint64{0}
	for _, n := range []int{0, 1, 31, 32, 33, 255, 256, 257, 2047, 2048, 2049, 0, 3*2048 - 1, 3 * 2048, 3*2048 + 1} {
		sum := uint32(0)
		for range n {
			v := rng.Uint32()
			values, want = append(values, v), append(want, sum)
			sum += v
		}
		begins = append(begins, uint64(len(values)))
	}
	const stride, tall = 4, 700
	rows := len(begins) - 1
	sums, offsets := make([]uint32, 2*tall), make([]uint32, 2*tall)
	for r := range 2 {
		sum := uint32(0)
		for i := range tall {
			v := rng.Uint32()
			sums[r*tall+i], offsets[r*tall+i] = v, sum
			sum += v
		}
	}
	size := int64(4 * len(values))
	base, err := ex.Alloc(0, align(size)+align(int64(8*len(begins)))+align(4*int64(rows*stride))+8*tall)
	if err != nil {
		t.Fatal(err)
	}
	atBegins := base + device.Pointer(align(size))
	atSums := atBegins + device.Pointer(align(int64(8*len(begins))))
	atTall := atSums + device.Pointer(align(4*int64(rows*stride)))
	p := func(sums device.Pointer, stride uint32) *device.Params {
		return new(device.Params).Ptr(base).Ptr(atBegins).Ptr(sums).U32(stride)
	}
	reply, err := ex.Run(ctx, 0, &device.Batch{Commands: []device.Command{
		{Op: device.OpWrite, Dst: base, Data: valueBytes(values)},
		{Op: device.OpWrite, Dst: atBegins, Data: wordBytes(begins)},
		{Op: device.OpWrite, Dst: atTall, Data: valueBytes(sums)},
		launch(module, "scan_sums", stride, rows, scanThreads, p(atSums, stride)),
		launch(module, "scan_offsets", 1, rows, scanThreads, p(atSums, stride)),
		launch(module, "scan_values", stride, rows, scanThreads, p(atSums, stride)),
		launch(module, "scan_offsets", 1, 2, scanThreads, p(atTall, tall)),
		{Op: device.OpRead, Src: base, Bytes: uint64(size)},
		{Op: device.OpRead, Src: atTall, Bytes: 8 * tall},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range want {
		if got := binary.LittleEndian.Uint32(reply.Data[0][4*i:]); got != w {
			t.Fatalf("value %d: %d, want %d", i, got, w)
		}
	}
	for i, w := range offsets {
		if got := binary.LittleEndian.Uint32(reply.Data[1][4*i:]); got != w {
			t.Fatalf("sum %d: %d, want %d", i, got, w)
		}
	}
	if err := ex.Free(0, base); err != nil {
		t.Fatal(err)
	}
}
