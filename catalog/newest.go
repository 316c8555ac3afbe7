package catalog

import (
	"strings"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// A name in a query means what is built in as long as nobody has made a function,
// an operator, a cast or a type that is preferred. What somebody has made has an OID
// from 16384 on (FirstNormalObjectId in PostgreSQL's access/transam.h); which schema
// it is in does not matter here, since search_path is the session's.

// OperatorsSQL is an SQL expression, a text, that says which operators and casts somebody
// has made: a hash of their OIDs. Nothing of one that matters here can be altered while it
// keeps its OID: neither the name nor the types; which schema it is in does not matter.
// The largest OID would not do, as transactions commit in another order than they take
// OIDs. It costs some microseconds where there are none and 0.2 us for each: an array is
// cheaper than an aggregate, a range of an index than the whole.
const OperatorsSQL = `pg_catalog.concat_ws(' ',
  pg_catalog.hash_array_extended(ARRAY(SELECT o.oid FROM pg_catalog.pg_operator o WHERE o.oid OPERATOR(pg_catalog.>=) 16384 ORDER BY o.oid), 0),
  pg_catalog.hash_array_extended(ARRAY(SELECT k.oid FROM pg_catalog.pg_cast k WHERE k.oid OPERATOR(pg_catalog.>=) 16384 ORDER BY k.oid), 0))`

// ShadowedSQL is a query for the lower-case names of functions, and the operators,
// that might be preferred to a built-in one: Catalog.Shadowed. Of casts it says only
// whether there is one between built-in types, as "::". hstore's operators with a text[] at their right do not count:
// where the left side is jsonb, built-in ones fit better, where it is unknown none is unique, and nothing else is planned
// of these names. (Of others there are built-in ones for any array, which would fit worse.)
var ShadowedSQL = `SELECT pg_catalog.lower(f.proname::pg_catalog.text) FROM pg_catalog.pg_proc f
  WHERE f.oid OPERATOR(pg_catalog.>=) 16384 AND ` + preferredFunctionSQL + `
 UNION SELECT o.oprname::pg_catalog.text FROM pg_catalog.pg_operator o
  WHERE o.oid OPERATOR(pg_catalog.>=) 16384 AND (o.oprleft OPERATOR(pg_catalog.<) 16384 AND o.oprright OPERATOR(pg_catalog.<) 16384
   OR o.oprleft OPERATOR(pg_catalog.<) 16384 AND o.oprleft OPERATOR(pg_catalog.<>) ALL ('{0,25}')
   OR o.oprright OPERATOR(pg_catalog.<) 16384 AND o.oprright OPERATOR(pg_catalog.<>) 25
    AND NOT (o.oprright OPERATOR(pg_catalog.=) 1009 AND o.oprname OPERATOR(pg_catalog.=) ANY ('{-,->,?|,?&}'::pg_catalog.name[]))
   OR ` + takesSQL("{e,d}", "o.oprleft", "o.oprright") + `)
 UNION SELECT '::' FROM pg_catalog.pg_cast k WHERE k.oid OPERATOR(pg_catalog.>=) 16384
   AND k.castsource OPERATOR(pg_catalog.<) 16384 AND k.casttarget OPERATOR(pg_catalog.<) 16384
 UNION SELECT '` + EnumCast + `' FROM pg_catalog.pg_cast k WHERE k.oid OPERATOR(pg_catalog.>=) 16384 AND ` + takesSQL("{e}", "k.castsource", "k.casttarget")

// EnumCast stands in Catalog.Shadowed for a cast from or to an enum type.
const EnumCast = "::enum"

// takesSQL says whether one of two types has one of typtypes: an enum or a domain, which no built-in operator
// or cast fits as well as one that is made for it. The server ignores casts of domains.
func takesSQL(typtypes, l, r string) string {
	return `EXISTS (SELECT FROM pg_catalog.pg_type y WHERE y.oid OPERATOR(pg_catalog.=) ANY (ARRAY[` + l + `, ` + r + `]) AND y.typtype OPERATOR(pg_catalog.=) ANY ('` + typtypes + `'::pg_catalog."char"[]))`
}

// preferredFunctionSQL says whether the pg_proc row f might be called with arguments of
// built-in types in place of a built-in function of the name. One that takes a type
// that somebody has made is not (an extension such as citext has a min()), since the
// built-in one fits better: except where it also takes a built-in type, and that
// exactly where the built-in function would have to cast (varchar to text). A text
// is never such an argument: the built-in ones take it as it is. One that takes an enum or a domain is
// preferred to those that take every enum, or what the domain is over.
const preferredFunctionSQL = `(NOT EXISTS (SELECT FROM pg_catalog.unnest(f.proargtypes) a(t) WHERE a.t OPERATOR(pg_catalog.>=) 16384)
   OR EXISTS (SELECT FROM pg_catalog.unnest(f.proargtypes) a(t) WHERE a.t OPERATOR(pg_catalog.<) 16384 AND a.t OPERATOR(pg_catalog.<>) 25)
   OR EXISTS (SELECT FROM pg_catalog.unnest(f.proargtypes) a(t) JOIN pg_catalog.pg_type y ON y.oid OPERATOR(pg_catalog.=) a.t WHERE y.typtype OPERATOR(pg_catalog.=) ANY ('{e,d}'::pg_catalog."char"[])))`

// ShadowedNowSQL returns an SQL expression, a boolean: whether a name means something
// else than what is built in, as of now, among the functions whose names are given by
// the expression names, a name[]; or a type of the session's temporary schema, where
// types are looked for first (functions and operators never are). It finds the
// functions by name, which costs some microseconds a name. The cast of the OID
// keeps the planner from the index on it. Where the expression unshadowed is true, it is known that no function is.
func ShadowedNowSQL(names, unshadowed string) string {
	return `(CASE WHEN ` + unshadowed + ` THEN false ELSE EXISTS (SELECT FROM pg_catalog.pg_proc f WHERE f.proname OPERATOR(pg_catalog.=) ANY (` + names + `)
  AND f.oid::pg_catalog.int8 OPERATOR(pg_catalog.>=) 16384 AND ` + preferredFunctionSQL + `) END
 OR CASE WHEN pg_catalog.pg_my_temp_schema() OPERATOR(pg_catalog.=) 0 THEN false ELSE EXISTS (SELECT FROM pg_catalog.pg_type y
  WHERE y.typnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema() AND y.typname OPERATOR(pg_catalog.=) ANY ('{` + builtinTypes + `}'::pg_catalog.name[])) END)`
}

// builtinTypes are the names of types that a query may mention.
var builtinTypes = func() string {
	names := []string{"name", "unknown"}
	for _, k := range vector.Kinds() {
		names = append(names, sqltype.Of(k).Name)
	}
	return strings.Join(names, ",")
}()
