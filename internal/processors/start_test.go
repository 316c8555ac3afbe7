package processors

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestStart: each piece of work is done once, whoever waits, looks or has ended.
func TestStart(t *testing.T) {
	for _, pause := range []time.Duration{0, lookFor / 2, 2 * lookFor, 10 * lookFor} {
		var done atomic.Int64
		want := int64(0)
		for round := range 300 {
			n := round % 9
			want += int64(n)
			var all sync.WaitGroup
			all.Add(n)
			Start(n, func() { done.Add(1); all.Done() })
			all.Wait()
			time.Sleep(pause)
		}
		if done.Load() != want {
			t.Errorf("pause %v: %d of %d", pause, done.Load(), want)
		}
	}
}

// TestStartAtOnce: several callers, work that starts work.
func TestStartAtOnce(t *testing.T) {
	var callers, all sync.WaitGroup
	var done atomic.Int64
	for range 8 {
		callers.Go(func() {
			for range 200 {
				all.Add(6)
				Start(2, func() {
					done.Add(1)
					Start(2, func() { done.Add(1); all.Done() })
					all.Done()
				})
			}
		})
	}
	callers.Wait()
	all.Wait()
	if done.Load() != 8*200*6 {
		t.Errorf("%d", done.Load())
	}
}
