// Command pgaccel-gpu is the process with the GPU: pgaccel starts it and talks to it over a
// socket (package gpu/worker). Built with the tag cuda it serves NVIDIA's devices, with the tag
// emu (as pgaccel-gpu-emu) an emulated one.
package main
