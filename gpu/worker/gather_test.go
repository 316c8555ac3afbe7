package worker

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"pgaccel/gpu/device"
)

// TestGather copies random pieces in every way and compares with the file.
func TestGather(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	content := make([]byte, chunkBytes+4<<20)
	for i := range content {
		content[i] = byte(i * 7 >> 3)
	}
	f := memfd(t, content)
	defer f.Close()
	lengths := []int64{0, 1, 15, 16, 17, 4095, 4096, 4097, 16384, 128 << 10, gatherMax - 1, gatherMax, gatherMax + 1}
	for _, way := range []string{"", "copy", "gather", "gather 3"} {
		d := newMemDriver()
		d.gather = true
		e, _ := newTestExecutor(t, d, cache{})
		if err := e.UseCopies(way); err != nil {
			t.Fatal(err)
		}
		file, err := e.Share(f)
		if err != nil {
			t.Fatal(err)
		}
		const size = 24 << 20
		p, err := e.Alloc(0, size)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]byte, size)
		for round := range 10 {
			var pieces []device.Piece
			at := int64(0)
			for range r.IntN(200) {
				n := lengths[r.IntN(len(lengths))]
				if at+n+16 > size {
					break
				}
				from := r.Int64N(int64(len(content)) - n)
				if k := len(pieces); k > 0 && r.IntN(3) == 0 && pieces[k-1].Offset+pieces[k-1].Bytes+n <= int64(len(content)) {
					from = pieces[k-1].Offset + pieces[k-1].Bytes
				} else if round > 3 { // the first rounds have neighbours on the device
					at += r.Int64N(16)
				}
				pieces = append(pieces, device.Piece{Offset: from, Bytes: n, Dst: p + device.Pointer(at)})
				copy(want[at:], content[from:from+n])
				at += n
			}
			if round == 0 { // more units than a launch has
				pieces = pieces[:0]
				clear(want)
				for at := int64(0); at < 20<<20; at += 2048 {
					from := (at * 3) % (20 << 20)
					pieces = append(pieces, device.Piece{Offset: from, Bytes: 2048, Dst: p + device.Pointer(at)})
					copy(want[at:], content[from:from+2048])
				}
			}
			got, err := e.Run(context.Background(), 0, &device.Batch{Commands: []device.Command{
				{Op: device.OpCopyShared, File: file, Pieces: pieces},
				{Op: device.OpRead, Src: p, Bytes: size},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Data[0], want) {
				t.Fatalf("%q, round %d: %d pieces differ", way, round, len(pieces))
			}
		}
		if (d.gathered > 0) != (way != "copy") {
			t.Errorf("%q: %d launches", way, d.gathered)
		}
	}
	e, _ := newTestExecutor(t, newMemDriver(), cache{})
	if e.UseCopies("gather") == nil || e.UseCopies("fax") == nil || e.UseCopies("gather x") == nil || e.UseCopies("copy") != nil {
		t.Error("a device that does not gather is told to")
	}
}

func TestMerged(t *testing.T) {
	got := merged([]device.Piece{{Offset: 10, Bytes: 5, Dst: 100}, {Offset: 15, Bytes: 0, Dst: 105}, {Offset: 15, Bytes: 5, Dst: 105}, {Offset: 20, Bytes: 1, Dst: 200}, {Offset: 22, Bytes: 1, Dst: 201}})
	want := []device.Piece{{Offset: 10, Bytes: 10, Dst: 100}, {Offset: 20, Bytes: 1, Dst: 200}, {Offset: 22, Bytes: 1, Dst: 201}}
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("piece %d is %+v", i, got[i])
		}
	}
}

// TestGatherKernel runs gather.cu on this machine, a thread after the other: none waits for
// another.
func TestGatherKernel(t *testing.T) {
	dir := t.TempDir()
	harness := `
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct dim { unsigned x; } threadIdx, blockIdx, blockDim, gridDim;
template <typename T> T __ldcs(const T *p) {
	if ((uintptr_t)p % 16) __builtin_trap();
	return *p;
}
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(n)
` + gatherCode + `
int main() {
	alignas(128) static unsigned char from[40000], to[40064], want[40064];
	for (unsigned i = 0; i < sizeof from; i++) from[i] = (unsigned char)(i * 31 + (i >> 8));
	int lengths[] = {0, 1, 15, 16, 17, 31, 32, 33, 511, 512, 513, 4079, 4095, 4096, 4097, 4112, 16384};
	for (int n : lengths) for (int a = 0; a < 144; a += a < 16 ? 1 : 16) for (int b = 0; b < 16; b++) {
		memset(to, 0xee, sizeof to), memset(want, 0xee, sizeof want);
		Unit units[2] = {{(uint64_t)from + a, (uint64_t)to + b, (uint64_t)n}, {(uint64_t)from + a, (uint64_t)to + 20000 + b, (uint64_t)n}};
		memcpy(want + b, from + a, n), memcpy(want + 20000 + b, from + a, n);
		blockDim.x = 64, gridDim.x = 1;
		for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
			for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)
				pgaccel_gather({units, 2, {}});
		memset(to + 20000, 0xee, 20000);
		for (threadIdx.x = 0, blockIdx.x = 0, blockDim.x = 32; threadIdx.x < 32; threadIdx.x++)
			pgaccel_gather({nullptr, 1, units[1]});
		if (memcmp(to, want, sizeof to)) { printf("%d bytes from %d to %d differ\n", n, a, b); return 1; }
	}
}
`
	source, program := filepath.Join(dir, "gather.cpp"), filepath.Join(dir, "gather")
	if err := os.WriteFile(source, []byte(harness), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"g++", "-std=c++20", "-O1", "-w", "-fno-strict-aliasing", "-o", program, source}, {program}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
}
