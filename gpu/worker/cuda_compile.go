//go:build cuda

package worker

/*
#include <cuda.h>
#include <stdlib.h>

static CUresult pgaccel_link_create(CUlinkState *state, char *log, unsigned bytes) {
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)(size_t)bytes};
	return cuLinkCreate(2, options, values, state);
}
*/
import "C"

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

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
	c := &cudaCompiler{lib: lib, lineInfo: o.LineInfo, driver: drivers[0].(*cudaDriver), runtime: findRuntime(lib)}
	ex, err := newExecutor(drivers, c, images)
	if err != nil {
		return unavailable(err)
	}
	return ex, nil
}

// cudaCompiler is NVRTC, and the driver's linker for sources that launch kernels themselves.
type cudaCompiler struct {
	lib      *nvrtc.Library
	lineInfo bool
	driver   *cudaDriver // whose context the linker has
	runtime  string      // libcudadevrt.a, empty where there is none
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
		return fault("cuLinkAddFile", "source "+s.Name+" launches kernels, which needs libcudadevrt.a: none was found beside "+c.lib.Path+" or in a CUDA toolkit")
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
		return c.link(s.Name, image)
	}
	return image.Data, nil
}

// link joins an image with the device runtime.
func (c *cudaCompiler) link(name string, image *nvrtc.Image) (linked []byte, err error) {
	err = c.driver.do(func() error {
		const logBytes = 16 << 10
		log := (*C.char)(C.calloc(1, logBytes))
		defer C.free(unsafe.Pointer(log))
		fail := func(call string, r C.CUresult) error {
			if r == C.CUDA_SUCCESS {
				return nil
			}
			err := result(call, r).(*callError)
			return &device.Fault{Kind: device.FaultCompile, Call: call, Text: "source " + name + ": " + err.name + ": " + C.GoString(log)}
		}
		var state C.CUlinkState
		if err := fail("cuLinkCreate", C.pgaccel_link_create(&state, log, logBytes)); err != nil {
			return err
		}
		defer C.cuLinkDestroy(state)
		kind := C.CUjitInputType(C.CU_JIT_INPUT_CUBIN)
		if image.PTX {
			kind = C.CU_JIT_INPUT_PTX
		}
		data := C.CBytes(image.Data)
		defer C.free(data)
		cname := C.CString(name)
		defer C.free(unsafe.Pointer(cname))
		if err := fail("cuLinkAddData", C.cuLinkAddData(state, kind, data, C.size_t(len(image.Data)), cname, 0, nil, nil)); err != nil {
			return err
		}
		path := C.CString(c.runtime)
		defer C.free(unsafe.Pointer(path))
		if err := fail("cuLinkAddFile", C.cuLinkAddFile(state, C.CU_JIT_INPUT_LIBRARY, path, 0, nil, nil)); err != nil {
			return err
		}
		var out unsafe.Pointer
		var bytes C.size_t
		if err := fail("cuLinkComplete", C.cuLinkComplete(state, &out, &bytes)); err != nil {
			return err
		}
		linked = C.GoBytes(out, C.int(bytes)) // out is the state's
		return nil
	})
	return linked, err
}

// findRuntime returns the path of libcudadevrt.a: of the toolkit that NVRTC is of, where
// that can be told, else of any.
func findRuntime(lib *nvrtc.Library) string {
	const name = "libcudadevrt.a"
	var places []string
	if filepath.IsAbs(lib.Path) {
		places = append(places, filepath.Dir(lib.Path))
	}
	if home := os.Getenv("CUDA_HOME"); home != "" {
		places = append(places, filepath.Join(home, "lib64"))
	}
	places = append(places, "/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64", "/usr/local/cuda*/targets/*/lib", "/opt/cuda/lib64",
		"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")
	for _, place := range places {
		if found, _ := filepath.Glob(filepath.Join(place, name)); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}
