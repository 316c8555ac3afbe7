package worker

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pgaccel/gpu/device"
)

// fake is an executor whose device is a map: pointers are handed out one after the other,
// a launch of "sleep" takes Params[0] milliseconds, "lost" loses the device, "exit" ends the process.
type fake struct {
	mu      sync.Mutex
	next    device.Pointer
	memory  map[device.Pointer][]byte
	files   []*os.File
	sources []device.Source
}

func newFake() *fake { return &fake{next: 256, memory: map[device.Pointer][]byte{}} }

var fakeInfo = device.Info{Kind: device.Emulator, Name: "fake", Arch: "none", Driver: "1", SMs: 2, ThreadsPerSM: 64, SharedPerBlock: 1 << 10,
	SharedPerSM: 1 << 11, L2: 3, Memory: 32 << 20, Free: 1 << 19}

func (f *fake) Devices() []device.Info { return []device.Info{fakeInfo, {Name: "second"}} }

func (f *fake) Share(file *os.File) (device.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fd, err := syscall.Dup(int(file.Fd()))
	if err != nil {
		return 0, err
	}
	f.files = append(f.files, os.NewFile(uintptr(fd), file.Name()))
	return device.File(len(f.files)), nil
}

func (f *fake) Alloc(dev int, n int64) (device.Pointer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n > fakeInfo.Memory {
		return 0, &device.Fault{Kind: device.FaultMemory, Call: "fakeAlloc", Text: fmt.Sprint(n, " bytes")}
	}
	p := f.next
	f.next += device.Pointer(n+255) &^ 255
	f.memory[p] = make([]byte, n)
	return p, nil
}

func (f *fake) Free(dev int, p device.Pointer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.memory[p] == nil {
		return fmt.Errorf("%#x was not allocated", p)
	}
	delete(f.memory, p)
	return nil
}

func (f *fake) Compile(ctx context.Context, dev int, s device.Source) (device.Module, error) {
	if strings.Contains(s.Code, "forever") {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	if strings.Contains(s.Code, "#error") {
		return 0, &device.Fault{Kind: device.FaultCompile, Call: "compile " + s.Name, Text: "line 1\nline 2"}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sources = append(f.sources, s)
	return device.Module(len(f.sources)), nil
}

func (f *fake) at(p device.Pointer, n uint64) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	for base, m := range f.memory {
		if base <= p && uint64(p-base)+n <= uint64(len(m)) {
			return m[p-base:][:n]
		}
	}
	panic(fmt.Sprintf("%#x is nowhere", p))
}

func (f *fake) Run(ctx context.Context, dev int, b *device.Batch) (*device.Reply, error) {
	if _, err := b.Check(); err != nil {
		return nil, err
	}
	r := &device.Reply{}
	for _, c := range b.Commands {
		switch c.Op {
		case device.OpLaunch:
			switch c.Function {
			case "sleep":
				time.Sleep(time.Duration(c.Params[0]) * time.Millisecond)
			case "lost":
				return nil, &device.Fault{Kind: device.FaultLost, Call: "kernel lost", Text: "illegal address"}
			case "exit":
				fmt.Fprintln(os.Stderr, "fatal: exit was asked for")
				os.Exit(3)
			case "signal":
				_ = syscall.Kill(os.Getpid(), syscall.SIGBUS)
				time.Sleep(time.Hour)
			case "panic":
				panic("a kernel that panics")
			}
		case device.OpCopyShared:
			f.mu.Lock()
			file := f.files[c.File-1]
			f.mu.Unlock()
			for _, p := range c.Pieces {
				if _, err := file.ReadAt(f.at(p.Dst, uint64(p.Bytes)), p.Offset); err != nil {
					return nil, err
				}
			}
		case device.OpWrite:
			copy(f.at(c.Dst, uint64(len(c.Data))), c.Data)
		case device.OpCopy:
			copy(f.at(c.Dst, c.Bytes), f.at(c.Src, c.Bytes))
		case device.OpFill:
			for m := f.at(c.Dst, c.Bytes); len(m) > 0; m = m[4:] {
				binary.LittleEndian.PutUint32(m, c.Value)
			}
		case device.OpRead:
			r.Data = append(r.Data, bytes.Clone(f.at(c.Src, c.Bytes)))
		case device.OpMark:
			r.Millis = append(r.Millis, 0.25)
		}
	}
	return r, ctx.Err()
}

func (f *fake) Close() error { return nil }

// null does nothing, at once.
type null struct{ *fake }

func (null) Run(context.Context, int, *device.Batch) (*device.Reply, error) {
	return &device.Reply{Data: [][]byte{make([]byte, 1024)}, Millis: []float64{1}}, nil
}

// pair returns both ends of a socket.
func pair(t testing.TB) (*net.UnixConn, *net.UnixConn) {
	t.Helper()
	ours, f, err := socketpair()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	return ours, c.(*net.UnixConn)
}

// connect returns a client of an executor in this process. served has what Serve returns.
func connect(t testing.TB, ex device.Executor) (c *Client, served chan error) {
	t.Helper()
	ours, theirs := pair(t)
	served = make(chan error, 1)
	go func() { served <- Serve(theirs, ex) }()
	c, err := NewClient(ours)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, served
}

// workerMode is the environment variable that makes this test binary a worker.
const workerMode = "PGACCEL_TEST_WORKER"

func TestMain(m *testing.M) {
	mode := os.Getenv(workerMode)
	if mode == "" {
		os.Exit(m.Run())
	}
	if err := fakeWorker(mode); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func fakeWorker(mode string) error {
	conn, err := Inherited()
	if err != nil {
		return err
	}
	switch mode {
	case "serve":
		fmt.Fprintln(os.Stderr, "fake worker begins")
		return Serve(conn, newFake())
	case "null":
		return Serve(conn, null{newFake()})
	case "no device":
		return Refuse(conn, &device.Fault{Kind: device.FaultUnavailable, Call: "cuInit", Text: "CUDA_ERROR_NO_DEVICE"})
	case "hang":
		time.Sleep(time.Hour)
	case "hang later":
		go func() { _ = Serve(conn, newFake()) }()
		time.Sleep(time.Hour) // a closed socket does not end it
	case "garbage":
		_, _ = io.WriteString(conn, strings.Repeat("HTTP/1.1 400 Bad Request\r\n", 100))
		time.Sleep(time.Hour)
	case "cut":
		var b bytes.Buffer
		_ = greeting{Version: Version()}.write(&b)
		_, _ = conn.Write(b.Bytes()[:b.Len()/2])
		return nil
	case "old":
		return greeting{Version: "an older one", Build: "v0"}.write(conn)
	case "linker":
		fmt.Fprintln(os.Stderr, "pgaccel-gpu: error while loading shared libraries: libcuda.so.1: cannot open shared object file: No such file or directory")
		os.Exit(127)
	case "cu":
		fmt.Println(`Error in initialization, please refer to "https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__INITIALIZE.html" for details on: NoDevice`)
		os.Exit(1)
	case "crash":
		panic("at once")
	case "garbage later":
		ex := newFake()
		l := newLink(conn)
		if _, err := readGreeting(l.in); err != nil {
			return err
		}
		_ = greeting{Version: Version(), Devices: ex.Devices()}.write(conn)
		if _, err := readFrame(l.in); err != nil {
			return err
		}
		_, _ = conn.Write(bytes.Repeat([]byte{0xff}, 100))
		time.Sleep(time.Hour)
	}
	return nil
}
