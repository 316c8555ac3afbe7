package olap

import (
	"slices"

	"pgaccel/plan"
)

// Semi-join reduction (Bernstein and Chiu, Using semi-joins to solve relational queries, 1981; with
// groups it is the magic sets of Mumick and others, 1990): where few rows of the driving table are
// left by its own conditions and by small tables, these rows are computed first, as an intermediate
// relation, the core. Large tables and relations that are then looked up are computed for the keys
// that the core has: a sub-select's groups for the orders of one nation, not for all.
//
// What is not computed for other keys cannot fail, or it is computed for all: an error that
// PostgreSQL would report must not be missed.

const (
	// reduceRows is the fewest rows below a table or a relation for which it is worth while.
	reduceRows = 1 << 16
	// coreShare is the share of the rows below what is reduced that the core may be.
	coreShare = 8
	// filteredShare is the share of the largest that a table with conditions may be, for the core to read it:
	// what it removes need not be looked for in the largest.
	filteredShare = 2
)

// reduction is a core, and how the query is made of it.
type reduction struct {
	x    *execution
	root int    // the table that drives the core
	core uint64 // tables whose rows it is of
	late []int  // joins, by position, whose tables are computed for the core's keys
	// outputs are the columns of the core: columns of its tables, and the keys of late joins.
	outputs []plan.Expr
	to      []int // by table: its place in the query that reads the core
}

// readers counts the sources that read each relation of a statement.
func readers(q *plan.Star) map[*plan.Relation]int {
	n := map[*plan.Relation]int{}
	q.Walk(func(s *plan.Star) {
		for _, t := range s.Tables {
			if t.Relation != nil {
				n[t.Relation]++
			}
		}
	})
	return n
}

// columnsRead are the columns that the stars of a statement read of each relation of what functions return, by position.
func columnsRead(q *plan.Star) map[*plan.Relation][]bool {
	read := map[*plan.Relation][]bool{}
	q.Walk(func(s *plan.Star) {
		for _, t := range s.Tables {
			if r := t.Relation; r != nil && r.ProjectSet != nil && read[r] == nil {
				read[r] = make([]bool, len(r.Meta.Columns))
			}
		}
		note := func(t, column int) {
			if columns := read[s.Tables[t].Relation]; columns != nil {
				columns[column] = true
			}
		}
		s.Map(func(e plan.Expr) plan.Expr {
			plan.Walk(e, func(e plan.Expr) bool {
				if c, ok := e.(plan.Column); ok {
					note(c.Table, c.Column)
				}
				return true
			})
			return e
		})
		for _, j := range s.Joins {
			for _, column := range j.Key {
				note(j.Table, column)
			}
		}
	})
	return read
}

// reduce has the query read cores, where that is worth while: of its first table, and of those that
// are looked up, the last ones first.
func (x *execution) reduce() error {
	if len(x.q.Joins) == 0 || x.spill != nil || failsAnywhere(x.q) {
		return nil
	}
	if err := x.arrange(); err != nil {
		return err
	}
	x.restrict()
	if err := x.transfer(); err != nil {
		return err
	}
	tried := make([]bool, len(x.q.Tables))
	for {
		t := len(tried) - 1
		for t >= 0 && tried[t] {
			t--
		}
		if t < 0 {
			return nil
		}
		tried[t] = true
		to, err := x.reduceAt(t)
		if err != nil {
			return err
		}
		if to == nil {
			continue
		}
		if err := x.arrange(); err != nil {
			return err
		}
		was := tried
		tried = make([]bool, len(x.q.Tables))
		for t := range was {
			tried[to[t]] = tried[to[t]] || was[t]
		}
	}
}

