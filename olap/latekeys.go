package olap

import (
	"errors"
	"slices"

	"pgaccel/plan"
	"pgaccel/vector"
)

// Late materialization of keys (Abadi and others, Materialization strategies in a column-oriented DBMS, 2007): customers are
// grouped by their number and shown with their names and addresses, of which the number decides. Where LIMIT leaves few groups
// in an order that has none of these, rows are grouped by what decides alone (functional dependencies, SQL:2023-2, 4.27), and
// the others are looked up for the groups that are left.

// lateMost is the largest LIMIT with which keys are late.
const lateMost = 1 << 12

// lateKeys are the keys of a grouped star that others decide.
type lateKeys struct {
	of    *plan.Star // with all keys
	exprs []plan.Expr
	// decided are the tables that the other keys decide a row of. roots are those that they name by a unique key; what is looked
	// up from them is decided, too.
	decided uint64
	roots   []lateRoot
}

type lateRoot struct {
	table int
	keys  []int // of the star with fewer keys, by position
	key   []int // columns of the table
}

// lateRef is a late key, by position.
type lateRef struct {
	i int
	t vector.Type
}

// Type implements plan.Expr.
func (r lateRef) Type() vector.Type { return r.t }

// late has the query group by fewer keys, where that is worth while.
func (x *execution) late() {
	q := x.q
	want := x.offset + x.limit
	if !q.Grouped || !x.limited || want < 0 || want > lateMost || len(q.Order) == 0 || q.Sets != nil || x.trace != nil || x.spill != nil || len(q.Group) < 2 {
		return
	}
	l := &lateKeys{of: q}
	stays := l.find(x)
	var group []plan.Expr
	at := make([]plan.Expr, len(q.Group)) // by position in q.Group: what stands for the key
	for i, e := range q.Group {
		if tables := plan.Tables(e); !stays[i] && tables != 0 && tables&^l.decided == 0 && !mayFail([]plan.Expr{e}) && !e.Type().Varying() && !e.Type().Kind.IsFloat() && !x.looseKey(i) {
			at[i] = lateRef{len(l.exprs), e.Type()}
			l.exprs = append(l.exprs, e)
			continue
		}
		at[i] = plan.Key{Index: len(group), T: e.Type()}
		group = append(group, x.equalOuter(e))
	}
	renamed := func(e plan.Expr) plan.Expr {
		return plan.Rewrite(e, func(e plan.Expr) plan.Expr {
			if k, ok := e.(plan.Key); ok {
				return at[k.Index]
			}
			return e
		})
	}
	reads := func(e plan.Expr) (late, grouping bool) {
		plan.Walk(e, func(e plan.Expr) bool {
			_, is := e.(lateRef)
			_, g := e.(*plan.Grouping)
			late, grouping = late || is, grouping || g
			return true
		})
		return late, grouping
	}
	star := *q
	star.Group = group
	star.Output, star.Order, star.Having = slices.Clone(q.Output), slices.Clone(q.Order), slices.Clone(q.Having)
	grouping := false
	for i := range star.Output {
		star.Output[i] = renamed(star.Output[i])
		_, g := reads(star.Output[i])
		grouping = grouping || g
	}
	for i := range star.Order {
		star.Order[i].Expr = renamed(star.Order[i].Expr)
		late, g := reads(star.Order[i].Expr)
		if grouping = grouping || g; late && i == 0 {
			return
		}
	}
	for i := range star.Having {
		star.Having[i] = renamed(star.Having[i])
		if late, g := reads(star.Having[i]); late || g {
			return
		}
	}
	// Texts are what lookups of large tables are slow to have; others cost less than to look for the rows of a few groups.
	large := func(tables uint64) (large bool) {
		for t := range q.Tables {
			large = large || tables>>uint(t)&1 != 0 && x.opt.enough(int(x.tabs[t].Rows), reduceRows)
		}
		return large
	}
	worth := slices.ContainsFunc(l.exprs, func(e plan.Expr) bool {
		return e.Type().Kind.IsString() && large(plan.Tables(e))
	})
	if !worth || grouping || mayFail(star.Output) {
		return
	}
	for r := range l.roots {
		for k, i := range l.roots[r].keys {
			l.roots[r].keys[k] = at[i].(plan.Key).Index
		}
	}
	x.q, x.lateKeys = &star, l
}

