package emulator

import (
	"context"
	"testing"
	"time"

	"pgaccel/gpu/device"
)

// TestDeadlock runs kernels some of whose threads do not come to where others wait.
func TestDeadlock(t *testing.T) {
	const head = "struct P { int *out; int n; long long pad; };\n"
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{"barrier", "if (threadIdx.x < 40)\n__syncthreads();", []string{"__syncthreads", "40 of the block's 64 threads came", "thread 40 returned", "block (0,0,0)", "test.cu:5"}},
		{"barriers", "if (threadIdx.x < 40)\n__syncthreads(); else *p.out = __syncthreads_or(1);", []string{"__syncthreads_or", "at __syncthreads"}},
		{"lane", "if (threadIdx.x != 35)\n*p.out = __shfl_sync(0xffffffffu, 1, 0);", []string{"__shfl_sync", "of which 0x00000008 do not come", "test.cu:5"}},
		{"lanes that do not exist", "if (threadIdx.x < 32) __syncwarp();\nif (threadIdx.x >= 48)\n*p.out = __any_sync(0x8fff0000u, 1);", []string{"__any_sync", "of which 0x80000000 do not come (the block is too small to have them)"}},
		{"masks", "*p.out = __all_sync(threadIdx.x % 2 ? 0xffffffffu : 0x55555555u, 1);", []string{"__all_sync", "of which 0x55555555 do not come"}},
		{"collectives", "if (threadIdx.x % 2) __syncwarp(); else *p.out = __any_sync(0xffffffffu, 1);", []string{"other lanes of its mask are at"}},
		{"not named", "*p.out = __any_sync(0xfffffff7u, 1);", []string{"a lane that its mask does not name"}},
		{"width", "*p.out = __shfl_sync(0xffffffffu, 1, 0, 12);", []string{"power of two"}},
		{"barrier and collective", "if (threadIdx.x == 1)\n__syncthreads(); else __syncwarp();", []string{"__syncwarp", "of which 0x00000002 do not come"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := start(t, Options{Workers: 2})
			m := compile(t, e, head+"PGACCEL_KERNEL(test, P, p, 64, 1) {\n"+c.body+"\n}\nPGACCEL_KERNEL(good, P, p, 64, 1) { if (threadIdx.x == 0) *p.out = 5; __syncthreads(); }\n")
			p := alloc(t, e, 4)
			par := new(device.Params).Ptr(p).U32(0).I64(0)
			threads := 64
			if c.name == "lanes that do not exist" {
				threads = 60
			}
			_, err := run(e, launch(m, "test", 1, threads, 0, par))
			wantFault(t, err, device.FaultLaunch, append(c.want, "kernel test")...)
			// The emulator goes on.
			reply, err := run(e, launch(m, "good", 9, 64, 0, par), device.Command{Op: device.OpRead, Src: p, Bytes: 4})
			if err != nil {
				t.Fatal(err)
			}
			if reply.Data[0][0] != 5 {
				t.Error("a kernel after it does nothing")
			}
		})
	}
}

// TestCrash runs kernels that do what a device would not survive.
func TestCrash(t *testing.T) {
	const head = `
struct P { int *out; int n; long long pad; };
__device__ __noinline__ int recurse(volatile int *p) { volatile int a[100]; a[*p % 100] = *p; return recurse((int *)a) + a[3]; }
struct Tile { int words[40]; };
`
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{"write behind", "p.out[64] = 1;", []string{"0 bytes behind an allocation of 256 bytes", "thread (5,0,0)"}},
		{"write before", "p.out[-1000] = 1;", []string{"4000 bytes before an allocation of 256 bytes"}},
		{"read behind", "p.out[0] = p.out[100];", []string{"144 bytes behind"}},
		{"null", "*(volatile int *)(long long)(p.n - 7) = 1;", []string{"outside of its memory, at 0x0"}},
		{"shared array", "__shared__ int a[32]; a[p.n + 25] = 1; p.out[0] = a[0];", []string{"an index outside of its array"}},
		{"shared structure", "__shared__ Tile tile[2]; tile[1].words[p.n + 33] = 1; p.out[0] = tile[1].words[0];", []string{"an index outside of its array"}},
		{"local array", "int a[8]; for (int i = 0; i < 8; i++) a[i] = i * p.n; p.out[0] = a[p.n + 1];", []string{"an index outside of its array"}},
		{"not aligned", "*(long long *)(p.out + 1) = 1;", []string{"not aligned"}},
		{"shift", "p.out[0] = 1u << (p.n + 25);", []string{"a shift"}},
		{"division", "p.out[0] = p.n / (p.n - 7);", []string{"division by zero"}},
		{"trap", "__trap();", nil},
		{"stack", "p.out[0] = recurse(p.out);", []string{"stack"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := start(t, Options{Workers: 2})
			m := compile(t, e, head+"PGACCEL_KERNEL(test, P, p, 64, 1) {\nif (blockIdx.x == 3 && threadIdx.x == 5) {\n"+c.body+"\n}\n}\n")
			p := alloc(t, e, 256)
			fill := device.Command{Op: device.OpFill, Dst: p, Bytes: 256, Value: 3}
			c1 := launch(m, "test", 8, 64, 0, new(device.Params).Ptr(p).U32(7).I64(0))
			_, err := run(e, fill, c1)
			wantFault(t, err, device.FaultLost, append(c.want, "kernel test", "block (3,0,0), thread (5,0,0)", "test.cu:")...)
			_, again := run(e)
			if again == nil || again.Error() != err.Error() {
				t.Errorf("after it: %v", again)
			}
			if _, err := e.Alloc(0, 256); device.KindOf(err) != device.FaultLost {
				t.Errorf("Alloc after it: %v", err)
			}
			if err := e.Free(0, p); device.KindOf(err) != device.FaultLost {
				t.Errorf("Free after it: %v", err)
			}
			if _, err := e.Compile(context.Background(), 0, source("")); device.KindOf(err) != device.FaultLost {
				t.Errorf("Compile after it: %v", err)
			}
			// Another emulator of the process does not notice, and nor does Go.
			if got := compute[uint64](t, start(t, Options{}), sumCode, 2, 256, pack([]uint32{1, 2, 3}), 1, 3); got[0] != 6 {
				t.Errorf("another emulator: %d", got[0])
			}
			func() {
				defer func() {
					if recover() == nil {
						t.Error("Go's own fault was lost")
					}
				}()
				var none *int
				*none = 1
			}()
		})
	}
}

