package nvrtc

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

// The part of nvrtc.h that is used here; it is the same since CUDA 11.2.
typedef void *program;
typedef struct {
	int (*version)(int *, int *);
	int (*archs)(int *);
	int (*getArchs)(int *);
	const char *(*errorString)(int);
	int (*create)(program *, const char *, const char *, int, const char *const *, const char *const *);
	int (*destroy)(program *);
	int (*compile)(program, int, const char *const *);
	int (*logSize)(program, size_t *);
	int (*log)(program, char *);
	int (*cubinSize)(program, size_t *);
	int (*cubin)(program, char *);
	int (*ptxSize)(program, size_t *);
	int (*ptx)(program, char *);
} library;

static const char *open_library(const char *path, library *l, void **handle) {
	void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!h)
		return dlerror();
#define find(member, name) \
	if (!(*(void **)&l->member = dlsym(h, name))) { \
		dlclose(h); \
		return "it has no " name; \
	}
	find(version, "nvrtcVersion")
	find(archs, "nvrtcGetNumSupportedArchs")
	find(getArchs, "nvrtcGetSupportedArchs")
	find(errorString, "nvrtcGetErrorString")
	find(create, "nvrtcCreateProgram")
	find(destroy, "nvrtcDestroyProgram")
	find(compile, "nvrtcCompileProgram")
	find(logSize, "nvrtcGetProgramLogSize")
	find(log, "nvrtcGetProgramLog")
	find(cubinSize, "nvrtcGetCUBINSize")
	find(cubin, "nvrtcGetCUBIN")
	find(ptxSize, "nvrtcGetPTXSize")
	find(ptx, "nvrtcGetPTX")
#undef find
	*handle = h;
	return NULL;
}

static void keep_library(const char *path) { dlopen(path, RTLD_NOW | RTLD_GLOBAL); }
static void close_library(void *h) { dlclose(h); }
static int call_version(library *l, int *a, int *b) { return l->version(a, b); }
static int call_archs(library *l, int *n) { return l->archs(n); }
static int call_get_archs(library *l, int *a) { return l->getArchs(a); }
static const char *call_error(library *l, int r) { return l->errorString(r); }
static int call_create(library *l, program *p, char *src, char *name, int n, char **headers, char **names) {
	return l->create(p, src, name, n, (const char *const *)headers, (const char *const *)names);
}
static int call_destroy(library *l, program *p) { return l->destroy(p); }
static int call_compile(library *l, program p, int n, char **options) { return l->compile(p, n, (const char *const *)options); }
static int call_log_size(library *l, program p, size_t *n) { return l->logSize(p, n); }
static int call_log(library *l, program p, char *b) { return l->log(p, b); }
static int call_cubin_size(library *l, program p, size_t *n) { return l->cubinSize(p, n); }
static int call_cubin(library *l, program p, char *b) { return l->cubin(p, b); }
static int call_ptx_size(library *l, program p, size_t *n) { return l->ptxSize(p, n); }
static int call_ptx(library *l, program p, char *b) { return l->ptx(p, b); }
*/
import "C"

import (
	"fmt"
	"path/filepath"
	"strings"
	"unsafe"
)

// Library is an NVRTC that was opened. Its methods may be called from many goroutines.
type Library struct {
	Path         string
	Major, Minor int   // of CUDA
	Archs        []int // architectures that it compiles for: 90 is sm_90

	l *C.library
}

// open opens the library at a path, or of a file name that the dynamic linker knows.
func open(path string) (*Library, error) {
	cpath := C.CString(path)
	defer C.free(unsafe.Pointer(cpath))
	l := (*C.library)(C.calloc(1, C.sizeof_library))
	var handle unsafe.Pointer
	if e := C.open_library(cpath, l, &handle); e != nil {
		C.free(unsafe.Pointer(l))
		return nil, fmt.Errorf("%s: %s", path, strings.TrimPrefix(C.GoString(e), path+": "))
	}
	lib := &Library{Path: path, l: l}
	fail := func(call string, r C.int) (*Library, error) {
		err := lib.failed(call, r)
		C.close_library(handle)
		C.free(unsafe.Pointer(l))
		return nil, err
	}
	var major, minor, n C.int
	if r := C.call_version(l, &major, &minor); r != 0 {
		return fail("nvrtcVersion", r)
	}
	lib.Major, lib.Minor = int(major), int(minor)
	if r := C.call_archs(l, &n); r != 0 {
		return fail("nvrtcGetNumSupportedArchs", r)
	}
	archs := make([]C.int, max(n, 1))
	if r := C.call_get_archs(l, &archs[0]); r != 0 {
		return fail("nvrtcGetSupportedArchs", r)
	}
	for _, a := range archs[:n] {
		lib.Archs = append(lib.Archs, int(a))
	}
	lib.openBuiltins()
	return lib, nil
}

