package plan

import (
	"errors"
	"fmt"

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
	Frame     Frame
	Partition []Expr
	Order     []Order
}

// Inputs implements Rel.
func (w *Window) Inputs() []Rel { return []Rel{w.Input} }

// Type is the type of the value.
func (w *Window) Type() vector.Type {
	if w.Func == WindowAggregate {
		return w.Agg.T
	}
	return vector.TypeOf(vector.Int8)
}

func (w *Window) check() error {
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
	for _, e := range []Expr{w.Agg.Arg, w.Agg.Filter} {
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
