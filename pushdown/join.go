package pushdown

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/proto"

	"pgaccel/plan"
	"pgaccel/vector"
)

// equality is a condition `column of Table = expression over other tables`, or a
// constant.
type equality struct {
	cond   int // position in the list that it came from
	column int
	outer  plan.Expr
}

// joinTree chooses the driving table and hangs every other table on it by a unique
// key; where that cannot be, all but one: that one is attached by columns that are no
// key, so that a row may meet several of its rows (a many-to-many table of a hierarchy
// with weights). Where that cannot be either, what can be joined so is computed first, and
// the rest is joined with its rows. It returns the joins in the order of attachment, tables still
// numbered by appearance, and the positions in s.conds that became join keys.
func (s *star) joinTree() (root int, joins []plan.StarJoin, used map[int]bool) {
	for {
		t := s.newJoins()
		roots := t.roots()
		if len(roots) == 0 {
			fail(plan.ReasonShape, "a join of these forms")
		}
		var best *joinTree
		for _, many := range []bool{false, true} {
			for _, r := range roots {
				t.attachAll(r, many)
				if len(t.joins) == len(s.scans)-1 {
					return r, t.joins, t.used
				}
				if many && (best == nil || len(t.joins) > len(best.joins)) {
					c := *t
					best = &c
				}
			}
		}
		switch {
		case len(best.joins) > 0:
			s.nest(best.attached, nil)
		case !s.computedKey(best):
			s.at = s.placeOf(best.unattached())
			fail(plan.ReasonShape, "join on no unique key")
		}
	}
}

// joinTree is a driving table, and what was attached to it.
type joinTree struct {
	*star
	optional map[int]*leftJoin
	asks     map[int]*existence
	root     int
	attached uint64
	joins    []plan.StarJoin
	used     map[int]bool
}

func (s *star) newJoins() *joinTree {
	t := &joinTree{star: s, optional: map[int]*leftJoin{}, asks: map[int]*existence{}}
	for i := range s.lefts {
		t.optional[s.lefts[i].table] = &s.lefts[i]
	}
	for i := range s.exists {
		t.asks[s.exists[i].table] = &s.exists[i]
	}
	return t
}

// roots are the tables that may drive, the largest first: the driving table's rows are the query's
// work.
func (t *joinTree) roots() (roots []int) {
	for _, i := range t.scans {
		if t.optional[i] == nil && t.asks[i] == nil {
			roots = append(roots, i)
		}
	}
	slices.SortStableFunc(roots, func(i, j int) int {
		return cmp.Compare(t.sourceOf(j).Meta.Rows, t.sourceOf(i).Meta.Rows)
	})
	return roots
}

// placeOf is where a source is written; nil where nothing says.
func (s *star) placeOf(t int) proto.Message {
	if t < len(s.refs) {
		return s.refs[t]
	}
	for _, l := range s.leaves {
		if l.table == t {
			return s.places[l.rel].at
		}
	}
	return nil
}

// unattached returns the first table that cannot be attached.
func (t *joinTree) unattached() int {
	for _, i := range t.scans {
		if t.attached&(1<<i) == 0 {
			return i
		}
	}
	return t.root
}

// attachAll tries one driving table, with one join on no unique key if many is set.
func (t *joinTree) attachAll(root int, many bool) {
	t.root, t.attached, t.joins, t.used = root, 1<<root, nil, map[int]bool{}
	for progress := true; progress && len(t.joins) < len(t.scans)-1; {
		progress = false
		for _, i := range t.scans {
			if t.attached&(1<<i) == 0 && t.attach(i) {
				progress = true
			}
		}
		if !progress && many {
			if j, ok := t.attachMany(t.attached, t.optional, t.used); ok {
				t.add(j)
				progress, many = true, false
			}
		}
	}
}

func (t *joinTree) add(j plan.StarJoin) {
	t.attached |= 1 << j.Table
	t.joins = append(t.joins, j)
}

// attach attaches a table if that can be.
func (t *joinTree) attach(i int) bool {
	if x := t.asks[i]; x != nil {
		var reads uint64
		for _, e := range x.outer {
			reads |= plan.Tables(e)
		}
		if reads == 0 || reads&^t.attached != 0 {
			return false
		}
		t.add(plan.StarJoin{Table: i, Kind: x.kind, Exists: true, Key: x.key, Outer: x.outer, On: x.on})
		return true
	}
	var j plan.StarJoin
	var ok bool
	if l := t.optional[i]; l != nil {
		j, ok = t.attachLeft(i, t.attached, l, false)
	} else {
		j, ok = t.attachInner(i, t.attached, t.used)
	}
	if ok {
		t.add(j)
	}
	return ok
}

