package emulator

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"pgaccel/gpu/device"
)

const sumCode = `
struct P { const uint32_t *in; unsigned long long *out; long long n; };
PGACCEL_KERNEL(test, P, p, 256, 1) {
	__shared__ unsigned long long warps[8];
	unsigned long long sum = 0;
	for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.n; i += gridDim.x * 256ll) sum += p.in[i];
	for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
	if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
	__syncthreads();
	if (threadIdx.x < 8) {
		sum = warps[threadIdx.x];
		for (int d = 4; d > 0; d /= 2) sum += __shfl_down_sync(0xffu, sum, d);
		if (threadIdx.x == 0) atomicAdd(p.out, sum);
	}
}`

func TestSum(t *testing.T) {
	e := start(t, Options{})
	for _, n := range []int{0, 1, 31, 32, 33, 1023, 1024, 1025, 100000} {
		in := make([]uint32, n)
		var want uint64
		for i := range in {
			in[i] = rand.Uint32()
			want += uint64(in[i])
		}
		if got := compute[uint64](t, e, sumCode, 5, 256, pack(in), 1, n); got[0] != want {
			t.Errorf("%d numbers: %d, want %d", n, got[0], want)
		}
	}
}

// TestGrid checks that every thread of every block runs once, in three dimensions.
func TestGrid(t *testing.T) {
	e := start(t, Options{})
	m := compile(t, e, `
struct P { unsigned *out; };
PGACCEL_KERNEL(test, P, p, 64, 1) {
	unsigned b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
	unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
	atomicAdd(&p.out[b * (blockDim.x * blockDim.y * blockDim.z) + t], 1u);
}`)
	const n = 5 * 3 * 2 * 4 * 3 * 2
	p := alloc(t, e, n*4)
	c := launch(m, "test", 0, 0, 0, new(device.Params).Ptr(p))
	c.Grid, c.Block = [3]uint32{5, 3, 2}, [3]uint32{4, 3, 2}
	reply, err := run(e, device.Command{Op: device.OpFill, Dst: p, Bytes: n * 4}, c, device.Command{Op: device.OpRead, Src: p, Bytes: n * 4})
	if err != nil {
		t.Fatal(err)
	}
	if got := unpack[uint32](reply.Data[0]); slices.Min(got) != 1 || slices.Max(got) != 1 {
		t.Errorf("threads ran %v times", got)
	}
}

// TestBarrier has threads of a block hand numbers round, and a kernel without the
// barrier, which has to show.
func TestBarrier(t *testing.T) {
	const code = `
struct P { const uint32_t *in; uint32_t *out; long long n; };
PGACCEL_KERNEL(test, P, p, 1024, 1) {
	__shared__ uint32_t ring[1024];
	uint32_t v = p.in[blockIdx.x * blockDim.x + threadIdx.x];
	for (unsigned d = 1; d < 6; d++) {
		ring[threadIdx.x] = v;
		%s
		v += ring[(threadIdx.x + d) %% blockDim.x];
		%s
	}
	p.out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}`
	const sync = "__syncthreads();"
	e := start(t, Options{Workers: 3})
	for _, threads := range []int{1, 31, 32, 33, 64, 1000, 1024} {
		const blocks = 4
		in := make([]uint32, blocks*threads)
		for i := range in {
			in[i] = rand.Uint32()
		}
		want := slices.Clone(in)
		for b := range blocks {
			v := want[b*threads:][:threads]
			for d := 1; d < 6; d++ {
				ring := slices.Clone(v)
				for i := range v {
					v[i] += ring[(i+d)%threads]
				}
			}
		}
		if got := compute[uint32](t, e, fmt.Sprintf(code, sync, sync), blocks, threads, pack(in), len(in), 0); !slices.Equal(got, want) {
			t.Errorf("%d threads: not what one thread computes", threads)
		}
		if threads > 1 {
			for _, missing := range []string{fmt.Sprintf(code, sync, ""), fmt.Sprintf(code, "", sync)} {
				if got := compute[uint32](t, e, missing, blocks, threads, pack(in), len(in), 0); slices.Equal(got, want) {
					t.Errorf("%d threads: a missing barrier does not show", threads)
				}
			}
		}
	}
}

