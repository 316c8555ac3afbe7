package pushdown

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"pgaccel/catalog"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// callsFunction is a function of the server's that says what a statement calls, as its
// parser has it: EXECUTE on these is checked when it runs. Functions written in SQL, which
// the planner puts in place, call others in turn. Of GROUP BY and DISTINCT it is what the
// operator = calls. Null where the statement is wrong.
const callsFunction = `
CREATE FUNCTION called(tree text) RETURNS oid[] LANGUAGE sql AS $$
 WITH RECURSIVE f(o) AS (
  SELECT m[1]::oid FROM regexp_matches(tree, ':(?:opfuncid|funcid|aggfnoid|winfnoid) (\d+)', 'g') m
  UNION SELECT p.oprcode::oid FROM regexp_matches(tree, ':(?:groupClause|distinctClause|aggdistinct) \(((?:\{SORTGROUPCLAUSE [^}]*\} ?)+)\)', 'g') c,
   regexp_matches(c[1], ':eqop (\d+)', 'g') m JOIN pg_operator p ON p.oid = m[1]::oid
  UNION SELECT m[1]::oid FROM f JOIN pg_proc p ON p.oid = f.o AND p.prosqlbody IS NOT NULL, regexp_matches(p.prosqlbody::text, ':(?:opfuncid|funcid|aggfnoid|winfnoid) (\d+)', 'g') m)
 SELECT coalesce(array_agg(o ORDER BY o) FILTER (WHERE o <> 0), '{}') FROM f $$;
CREATE FUNCTION calls(statement text, columns text DEFAULT '') RETURNS oid[] LANGUAGE plpgsql AS $$
DECLARE tree text;
BEGIN
 EXECUTE 'CREATE TEMP VIEW asked ' || columns || ' AS ' || statement;
 SELECT ev_action::text INTO tree FROM pg_rewrite WHERE ev_class = 'asked'::regclass;
 DROP VIEW asked;
 RETURN called(tree);
EXCEPTION WHEN syntax_error_or_access_rule_violation OR feature_not_supported OR data_exception THEN RETURN NULL;
END $$;`

// typedKinds are the names of all kinds.
func typedKinds() []string { return slices.Sorted(maps.Keys(kindsByName)) }

var kindsByName = func() map[string]vector.Kind {
	m := maps.Clone(typeNames)
	m[sqltype.Of(vector.Enum).Name] = vector.Enum
	return m
}()

// sqlTypeOf is the type of a column of a kind: of enums it is one that the test has made.
func sqlTypeOf(name string) string {
	if kindsByName[name] == vector.Enum {
		return "an_enum"
	}
	return name
}

// argumentKinds are the kinds that may stand for an argument: all, but of functions with three arguments or more, of which these would
// be too many combinations, those of its category.
func argumentKinds(f *sqlfn.Function, i int) []string {
	kinds := append(typedKinds(), "unknown")
	switch {
	case len(f.Args) <= 2:
		return kinds
	case len(f.Args) > 4 && f.Args[i].Kind == vector.Float8: // seconds, mostly written as a number
		return []string{"float8", "int4", "numeric"}
	case len(f.Args) > 4:
		return []string{sqltype.Of(f.Args[i].Kind).Name}
	case len(f.Args) == 3: // others of the name may have them in another order
		return slices.DeleteFunc(kinds, func(name string) bool {
			return name != "unknown" && category(kindsByName[name]) != 'S' && !slices.ContainsFunc(f.Args, func(a sqlfn.Param) bool {
				return a.Kind == vector.Invalid || a.Interval && category(kindsByName[name]) == 'T' || category(kindsByName[name]) == category(a.Kind)
			})
		})
	}
	return slices.DeleteFunc(kinds, func(name string) bool {
		return name != "unknown" && category(kindsByName[name]) != category(f.Args[i].Kind)
	})
}

// functionQueries adds calls of a function with every combination of arguments.
func functionQueries(q map[string]string, f *sqlfn.Function, column func(string) string) {
	types, args := make([]string, len(f.Args)), make([]string, len(f.Args))
	var next func(i int)
	next = func(i int) {
		if i == len(f.Args) {
			q[f.Name+"("+strings.Join(types, ",")+")"] = catalog.QuoteIdentifier(f.Name) + "(" + strings.Join(args, ", ") + ")"
			return
		}
		for _, k := range argumentKinds(f, i) {
			types[i], args[i] = k, column(k)
			next(i + 1)
		}
	}
	next(0)
}