// nest computes what a tree has attached as a relation of its own, and key, an expression over it,
// where one is given. It returns what stands for that.
func (s *star) nest(attached uint64, key plan.Expr) plan.Expr {
	inside := func(e plan.Expr) bool { return plan.Tables(e) != 0 && plan.Tables(e)&^attached == 0 }
	in := &star{analyzer: s.analyzer, q: &plan.Star{}, number: -1, keys: s.keys}
	var rest []int
	for _, i := range s.scans {
		if attached&(1<<i) != 0 {
			in.scans = append(in.scans, i)
		} else {
			rest = append(rest, i)
		}
	}
	take := func(e plan.Expr) bool {
		if !inside(e) || readsScalar(e) {
			return false
		}
		in.conds = append(in.conds, e)
		return true
	}
	s.conds = slices.DeleteFunc(slices.Clone(s.conds), take)
	s.lefts = slices.DeleteFunc(slices.Clone(s.lefts), func(l leftJoin) bool {
		if attached&(1<<l.table) == 0 {
			return false
		}
		in.lefts = append(in.lefts, l)
		return true
	})
	s.exists = slices.DeleteFunc(slices.Clone(s.exists), func(x existence) bool {
		if attached&(1<<x.table) == 0 {
			return false
		}
		in.exists = append(in.exists, x)
		return true
	})
	l := &leaf{table: s.newRelation(), index: map[int]int{}, scalar: -1}
	s.leaves = append(s.leaves, l)
	s.scans = append(rest, l.table)
	if key != nil {
		key = l.column(s.analyzer, key)
	}
	s.mapExprs(func(e plan.Expr) plan.Expr {
		return plan.Rewrite(e, func(x plan.Expr) plan.Expr {
			if c, ok := x.(plan.Column); ok && attached&(1<<c.Table) != 0 {
				return l.column(s.analyzer, x)
			}
			return x
		})
	})
	if in.q.Output = l.read; len(l.read) == 0 {
		in.q.Output = []plan.Expr{one}
	}
	in.scalarsOf(s)
	in.finish()
	s.relations[l.table-len(s.tables)] = newSource("joined", []*plan.Star{in.q})
	return key
}

// scalarsOf gives a star the scalars of another one that its expressions read.
func (s *star) scalarsOf(of *star) {
	at := map[int]int{}
	var own []*plan.Star
	s.mapExprs(func(e plan.Expr) plan.Expr {
		return plan.Rewrite(e, func(x plan.Expr) plan.Expr {
			v, ok := x.(plan.Scalar)
			if !ok {
				return x
			}
			n, seen := at[v.Of]
			if !seen {
				n = len(own)
				at[v.Of], own = n, append(own, of.q.Scalars[v.Of])
			}
			v.Of = n
			return v
		})
	})
	s.q.Scalars = own
}

// readsScalar reports whether an expression reads a scalar of its star.
func readsScalar(e plan.Expr) (reads bool) {
	plan.Walk(e, func(x plan.Expr) bool {
		_, is := x.(plan.Scalar)
		reads = reads || is
		return !reads
	})
	return reads
}

func (s *star) attachInner(t int, attached uint64, used map[int]bool) (plan.StarJoin, bool) {
	eqs := s.equalities(s.conds, t, attached)
	keys := s.uniqueKey(t, eqs)
	if keys == nil {
		return plan.StarJoin{}, false
	}
	j := plan.StarJoin{Table: t, Kind: plan.Inner}
	for _, e := range keys {
		used[e.cond] = true
		j.Key, j.Outer = append(j.Key, e.column), append(j.Outer, e.outer)
	}
	return j, true
}

// attachMany attaches the smallest table that some columns equate with those attached.
func (s *star) attachMany(attached uint64, optional map[int]*leftJoin, used map[int]bool) (best plan.StarJoin, ok bool) {
	for _, t := range s.scans {
		if attached&(1<<t) != 0 || ok && s.sourceOf(t).Meta.Rows >= s.sourceOf(best.Table).Meta.Rows {
			continue
		}
		if l := optional[t]; l != nil {
			if left, possible := s.attachLeft(t, attached, l, true); possible {
				best, ok = left, true
			}
			continue
		}
		j := plan.StarJoin{Table: t, Kind: plan.Inner, Many: true}
		for _, e := range s.equalities(s.conds, t, attached) {
			if plan.Tables(e.outer) != 0 && !slices.Contains(j.Key, e.column) {
				j.Key, j.Outer = append(j.Key, e.column), append(j.Outer, e.outer)
			}
		}
		if key, is := s.keys[t]; is && j.Key == nil {
			j.Key, j.Outer = []int{key}, []plan.Expr{one}
		}
		if j.Key != nil {
			best, ok = j, true
		}
	}
	if ok && best.Kind == plan.Inner { // a second equality of a column stays a condition
		for _, e := range s.equalities(s.conds, best.Table, attached) {
			if i := slices.Index(best.Key, e.column); i >= 0 && s.intern.same(best.Outer[i], e.outer) {
				used[e.cond] = true
			}
		}
	}
	return best, ok
}

