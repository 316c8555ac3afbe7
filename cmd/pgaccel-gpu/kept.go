//go:build cuda || emu

package main

import (
	"path/filepath"

	"pgaccel/gpu/device"
)

// kept returns the directory for a kind of device's compiled kernels, empty for none.
func (o options) kept(kind device.Kind) string {
	if o.cacheDir == "" {
		return ""
	}
	return filepath.Join(o.cacheDir, string(kind))
}
