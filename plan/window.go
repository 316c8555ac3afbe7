package plan

import (
	"errors"
	"fmt"

	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// WindowFunc is what a Window computes.
type WindowFunc uint8

// The window functions.
const (
	RowNumber       WindowFunc = iota // Int8
	Rank                              // Int8
	DenseRank                         // Int8
	WindowAggregate                   // Window.Agg over the frame
	PercentRank                       // Float8
	CumeDist                          // Float8
	Ntile                             // Int4: which of Offset parts
	Lag                               // Arg of the row Offset before, or Default where there is none
	FirstValue                        // Arg of the first row
	LastValue                         // Arg of the frame's last row
)

// Frame says over which rows of a partition, in the window's order, an aggregate of a Window is: from
// the first one on.
type Frame uint8

// The frames.
const (
	ToPeers Frame = iota // up to the last row that the order does not tell from the current one: the default
	ToRow                // up to the current row
	ToEnd                // all rows
)

// Window yields its input's rows, each with a value computed over the rows that agree with it in
// Partition.
type Window struct {
	Number    int // Output.Of of the value
	Input     Rel
	Func      WindowFunc
	Agg       AggregateCall // of WindowAggregate
	Arg       Expr          // of Lag, FirstValue and LastValue
	Default   Expr          // of Lag, of Arg's kind; nil is null
	Offset    int64         // of Lag, negative for rows behind, and Ntile
	Frame     Frame
	Partition []Expr
	Order     []Order
}

// Inputs implements Rel.
func (w *Window) Inputs() []Rel { return []Rel{w.Input} }

// Type is the type of the value.
func (w *Window) Type() vector.Type {
	switch w.Func {
	case WindowAggregate:
		return w.Agg.T
	case PercentRank, CumeDist:
		return vector.TypeOf(vector.Float8)
	case Ntile:
		return vector.TypeOf(vector.Int4)
	case Lag, FirstValue, LastValue:
		return sqlfn.SameType(w.Arg.Type())
	}
	return vector.TypeOf(vector.Int8)
}

func (w *Window) check() error {
	if (w.Arg != nil) != (w.Func >= Lag) {
		return errors.New("an argument where the function has none, or none where it has one")
	}
	if w.Default != nil && (w.Func != Lag || w.Default.Type().Kind != w.Arg.Type().Kind) {
		return errors.New("a default of another type")
	}
	if w.Func == Ntile && w.Offset < 1 {
		return errors.New("no parts")
	}
	if w.Func != WindowAggregate {
		if w.Agg != (AggregateCall{}) {
			return errors.New("an aggregate of a function that is none")
		}
		return nil
	}
	if w.Agg.Distinct || w.Agg.Func.OrderedSet() {
		return errors.New("an aggregate that is not over a window")
	}
	if err := w.Agg.check(); err != nil {
		return fmt.Errorf("%s: %w", w.Agg.Func, err)
	}
	return nil
}

// exprs calls f for each expression of the operator.
func (w *Window) exprs(f func(Expr)) {
	for _, e := range []Expr{w.Agg.Arg, w.Agg.Filter, w.Arg, w.Default} {
		if e != nil {
			f(e)
		}
	}
	for _, e := range w.Partition {
		f(e)
	}
	for _, o := range w.Order {
		f(o.Expr)
	}
}
