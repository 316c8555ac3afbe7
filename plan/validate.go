package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"pgaccel/vector"
)

// Validate says what is wrong with a tree over table references and parameters, nil where
// nothing is: operators that read what their inputs do not yield, operands whose types do not
// agree as this package says, columns that are read and not mentioned, a table reference, an
// aggregation or a derived table that is there twice.
func Validate(r Rel, tables []Table, params []vector.Type) error {
	v := validator{tables: tables, params: params, seen: map[any]bool{}}
	_, err := v.rel(r, nothing())
	return err
}

// yields is what expressions over an operator may read.
type yields struct {
	scans   map[int]bool
	aggs    map[int]*Aggregate    // by number
	outputs map[int][]vector.Type // by number
}

func nothing() yields {
	return yields{map[int]bool{}, map[int]*Aggregate{}, map[int][]vector.Type{}}
}

func (y *yields) add(o yields) {
	maps.Copy(y.scans, o.scans)
	maps.Copy(y.aggs, o.aggs)
	maps.Copy(y.outputs, o.outputs)
}

type validator struct {
	tables []Table
	params []vector.Type
	seen   map[any]bool // Scan.Table, aggregations and derived tables
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
	outputNumber    int
)

func typesOf(es []Expr) []vector.Type {
	types := make([]vector.Type, len(es))
	for i, e := range es {
		types[i] = e.Type()
	}
	return types
}

// rel checks an operator and those below it. outer is what it may read of Lateral joins around it.
func (v *validator) rel(r Rel, outer yields) (y yields, err error) {
	y = nothing()
	var left yields // of a join
	join, _ := r.(*Join)
	for i, in := range r.Inputs() {
		if p, ok := in.(*Project); in == nil || ok && p == nil {
			return y, fmt.Errorf("%T without an input", r)
		}
		if shared, ok := r.(*Shared); ok {
			if v.seen[shared.Plan] {
				continue
			}
			v.seen[shared.Plan] = true
		}
		seen := outer
		if join != nil && join.Lateral && i == 1 {
			seen = nothing()
			seen.add(outer)
			seen.add(y)
		}
		below, err := v.rel(in, seen)
		if err != nil {
			return y, err
		}
		y.add(below)
		if i == 0 {
			left = below
		}
	}
	readable := nothing()
	readable.add(outer)
	readable.add(y)
	Exprs(r, func(e Expr) {
		if err == nil {
			err = v.expr(e, readable)
		}
	})
	if err != nil {
		return y, fmt.Errorf("%T: %w", r, err)
	}
	return v.yielded(r, y, left)
}

// yielded checks what only operators of one kind have and returns what expressions above may read,
// of y below it, of which left is the first input's.
func (v *validator) yielded(r Rel, y, left yields) (_ yields, err error) {
	switch x := r.(type) {
	case *Scan:
		if x.Table < 0 || x.Table >= len(v.tables) {
			return y, fmt.Errorf("scan of table reference %d of %d", x.Table, len(v.tables))
		}
		y.scans[x.Table] = true
		err = v.once(scanNumber(x.Table), "table reference", x.Table)
	case *Join:
		return v.join(x, y, left)
	case *Filter:
		err = conditions("filter", x.Conds)
	case *Aggregate:
		if err = v.once(aggregateNumber(x.Number), "aggregation", x.Number); err == nil {
			err = x.check()
		}
		y = nothing()
		y.aggs[x.Number] = x
	case *Project:
		return v.derived(x.Number, typesOf(x.Exprs))
	case *Window:
		if err = x.check(); err == nil {
			var value yields
			value, err = v.derived(x.Number, []vector.Type{x.Type()})
			y.add(value)
		}
		if x.Number == 0 {
			err = errors.New("window without a number")
		}
	case *Shared:
		if err = byPosition(x.Plan); err == nil {
			return v.derived(x.Number, typesOf(x.Plan.Exprs))
		}
	case *SetOp:
		if err = sameTypes(typesOf(x.Left.Exprs), typesOf(x.Right.Exprs)); err == nil {
			err = errors.Join(byPosition(x.Left), byPosition(x.Right))
		}
		if err == nil {
			return v.derived(x.Number, typesOf(x.Left.Exprs))
		}
	case *Values:
		if len(x.Rows) == 0 {
			return y, errors.New("values without a row")
		}
		for _, row := range x.Rows {
			if err = sameTypes(typesOf(x.Rows[0]), typesOf(row)); err != nil {
				return y, err
			}
		}
		return v.derived(x.Number, typesOf(x.Rows[0]))
	case *Series:
		for _, e := range x.Args() {
			if e.Type().Kind != x.T.Kind {
				return y, errors.New("series of several types")
			}
		}
		return v.derived(x.Number, x.Types())
	case *ProjectSet:
		if len(x.Calls) == 0 {
			return y, errors.New("rows of no function")
		}
		for _, c := range x.Calls {
			if c.Arg.Type().Kind != vector.Bytea {
				return y, errors.New("rows of a function of a value that is no image")
			}
		}
		return v.derived(x.Number, x.Types())
	case *Limit:
		for _, e := range []Expr{x.Count, x.Offset} {
			if e != nil && !e.Type().Kind.IsInt() {
				err = fmt.Errorf("limit of type %v", e.Type().Kind)
			}
		}
	}
	return y, err
}

