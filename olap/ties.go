package olap

import (
	"cmp"
	"strings"

	"pgaccel/vector"
)

// Where LIMIT or OFFSET cuts among rows that tie in ORDER BY any of them are right, and PostgreSQL gives those
// that its plan happens to meet. Here they come in the order of their values: the same each time, however
// many goroutines there are and wherever the cut is, so that pages of LIMIT and OFFSET make the whole.

// settle puts the first k of rows that tie in the order of what the client sees of them; the others follow in
// any order.
func (x *execution) settle(r *result, tied []uint32, k int) error {
	memory := int64(len(tied)) * 13
	if err := x.take(memory); err != nil {
		return err
	}
	defer x.give(memory)
	order := &rowOrder{compare: func(a, b uint32) int { return r.compareSeen(tied[a], tied[b]) }}
	places := firstRows(len(tied), k, order)[:k]
	taken := make([]bool, len(tied))
	settled := make([]uint32, 0, len(tied))
	for _, at := range places {
		taken[at] = true
		settled = append(settled, tied[at])
	}
	for at, row := range tied {
		if !taken[at] {
			settled = append(settled, row)
		}
	}
	copy(tied, settled)
	return nil
}

// compareSeen is an order of rows in which those are equal that look alike. Text is compared by its bytes.
func (r *result) compareSeen(a, b uint32) int {
	for i := range r.output {
		c := &r.output[i]
		if c.dict != nil && c.v[a] == c.v[b] && c.null(a) == c.null(b) {
			continue
		}
		if d := compareValues(c.at(a), c.at(b)); d != 0 {
			return d
		}
	}
	return 0
}

// compareValues is an order of a column's values in which no two different ones are equal, nulls last.
func compareValues(x, y vector.Value) int {
	switch {
	case x == y:
		return 0
	case x.Null != y.Null:
		return cmp.Compare(b2i(x.Null), b2i(y.Null))
	}
	return cmp.Or(cmp.Compare(x.I, y.I), strings.Compare(x.Str, y.Str), compareDecimals(x.Num, y.Num), cmp.Compare(x.Num.Scale, y.Num.Scale))
}
