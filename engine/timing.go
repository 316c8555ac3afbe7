package engine

import "time"

// side is one of the two that can compute the executions of a shape: the processor and a device, or
// pgaccel and the server.
type side uint8

const (
	onCPU side = iota
	onDevice
	sides
)

// timing is what executions of one shape took on one side.
type timing struct {
	n        int64         // executions
	smoothed time.Duration // moving average
	spent    time.Duration // in all, since the sides last changed places
}

// add counts an execution. A side's first one brings the columns there, or pages into the server's memory, and
// says nothing about the next.
func (t *timing) add(d time.Duration) {
	switch t.n++; {
	case t.n <= 2:
		t.smoothed = d
	default:
		t.smoothed += (d - t.smoothed) / 4
	}
	t.spent += d
}

// exploreShare bounds what is spent to learn about the slower side: one part in so many
// of the time spent on the other.
const exploreShare = 32

// sideTimings are the two sides of a shape's executions. One leads, and is used; the other is tried now and then,
// because data and load change. The zero value has seen none, and side 0 leads.
type sideTimings struct {
	timings [sides]timing
	leader  side
}

// lead makes a side the leader. What was spent before does not count: a side that led for long would hardly
// be tried again.
func (r *sideTimings) lead(s side) {
	if r.leader == s {
		return
	}
	r.leader = s
	for i := range r.timings {
		r.timings[i].spent = 0
	}
}

// due reports whether the side that does not lead may be tried by an execution that is expected to take so long there.
func (r *sideTimings) due(expected time.Duration) bool {
	return (r.timings[1-r.leader].spent+expected)*exploreShare <= r.timings[r.leader].spent
}
