// A libcuda.so.1 without a device, for tests of the code that calls it: device memory is
// the host's, streams do at once what they are told, and a kernel does nothing but note that
// it was launched. Streams, events and functions belong to the context that they were made in. PGACCEL_FAKE_CUDA makes calls fail: "cuInit=100", "cuStreamQuery=700".
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static CUresult outcome(const char *call) {
	const char *e = getenv("PGACCEL_FAKE_CUDA");
	size_t n = strlen(call);
	for (; e && *e; e = strchr(e, ',') ? strchr(e, ',') + 1 : NULL)
		if (strncmp(e, call, n) == 0 && e[n] == '=')
			return (CUresult)atoi(e + n + 1);
	return CUDA_SUCCESS;
}
#define BEGIN \
	CUresult failed = outcome(__func__); \
	if (failed) \
		return failed;

static __thread CUcontext current;
#define CONTEXT \
	if (!current) \
		return CUDA_ERROR_INVALID_CONTEXT;

CUresult cuInit(unsigned flags) { BEGIN return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int *v) { BEGIN *v = 12040; return CUDA_SUCCESS; }
CUresult cuGetErrorName(CUresult r, const char **name) {
	switch (r) {
	case CUDA_ERROR_INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; break;
	case CUDA_ERROR_OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
	case CUDA_ERROR_NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; break;
	case CUDA_ERROR_INVALID_IMAGE: *name = "CUDA_ERROR_INVALID_IMAGE"; break;
	case CUDA_ERROR_INVALID_CONTEXT: *name = "CUDA_ERROR_INVALID_CONTEXT"; break;
	case CUDA_ERROR_NOT_FOUND: *name = "CUDA_ERROR_NOT_FOUND"; break;
	case CUDA_ERROR_INVALID_HANDLE: *name = "CUDA_ERROR_INVALID_HANDLE"; break;
	case CUDA_ERROR_ILLEGAL_ADDRESS: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int *n) { BEGIN *n = 2; return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice *d, int i) { BEGIN *d = i; return CUDA_SUCCESS; }
CUresult cuDeviceGetName(char *b, int n, CUdevice d) { BEGIN snprintf(b, n, "fake %d", d); return CUDA_SUCCESS; }
CUresult cuDeviceGetPCIBusId(char *b, int n, CUdevice d) { BEGIN snprintf(b, n, "0000:%02x:00.0", d); return CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d) {
	BEGIN
	switch (a) {
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *v = 9; break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *v = 0; break;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *v = 132; break;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *v = 232448; break;
	default: *v = 1024;
	}
	return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice d, unsigned flags) { BEGIN return CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) { BEGIN *c = (CUcontext)(size_t)(d + 1); return CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext c) { BEGIN current = c; return CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext *c) { BEGIN *c = current; return CUDA_SUCCESS; }

// What a handle points to.
struct owned {
	CUcontext of;
	struct timespec at; // of an event
};
static void *owned(void) {
	struct owned *o = calloc(1, sizeof *o);
	o->of = current;
	return o;
}
#define SAME(a, b) \
	if (((struct owned *)(a))->of != ((struct owned *)(b))->of) \
		return CUDA_ERROR_INVALID_HANDLE;
CUresult cuCtxSetLimit(CUlimit l, size_t v) { BEGIN CONTEXT return CUDA_SUCCESS; }
CUresult cuMemGetInfo(size_t *free, size_t *total) { BEGIN CONTEXT *free = 1u << 30, *total = 1u << 31; return CUDA_SUCCESS; }
CUresult cuMemAlloc(CUdeviceptr *p, size_t n) {
	BEGIN CONTEXT
	if (n > (size_t)1 << 31)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*p = (CUdeviceptr)aligned_alloc(256, (n + 255) & ~(size_t)255);
	return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr p) { BEGIN CONTEXT free((void *)p); return CUDA_SUCCESS; }
CUresult cuMemHostAlloc(void **p, size_t n, unsigned flags) { BEGIN CONTEXT *p = aligned_alloc(4096, n); return CUDA_SUCCESS; }
CUresult cuMemHostRegister(void *p, size_t n, unsigned flags) {
	BEGIN CONTEXT
	if ((size_t)p % 4096 || n % 4096 || !n)
		return CUDA_ERROR_INVALID_VALUE;
	volatile char sum = 0; // pages that are not there end this process here
	for (size_t i = 0; i < n; i += 4096)
		sum += ((char *)p)[i];
	return CUDA_SUCCESS;
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr *d, void *p, unsigned flags) { BEGIN CONTEXT *d = (CUdeviceptr)p; return CUDA_SUCCESS; }
CUresult cuModuleLoadData(CUmodule *m, const void *image) {
	BEGIN CONTEXT
	if (memcmp(image, "\177ELF", 4))
		return CUDA_ERROR_INVALID_IMAGE;
	*m = owned();
	return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule m) { BEGIN CONTEXT free(m); return CUDA_SUCCESS; }
// The kernel of gather.cu, which is done without a device: {from, to, bytes} of each unit.
#define GATHER ((CUfunction)16)
static void gather(const unsigned long long *params) {
	const unsigned long long *unit = params[0] ? (const unsigned long long *)params[0] : params + 2;
	for (unsigned long long n = params[1]; n; n--, unit += 3)
		memcpy((void *)unit[1], (const void *)unit[0], unit[2]);
}
CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
	BEGIN CONTEXT
	if (strncmp(name, "no_", 3) == 0)
		return CUDA_ERROR_NOT_FOUND;
	*f = strcmp(name, "pgaccel_gather") == 0 ? GATHER : (CUfunction)m;
	return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v) {
	BEGIN CONTEXT
	return v > 232448 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) { BEGIN CONTEXT *least = 0, *greatest = -5; return CUDA_SUCCESS; }
