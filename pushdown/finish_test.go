package pushdown

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"pgaccel/syntax"
)

// finishCallsSQL lists the built-in functions that a rest may call: all of a name are immutable or stable, and none reads
// tables, or is there for the server alone.
const finishCallsSQL = `
SELECT proname, string_agg(DISTINCT CASE WHEN prokind = 'a' THEN 'a' WHEN prokind = 'w' THEN 'w' WHEN proretset THEN 's' ELSE 'f' END, '')
FROM pg_proc p WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind IN ('f', 'a', 'w')
GROUP BY proname HAVING bool_and(provolatile <> 'v') AND proname !~ '_to_xml|^pg_|^txid_|^has_|^inet_(client|server)|^ts_(stat|rewrite)|^interval_(accum_inv|combine)$'
 AND NOT bool_and(prorettype IN ('internal'::regtype, 'cstring'::regtype) OR 'internal'::regtype = ANY (proargtypes) OR 'cstring'::regtype = ANY (proargtypes)
  OR EXISTS (SELECT FROM pg_operator o WHERE o.oprcode = p.oid) OR EXISTS (SELECT FROM pg_amproc a WHERE a.amproc = p.oid)
  OR EXISTS (SELECT FROM pg_aggregate a WHERE a.aggtransfn = p.oid OR a.aggfinalfn = p.oid))`

// TestFinishCalls compares finishcalls.txt with a server's catalog; -update adds what the server has.
func TestFinishCalls(t *testing.T) {
	conn := startPostgres(t)
	rows, err := conn.Query(context.Background(), finishCallsSQL)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]string{}
	var name, kinds string
	if _, err := pgx.ForEachRow(rows, []any{&name, &kinds}, func() error {
		have[name] = kinds
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(have) < 500 {
		t.Fatalf("the server has %d", len(have))
	}
	if *update {
		all := maps.Clone(finishCalls)
		maps.Copy(all, have)
		var lines strings.Builder
		for _, name := range slices.Sorted(maps.Keys(all)) {
			lines.WriteString(name + " " + all[name] + "\n")
		}
		if err := os.WriteFile("finishcalls.txt", []byte(lines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for name, kinds := range have {
		if finishCalls[name] != kinds {
			t.Errorf("%s: finishcalls.txt has %q, the server %q", name, finishCalls[name], kinds)
		}
	}
	// What this version does not have is in a newer one.
	rows, err = conn.Query(context.Background(), "SELECT DISTINCT proname::text FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND proname = ANY ($1)",
		slices.Collect(maps.Keys(finishCalls)))
	if err != nil {
		t.Fatal(err)
	}
	known, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range known {
		if have[name] == "" {
			t.Errorf("%s: finishcalls.txt has it, and the server does not let it be called", name)
		}
	}
}

// TestFinishIsBounded has statements with so many parts that not all are tried.
func TestFinishIsBounded(t *testing.T) {
	cat := testCatalog(t)
	deep := "SELECT quote_literal(kind) FROM orders"
	for range 40 {
		deep = "SELECT quote_literal(x) AS x FROM (" + deep + ") q(x) WHERE quote_literal(x) > 'a' AND quote_literal(x) < 'z'"
	}
	PlanFinish(syntax.Parse(deep), nil, cat)
	f := &finisher{cat: cat}
	_, sel := syntax.Parse(deep).Tree()
	if f.block(sel, true, false, nil); f.tries > maxCores || f.bytes > 2*maxCoreBytes {
		t.Errorf("%d parts were planned", f.tries)
	}
}
