// Package nvrtc compiles CUDA C++ with NVIDIA's runtime compiler, which it opens at run
// time: a program that uses it needs no CUDA to be built or started. NVRTC needs neither a
// device nor a driver, so sources can be checked where there is none.
package nvrtc