// TestSlack checks what is between an allocation's end and the page behind it.
func TestSlack(t *testing.T) {
	e := start(t, Options{})
	m := compile(t, e, "struct P { char *out; long long at; };\nPGACCEL_KERNEL(test, P, p, 1, 1) { p.out[p.at] = 1; }")
	for at, want := range map[int64]string{0: "", 99: "", 100: "0 bytes behind an allocation of 100 bytes", -1: "1 bytes before an allocation of 100 bytes"} {
		p := alloc(t, e, 100)
		_, err := run(e, launch(m, "test", 1, 1, 0, new(device.Params).Ptr(p).I64(at)))
		if want == "" {
			if err == nil {
				err = e.Free(0, p)
			}
			if err != nil {
				t.Error(err)
			}
			continue
		}
		wantFault(t, err, device.FaultLost, "kernel test", want)
		e = start(t, Options{})
		m = compile(t, e, "struct P { char *out; long long at; };\nPGACCEL_KERNEL(test, P, p, 1, 1) { p.out[p.at] = 1; }")
	}
}

func TestLaunchRefused(t *testing.T) {
	e := start(t, Options{FailLaunch: func(name string) bool { return name == "refused" }})
	m := compile(t, e, `struct P { int *out; };
struct Q { int *out; long long n; };
PGACCEL_KERNEL(test, P, p, 64, 1) { *p.out = 1; }
PGACCEL_KERNEL(refused, P, p, 64, 1) { *p.out = 1; }
PGACCEL_KERNEL(child, Q, q, 64, 1) {}
PGACCEL_KERNEL(parent, P, p, 64, 1) { PGACCEL_LAUNCH(child, dim3(1), dim3(65), 0, (Q{p.out, 1})); }`)
	p := new(device.Params).Ptr(alloc(t, e, 4))
	for _, c := range []struct {
		name  string
		grid  int
		block int
		p     *device.Params
		m     device.Module
		want  string
	}{
		{"refused", 1, 64, p, m, "asked for"},
		{"missing", 1, 64, p, m, "no such kernel"},
		{"test", 1, 65, p, m, "launch bounds"},
		{"test", 1, 0, p, m, "threads"},
		{"test", 0, 64, p, m, "grid"},
		{"test", 1, 64, new(device.Params).Ptr(0).Ptr(0), m, "8 bytes, and 16 were given"},
		{"test", 1, 64, p, m + 1, "no module"},
		{"parent", 1, 1, p, m, "child kernel child: more threads"},
	} {
		_, err := run(e, launch(c.m, c.name, c.grid, c.block, 0, c.p))
		wantFault(t, err, device.FaultLaunch, "kernel "+c.name, c.want)
	}
	if _, err := run(e, launch(m, "test", 1, 64, 0, p)); err != nil {
		t.Error(err)
	}
}

func TestMemoryFull(t *testing.T) {
	e := start(t, Options{Memory: 10000, FailAlloc: func(bytes int64) bool { return bytes == 77 }})
	var held []device.Pointer
	for {
		p, err := e.Alloc(0, 1000)
		if err != nil {
			wantFault(t, err, device.FaultMemory, "1000 bytes")
			break
		}
		held = append(held, p)
	}
	if len(held) != 9 { // of 1024
		t.Errorf("%d allocations of 1000 in 10000 bytes", len(held))
	}
	_, err := e.Alloc(0, 77)
	wantFault(t, err, device.FaultMemory, "asked for")
	if err := e.Free(0, held[3]); err != nil {
		t.Fatal(err)
	}
	wantFault(t, e.Free(0, held[3]), device.FaultOther, "not an allocation")
	if _, err := e.Alloc(0, 1000); err != nil {
		t.Error(err)
	}
}

// TestLimit ends kernels without an end, whether they wait or not.
func TestLimit(t *testing.T) {
	for name, body := range map[string]string{
		"computes": "volatile int n = 0; while (n >= 0) n = n * 3 & 0xffff;",
		"waits":    "while (atomicAdd(p.out, 0) >= 0) __syncwarp(1u << threadIdx.x % 32);",
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, Options{Limit: 200 * time.Millisecond})
			m := compile(t, e, "struct P { int *out; };\nPGACCEL_KERNEL(test, P, p, 64, 1) { "+body+" }")
			p := alloc(t, e, 4)
			_, err := run(e, device.Command{Op: device.OpFill, Dst: p, Bytes: 4}, launch(m, "test", 100, 64, 0, new(device.Params).Ptr(p)))
			wantFault(t, err, device.FaultLost, "kernel test", "ran longer than 200ms")
		})
	}
}

func TestClosed(t *testing.T) {
	e := start(t, Options{})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := run(e)
	wantFault(t, err, device.FaultLost, "closed")
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
