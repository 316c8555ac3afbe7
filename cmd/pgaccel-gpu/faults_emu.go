//go:build emu && !cuda

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"

	"pgaccel/gpu/device"
	"pgaccel/kernels"
)

// faulty is an emulator on which calls fail at random, for tests of what goes on without
// the device. PGACCEL_EMU_FAULTS says how often: "alloc=0.1,launch=0.05,wild=0.01,exit=0.01,seed=7".
//
//	alloc   of the Allocs say that memory is full
//	launch  of the batches end with a launch that fails
//	wild    of the batches end with a kernel that writes where it must not
//	exit    of the batches end with the process
type faulty struct {
	device.Executor
	alloc, launch, wild, exit float64

	mu   sync.Mutex
	rand *rand.Rand
}

// withFaults returns ex with the faults that the text asks for; ex itself for none.
func withFaults(ex device.Executor, text string) (device.Executor, error) {
	if text == "" {
		return ex, nil
	}
	f := &faulty{Executor: ex}
	seed := uint64(1)
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		share, err := strconv.ParseFloat(value, 64)
		if err != nil || share < 0 {
			return nil, fmt.Errorf("PGACCEL_EMU_FAULTS: %q is no share", part)
		}
		switch name {
		case "alloc":
			f.alloc = share
		case "launch":
			f.launch = share
		case "wild":
			f.wild = share
		case "exit":
			f.exit = share
		case "seed":
			seed = uint64(share)
		default:
			return nil, fmt.Errorf("PGACCEL_EMU_FAULTS: no fault %q", name)
		}
	}
	f.rand = rand.New(rand.NewPCG(seed, uint64(os.Getpid()))) // another sequence after a restart
	return f, nil
}

func (f *faulty) happens(share float64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rand.Float64() < share
}

// Alloc implements device.Executor.
func (f *faulty) Alloc(dev int, bytes int64) (device.Pointer, error) {
	if f.happens(f.alloc) {
		return 0, &device.Fault{Kind: device.FaultMemory, Call: "alloc", Text: fmt.Sprintf("%d bytes: a failure that was asked for", bytes)}
	}
	return f.Executor.Alloc(dev, bytes)
}

// Run implements device.Executor.
func (f *faulty) Run(ctx context.Context, dev int, b *device.Batch) (*device.Reply, error) {
	if f.happens(f.exit) {
		go func() {
			// In the midst of the batch, and of others.
			fmt.Fprintln(os.Stderr, "pgaccel-gpu-emu: the end that was asked for")
			os.Exit(3)
		}()
	}
	reply, err := f.Executor.Run(ctx, dev, b)
	switch {
	case err != nil:
	case f.happens(f.launch):
		return nil, &device.Fault{Kind: device.FaultLaunch, Call: "launch", Text: "a failure that was asked for"}
	case f.happens(f.wild):
		return nil, f.runWild(ctx, dev)
	}
	return reply, err
}

// runWild runs a kernel that writes right behind an allocation, where nothing is mapped: farther
// away there may be memory of something else.
func (f *faulty) runWild(ctx context.Context, dev int) error {
	at, err := f.Executor.Alloc(dev, 256)
	if err != nil {
		return err
	}
	m, err := f.Executor.Compile(ctx, dev, device.Source{Name: "wild", Headers: kernels.Headers(), Code: `#include "pgaccel.cuh"

struct WildParams { uint64_t at; };

PGACCEL_KERNEL(wild, WildParams, p, 32, 1)
{
	((uint32_t*)p.at)[64] = 1;
}
`})
	if err != nil {
		return err
	}
	_, err = f.Executor.Run(ctx, dev, &device.Batch{Commands: []device.Command{{Op: device.OpLaunch, Module: m, Function: "wild",
		Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: new(device.Params).Ptr(at).Bytes()}}})
	if err == nil {
		err = &device.Fault{Kind: device.FaultOther, Call: "kernel wild", Text: "it wrote beside an allocation, and nobody saw it"}
	}
	return err
}
