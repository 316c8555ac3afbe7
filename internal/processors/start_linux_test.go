package processors

import (
	"testing"
	"time"
)

// TestPoolAtRest: once there is nothing to do all of them wait, and none is expected.
func TestPoolAtRest(t *testing.T) {
	var s pool
	for range 100 {
		done := make(chan bool)
		s.start(5, func() { done <- true })
		for range 5 {
			<-done
		}
	}
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		looking, woken, waiting, jobs := s.looking, s.woken, s.waiting, len(s.jobs)
		s.mu.Unlock()
		if looking == 0 && woken == 0 && jobs == 0 && waiting > 0 {
			break
		}
		if time.Since(began) > waitFor/2 {
			t.Fatalf("%d look, %d are woken, %d wait, %d jobs", looking, woken, waiting, jobs)
		}
	}
}
