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
	two := garbageFloor(2, 1<<30)
	for _, c := range []struct {
		live uint64
		want int
	}{{0, 6400}, {1 << 20, 6400}, {16 << 20, 400}, {64 << 20, 100}, {128 << 20, 100}, {256 << 20, 50}, {1 << 30, 12}, {1 << 40, 12}} {
		if got := garbagePercent(c.live, uint64(two)); got != c.want {
			t.Errorf("%d bytes live: %d percent, want %d", c.live, got, c.want)
		}
	}
	for _, c := range []struct {
		cores       int
		queryMemory int64
		want        int64
		most        int // percent of a gigabyte that lives
	}{
		{1, 64 << 30, 64 << 20, 12}, {2, 0, 64 << 20, 12}, {16, 0, 64 << 20, 12}, {16, 1 << 30, 64 << 20, 12},
		{16, 64 << 30, 512 << 20, 100}, {16, 4 << 30, 256 << 20, 50},
	} {
		got := garbageFloor(c.cores, c.queryMemory)
		if most := garbagePercent(1<<30, uint64(got)); got != c.want || most != c.most {
			t.Errorf("%d cores, %d bytes of query memory: %d and %d percent, want %d and %d", c.cores, c.queryMemory, got, most, c.want, c.most)
		}
	}
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	runtime.GC()
	afterCollection(&collector{percent: 1, floor: two})
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
