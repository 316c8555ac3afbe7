package cube

// TargetLists are one dimension's part of the aggregation map of an area, for executors
// elsewhere: element e reaches the digits and weights from Start[e] up to Start[e+1].
type TargetLists[N Number] struct {
	Start  []uint32 // one more than elements
	Digit  []uint32 // positions in the area's list of target elements
	Weight []N      // over all paths, at the scale of the dimension's depth
	Stride uint64   // of the digit within a target's number
	Radix  uint64   // target elements
}

// TargetLists returns the aggregation map of an area, a list for each dimension, and the
// number of target cells, filled or not. Errors are those of executors: errRange where
// a fixed-point sum could leave 64 bits.
func (c *Cube[N]) TargetLists(area Area) (dims []TargetLists[N], targets uint64, err error) {
	m, err := newMap(c, area)
	if err != nil {
		return nil, 0, err
	}
	for _, t := range m.dims {
		dims = append(dims, TargetLists[N]{t.start, t.digit, t.weight, t.stride, t.radix})
	}
	return dims, m.targets, nil
}

// Cells returns the fact table, sorted by path, which must not be changed.
func (c *Cube[N]) Cells() Cells[N] { return c.cells }
