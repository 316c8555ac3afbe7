package pushdown

import (
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/syntax"
)

// A SELECT that is refused as a whole is split where its rows are grouped, else where they come from FROM and
// WHERE. What is above reads the columns of one derived table, rows: keys, aggregates and sub-selects where
// the groups are the core, else columns and sub-selects.

// The names of the rows and of their columns begin with namePrefix, which the statement's own must not: a name
// of ORDER BY means a column of the core only where none of its outputs has it.
const (
	namePrefix = "pgaccel_"
	rowsAlias  = namePrefix + "rows"
)

// split is a SELECT on its way to be split.
type split struct {
	f       *finisher
	sel     *pg.SelectStmt // as it was
	rest    *pg.SelectStmt // what becomes of it
	targets []*pg.Node     // its outputs, as they were
	cols    []*pg.Node     // what the rest reads of the core
	keys    []*pg.Node     // of GROUP BY
	partial []partialCall  // of the rest
	// unnamed says that a column is read which the core does not have, or whose name is not sure to be one column's.
	unnamed bool
	// merges says that FROM has columns of USING or NATURAL, which are not always those of a table that have the name.
	merges bool
	// left are conditions of the rest.
	left []*pg.Node
	// grouping says that the core groups by columns, each value of which stands for those that are equal.
	grouping bool
	mixed    *mixed // of a SELECT from copied tables and others; else nil
}

func (f *finisher) newSplit(sel *pg.SelectStmt) *split {
	return &split{f: f, sel: sel, targets: sel.TargetList, rest: proto.Clone(sel).(*pg.SelectStmt), merges: slices.ContainsFunc(sel.FromClause, mergesColumns)}
}

// groups takes the groups of sel for the core: with what of HAVING, ORDER BY and LIMIT it can be planned with.
func (f *finisher) groups(sel *pg.SelectStmt) bool {
	if len(sel.GroupClause) == 0 && sel.HavingClause == nil && !aggregated(sel) {
		return false
	}
	for _, cut := range []bool{true, false} {
		for _, having := range []bool{true, false} {
			if cut && !(having && cuttable(sel)) || !having && sel.HavingClause == nil {
				continue
			}
			s := f.newSplit(sel)
			core, ok := s.grouped(having, cut)
			if ok && s.take(core) {
				return true
			}
		}
	}
	return false
}

// cuttable reports whether the order and the limit of sel could as well be the core's.
func cuttable(sel *pg.SelectStmt) bool {
	if sel.LimitCount == nil && sel.LimitOffset == nil || len(sel.DistinctClause) > 0 {
		return false
	}
	rows := true // each of the core's is one of the result's
	syntax.Walk(sel.TargetList, func(n *pg.Node) bool {
		if c := n.GetFuncCall(); c != nil {
			_, name, _ := builtinName(c.Funcname)
			rows = rows && c.Over == nil && finishCalls[name] != "s"
		}
		return n.GetSelectStmt() == nil
	})
	return rows
}

// aggregated reports whether sel calls an aggregate for all of its rows.
func aggregated(sel *pg.SelectStmt) (is bool) {
	syntax.Walk(slices.Concat(sel.TargetList, sel.SortClause), func(n *pg.Node) bool {
		is = is || isAggregate(n)
		return n.GetSelectStmt() == nil
	})
	return is
}

// isAggregate reports whether n calls an aggregate, not as a window function.
func isAggregate(n *pg.Node) bool {
	c := n.GetFuncCall()
	if c == nil || c.Over != nil {
		return false
	}
	_, name, ok := builtinName(c.Funcname)
	kinds := finishCalls[name]
	return ok && (kinds == "a" || kinds == "aw")
}

// grouped splits at the groups.
func (s *split) grouped(having, cut bool) (core *pg.SelectStmt, ok bool) {
	core, rest := proto.Clone(s.sel).(*pg.SelectStmt), s.rest
	core.TargetList, core.DistinctClause, core.WindowClause = nil, nil, nil
	core.SortClause, core.LimitCount, core.LimitOffset = nil, nil, nil
	core.LimitOption = pg.LimitOption_LIMIT_OPTION_DEFAULT
	if !s.label() || !s.groupBy(core.GroupClause) {
		return nil, false
	}
	if having {
		rest.HavingClause = nil
	} else {
		core.HavingClause = nil
	}
	if cut && !s.cut(core) {
		return nil, false
	}
	rest.WithClause, rest.FromClause, rest.WhereClause, rest.GroupClause, rest.HavingClause = nil, nil, rest.HavingClause, nil, nil
	rest.GroupDistinct = false
	s.read(s.groupColumn)
	if len(s.cols) == 0 {
		s.column(parsedExpr("count(*)"))
	}
	return core, !s.unnamed
}

