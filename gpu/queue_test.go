package gpu

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// waitFor lets others run until cond holds.
func waitFor(t *testing.T, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !cond(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatal("what was waited for did not come")
		}
	}
}

func (q *queue) waits() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.length
}

// TestQueueTurns has one caller with many queries and others with one each.
func TestQueueTurns(t *testing.T) {
	q := newQueue(1)
	ctx := context.Background()
	first, err := q.enter(ctx, 1, -1)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var order []uint64
	var wg sync.WaitGroup
	for i, caller := range []uint64{1, 1, 1, 2, 3, 0, 1} {
		wg.Go(func() {
			s, err := q.enter(ctx, caller, -1)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, caller)
			mu.Unlock()
			q.leave(s, time.Microsecond)
		})
		waitFor(t, func() bool { return q.waits() == i+1 })
	}
	q.leave(first, time.Microsecond)
	wg.Wait()
	if want := []uint64{1, 2, 3, 0, 1, 1, 1}; !slices.Equal(order, want) {
		t.Fatalf("turns %v, not %v", order, want)
	}
	if len(q.free) != 1 || len(q.turns) != 0 || len(q.waiting) != 0 || q.length != 0 {
		t.Fatalf("left behind: %+v", q)
	}
}

func TestQueueBusy(t *testing.T) {
	q := newQueue(2)
	ctx := context.Background()
	a, _ := q.enter(ctx, 0, 0)
	b, _ := q.enter(ctx, 0, 0)
	if a == b {
		t.Fatal("one stream for two")
	}
	if _, err := q.enter(ctx, 0, 0); !errors.Is(err, ErrBusy) {
		t.Fatal(err)
	}
	if _, err := q.enter(ctx, 7, time.Millisecond); !errors.Is(err, ErrBusy) { // waits, and leaves
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := q.enter(canceled, 7, -1); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if q.length != 0 || len(q.turns) != 0 {
		t.Fatalf("left behind: %+v", q)
	}
	failed := make(chan error)
	gone := errors.New("gone")
	go func() {
		_, err := q.enter(ctx, 0, -1)
		failed <- err
	}()
	waitFor(t, func() bool { return q.waits() == 1 })
	q.close(gone)
	if err := <-failed; err != gone {
		t.Fatal(err)
	}
	if _, err := q.enter(ctx, 0, -1); err != gone {
		t.Fatal(err)
	}
	q.leave(a, 0)
	q.leave(b, 0)
}

// TestQueueRace has queries that come, wait, give up and leave: no stream is lost or doubled.
func TestQueueRace(t *testing.T) {
	q := newQueue(3)
	var mu sync.Mutex
	held := map[int]bool{}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 300 {
				ctx, cancel := context.WithCancel(context.Background())
				if i%5 == 0 {
					go cancel()
				}
				maxWait := time.Duration(-1)
				if i%7 == 0 {
					maxWait = time.Duration(i) * time.Microsecond
				}
				if s, err := q.enter(ctx, uint64(g%4), maxWait); err == nil {
					mu.Lock()
					if held[s] {
						t.Errorf("stream %d twice", s)
					}
					held[s] = true
					mu.Unlock()
					mu.Lock()
					delete(held, s)
					mu.Unlock()
					q.leave(s, time.Microsecond)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if len(q.free) != 3 || q.length != 0 {
		t.Fatalf("%d streams of 3, %d wait", len(q.free), q.length)
	}
}