// builtinQueries are the lines of builtins.txt by what they stand for: SQL over a table k
// with a column for each kind.
func builtinQueries() map[string]string {
	q := map[string]string{"count()": "count(*)",
		"typmod(numeric)": "'1'::text::numeric(5,2)", "typmod(varchar)": "k.text::varchar(3)", "typmod(bpchar)": "k.text::bpchar(3)", "typmod(bit)": "k.bit::bit(3)", "typmod(varbit)": "k.varbit::varbit(3)",
		"typmod(time)": "k.time::time(3)", "typmod(timestamp)": "k.timestamp::timestamp(3)", "typmod(timestamptz)": "k.timestamptz::timestamptz(3)"}
	kinds := typedKinds()
	column := func(k string) string {
		if k == "unknown" {
			return "NULL"
		}
		return "k." + catalog.QuoteIdentifier(k)
	}
	for _, f := range sqlfn.All() {
		if f.Variadic { // it calls nothing, whatever its arguments are
			continue
		}
		functionQueries(q, &f, column)
	}
	for _, l := range append(typedKinds(), "unknown") {
		for _, r := range append(typedKinds(), "unknown") {
			for _, symbol := range []string{"||", "^@"} {
				q[symbol+"("+l+","+r+")"] = column(l) + " " + symbol + " " + column(r)
			}
		}
	}
	for _, pair := range append(typedKinds(), "unknown") {
		for symbol := range jsonbOperators {
			q[symbol+"(jsonb,"+pair+")"] = "k.jsonb " + symbol + " " + column(pair)
			q[symbol+"("+pair+",jsonb)"] = column(pair) + " " + symbol + " k.jsonb"
			q[symbol+"(json,"+pair+")"] = "k.json " + symbol + " " + column(pair)
		}
	}
	for _, l := range kinds {
		for _, a := range sqlfn.Aggregates {
			for _, name := range a.Names {
				if !a.OrderedSet() {
					q[name+"("+l+")"] = name + "(" + column(l) + ")"
					continue
				}
				for _, r := range kinds {
					q[name+"("+l+","+r+")"] = name + "(0.5::" + sqlTypeOf(l) + ") WITHIN GROUP (ORDER BY " + column(r) + ")"
				}
			}
		}
		for _, symbol := range slices.Concat([]string{"+", "-", "@"}, slices.Collect(maps.Keys(tableSigns))) {
			q[symbol+"("+l+")"] = symbol + " " + column(l)
		}
		q["abs("+l+")"] = "abs(" + column(l) + ")"
		for _, r := range kinds {
			pair := "(" + l + "," + r + ")"
			for _, symbol := range slices.Concat(slices.Collect(maps.Values(operatorSymbol)), slices.Collect(maps.Keys(negators)), slices.Collect(maps.Keys(tableOperators))) {
				q[symbol+pair] = column(l) + " " + symbol + " " + column(r)
			}
			if l != r {
				q["::"+pair] = column(l) + "::" + sqlTypeOf(r)
			}
			q["mod"+pair] = "mod(" + column(l) + ", " + column(r) + ")"
		}
	}
	return q
}

// newHashes are lines of which PostgreSQL 18 has functions of its own, beside those before.
var newHashes = map[string][]uint32{"bool": {454, 6417}, "bytea": {456, 6413}, "date": {450, 6415}, "timestamptz": {2039, 6425}}

// newIn18 are lines that PostgreSQL 18 has and those before do not; none is planned.
var newIn18 = []string{"min(bytea)", "max(bytea)", "reverse(bytea)", "::(int2,bytea)", "::(int4,bytea)", "::(int8,bytea)",
	"::(bytea,int2)", "::(bytea,int4)", "::(bytea,int8)", "int2(bytea)", "int4(bytea)", "int8(bytea)"}

