//go:build cuda

package worker

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgaccel/gpu/device"
	"pgaccel/gpu/worker/nvrtc"
)

// These tests run on NVIDIA's driver, or on the one of testdata/fakecuda.c, which has no
// device and so computes nothing: scripts/check-cuda.sh. The compiler is NVRTC either way.

const cudaSource = `
struct P { const unsigned *in; unsigned long long *out; unsigned long long n; };
extern "C" __global__ void __launch_bounds__(256) sum(const __grid_constant__ P p) {
	extern __shared__ unsigned long long part[];
	unsigned long long total = 0;
	for (unsigned long long i = blockIdx.x * 256 + threadIdx.x; i < p.n; i += gridDim.x * 256)
		total += p.in[i] + EXTRA;
	part[threadIdx.x] = total;
	__syncthreads();
	if (threadIdx.x == 0) {
		for (int i = 1; i < 256; i++)
			total += part[i];
		atomicAdd(p.out, total);
	}
}
extern "C" __global__ void wild(const __grid_constant__ P p) { *(volatile unsigned *)(p.n + 16) = 1; }
`

func isFake(ex device.Executor) bool { return strings.HasPrefix(ex.Devices()[0].Name, "fake ") }

// TestCUDAContexts: a batch of one device goes on with what is its own where memory had to be registered, which the first device
// does for all. Holes of a file nobody registers before they are copied.
func TestCUDAContexts(t *testing.T) {
	ex, err := NewCUDA(CUDAOptions{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer ex.Close()
	const bytes = 1 << 20
	for dev := range ex.Devices() {
		f, err := os.Create(filepath.Join(t.TempDir(), "shared"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.Truncate(2 * device.ShareChunk); err != nil {
			t.Fatal(err)
		}
		file, err := ex.Share(f)
		if err != nil {
			t.Fatal(err)
		}
		p, err := ex.Alloc(dev, bytes)
		if err != nil {
			t.Fatal(err)
		}
		for i := range int64(2) {
			copied := device.Command{Op: device.OpCopyShared, File: file, Pieces: []device.Piece{{Offset: i * device.ShareChunk, Bytes: bytes, Dst: p}}}
			if _, err := ex.Run(t.Context(), dev, &device.Batch{Commands: []device.Command{{Op: device.OpMark}, copied,
				{Op: device.OpMark}, {Op: device.OpRecord}, {Op: device.OpAwait}, {Op: device.OpFill, Dst: p, Bytes: bytes}, {Op: device.OpRead, Src: p, Bytes: 4}, {Op: device.OpMark}}}); err != nil {
				t.Fatalf("device %d: %v", dev, err)
			}
		}
		if err := ex.Free(dev, p); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCUDA(t *testing.T) {
	dir := t.TempDir()
	ex, err := NewCUDA(CUDAOptions{CacheDir: dir, LineInfo: true})
	if err != nil {
		t.Fatal(err)
	}
	defer ex.Close()
	ctx := context.Background()
	for dev, info := range ex.Devices() {
		t.Logf("%+v", info)
		m, err := ex.Compile(ctx, dev, device.Source{Name: "sum", Code: cudaSource, Defines: []string{"EXTRA=1"}})
		if err != nil {
			t.Fatal(err)
		}
		if ex.(*executor).devices[dev].gather.Load() == nil && dev > 0 {
			t.Error("the kernel for small pieces is not there")
		}
		content := make([]byte, 70<<20)
		want := uint64(len(content) / 4)
		for i := 0; i < len(content); i += 4 {
			v := uint32(i) * 2654435761
			binary.LittleEndian.PutUint32(content[i:], v)
			want += uint64(v)
		}
		f := memfd(t, content)
		file, err := ex.Share(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		p, err := ex.Alloc(dev, int64(len(content)))
		if err != nil {
			t.Fatal(err)
		}
		out, err := ex.Alloc(dev, 256)
		if err != nil {
			t.Fatal(err)
		}
		for _, way := range []string{"copy", "gather", ""} {
			if err := ex.(*executor).UseCopies(way); err != nil {
				t.Fatal(err)
			}
			var pieces []device.Piece
			for at := int64(0); at < int64(len(content)); at += 2 * 131072 { // every second, then the others
				pieces = append(pieces, device.Piece{Offset: at, Bytes: 131072, Dst: p + device.Pointer(at)})
			}
			for at := int64(131072); at < int64(len(content)); at += 2 * 131072 {
				pieces = append(pieces, device.Piece{Offset: at, Bytes: 131072 - 5, Dst: p + device.Pointer(at)}, device.Piece{Offset: at + 131072 - 5, Bytes: 5, Dst: p + device.Pointer(at+131072-5)})
			}
			r, err := ex.Run(ctx, dev, &device.Batch{Stream: 3, Commands: []device.Command{
				{Op: device.OpFill, Dst: p, Value: 0xeeeeeeee, Bytes: uint64(len(content))},
				{Op: device.OpCopyShared, File: file, Pieces: pieces},
				{Op: device.OpRead, Src: p, Bytes: uint64(len(content))},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(r.Data[0], content) {
				t.Errorf("pieces copied by %q differ", way)
			}
		}
		// Two streams: what one writes the other reads, and then writes over.
		beside := &device.Batch{Stream: 1}
		const turns = 20
		for i := range turns {
			side := []device.Command{{Op: device.OpAwait, Event: 1}, {Op: device.OpWrite, Dst: p, Data: bytes.Repeat([]byte{byte(i)}, 1<<20)}, {Op: device.OpRecord}}
			if i == 0 {
				side = side[1:]
			}
			for k := range side {
				side[k].Side = 1 + uint8(i%device.CopyStreams)
			}
			beside.Commands = append(append(beside.Commands, side...), device.Command{Op: device.OpAwait}, device.Command{Op: device.OpMark},
				device.Command{Op: device.OpRead, Src: p, Bytes: 1 << 20}, device.Command{Op: device.OpRecord, Event: 1})
		}
		both, err := ex.Run(ctx, dev, beside)
		if err != nil {
			t.Fatal(err)
		}
		for i, data := range both.Data {
			if !bytes.Equal(data, bytes.Repeat([]byte{byte(i)}, 1<<20)) {
				t.Errorf("turn %d of two streams reads something else", i)
			}
		}
		if len(both.Data) != turns || len(both.Millis) != turns-1 {
			t.Errorf("%d reads, %d times", len(both.Data), len(both.Millis))
		}
		if _, err := ex.Run(ctx, dev, &device.Batch{Commands: []device.Command{
			{Op: device.OpCopyShared, File: file, Pieces: []device.Piece{{Bytes: 1 << 20, Dst: p}}}}}); err != nil {
			t.Fatal(err)
		}
		var params device.Params
		params.Ptr(p).Ptr(out).U64(uint64(len(content) / 4))
		r, err := ex.Run(ctx, dev, &device.Batch{Stream: 2, Commands: []device.Command{
			{Op: device.OpCopyShared, File: file, Pieces: []device.Piece{{Offset: 1 << 20, Bytes: 64 << 20, Dst: p + 1<<20}, {Bytes: 1 << 20, Dst: p}, {Offset: 65 << 20, Bytes: 5 << 20, Dst: p + 65<<20}}},
			{Op: device.OpFill, Dst: out, Bytes: 8},
			{Op: device.OpFill, Dst: out + 8, Value: 0x01020304, Bytes: 8},
			{Op: device.OpMark},
			{Op: device.OpLaunch, Module: m, Function: "sum", Grid: [3]uint32{200, 1, 1}, Block: [3]uint32{256, 1, 1}, Shared: uint32(info.SharedPerBlock), Params: params.Bytes()},
			{Op: device.OpMark},
			{Op: device.OpWrite, Dst: out + 16, Data: []byte("0123456789")},
			{Op: device.OpCopy, Dst: out + 32, Src: out + 16, Bytes: 10},
			{Op: device.OpRead, Src: out, Bytes: 42},
			{Op: device.OpRead, Src: p, Bytes: uint64(len(content))},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if got := binary.LittleEndian.Uint64(r.Data[0]); got != want && !isFake(ex) {
			t.Errorf("the sum is %d, not %d", got, want)
		}
		if s := string(r.Data[0][8:]); s != "\x04\x03\x02\x01\x04\x03\x02\x01"+"0123456789"+s[18:24]+"0123456789" {
			t.Errorf("read %q", s)
		}
		if !bytes.Equal(r.Data[1], content) {
			t.Error("the copied file differs")
		}
		if len(r.Millis) != 1 || r.Millis[0] < 0 {
			t.Errorf("times are %v", r.Millis)
		}
	}
	images, _ := filepath.Glob(filepath.Join(dir, "*", "*.image"))
	if len(images) == 0 {
		t.Error("no image was kept")
	}
}

func TestCUDACompile(t *testing.T) {
	ex, err := NewCUDA(CUDAOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer ex.Close()
	ctx := context.Background()
	_, err = ex.Compile(ctx, 0, device.Source{Name: "wrong", Code: "#include \"a.cuh\"\nextern \"C\" __global__ void k() { undefined_name(); }", Headers: map[string]string{"a.cuh": "// a"}})
	if device.KindOf(err) != device.FaultCompile || !strings.Contains(err.Error(), "nvrtcCompileProgram: source wrong: NVRTC_ERROR_COMPILATION:\nwrong.cu(2): error:") {
		t.Errorf("got %v", err)
	}
	parent := device.Source{Name: "parent", Defines: []string{launches + "=1"}, Code: `
		extern "C" __global__ void child(int *p) { *p = 1; }
		extern "C" __global__ void parent(int *p) { child<<<1, 1>>>(p); }`}
	_, err = ex.Compile(ctx, 0, parent)
	compiler := ex.(*executor).compiler.(*cudaCompiler)
	_, missing := compiler.linker()
	switch want := "nvJitLinkCreate: source parent: it launches kernels"; {
	case compiler.runtime == "":
		want = "libcudadevrt.a"
		fallthrough
	case missing != nil:
		if device.KindOf(err) != device.FaultCompile || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	case err != nil:
		t.Errorf("a kernel that launches one: %v", err)
	}
	if relocatable(device.Source{Defines: []string{"A", launches + "=0"}}) {
		t.Error("0 is taken for on")
	}
}

// TestCUDAStickyFault has a kernel write where nothing is: all calls fail after it.
func TestCUDAStickyFault(t *testing.T) {
	if os.Getenv("PGACCEL_TEST_STICKY") == "" {
		// The real driver's context is of no use afterwards: a process of its own.
		c, err := Start(context.Background(), StartOptions{Path: mustExecutable(t), Args: []string{"-test.run=TestCUDAStickyFault$", "-test.v"}, Env: []string{"PGACCEL_TEST_STICKY=1"}})
		if err == nil {
			_ = c.Close()
			t.Error("a test that is no worker greets")
		} else if !strings.Contains(err.Error(), "exit status 0") || !strings.Contains(err.Error(), "PASS") {
			t.Error(err)
		}
		return
	}
	ex, err := NewCUDA(CUDAOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	m, err := ex.Compile(ctx, 0, device.Source{Name: "sum", Code: cudaSource, Defines: []string{"EXTRA=1"}})
	if err != nil {
		t.Fatal(err)
	}
	if isFake(ex) {
		t.Setenv("PGACCEL_FAKE_CUDA", "cuStreamQuery=700")
	}
	var params device.Params
	params.U64(0).U64(0).U64(1 << 50)
	_, err = ex.Run(ctx, 0, &device.Batch{Commands: []device.Command{
		{Op: device.OpLaunch, Module: m, Function: "wild", Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Params: params.Bytes()},
	}})
	if device.KindOf(err) != device.FaultLost || !strings.HasPrefix(err.Error(), "device lost: kernel wild: cuStreamSynchronize: CUDA_ERROR_") {
		t.Errorf("got %v", err)
	}
	if _, err := ex.Alloc(0, 1); device.KindOf(err) != device.FaultLost {
		t.Errorf("later: %v", err)
	}
}

func mustExecutable(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

func TestCUDAUnavailable(t *testing.T) {
	t.Setenv(nvrtc.PathVariable, "/nowhere/libnvrtc.so")
	if _, err := NewCUDA(CUDAOptions{}); device.KindOf(err) != device.FaultUnavailable || !strings.Contains(err.Error(), "PGACCEL_NVRTC=/nowhere/libnvrtc.so") {
		t.Errorf("got %v", err)
	}
}
