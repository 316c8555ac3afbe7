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
	Ntile                             // Int4: which of Offset parts; Offset is that of the first row where it is not null
	Lag                               // Arg of the row Offset before, or Default where there is none; null for a null Offset
	Lead                              // likewise of the row Offset behind
	FirstValue                        // Arg of the frame's first row
	LastValue                         // Arg of the frame's last row
	NthValue                          // Arg of the frame's row Offset, from 1; null for a null Offset
)

// Framed reports whether the value depends on the frame.
func (f WindowFunc) Framed() bool { return f == WindowAggregate || f >= FirstValue }

// Window yields its input's rows, each with a value computed over the rows that agree with it in
// Partition.
type Window struct {
	Number    int // Output.Of of the value
	Input     Rel
	Func      WindowFunc
	Agg       AggregateCall // of WindowAggregate
	Arg       Expr          // of Lag, Lead, FirstValue, LastValue and NthValue
	Default   Expr          // of Lag and Lead, of Arg's kind; nil is null
	Offset    Expr          // Int4: of Ntile, Lag, Lead and NthValue; nil is 1
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
	case Lag, Lead, FirstValue, LastValue, NthValue:
		return sqlfn.SameType(w.Arg.Type())
	}
	return vector.TypeOf(vector.Int8)
}

func (w *Window) check() error {
	if (w.Arg != nil) != (w.Func >= Lag) {
		return errors.New("an argument where the function has none, or none where it has one")
	}
	if w.Default != nil && (w.Func != Lag && w.Func != Lead || w.Default.Type().Kind != w.Arg.Type().Kind) {
		return errors.New("a default of another type")
	}
	if w.Offset != nil && w.Offset.Type().Kind != vector.Int4 {
		return errors.New("an offset of another type")
	}
	if err := w.Frame.check(w.Order); err != nil {
		return err
	}
	if w.Func != WindowAggregate {
		if w.Agg != (AggregateCall{}) {
			return errors.New("an aggregate of a function that is none")
		}
		return nil
	}
	if w.Agg.Func.OverSorted() {
		if w.Frame != WholeFrame {
			return errors.New("an aggregate over sorted rows of a part of the partition")
		}
	} else if w.Agg.Distinct || w.Agg.Func.OrderedSet() {
		return errors.New("an aggregate that is not over a window")
	}
	if err := w.Agg.check(); err != nil {
		return fmt.Errorf("%s: %w", w.Agg.Func, err)
	}
	return nil
}

// exprs calls f for each expression of the operator.
func (w *Window) exprs(f func(Expr)) {
	for _, e := range []Expr{w.Agg.Arg, w.Agg.Filter, w.Arg, w.Default, w.Offset, w.Frame.Start.Offset, w.Frame.End.Offset} {
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