// TestBuiltins compares builtins.txt with what the server's parser makes of each line.
func TestBuiltins(t *testing.T) {
	ctx := context.Background()
	conn := startPostgres(t)
	var columns []string
	for _, name := range typedKinds() {
		columns = append(columns, catalog.QuoteIdentifier(name)+" "+sqlTypeOf(name))
	}
	if _, err := conn.PgConn().Exec(ctx, callsFunction+"CREATE TYPE an_enum AS ENUM ('b', 'a'); CREATE TABLE k ("+strings.Join(columns, ", ")+")").ReadAll(); err != nil {
		t.Fatal(err)
	}
	var names, statements []string
	for name, e := range builtinQueries() {
		names, statements = append(names, name), append(statements, "SELECT "+e+" AS x FROM k")
	}
	rows, err := conn.Query(ctx, "SELECT name, calls FROM (SELECT name, calls(s) FROM unnest($1::text[], $2::text[]) u(name, s)) c WHERE calls IS NOT NULL", names, statements)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	var name string
	var oids []uint32
	if _, err := pgx.ForEachRow(rows, []any{&name, &oids}, func() error {
		lines = append(lines, strings.Join(append([]string{name}, numbers(oids)...), " "))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	// The function by which members of a list are hashed: that of the type's default class.
	rows, err = conn.Query(ctx, `SELECT DISTINCT y.typname, ARRAY[p.amproc::oid] FROM pg_type y JOIN pg_opclass c ON c.opcdefault AND c.opcmethod = 405
		AND c.opcintype = CASE y.typname WHEN 'varchar' THEN 25 ELSE y.oid END JOIN pg_amproc p ON p.amprocfamily = c.opcfamily AND p.amprocnum = 1
		AND p.amproclefttype = c.opcintype AND p.amprocrighttype = c.opcintype WHERE y.typname = ANY ($1)`, typedKinds())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pgx.ForEachRow(rows, []any{&name, &oids}, func() error {
		if both := newHashes[name]; slices.Contains(both, oids[0]) {
			oids = both
		}
		lines = append(lines, strings.Join(append([]string{"hash(" + name + ")"}, numbers(oids)...), " "))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile("builtins.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got != builtinsText {
		want := parseBuiltins(builtinsText)
		for name, oids := range parseBuiltins(got) {
			if w, ok := want[name]; (ok || !slices.Contains(newIn18, name)) && !slices.Equal(w, oids) {
				t.Errorf("%s: builtins.txt has %v, the server %v", name, w, oids)
			}
			delete(want, name)
		}
		for name := range want {
			t.Errorf("%s: builtins.txt has it, the server does not", name)
		}
	}
	// Each of them is a function that is built in, here or in a later version.
	var strange int
	all := map[uint32]bool{}
	for _, oids := range parseBuiltins(got) {
		for _, o := range oids {
			all[o] = true
		}
	}
	for _, both := range newHashes {
		delete(all, both[1])
	}
	err = conn.QueryRow(ctx, "SELECT count(*) FROM unnest($1::oid[]) o WHERE o >= 16384 OR NOT EXISTS (SELECT FROM pg_proc p WHERE p.oid = o)", slices.Collect(maps.Keys(all))).Scan(&strange)
	if err != nil || strange > 0 {
		t.Errorf("%d are no built-in functions, %v", strange, err)
	}
}

func numbers(oids []uint32) (out []string) {
	for _, o := range oids {
		out = append(out, fmt.Sprint(o))
	}
	return out
}

// wantCalls asserts that a plan knows every function that the server calls for the statement.
func (s *server) wantCalls(t *testing.T, sql string, params []uint32, st Statement) {
	t.Helper()
	constants := func(sql string) string { // a view has no parameters
		for i := len(params); i > 0; i-- {
			var name string
			if err := s.conn.QueryRow(context.Background(), "SELECT $1::oid::regtype::text", params[i-1]).Scan(&name); err != nil {
				t.Fatal(err)
			}
			value := fmt.Sprintf("(SELECT NULL::%s)", name)
			if strings.HasSuffix(name, "[]") { // = ANY (SELECT ...) is another thing
				value = fmt.Sprintf("(NULL::%s)", name)
			}
			sql = strings.ReplaceAll(sql, fmt.Sprintf("$%d", i), value)
		}
		return sql
	}
	statement := constants(strings.TrimRight(strings.TrimSpace(sql), "; "))
	var columns []string
	for i := range st.Star.Output {
		columns = append(columns, fmt.Sprintf("c%d", i))
	}
	var oids []uint32
	if err := s.conn.QueryRow(context.Background(), "SELECT calls($1, $2)", statement, "("+strings.Join(columns, ",")+")").Scan(&oids); err != nil {
		t.Fatalf("%s\n%v", statement, err)
	}
	if oids == nil {
		t.Errorf("%s\n cannot be made a view of", statement)
	}
	known := slices.Clone(st.Deps.Calls)
	for _, c := range st.Deps.ServerConsts { // the server checks these when it computes them
		var own []uint32
		if err := s.conn.QueryRow(context.Background(), "SELECT calls($1)", "SELECT "+constants(c.SQL)+" AS x").Scan(&own); err != nil {
			t.Fatalf("%s\n%v", c.SQL, err)
		}
		known = append(known, own...)
	}
	for _, o := range oids {
		if !slices.Contains(known, o) {
			t.Errorf("%s\n the plan's calls lack %d: %v", sql, o, st.Deps.Calls)
		}
	}
}
