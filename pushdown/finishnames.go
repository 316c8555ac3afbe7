package pushdown

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/syntax"
)

// x.f may be a call, f(x), where x has no column f (ParseFuncOrColumn in PostgreSQL's parse_func.c): of a function that somebody has
// made, and that may do anything. A table's row type is such a function's best argument.

// rangeNames are the names that rows of the rest have in a FROM; of what is no other table each has none.
func (f *finisher) rangeNames(rest *pg.SelectStmt) map[string][]*otherTable {
	names := map[string][]*otherTable{}
	syntax.Walk(rest, func(n *pg.Node) bool {
		if f.coreRows(n.GetSelectStmt()) {
			return false
		}
		if r := n.GetRangeVar(); r != nil && r.Schemaname == "" && f.ctes[r.Relname] {
			names[rangeName(r)] = append(names[rangeName(r)], nil)
		}
		for _, alias := range []*pg.Alias{n.GetRangeSubselect().GetAlias(), n.GetRangeFunction().GetAlias(), n.GetJoinExpr().GetAlias(),
			n.GetJoinExpr().GetJoinUsingAlias()} {
			if alias != nil {
				names[alias.Aliasname] = append(names[alias.Aliasname], nil)
			}
		}
		return true
	})
	tablesOf(rest, nil, func(r *pg.RangeVar) {
		if r != nil {
			names[rangeName(r)] = append(names[rangeName(r)], f.other(r))
		}
	})
	return names
}

// cteNames are the names of all common table expressions in sel.
func cteNames(sel *pg.SelectStmt) map[string]bool {
	names := map[string]bool{}
	syntax.Walk(sel, func(n *pg.Node) bool {
		if c := n.GetCommonTableExpr(); c != nil {
			names[c.Ctename] = true
		}
		return true
	})
	return names
}

// columnsOnly reports whether what is written as a column in the rest is one for sure: the session is asked for those of other
// tables. It returns the names that might be called with rows of anything else.
func (f *finisher) columnsOnly(rest *pg.SelectStmt) (called []string, ok bool) {
	ranges := f.rangeNames(rest)
	ok = true
	syntax.Walk(rest, func(n *pg.Node) bool {
		switch x := n.GetNode().(type) {
		case *pg.Node_SelectStmt:
			return !f.coreRows(x.SelectStmt)
		case *pg.Node_AIndirection:
			ok = ok && fieldsOnly(x.AIndirection)
		case *pg.Node_ResTarget:
			fields := x.ResTarget.Val.GetColumnRef().GetFields()
			return len(fields) == 0 || fields[len(fields)-1].GetAStar() == nil // all columns, of which none is a call
		case *pg.Node_ColumnRef:
			names := nameList(x.ColumnRef.Fields)
			if len(names) != len(x.ColumnRef.Fields) || len(names) > 3 {
				ok = false
				return false
			}
			column := names[len(names)-1]
			row := names[max(len(names)-2, 0)]
			tables, is := ranges[row]
			for _, o := range tables {
				if o != nil {
					o.present = append(o.present, column)
				}
			}
			if len(names) > 1 && row != rowsAlias && (!is || slices.Contains(tables, nil)) {
				called = append(called, column)
			}
		}
		return ok
	})
	return called, ok
}

// namedColumns are the names by which the rest may read columns of tables; all says that it may read some without their names, or by others.
func (f *finisher) namedColumns(rest *pg.SelectStmt) (names []string, all bool) {
	syntax.Walk(rest, func(n *pg.Node) bool {
		switch x := n.GetNode().(type) {
		case *pg.Node_SelectStmt:
			return !f.coreRows(x.SelectStmt)
		case *pg.Node_ColumnRef:
			fields := nameList(x.ColumnRef.Fields)
			if all = all || len(fields) != len(x.ColumnRef.Fields); !all {
				names = append(names, fields[len(fields)-1])
			}
		case *pg.Node_JoinExpr:
			names = append(names, nameList(x.JoinExpr.UsingClause)...)
			all = all || x.JoinExpr.IsNatural || len(x.JoinExpr.Alias.GetColnames()) > 0
		case *pg.Node_RangeVar:
			all = all || len(x.RangeVar.Alias.GetColnames()) > 0
		}
		return true
	})
	slices.Sort(names)
	return slices.Compact(names), all
}

// rowFunctions are functions that return rows of more than one column, of which one may be named.
var rowFunctions = []string{"json_each", "json_each_text", "jsonb_each", "jsonb_each_text"}

// fieldsOnly reports whether a name behind parentheses is that of a field.
func fieldsOnly(x *pg.A_Indirection) bool {
	for _, n := range x.Indirection {
		if s := n.GetString_(); s != nil {
			c := x.Arg.GetFuncCall()
			return c != nil && len(x.Indirection) == 1 && slices.Contains(rowFunctions, lastName(c)) && (s.Sval == "key" || s.Sval == "value")
		} else if n.GetAStar() != nil {
			return x.Arg.GetFuncCall() != nil
		}
	}
	return true
}