// reduceAt is reduce of a table and what is looked up from it. It returns the new places of the
// tables, nil where all stays.
func (x *execution) reduceAt(root int) (to []int, err error) {
	q := x.q
	if q.Tables[root].Relation != nil || root > 0 && x.kinds[root] != plan.Inner {
		return nil, nil
	}
	r := &reduction{x: x, root: root, core: 1 << uint(root)}
	all := int(x.in.Tables[q.Tables[root].Table].Rows)
	filtered := len(x.conds[root]) > 0
	most := 0
	for _, j := range q.Joins {
		if x.parent[j.Table] == root {
			most = max(most, x.rowsBelow(q.Tables[j.Table]))
		}
	}
	for i, j := range q.Joins {
		t := j.Table
		if x.parent[t] != root {
			continue
		}
		// What is small beside the largest is for the core to read, whatever its size.
		rows := x.rowsBelow(q.Tables[t])
		computed := q.Tables[t].Relation != nil && x.relations[q.Tables[t].Relation] != nil
		// Keys that are not null for nulls are looked up above the left joins that make these, which the core has not.
		attached := x.kinds[t] == plan.Inner && !j.Many && (q.Tables[t].Relation == nil || computed) && r.has(j.Outer)
		share := coreShare
		if attached && len(x.conds[t]) > 0 {
			share = filteredShare
		}
		if x.opt.enough(rows, reduceRows) && !(attached && share*rows < most) {
			r.late = append(r.late, i)
		} else if attached {
			set := x.subtree(t)
			r.core |= set
			filtered = filtered || computed
			for u := range q.Tables {
				filtered = filtered || set>>uint(u)&1 != 0 && len(x.conds[u]) > 0
			}
		}
	}
	device := x.deviceLikely()
	r.late = slices.DeleteFunc(r.late, func(i int) bool {
		return device && x.builtOnDevice(q.Joins[i]) || !r.reducible(i) || !filtered && x.rowsBelow(q.Tables[q.Joins[i].Table]) < coreShare*all
	})
	if len(r.late) == 0 || len(q.Tables)+len(r.late) > plan.MaxTables {
		return nil, nil
	}
	r.wanted()
	star := r.coreStar()
	in, err := newExecution(x.ctx, star, x.in, x.opt)
	if err != nil {
		return nil, err
	}
	in.opt.Kept, in.keeps = nil, false
	in.within(x)
	if err := in.begin(); err != nil { // it may read a core of its own
		return nil, err
	}
	p, lowered, err := in.prepareRows(in.q.Output, cut{}, func(p *pipeline) bool {
		r.late = slices.DeleteFunc(r.late, func(i int) bool {
			return p.expectedRows() > float64(x.rowsBelow(q.Tables[q.Joins[i].Table]))/coreShare && !x.opt.Eager
		})
		return len(r.late) > 0
	})
	if err != nil || p == nil {
		return nil, err
	}
	rows, err := p.collect(lowered, cut{})
	if err != nil {
		return nil, err
	}
	source := plan.NewSource("core", star)
	columns := make([]relationColumn, len(star.Output))
	gathered := make([]*relationColumn, len(columns))
	for i := range columns {
		columns[i].t = star.Output[i].Type()
		gathered[i] = &columns[i]
	}
	if err := x.gather(gathered, in.collectedRows(p, rows.n, rows.cols), nil, rows.n, true); err != nil {
		return nil, err
	}
	if x.relations[source.Relation], err = x.asTable(source.Relation, columns, rows.n); err != nil {
		return nil, err
	}
	x.q = r.over(source)
	return r.to, nil
}

// deviceLikely reports whether a device may get the query, as far as is known before it is reduced.
func (x *execution) deviceLikely() bool {
	if x.opt.Device == nil || x.trace != nil {
		return false
	}
	if s := x.q.Tables[0]; s.Relation == nil && !x.opt.DeviceWait && !x.opt.enough(int(x.in.Tables[s.Table].Rows), deviceRows) {
		return false
	}
	_, ok := x.opt.Device.Limits()
	return ok && !slices.ContainsFunc(x.q.Aggs, func(a plan.AggregateCall) bool { return !aggregatesOnDevice(&a) })
}

// builtOnDevice reports whether a device may make the lookup of a join by itself, and keep it: faster than for some keys
// alone by the processor.
func (x *execution) builtOnDevice(j plan.StarJoin) bool {
	return x.q.Tables[j.Table].Relation == nil && !j.Many && len(j.Key) == 1
}

// standsFor reports whether the query has texts that stand for others: which, each execution finds out. A
// device keeps what it has made for the next.
func (x *execution) standsFor() (some bool) {
	x.q.Map(func(e plan.Expr) plan.Expr {
		plan.Walk(e, func(e plan.Expr) bool {
			c, ok := e.(*plan.Call)
			some = some || ok && c.Op == plan.OpSame
			return !some
		})
		return e
	})
	return some
}

// rowsBelow is the number of rows that the scans of a source read.
func (x *execution) rowsBelow(s plan.Source) (n int) {
	if s.Relation == nil {
		return int(x.in.Tables[s.Table].Rows)
	}
	if x.relations[s.Relation] != nil { // it has been computed
		return 0
	}
	for _, q := range s.Relation.Blocks {
		for _, t := range q.Tables {
			n += x.rowsBelow(t)
		}
	}
	return n
}

