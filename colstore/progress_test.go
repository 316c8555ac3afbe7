package colstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

// wait starts a Wait that has begun to sleep when wait returns.
func wait(ctx context.Context, t *testing.T, s *Store, lsn uint64) <-chan error {
	t.Helper()
	asleep, done := make(chan uint64, 1), make(chan error, 1)
	s.OnWait(func(target uint64) { asleep <- target })
	go func() { done <- s.Wait(ctx, lsn) }()
	if got := <-asleep; got != lsn {
		t.Fatalf("OnWait(%d), want %d", got, lsn)
	}
	return done
}

func TestWait(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	ctx := context.Background()
	if err := s.Wait(ctx, 0); err != ErrStream {
		t.Errorf("Wait before the stream is up: %v", err)
	}
	s.SetConnected(true)
	s.OnWait(func(lsn uint64) { t.Errorf("OnWait(%d) of a satisfied wait", lsn) })
	s.Advance(100)
	s.Advance(90) // never goes back
	if s.Applied() != 100 {
		t.Errorf("Applied() = %d", s.Applied())
	}
	for _, lsn := range []uint64{0, 99, 100} {
		if err := s.Wait(ctx, lsn); err != nil {
			t.Errorf("Wait(%d): %v", lsn, err)
		}
	}

	late := wait(ctx, t, s, 300)
	early := wait(ctx, t, s, 200)
	cancelled, cancel := context.WithCancel(ctx)
	gone := wait(cancelled, t, s, 250)
	if n := s.Waiting(); n != 3 {
		t.Errorf("%d wait, want 3", n)
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled wait: %v", err)
	}
	if n := s.Waiting(); n != 2 {
		t.Errorf("%d wait, want 2", n)
	}
	s.Advance(200)
	if err := <-early; err != nil {
		t.Errorf("Wait(200): %v", err)
	}
	select {
	case err := <-late:
		t.Errorf("Wait(300) ended at 200: %v", err)
	default:
	}
	s.SetConnected(false)
	if err := <-late; err != ErrStream {
		t.Errorf("Wait(300) after the stream broke: %v", err)
	}
	if err := s.Wait(ctx, 1); err != ErrStream {
		t.Errorf("Wait after the stream broke: %v", err)
	}
	s.Advance(400)
	if err := s.Wait(ctx, 1); err != ErrStream {
		t.Errorf("Advance revived the stream: %v", err)
	}
	s.SetConnected(true)
	if err := s.Wait(ctx, 400); err != nil {
		t.Errorf("Wait after the stream came back: %v", err)
	}
}

// TestWaitMany: no wake-up is lost and none comes early.
func TestWaitMany(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	s.SetConnected(true)
	const top = 2000
	var wg sync.WaitGroup
	var advanced atomic.Uint64
	for g := range 16 {
		wg.Go(func() {
			for lsn := uint64(g); lsn <= top; lsn += 7 {
				if err := s.Wait(context.Background(), lsn); err != nil {
					t.Error(err)
				}
				if advanced.Load() < lsn {
					t.Errorf("woken at %d for %d", advanced.Load(), lsn)
				}
			}
		})
	}
	for lsn := uint64(0); lsn <= top; lsn++ {
		advanced.Store(lsn)
		s.Advance(lsn)
	}
	wg.Wait()
}

func TestRestartGoesBack(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	s.SetConnected(true)
	s.Advance(100)
	s.SetConnected(false)
	s.Restart("other", 40)
	s.SetConnected(true)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Wait(ctx, 40); err != nil {
		t.Error(err)
	}
	if err := s.Wait(ctx, 41); err != context.Canceled {
		t.Errorf("a position that the new stream has not passed: %v", err)
	}
}
