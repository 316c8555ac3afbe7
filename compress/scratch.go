package compress

import "sync"

// vectorRows is what ALP has powers of ten for, and what is decoded at once.
const vectorRows = 1024

// scratch is room for the values of a vector or tile, and more: pooled, because
// clearing it for each call would cost as much as what is done with it.
type scratch struct {
	a, b [vectorRows]int64
	c    [runRows]int64
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}