// TestDivergence has lanes of a warp take different ways, meet in parts and return early.
func TestDivergence(t *testing.T) {
	e := start(t, Options{})
	got := compute[uint32](t, e, params("uint32_t", "uint32_t")+`
PGACCEL_KERNEL(test, P, p, 64, 1) {
	unsigned lane = threadIdx.x % 32, sum = 0;
	if (lane >= 28) return;
	unsigned odd = 0x0aaaaaaau, even = 0x05555555u;
	if (lane & 1) {
		for (unsigned i = 0; i < lane; i++) sum += i;
		sum = __reduce_add_sync(odd, sum);
	} else {
		sum = __shfl_sync(even, lane * 10, 4);
		if (lane < 8) sum += __reduce_max_sync(0x55u, lane);
		__syncwarp(even);
	}
	__syncwarp(odd | even);
	p.out[threadIdx.x] = sum;
}`, 1, 64, nil, 64, 0)
	odd := uint32(0)
	for lane := range uint32(28) {
		if lane&1 == 1 {
			odd += lane * (lane - 1) / 2
		}
	}
	for i, v := range got {
		want := uint32(0)
		switch lane := i % 32; {
		case lane >= 28:
		case lane&1 == 1:
			want = odd
		case lane < 8:
			want = 46
		default:
			want = 40
		}
		if v != want {
			t.Errorf("thread %d: %d, want %d", i, v, want)
		}
	}
}

// TestWaiting has threads wait for others in loops: within a block, and for blocks before theirs.
func TestWaiting(t *testing.T) {
	e := start(t, Options{Workers: 2})
	const blocks = 50
	got := compute[uint32](t, e, params("uint32_t", "uint32_t")+`
PGACCEL_KERNEL(test, P, p, 64, 1) {
	__shared__ unsigned lock, sum;
	if (threadIdx.x == 0) lock = sum = 0;
	__syncthreads();
	while (atomicCAS(&lock, 0u, 1u) != 0) {
	}
	sum += threadIdx.x;
	__threadfence();
	atomicExch(&lock, 0u);
	__syncthreads();
	if (threadIdx.x == 63) {
		volatile unsigned *out = p.out;
		if (blockIdx.x > 0)
			while (out[blockIdx.x - 1] == 0) __threadfence();
		out[blockIdx.x] = (blockIdx.x > 0 ? out[blockIdx.x - 1] : 0u) + sum;
	}
}`, blocks, 64, nil, blocks, 0)
	for i, v := range got {
		if want := uint32(i+1) * 63 * 32; v != want {
			t.Errorf("block %d: %d, want %d", i, v, want)
		}
	}
}

func TestDynamicShared(t *testing.T) {
	e := start(t, Options{})
	m := compile(t, e, `
struct P { uint32_t *out; uint32_t n; };
PGACCEL_KERNEL(test, P, p, 128, 1) {
	PGACCEL_DYNAMIC_SHARED(memory);
	uint32_t *words = (uint32_t *)memory;
	for (uint32_t i = threadIdx.x; i < p.n; i += blockDim.x) words[i] = i * i;
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < p.n; i += blockDim.x) p.out[i] = words[p.n - 1 - i];
}`)
	const n = sharedPerBlock / 4
	p := alloc(t, e, n*4)
	for _, words := range []int{4, 1024, n} {
		reply, err := run(e, launch(m, "test", 1, 128, words*4, new(device.Params).Ptr(p).U32(uint32(words))),
			device.Command{Op: device.OpRead, Src: p, Bytes: uint64(words) * 4})
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range unpack[uint32](reply.Data[0]) {
			if at := uint32(words - 1 - i); v != at*at {
				t.Fatalf("word %d is %d", i, v)
			}
		}
	}
	both := compile(t, e, `
struct P { uint32_t *out; uint32_t n; };
PGACCEL_KERNEL(test, P, p, 128, 1) {
	__shared__ uint32_t words[1000];
	words[threadIdx.x] = p.n;
	p.out[0] = words[threadIdx.x];
}`)
	if _, err := run(e, launch(both, "test", 1, 128, sharedPerBlock-4096, new(device.Params).Ptr(p).U32(1))); err != nil {
		t.Error(err)
	}
	_, refused := run(e, launch(both, "test", 1, 128, sharedPerBlock-3968, new(device.Params).Ptr(p).U32(1)))
	wantFault(t, refused, device.FaultLaunch, "shared memory")
	_, err := run(e, launch(m, "test", 1, 128, sharedPerBlock+16, new(device.Params).Ptr(p).U32(1)))
	wantFault(t, err, device.FaultLaunch, "shared memory")
	_, err = run(e, launch(m, "test", 1, 128, 64, new(device.Params).Ptr(p).U32(17)))
	wantFault(t, err, device.FaultLost, "kernel test", "behind the 64 bytes of dynamic shared memory", "thread (16,0,0)", "test.cu:7")
}

