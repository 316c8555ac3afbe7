package server

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// garbageFloor is how much garbage there is at least, in bytes, before Go's collector runs.
	garbageFloor = 64 << 20
	// garbageMost bounds it, or an eighth of what lives where that is more. Without it the process
	// would have twice the memory that queries hold. What they hold are large pieces without
	// pointers, which the collector need not look at.
	garbageMost = 128 << 20
)

// CollectRarely has Go's collector run no sooner than garbageFloor after the last time, unless
// GOGC is set. The heap is small, since columns are none of it, and queries fill it again in a
// few milliseconds: at Go's own pace, once it has doubled, the collector would stop all
// threads up to a hundred times a second, relayed statements with them, each time until the
// last thread has had a core. Go's memory limit holds nevertheless.
var CollectRarely = sync.OnceFunc(func() {
	if os.Getenv("GOGC") == "" {
		afterCollection(&collector{percent: 100})
	}
})

// collector is garbage as often as it is made: its finalizer runs after each collection.
type collector struct {
	percent int
	_       [16]byte // less would share a block with others, and live as long
}

func afterCollection(c *collector) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	// Setting it stops all threads, too: not for little.
	if want := garbagePercent(sample[0].Value.Uint64()); want < c.percent*4/5 || want > c.percent*5/4 {
		debug.SetGCPercent(want)
		c.percent = want
	}
	next := *c
	runtime.SetFinalizer(&next, afterCollection)
}

// garbagePercent is the garbage that there may be in percent of what lives (debug.SetGCPercent):
// as much, within bounds.
func garbagePercent(live uint64) int {
	live = max(live, 1<<20)
	return int(100 * min(max(live, garbageFloor), max(live/8, garbageMost)) / live)
}
