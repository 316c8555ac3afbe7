package olap

import (
	"slices"

	"pgaccel/colstore"
	"pgaccel/plan"
	"pgaccel/vector"
)

// segmentRows is the number of rows of an intermediate relation's segments: a morsel, as of a
// table, so that its rows are scanned by several workers.
const segmentRows = 1 << 16

// relation is an intermediate relation: a table of plain columns that nobody else sees, as the
// open segments of a table are, so that scans, lookups and groups read it like one.
type relation struct {
	tab *colstore.Table
	// dicts are those of text columns, by column. Codes are as in what was computed: of a
	// table's dictionary, or of a list.
	dicts []*dict
}

// begin computes what the query reads: scalars, which become constants, and relations. It then
// arranges the joins.
func (x *execution) begin() error {
	if x.relations == nil {
		x.relations, x.readers, x.read = map[*plan.Relation]*relation{}, readers(x.q), columnsRead(x.q)
	}
	if len(x.q.Scalars) > 0 {
		values := make([][]plan.Const, len(x.q.Scalars))
		for i, s := range x.q.Scalars {
			var err error
			if values[i], err = x.scalar(s); err != nil {
				return err
			}
		}
		x.q = x.q.Map(func(e plan.Expr) plan.Expr {
			return plan.Rewrite(e, func(e plan.Expr) plan.Expr {
				switch e := e.(type) {
				case plan.Scalar:
					return values[e.Of][e.Index]
				case *plan.Call:
					return narrowed(e)
				}
				return e
			})
		})
	}
	if err := x.groupJoin(); err != nil {
		return err
	}
	if err := x.reduce(); err != nil {
		return err
	}
	x.tabs = make([]*colstore.Table, len(x.q.Tables))
	x.dicts = make([][]*dict, len(x.q.Tables))
	for i := range x.q.Tables {
		s := &x.q.Tables[i]
		if s.Relation == nil {
			x.tabs[i] = x.in.Tables[s.Table]
			continue
		}
		r := x.relations[s.Relation]
		if r == nil {
			var err error
			if r, err = x.relation(s.Relation); err != nil {
				return err
			}
			x.relations[s.Relation] = r
		}
		x.tabs[i], x.dicts[i] = r.tab, r.dicts
	}
	if x.offered() {
		x.device = x.opt.Device
	}
	return x.arrange()
}

// narrowed compares integers or numerics of a fixed scale, which may have been cast to another, with a
// numeric constant of that scale, which a scalar turned out to be, by a constant of their own scale.
func narrowed(c *plan.Call) plan.Expr {
	cast, k, op, ok := comparisonWithConstant(c)
	if !ok {
		return c
	}
	over := plan.ValueKept(cast)
	t := over.Type()
	if k.Datum.Type.Kind != vector.Numeric || !k.Datum.Type.Varying() && over == cast || t.Varying() ||
		t.Kind != vector.Numeric && !t.Kind.IsInt() {
		return c
	}
	if k.Null {
		return plan.Const{Datum: vector.Null(c.T)}
	}
	scale := int16(0)
	if t.Kind == vector.Numeric {
		scale = t.Scale
	}
	n, exact := plan.FloorTo(k.Decimal(), scale)
	op, bound, outcome, decided := plan.Narrow(op, t.Kind, n, exact)
	if !decided {
		if t.Typmod = -1; t.Kind.IsInt() {
			t = vector.TypeOf(vector.Int8)
		}
		return &plan.Call{Op: op, T: c.T, Args: []plan.Expr{over, plan.Const{Datum: vector.Datum{Type: t, I: bound}}}}
	}
	// As what is decided, null for a null.
	null, test, with := plan.Const{Datum: vector.Null(c.T)}, plan.OpIsNull, plan.OpAnd
	if outcome {
		test, with = plan.OpIsNotNull, plan.OpOr
	}
	return &plan.Call{Op: with, T: c.T, Args: []plan.Expr{&plan.Call{Op: test, T: c.T, Args: []plan.Expr{over}}, null}}
}

// within makes x a part of the statement that another execution is of: it has its turn, its place and its memory,
// and reads its relations.
func (x *execution) within(o *execution) {
	x.turn, x.place, x.memory, x.trace, x.reporting = o.turn, o.place, o.memory, o.trace, o.reporting
	x.relations, x.readers, x.read = o.relations, o.readers, o.read
}

// inner computes a star that x reads, up to the order and the cut of its rows: they are those of
// the result that rows names, nil for all.
func (x *execution) inner(q *plan.Star) (r *result, rows []uint32, err error) {
	opt := x.opt
	opt.Temp = nil // memory has to do
	opt.Ties = false
	opt.Kept = nil
	in, err := newExecution(x.ctx, q.Map((&env{orders: x.ordersOf()}).folded), x.in, opt)
	if err != nil {
		return nil, nil, err
	}
	in.within(x)
	if err = in.begin(); err != nil {
		return nil, nil, err
	}
	if in.limited && in.limit == 0 { // as in execute
		return in.empty(), nil, nil
	}
	if r, err = in.compute(); err != nil {
		return nil, nil, err
	}
	if !in.limited && in.offset == 0 {
		return r, nil, nil
	}
	rows, err = in.cutRows(r)
	return r, rows, err
}

// scalar computes the values of a star of one row at most.
func (x *execution) scalar(q *plan.Star) ([]plan.Const, error) {
	r, rows, err := x.inner(q)
	if err != nil {
		return nil, err
	}
	n := r.n
	at := uint32(0)
	if rows != nil {
		if n = len(rows); n == 1 {
			at = rows[0]
		}
	}
	if n > 1 {
		return nil, failed("more than one row returned by a subquery used as an expression")
	}
	values := make([]plan.Const, len(q.Output))
	for i, e := range q.Output {
		values[i] = plan.Const{Datum: vector.Null(e.Type())}
		if n == 1 {
			values[i] = plan.Const{Datum: r.output[i].at(at).Datum(e.Type())}
		}
	}
	return values, nil
}

