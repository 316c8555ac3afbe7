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

// spread is the median over the queries of their slowest run by their fastest: how calm
// the machine was.
func spread(results []*result, times func(*result) []time.Duration) float64 {
	var ratios []float64
	for _, r := range results {
		if t := times(r); len(t) > 0 {
			ratios = append(ratios, float64(slices.Max(t))/float64(slices.Min(t)))
		}
	}
	slices.Sort(ratios)
	if len(ratios) == 0 {
		return 0
	}
	return ratios[len(ratios)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
