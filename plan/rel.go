package plan

import (
	"fmt"

	"pgaccel/vector"
)

// Rel is a relational operator: a node of a statement's tree, which yields rows. What its
// expressions may read is what its inputs yield: a Column is one of a Scan below it, a Key, an
// Agg or a Grouping one of the Aggregate below it that has its number, an Output one of the
// numbered operator below it. A tree is immutable once built.
//
// Only a Project says which columns there are, and in which order: the other operators pass on
// what expressions above them ask for. The root is one. One with a number stands for a derived
// table: of what is below it only its Outputs are seen above.
type Rel interface {
	// Inputs are the operators whose rows it takes.
	Inputs() []Rel
}

// Scan yields the rows of a table reference.
type Scan struct {
	Table int // position in the statement's table references, in order of appearance
}

// JoinKind says what becomes of rows without a partner.
type JoinKind uint8

// The joins: rows of the driving side without a partner vanish (Inner) or stay
// with nulls (Left, Single). A Star has these three; the others are of trees.
const (
	Inner JoinKind = iota
	Left
	Full   // rows without a partner stay on both sides
	Semi   // the rows of the left that have a partner, once: EXISTS, IN
	Anti   // those that have none: NOT EXISTS
	NotIn  // those for which the conditions are false with every row of the right, not null
	Mark   // all rows of the left, with Output{Join.Number, 0}: whether there is a partner, or null
	Single // as Left, but an error where there is more than one partner
)

// Join yields the pairs of rows of Left and Right for which every condition of On is true, or
// what else its kind says. Semi, Anti, NotIn and Mark yield nothing of Right. Mark is null where
// no row of Right is a partner and the conditions are null with one.
type Join struct {
	Kind        JoinKind
	Number      int // Output.Of of a Mark
	Left, Right Rel
	On          []Expr // conjuncts
	// Lateral is true where Right reads what Left yields: it is executed for each row of it.
	Lateral bool
}

// Filter yields the rows for which every condition is true.
type Filter struct {
	Input Rel
	Conds []Expr // conjuncts
}

// Aggregate yields a row for each group of its input's rows, and for each of Sets, as Star says.
type Aggregate struct {
	Number int // Key.Of, Agg.Of and Grouping.Of of what it yields; unique in a statement
	Input  Rel
	Keys   []Expr
	Sets   []uint64
	Aggs   []AggregateCall
}

// Sort yields its input's rows in order.
type Sort struct {
	Input Rel
	By    []Order
}

// Limit yields Count of its input's rows, all where it is nil, behind the first Offset. They
// are Int8 constants or parameters. With Per it does so for the rows that agree in these values,
// of each group of them, in whichever order of the groups; nulls agree.
type Limit struct {
	Input         Rel
	Count, Offset Expr
	Per           []Expr
}

// Project yields a row of the values of Exprs for each row of its input.
type Project struct {
	Number int // Output.Of of what it yields; 0 where its values are known by position, as the root's
	Input  Rel
	Exprs  []Expr
}

// Output is a value of the numbered operator below, which is a derived table.
type Output struct {
	Of    int // its number, from 1; unique in a statement
	Index int
	T     vector.Type
}

// Type implements Expr.
func (o Output) Type() vector.Type { return o.T }

// Inputs implements Rel.
func (*Scan) Inputs() []Rel { return nil }

// Inputs implements Rel.
func (j *Join) Inputs() []Rel { return []Rel{j.Left, j.Right} }

// Inputs implements Rel.
func (f *Filter) Inputs() []Rel { return []Rel{f.Input} }

// Inputs implements Rel.
func (a *Aggregate) Inputs() []Rel { return []Rel{a.Input} }

// Inputs implements Rel.
func (s *Sort) Inputs() []Rel { return []Rel{s.Input} }

// Inputs implements Rel.
func (l *Limit) Inputs() []Rel { return []Rel{l.Input} }

// Inputs implements Rel.
func (p *Project) Inputs() []Rel { return []Rel{p.Input} }

// WalkRel calls f for r and, where f returns true, for each operator below it.
func WalkRel(r Rel, f func(Rel) bool) {
	if !f(r) {
		return
	}
	for _, in := range r.Inputs() {
		WalkRel(in, f)
	}
}

// Exprs calls f for each expression of an operator itself, in the order in which it stands
// there.
func Exprs(r Rel, f func(Expr)) {
	all := func(es []Expr) {
		for _, e := range es {
			f(e)
		}
	}
	switch x := r.(type) {
	case *Scan:
	case *Join:
		all(x.On)
	case *Filter:
		all(x.Conds)
	case *Aggregate:
		all(x.Keys)
		for i := range x.Aggs {
			for _, e := range []Expr{x.Aggs[i].Arg, x.Aggs[i].Filter, x.Aggs[i].Fraction} {
				if e != nil {
					f(e)
				}
			}
		}
	case *Sort:
		for _, o := range x.By {
			f(o.Expr)
		}
	case *Limit:
		for _, e := range []Expr{x.Count, x.Offset} {
			if e != nil {
				f(e)
			}
		}
		all(x.Per)
	case *Project:
		all(x.Exprs)
	case *Values:
		for _, row := range x.Rows {
			all(row)
		}
	case *Window:
		x.exprs(f)
	case *Series:
		all(x.Args())
	case *ProjectSet:
		all(x.Args())
	case *SetOp, *Shared:
	default:
		panic(fmt.Sprintf("BUG: operator %T", r))
	}
}
