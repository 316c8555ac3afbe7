package pushdown

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/sqltype"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// The rows of a core come in another order than PostgreSQL would read them in. The rest must not depend on it: not by
// aggregates of what comes first, of sums that are rounded, by LIMIT, DISTINCT ON or peers of a window's order, nor
// by which of several equal values that print apart stands for a group.

// orderInsensitive reports whether the rest has one result whatever the order of the core's rows. Ties at its LIMIT are broken by all
// output columns, so that the same rows are taken each time.
func (f *finisher) orderInsensitive(rest *pg.SelectStmt) bool {
	if !f.breakTies(rest) {
		return false
	}
	ok := true
	var blocks func(sel *pg.SelectStmt, top bool)
	blocks = func(sel *pg.SelectStmt, top bool) {
		if !top && hasLimit(sel) {
			ok = false
		}
		for _, d := range sel.DistinctClause {
			if d != nil && d.Node != nil { // DISTINCT ON
				ok = false
			}
		}
		if sel.Op != pg.SetOperation_SETOP_NONE && !sel.All {
			ok = false
		}
		for _, g := range sel.GroupClause {
			for _, k := range groupKeys(g) {
				ok = ok && (f.equalIsSame(k) || f.otherKey(sel, k))
			}
		}
		if len(sel.DistinctClause) > 0 {
			for _, t := range sel.TargetList {
				ok = ok && (f.equalIsSame(t.GetResTarget().GetVal()) || f.otherKey(sel, t.GetResTarget().GetVal()))
			}
		}
		for _, w := range sel.WindowClause {
			ok = ok && peersOnly(w.GetWindowDef())
		}
		inOrder := f.readsRows(sel)
		walkBlock(sel, func(n *pg.Node) bool {
			if n.GetSelectStmt() != nil {
				return false
			}
			if c := n.GetFuncCall(); c != nil && inOrder && slices.Contains(orderSensitive, lastName(c)) && c.Over == nil {
				f.ordered = true
			} else if c != nil {
				ok = ok && f.orderInsensitiveCall(c)
			}
			return ok
		})
		for _, child := range subqueries(sel) {
			blocks(child, false)
		}
	}
	blocks(rest, true)
	return ok
}

// sameResults are functions whose results are text, integers, booleans or moments: equal ones are the same.
var sameResults = []string{"quote_literal", "quote_nullable", "quote_ident", "md5", "upper", "lower", "initcap", "concat", "concat_ws", "format", "replace", "translate",
	"left", "right", "substr", "substring", "lpad", "rpad", "ltrim", "rtrim", "btrim", "reverse", "repeat", "split_part", "regexp_replace", "regexp_substr", "regexp_count",
	"regexp_instr", "regexp_like", "to_char", "encode", "chr", "ascii", "length", "char_length", "character_length", "octet_length", "position", "strpos", "to_hex",
	"json_typeof", "jsonb_typeof", "array_length", "cardinality", "array_to_string", "starts_with", "date_trunc", "date_bin", "make_date", "to_date", "normalize", "unistr", "width_bucket", "host", "family"}

// sameTypes are types of casts, likewise.
var sameTypes = []string{"text", "varchar", "int2", "int4", "int8", "bool", "date", "timestamp", "timestamptz", "time", "uuid"}

// equalIsSame reports whether values of n that are equal are the same, so that it does not matter which of them stands for a group.
func (f *finisher) equalIsSame(n *pg.Node) bool {
	switch x := n.GetNode().(type) {
	case *pg.Node_AConst, *pg.Node_BoolExpr, *pg.Node_NullTest, *pg.Node_BooleanTest:
		return true
	case *pg.Node_AExpr:
		if x.AExpr.Kind != pg.A_Expr_Kind_AEXPR_OP {
			return x.AExpr.Kind != pg.A_Expr_Kind_AEXPR_NULLIF
		}
		_, name, _ := builtinName(x.AExpr.Name)
		return slices.Contains([]string{"=", "<>", "!=", "<", "<=", ">", ">=", "~", "!~", "~*", "!~*"}, name)
	case *pg.Node_TypeCast:
		_, name, _ := builtinName(x.TypeCast.TypeName.GetNames())
		return slices.Contains(sameTypes, name) && len(x.TypeCast.TypeName.ArrayBounds) == 0
	case *pg.Node_FuncCall:
		return slices.Contains(sameResults, lastName(x.FuncCall)) && x.FuncCall.Over == nil
	}
	i, ok := f.coreColumn(n)
	return ok && equalIsSame(f.core.Star.Output[i].Type())
}

// coreColumn returns which of the core's columns n is.
func (f *finisher) coreColumn(n *pg.Node) (i int, ok bool) {
	names := nameList(n.GetColumnRef().GetFields())
	if len(names) != 2 || names[0] != rowsAlias {
		return 0, false
	}
	for i := range f.columns {
		if columnName(i) == names[1] {
			return i, true
		}
	}
	return 0, false
}