// openBuiltins opens the library that NVRTC opens by name when it first compiles, and that
// the dynamic linker does not find where only a path led to NVRTC.
func (l *Library) openBuiltins() {
	if !filepath.IsAbs(l.Path) {
		return
	}
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(l.Path), fmt.Sprintf("libnvrtc-builtins.so.%d.%d", l.Major, l.Minor)))
	for _, path := range found {
		cpath := C.CString(path)
		C.keep_library(cpath) // NVRTC says what is wrong where this fails
		C.free(unsafe.Pointer(cpath))
	}
}

// failed returns a call's error.
func (l *Library) failed(call string, r C.int) error {
	return &Error{Call: call, Text: C.GoString(C.call_error(l.l, r))}
}

// Error is a call that failed.
type Error struct {
	Call string // "nvrtcCompileProgram"
	Text string // NVRTC's name of the error
	Log  string // what the compiler said, of nvrtcCompileProgram
}

// Error implements error.
func (e *Error) Error() string {
	if e.Log != "" {
		return fmt.Sprintf("%s: %s:\n%s", e.Call, e.Text, e.Log)
	}
	return fmt.Sprintf("%s: %s", e.Call, e.Text)
}

// Version names the library: "nvrtc 12.4".
func (l *Library) Version() string { return fmt.Sprintf("nvrtc %d.%d", l.Major, l.Minor) }

// Image is what came out of a compilation.
type Image struct {
	Data []byte
	PTX  bool   // not yet for one architecture: the driver compiles it
	Log  string // warnings
}

// Compile compiles a source with options as NVRTC has them. headers are what it may
// include, by name. ptx asks for PTX rather than code, as an architecture compute_XY needs.
func (l *Library) Compile(name, code string, headers map[string]string, options []string, ptx bool) (*Image, error) {
	var a arena
	defer a.free()
	names, sources := make([]string, 0, len(headers)), make([]string, 0, len(headers))
	for n, s := range headers {
		names, sources = append(names, n), append(sources, s)
	}
	var p C.program
	r := C.call_create(l.l, &p, a.string(code), a.string(name), C.int(len(headers)), a.strings(sources), a.strings(names))
	if r != 0 {
		return nil, l.failed("nvrtcCreateProgram", r)
	}
	defer C.call_destroy(l.l, &p)
	r = C.call_compile(l.l, p, C.int(len(options)), a.strings(options))
	log := l.log(p)
	if r != 0 {
		err := l.failed("nvrtcCompileProgram", r).(*Error)
		err.Log = log
		return nil, err
	}
	image := &Image{PTX: ptx, Log: log}
	var size C.size_t
	if ptx {
		if r := C.call_ptx_size(l.l, p, &size); r != 0 {
			return nil, l.failed("nvrtcGetPTXSize", r)
		}
	} else if r := C.call_cubin_size(l.l, p, &size); r != 0 {
		return nil, l.failed("nvrtcGetCUBINSize", r)
	}
	if size == 0 {
		return nil, &Error{Call: "nvrtcGetCUBINSize", Text: "there is no code"}
	}
	image.Data = make([]byte, size)
	b := (*C.char)(unsafe.Pointer(&image.Data[0]))
	if ptx {
		if r := C.call_ptx(l.l, p, b); r != 0 {
			return nil, l.failed("nvrtcGetPTX", r)
		}
	} else if r := C.call_cubin(l.l, p, b); r != 0 {
		return nil, l.failed("nvrtcGetCUBIN", r)
	}
	return image, nil
}

func (l *Library) log(p C.program) string {
	var size C.size_t
	if C.call_log_size(l.l, p, &size) != 0 || size <= 1 {
		return ""
	}
	b := make([]byte, size)
	if C.call_log(l.l, p, (*C.char)(unsafe.Pointer(&b[0]))) != 0 {
		return ""
	}
	return strings.TrimRight(string(b), "\x00\n")
}

// arena is C memory that is freed together.
type arena struct{ all []unsafe.Pointer }

func (a *arena) string(s string) *C.char {
	c := C.CString(s)
	a.all = append(a.all, unsafe.Pointer(c))
	return c
}

// strings returns an array of C strings, nil for none.
func (a *arena) strings(s []string) **C.char {
	if len(s) == 0 {
		return nil
	}
	array := C.calloc(C.size_t(len(s)), C.size_t(unsafe.Sizeof((*C.char)(nil))))
	a.all = append(a.all, array)
	out := unsafe.Slice((**C.char)(array), len(s))
	for i := range s {
		out[i] = a.string(s[i])
	}
	return (**C.char)(array)
}

func (a *arena) free() {
	for _, p := range a.all {
		C.free(p)
	}
}
