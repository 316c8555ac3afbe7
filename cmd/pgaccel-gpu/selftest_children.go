package main

import (
	"context"
	"encoding/binary"
	"fmt"

	"pgaccel/gpu/device"
	"pgaccel/kernels"
)

// children is a kernel that launches kernels, each of which adds to one number.
const children = `
#include "pgaccel.cuh"

struct Add {
	unsigned long long *sum;
};

PGACCEL_KERNEL(selftest_child, Add, p, 32, 1) { atomicAdd(p.sum, 1ull); }

#ifdef PGACCEL_LAUNCH
PGACCEL_KERNEL(selftest_parent, Add, p, 32, 1) { PGACCEL_LAUNCH(selftest_child, 3, 32, 0, p); }
#endif
`

// launches tests what links sources that launch kernels. Where that cannot be done here, only
// such sources are without it.
func (t *tester) launches(ctx context.Context, result device.Pointer) error {
	if t.info.Kind != device.CUDA {
		return nil
	}
	m, err := t.c.Compile(ctx, t.dev, device.Source{Name: "children", Code: children, Headers: kernels.Headers(), Defines: []string{"PGACCEL_CDP=1"}})
	if device.KindOf(err) == device.FaultCompile {
		t.say("kernels cannot launch kernels: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	var p device.Params
	r, err := t.c.Run(ctx, t.dev, &device.Batch{Commands: []device.Command{
		{Op: device.OpFill, Dst: result, Bytes: 256},
		{Op: device.OpLaunch, Module: m, Function: "selftest_parent", Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: p.Ptr(result).Bytes()},
		{Op: device.OpRead, Src: result, Bytes: 8},
	}})
	if device.KindOf(err) == device.FaultLaunch { // a compiler of before CUDA 12 leaves the parent out
		t.say("kernels cannot launch kernels: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	const want = 2 * 32 * 3 * 32 // each thread of the parent launches
	if got := binary.LittleEndian.Uint64(r.Data[0]); got != want {
		return fmt.Errorf("kernels that were launched by kernels added %d, not %d", got, want)
	}
	t.say("kernels launched kernels")
	return nil
}
