package referee

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// signature is a function, an operator, a cast or an aggregate of the server's with the types of its arguments.
type signature struct {
	What   string // function, operator, cast or aggregate
	Name   string
	Args   []string // pg_type.typname, with [] for arrays
	Result string
}

// String writes it as docs/testdata/signatures.txt has it.
func (s signature) String() string {
	return fmt.Sprintf("%s %s (%s) %s", s.What, s.Name, strings.Join(s.Args, ","), s.Result)
}

// signatures are those neither volatile nor of sets, of types that are worked on, with defaults once for each number of
// arguments. Left out are functions that stand behind an operator, a cast, an aggregate or an index, and those about the
// server's own state.
const signatures = `
WITH behind AS (SELECT oprcode::oid o FROM pg_operator UNION SELECT castfunc FROM pg_cast UNION SELECT amproc FROM pg_amproc
  UNION SELECT unnest(ARRAY[aggtransfn, aggfinalfn, aggcombinefn, aggmtransfn, aggminvtransfn, aggmfinalfn]::oid[]) FROM pg_aggregate),
 types AS (SELECT string_to_array('%[1]s', ',')::oid[] held, string_to_array('%[2]s', ',')::oid[] plain, '{25,1042,1043}'::oid[] strings),
 found(what, name, args, result) AS (
  SELECT CASE p.prokind WHEN 'a' THEN 'aggregate' ELSE 'function' END, p.proname::text, p.proargtypes[0:n - 1]::oid[], p.prorettype
   FROM pg_proc p, types, generate_series(p.pronargs - p.pronargdefaults::int, p.pronargs::int) n
   WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind IN ('f', 'a') AND p.provolatile <> 'v' AND NOT p.proretset
   AND p.proname !~ '^(pg|has|binary_upgrade|brin|gin|ts|hash|inet|row_security|txid|json_object_agg|obj|col_desc|shobj|xml)_|^(btree|to_reg)|_subdiff$'
   AND p.oid NOT IN (SELECT o FROM behind) AND p.proargtypes[0:n - 1]::oid[] <@ held AND p.prorettype = ANY (held)
  UNION ALL SELECT 'operator', o.oprname, array_remove(ARRAY[o.oprleft, o.oprright], 0), o.oprresult FROM pg_operator o, types
   WHERE o.oprnamespace = 'pg_catalog'::regnamespace AND (o.oprleft = 0 OR o.oprleft = ANY (held)) AND o.oprright = ANY (held) AND o.oprresult = ANY (held)
  UNION ALL SELECT 'cast', '::', ARRAY[castsource], casttarget FROM pg_cast, types WHERE castsource = ANY (held) AND casttarget = ANY (held)
  UNION ALL SELECT 'cast', '::', ARRAY[s], t FROM types, unnest(plain) s, unnest(plain) t
   WHERE (s = ANY (strings)) <> (t = ANY (strings)) AND NOT EXISTS (SELECT FROM pg_cast WHERE castsource = s AND casttarget = t))
SELECT what, name, args, result FROM found ORDER BY what, name, args, result`

// typesOfSignatures are the names of the types of signatures by OID; polymorphic ones are among them. plain are those that
// are neither these nor arrays.
func typesOfSignatures() (names map[string]string, held, plain []string) {
	names = map[string]string{"2276": "any", "2277": "anyarray", "2283": "anyelement", "2776": "anynonarray", "3500": "anyenum", "5077": "anycompatible",
		"5078": "anycompatiblearray", "5079": "anycompatiblenonarray"}
	for _, k := range vector.Kinds() {
		oid := strconv.Itoa(int(sqltype.OID(k)))
		names[oid], plain = sqltype.Of(k).Name, append(plain, oid)
		if a := vector.ArrayOf(k); a != vector.Invalid {
			names[strconv.Itoa(int(sqltype.OID(a)))] = sqltype.Of(k).Name + "[]"
		}
	}
	for oid := range names {
		held = append(held, oid)
	}
	slices.Sort(held)
	return names, held, plain
}

// readSignatures asks a server what it has.
func readSignatures(ctx context.Context, conn *session) ([]signature, error) {
	names, held, plain := typesOfSignatures()
	a := conn.ask(ctx, fmt.Sprintf(signatures, strings.Join(held, ","), strings.Join(plain, ",")), nil, protocol{})
	if a.err != "" || a.lost != nil {
		return nil, fmt.Errorf("%s %w", a.err, a.lost)
	}
	list := make([]signature, len(a.rows))
	for i, r := range a.rows {
		s := signature{What: string(r[0]), Name: string(r[1]), Result: names[string(r[3])]}
		if args := strings.Trim(string(r[2]), "{}"); args != "" {
			for oid := range strings.SplitSeq(args, ",") {
				s.Args = append(s.Args, names[oid])
			}
		}
		list[i] = s
	}
	return list, nil
}
