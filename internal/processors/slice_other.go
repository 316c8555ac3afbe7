//go:build !linux

package processors

// LongSlices does nothing: slices are Linux's.
func LongSlices() {}
