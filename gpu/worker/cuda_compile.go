//go:build cuda

package worker

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"

	"gorgonia.org/cu"

	"pgaccel/gpu/device"
	"pgaccel/gpu/worker/nvrtc"
)

// cacheBytes bounds the images on disk: thousands of kernels.
const cacheBytes = 512 << 20

// CUDAOptions says how the CUDA executor works.
type CUDAOptions struct {
	CacheDir string // of compiled kernels; empty: none are kept
	LineInfo bool   // compile with what profilers need to name lines
}

// NewCUDA returns an executor over all NVIDIA devices of this machine that
// CUDA_VISIBLE_DEVICES leaves. Its errors are *device.Fault of kind Unavailable.
func NewCUDA(o CUDAOptions) (device.Executor, error) {
	unavailable := func(err error) (device.Executor, error) {
		f := &device.Fault{Kind: device.FaultUnavailable, Text: err.Error()}
		var call *callError
		if errors.As(err, &call) {
			f.Call, f.Text = call.call, call.name
		}
		return nil, f
	}
	lib, err := nvrtc.Find(cu.Version() / 1000)
	if err != nil {
		return unavailable(err)
	}
	drivers, err := openCUDA(lib.Version())
	if err != nil {
		return unavailable(err)
	}
	images := cache{dir: o.CacheDir}
	go images.prune(cacheBytes)
	c := &cudaCompiler{lib: lib, lineInfo: o.LineInfo, linker: sync.OnceValues(lib.FindLinker), runtime: lib.FindRuntime()}
	ex, err := newExecutor(drivers, c, images)
	if err != nil {
		return unavailable(err)
	}
	return ex, nil
}

// cudaCompiler is NVRTC, and nvJitLink for sources that launch kernels themselves.
type cudaCompiler struct {
	lib      *nvrtc.Library
	lineInfo bool
	linker   func() (*nvrtc.Linker, error)
	runtime  string // libcudadevrt.a, empty where there is none
}

// launches is the define of sources that launch kernels (CUDA's dynamic parallelism).
const launches = "PGACCEL_CDP"

func relocatable(s device.Source) bool {
	for _, d := range s.Defines {
		if d == launches || strings.HasPrefix(d, launches+"=") && d != launches+"=0" {
			return true
		}
	}
	return false
}

func (c *cudaCompiler) version(arch string) string {
	target, _, _ := c.lib.Target(arch)
	return c.lib.Version() + " " + target + " " + strings.Join(c.lib.Options(nil, c.lineInfo, false), " ")
}

func (c *cudaCompiler) compile(arch string, s device.Source) ([]byte, error) {
	fault := func(call, text string) ([]byte, error) {
		return nil, &device.Fault{Kind: device.FaultCompile, Call: call, Text: text}
	}
	target, ptx, err := c.lib.Target(arch)
	if err != nil {
		return fault("nvrtcCompileProgram", err.Error())
	}
	link := relocatable(s)
	if link && c.runtime == "" {
		return fault("nvJitLinkAddFile", "source "+s.Name+" launches kernels, which needs libcudadevrt.a: none was found beside "+c.lib.Path+" or in a CUDA toolkit")
	}
	options := append([]string{target}, c.lib.Options(s.Defines, c.lineInfo, link)...)
	if link {
		options = append(options, "--include-path="+filepath.Join(filepath.Dir(c.runtime), "..", "include"))
	}
	image, err := c.lib.Compile(s.Name+".cu", s.Code, s.Headers, options, ptx)
	var failed *nvrtc.Error
	switch {
	case errors.As(err, &failed) && failed.Log != "":
		return fault(failed.Call, "source "+s.Name+": "+failed.Text+":\n"+failed.Log)
	case errors.As(err, &failed):
		return fault(failed.Call, "source "+s.Name+": "+failed.Text)
	case err != nil:
		return nil, err
	case link:
		return c.link(s.Name, arch, image)
	}
	return image.Data, nil
}

// link joins an image with the device runtime, by nvJitLink: the driver's own linker
// (cuLinkCreate) ends the process of some drivers.
func (c *cudaCompiler) link(name, arch string, image *nvrtc.Image) ([]byte, error) {
	fault := func(call, text string) ([]byte, error) {
		return nil, &device.Fault{Kind: device.FaultCompile, Call: call, Text: "source " + name + ": " + text}
	}
	linker, err := c.linker()
	if err != nil {
		return fault("nvJitLinkCreate", "it launches kernels, which needs a linker: "+err.Error())
	}
	linked, err := linker.Link(name, arch, image, c.runtime)
	var failed *nvrtc.Error
	switch {
	case errors.As(err, &failed) && failed.Log != "":
		return fault(failed.Call, failed.Text+":\n"+failed.Log)
	case errors.As(err, &failed):
		return fault(failed.Call, failed.Text)
	}
	return linked, err
}