// TestCommands checks what is not a launch.
func TestCommands(t *testing.T) {
	e := start(t, Options{Devices: 2})
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	file, err := e.Share(f)
	if err != nil {
		t.Fatal(err)
	}
	content := make([]byte, 10000)
	for i := range content {
		content[i] = byte(rand.Uint32())
	}
	if _, err := f.Write(content); err != nil { // it may grow later
		t.Fatal(err)
	}
	a, b := alloc(t, e, 1000), alloc(t, e, 1000)
	if a%256 != 0 || b%256 != 0 {
		t.Errorf("%#x and %#x are not aligned", a, b)
	}
	reply, err := run(e,
		device.Command{Op: device.OpMark},
		device.Command{Op: device.OpFill, Dst: a, Bytes: 1000, Value: 0x04030201},
		device.Command{Op: device.OpCopyShared, File: file, Pieces: []device.Piece{{Offset: 9000, Bytes: 200, Dst: a + 100}, {Offset: 0, Bytes: 100, Dst: a + 400}}},
		device.Command{Op: device.OpMark},
		device.Command{Op: device.OpCopy, Dst: b, Src: a, Bytes: 1000},
		device.Command{Op: device.OpWrite, Dst: b + 996, Data: []byte("last")},
		device.Command{Op: device.OpMark},
		device.Command{Op: device.OpRead, Src: b, Bytes: 1000},
		device.Command{Op: device.OpRead, Src: a + 8, Bytes: 4})
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, 1000)
	for i := range want {
		want[i] = byte(i%4) + 1
	}
	copy(want[100:], content[9000:9200])
	copy(want[400:], content[:100])
	copy(want[996:], "last")
	if !slices.Equal(reply.Data[0], want) {
		t.Error("what is read is not what was written")
	}
	if !slices.Equal(reply.Data[1], []byte{1, 2, 3, 4}) {
		t.Errorf("words are %v", reply.Data[1])
	}
	if len(reply.Millis) != 2 || reply.Millis[0] < 0 {
		t.Errorf("times are %v", reply.Millis)
	}
	for _, bad := range []device.Command{
		{Op: device.OpRead, Src: a, Bytes: 1001},
		{Op: device.OpRead, Src: a - 1, Bytes: 1},
		{Op: device.OpWrite, Dst: a + 999, Data: []byte("ab")},
		{Op: device.OpFill, Dst: a, Bytes: 3},
		{Op: device.OpCopyShared, File: file, Pieces: []device.Piece{{Offset: 9999, Bytes: 2, Dst: a}}},
		{Op: device.OpCopyShared, File: file + 1},
		{Op: device.OpInvalid},
	} {
		_, err := run(e, bad)
		wantFault(t, err, device.FaultOther)
	}
	if _, err := e.Run(context.Background(), 1, &device.Batch{Commands: []device.Command{{Op: device.OpRead, Src: a, Bytes: 1}}}); err == nil {
		t.Error("memory of another device can be read")
	}
	events := &device.Batch{Commands: []device.Command{{Op: device.OpFill, Dst: a, Bytes: 4, Value: 7, Side: 1},
		{Op: device.OpRecord, Event: 2, Side: 1}, {Op: device.OpAwait, Event: 2}, {Op: device.OpRead, Src: a, Bytes: 4}}}
	if reply, err := e.Run(context.Background(), 0, events); err != nil || string(reply.Data[0]) != "\x07\x00\x00\x00" {
		t.Errorf("two streams: %v, %v", reply, err)
	}
	events.Commands = append(events.Commands, device.Command{Op: device.OpAwait, Event: 3})
	if _, err := e.Run(context.Background(), 0, events); device.KindOf(err) != device.FaultOther {
		t.Errorf("an event that is not recorded: %v", err)
	}
	_, err = e.Run(context.Background(), 2, &device.Batch{})
	wantFault(t, err, device.FaultOther, "device 2")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.Run(ended, 0, &device.Batch{}); err != context.Canceled {
		t.Errorf("a context that has ended: %v", err)
	}
}