// find finds the tables that keys decide. stays says which keys are needed for it.
func (l *lateKeys) find(x *execution) (stays []bool) {
	q := x.q
	stays = make([]bool, len(q.Group))
	keyOf := func(e plan.Expr) int {
		c, ok := e.(plan.Column)
		if !ok || !inOrder(c.T) {
			return -1
		}
		return slices.Index(q.Group, e)
	}
	// root notes that a table has a unique key of columns that are keys, or are equal to such.
	root := func(t int, key []int, of func(i int) plan.Expr) bool {
		r := lateRoot{table: t, key: key}
		for i := range key {
			k := keyOf(of(i))
			if k < 0 {
				return false
			}
			r.keys = append(r.keys, k)
		}
		for _, k := range r.keys {
			stays[k] = true
		}
		l.roots, l.decided = append(l.roots, r), l.decided|1<<uint(t)
		return true
	}
	joined := func(j plan.StarJoin) bool {
		return !j.Many && !j.Exists && x.innerUpTo(j.Table, 0) && q.Tables[j.Table].Relation == nil && q.Tables[j.Table].Meta.UniqueOn(j.Key)
	}
	// follow notes what is looked up from decided tables.
	follow := func() {
		for again := true; again; {
			again = false
			for _, j := range q.Joins {
				if l.decided>>uint(j.Table)&1 == 0 && joined(j) && !slices.ContainsFunc(j.Outer, func(e plan.Expr) bool { return plan.Tables(e)&^l.decided != 0 || plan.Tables(e) == 0 }) {
					l.decided, again = l.decided|1<<uint(j.Table), true
				}
			}
		}
	}
	for t := range q.Tables {
		meta := q.Tables[t].Meta
		if q.Tables[t].Relation != nil || !x.innerUpTo(t, 0) {
			continue
		}
		for _, ix := range meta.Indexes {
			column := func(i int) plan.Expr {
				return plan.Column{Table: t, Column: ix.Columns[i], T: meta.Columns[ix.Columns[i]].Type}
			}
			if l.decided>>uint(t)&1 == 0 && ix.Unique && len(ix.Columns) > 0 && !slices.ContainsFunc(ix.Columns, func(c int) bool { return !meta.Columns[c].NotNull }) && root(t, ix.Columns, column) {
				follow()
			}
		}
	}
	for _, j := range q.Joins {
		if l.decided>>uint(j.Table)&1 == 0 && joined(j) {
			root(j.Table, j.Key, func(i int) plan.Expr {
				if j.Outer[i].Type() != q.Tables[j.Table].Meta.Columns[j.Key[i]].Type {
					return nil // what they have in common is not how they are stored
				}
				return j.Outer[i]
			})
			follow()
		}
	}
	return stays
}

// equalOuter returns what a column of a table is joined to, where that is of its type; else the column. The table need not
// deliver it then.
func (x *execution) equalOuter(e plan.Expr) plan.Expr {
	c, ok := e.(plan.Column)
	if !ok || !inOrder(c.T) {
		return e
	}
	for _, j := range x.q.Joins {
		if i := slices.Index(j.Key, c.Column); j.Table == c.Table && i >= 0 && x.innerUpTo(j.Table, 0) {
			if o, ok := j.Outer[i].(plan.Column); ok && o.T == c.T {
				return x.equalOuter(o)
			}
		}
	}
	return e
}