// relation computes an intermediate relation.
func (x *execution) relation(p *plan.Relation) (*relation, error) {
	columns := make([]relationColumn, len(p.Meta.Columns))
	for i := range columns {
		columns[i].t = p.Meta.Columns[i].Type
	}
	if p.Series != nil {
		n, err := x.series(p, columns)
		if err != nil {
			return nil, err
		}
		return x.asTable(p, columns, n)
	}
	if p.ProjectSet != nil {
		n, err := x.projectSet(p, columns)
		if err != nil {
			return nil, err
		}
		return x.asTable(p, columns, n)
	}
	for i := range p.Windows {
		columns[p.Windows[i].To].window = true
	}
	var base []*relationColumn
	for i := range columns {
		if !columns[i].window {
			base = append(base, &columns[i])
		}
	}
	n := 0
	for i, q := range p.Blocks {
		r, rows, err := x.inner(q)
		if err != nil {
			return nil, err
		}
		k := r.n
		if rows != nil {
			k = len(rows)
		}
		if k == 0 && (n > 0 || i+1 < len(p.Blocks)) {
			continue
		}
		if err := x.gather(base, r, rows, k, len(p.Blocks) == 1); err != nil {
			return nil, err
		}
		n += k
	}
	w := &windower{x: x, cols: columns, n: n}
	for i := range p.Windows {
		if err := w.column(&p.Windows[i]); err != nil {
			return nil, err
		}
	}
	if p.Cut != nil {
		var err error
		if n, err = w.cut(p.Cut); err != nil {
			return nil, err
		}
	}
	return x.asTable(p, columns, n)
}

// gather appends the n rows of a result to columns, as relationColumn.add does.
func (x *execution) gather(columns []*relationColumn, r *result, rows []uint32, n int, only bool) error {
	if err := x.take(int64(n) * int64(len(columns)) * 9); err != nil {
		return err
	}
	for i, c := range columns {
		held := c.held
		if err := c.add(x, &r.output[i], rows, n, only); err != nil {
			return err
		}
		if err := x.take(c.held - held); err != nil {
			return err
		}
	}
	return nil
}

// series computes the columns of a series.
func (x *execution) series(p *plan.Relation, columns []relationColumn) (int, error) {
	args, err := x.scalar(p.Blocks[0])
	if err != nil || slices.ContainsFunc(args, func(c plan.Const) bool { return c.Null }) {
		return 0, err
	}
	step := int64(0)
	if p.Series.Step != nil {
		step = args[2].I
	}
	values, ok := p.Series.Values(args[0].I, args[1].I, step)
	if !ok {
		return 0, forward(plan.ReasonEvaluation, "a series that is an error, or too long")
	}
	if err := x.take(int64(len(values)) * 16); err != nil {
		return 0, err
	}
	columns[0].v, columns[1].v = values, make([]int64, len(values))
	for i := range values {
		columns[1].v[i] = int64(i + 1)
	}
	return len(values), nil
}

// asTable makes a relation of n rows of its columns.
func (x *execution) asTable(p *plan.Relation, columns []relationColumn, n int) (*relation, error) {
	out := &relation{tab: &colstore.Table{ID: colstore.NewID(), Meta: p.Meta, Rows: int64(n), Dicts: make([]*colstore.Dict, len(columns))}}
	for i := range columns {
		out.dicts = append(out.dicts, columns[i].dict)
	}
	out.tab.Segments = make([]*colstore.Segment, (n+segmentRows-1)/segmentRows)
	return out, x.eachOf(len(out.tab.Segments), n, func(slot int) error {
		from := slot * segmentRows
		seg := &colstore.Segment{Slot: slot, Rows: min(segmentRows, n-from)}
		for i := range columns {
			seg.Columns = append(seg.Columns, columns[i].segment(from, seg.Rows))
		}
		out.tab.Segments[slot] = seg
		return nil
	})
}

// columnDict is the dictionary of a text column of a source.
func (p *pipeline) columnDict(col int, t vector.Type) *dict {
	if p.x.dicts[p.table] == nil {
		return columnDict(p.tab.Dicts[col], t)
	}
	d := p.x.dicts[p.table][col]
	if d == nil { // no rows
		return &dict{t: t, at: func(int64) string { return "" }}
	}
	c := *d // pipelines that run side by side find strings in it, each in an index of its own
	c.t = t
	return &c
}

// row is the result of a query that reads no table: one row, or none.
func (x *execution) row() (*result, error) {
	e := &env{orders: x.ordersOf()}
	r := &result{}
	for _, c := range x.q.Filter {
		if v, err := e.evalSettled(c); err != nil || v.Null || v.I == 0 {
			return x.empty(), err
		}
	}
	one := func(over plan.Expr) (rcol, error) {
		c := rcol{t: over.Type()}
		v, err := e.evalSettled(over)
		c.push(v)
		return c, err
	}
	for _, o := range x.q.Output {
		c, err := one(o)
		if err != nil {
			return nil, err
		}
		r.output = append(r.output, c)
	}
	for _, o := range x.q.Order {
		c, err := one(o.Expr)
		if err != nil {
			return nil, err
		}
		r.order = append(r.order, c)
	}
	r.n = 1
	return r, nil
}

// empty is a result without rows.
func (x *execution) empty() *result {
	r := &result{}
	for _, e := range x.q.Output {
		r.output = append(r.output, rcol{t: e.Type()})
	}
	for _, o := range x.q.Order {
		r.order = append(r.order, rcol{t: o.Expr.Type()})
	}
	return r
}