// TestConcurrent has many goroutines run, compile and allocate on all streams.
func TestConcurrent(t *testing.T) {
	e := start(t, Options{Workers: 3, Delay: time.Microsecond})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			m, err := e.Compile(context.Background(), 0, source(sumCode))
			if err != nil {
				t.Error(err)
				return
			}
			for n := range 30 {
				in := make([]uint32, 1+n*37)
				var want uint64
				for i := range in {
					in[i] = rand.Uint32()
					want += uint64(in[i])
				}
				p, err := e.Alloc(0, int64(len(in)*4+256))
				if err != nil {
					t.Error(err)
					return
				}
				reply, err := e.Run(context.Background(), 0, &device.Batch{Stream: g % device.Streams, Commands: []device.Command{
					{Op: device.OpFill, Dst: p, Bytes: 8},
					{Op: device.OpWrite, Dst: p + 256, Data: pack(in)},
					launch(m, "test", 3, 256, 0, new(device.Params).Ptr(p+256).Ptr(p).I64(int64(len(in)))),
					{Op: device.OpRead, Src: p, Bytes: 8},
				}})
				if err != nil {
					t.Error(err)
					return
				}
				if got := unpack[uint64](reply.Data[0])[0]; got != want {
					t.Errorf("%d numbers: %d, want %d", len(in), got, want)
				}
				if err := e.Free(0, p); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestCompile checks messages, defines, and that modules are kept.
func TestCompile(t *testing.T) {
	dir := t.TempDir()
	e := start(t, Options{Dir: dir})
	_, err := e.Compile(context.Background(), 0, source("struct P { int *out; };\nPGACCEL_KERNEL(test, P, p, 32, 1) { *p.out = missing; }"))
	wantFault(t, err, device.FaultCompile, "test.cu:3", "missing")
	s := source("struct P { int *out; };\nPGACCEL_KERNEL(test, P, p, 32, 1) { if (threadIdx.x == 0) *p.out = NUMBER; }")
	p := alloc(t, e, 8)
	for number := range 2 {
		s.Defines = []string{fmt.Sprintf("NUMBER=%d", number)}
		m, err := e.Compile(context.Background(), 0, s)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := run(e, launch(m, "test", 1, 32, 0, new(device.Params).Ptr(p)), device.Command{Op: device.OpRead, Src: p, Bytes: 4})
		if err != nil {
			t.Fatal(err)
		}
		if got := unpack[uint32](reply.Data[0])[0]; got != uint32(number) {
			t.Errorf("NUMBER=%d is %d", number, got)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("%v, %v are kept, not two modules", files, err)
	}
	second := start(t, Options{Dir: dir})
	if _, err := second.Compile(context.Background(), 0, s); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	s.Defines = []string{"NUMBER=7"}
	if _, err := e.Compile(ended, 0, s); err != context.Canceled {
		t.Errorf("a context that has ended: %v", err)
	}
	if _, err := e.Compile(context.Background(), 0, s); err != nil {
		t.Errorf("after a context that had ended: %v", err)
	}
}

// TestChildren launches grids from grids.
func TestChildren(t *testing.T) {
	e := start(t, Options{})
	got := compute[uint32](t, e, params("uint32_t", "uint32_t")+`
struct Child { uint32_t *out; uint32_t depth, at; };
PGACCEL_KERNEL(child, Child, c, 32, 1) {
	if (threadIdx.x == 0) atomicAdd(&c.out[c.at], 1u);
	if (c.depth > 0 && threadIdx.x < 2) {
		Child next = {c.out, c.depth - 1, c.at * 2 + threadIdx.x + 1};
		PGACCEL_LAUNCH(child, dim3(1), dim3(32), 0, next);
	}
}
PGACCEL_KERNEL(last, P, p, 32, 1) {
	uint32_t sum = 0;
	for (int i = 0; i < 7; i++) sum += p.out[i];
	p.out[7] = sum;
}
PGACCEL_KERNEL(test, P, p, 32, 1) {
	if (threadIdx.x == 0) {
		PGACCEL_LAUNCH_TAIL(last, dim3(1), dim3(1), 0, p);
		Child c = {p.out, 2, 0};
		PGACCEL_LAUNCH(child, dim3(3), dim3(32), 0, c);
	}
}`, 1, 32, nil, 8, 0)
	if want := []uint32{3, 3, 3, 3, 3, 3, 3, 21}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
