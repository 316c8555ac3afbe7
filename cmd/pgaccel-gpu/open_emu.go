//go:build emu && !cuda

package main

import (
	"pgaccel/gpu/device"
	"pgaccel/gpu/emulator"
)

func open(o options) (device.Executor, error) {
	return emulator.New(emulator.Options{Devices: o.emuDevices, SMs: o.emuSMs, Memory: o.emuMemory, Dir: o.cacheDir})
}
