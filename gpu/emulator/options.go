package emulator

import (
	"time"

	"pgaccel/gpu/device"
)

// Options says what the emulated devices are like, and what fails. The zero value is a
// small device on which nothing fails.
type Options struct {
	Devices int    // how many; 1 by default
	SMs     int    // multiprocessors; 4 by default
	Memory  int64  // bytes of each device; 1 GiB by default
	Workers int    // OS threads that run blocks; one a processor by default, 4 at most
	Dir     string // where compiled modules are kept; a folder that Close removes by default

	// Limit ends a launch that takes longer, with a fault of kind Lost; 0 is without end.
	Limit time.Duration

	// FailAlloc has an Alloc of so many bytes fail as if memory were full.
	FailAlloc func(bytes int64) bool
	// FailLaunch has a launch of the kernel fail.
	FailLaunch func(kernel string) bool
	// Delay is how long a batch waits before it begins.
	Delay time.Duration
}

func (o *Options) defaults(processors int) {
	if o.Devices <= 0 {
		o.Devices = 1
	}
	if o.SMs <= 0 {
		o.SMs = 4
	}
	if o.Memory <= 0 {
		o.Memory = 1 << 30
	}
	if o.Workers <= 0 {
		o.Workers = min(processors, 4)
	}
}

// What a block can have, as on Hopper.
const (
	sharedPerBlock = 227 << 10
	sharedPerSM    = 228 << 10
)

func fault(kind device.FaultKind, call, text string) *device.Fault {
	return &device.Fault{Kind: kind, Call: call, Text: text}
}
