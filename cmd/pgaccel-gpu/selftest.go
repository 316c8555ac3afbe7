package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"pgaccel/gpu/device"
	"pgaccel/gpu/worker"
	"pgaccel/kernels"
)

// source sums words: a reduction in dynamic shared memory, and an atomic.
const source = `
#include "pgaccel.cuh"

struct Sum {
	const uint32_t *words;
	uint64_t count;
	unsigned long long *sum;
};

PGACCEL_KERNEL(selftest_sum, Sum, p, 256, 1) {
	PGACCEL_DYNAMIC_SHARED(memory);
	unsigned long long *part = (unsigned long long *)memory;
	unsigned long long total = 0;
	const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.count; i += step)
		total += p.words[i];
	part[threadIdx.x] = total;
	__syncthreads();
	for (unsigned n = blockDim.x / 2; n > 0; n /= 2) {
		if (threadIdx.x < n)
			part[threadIdx.x] += part[threadIdx.x + n];
		__syncthreads();
	}
	if (threadIdx.x == 0)
		atomicAdd(p.sum, part[0]);
}
`

// selftest runs source on each device, over a socket as pgaccel would, and checks its answer.
func selftest(out io.Writer, ex device.Executor, bytes int64) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		c, err := net.FileConn(f)
		_ = f.Close()
		if err != nil {
			return err
		}
		ends[i] = c.(*net.UnixConn)
	}
	served := make(chan error, 1)
	go func() { served <- worker.Serve(ends[1], ex) }()
	c, err := worker.NewClient(ends[0])
	if err != nil {
		return err
	}
	for i, info := range c.Devices() {
		n := bytes
		if n == 0 {
			n = 1 << 30
			if info.Kind != device.CUDA {
				n = 1 << 20
			}
		}
		t := &tester{out: out, ex: ex, c: c, dev: i, info: info, bytes: n &^ 3}
		if err := t.run(); err != nil {
			_ = c.Close()
			return fmt.Errorf("%s:%d: %w", info.Kind, i, err)
		}
		fmt.Fprintf(out, "%s:%d passed\n", info.Kind, i)
	}
	_ = c.Close()
	return <-served
}

// tester is the test of one device.
type tester struct {
	out   io.Writer
	ex    device.Executor
	c     *worker.Client
	dev   int
	info  device.Info
	bytes int64
}

func (t *tester) say(format string, args ...any) { fmt.Fprintf(t.out, "  "+format+"\n", args...) }

func (t *tester) run() error {
	ctx := context.Background()
	src := device.Source{Name: "selftest", Code: source, Headers: kernels.Headers()}
	begin := time.Now()
	m, err := t.c.Compile(ctx, t.dev, src)
	if err != nil {
		return err
	}
	t.say("compiled, or loaded from the cache, in %v", time.Since(begin))
	begin = time.Now()
	fresh := src
	fresh.Defines = []string{fmt.Sprintf("SELFTEST_RUN=%d", begin.UnixNano())}
	if _, err := t.c.Compile(ctx, t.dev, fresh); err != nil {
		return err
	}
	t.say("compiled anew in %v", time.Since(begin))
	if _, err := t.c.Compile(ctx, t.dev, device.Source{Name: "wrong", Code: "no C++"}); device.KindOf(err) != device.FaultCompile {
		return fmt.Errorf("a source that is none compiles: %v", err)
	}

	file, sum, err := memory(t.bytes)
	if err != nil {
		return err
	}
	defer file.Close()
	shared, err := t.c.Share(file)
	if err != nil {
		return err
	}
	words, err := t.c.Alloc(t.dev, t.bytes)
	if err != nil {
		return err
	}
	result, err := t.c.Alloc(t.dev, 256)
	if err != nil {
		return err
	}
	for _, what := range []string{"first", "again"} {
		begin = time.Now()
		r, err := t.c.Run(ctx, t.dev, &device.Batch{Stream: device.Streams - 1, Commands: []device.Command{
			{Op: device.OpMark},
			{Op: device.OpCopyShared, File: shared, Pieces: []device.Piece{{Bytes: t.bytes, Dst: words}}},
			{Op: device.OpMark},
		}})
		if err != nil {
			return err
		}
		t.say("copied %d MiB of shared memory (%s): %.3f ms, %.1f GB/s; by the clock %v", t.bytes>>20, what, r.Millis[0], float64(t.bytes)/r.Millis[0]/1e6, time.Since(begin))
	}
	if err := t.pieces(ctx, file, shared, words); err != nil {
		return err
	}

	// What is summed is the file again, which pieces put in disorder.
	if _, err := t.c.Run(ctx, t.dev, &device.Batch{Commands: []device.Command{
		{Op: device.OpCopyShared, File: shared, Pieces: []device.Piece{{Bytes: t.bytes, Dst: words}}},
	}}); err != nil {
		return err
	}
	var p device.Params
	p.Ptr(words).U64(uint64(t.bytes / 4)).Ptr(result)
	launch := device.Command{Op: device.OpLaunch, Module: m, Function: "selftest_sum",
		Grid: [3]uint32{uint32(4 * max(t.info.SMs, 1)), 1, 1}, Block: [3]uint32{256, 1, 1}, Shared: 256 * 8, Params: p.Bytes()}
	for _, dynamic := range []uint32{256 * 8, uint32(t.info.SharedPerBlock)} {
		launch.Shared = dynamic
		r, err := t.c.Run(ctx, t.dev, &device.Batch{Commands: []device.Command{
			{Op: device.OpFill, Dst: result, Bytes: 256},
			{Op: device.OpMark}, launch, {Op: device.OpMark},
			{Op: device.OpRead, Src: result, Bytes: 8},
		}})
		if err != nil {
			return err
		}
		if got := binary.LittleEndian.Uint64(r.Data[0]); got != sum {
			return fmt.Errorf("the kernel's sum is %d, it should be %d", got, sum)
		}
		t.say("summed with %d bytes of shared memory: %.3f ms, %.1f GB/s", dynamic, r.Millis[0], float64(t.bytes)/r.Millis[0]/1e6)
	}
	launch.Shared = uint32(t.info.SharedPerBlock) + 1024
	if _, err := t.c.Run(ctx, t.dev, &device.Batch{Commands: []device.Command{launch}}); device.KindOf(err) != device.FaultLaunch {
		return fmt.Errorf("more shared memory than there is: %v", err)
	}
	launch.Shared = 256 * 8
	if err := t.writes(ctx, words); err != nil {
		return err
	}
	if err := t.latency(ctx, launch, words, result); err != nil {
		return err
	}
	if err := t.launches(ctx, result); err != nil {
		return err
	}
	return errors.Join(t.c.Free(t.dev, words), t.c.Free(t.dev, result))
}

