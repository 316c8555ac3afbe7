package program

import "pgaccel/gpu/device"

// Region is a part of device memory that is to have one value: aligned to 16 bytes, as is its
// size.
type Region struct {
	At    device.Pointer
	Bytes uint64
	Value uint32 // of each 4 bytes
}

func (r *Region) fill() device.Command {
	return device.Command{Op: device.OpFill, Dst: r.At, Bytes: r.Bytes, Value: r.Value}
}

// Limits of a launch of the clear kernel: CLEAR_MAX of kernels/transcode.cuh, and its threads.
const clearMax, clearThreads = 64, 256

// Clear appends the commands that clear regions: one launch for many of them, since what a
// small fill costs is that it is one. m is the module of TranscodeSource, sms is
// device.Info.SMs.
func Clear(c []device.Command, m device.Module, regions []Region, sms int) []device.Command {
	for len(regions) > 0 {
		if len(regions) == 1 {
			return append(c, regions[0].fill())
		}
		n := min(len(regions), clearMax)
		most := uint64(0)
		p := new(device.Params).U64(uint64(n))
		for _, r := range regions[:n] {
			most = max(most, r.Bytes)
			p.Ptr(r.At).U64(r.Bytes / 16).U64(uint64(r.Value))
		}
		for range clearMax - n {
			p.U64(0).U64(0).U64(0)
		}
		// A thread has some 16 bytes of the largest region.
		grid := min((most/16+4*clearThreads-1)/(4*clearThreads), uint64(8*sms))
		c = append(c, device.Command{Op: device.OpLaunch, Module: m, Function: "clear",
			Grid: [3]uint32{uint32(max(grid, 1)), uint32(n), 1}, Block: [3]uint32{clearThreads, 1, 1}, Params: p.Bytes()})
		regions = regions[n:]
	}
	return c
}