// reducible reports whether what a join attaches may be computed for some keys only.
func (r *reduction) reducible(join int) bool {
	j := r.x.q.Joins[join]
	if !r.of(j.Outer...) {
		return false
	}
	s := r.x.q.Tables[j.Table]
	if s.Relation == nil {
		return r.x.kinds[j.Table] == plan.Inner
	}
	return r.x.computedForSome(s.Relation) && !slices.ContainsFunc(s.Relation.Blocks, func(q *plan.Star) bool { return len(keysOf(q, j)) == 0 })
}

// keysOf returns the places among a join's keys that are what the star's rows are grouped by, or of
// its rows where it is not grouped.
func keysOf(q *plan.Star, j plan.StarJoin) (places []int) {
	for i, k := range j.Key {
		_, key := q.Output[k].(plan.Key)
		if key || !q.Grouped {
			places = append(places, i)
		}
	}
	return places
}

// failsAnywhere reports whether a condition or a key of a star may be an error: it is computed for
// rows that other conditions remove, too.
func failsAnywhere(q *plan.Star) bool {
	return mayFail(q.Filter) || slices.ContainsFunc(q.Joins, func(j plan.StarJoin) bool { return mayFail(j.On) || mayFail(j.Outer) })
}

// failsGrouped reports whether computing a row or a group of a star may be an error.
func failsGrouped(q *plan.Star) bool {
	return mayFail(q.Group) || mayFail(q.Having) || mayFail(q.Output) || slices.ContainsFunc(q.Aggs, func(a plan.AggregateCall) bool {
		return a.Arg != nil && (plan.Facts{}.MayFail(a.Arg) || a.Arg.Type().Kind.IsFloat()) || a.Filter != nil && plan.Facts{}.MayFail(a.Filter)
	})
}

// of reports whether expressions are over tables of the core, and such alone.
func (r *reduction) of(es ...plan.Expr) bool {
	return r.has(es) && !slices.ContainsFunc(es, func(e plan.Expr) bool { return plan.Tables(e) == 0 })
}

// has reports whether the core has all tables that expressions are over.
func (r *reduction) has(es []plan.Expr) bool {
	return !slices.ContainsFunc(es, func(e plan.Expr) bool { return plan.Tables(e)&^r.core != 0 })
}

// at returns the core's column that an expression is.
func (r *reduction) at(e plan.Expr) int {
	i := slices.Index(r.outputs, e)
	if i < 0 {
		i = len(r.outputs)
		r.outputs = append(r.outputs, e)
	}
	return i
}

// column is a column of the root.
func (r *reduction) column(k int) plan.Expr {
	return plan.Column{Table: r.root, Column: k, T: r.x.q.Tables[r.root].Meta.Columns[k].Type}
}

// wanted finds the core's columns.
func (r *reduction) wanted() {
	for _, i := range r.late {
		for _, e := range r.x.q.Joins[i].Outer {
			r.at(e)
		}
	}
	for _, j := range r.x.q.Joins {
		if j.Table == r.root {
			for _, k := range j.Key {
				r.at(r.column(k))
			}
		}
	}
	r.rest().Map(func(e plan.Expr) plan.Expr {
		plan.Walk(e, func(e plan.Expr) bool {
			if c, ok := e.(plan.Column); ok && r.core>>uint(c.Table)&1 != 0 {
				r.at(c)
			}
			return true
		})
		return e
	})
}

// rest is the query without what the core answers for: its joins and conditions.
func (r *reduction) rest() *plan.Star {
	q := *r.x.q
	q.Scalars = nil
	q.Filter = slices.DeleteFunc(slices.Clone(q.Filter), func(e plan.Expr) bool { return r.of(e) })
	q.Joins = slices.DeleteFunc(slices.Clone(q.Joins), func(j plan.StarJoin) bool {
		return j.Table != r.root && r.core>>uint(j.Table)&1 != 0
	})
	for i := range q.Joins {
		j := &q.Joins[i]
		if j.Table == r.root {
			j.On = nil
		}
		if r.x.kinds[j.Table] == plan.Inner {
			j.Kind = plan.Inner // also where a condition says so that is left out here
		}
	}
	return &q
}

