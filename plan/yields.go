package plan

import "slices"

// Yields are what expressions over an operator may read: numbers of table references,
// aggregations and derived tables.
type Yields struct{ Tables, Groups, Outputs []int }

// OwnYields returns what an operator yields that those below it do not.
func OwnYields(r Rel) (y Yields) {
	output := 0
	switch x := r.(type) {
	case *Scan:
		y.Tables = []int{x.Table}
	case *Aggregate:
		y.Groups = []int{x.Number}
	case *Project:
		output = x.Number
	case *Shared:
		output = x.Number
	case *SetOp:
		output = x.Number
	case *Values:
		output = x.Number
	case *Join:
		output = x.Number
	case *Window:
		output = x.Number
	case *Series:
		output = x.Number
	case *ProjectSet:
		output = x.Number
	}
	if output > 0 {
		y.Outputs = []int{output}
	}
	return y
}

// YieldsOf returns what expressions over an operator may read.
func YieldsOf(r Rel) Yields {
	y := OwnYields(r)
	inputs := r.Inputs()
	switch x := r.(type) {
	case *Aggregate, *Project, *Shared, *SetOp, *Values, *Series, *ProjectSet:
		return y
	case *Join:
		switch x.Kind {
		case Semi, Anti, NotIn, Mark:
			inputs = inputs[:1]
		}
	}
	for _, in := range inputs {
		y.Add(YieldsOf(in))
	}
	return y
}

// Add adds what another operator yields.
func (y *Yields) Add(o Yields) {
	y.Tables = append(y.Tables, o.Tables...)
	y.Groups = append(y.Groups, o.Groups...)
	y.Outputs = append(y.Outputs, o.Outputs...)
}

// Has reports whether a leaf of an expression is of it.
func (y *Yields) Has(e Expr) bool {
	switch x := e.(type) {
	case Column:
		return slices.Contains(y.Tables, x.Table)
	case Key:
		return slices.Contains(y.Groups, x.Of)
	case Agg:
		return slices.Contains(y.Groups, x.Of)
	case *Grouping:
		return slices.Contains(y.Groups, x.Of)
	case Output:
		return slices.Contains(y.Outputs, x.Of)
	}
	return false
}

// ReadBy reports whether an expression reads any of it.
func (y *Yields) ReadBy(e Expr) (reads bool) {
	Walk(e, func(x Expr) bool {
		reads = reads || y.Has(x)
		return !reads
	})
	return reads
}
