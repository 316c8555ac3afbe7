package processors

import "sync"

// ParallelFor calls body for ranges that together are [0, n): on all cores, but each has grain or more.
func ParallelFor(n, grain int, body func(from, to int)) {
	ranges := min(count, n/grain)
	if ranges < 2 {
		body(0, n)
		return
	}
	var wg sync.WaitGroup
	for i := range ranges {
		wg.Go(func() { body(n*i/ranges, n*(i+1)/ranges) })
	}
	wg.Wait()
}
