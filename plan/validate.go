package plan

import (
	"errors"
	"fmt"
	"slices"

	"pgaccel/vector"
)

// Validate says what is wrong with a tree over table references and parameters, nil where
// nothing is: operators that read what their inputs do not yield, operands whose types do not
// agree as this package says, columns that are read and not mentioned, a table reference or an
// aggregation that is there twice.
func Validate(r Rel, tables []Table, params []vector.Type) error {
	v := validator{tables: tables, params: params, seen: map[any]bool{}}
	_, err := v.rel(r)
	return err
}

// yields is what expressions over an operator may read.
type yields struct {
	scans map[int]bool
	aggs  map[int]*Aggregate // by number
}

type validator struct {
	tables []Table
	params []vector.Type
	seen   map[any]bool // Scan.Table and aggregations
}

// once notes that something is there.
func (v *validator) once(what any, name string, number int) error {
	if v.seen[what] {
		return fmt.Errorf("%s %d is there twice", name, number)
	}
	v.seen[what] = true
	return nil
}

type (
	scanNumber      int
	aggregateNumber int
)

// rel checks an operator and those below it.
func (v *validator) rel(r Rel) (y yields, err error) {
	y = yields{map[int]bool{}, map[int]*Aggregate{}}
	for _, in := range r.Inputs() {
		if in == nil {
			return y, fmt.Errorf("%T without an input", r)
		}
		below, err := v.rel(in)
		if err != nil {
			return y, err
		}
		for t := range below.scans {
			y.scans[t] = true
		}
		for n, a := range below.aggs {
			y.aggs[n] = a
		}
	}
	Exprs(r, func(e Expr) {
		if err == nil {
			err = v.expr(e, y)
		}
	})
	if err != nil {
		return y, fmt.Errorf("%T: %w", r, err)
	}
	switch x := r.(type) {
	case *Scan:
		if x.Table < 0 || x.Table >= len(v.tables) {
			return y, fmt.Errorf("scan of table reference %d of %d", x.Table, len(v.tables))
		}
		y.scans[x.Table] = true
		err = v.once(scanNumber(x.Table), "table reference", x.Table)
	case *Join:
		err = conditions("join", x.On)
	case *Filter:
		err = conditions("filter", x.Conds)
	case *Aggregate:
		if err = v.once(aggregateNumber(x.Number), "aggregation", x.Number); err == nil {
			err = x.check()
		}
		y = yields{map[int]bool{}, map[int]*Aggregate{x.Number: x}}
	case *Limit:
		for _, e := range []Expr{x.Count, x.Offset} {
			if e != nil && !e.Type().Kind.IsInt() {
				err = fmt.Errorf("limit of type %v", e.Type().Kind)
			}
		}
	}
	return y, err
}

func conditions(where string, es []Expr) error {
	for _, e := range es {
		if k := e.Type().Kind; k != vector.Bool {
			return fmt.Errorf("a condition of a %s has type %v", where, k)
		}
	}
	return nil
}

// check looks at what only aggregations have.
func (a *Aggregate) check() error {
	for i := range a.Aggs {
		if err := a.Aggs[i].check(); err != nil {
			return fmt.Errorf("%s: %w", a.Aggs[i].Func, err)
		}
	}
	if a.Sets == nil {
		return nil
	}
	var all uint64
	for _, s := range a.Sets {
		all |= s
	}
	if len(a.Sets) < 2 || len(a.Keys) > 64 || all != uint64(1)<<len(a.Keys)-1 {
		return fmt.Errorf("grouping sets %b over %d keys", a.Sets, len(a.Keys))
	}
	return nil
}