// rows takes the rows of FROM and WHERE for the core.
func (f *finisher) rows(sel *pg.SelectStmt) bool {
	grouped := len(sel.GroupClause) > 0 || sel.HavingClause != nil || aggregated(sel)
	if !grouped && cuttable(sel) {
		s := f.newSplit(sel)
		if core, ok := s.scanned(true); ok && s.take(core) {
			return true
		}
	}
	if grouped && f.partialGroups(sel) {
		return true
	}
	s := f.newSplit(sel)
	if core, ok := s.scanned(false); ok && s.take(core) {
		return true
	}
	return f.conditions(sel)
}

// scanned splits at FROM and WHERE.
func (s *split) scanned(cut bool) (core *pg.SelectStmt, ok bool) {
	if !s.label() || !s.groupBy(s.rest.GroupClause) {
		return nil, false
	}
	core = s.from()
	if cut && !s.cut(core) {
		return nil, false
	}
	s.read(s.rowColumn)
	return core, !s.unnamed && len(s.cols) > 0
}

// from moves FROM and WHERE from the rest to a core.
func (s *split) from() (core *pg.SelectStmt) {
	core = selectFrom(s.rest)
	core.WhereClause = s.rest.WhereClause
	s.rest.WithClause, s.rest.FromClause, s.rest.WhereClause = nil, nil, nil
	return core
}

// selectFrom returns a SELECT from what another selects from, of which the two have one tree.
func selectFrom(sel *pg.SelectStmt) *pg.SelectStmt {
	return &pg.SelectStmt{WithClause: sel.WithClause, FromClause: sel.FromClause, Op: pg.SetOperation_SETOP_NONE, LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT}
}

// take plans the core with the columns that the rest reads, and puts the rest in the place of the SELECT.
func (s *split) take(core *pg.SelectStmt) bool {
	for i, c := range s.cols {
		core.TargetList = append(core.TargetList, selectItem(c, columnName(i)))
	}
	if !s.f.plan(core) || !s.combine() {
		return false
	}
	rows, ok := s.f.rowSet(s.f.core.Names)
	if !ok || slices.ContainsFunc(s.left, func(c *pg.Node) bool { return !s.f.cannotFail(c) }) {
		return false
	}
	item := &pg.Node{Node: &pg.Node_RangeSubselect{RangeSubselect: &pg.RangeSubselect{
		Subquery: &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: rows}}, Alias: &pg.Alias{Aliasname: rowsAlias}}}}
	if s.mixed != nil {
		s.mixed.rows.Node = item.Node
	} else {
		s.rest.FromClause = []*pg.Node{item}
	}
	proto.Reset(s.sel)
	proto.Merge(s.sel, s.rest)
	return true
}

// expand puts the columns that `*` means in its place, where each has a name of its own.
func (s *split) expand() {
	var items []*pg.Node
	for _, n := range s.rest.TargetList {
		fields := n.GetResTarget().GetVal().GetColumnRef().GetFields()
		if len(fields) != 1 || fields[0].GetAStar() == nil || s.mixed != nil {
			items = append(items, n)
			continue
		}
		probe := selectFrom(s.sel)
		probe.TargetList = []*pg.Node{n}
		st, _, ok := s.f.planned(probe)
		if !ok || st.Star == nil || len(slices.Compact(slices.Sorted(slices.Values(st.Names)))) < len(st.Names) {
			return
		}
		for _, name := range st.Names {
			items = append(items, selectItem(parsedExpr(catalog.QuoteIdentifier(name)), name))
		}
	}
	s.rest.TargetList = items
	s.targets = proto.Clone(s.rest).(*pg.SelectStmt).TargetList
}

