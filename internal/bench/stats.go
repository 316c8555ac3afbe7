package bench

import (
	"math"
	"slices"
	"time"
)

// median of the durations; 0 of none.
func median(d []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(d))
	if len(s) == 0 {
		return 0
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// geomean is the geometric mean of positive numbers; 0 of none.
func geomean(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	sum := 0.0
	for _, x := range v {
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(v)))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