// coreStar is the star whose rows the core is.
func (r *reduction) coreStar() *plan.Star {
	q := r.x.q
	to := make([]int, len(q.Tables)) // by position in q; -1: not of the core
	star := &plan.Star{Output: r.outputs, Tables: []plan.Source{q.Tables[r.root]}}
	for t := range q.Tables {
		switch {
		case t == r.root:
		case r.core>>uint(t)&1 != 0:
			to[t] = len(star.Tables)
			star.Tables = append(star.Tables, q.Tables[t])
		default:
			to[t] = -1
		}
	}
	for _, j := range q.Joins {
		if j.Table == r.root {
			star.Filter = append(star.Filter, j.On...)
		} else if r.core>>uint(j.Table)&1 != 0 {
			j.Kind = r.x.kinds[j.Table]
			star.Joins = append(star.Joins, j)
		}
	}
	for _, e := range q.Filter {
		if r.of(e) {
			star.Filter = append(star.Filter, e)
		}
	}
	return renumbered(star, to, func(c plan.Column) plan.Column {
		if c.Table = to[c.Table]; c.Table < 0 {
			panic("BUG: the core reads a table that it has not")
		}
		return c
	})
}

// withColumns returns an expression with other columns.
func withColumns(e plan.Expr, column func(plan.Column) plan.Column) plan.Expr {
	return plan.Rewrite(e, func(e plan.Expr) plan.Expr {
		if c, ok := e.(plan.Column); ok {
			return column(c)
		}
		return e
	})
}

// renumbered returns a star with other columns, and tables of joins.
func renumbered(q *plan.Star, to []int, column func(plan.Column) plan.Column) *plan.Star {
	q = q.Map(func(e plan.Expr) plan.Expr { return withColumns(e, column) })
	for i := range q.Joins {
		q.Joins[i].Table = to[q.Joins[i].Table]
	}
	return q
}

// over is the query that reads the core.
func (r *reduction) over(core plan.Source) *plan.Star {
	q := r.rest()
	to := make([]int, len(q.Tables))
	var tables []plan.Source
	for t := range q.Tables {
		switch to[t] = len(tables); {
		case t == r.root:
			tables = append(tables, core)
		case r.core>>uint(t)&1 == 0:
			tables = append(tables, q.Tables[t])
		}
	}
	for t := range q.Tables {
		if r.core>>uint(t)&1 != 0 {
			to[t] = to[r.root]
		}
	}
	r.to = to
	of := func(e plan.Expr) plan.Expr { return plan.Column{Table: to[r.root], Column: r.at(e), T: e.Type()} }
	q = renumbered(q, to, func(c plan.Column) plan.Column {
		if r.core>>uint(c.Table)&1 != 0 {
			return of(c).(plan.Column)
		}
		c.Table = to[c.Table]
		return c
	})
	q.Tables = tables
	for i := range q.Joins {
		if j := &q.Joins[i]; r.root > 0 && j.Table == to[r.root] {
			j.Key = slices.Clone(j.Key)
			for k, c := range j.Key {
				j.Key[k] = r.at(r.column(c))
			}
		}
	}
	for _, i := range r.late {
		j := r.x.q.Joins[i]
		at := slices.IndexFunc(q.Joins, func(k plan.StarJoin) bool { return k.Table == to[j.Table] })
		for k, e := range j.Outer {
			q.Joins[at].Outer[k] = of(e)
		}
		s := &q.Tables[to[j.Table]]
		if s.Relation != nil {
			reduced := *s.Relation
			reduced.Blocks = make([]*plan.Star, len(s.Relation.Blocks))
			for b, block := range s.Relation.Blocks {
				c := *block
				c.Tables, c.Joins = slices.Clone(c.Tables), slices.Clone(c.Joins)
				for _, k := range keysOf(block, j) {
					over := block.Output[j.Key[k]]
					if g, ok := over.(plan.Key); ok {
						over = block.Group[g.Index]
					}
					exist(&c, core, over, r.at(j.Outer[k]))
				}
				reduced.Blocks[b] = &c
			}
			s.Relation = &reduced
			continue
		}
		for k, c := range j.Key {
			exist(q, core, plan.Column{Table: to[j.Table], Column: c, T: s.Meta.Columns[c].Type}, r.at(j.Outer[k]))
		}
	}
	return q
}

// exist leaves of a star's rows those for which e is in a column of the core.
func exist(q *plan.Star, core plan.Source, e plan.Expr, column int) {
	q.Tables = append(q.Tables, core)
	q.Joins = append(q.Joins, plan.StarJoin{Table: len(q.Tables) - 1, Kind: plan.Inner, Exists: true, Outer: []plan.Expr{e}, Key: []int{column}})
}