// label gives the output columns the names that they have, so that these stay; ok is false where there is `*` that is not expanded.
func (s *split) label() (ok bool) {
	s.expand()
	for _, n := range s.rest.TargetList {
		r := n.GetResTarget()
		if r == nil || len(r.Indirection) > 0 {
			return false
		}
		if fields := r.Val.GetColumnRef().GetFields(); len(fields) > 0 && fields[len(fields)-1].GetAStar() != nil {
			return false
		}
		if r.Name == "" {
			if r.Name, _ = figureName(r.Val); r.Name == "" {
				return false
			}
		}
	}
	return len(s.rest.TargetList) > 0
}

// output returns the expression of an output column that ORDER BY or GROUP BY names by position or name; nil for others.
func (s *split) output(n *pg.Node) *pg.Node {
	if c := n.GetAConst(); c != nil && c.GetIval() != nil {
		if i := int(c.GetIval().Ival); i >= 1 && i <= len(s.targets) {
			return s.targets[i-1].GetResTarget().GetVal()
		}
	}
	if names := nameList(n.GetColumnRef().GetFields()); len(names) == 1 {
		for i, t := range s.rest.TargetList {
			if t.GetResTarget().GetName() == names[0] {
				return s.targets[i].GetResTarget().GetVal()
			}
		}
	}
	return nil
}

// resolveGroups puts expressions in the place of the names and positions of outputs. A name is a column's first, if
// there is one.
func (s *split) resolveGroups(items []*pg.Node) bool {
	for _, g := range items {
		if set := g.GetGroupingSet(); set != nil {
			if !s.resolveGroups(set.Content) {
				return false
			}
			continue
		}
		if row := g.GetRowExpr(); row != nil {
			if !s.resolveGroups(row.Args) {
				return false
			}
			continue
		}
		out := s.output(g)
		if out == nil {
			continue
		}
		if out.GetAConst() != nil { // in its place it would be a position
			return false
		}
		if s.ambiguousName(g, out) {
			return false
		}
		if ref := g.GetColumnRef(); ref != nil && !sameColumn(ref, out.GetColumnRef()) {
			is, known := s.isColumn(g)
			if !known {
				return false
			}
			if is {
				continue
			}
		}
		g.Node = proto.Clone(out).(*pg.Node).Node
	}
	return true
}

// isColumn reports whether a name is a column's of FROM.
func (s *split) isColumn(name *pg.Node) (is, known bool) {
	if s.mixed != nil {
		return s.mixed.isColumn(name)
	}
	f, probe := s.f, selectFrom(s.sel)
	probe.TargetList = []*pg.Node{selectItem(name, "")}
	st, _, ok := f.planned(probe)
	if !ok {
		return false, false
	}
	if st.Forward == nil {
		return true, true
	}
	return false, !slices.ContainsFunc(st.Refused, func(r Refusal) bool {
		return r.Forward.Reason != plan.ReasonShape || r.Forward.Detail != unknownColumn
	})
}

// cut moves the order and the limit to the core.
func (s *split) cut(core *pg.SelectStmt) bool {
	for _, n := range s.rest.SortClause {
		by := proto.Clone(n).(*pg.Node)
		if out := s.output(by.GetSortBy().GetNode()); out != nil {
			if out.GetAConst() != nil { // in its place it would be a position
				return false
			}
			by.GetSortBy().Node = proto.Clone(out).(*pg.Node)
		}
		core.SortClause = append(core.SortClause, by)
	}
	core.LimitCount, core.LimitOffset, core.LimitOption = s.rest.LimitCount, s.rest.LimitOffset, s.rest.LimitOption
	// No condition around it may be applied before outputs are computed, which can fail.
	s.rest.SortClause, s.rest.LimitCount, s.rest.LimitOffset = nil, nil, parsedExpr("0")
	s.rest.LimitOption = pg.LimitOption_LIMIT_OPTION_COUNT
	return true
}

