//go:build cuda

package main

import (
	"pgaccel/gpu/device"
	"pgaccel/gpu/worker"
)

func open(o options) (device.Executor, error) {
	return worker.NewCUDA(worker.CUDAOptions{CacheDir: o.kept(device.CUDA), LineInfo: o.lineInfo})
}
