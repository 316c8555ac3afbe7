// Package gpu is the room of the device: residency of column segments, requests
// to the worker process, faults (DESIGN.md section 10). It holds nothing yet:
// queries run on the CPU.
package gpu
