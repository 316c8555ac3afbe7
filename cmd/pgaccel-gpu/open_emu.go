//go:build emu && !cuda

package main

import (
	"os"

	"pgaccel/gpu/device"
	"pgaccel/gpu/emulator"
)

func open(o options) (device.Executor, error) {
	ex, err := emulator.New(emulator.Options{Devices: o.emuDevices, SMs: o.emuSMs, Memory: o.emuMemory, Dir: o.kept(device.Emulator)})
	if err != nil {
		return nil, err
	}
	return withFaults(ex, os.Getenv("PGACCEL_EMU_FAULTS"))
}
