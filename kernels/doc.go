// Package kernels is the room of the CUDA sources (DESIGN.md section 10). It holds
// nothing yet.
package kernels
