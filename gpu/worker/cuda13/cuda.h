// Put ahead of CUDA 13's own cuda.h for gorgonia.org/cu v0.9.6, which is written for the
// functions as they were before: CUDA 13's header gives these five names to versions with other
// parameters. The driver still has the old ones.
#pragma once
#include_next <cuda.h>

#undef cuCtxCreate
#define cuCtxCreate cuCtxCreate_v2
#undef cuMemAdvise
#undef cuMemPrefetchAsync
#undef cuGraphAddDependencies
#undef cuGraphGetEdges

#ifdef __cplusplus
extern "C" {
#endif
CUresult CUDAAPI cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev);
CUresult CUDAAPI cuMemAdvise(CUdeviceptr ptr, size_t count, CUmem_advise advice, CUdevice device);
CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr ptr, size_t count, CUdevice device, CUstream stream);
CUresult CUDAAPI cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count);
CUresult CUDAAPI cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count);
#ifdef __cplusplus
}
#endif
