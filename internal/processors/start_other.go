//go:build !linux

package processors

// Start runs f on n other goroutines.
func Start(n int, f func()) {
	for range n {
		go f()
	}
}