// expr checks what an expression reads, and its operands.
func (v *validator) expr(e Expr, y yields) (err error) {
	aggregation := func(n int) *Aggregate {
		a := y.aggs[n]
		if a == nil {
			err = fmt.Errorf("aggregation %d is not below", n)
		}
		return a
	}
	Walk(e, func(x Expr) bool {
		t := x.Type()
		if t.Kind == vector.Invalid {
			err = fmt.Errorf("%T without a type", x)
			return false
		}
		switch x := x.(type) {
		case Column:
			if !y.scans[x.Table] {
				err = fmt.Errorf("column of table reference %d, which is not below", x.Table)
			} else if m := v.tables[x.Table]; !slices.Contains(m.Columns, x.Column) || m.Meta.Columns[x.Column].Unsupported != "" {
				err = fmt.Errorf("column %s is read, and not mentioned or not supported", m.Meta.Columns[x.Column].Name)
			}
		case Param:
			if p := v.params[x.Index]; p.Kind != t.Kind || p.Scale != t.Scale {
				err = fmt.Errorf("$%d has two types", x.Index+1)
			}
		case Key:
			if a := aggregation(x.Of); a != nil && (x.Index >= len(a.Keys) || a.Keys[x.Index].Type().Kind != t.Kind) {
				err = fmt.Errorf("key %d of %d", x.Index, len(a.Keys))
			}
		case Agg:
			if a := aggregation(x.Of); a != nil && (x.Index >= len(a.Aggs) || a.Aggs[x.Index].T.Kind != t.Kind) {
				err = fmt.Errorf("aggregate %d of %d", x.Index, len(a.Aggs))
			}
		case *Grouping:
			if a := aggregation(x.Of); a != nil && (a.Sets == nil || len(x.Keys) > 31 || t.Kind != vector.Int4 ||
				slices.ContainsFunc(x.Keys, func(k int) bool { return k >= len(a.Keys) })) {
				err = errors.New("GROUPING() without such grouping sets")
			}
		case *Call:
			if err = checkOperands(x); err != nil {
				err = fmt.Errorf("%s: %w", opNames[x.Op], err)
			}
		}
		return err == nil
	})
	return err
}

// checkOperands verifies that the operands of a call agree as this package says.
func checkOperands(c *Call) error {
	switch c.Op {
	case OpInvalid:
		return errors.New("no operator")
	case OpEq, OpNe, OpLt, OpLe, OpGt, OpGe, OpDistinct, OpIn:
		for _, a := range c.Args[1:] {
			x, y := comparedAs(c.Args[0].Type()), comparedAs(a.Type())
			if x.Scale == vector.VaryingScale || y.Scale == vector.VaryingScale {
				x.Scale, y.Scale = 0, 0
			}
			if x != y {
				return fmt.Errorf("operands of types %v and %v", x, y)
			}
		}
	case OpFunc:
		if c.Func == nil || !c.Func.Accepts(c.Site()) {
			return errors.New("no such function")
		}
	case OpAnd, OpOr, OpNot:
		for _, a := range c.Args {
			if k := a.Type().Kind; k != vector.Bool {
				return fmt.Errorf("an operand of type %v", k)
			}
		}
	case OpCase:
		if len(c.Args)%2 == 0 {
			return errors.New("no ELSE")
		}
		for i, a := range c.Args {
			want := c.T.Kind
			if i%2 == 0 && i < len(c.Args)-1 {
				want = vector.Bool
			}
			if k := a.Type().Kind; k != want {
				return fmt.Errorf("argument %d of type %v, not %v", i, k, want)
			}
		}
	case OpCoalesce:
		for _, a := range c.Args {
			if k := a.Type().Kind; k != c.T.Kind {
				return fmt.Errorf("an argument of type %v, not %v", k, c.T.Kind)
			}
		}
	}
	return nil
}

// comparedAs returns what two types that can be compared have in common.
func comparedAs(t vector.Type) vector.Type {
	switch {
	case t.Kind.IsInt():
		return vector.Type{Kind: vector.Int8}
	case t.Kind == vector.Text || t.Kind == vector.Varchar:
		return vector.Type{Kind: vector.Text}
	case t.Kind == vector.Numeric:
		return vector.Type{Kind: t.Kind, Scale: t.Scale}
	}
	return vector.Type{Kind: t.Kind}
}
