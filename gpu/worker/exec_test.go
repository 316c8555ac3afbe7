package worker

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"pgaccel/gpu/device"
)

// TestBatchesThroughStaging runs random batches and does the same to plain memory.
func TestBatchesThroughStaging(t *testing.T) {
	for _, gather := range []bool{false, true} {
		for _, streams := range []bool{false, true} {
			t.Run(fmt.Sprintf("gather %v, copy streams %v", gather, streams), func(t *testing.T) { testBatches(t, gather, streams) })
		}
	}
}

// deal has the commands of a batch done by all its streams, with the events that they need: one
// awaits what the others are to have done to the same memory.
func deal(r *rand.Rand, commands []device.Command) (out []device.Command) {
	type span struct{ lo, hi device.Pointer }
	var open [1 + device.CopyStreams][1 + device.CopyStreams][]span // what a stream touched since another awaited it
	event := uint32(0)
	for _, c := range commands {
		n := device.Pointer(max(c.Bytes, uint64(len(c.Data))))
		spans := []span{{c.Dst, c.Dst + n}}
		if c.Op == device.OpRead || c.Op == device.OpCopy {
			spans = append(spans, span{c.Src, c.Src + n})
		}
		if c.Op != device.OpMark {
			c.Side = uint8(r.IntN(1 + device.CopyStreams))
		}
		for other := range uint8(1 + device.CopyStreams) {
			if other != c.Side && slices.ContainsFunc(open[other][c.Side], func(o span) bool {
				return slices.ContainsFunc(spans, func(s span) bool { return s.lo < o.hi && o.lo < s.hi })
			}) {
				out = append(out, device.Command{Op: device.OpRecord, Side: other, Event: event}, device.Command{Op: device.OpAwait, Side: c.Side, Event: event})
				event = (event + 1) % device.Events
				open[other][c.Side] = nil
			}
			open[c.Side][other] = append(open[c.Side][other], spans...)
		}
		out = append(out, c)
	}
	return out
}

func testBatches(t *testing.T, gather, streams bool) {
	d := newMemDriver()
	d.gather = gather
	e, _ := newTestExecutor(t, d, cache{})
	if err := e.UseCopies(""); err != nil { // waits for the kernel
		t.Fatal(err)
	}
	const size = 20 << 20
	p, err := e.Alloc(0, size)
	if err != nil {
		t.Fatal(err)
	}
	plain := make([]byte, size)
	r := rand.New(rand.NewPCG(1, 2))
	lengths := []int{0, 1, 31, 255, 256, 257, 4096, stagingBytes - 257, stagingBytes - 1, stagingBytes, stagingBytes + 1, 2*stagingBytes + 7}
	for round := range 30 {
		b := &device.Batch{Stream: round % device.Streams, Commands: []device.Command{{Op: device.OpMark}}}
		var want [][]byte
		for range 1 + r.IntN(8) {
			n := lengths[r.IntN(len(lengths))]
			at := r.IntN(size - n)
			dst := p + device.Pointer(at)
			switch r.IntN(4) {
			case 0:
				data := make([]byte, n)
				for i, v := 0, r.Uint64(); i < len(data); i++ {
					data[i] = byte(v >> (i % 57))
				}
				copy(plain[at:], data)
				b.Commands = append(b.Commands, device.Command{Op: device.OpWrite, Dst: dst, Data: data})
			case 1:
				want = append(want, slices.Clone(plain[at:at+n]))
				b.Commands = append(b.Commands, device.Command{Op: device.OpRead, Src: dst, Bytes: uint64(n)})
			case 2:
				n &^= 3
				v := r.Uint32()
				for i := range n {
					plain[at+i] = byte(v >> (8 * (i % 4)))
				}
				b.Commands = append(b.Commands, device.Command{Op: device.OpFill, Dst: dst, Value: v, Bytes: uint64(n)})
			case 3:
				from := r.IntN(size - n)
				copy(plain[at:at+n], plain[from:from+n])
				b.Commands = append(b.Commands, device.Command{Op: device.OpCopy, Dst: dst, Src: p + device.Pointer(from), Bytes: uint64(n)})
			}
		}
		b.Commands = append(b.Commands, device.Command{Op: device.OpMark}, device.Command{Op: device.OpMark})
		if streams {
			b.Stream %= device.Streams - device.CopyStreams
			b.Commands = deal(r, b.Commands)
		}
		got, err := e.Run(context.Background(), 0, b)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Data) != len(want) {
			t.Fatalf("round %d: %d reads of %d", round, len(got.Data), len(want))
		}
		for i := range want {
			if !bytes.Equal(got.Data[i], want[i]) {
				t.Fatalf("round %d: read %d differs", round, i)
			}
		}
		if !slices.Equal(got.Millis, []float64{1, 2}) {
			t.Fatalf("times are %v", got.Millis)
		}
		if got.Enqueue <= 0 || got.Took != 0 {
			t.Fatalf("%v to enqueue, %v in all of a call", got.Enqueue, got.Took)
		}
	}
}

