//go:build !cuda && !emu

package main

import "pgaccel/gpu/device"

func open(options) (device.Executor, error) {
	return nil, &device.Fault{Kind: device.FaultUnavailable, Text: "this program was built without a device: build it with `make build-cuda` (NVIDIA) or `make gpu-emu` (an emulator)"}
}
