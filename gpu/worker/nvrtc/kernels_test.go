//go:build cuda

package nvrtc

import (
	"testing"

	"pgaccel/kernels"
)

// TestCUDAKernels compiles each building block by itself for some architectures: with
// NVRTC a header is right only when it is right alone.
func TestCUDAKernels(t *testing.T) {
	l, err := Find(0)
	if err != nil {
		t.Fatal(err)
	}
	headers := kernels.Headers()
	for name := range headers {
		for _, arch := range []string{"sm_80", "sm_90"} {
			target, ptx, err := l.Target(arch)
			if err != nil {
				t.Fatal(err)
			}
			code := "#include \"" + name + "\"\nextern \"C\" __global__ void nothing() {}\n"
			image, err := l.Compile("check.cu", code, headers, append(l.Options(nil, false, false), target), ptx)
			if err != nil {
				t.Errorf("%s for %s: %v", name, arch, err)
			} else if image.Log != "" {
				t.Logf("%s for %s: %s", name, arch, image.Log)
			}
		}
	}
}
