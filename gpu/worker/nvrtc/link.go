package nvrtc

/*
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// The part of nvJitLink.h that is used here; it is the same since CUDA 12.0.
typedef void *jit;
typedef struct {
	int (*create)(jit *, uint32_t, const char **);
	int (*destroy)(jit *);
	int (*addData)(jit, int, const void *, size_t, const char *);
	int (*addFile)(jit, int, const char *);
	int (*complete)(jit);
	int (*cubinSize)(jit, size_t *);
	int (*cubin)(jit, void *);
	int (*logSize)(jit, size_t *);
	int (*log)(jit, char *);
} linker;

// The header gives the functions names with the version of CUDA that it is of, and those of
// 12.0 stay in every library of 12; the plain names came later.
static void *find_versioned(void *h, const char *name) {
	char versioned[64];
	void *f = dlsym(h, name);
	for (int major = 12; !f && major <= 13; major++)
		for (int minor = 0; !f && minor <= 9; minor++) {
			snprintf(versioned, sizeof versioned, "__%s_%d_%d", name, major, minor);
			f = dlsym(h, versioned);
		}
	return f;
}

static const char *open_linker(const char *path, linker *l) {
	void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!h)
		return dlerror();
#define find(member, name) \
	if (!(*(void **)&l->member = find_versioned(h, name))) { \
		dlclose(h); \
		return "it has no " name; \
	}
	find(create, "nvJitLinkCreate")
	find(destroy, "nvJitLinkDestroy")
	find(addData, "nvJitLinkAddData")
	find(addFile, "nvJitLinkAddFile")
	find(complete, "nvJitLinkComplete")
	find(cubinSize, "nvJitLinkGetLinkedCubinSize")
	find(cubin, "nvJitLinkGetLinkedCubin")
	find(logSize, "nvJitLinkGetErrorLogSize")
	find(log, "nvJitLinkGetErrorLog")
#undef find
	return NULL;
}

static int jit_create(linker *l, jit *j, uint32_t n, char **options) { return l->create(j, n, (const char **)options); }
static int jit_destroy(linker *l, jit *j) { return l->destroy(j); }
static int jit_data(linker *l, jit j, int kind, void *data, size_t n, char *name) { return l->addData(j, kind, data, n, name); }
static int jit_file(linker *l, jit j, int kind, char *path) { return l->addFile(j, kind, path); }
static int jit_complete(linker *l, jit j) { return l->complete(j); }
static int jit_size(linker *l, jit j, size_t *n) { return l->cubinSize(j, n); }
static int jit_cubin(linker *l, jit j, void *b) { return l->cubin(j, b); }
static int jit_log_size(linker *l, jit j, size_t *n) { return l->logSize(j, n); }
static int jit_log(linker *l, jit j, char *b) { return l->log(j, b); }
*/
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"
)

// linkerVariable is the environment variable that names the nvJitLink to use.
const linkerVariable = "PGACCEL_NVJITLINK"

// Linker is an nvJitLink that was opened: it joins what was compiled with
// --relocatable-device-code with libraries. Like NVRTC it needs neither a device nor a driver.
// Its methods may be called from many goroutines.
type Linker struct {
	Path string
	l    *C.linker
}

// openLinker opens the library at a path, or of a file name that the dynamic linker knows.
func openLinker(path string) (*Linker, error) {
	cpath := C.CString(path)
	defer C.free(unsafe.Pointer(cpath))
	l := (*C.linker)(C.calloc(1, C.sizeof_linker))
	if e := C.open_linker(cpath, l); e != nil {
		C.free(unsafe.Pointer(l))
		return nil, fmt.Errorf("%s: %s", path, strings.TrimPrefix(C.GoString(e), path+": "))
	}
	return &Linker{Path: path, l: l}, nil
}

// FindLinker opens the nvJitLink of this library's CUDA: it links what the library compiles, and
// one that is older may not. It looks where Find does, beside the library first.
func (l *Library) FindLinker() (*Linker, error) {
	if path := os.Getenv(linkerVariable); path != "" {
		k, err := openLinker(path)
		if err != nil {
			return nil, fmt.Errorf("%s=%s: %w", linkerVariable, path, err)
		}
		return k, nil
	}
	var names []string // nvJitLink began with CUDA 12
	for major := max(l.Major, 12); major <= max(l.Major, 13); major++ {
		names = append(names, fmt.Sprintf("libnvJitLink.so.%d", major))
	}
	var candidates []string
	for i, place := range l.places() {
		for _, name := range names {
			found, _ := filepath.Glob(filepath.Join(place, name))
			candidates = append(candidates, found...)
		}
		if i == 0 { // then what the dynamic linker knows
			candidates = append(candidates, names...)
		}
	}
	var why []string
	for _, path := range candidates {
		k, err := openLinker(path)
		if err == nil {
			return k, nil
		}
		if !strings.HasSuffix(err.Error(), "No such file or directory") {
			why = append(why, err.Error())
		}
	}
	if len(why) > 0 {
		return nil, fmt.Errorf("no nvJitLink: %s", strings.Join(why, "; "))
	}
	return nil, fmt.Errorf("no nvJitLink: %s not found beside %s or in a CUDA toolkit; %s names one", strings.Join(names, ", "), l.Path, linkerVariable)
}

