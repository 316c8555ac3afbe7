// Package kernels holds the CUDA sources that generated kernels include: building blocks
// (*.cuh), embedded as text and compiled where a device is found: by NVRTC for that device, or
// as C++20 by the emulator. pgaccel.cuh says which part of CUDA they may use; with check.hpp
// clang compiles each to PTX (make ptx). Whole kernels of comparisons are in papers/kernels.
package kernels
