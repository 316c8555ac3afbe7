package explain

import (
	"math"

	"pgaccel/plan"
	"pgaccel/vector"
)

// Estimate is what is expected of a node.
type Estimate struct {
	Startup, Total float64
	Rows           float64
	Width          int // bytes of a row
}

// Costs, in units of PostgreSQL's seq_page_cost. Columns are read a hundred times as fast as rows are there.
const (
	columnCost = 0.0001 // of a value that is read
	tupleCost  = 0.001  // of a row that a node has made
	resultCost = 0.01   // of one that is sent
)

// PostgreSQL's defaults for columns without statistics (selfuncs.h).
const (
	equalShare  = 0.005
	rangeShare  = 1.0 / 3
	likeShare   = 0.005
	nullShare   = 0.005
	otherShare  = 0.5
	numDistinct = 200
)

// selectivity is the share of rows for which a condition is expected to be true.
func (s *scope) selectivity(e plan.Expr) float64 {
	c, ok := e.(*plan.Call)
	if !ok {
		return otherShare
	}
	switch c.Op {
	case plan.OpEq:
		for _, a := range c.Args {
			if col, ok := a.(plan.Column); ok && s.q.Tables[col.Table].Meta.UniqueOn([]int{col.Column}) {
				return 1 / math.Max(1, float64(s.q.Tables[col.Table].Meta.Rows))
			}
		}
		return equalShare
	case plan.OpNe, plan.OpDistinct:
		return 1 - equalShare
	case plan.OpLt, plan.OpLe, plan.OpGt, plan.OpGe:
		return rangeShare
	case plan.OpLike:
		return likeShare
	case plan.OpIn:
		return math.Min(1, equalShare*float64(len(c.Args)-1))
	case plan.OpIsNull:
		return nullShare
	case plan.OpIsNotNull:
		return 1 - nullShare
	case plan.OpNot, plan.OpIsFalse:
		return 1 - s.selectivity(c.Args[0])
	case plan.OpIsTrue:
		return s.selectivity(c.Args[0])
	case plan.OpAnd:
		return s.selectivities(c.Args)
	case plan.OpOr:
		none := 1.0
		for _, a := range c.Args {
			none *= 1 - s.selectivity(a)
		}
		return 1 - none
	}
	return otherShare
}

func (s *scope) selectivities(conds []plan.Expr) float64 {
	all := 1.0
	for _, c := range conds {
		all *= s.selectivity(c)
	}
	return all
}

// groups is the number of groups that so many rows are expected to have.
func (s *scope) groups(keys []plan.Expr, rows float64) float64 {
	n := 1.0
	for _, k := range keys {
		switch c, column := k.(plan.Column); {
		case k.Type().Kind == vector.Bool:
			n *= 2
		case column && s.q.Tables[c.Table].Meta.UniqueOn([]int{c.Column}):
			n = rows
		default:
			n *= numDistinct
		}
	}
	return whole(math.Min(n, rows))
}

// whole is a number of rows as PostgreSQL has them: one at least.
func whole(rows float64) float64 { return math.Max(1, math.Round(rows)) }

// width is the bytes that a value is expected to take in PostgreSQL (get_typavgwidth).
func width(t vector.Type) int {
	switch t.Kind {
	case vector.Bool:
		return 1
	case vector.Int2:
		return 2
	case vector.Int4, vector.OID, vector.Float4, vector.Date, vector.Enum:
		return 4
	case vector.Int8, vector.Money, vector.Float8, vector.Time, vector.Timestamp, vector.TimestampTZ:
		return 8
	case vector.UUID, vector.Interval:
		return 16
	case vector.MACAddr:
		return 6
	}
	return 32
}

func widths(es []plan.Expr) (n int) {
	for _, e := range es {
		n += width(e.Type())
	}
	return n
}

// limited are the rows that LIMIT and OFFSET leave.
func limited(rows float64, limit, offset plan.Expr) float64 {
	if c, ok := offset.(plan.Const); ok && !c.Null {
		rows = math.Max(0, rows-float64(c.I))
	}
	if c, ok := limit.(plan.Const); ok && !c.Null {
		rows = math.Min(rows, float64(c.I))
	}
	return rows
}