// FindRuntime returns the path of libcudadevrt.a: of the toolkit that the library is of, where
// that can be told, else of any. It is empty where there is none.
func (l *Library) FindRuntime() string {
	for _, place := range l.places() {
		if found, _ := filepath.Glob(filepath.Join(place, "libcudadevrt.a")); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

// places are where what belongs to a library may be: the library's own first.
func (l *Library) places() []string {
	var places []string
	if filepath.IsAbs(l.Path) {
		places = append(places, filepath.Dir(l.Path))
	}
	if home := os.Getenv("CUDA_HOME"); home != "" {
		places = append(places, filepath.Join(home, "lib64"))
	}
	return append(places, dirs...)
}

// Inputs of nvJitLink.
const (
	inputCubin   = 1
	inputPTX     = 2
	inputLibrary = 6
)

// linkResults are nvJitLink's results.
var linkResults = []string{"NVJITLINK_SUCCESS", "NVJITLINK_ERROR_UNRECOGNIZED_OPTION", "NVJITLINK_ERROR_MISSING_ARCH",
	"NVJITLINK_ERROR_INVALID_INPUT", "NVJITLINK_ERROR_PTX_COMPILE", "NVJITLINK_ERROR_NVVM_COMPILE", "NVJITLINK_ERROR_INTERNAL"}

// Link joins an image with a library (libcudadevrt.a) for an architecture ("sm_90"). Its
// errors are *Error.
func (k *Linker) Link(name, arch string, image *Image, library string) ([]byte, error) {
	var a arena
	defer a.free()
	options := []string{"-arch=" + arch}
	var j C.jit
	var made bool
	failed := func(call string, r C.int) error {
		e := &Error{Call: call, Text: fmt.Sprintf("nvJitLinkResult %d", int(r))}
		if r > 0 && int(r) < len(linkResults) {
			e.Text = linkResults[r]
		}
		var size C.size_t
		if made && C.jit_log_size(k.l, j, &size) == 0 && size > 1 {
			b := make([]byte, size)
			if C.jit_log(k.l, j, (*C.char)(unsafe.Pointer(&b[0]))) == 0 {
				e.Log = strings.TrimRight(string(b), "\x00\n ")
			}
		}
		return e
	}
	if r := C.jit_create(k.l, &j, C.uint32_t(len(options)), a.strings(options)); r != 0 {
		return nil, failed("nvJitLinkCreate", r)
	}
	made = true
	defer C.jit_destroy(k.l, &j)
	kind := C.int(inputCubin)
	if image.PTX {
		kind = inputPTX
	}
	data := slices.Concat(image.Data, []byte{0}) // PTX is text that ends with a zero byte
	size := len(image.Data)
	if image.PTX && image.Data[size-1] != 0 {
		size++
	}
	if r := C.jit_data(k.l, j, kind, unsafe.Pointer(&data[0]), C.size_t(size), a.string(name)); r != 0 {
		return nil, failed("nvJitLinkAddData", r)
	}
	if r := C.jit_file(k.l, j, inputLibrary, a.string(library)); r != 0 {
		return nil, failed("nvJitLinkAddFile", r)
	}
	if r := C.jit_complete(k.l, j); r != 0 {
		return nil, failed("nvJitLinkComplete", r)
	}
	var bytes C.size_t
	if r := C.jit_size(k.l, j, &bytes); r != 0 {
		return nil, failed("nvJitLinkGetLinkedCubinSize", r)
	}
	if bytes == 0 {
		return nil, &Error{Call: "nvJitLinkGetLinkedCubinSize", Text: "there is no code"}
	}
	linked := make([]byte, bytes)
	if r := C.jit_cubin(k.l, j, unsafe.Pointer(&linked[0])); r != 0 {
		return nil, failed("nvJitLinkGetLinkedCubin", r)
	}
	return linked, nil
}
