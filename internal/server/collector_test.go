package server

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestCollectRarely: garbage of a small heap is left alone until there is some, and that of a
// large one is not let grow beyond a part of what it was.
func TestCollectRarely(t *testing.T) {
	two := boundsOfGarbage(2, 1<<30)
	for _, c := range []struct {
		live uint64
		want int
	}{{0, 6400}, {1 << 20, 6400}, {16 << 20, 400}, {64 << 20, 100}, {128 << 20, 100}, {256 << 20, 50}, {1 << 30, 12}, {1 << 40, 12}} {
		if got := two.percent(c.live); got != c.want {
			t.Errorf("%d bytes live: %d percent, want %d", c.live, got, c.want)
		}
	}
	for _, c := range []struct {
		cores       int
		queryMemory int64
		want        garbageBounds
	}{
		{1, 64 << 30, garbageBounds{64 << 20, 128 << 20}}, {2, 0, garbageBounds{64 << 20, 128 << 20}},
		{16, 0, garbageBounds{64 << 20, 128 << 20}}, {16, 1 << 30, garbageBounds{64 << 20, 128 << 20}},
		{16, 64 << 30, garbageBounds{512 << 20, 1 << 30}}, {16, 4 << 30, garbageBounds{256 << 20, 512 << 20}},
	} {
		if got := boundsOfGarbage(c.cores, c.queryMemory); got != c.want {
			t.Errorf("%d cores, %d bytes of query memory: %v, want %v", c.cores, c.queryMemory, got, c.want)
		}
	}
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	runtime.GC()
	afterCollection(&collector{percent: 1, bounds: two})
	percent := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	if p := percent(); p <= 100 {
		t.Errorf("%d percent of a small heap", p)
	}
	large := make([]byte, 256<<20)
	for end := time.Now().Add(time.Minute); percent() > 100; time.Sleep(time.Millisecond) {
		if runtime.GC(); time.Now().After(end) {
			t.Fatalf("%d percent of a large heap", percent())
		}
	}
	runtime.KeepAlive(large)
}
