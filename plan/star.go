package plan

import (
	"fmt"
	"slices"

	"pgaccel/catalog"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// MaxTables is the largest number of tables in a Star.
const MaxTables = 64

// StarJoin attaches one table to those before it: a lookup. Its key is unique, so that it
// never multiplies rows, unless Many is set. Where Kind is Single it need not be: a key that is there
// twice ends in a Forward.
type StarJoin struct {
	Table int // position in Star.Tables, not 0
	Kind  JoinKind
	// Outer are expressions over tables attached before (Tables[0] first), equal
	// one by one to the columns Key of Table. A null matches nothing.
	Outer []Expr
	Key   []int
	// On are further conditions over Table alone that decide whether a row of it
	// can be a partner. (For Inner joins they stand in Star.Filter instead.)
	On []Expr
	// Many is set where the key need not be unique: a row meets every partner, as in a
	// many-to-many table of a hierarchy with weights. At most one join of a star is such.
	Many bool
	// Exists is set where all that matters is whether there is a partner: the key need not be
	// unique, a row meets one partner at most, and nothing of it but Key is seen.
	Exists bool
}

// Order is one ORDER BY key.
type Order struct {
	Expr       Expr // over groups where the query is grouped, else over rows
	Desc       bool
	NullsFirst bool
}

// Source is what a Star reads rows of: a table of the statement, or an intermediate relation.
type Source struct {
	Meta     *catalog.Table // its columns, their nulls and unique keys, estimated rows
	Table    int            // position in Deps.Tables; of no meaning with a Relation
	Relation *Relation      // nil for a table
}

// Relation is an intermediate relation: it is computed, once, before what reads it.
type Relation struct {
	Meta *catalog.Table
	// Blocks are the stars whose rows, one after the other, it has; of each the Output are the
	// columns, but for those of Windows.
	Blocks  []*Star
	Windows []WindowColumn
	// Series makes rows of those of the one block, which are its Args; nil: they are the rows.
	Series *Series
	// ProjectSet makes rows of those of the one block, which are its Args; nil: they are the rows.
	ProjectSet *ProjectSet
	// Cut leaves some of these rows; nil for all.
	Cut *Cut
}

// NewSource is the source of a relation of such blocks.
func NewSource(name string, blocks ...*Star) Source {
	meta := &catalog.Table{Name: name}
	for i, e := range blocks[0].Output {
		meta.Columns = append(meta.Columns, catalog.Column{Name: fmt.Sprintf("c%d", i), Type: e.Type()})
	}
	return Source{Meta: meta, Relation: &Relation{Meta: meta, Blocks: blocks}}
}

// Cut leaves, of the rows that agree in Partition, Count behind the first Offset in an order.
type Cut struct {
	Partition     []int // columns
	Order         []ColumnOrder
	Count, Offset int64
}

// WindowColumn is a column of a relation that is computed over its rows, as Window says.
type WindowColumn struct {
	To        int // its position among the columns
	Func      WindowFunc
	Agg       *sqlfn.Aggregate // of WindowAggregate
	Arg       int              // column; -1 for none
	Filter    int              // column; -1 for none
	Default   int              // column; -1 for none
	Offset    int              // column; -1 for none, which is 1
	Frame     Frame
	Partition []int // columns
	Order     []ColumnOrder
	// Distinct and Delimiter are those of a StringAgg.
	Distinct  bool
	Delimiter string
}

// ColumnOrder is a key of an order of rows.
type ColumnOrder struct {
	Column           int
	Desc, NullsFirst bool
}

// Scalar stands for a value of the one row of a star, which is computed before the star that has it
// among its Scalars: null where there is no row; several are an error.
type Scalar struct {
	Of    int // in Star.Scalars
	Index int // in its Output
	T     vector.Type
}

// Type implements Expr.
func (s Scalar) Type() vector.Type { return s.T }

// Star is the form of query that is executed at once: rows of one source, each joined by keys
// to rows of others, filtered, grouped at most once, sorted and cut. A tree of operators becomes
// a Star, and those that it reads where it has more than that.
type Star struct {
	// Tables[0] drives: each of its rows that passes meets at most one row of every
	// other, unless a join is Many.
	Tables []Source
	Joins  []StarJoin
	// Scalars are computed first. Scalar, in any expression of the star, is the value of one.
	Scalars []*Star
	// Filter are the conjuncts of WHERE and of the inner joins' ON that are not
	// join keys. Only rows for which each is true remain. They see a Left join's
	// nulls.
	Filter []Expr

	// Grouped is true for aggregation, with or without GROUP BY. Without, there is
	// one group, and one row even over no input.
	Grouped bool
	Group   []Expr
	// Sets are the grouping sets, nil for a plain GROUP BY of all of Group: bit i of a
	// set stands for Group[i], at most 64 of them. Each set gives groups of its own, in
	// which the keys that it lacks are null: whatever the column allows. The same set may
	// occur twice, as in SQL, and then gives its groups twice; an empty one gives one row
	// even over no input. Every key is in some set.
	Sets   []uint64
	Aggs   []AggregateCall
	Having []Expr // conjuncts over groups

	// Output are the result columns in order: over groups (Key, Agg) where Grouped,
	// else over rows (Column).
	Output []Expr
	// Order is the order of the result; where empty any order is right.
	Order []Order
	// Limit and Offset are nil, or Int8 constants or parameters.
	Limit, Offset Expr

	// Constants are the calls over constants and parameters alone that may fail. PostgreSQL
	// computes them when it plans, wherever they stand: it reports an error though no row
	// needs the value. They may occur in what was simplified away, too.
	Constants []Expr
}

// Bind returns q, and what it reads, with parameters, and what the server has computed, replaced by
// constants, and calls that depend on time zones, or on the cases of letters, by those of these rules. q itself is not
// changed; where there is nothing to replace it is returned.
func (q *Star) Bind(params, server []vector.Datum, rules Rules) *Star {
	if len(params) == 0 && len(server) == 0 && !rules.Zones.Used && len(rules.Cases) == 0 {
		return q
	}
	v := values{params, server, rules.Zones, rules.Cases, map[zonedFunction]*sqlfn.Function{}, map[casedFunction]*sqlfn.Function{}}
	return q.bind(v, map[*Relation]*Relation{})
}

// Rules are those of the server that Bind puts in place.
type Rules struct {
	Zones Zones
	// Cases are those of collations, by OID: of Deps.Cased those that are known.
	Cases map[uint32]*sqltype.Cases
}

// values are those of Param and ServerConst, by their Index.
type values struct {
	params, server []vector.Datum
	zones          Zones
	cases          map[uint32]*sqltype.Cases
	zoned          map[zonedFunction]*sqlfn.Function // that calls have already
	cased          map[casedFunction]*sqlfn.Function // as well
}

// bind is Bind; bound are the relations that have been met, which several sources may share.
func (q *Star) bind(v values, bound map[*Relation]*Relation) *Star {
	b := q.Map(v.of)
	b.Scalars = bindAll(q.Scalars, v, bound)
	b.Tables = slices.Clone(q.Tables)
	for i := range b.Tables {
		t := &b.Tables[i]
		if t.Relation == nil {
			continue
		}
		r := bound[t.Relation]
		if r == nil {
			c := *t.Relation
			c.Blocks = bindAll(c.Blocks, v, bound)
			c.Windows = slices.Clone(c.Windows)
			for i := range c.Windows {
				w := &c.Windows[i].Frame
				w.Start.Offset, w.End.Offset = v.of(w.Start.Offset), v.of(w.End.Offset)
			}
			r = &c
			bound[t.Relation] = r
		}
		t.Relation = r
	}
	return b
}

// of returns an expression with constants for what has values; nil for nil.
func (v values) of(e Expr) Expr {
	if e == nil {
		return nil
	}
	return Rewrite(e, func(x Expr) Expr {
		switch x := x.(type) {
		case Param:
			return Const{readParam(v.params[x.Index], x.T)}
		case ServerConst:
			if !x.Array { // else the OpIn over it has its members
				return Const{v.server[x.Index]}
			}
		case *Call:
			if x.Op == OpIn {
				return v.members(x)
			}
			return v.inCases(v.inZone(x))
		}
		return x
	})
}

// members returns an OpIn whose last member is an array with the array's members in its place.
func (v values) members(c *Call) Expr {
	last := len(c.Args) - 1
	if last < 1 {
		return c
	}
	array, ok := c.Args[last].(ServerConst)
	if !ok || !array.Array {
		return c
	}
	list, ok := ArrayMembers(v.server[array.Index].Str, array.T)
	if !ok || len(list) == 0 {
		panic("BUG: an array that cannot be read")
	}
	in := *c
	in.Args = slices.Clone(c.Args[:last])
	for _, d := range list {
		in.Args = append(in.Args, Const{d})
	}
	if len(in.Args) == 2 {
		in.Op = OpEq
	}
	return &in
}

func bindAll(stars []*Star, v values, bound map[*Relation]*Relation) []*Star {
	out := slices.Clone(stars)
	for i := range out {
		out[i] = out[i].bind(v, bound)
	}
	return out
}

// Walk calls f for q and each star that it reads, those first, and each once.
func (q *Star) Walk(f func(*Star)) { q.walk(f, map[*Relation]bool{}) }

func (q *Star) walk(f func(*Star), met map[*Relation]bool) {
	for _, s := range q.Scalars {
		s.walk(f, met)
	}
	for i := range q.Tables {
		if r := q.Tables[i].Relation; r != nil && !met[r] {
			met[r] = true
			for _, s := range r.Blocks {
				s.walk(f, met)
			}
		}
	}
	f(q)
}

// Map returns q with each of its own expressions replaced by what f returns for it. q itself is not
// changed.
func (q *Star) Map(f func(Expr) Expr) *Star {
	one := func(e Expr) Expr {
		if e == nil {
			return nil
		}
		return f(e)
	}
	all := func(es []Expr) []Expr {
		if es == nil {
			return nil
		}
		out := make([]Expr, len(es))
		for i, e := range es {
			out[i] = f(e)
		}
		return out
	}
	m := *q
	m.Joins = slices.Clone(q.Joins)
	for i := range m.Joins {
		j := &m.Joins[i]
		j.Outer, j.On = all(j.Outer), all(j.On)
	}
	m.Filter, m.Group, m.Having, m.Output = all(q.Filter), all(q.Group), all(q.Having), all(q.Output)
	m.Aggs = slices.Clone(q.Aggs)
	for i := range m.Aggs {
		a := &m.Aggs[i]
		a.Arg, a.Filter, a.Fraction = one(a.Arg), one(a.Filter), one(a.Fraction)
	}
	m.Order = slices.Clone(q.Order)
	for i := range m.Order {
		m.Order[i].Expr = f(m.Order[i].Expr)
	}
	m.Limit, m.Offset = one(q.Limit), one(q.Offset)
	m.Constants = all(q.Constants)
	return &m
}
