//go:build cuda

package nvrtc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgaccel/kernels"
)

// TestCUDAKernels compiles the sources in the folder PGACCEL_CUDA_SOURCES, which are
// those that tests had the emulator compile: scripts/check-cuda.sh --kernels.
func TestCUDAKernels(t *testing.T) {
	dir := os.Getenv("PGACCEL_CUDA_SOURCES")
	if dir == "" {
		t.Skip("no sources were asked for")
	}
	l, err := Find(0)
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.cu"))
	if len(files) == 0 {
		t.Fatalf("%s has no sources", dir)
	}
	headers := kernels.Headers()
	var slowest time.Duration
	for _, path := range files {
		code, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, arch := range []string{"sm_80", "sm_90"} {
			target, ptx, err := l.Target(arch)
			if err != nil {
				t.Fatal(err)
			}
			var options []string
			options = append(options, target)
			options = append(options, l.Options(nil, false, strings.Contains(string(code), "#define PGACCEL_CDP"))...)
			begin := time.Now()
			image, err := l.Compile(filepath.Base(path), string(code), headers, options, ptx)
			slowest = max(slowest, time.Since(begin))
			if err != nil {
				t.Errorf("%s for %s: %v", filepath.Base(path), arch, err)
			} else if image.Log != "" {
				t.Logf("%s for %s: %s", filepath.Base(path), arch, image.Log)
			}
		}
	}
	t.Logf("%d sources with %s, the slowest in %v", len(files), l.Version(), slowest)
}
