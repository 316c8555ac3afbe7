package emulator

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"pgaccel/gpu/device"
	"pgaccel/kernels"
)

// source makes a translation unit of kernels.
func source(code string) device.Source {
	return device.Source{Name: "test", Code: "#include \"pgaccel.cuh\"\n" + code, Headers: kernels.Headers(), Defines: []string{"PGACCEL_CDP=1"}}
}

func start(t *testing.T, opt Options) *Emulator {
	t.Helper()
	e, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func compile(t *testing.T, e *Emulator, code string) device.Module {
	t.Helper()
	m, err := e.Compile(context.Background(), 0, source(code))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func alloc(t *testing.T, e *Emulator, bytes int) device.Pointer {
	t.Helper()
	p, err := e.Alloc(0, int64(bytes))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// launch is a command of one dimension.
func launch(m device.Module, name string, grid, block int, shared int, p *device.Params) device.Command {
	return device.Command{Op: device.OpLaunch, Module: m, Function: name, Grid: [3]uint32{uint32(grid), 1, 1},
		Block: [3]uint32{uint32(block), 1, 1}, Shared: uint32(shared), Params: p.Bytes()}
}

func run(e *Emulator, commands ...device.Command) (*device.Reply, error) {
	return e.Run(context.Background(), 0, &device.Batch{Commands: commands})
}

// pack lays out numbers as the device has them.
func pack[T any](v []T) []byte {
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func unpack[T any](b []byte) []T {
	var zero T
	v := make([]T, len(b)/binary.Size(zero))
	if err := binary.Read(bytes.NewReader(b), binary.LittleEndian, v); err != nil {
		panic(err)
	}
	return v
}

// compute runs a kernel over one buffer in and one out: its parameter has their
// addresses, and n.
func compute[Out any](t *testing.T, e *Emulator, code string, grid, block int, in []byte, out int, n int) []Out {
	t.Helper()
	m := compile(t, e, code)
	var zero Out
	bytes := out * binary.Size(zero)
	a, b := alloc(t, e, max(len(in), 1)), alloc(t, e, bytes)
	reply, err := run(e,
		device.Command{Op: device.OpWrite, Dst: a, Data: in},
		device.Command{Op: device.OpFill, Dst: b, Bytes: uint64(bytes)},
		launch(m, "test", grid, block, 0, new(device.Params).Ptr(a).Ptr(b).I64(int64(n))),
		device.Command{Op: device.OpRead, Src: b, Bytes: uint64(bytes)})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []device.Pointer{a, b} {
		if err := e.Free(0, p); err != nil {
			t.Fatal(err)
		}
	}
	return unpack[Out](reply.Data[0])
}

// params is the parameter of compute's kernels.
func params(in, out string) string {
	return "struct P { const " + in + " *in; " + out + " *out; long long n; };\n"
}

// wantFault checks an error's kind and that its text has all parts.
func wantFault(t *testing.T, err error, kind device.FaultKind, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %v", kind)
	}
	if got := device.KindOf(err); got != kind {
		t.Fatalf("%v: kind %v, want %v", err, got, kind)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}
