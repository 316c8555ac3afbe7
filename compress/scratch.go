package compress

import "sync"

// scratch is room for the values of a vector or tile, and more: pooled, because
// clearing it for each call would cost as much as what is done with it.
type scratch struct {
	a, b [vectorRows]int64
	c    [runRows]int64
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}
