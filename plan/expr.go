package plan

import (
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// Expr is a typed scalar expression: Column, Const, Param, ServerConst, *Call, Key or Agg.
type Expr interface {
	// Type is the type of the result. For Call it decides the range in which the
	// result must lie: an integer outside of it is an error in Postgres, so that
	// execution must end with a Forward.
	Type() vector.Type
}

// Column is a column of one of the query's tables.
type Column struct {
	Table  int // position in Star.Tables
	Column int // position in that table's catalog.Table.Columns
	T      vector.Type
}

// Const is a constant.
type Const struct{ vector.Datum }

// Param is $Index+1, replaced by a Const before execution (Star.Bind).
type Param struct {
	Index int
	T     vector.Type
}

// ServerConst is the value of an expression over no rows that the server computes for each execution
// in the client's session, in the transaction and behind the gate: now() and what is made of it. It is
// replaced by a Const before execution (Star.Bind).
type ServerConst struct {
	Index int    // in Deps.ServerConsts
	SQL   string // every name in it has its schema, and each $n is cast
	T     vector.Type
	// Array: the value is the text of an array, as array_out writes it, whose members, of type T, are
	// the last of an OpIn (ArrayMembers).
	Array bool
}

// Key is the value of a key in an expression over groups: of Aggregate.Keys, or of the one
// aggregation of a Star, of Star.Group.
type Key struct {
	Of    int // Aggregate.Number
	Index int
	T     vector.Type
}

// Grouping is GROUPING(...) in an expression over groups: for each of the Keys, positions
// in Aggregate.Keys or Star.Group, a bit that is set where the group's set lacks it, the last
// argument's lowest. It occurs only where there are sets, with at most 31 keys.
type Grouping struct {
	Of   int // Aggregate.Number
	Keys []int
	T    vector.Type // Int4
}

// Type implements Expr.
func (g *Grouping) Type() vector.Type { return g.T }

// Agg is the value of an aggregate in an expression over groups: of Aggregate.Aggs, or of
// Star.Aggs.
type Agg struct {
	Of    int // Aggregate.Number
	Index int
	T     vector.Type
}

// Call applies an operator or function to arguments.
type Call struct {
	Op   Op
	Args []Expr
	T    vector.Type
	Func *sqlfn.Function // OpFunc; of an Insensitive OpLike lower() in its collation, nil: of ASCII alone
	// Insensitive is ILIKE instead of LIKE: LIKE of both in lower case.
	Insensitive bool
}

// Type implements Expr.
func (c Column) Type() vector.Type { return c.T }

// Type implements Expr.
func (c Const) Type() vector.Type { return c.Datum.Type }

// Type implements Expr.
func (p Param) Type() vector.Type { return p.T }

// Type implements Expr.
func (c ServerConst) Type() vector.Type { return c.T }

// Type implements Expr.
func (k Key) Type() vector.Type { return k.T }

// Type implements Expr.
func (a Agg) Type() vector.Type { return a.T }

// Type implements Expr.
func (c *Call) Type() vector.Type { return c.T }

// Op is an operator or function of a Call.
type Op uint8

// The operators. Null rules are SQL's: strict unless said otherwise.
const (
	OpInvalid   Op = iota
	OpAdd          // a + b; Numeric: equal scales. Date + Int4: days; a timestamp + Interval: microseconds
	OpSub          // a - b; Numeric: equal scales. Date - Int4: days; Date - Date: Int4; two timestamps: Interval
	OpMul          // a * b; Numeric: the scales add up
	OpDiv          // a / b, integers truncate; of Numerics VaryingScale (vector.Div)
	OpMod          // a % b, sign of a
	OpNeg          // -a
	OpAbs          // abs(a)
	OpEq           // a = b
	OpNe           // a <> b
	OpLt           // a < b
	OpLe           // a <= b
	OpGt           // a > b
	OpGe           // a >= b
	OpDistinct     // a IS DISTINCT FROM b; never null
	OpAnd          // n-ary, three-valued
	OpOr           // n-ary, three-valued
	OpNot          // three-valued
	OpIsNull       // never null
	OpIsNotNull    // never null
	OpIsTrue       // a IS TRUE; never null
	OpIsFalse      // a IS FALSE; never null
	OpIn           // Args[0] IN (Args[1:]); list members are Const after Bind
	OpLike         // Args[0] LIKE Args[1]; the pattern is Const after Bind
	OpCase         // when1, then1, when2, then2, ..., else (always present)
	OpCoalesce     // the first that is not null
	OpCast         // Args[0] to T; see package olap for the casts that exist
	OpFunc         // Func(Args...)
	OpSame         // the text that stands for all those that equal Args[0] under T's nondeterministic collation
)

// IsComparison reports whether an operation compares two values by their order: = <> < <= > >=.
func (op Op) IsComparison() bool {
	switch op {
	case OpEq, OpNe, OpLt, OpLe, OpGt, OpGe:
		return true
	}
	return false
}

// Site returns what the table of functions is told of a call of OpFunc.
func (c *Call) Site() sqlfn.Call {
	s := sqlfn.Call{Args: make([]sqlfn.Arg, len(c.Args)), T: c.T}
	for i, a := range c.Args {
		s.Args[i].Type = a.Type()
		if k, ok := a.(Const); ok {
			v := k.Value()
			s.Args[i].Const = &v
		}
	}
	return s
}

// Walk calls f for e and, where f returns true, for each argument below it.
func Walk(e Expr, f func(Expr) bool) {
	if e == nil || !f(e) {
		return
	}
	if c, ok := e.(*Call); ok {
		for _, a := range c.Args {
			Walk(a, f)
		}
	}
}

// Rewrite returns e with every node replaced by f(node), leaves first. Nodes that
// do not change are shared with e.
func Rewrite(e Expr, f func(Expr) Expr) Expr {
	c, ok := e.(*Call)
	if !ok {
		return f(e)
	}
	var args []Expr
	for i, a := range c.Args {
		n := Rewrite(a, f)
		if n != a && args == nil {
			args = append([]Expr(nil), c.Args...)
		}
		if args != nil {
			args[i] = n
		}
	}
	if args != nil {
		d := *c
		d.Args = args
		return f(&d)
	}
	return f(c)
}

// Tables returns a bit set of the tables that e reads (bit i for Star.Tables[i]).
func Tables(e Expr) uint64 {
	var set uint64
	Walk(e, func(x Expr) bool {
		if c, ok := x.(Column); ok {
			set |= 1 << uint(c.Table)
		}
		return true
	})
	return set
}
