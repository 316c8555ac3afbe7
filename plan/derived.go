package plan

// Shared yields the rows of Plan, which several operators of a tree have in common: a WITH query
// that is read more than once, or is to be computed by itself. Each has a number of its own.
type Shared struct {
	Number int // Output.Of of what it yields
	Name   string
	Plan   *Project
}

// SetKind says which rows of two inputs a SetOp yields.
type SetKind uint8

// The set operations.
const (
	Union SetKind = iota
	Intersect
	Except
)

// SetOp yields rows of Left and Right, whose values correspond by position and have the same
// types: without All each row once. Rows are the same where their values are, null being the same
// as null.
type SetOp struct {
	Number      int // Output.Of of what it yields
	Kind        SetKind
	All         bool
	Left, Right *Project
}

// Values yields rows of expressions, which read nothing but what Lateral joins around it give. A
// SELECT without FROM has one row without values.
type Values struct {
	Number int // Output.Of of what it yields; 0 where that is no values
	Rows   [][]Expr
}

// Inputs implements Rel.
func (s *Shared) Inputs() []Rel { return []Rel{s.Plan} }

// Inputs implements Rel.
func (s *SetOp) Inputs() []Rel { return []Rel{s.Left, s.Right} }

// Inputs implements Rel.
func (*Values) Inputs() []Rel { return nil }