// lateColumns computes all late keys for the groups that are left.
func (o *overview) lateColumns() error {
	x := o.x
	l := x.lateKeys
	number := vector.TypeOf(vector.Int8)
	core := &plan.Star{Output: []plan.Expr{plan.Const{Datum: vector.Int(vector.Int8, 0)}}}
	columns := []relationColumn{{t: number, v: make([]int64, o.n)}}
	for i := range columns[0].v {
		columns[0].v[i] = int64(i)
	}
	for i, e := range x.q.Group {
		c, err := o.column(plan.Key{Index: i, T: e.Type()})
		if err != nil {
			return err
		}
		core.Output = append(core.Output, e)
		columns = append(columns, relationColumn{t: e.Type()})
		if inOrder(e.Type()) { // of others nothing is looked up
			columns[i+1].v, columns[i+1].nulls = c.v, c.nulls
		} else {
			columns[i+1].v = make([]int64, o.n)
		}
	}
	if err := x.take(int64(o.n) * 9 * int64(len(l.exprs)+1)); err != nil {
		return err
	}
	source := plan.NewSource("groups", core)
	star, to := &plan.Star{Tables: []plan.Source{source}, Output: []plan.Expr{plan.Column{T: number}}}, make([]int, len(l.of.Tables))
	add := func(t int) int {
		to[t] = len(star.Tables)
		star.Tables = append(star.Tables, l.of.Tables[t])
		return to[t]
	}
	renumber := func(e plan.Expr) plan.Expr {
		return withColumns(e, func(c plan.Column) plan.Column {
			c.Table = to[c.Table]
			return c
		})
	}
	known := uint64(0)
	var restricted []func()
	for _, r := range l.roots {
		known |= 1 << uint(r.table)
		j := plan.StarJoin{Table: add(r.table), Kind: plan.Inner, Key: r.key}
		for i, k := range r.keys {
			outer := plan.Column{Column: k + 1, T: x.q.Group[k].Type()}
			j.Outer = append(j.Outer, outer)
			column := plan.Column{Table: j.Table, Column: r.key[i], T: l.of.Tables[r.table].Meta.Columns[r.key[i]].Type}
			restricted = append(restricted, func() { exist(star, source, column, k+1) })
		}
		star.Joins = append(star.Joins, j)
	}
	for again := true; again; {
		again = false
		for _, j := range l.of.Joins {
			if l.decided>>uint(j.Table)&1 == 0 || known>>uint(j.Table)&1 != 0 || slices.ContainsFunc(j.Outer, func(e plan.Expr) bool { return plan.Tables(e)&^known != 0 }) {
				continue
			}
			known, again = known|1<<uint(j.Table), true
			outer := slices.Clone(j.Outer)
			for i := range outer {
				outer[i] = renumber(outer[i])
			}
			star.Joins = append(star.Joins, plan.StarJoin{Table: add(j.Table), Kind: plan.Inner, Outer: outer, Key: j.Key})
		}
	}
	for _, e := range l.exprs {
		star.Output = append(star.Output, renumber(e))
	}
	for _, f := range restricted { // rows of other groups are not read
		f()
	}
	relation, err := x.asTable(source.Relation, columns, o.n)
	if err != nil {
		return err
	}
	x.relations[source.Relation] = relation
	defer delete(x.relations, source.Relation)
	opt := x.opt
	opt.Temp, opt.Kept, opt.Device, opt.Report = nil, nil, nil, nil
	in, err := newExecution(x.ctx, star, x.in, opt)
	if err != nil {
		return err
	}
	in.within(x)
	if err := in.begin(); err != nil {
		return err
	}
	r, err := in.compute()
	if err != nil {
		return err
	}
	if r.n != o.n {
		return errors.New("BUG: the keys of a group decide no row, or several")
	}
	places := make([]uint32, o.n)
	for row, group := range r.output[0].v {
		places[group] = uint32(row)
	}
	for i, e := range l.exprs {
		c := r.output[i+1].pick(places)
		o.cols[lateRef{i, e.Type()}] = &c
	}
	return nil
}