// TestTurns has batches that have two streams each wait for each other's turns.
func TestTurns(t *testing.T) {
	e, _ := newTestExecutor(t, newMemDriver(), cache{})
	p, err := e.Alloc(0, 1<<10)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for k := range 200 {
				side := uint8(1 + (i+k/2)%2)
				b := &device.Batch{Stream: device.Streams - 1 - (i+k)%3, Commands: []device.Command{
					{Op: device.OpFill, Dst: p + device.Pointer(256*i), Value: uint32(k), Bytes: 4, Side: side},
					{Op: device.OpRecord, Side: side}, {Op: device.OpAwait},
					{Op: device.OpRead, Src: p + device.Pointer(256*i), Bytes: 4},
				}}
				r, err := e.Run(context.Background(), 0, b)
				if b.StreamOf(side) == b.Stream {
					if err == nil {
						t.Error("copies beside themselves")
					}
				} else if err != nil || binary.LittleEndian.Uint32(r.Data[0]) != uint32(k) {
					t.Errorf("%v, %v", r, err)
				}
			}
		})
	}
	group.Wait()
}

// TestSharedFiles copies across chunks of a file that grows.
func TestSharedFiles(t *testing.T) {
	for _, register := range []bool{true, false} {
		t.Run(fmt.Sprint("registered ", register), func(t *testing.T) {
			d := newMemDriver()
			d.noRegister = !register
			e, _ := newTestExecutor(t, d, cache{})
			f := memfd(t, nil)
			defer f.Close()
			shared, err := e.Share(f)
			if err != nil {
				t.Fatal(err)
			}
			p, err := e.Alloc(0, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			content := make([]byte, 3000)
			for i := range content {
				content[i] = byte(i * 13)
			}
			check := func(offset, n int64) error {
				t.Helper()
				r, err := e.Run(context.Background(), 0, &device.Batch{Commands: []device.Command{
					{Op: device.OpCopyShared, File: shared, Pieces: []device.Piece{{Offset: offset, Bytes: n, Dst: p}, {Offset: offset, Bytes: 0}, {Offset: offset, Bytes: n, Dst: p + 100_000}}},
					{Op: device.OpRead, Src: p, Bytes: uint64(n)}, {Op: device.OpRead, Src: p + 100_000, Bytes: uint64(n)},
				}})
				if err != nil {
					return err
				}
				want := make([]byte, n)
				if _, err := f.ReadAt(want, offset); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(r.Data[0], want) || !bytes.Equal(r.Data[1], want) {
					t.Errorf("%d bytes at %d differ", n, offset)
				}
				return nil
			}
			var end int64
			write := func(at int64) {
				t.Helper()
				if _, err := f.WriteAt(content, at); err != nil {
					t.Fatal(err)
				}
				end = max(end, at+int64(len(content)))
			}
			write(0)
			for _, n := range []int64{1, 127, 128, 129, 3000} {
				if err := check(3000-n, n); err != nil {
					t.Error(err)
				}
			}
			if err := check(2000, 3000); device.KindOf(err) != device.FaultOther {
				t.Errorf("beyond the end: %v", err)
			}
			write(2999) // on pages that were registered, and on new ones
			if err := check(0, 5999); err != nil {
				t.Error(err)
			}
			write(10_000)
			if err := check(4000, 8000); err != nil {
				t.Error(err)
			}
			for _, chunk := range []int64{1, 2, 3} {
				write(chunk*chunkBytes - 1500)
				if err := check(chunk*chunkBytes-1500, 3000); err != nil {
					t.Error(err)
				}
			}
			if err := check(4*chunkBytes-100, 1); device.KindOf(err) != device.FaultOther {
				t.Errorf("beyond the end: %v", err)
			}
			if n := len(d.registered); register && n < 5 || !register && n != 0 {
				t.Errorf("%d registrations", n)
			}
			if _, err := e.Run(context.Background(), 0, &device.Batch{Commands: []device.Command{{Op: device.OpCopyShared, File: shared + 1}}}); err == nil {
				t.Error("a file that was not shared is copied from")
			}
		})
	}
}

// TestPartsAreRegistered looks at what the stream is given: pinned parts lie in one
// registration each, and all parts together are the pieces.
func TestPartsAreRegistered(t *testing.T) {
	d := newMemDriver()
	f := memfd(t, nil)
	s := newSharedFile(f, d.register)
	defer s.close()
	r := rand.New(rand.NewPCG(3, 4))
	size := int64(0)
	for range 200 {
		if size < 5*chunkBytes {
			size += r.Int64N(chunkBytes / 4)
			if err := f.Truncate(size + 1); err != nil {
				t.Fatal(err)
			}
		}
		n := 1 + r.Int64N(min(size+1, 2*chunkBytes))
		at := r.Int64N(size + 2 - n)
		pieces := []device.Piece{{Offset: at, Bytes: n, Dst: 1000}}
		s.prepare(pieces)
		next := device.Pointer(1000)
		if err := s.parts(pieces, func(p part) error {
			if p.dst != next || len(p.mem) == 0 {
				t.Fatalf("a part goes to %d, not %d", p.dst, next)
			}
			if !p.pinned || !d.isRegistered(p.mem) {
				t.Fatal("a part that is not registered")
			}
			next += device.Pointer(len(p.mem))
			return nil
		}, nil); err != nil {
			t.Fatal(err)
		}
		if next != 1000+device.Pointer(n) {
			t.Fatalf("%d of %d bytes", next-1000, n)
		}
	}
	// No byte is registered twice: the driver refuses that.
	slices.SortFunc(d.registered, func(a, b []byte) int {
		return int(uintptr(unsafe.Pointer(&a[0])) - uintptr(unsafe.Pointer(&b[0])))
	})
	for i := 1; i < len(d.registered); i++ {
		a, b := d.registered[i-1], d.registered[i]
		if uintptr(unsafe.Pointer(&a[0]))+uintptr(len(a)) > uintptr(unsafe.Pointer(&b[0])) {
			t.Error("registrations overlap")
		}
	}
}

func TestCompile(t *testing.T) {
	d := newMemDriver()
	images := cache{dir: filepath.Join(t.TempDir(), "kernels")}
	e, c := newTestExecutor(t, d, images)
	c.block = make(chan struct{})
	ctx := context.Background()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if m, err := e.Compile(ctx, 0, device.Source{Name: "a", Code: "code"}); m != 1 || err != nil {
				t.Errorf("module %d, %v", m, err)
			}
		})
	}
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, err := e.Compile(short, 0, device.Source{Name: "a", Code: "code"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	close(c.block)
	group.Wait()
	if n := c.compiled.Load(); n != 1 {
		t.Errorf("one source was compiled %d times", n)
	}
	if m, err := e.Compile(ctx, 0, device.Source{Name: "a", Code: "code", Defines: []string{"A"}}); m != 2 || err != nil {
		t.Errorf("module %d, %v", m, err)
	}
	if _, err := e.Compile(ctx, 0, device.Source{Code: "#error"}); device.KindOf(err) != device.FaultCompile {
		t.Errorf("got %v", err)
	}
	if _, err := e.Compile(ctx, 0, device.Source{Code: "bad image"}); device.KindOf(err) != device.FaultCompile {
		t.Errorf("got %v", err)
	}
	if _, err := e.Compile(ctx, 1, device.Source{}); err == nil {
		t.Error("a device that is not there compiles")
	}

	// Another process finds the images; one that was cut off or changed is made anew.
	key := sourceKey(device.Source{Name: "a", Code: "code"}, "sm_90", "mem 1 sm_90")
	for name, change := range map[string]func(b []byte) []byte{
		"whole": nil,
		"cut":   func(b []byte) []byte { return b[:len(b)-1] },
		"short": func(b []byte) []byte { return b[:10] },
		"empty": func(b []byte) []byte { return nil },
		"flip":  func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
	} {
		b, err := os.ReadFile(images.path(key))
		if err != nil {
			t.Fatal(err)
		}
		want := int32(0)
		if change != nil {
			want = 1
			if err := os.WriteFile(images.path(key), change(b), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		e, c := newTestExecutor(t, newMemDriver(), images)
		if _, err := e.Compile(ctx, 0, device.Source{Name: "a", Code: "code"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := c.compiled.Load(); n != want {
			t.Errorf("%s: compiled %d times", name, n)
		}
		if string(images.get(key)) != "code" {
			t.Errorf("%s: the cache has %q", name, images.get(key))
		}
	}

	// A directory that cannot be written costs the cache, nothing else.
	e, _ = newTestExecutor(t, newMemDriver(), cache{dir: "/dev/null/kernels"})
	if _, err := e.Compile(ctx, 0, device.Source{Code: "code"}); err != nil {
		t.Error(err)
	}
}

// TestCachedImageThatIsRefused compiles again: a newer driver may not take an old image.
func TestCachedImageThatIsRefused(t *testing.T) {
	images := cache{dir: t.TempDir()}
	key := sourceKey(device.Source{Code: "code"}, "sm_90", "mem 1 sm_90")
	if err := images.put(key, []byte("bad image")); err != nil {
		t.Fatal(err)
	}
	e, c := newTestExecutor(t, newMemDriver(), images)
	if _, err := e.Compile(context.Background(), 0, device.Source{Code: "code"}); err != nil || c.compiled.Load() != 1 {
		t.Errorf("compiled %d times, %v", c.compiled.Load(), err)
	}
	if string(images.get(key)) != "code" {
		t.Error("the cache keeps the refused image")
	}
}

func TestPrune(t *testing.T) {
	c := cache{dir: t.TempDir()}
	keys := []string{"aa1", "bb2", "cc3"}
	for i, k := range keys {
		if err := c.put(k, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(c.path(k), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if c.get("aa1") == nil { // now it is the one used last
		t.Fatal("not there")
	}
	c.prune(2500)
	for k, want := range map[string]bool{"aa1": true, "bb2": false, "cc3": true} {
		if got := c.get(k) != nil; got != want {
			t.Errorf("%s is there: %v", k, got)
		}
	}
}

func TestLaunchFaults(t *testing.T) {
	d := newMemDriver()
	e, _ := newTestExecutor(t, d, cache{})
	ctx := context.Background()
	m, err := e.Compile(ctx, 0, device.Source{Name: "a", Code: "code"})
	if err != nil {
		t.Fatal(err)
	}
	run := func(c device.Command) error {
		_, err := e.Run(ctx, 0, &device.Batch{Commands: []device.Command{c}})
		return err
	}
	launch := device.Command{Op: device.OpLaunch, Module: m, Function: "f", Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Shared: 100 << 10, Params: make([]byte, 8)}
	for _, bytes := range []uint32{40 << 10, 100 << 10, 40 << 10} {
		launch.Shared = bytes
		if err := run(launch); err != nil {
			t.Errorf("%d bytes of shared memory: %v", bytes, err)
		}
	}
	for _, c := range []struct {
		change func(c *device.Command)
		kind   device.FaultKind
		text   string
	}{
		{func(c *device.Command) { c.Shared = 300 << 10 }, device.FaultLaunch, "launch failed: kernel f: cuFuncSetAttribute: CUDA_ERROR_INVALID_VALUE"},
		{func(c *device.Command) { c.Grid[0] = 0 }, device.FaultLaunch, "launch failed: kernel f: cuLaunchKernel: CUDA_ERROR_INVALID_VALUE"},
		{func(c *device.Command) { c.Function = "none" }, device.FaultLaunch, "launch failed: kernel none: cuModuleGetFunction: CUDA_ERROR_NOT_FOUND"},
		{func(c *device.Command) { c.Module = 77 }, device.FaultLaunch, "launch failed: cuModuleGetFunction: no such module"},
		{func(c *device.Command) { *c = device.Command{Op: device.OpFill, Bytes: 3} }, device.FaultOther, "device error: fill: 3 bytes are no whole words"},
		{func(c *device.Command) { *c = device.Command{Op: 99} }, device.FaultOther, "device error: there is no command 99"},
	} {
		bad := launch
		c.change(&bad)
		if err := run(bad); device.KindOf(err) != c.kind || err.Error() != c.text {
			t.Errorf("got %v, want %s", err, c.text)
		}
	}
	if _, err := e.Run(ctx, 0, &device.Batch{Stream: device.Streams}); err == nil {
		t.Error("a stream that is not there runs")
	}
	if _, err := e.Alloc(0, 1<<40); device.KindOf(err) != device.FaultMemory || err.Error() != "out of device memory: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY" {
		t.Errorf("got %v", err)
	}
	if err := run(launch); err != nil {
		t.Errorf("after faults that are not sticky: %v", err)
	}

	d.failWait = resultIllegalAddress
	launch.Function = "fails"
	want := "device lost: kernel fails: cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS"
	if err := run(launch); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := e.Alloc(0, 1); err == nil || err.Error() != want {
		t.Errorf("later: got %v, want %s", err, want)
	}
	if err := run(device.Command{Op: device.OpMark}); err == nil || err.Error() != want {
		t.Errorf("later: got %v, want %s", err, want)
	}
}

// TestStreamsSideBySide has a batch of each stream at once.
func TestStreamsSideBySide(t *testing.T) {
	e, _ := newTestExecutor(t, newMemDriver(), cache{})
	p, err := e.Alloc(0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for s := range 4 * device.Streams {
		group.Go(func() {
			data := bytes.Repeat([]byte{byte(s)}, 1000)
			at := p + device.Pointer(1000*s)
			for range 100 {
				r, err := e.Run(context.Background(), 0, &device.Batch{Stream: s % device.Streams, Commands: []device.Command{
					{Op: device.OpWrite, Dst: at, Data: data}, {Op: device.OpRead, Src: at, Bytes: 1000},
				}})
				if err != nil || !bytes.Equal(r.Data[0], data) {
					t.Errorf("stream %d: %v", s, err)
					return
				}
			}
		})
	}
	group.Wait()
}

func TestReasons(t *testing.T) {
	for output, want := range map[string]string{
		"pgaccel-gpu: error while loading shared libraries: libcuda.so.1: cannot open shared object file: No such file or directory": "no NVIDIA driver: libcuda.so.1 not found",
		"x: error while loading shared libraries: libz.so.1: cannot open shared object file":                                         "libz.so.1 not found",
		`Error in initialization, please refer to "https://docs" for details on: NoDevice`:                                           "cuInit: CUDA_ERROR_NO_DEVICE",
		`Error in initialization, please refer to "https://docs" for details on: SystemDriverMismatch`:                               "cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
		`Error in initialization, please refer to "https://docs" for details on: UnknownErrorCode:34`:                                "cuInit: CUDA_ERROR_STUB_LIBRARY (the driver found is a stub for linking)",
		`Error in initialization, please refer to "https://docs" for details on: UnknownErrorCode:4711`:                              "cuInit: CUresult 4711",
		"something else": "",
	} {
		if got := driverReason(output); got != want {
			t.Errorf("%q means %q, want %q", output, got, want)
		}
	}
}
