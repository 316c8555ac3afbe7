package plan

import (
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// ProjectSet yields, for each row of its input, the rows that a function returns for a value of it.
type ProjectSet struct {
	Number int // Output.Of of the function's columns, the number of its row from 1 on, and Keep
	Input  Rel
	Func   *sqlfn.SetFunction
	Arg    Expr   // Bytea: the image of the value
	Keep   []Expr // values of the input's row
}

// Inputs implements Rel.
func (p *ProjectSet) Inputs() []Rel { return []Rel{p.Input} }

// Ordinality is the position of the number of the function's row among what it yields.
func (p *ProjectSet) Ordinality() int { return len(p.Func.Columns) }

// Args are all expressions over its input.
func (p *ProjectSet) Args() []Expr { return append([]Expr{p.Arg}, p.Keep...) }

// Types are those of what it yields.
func (p *ProjectSet) Types() (types []vector.Type) {
	types = append(append(types, p.Func.Columns...), vector.TypeOf(vector.Int8))
	return append(types, typesOf(p.Keep)...)
}