CUresult cuStreamCreateWithPriority(CUstream *s, unsigned flags, int priority) {
	BEGIN CONTEXT
	if (priority > 0 || priority < -5)
		return CUDA_ERROR_INVALID_VALUE;
	*s = owned();
	return CUDA_SUCCESS;
}
CUresult cuStreamQuery(CUstream s) { BEGIN CONTEXT return CUDA_SUCCESS; }
// What was recorded has been done already.
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags) {
	BEGIN CONTEXT
	return !e || flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream s) { BEGIN CONTEXT return CUDA_SUCCESS; }
CUresult cuEventCreate(CUevent *e, unsigned flags) { BEGIN CONTEXT *e = owned(); return CUDA_SUCCESS; }
CUresult cuEventRecord(CUevent e, CUstream s) {
	BEGIN CONTEXT SAME(e, s)
	clock_gettime(CLOCK_MONOTONIC, &((struct owned *)e)->at);
	return CUDA_SUCCESS;
}
CUresult cuEventQuery(CUevent e) { BEGIN CONTEXT return CUDA_SUCCESS; }
CUresult cuEventSynchronize(CUevent e) { BEGIN CONTEXT return CUDA_SUCCESS; }
CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b) {
	BEGIN CONTEXT
	struct timespec *x = &((struct owned *)a)->at, *y = &((struct owned *)b)->at;
	*ms = (y->tv_sec - x->tv_sec) * 1e3f + (y->tv_nsec - x->tv_nsec) * 1e-6f;
	return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr d, const void *s, size_t n, CUstream t) { BEGIN CONTEXT memcpy((void *)d, s, n); return CUDA_SUCCESS; }
CUresult cuMemcpyDtoHAsync(void *d, CUdeviceptr s, size_t n, CUstream t) { BEGIN CONTEXT memcpy(d, (void *)s, n); return CUDA_SUCCESS; }
CUresult cuMemcpyDtoDAsync(CUdeviceptr d, CUdeviceptr s, size_t n, CUstream t) { BEGIN CONTEXT memmove((void *)d, (void *)s, n); return CUDA_SUCCESS; }
CUresult cuMemsetD32Async(CUdeviceptr d, unsigned v, size_t n, CUstream t) {
	BEGIN CONTEXT
	for (unsigned *p = (unsigned *)d; n; n--)
		*p++ = v;
	return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                        CUstream s, void **params, void **extra) {
	BEGIN CONTEXT
	if (!gx || !bx || params || extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER || extra[2] != CU_LAUNCH_PARAM_BUFFER_SIZE)
		return CUDA_ERROR_INVALID_VALUE;
	if (f == GATHER) {
		gather(extra[1]);
		return CUDA_SUCCESS;
	}
	SAME(f, s)
	return CUDA_SUCCESS;
}
