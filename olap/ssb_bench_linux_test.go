package olap_test

import (
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pgaccel/internal/simd"
)

// threadTime returns the processor time of the calling thread in nanoseconds.
func threadTime(t testing.TB) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		t.Fatal(err)
	}
	return ts.Nano()
}

// BenchmarkSSB runs the 13 queries on one worker at every level in turn, and reports
// the best time of each. PGACCEL_SSB_SCALE sets the scale factor, PGACCEL_SSB_QUERY
// picks queries by a part of their name, and PGACCEL_SSB_SIMD one level. Times are the
// thread's own, so that whatever else runs on the machine disturbs them less.
func BenchmarkSSB(b *testing.B) {
	scale := 0.1
	if s := os.Getenv("PGACCEL_SSB_SCALE"); s != "" {
		var err error
		if scale, err = strconv.ParseFloat(s, 64); err != nil {
			b.Fatal(err)
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	was := simd.Active()
	defer simd.Use(was)
	queries := ssbQueries(b, scale)
	best := make([][3]float64, len(queries))
	for b.Loop() {
		for i := range queries {
			if !strings.Contains(queries[i].name, os.Getenv("PGACCEL_SSB_QUERY")) {
				continue
			}
			for level := simd.Plain; level <= simd.Best(); level++ {
				if only := os.Getenv("PGACCEL_SSB_SIMD"); only != "" && only != level.String() {
					continue
				}
				simd.Use(level)
				began := threadTime(b)
				queries[i].run(b, 1)
				ms := float64(threadTime(b)-began) / 1e6
				if best[i][level] == 0 || ms < best[i][level] {
					best[i][level] = ms
				}
			}
		}
	}
	for level := simd.Plain; level <= simd.Best(); level++ {
		logs, n := 0.0, 0
		for i := range queries {
			if ms := best[i][level]; ms > 0 {
				b.ReportMetric(ms, queries[i].name+"-"+level.String()+"-ms")
				logs += math.Log(ms)
				n++
			}
		}
		if n > 0 {
			b.ReportMetric(math.Exp(logs/float64(n)), "geomean-"+level.String()+"-ms")
		}
	}
}
