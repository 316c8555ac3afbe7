// Package kernels holds the CUDA sources: building blocks (*.cuh) that generated kernels
// include, and whole kernels of comparisons (tile, rowout, wah, cube). They are embedded as
// text and compiled where a device is found: by NVRTC for that device, or as C++20 by the
// emulator. pgaccel.cuh says which part of CUDA they may use; with check.hpp clang compiles
// each to PTX (make ptx).
package kernels
