package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"pgaccel/sqltype"
)

// TestRulesAreAskedForOnce: whoever comes meanwhile waits, or does without; errors are tried again later, and rules that are
// old are renewed while they are used.
func TestRulesAreAskedForOnce(t *testing.T) {
	zs := newRuleCache[zoneKey, *sqltype.Zone](zonesMax)
	key := zoneKey{"server", "Europe/Berlin"}
	var asked atomic.Int64
	release := make(chan error)
	first, second := new(sqltype.Zone), new(sqltype.Zone)
	ask := func() (*sqltype.Zone, error) {
		n := asked.Add(1)
		if err := <-release; err != nil {
			return nil, err
		}
		if n == 2 {
			return first, nil
		}
		return second, nil
	}
	if z, err := zs.get(ended, key, ask); z != nil || err == nil || asked.Load() != 0 {
		t.Fatalf("who does not wait has it asked for: %v, %v", z, err)
	}
	got := make(chan error)
	for range 5 {
		go func() {
			_, err := zs.get(context.Background(), key, ask)
			got <- err
		}()
	}
	broken := errors.New("no session")
	release <- broken
	for range 5 {
		if err := <-got; err != broken {
			t.Fatal(err)
		}
	}
	if _, err := zs.get(context.Background(), key, ask); err != broken || asked.Load() != 1 {
		t.Fatalf("%v, asked %d times", err, asked.Load())
	}
	r, _ := zs.list.Get(key)
	r.asked = time.Now().Add(-2 * rulesRetry)
	go func() { release <- nil }()
	if z, err := zs.get(context.Background(), key, ask); z != first || err != nil {
		t.Fatalf("%v, %v", z, err)
	}
	r, _ = zs.list.Get(key)
	r.asked = time.Now().Add(-2 * rulesFresh)
	for range 3 { // while it is renewed
		if z, err := zs.get(ended, key, ask); z != first || err != nil {
			t.Fatalf("%v, %v", z, err)
		}
	}
	release <- nil
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if z, _ := zs.get(ended, key, ask); z == second {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("not renewed")
		}
	}
	if asked.Load() != 3 {
		t.Errorf("asked %d times", asked.Load())
	}
}