// orderSensitive are aggregates of all rows as they come.
var orderSensitive = []string{"array_agg", "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg", "string_agg", "xmlagg"}

func lastName(c *pg.FuncCall) string {
	_, name, _ := builtinName(c.Funcname)
	return name
}

// readsRows reports whether aggregates of sel meet the core's rows in the core's order: nothing else is in its FROM, and nothing sorts.
func (f *finisher) readsRows(sel *pg.SelectStmt) bool {
	if len(sel.FromClause) != 1 || len(sel.GroupClause) > 0 || sel.Op != pg.SetOperation_SETOP_NONE {
		return false
	}
	sorts := false
	syntax.Walk(slices.Concat(sel.TargetList, []*pg.Node{sel.HavingClause}), func(n *pg.Node) bool {
		c := n.GetFuncCall()
		sorts = sorts || c != nil && (c.AggDistinct || c.AggWithinGroup || len(c.AggOrder) > 0 || c.Over != nil)
		return true
	})
	return f.coreRows(sel.FromClause[0].GetRangeSubselect().GetSubquery().GetSelectStmt()) && !sorts
}

// coreRows reports whether sel is that of the core's rows.
func (f *finisher) coreRows(sel *pg.SelectStmt) (is bool) {
	from := sel.GetFromClause()
	if len(from) != 1 || !from[0].GetRangeFunction().GetIsRowsfrom() {
		return false
	}
	syntax.Walk(from[0], func(n *pg.Node) bool {
		is = is || int(n.GetParamRef().GetNumber()) > f.params
		return true
	})
	return is
}

// hasLimit reports whether sel has a LIMIT or an OFFSET other than 0.
func hasLimit(sel *pg.SelectStmt) bool {
	zero := sel.LimitOffset.GetAConst().GetIval()
	return sel.LimitCount != nil || sel.LimitOffset != nil && (zero == nil || zero.Ival != 0)
}

// breakTies adds all output columns to the order of rows that are cut. It is false where rows are cut in no order.
func (f *finisher) breakTies(rest *pg.SelectStmt) bool {
	if !hasLimit(rest) {
		return true
	}
	if len(rest.SortClause) == 0 || rest.Op != pg.SetOperation_SETOP_NONE || rest.LimitOption == pg.LimitOption_LIMIT_OPTION_WITH_TIES {
		return false
	}
	for i, t := range rest.TargetList {
		fields := t.GetResTarget().GetVal().GetColumnRef().GetFields()
		if len(fields) > 0 && fields[len(fields)-1].GetAStar() != nil {
			return false
		}
		position := &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Val: &pg.A_Const_Ival{Ival: &pg.Integer{Ival: int32(i + 1)}}}}}
		rest.SortClause = append(rest.SortClause, &pg.Node{Node: &pg.Node_SortBy{SortBy: &pg.SortBy{Node: position,
			SortbyDir: pg.SortByDir_SORTBY_DEFAULT, SortbyNulls: pg.SortByNulls_SORTBY_NULLS_DEFAULT}}})
	}
	f.cuts = true
	return true
}

// orderInsensitiveCall reports whether a call has one value whatever the order of rows.
func (f *finisher) orderInsensitiveCall(c *pg.FuncCall) bool {
	_, name, _ := builtinName(c.Funcname)
	kinds := finishCalls[name]
	if c.Over != nil && !peersOnly(c.Over) {
		return false
	}
	switch {
	case kinds == "f" || kinds == "s" || kinds == "fs":
		return true
	case c.AggWithinGroup, len(c.AggOrder) > 0:
		return false
	}
	switch name {
	case "count", "bool_and", "bool_or", "every", "bit_and", "bit_or", "bit_xor":
		return true
	case "rank", "dense_rank", "percent_rank", "cume_dist":
		return c.Over != nil
	case "min", "max":
		return len(c.Args) == 1 && f.equalIsSame(c.Args[0])
	case "sum", "avg", "variance", "var_pop", "var_samp", "stddev", "stddev_pop", "stddev_samp":
		return len(c.Args) == 1 && f.exact(c.Args[0])
	}
	return false
}

// exact reports whether n is an integer or a numeric for sure.
func (f *finisher) exact(n *pg.Node) bool {
	if cast := n.GetTypeCast(); cast != nil {
		schema, name, _ := builtinName(cast.TypeName.GetNames())
		return schema == "pg_catalog" && (name == "int8" || name == "int4" || name == "int2" || name == "numeric")
	}
	i, ok := f.coreColumn(n)
	if !ok {
		return false
	}
	kind := sqltype.KindOf(f.columns[i].OID)
	return kind.IsInt() || kind == vector.Numeric
}

// defaultFrame are FRAMEOPTION_DEFAULTS (parsenodes.h): all rows up to the last peer.
const defaultFrame = 0x00002 | 0x00020 | 0x00400

// peersOnly reports whether a window's frame begins and ends between peers.
func peersOnly(w *pg.WindowDef) bool { return w.GetFrameOptions()&^1 == defaultFrame }
