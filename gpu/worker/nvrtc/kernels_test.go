//go:build cuda

package nvrtc

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"pgaccel/papers/kernels"
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
	target, ptx, err := l.Target("sm_90")
	if err != nil {
		t.Fatal(err)
	}
	headers := kernels.Headers()
	var mu sync.Mutex
	var slowest time.Duration
	var group errgroup.Group
	group.SetLimit(runtime.NumCPU())
	for _, path := range files {
		group.Go(func() error {
			code, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			options := append(l.Options(nil, false, strings.Contains(string(code), "#define PGACCEL_CDP")), target)
			begin := time.Now()
			image, err := l.Compile(filepath.Base(path), string(code), headers, options, ptx)
			mu.Lock()
			defer mu.Unlock()
			slowest = max(slowest, time.Since(begin))
			if err != nil {
				t.Errorf("%s: %v", filepath.Base(path), err)
			} else if image.Log != "" {
				t.Logf("%s: %s", filepath.Base(path), image.Log)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	t.Logf("%d sources with %s, the slowest in %v", len(files), l.Version(), slowest)
}