// join checks a join and returns what it yields, of y on both sides and left on one.
func (v *validator) join(j *Join, y, left yields) (_ yields, err error) {
	if err := conditions("join", j.On); err != nil {
		return y, err
	}
	if (j.Kind == Mark) != (j.Number != 0) {
		return y, fmt.Errorf("%s join with number %d", joinNames[j.Kind], j.Number)
	}
	switch j.Kind {
	case Semi, Anti, NotIn:
		return left, nil
	case Mark:
		mark, err := v.derived(j.Number, []vector.Type{vector.TypeOf(vector.Bool)})
		left.add(mark)
		return left, err
	}
	return y, nil
}

// derived is what a derived table yields; nothing where it has no number.
func (v *validator) derived(number int, types []vector.Type) (y yields, err error) {
	y = nothing()
	if number != 0 {
		err = v.once(outputNumber(number), "derived table", number)
		y.outputs[number] = types
	}
	return y, err
}

// byPosition looks at a Project that is an operator's input.
func byPosition(p *Project) error {
	if p.Number != 0 {
		return fmt.Errorf("derived table %d is an input by position", p.Number)
	}
	return nil
}

// sameTypes reports rows that differ in their types.
func sameTypes(a, b []vector.Type) error {
	if len(a) != len(b) {
		return fmt.Errorf("rows of %d and %d values", len(a), len(b))
	}
	for i := range a {
		if a[i].Kind != b[i].Kind || a[i].Scale != b[i].Scale {
			return fmt.Errorf("value %d of types %s and %s", i, FormatType(a[i]), FormatType(b[i]))
		}
	}
	return nil
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
			if p := v.params[x.Index]; (p.Kind != t.Kind || p.Scale != t.Scale) && !readAs(p, t) {
				err = fmt.Errorf("$%d has two types", x.Index+1)
			}
		case ServerConst:
			if x.SQL == "" {
				err = fmt.Errorf("a constant of the server's without its text")
			}
		case Key:
			if a := aggregation(x.Of); a != nil && (x.Index >= len(a.Keys) || a.Keys[x.Index].Type().Kind != t.Kind) {
				err = fmt.Errorf("key %d of %d", x.Index, len(a.Keys))
			}
		case Agg:
			if a := aggregation(x.Of); a != nil && (x.Index >= len(a.Aggs) || a.Aggs[x.Index].T.Kind != t.Kind) {
				err = fmt.Errorf("aggregate %d of %d", x.Index, len(a.Aggs))
			}
		case Output:
			if types, ok := y.outputs[x.Of]; !ok {
				err = fmt.Errorf("derived table %d is not below", x.Of)
			} else if x.Index >= len(types) || types[x.Index].Kind != t.Kind || types[x.Index].Scale != t.Scale {
				err = fmt.Errorf("output %d of %d", x.Index, len(types))
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
