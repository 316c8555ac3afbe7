//go:build !linux || !cgo

package emulator

import (
	"context"
	"os"

	"pgaccel/gpu/device"
)

// Emulator is a device.Executor.
type Emulator struct{}

// New fails: kernels are loaded by C.
func New(Options) (*Emulator, error) {
	return nil, fault(device.FaultUnavailable, "emulator", "this program was built without cgo, or not for Linux")
}

func (e *Emulator) none() error { return fault(device.FaultUnavailable, "emulator", "not opened") }

// Devices implements device.Executor.
func (e *Emulator) Devices() []device.Info { return nil }

// Share implements device.Executor.
func (e *Emulator) Share(*os.File) (device.File, error) { return 0, e.none() }

// Alloc implements device.Executor.
func (e *Emulator) Alloc(int, int64) (device.Pointer, error) { return 0, e.none() }

// Free implements device.Executor.
func (e *Emulator) Free(int, device.Pointer) error { return e.none() }

// Compile implements device.Executor.
func (e *Emulator) Compile(context.Context, int, device.Source) (device.Module, error) {
	return 0, e.none()
}

// Run implements device.Executor.
func (e *Emulator) Run(context.Context, int, *device.Batch) (*device.Reply, error) {
	return nil, e.none()
}

// Close implements device.Executor.
func (e *Emulator) Close() error { return nil }
