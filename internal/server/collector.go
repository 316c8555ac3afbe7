package server

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// garbageFloor is how many bytes of garbage there are at least before Go's collector runs: more for more
// cores, which make it side by side, and all wait for the collector. Each collection takes milliseconds, and
// for them a quarter of Go's processors. The share of the memory of queries that is for garbage (GoMemoryLimit)
// holds, but for what little there is on two cores.
func garbageFloor(cores int, queryMemory int64) int64 {
	const one = 32 << 20
	return min(int64(max(cores, 2))*one, max(queryMemory/garbageShare/2, 2*one))
}

var collectRarely sync.Once

// CollectRarely has Go's collector run no sooner than there is some garbage, unless
// GOGC is set. The heap is small, since columns are none of it, and queries fill it again in a
// few milliseconds: at Go's own pace, once it has doubled, the collector would stop all
// threads up to a hundred times a second, relayed statements with them, each time until the
// last thread has had a core. Go's memory limit holds nevertheless.
func (cfg *Config) CollectRarely(cores int) {
	cfg.setMemory()
	collectRarely.Do(func() {
		if os.Getenv("GOGC") == "" {
			afterCollection(&collector{percent: 100, floor: garbageFloor(cores, cfg.QueryMemory)})
		}
	})
}

// collector is garbage as often as it is made: its finalizer runs after each collection.
type collector struct {
	percent int
	floor   int64    // garbageFloor
	_       [16]byte // less would share a block with others, and live as long
}

func afterCollection(c *collector) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	// Setting it stops all threads, too: not for little.
	if want := garbagePercent(sample[0].Value.Uint64(), uint64(c.floor)); want < c.percent*4/5 || want > c.percent*5/4 {
		debug.SetGCPercent(want)
		c.percent = want
	}
	next := *c
	runtime.SetFinalizer(&next, afterCollection)
}

// garbagePercent is the garbage that there may be in percent of what lives (debug.SetGCPercent):
// as much, but no less than floor, and no more than twice that or, where it is more, an eighth of what lives. Without that
// bound the process would have twice the memory that queries hold. What they hold are large pieces without
// pointers, which the collector need not look at.
func garbagePercent(live, floor uint64) int {
	live = max(live, 1<<20)
	return int(100 * min(max(live, floor), max(live/8, 2*floor)) / live)
}