// attachLeft attaches by ON alone, because WHERE comes after the nulls are made. With many the
// columns that ON equates need not be a key.
func (s *star) attachLeft(t int, attached uint64, l *leftJoin, many bool) (plan.StarJoin, bool) {
	eqs := s.equalities(l.on, t, attached)
	keys := s.uniqueKey(t, eqs)
	if l.single || keys != nil { // all that is equated: what is unique by some is by all
		keys = eqs
	} else if many {
		keys = nil
		for _, e := range eqs {
			if plan.Tables(e.outer) != 0 {
				keys = append(keys, e)
			}
		}
	}
	key, each := s.keys[t]
	if each = each && many; keys == nil && !each {
		return plan.StarJoin{}, false
	}
	j := plan.StarJoin{Table: t, Kind: plan.Left, Many: many}
	if l.single {
		j.Kind, j.Many = plan.Single, false
	}
	if keys == nil {
		j.Key, j.Outer = []int{key}, []plan.Expr{one}
	}
	isKey := map[int]bool{}
	for _, e := range keys {
		isKey[e.cond] = true
		j.Key, j.Outer = append(j.Key, e.column), append(j.Outer, e.outer)
	}
	for i, c := range l.on {
		if isKey[i] {
			continue
		}
		if other := plan.Tables(c) &^ (1 << t); other&^attached != 0 {
			return plan.StarJoin{}, false
		} else if other != 0 {
			fail(plan.ReasonShape, "outer join with a condition over other tables")
		}
		j.On = append(j.On, c)
	}
	return j, true
}

// equalities finds the conditions that equate a column of t with an expression over
// attached tables, in a form that a lookup can use. Those with a constant, which
// complete a key such as (id, language), come last.
func (s *star) equalities(conds []plan.Expr, t int, attached uint64) []equality {
	var out, fixed []equality
	for i, e := range conds {
		c, ok := e.(*plan.Call)
		if !ok || c.Op != plan.OpEq {
			continue
		}
		for side := range 2 {
			col, isColumn := c.Args[side].(plan.Column)
			other := c.Args[1-side]
			tables := plan.Tables(other)
			if !isColumn || col.Table != t || tables&^attached != 0 || !lookupPossible(col.T, other.Type()) {
				continue
			}
			if _, plain := other.(plan.Column); col.T.Varying() && !plain { // what is computed has no order yet
				continue
			}
			eq := equality{cond: i, column: col.Column, outer: other}
			switch {
			case tables != 0:
				out = append(out, eq)
			case isLeaf(other):
				fixed = append(fixed, eq)
			}
		}
	}
	if out == nil {
		return nil // constants alone make no join
	}
	return append(out, fixed...)
}

// lookupPossible reports whether values of the two types that are equal are found by each other.
func lookupPossible(key, outer vector.Type) bool {
	switch {
	case key.Kind.IsInt() && outer.Kind.IsInt():
		return true
	case key.Kind.IsFloat() || outer.Kind.IsFloat(): // by keys in which NaNs, and the two zeros, are one
		return key.Kind.IsFloat() && outer.Kind.IsFloat()
	case key.Kind == vector.Numeric && outer.Kind == vector.Numeric:
		return key.Scale == outer.Scale
	case key.Kind == vector.BPChar || outer.Kind == vector.BPChar:
		return key.Kind == outer.Kind && key.Typmod == outer.Typmod // a constant has none
	case key.Kind.IsText() && outer.Kind.IsText():
		return true
	}
	return key.Kind == outer.Kind && key.Kind.Ordered()
}

// uniqueKey picks the equalities for one unique index of t, the shortest, nil where
// none is covered.
func (s *star) uniqueKey(t int, eqs []equality) []equality {
	var best []equality
	for _, ix := range s.sourceOf(t).Meta.Indexes {
		if !ix.Unique || len(ix.Columns) == 0 || best != nil && len(ix.Columns) >= len(best) {
			continue
		}
		var keys []equality
		for _, c := range ix.Columns {
			i := slices.IndexFunc(eqs, func(e equality) bool { return e.column == c })
			if i < 0 {
				break
			}
			keys = append(keys, eqs[i])
		}
		if !slices.ContainsFunc(keys, func(e equality) bool { return plan.Tables(e.outer) != 0 }) {
			continue
		}
		if len(keys) == len(ix.Columns) {
			best = keys
		}
	}
	return best
}

// renumber moves the driving table to position 0 and the others to the order in
// which they are attached.
func (s *star) renumber(root int) {
	q := s.q
	var order []int
	if root >= 0 {
		order = append(order, root)
	}
	for _, j := range q.Joins {
		order = append(order, j.Table)
	}
	to := make([]int, len(s.tables)+len(s.relations))
	for i, t := range order {
		to[t], q.Tables = i, append(q.Tables, s.sourceOf(t))
	}
	*q = *q.Map(func(e plan.Expr) plan.Expr {
		return plan.Rewrite(e, func(x plan.Expr) plan.Expr {
			if c, ok := x.(plan.Column); ok {
				c.Table = to[c.Table]
				return c
			}
			return x
		})
	})
	for i := range q.Joins {
		q.Joins[i].Table = to[q.Joins[i].Table]
	}
}
