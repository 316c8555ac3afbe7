package pushdown

import (
	"pgaccel/plan"
)

// smallRows is the number of rows of the driving table below which
// PostgreSQL answers as fast: a scan of so few takes about a millisecond, as do the
// gate and the detour.
const smallRows = 5000

// ForceTakesIt ends the details of what would not pay: what who wants pgaccel's answer all the same can do.
const ForceTakesIt = "; SET pgaccel.mode = 'force' takes it all the same"

// mostRows returns the rows of the largest table that a query reads, and whether it computes
// relations or scalars first.
func mostRows(q *plan.Star) (most int64, computes bool) {
	q.Walk(func(s *plan.Star) {
		computes = computes || s != q
		for i := range s.Tables {
			if t := &s.Tables[i]; t.Relation == nil {
				most = max(most, t.Meta.Rows)
			}
		}
	})
	return most, computes
}

// small says why a query is not worth taking, nil where it is.
func small(q *plan.Star) *plan.Forward {
	cheap := func(detail string) *plan.Forward {
		return &plan.Forward{Reason: plan.ReasonSmall, Detail: detail + ForceTakesIt}
	}
	if most, relations := mostRows(q); most < smallRows {
		return cheap("few rows, which the server reads as fast")
	} else if relations {
		return nil
	}
	t := &q.Tables[0]
	var fixed []int
	for _, e := range q.Filter {
		c, ok := e.(*plan.Call)
		if !ok || c.Op != plan.OpEq || !isLeaf(c.Args[1]) && readsRows(c.Args[1]) {
			continue
		}
		if x, ok := c.Args[0].(plan.Column); ok && x.Table == 0 {
			fixed = append(fixed, x.Column)
		}
	}
	if t.Meta.UniqueOn(fixed) {
		return cheap("one row by a unique key, which an index of the server finds as fast")
	}
	if q.Grouped {
		return nil
	}
	for _, ix := range t.Meta.Indexes {
		for _, c := range fixed {
			if len(ix.Columns) > 0 && ix.Columns[0] == c {
				return cheap("rows by a column that an index of the server begins with")
			}
		}
	}
	if len(q.Filter) == 0 && len(q.Order) == 0 {
		return cheap("rows as they come, of which sending is most of the work")
	}
	return nil
}