// writes sends data of several lengths to the device and reads them back.
func (t *tester) writes(ctx context.Context, at device.Pointer) error {
	for _, n := range []int{1, 4, 1023, 1 << 16, 8 << 20, 8<<20 + 1, 24<<20 + 7, 128 << 20} {
		if int64(n) > t.bytes {
			continue
		}
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(i*31 + i>>8 + n)
		}
		begin := time.Now()
		r, err := t.c.Run(ctx, t.dev, &device.Batch{Stream: 1, Commands: []device.Command{
			{Op: device.OpWrite, Dst: at, Data: data},
			{Op: device.OpRead, Src: at, Bytes: uint64(n)},
		}})
		if err != nil {
			return err
		}
		took := time.Since(begin)
		if !slices.Equal(r.Data[0], data) {
			return fmt.Errorf("%d bytes came back wrong", n)
		}
		if n >= 8<<20 {
			t.say("wrote and read %d bytes over the socket in %v, %.1f GB/s each way", n, took, 2*float64(n)/float64(took))
		}
	}
	return nil
}

// latency measures what a small query costs besides its kernel.
func (t *tester) latency(ctx context.Context, launch device.Command, words, result device.Pointer) error {
	var p device.Params
	launch.Params = p.Ptr(words).U64(1).Ptr(result).Bytes()
	batch := &device.Batch{Commands: []device.Command{
		{Op: device.OpFill, Dst: result, Bytes: 256}, launch, {Op: device.OpRead, Src: result, Bytes: 256},
	}}
	rounds := 500
	if t.info.Kind != device.CUDA {
		rounds = 5
	}
	chooser, _ := t.ex.(interface{ UseCopies(way string) error })
	for _, e := range []struct {
		name, way string
		ex        device.Executor
	}{{"in this process, read by a copy", "copy", t.ex}, {"in this process", "", t.ex}, {"over a socket, read by a copy", "copy", t.c}, {"over a socket", "", t.c}} {
		if chooser != nil {
			if err := chooser.UseCopies(e.way); err != nil {
				return err
			}
		} else if e.way != "" {
			continue
		}
		times := make([]time.Duration, rounds)
		for i := range times {
			begin := time.Now()
			if _, err := e.ex.Run(ctx, t.dev, batch); err != nil {
				return err
			}
			times[i] = time.Since(begin)
		}
		slices.Sort(times)
		t.say("fill, launch and read, %s: median %v, best %v, worst %v", e.name, times[rounds/2], times[0], times[rounds-1])
	}
	return nil
}

// memory returns a memory file, and the sum of its words.
func memory(bytes int64) (*os.File, uint64, error) {
	fd, err := unix.MemfdCreate("selftest", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, 0, err
	}
	f := os.NewFile(uintptr(fd), "selftest")
	if err := f.Truncate(bytes); err != nil {
		return nil, 0, err
	}
	mem, err := unix.Mmap(fd, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = unix.Munmap(mem) }()
	var sum uint64
	for i := 0; i < len(mem); i += 4 {
		v := uint32(i) * 2654435761
		binary.LittleEndian.PutUint32(mem[i:], v)
		sum += uint64(v)
	}
	return f, sum, nil
}
