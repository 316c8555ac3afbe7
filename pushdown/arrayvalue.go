package pushdown

import (
	"slices"
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/vector"
)

// x = ANY (array) and x <> ALL (array) of a whole array: a parameter or a literal. A parameter's members are
// known with its value: the server writes it as text, behind the gate, and they become the members of an IN.

// arrayKinds are the types of members that are read, whose text no setting changes, by pg_type.typarray.
var arrayKinds = map[uint32]vector.Kind{1005: vector.Int2, 1007: vector.Int4, 1016: vector.Int8, 1009: vector.Text, 1015: vector.Varchar, 2951: vector.UUID}

// manyMembers is as many as a search of a hash table begins with (callsMember).
const manyMembers = 9

// arrayValue is arrayOperation for a parameter or a literal, cast or not. ok is false for others.
func (a *analyzer) arrayValue(x *pg.A_Expr, symbol string, isAny bool, s *scope) (in plan.Expr, ok bool) {
	array, kind := x.Rexpr, vector.Invalid
	if c := array.GetTypeCast(); c != nil && len(c.TypeName.GetArrayBounds()) == 1 && len(c.TypeName.Typmods) == 0 {
		names := nameList(c.TypeName.Names)
		if len(names) == 2 && names[0] == "pg_catalog" {
			names = names[1:]
		}
		if len(names) != 1 {
			return nil, false
		}
		if kind = typeNames[names[0]]; kind == vector.Invalid {
			return nil, false
		}
		array = c.Arg
	}
	literal, isLiteral := array.GetAConst().GetVal().(*pg.A_Const_Sval)
	param := array.GetParamRef()
	if !isLiteral && param == nil || isAny && symbol != "=" || !isAny && symbol != "<>" {
		return nil, false
	}
	subject := a.expr(x.Lexpr, s)
	if subject.unknown() {
		fail(plan.ReasonType, "ANY or ALL of an array")
	}
	if param != nil && kind == vector.Invalid {
		if n := int(param.Number); n >= 1 && n <= len(a.declared) && a.declared[n-1] {
			kind = arrayKinds[a.paramOIDs[n-1]]
		}
	}
	if kind == vector.Invalid && !(param != nil && int(param.Number) <= len(a.declared) && a.declared[param.Number-1]) {
		// Of no type: an array of what stands on the left (make_scalar_array_op in parse_oper.c).
		if kind = subject.kind(); kind == vector.Varchar {
			kind = vector.Text
		}
	}
	if kind == vector.Enum && isLiteral {
		a.callsMember(symbol, kind, kind, manyMembers)
		in = a.inLiteral(subject, literal.Sval.Sval, vector.EnumType(subject.e.Type().Collation.OID))
		if !isAny {
			in = a.not(in)
		}
		return in, true
	}
	var oid uint32
	for o, k := range arrayKinds {
		if k == kind {
			oid = o
		}
	}
	if oid == 0 {
		fail(plan.ReasonType, "ANY or ALL of an array of this type")
	}
	a.callsMember(symbol, subject.kind(), kind, manyMembers)
	of := vector.TypeOf(kind)
	if isLiteral {
		in = a.inLiteral(subject, literal.Sval.Sval, of)
	} else {
		in = a.inArray(subject, int(param.Number), oid, of)
	}
	if !isAny {
		in = a.not(in)
	}
	return in, true
}

// inLiteral is x = ANY ('{...}').
func (a *analyzer) inLiteral(subject value, text string, of vector.Type) plan.Expr {
	list, read := plan.ArrayMembers(text, of)
	nulls := slices.ContainsFunc(list, func(d vector.Datum) bool { return d.Null }) // array_nulls decides on these
	if !read || len(list) == 0 || nulls {
		fail(plan.ReasonType, "an array that is empty or written in another form")
	}
	members := make([]value, len(list))
	for i, d := range list {
		if of.Kind == vector.Enum {
			d = a.label(d.Str, of).Datum
		}
		members[i] = typed(plan.Const{Datum: d})
	}
	return a.anyEqual(subject, members)
}

// inArray is x = ANY ($n).
func (a *analyzer) inArray(subject value, n int, oid uint32, of vector.Type) plan.Expr {
	if have, met := a.serverParams[n]; n < 1 || met && have != oid {
		fail(plan.ReasonParameter, "an array that has two types")
	}
	if n <= len(a.params) && (a.declared[n-1] && a.paramOIDs[n-1] != oid || !a.declared[n-1] && a.params[n-1].Kind != vector.Invalid) {
		fail(plan.ReasonParameter, "an array that has two types")
	}
	w := serverWriter{a: a, params: map[int]uint32{}}
	for k, v := range a.serverParams {
		w.params[k] = v
	}
	w.params[n] = oid
	a.takeParams(&w)
	list := a.askedFor(plan.ServerConst{SQL: "$" + strconv.Itoa(n) + "::pg_catalog." + typeName(of.Kind) + "[]::pg_catalog.text", T: of, Array: true})
	eq, ok := a.compare(plan.OpEq, subject, typed(list)).(*plan.Call)
	if !ok || eq.Op != plan.OpEq || !slices.Equal(eq.Args[1:], []plan.Expr{list}) {
		fail(plan.ReasonType, "ANY or ALL of an array of another type")
	}
	return a.call(plan.OpIn, boolType, eq.Args...)
}
