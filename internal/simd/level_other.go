//go:build !amd64

package simd

// Best returns the highest level that this machine and its operating system have.
func Best() Level { return Plain }
