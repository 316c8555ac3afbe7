package pushdown

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// Enums: each is a type of its own, of kind vector.Enum, whose labels are in the catalog. These are those of
// now as far as the gate compares the definition of a table that has a column of the type; so each enum
// of a statement must be one of its tables' (checkEnums).

// noteEnum notes that the meaning of the statement depends on an enum type.
func (a *analyzer) noteEnum(oid uint32) {
	if !slices.Contains(a.enums, oid) {
		a.enums = append(a.enums, oid)
	}
}

// checkEnums refuses enums that no table of the statement has, and all where somebody has made a cast of one.
func (a *analyzer) checkEnums() {
	used := len(a.enums) > 0
	for _, t := range a.tables {
		used = used || slices.ContainsFunc(t.Columns, func(c int) bool { return t.Meta.Columns[c].Enum != nil })
	}
	if used && a.cat.Shadowed[catalog.EnumCast] {
		fail(plan.ReasonShadowed, "cast of an enum")
	}
	for _, oid := range a.enums {
		if !slices.ContainsFunc(a.tables, func(t plan.Table) bool {
			return slices.ContainsFunc(t.Meta.Columns, func(c catalog.Column) bool { return c.TypeOID == oid })
		}) {
			fail(plan.ReasonType, "an enum type that no table of the statement has")
		}
	}
}

// typeByOID is the type of a parameter that the client has declared, of kind Invalid where it is not known.
func (a *analyzer) typeByOID(oid uint32) vector.Type {
	if a.cat.Enum(oid) != nil {
		a.noteEnum(oid)
		return vector.EnumType(oid)
	}
	t := vector.TypeOf(sqltype.KindOf(oid))
	if t.Kind == vector.Numeric {
		t.Scale = vector.VaryingScale
	}
	return t
}

// label is a literal of an enum; one that the type does not have is the server's error.
func (a *analyzer) label(s string, t vector.Type) plan.Const {
	a.noteEnum(t.Collation.OID)
	if e := a.cat.Enum(t.Collation.OID); e == nil || !e.Has(s) {
		fail(plan.ReasonType, "a label that the enum does not have")
	}
	return plan.Const{Datum: vector.Datum{Type: t, Str: s}}
}

// sameEnum reports whether two types are one enum.
func sameEnum(a, b vector.Type) bool { return a.Kind == vector.Enum && sameOfMany(a, b) }

// sameOfMany reports whether two types of a kind that many are of are one.
func sameOfMany(a, b vector.Type) bool {
	return a.Kind.IsMany() && a.Kind == b.Kind && a.Collation.OID == b.Collation.OID && a.Scale == b.Scale
}

// typeOfKind is the type of kind k that values have in common: of enums and opaque ones, the only one among them.
func typeOfKind(k vector.Kind, vals []value) vector.Type {
	if !k.IsMany() {
		return vector.TypeOf(k)
	}
	var t vector.Type
	for _, v := range vals {
		if v.unknown() {
			continue
		}
		if t.Kind.IsMany() && !sameOfMany(t, v.e.Type()) {
			fail(plan.ReasonType, "values of two types, "+k.String())
		}
		t = v.e.Type()
	}
	if k == vector.Opaque {
		t.Typmod = -1
		return t
	}
	return vector.EnumType(t.Collation.OID)
}

// enumNamed returns the enum that a type's name may mean, nil where it means none that is known.
func (a *analyzer) enumNamed(n *pg.TypeName) *catalog.Enum {
	names := nameList(n.GetNames())
	if len(names) == 0 || len(names) > 2 || len(n.ArrayBounds) > 0 || len(n.Typmods) > 0 || n.Setof || n.PctType {
		return nil
	}
	var found *catalog.Enum
	for _, e := range a.cat.Enums {
		if e.Name != names[len(names)-1] || len(names) == 2 && e.Schema != names[0] {
			continue
		}
		if found != nil { // search_path decides
			return nil
		}
		found = e
	}
	return found
}

// enumCast is a cast to an enum, of what reads no rows: the server computes it, as the name of the type is
// its to look up.
func (a *analyzer) enumCast(c *pg.TypeCast) plan.Expr {
	n := &pg.Node{Node: &pg.Node_TypeCast{TypeCast: c}}
	if c.Arg.GetAConst().GetIsnull() {
		fail(plan.ReasonType, "null of an enum type")
	}
	if withoutRows(n) {
		if e, ok := a.serverConst(n); ok {
			return e
		}
	}
	fail(plan.ReasonType, "cast to an enum")
	return nil
}

// enum writes a cast to an enum. It is null, with which the statement is forwarded, where the name means another
// type in the session; so that no function of that one runs.
func (w *serverWriter) enum(c *pg.TypeCast, e *catalog.Enum) (x serverExpr, ok bool) {
	w.a.noteEnum(e.OID)
	if r := c.Arg.GetParamRef(); r != nil {
		x.sql, ok = w.paramOf(int(r.Number), e.OID)
	} else {
		x, ok = w.write(c.Arg)
	}
	if !ok || x.enum != nil || x.kind != "" && x.kind != "unknown" && x.kind != "text" {
		return x, false
	}
	if x.literal != nil && !e.Has(*x.literal) {
		return x, false
	}
	quoted := catalog.QuoteIdentifier(e.Schema) + "." + catalog.QuoteIdentifier(e.Name)
	var written []string
	for _, name := range nameList(c.TypeName.Names) {
		written = append(written, catalog.QuoteIdentifier(name))
	}
	sql := fmt.Sprintf("CASE WHEN pg_catalog.to_regtype(%s)::pg_catalog.oid OPERATOR(pg_catalog.=) %d::pg_catalog.oid THEN %s::%s END",
		quoteLiteral(strings.Join(written, ".")), e.OID, x.sql, quoted)
	return serverExpr{sql: "(" + sql + ")", kind: sqltype.Of(vector.Enum).Name, enum: e}, true
}
