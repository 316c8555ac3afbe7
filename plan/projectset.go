package plan

import (
	"strings"

	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// ProjectSet yields, for each row of its input, the rows that functions return for values of it. It takes a row of each
// function at a time, and nulls of one that has no more, until none has (nodeProjectSet.c, and ROWS FROM in
// nodeFunctionscan.c).
type ProjectSet struct {
	Number int // Output.Of of the functions' columns, the number of the row from 1 on, and Keep
	Input  Rel
	Calls  []SetCall
	Keep   []Expr // values of the input's row
}

// SetCall is a call of a function that returns rows.
type SetCall struct {
	Func *sqlfn.SetFunction
	Arg  Expr // Bytea: the image of the value
}

// Inputs implements Rel.
func (p *ProjectSet) Inputs() []Rel { return []Rel{p.Input} }

// Ordinality is the position of the row's number among what it yields.
func (p *ProjectSet) Ordinality() (n int) {
	for _, c := range p.Calls {
		n += len(c.Func.Columns)
	}
	return n
}

// Args are all expressions over its input: of the calls, and Keep.
func (p *ProjectSet) Args() (args []Expr) {
	for _, c := range p.Calls {
		args = append(args, c.Arg)
	}
	return append(args, p.Keep...)
}

// WithArgs returns it with other expressions, in the order of Args.
func (p *ProjectSet) WithArgs(args []Expr) *ProjectSet {
	c := *p
	c.Calls = make([]SetCall, len(p.Calls))
	for i, call := range p.Calls {
		c.Calls[i] = SetCall{call.Func, args[i]}
	}
	c.Keep = args[len(p.Calls):]
	return &c
}

// Types are those of what it yields.
func (p *ProjectSet) Types() (types []vector.Type) {
	for _, c := range p.Calls {
		types = append(types, c.Func.Columns...)
	}
	return append(append(types, vector.TypeOf(vector.Int8)), typesOf(p.Keep)...)
}

// ColumnNames are the names of the functions' columns.
func (p *ProjectSet) ColumnNames() (names []string) {
	for _, c := range p.Calls {
		if c.Func.Names == nil {
			names = append(names, c.Func.Name)
		}
		names = append(names, c.Func.Names...)
	}
	return names
}

// FunctionNames are the names of the functions, for people.
func (p *ProjectSet) FunctionNames() string {
	var names []string
	for _, c := range p.Calls {
		names = append(names, c.Func.Name)
	}
	return strings.Join(names, ", ")
}
