package pushdown

import (
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// The rest may read tables that are not copied, the others: under a snapshot that sees of the copied ones what the gate's does, which the
// proxy makes sure of. What it runs may be run again, where the statement is forwarded in the end, so that it must do nothing but read. That
// these names are tables' is known to the session alone: a constant of the core's, which is null unless they are, has it asked behind the
// gate. It says which they are, so that it can be asked again behind the rest, whose locks keep them as they are.

// otherTable is one of them.
type otherTable struct {
	ref string // its name, quoted
	// keys are columns whose values stand for their group: equal ones must be the same.
	keys []string
	// absent are names that are taken for what is not the table's, present those for its columns'.
	absent, present []string
}

// tablesOf calls visit with the tables that sel names: what is none of its common table expressions, or of those around it,
// which names are. With nil for a body that is no SELECT.
func tablesOf(sel *pg.SelectStmt, names map[string]bool, visit func(*pg.RangeVar)) {
	inner := withNames(sel, names)
	if w := sel.WithClause; w != nil {
		// A body sees those before it, with RECURSIVE all of them.
		seen := names
		if w.Recursive {
			seen = inner
		}
		for _, n := range w.Ctes {
			if body := n.GetCommonTableExpr().GetCtequery().GetSelectStmt(); body != nil {
				tablesOf(body, seen, visit)
			} else {
				visit(nil)
			}
			if !w.Recursive {
				seen = withNames(&pg.SelectStmt{WithClause: &pg.WithClause{Ctes: []*pg.Node{n}}}, seen)
			}
		}
	}
	for _, arm := range []*pg.SelectStmt{sel.Larg, sel.Rarg} {
		if arm != nil {
			tablesOf(arm, inner, visit)
		}
	}
	walkBlock(sel, func(n *pg.Node) bool {
		switch x := n.GetNode().(type) {
		case *pg.Node_CommonTableExpr:
			return false
		case *pg.Node_SelectStmt:
			tablesOf(x.SelectStmt, inner, visit)
			return false
		case *pg.Node_RangeVar:
			if r := x.RangeVar; r.Schemaname != "" || r.Catalogname != "" || !inner[r.Relname] {
				visit(r)
			}
		}
		return true
	})
}

// readsCopied reports whether sel names a copied table, or does what is no SELECT; readsOther whether it names another.
func (f *finisher) readsCopied(sel *pg.SelectStmt, names map[string]bool) (reads bool) {
	tablesOf(sel, names, func(r *pg.RangeVar) { reads = reads || r == nil || f.copied(r) != nil })
	return reads
}

func (f *finisher) readsOther(sel *pg.SelectStmt, names map[string]bool) (reads bool) {
	tablesOf(sel, names, func(r *pg.RangeVar) { reads = reads || r != nil && f.copied(r) == nil })
	return reads
}

// copied returns the copied table, or the view over some, that a name means; nil for none.
func (f *finisher) copied(r *pg.RangeVar) *catalog.Table {
	return chooseTable(f.cat.Lookup(r.Schemaname, r.Relname), f.cat.SearchPath)
}

// other returns the table that a name of the rest means; nil where it is not sure that to read it does nothing else.
func (f *finisher) other(r *pg.RangeVar) *otherTable {
	system := r.Schemaname == "pg_catalog" || r.Schemaname == "information_schema" || strings.HasPrefix(r.Relname, "pg_")
	if system || r.Catalogname != "" || f.copied(r) != nil {
		return nil
	}
	ref := catalog.QuoteIdentifier(r.Relname)
	if r.Schemaname != "" {
		ref = catalog.QuoteIdentifier(r.Schemaname) + "." + ref
	}
	for _, o := range f.others {
		if o.ref == ref {
			return o
		}
	}
	o := &otherTable{ref: ref}
	f.others = append(f.others, o)
	return o
}

// takesOthers reports whether all tables that the rest reads are others that it may read, and has the session asked for them.
func (f *finisher) takesOthers(rest *pg.SelectStmt) bool {
	ok, any := true, false
	tablesOf(rest, nil, func(r *pg.RangeVar) { ok, any = ok && r != nil && f.other(r) != nil, true })
	if !ok || !any {
		return ok
	}
	syntax.Walk(rest, func(n *pg.Node) bool {
		ok = ok && n.GetLockingClause() == nil && n.GetRangeTableSample() == nil
		return ok
	})
	var tables []string
	named, all := f.namedColumns(rest)
	for _, o := range f.others {
		tables = append(tables, o.identity(named, all))
	}
	f.identities = "(" + strings.Join(tables, joinedSQL) + ")"
	f.core.Deps.ServerConsts = append(slices.Clip(f.core.Deps.ServerConsts), plan.ServerConst{Index: len(f.core.Deps.ServerConsts),
		SQL: f.identities, T: vector.TypeOf(vector.Text)})
	return ok
}

// keyTypes are those whose equal values are the same, but for text of nondeterministic collations.
var keyTypes = []vector.Kind{vector.Bool, vector.Int2, vector.Int4, vector.Int8, vector.Text, vector.Varchar, vector.Date, vector.Time, vector.Timestamp,
	vector.TimestampTZ, vector.UUID}

// joinedSQL joins texts with a space between them.
const joinedSQL = " OPERATOR(pg_catalog.||) ' '::pg_catalog.text OPERATOR(pg_catalog.||) "

// identity is null but in a session in which the name is that of a table of which all rows are read from its own file, as a
// view's and a foreign table's are not, and no policy is run; nor a function of a type that somebody has made, of a name that is
// built in (of enums and domains see catalog.ShadowedSQL): no column of such a type is of the named ones. Else it is text that is another one once the name means another table, or
// the table, its name or rights, or its schema have been altered meanwhile: ANALYZE changes the row of pg_class in its place.
func (o *otherTable) identity(named []string, all bool) string {
	const eq = " OPERATOR(pg_catalog.=) "
	array := func(list []string) string {
		var literals []string
		for _, s := range list {
			literals = append(literals, catalog.QuoteAnyLiteral(s))
		}
		return "ARRAY[" + strings.Join(literals, ", ") + "]::pg_catalog.name[]"
	}
	column := func(names, more string) string {
		return "(SELECT pg_catalog.count(*) FROM pg_catalog.pg_attribute a WHERE a.attrelid" + eq + "c.oid AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped AND a.attname" +
			eq + "ANY (" + names + ")" + more + ")"
	}
	ofNamed := ""
	if !all {
		ofNamed = " AND a.attname" + eq + "ANY (" + array(named) + ")"
	}
	sql := "(SELECT " + strings.Join([]string{"c.oid::pg_catalog.text", "c.xmin::pg_catalog.text", "n.oid::pg_catalog.text", "n.xmin::pg_catalog.text"}, joinedSQL) +
		" FROM pg_catalog.pg_class c, pg_catalog.pg_namespace n WHERE n.oid" + eq + "c.relnamespace AND c.oid" + eq + "pg_catalog.to_regclass(" + catalog.QuoteAnyLiteral(o.ref) + ")::pg_catalog.oid" +
		" AND c.relkind" + eq + `ANY ('{r,m}'::pg_catalog."char"[]) AND NOT c.relhassubclass AND NOT pg_catalog.row_security_active(c.oid)` +
		" AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type y ON y.oid" + eq + "a.atttypid WHERE a.attrelid" + eq + "c.oid" +
		` AND y.oid OPERATOR(pg_catalog.>=) 16384 AND NOT (y.typtype` + eq + `ANY ('{e,d}'::pg_catalog."char"[]) AND y.typbasetype OPERATOR(pg_catalog.<) 16384)` + ofNamed + ")"
	if len(o.absent) > 0 {
		sql += " AND " + column(array(o.absent), "") + eq + "0"
	}
	if present := slices.Compact(slices.Sorted(slices.Values(o.present))); len(present) > 0 {
		sql += " AND " + column(array(present), "") + eq + strconv.Itoa(len(present))
	}
	if len(o.keys) > 0 {
		var types []string
		for _, k := range keyTypes {
			types = append(types, strconv.FormatUint(uint64(sqltype.OIDOf(vector.TypeOf(k))), 10))
		}
		for _, k := range o.keys {
			more := " AND a.atttypid" + eq + "ANY ('{" + strings.Join(types, ",") + "}'::pg_catalog.oid[])" +
				" AND NOT EXISTS (SELECT FROM pg_catalog.pg_collation o WHERE o.oid" + eq + "a.attcollation AND NOT o.collisdeterministic)"
			sql += " AND " + column(array([]string{k}), more) + eq + "1"
		}
	}
	return sql + ")"
}

// otherKey reports whether n is a column of another table in the FROM of sel, which has values that are the same where they are
// equal: the session is asked for that.
func (f *finisher) otherKey(sel *pg.SelectStmt, n *pg.Node) bool {
	names := nameList(n.GetColumnRef().GetFields())
	if len(names) == 0 || len(names) > 2 {
		return false
	}
	var found *otherTable
	tables := 0
	for _, item := range sel.GetFromClause() {
		syntax.Walk(item, func(n *pg.Node) bool {
			r := n.GetRangeVar()
			if r == nil {
				return n.GetRangeSubselect() == nil && n.GetSelectStmt() == nil
			}
			tables++
			if len(names) == 1 || rangeName(r) == names[0] {
				found = nil
				if len(r.Alias.GetColnames()) == 0 && (r.Schemaname != "" || !f.ctes[r.Relname]) {
					found = f.other(r)
				}
			}
			return true
		})
	}
	if found == nil || len(names) == 1 && tables != 1 {
		return false
	}
	found.keys = append(found.keys, names[len(names)-1])
	return true
}

// rangeName is the name of a table in its FROM.
func rangeName(r *pg.RangeVar) string {
	if r.Alias != nil {
		return r.Alias.Aliasname
	}
	return r.Relname
}
