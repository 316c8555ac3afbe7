// Package kernels holds the CUDA sources: building blocks (*.cuh) that generated kernels
// include, and whole kernels (*.cu). They are embedded as text and compiled where a
// device is found: by NVRTC for that device, or as C++20 by the emulator. pgaccel.cuh says
// which part of CUDA they may use; clang compiles each to PTX in CI.
package kernels
