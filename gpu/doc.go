// Package gpu is the room of the device: residency of column segments, scheduling,
// requests to the worker process, faults (DESIGN.md section 10).
package gpu