// read puts columns of the core in the place of what the rest reads. column does so for one node, and reports whether what is below is to
// be looked at.
func (s *split) read(column func(*pg.Node) bool) {
	for _, n := range s.rest.SortClause {
		if by := n.GetSortBy(); s.output(by.GetNode()) == nil {
			syntax.Walk(by.GetNode(), column)
		}
	}
	for _, n := range s.rest.DistinctClause {
		if s.output(n) == nil {
			syntax.Walk(n, column)
		}
	}
	for _, n := range s.rest.TargetList {
		syntax.Walk(n.GetResTarget().GetVal(), column)
	}
	for _, part := range []any{s.rest.WhereClause, s.rest.GroupClause, s.rest.HavingClause, s.rest.WindowClause} {
		syntax.Walk(part, column)
	}
}

// column puts a column of the core in the place of n.
func (s *split) column(n *pg.Node) { n.Node = s.reference(n).Node }

// reference returns what n is in the rest.
func (s *split) reference(n *pg.Node) *pg.Node { return rowsColumn(s.number(n)) }

// number returns which column of the core n is: one of the names of a column is all of them, which would be two keys.
func (s *split) number(n *pg.Node) int {
	i := slices.IndexFunc(s.cols, func(c *pg.Node) bool { return sameExpr(c, n) })
	if i < 0 {
		i = len(s.cols)
		s.cols = append(s.cols, proto.Clone(n).(*pg.Node))
	}
	s.unnamed = s.unnamed || s.ambiguousName(s.cols[i], n)
	return i
}

// ambiguousName reports whether x and y are a name with its table and without where that may be two columns: of d LEFT JOIN w USING (day),
// day is d.day, and w.day may be null.
func (s *split) ambiguousName(x, y *pg.Node) bool {
	a, b := x.GetColumnRef(), y.GetColumnRef()
	return s.merges && sameColumn(a, b) && (len(a.Fields) == 1) != (len(b.Fields) == 1)
}

// mergesColumns reports whether an item of FROM has joins with USING, or NATURAL ones.
func mergesColumns(item *pg.Node) bool {
	j := item.GetJoinExpr()
	return j != nil && (j.IsNatural || len(j.UsingClause) > 0 || mergesColumns(j.Larg) || mergesColumns(j.Rarg))
}

// rowsColumn names a column of the core in the rest.
func rowsColumn(i int) *pg.Node {
	field := func(name string) *pg.Node { return &pg.Node{Node: &pg.Node_String_{String_: &pg.String{Sval: name}}} }
	return &pg.Node{Node: &pg.Node_ColumnRef{ColumnRef: &pg.ColumnRef{Fields: []*pg.Node{field(rowsAlias), field(columnName(i))}}}}
}

func columnName(i int) string { return fmt.Sprintf("%sc%d", namePrefix, i+1) }

// groupColumn is column for a key, an aggregate or a sub-select.
func (s *split) groupColumn(n *pg.Node) bool {
	switch {
	case isAggregate(n), n.GetGroupingFunc() != nil, n.GetSubLink() != nil, s.isKey(n):
		s.column(n)
		return false
	case n.GetColumnRef() != nil:
		s.unnamed = true
		return false
	}
	return true
}

// isKey reports whether n is a key of GROUP BY. Constants are not looked for.
func (s *split) isKey(n *pg.Node) bool {
	return n.GetAConst() == nil && n.GetParamRef() == nil && slices.ContainsFunc(s.keys, func(k *pg.Node) bool { return sameExpr(n, k) })
}

// rowColumn is column for a column or a sub-select.
func (s *split) rowColumn(n *pg.Node) bool {
	switch {
	case n.GetSubLink() != nil:
		s.column(n)
		return false
	case n.GetColumnRef() != nil:
		names := nameList(n.GetColumnRef().Fields)
		if len(names) != len(n.GetColumnRef().Fields) {
			s.unnamed = true
		} else {
			s.column(n)
		}
		return false
	}
	return true
}

// sameExpr reports whether two expressions over the same rows are sure to be one.
func sameExpr(x, y *pg.Node) bool {
	if a, b := x.GetColumnRef(), y.GetColumnRef(); a != nil && b != nil {
		return sameColumn(a, b)
	}
	return sameTree(x, y)
}

// sameColumn reports whether two names of columns are sure to be one's: one is the other with its table.
func sameColumn(x, y *pg.ColumnRef) bool {
	a, b := nameList(x.GetFields()), nameList(y.GetFields())
	if len(a) < len(b) {
		a, b = b, a
	}
	return len(b) > 0 && slices.Equal(a[len(a)-len(b):], b)
}
