package pushdown

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// serverCallsSQL lists functions and operators of the types, which neither write nor differ within a
// transaction.
const serverCallsSQL = `
 SELECT p.proname, ARRAY(SELECT format_type_name FROM unnest(p.proargtypes) WITH ORDINALITY a(o, i) JOIN (SELECT oid, typname::text AS format_type_name FROM pg_type) y ON y.oid = a.o ORDER BY i), r.typname
 FROM pg_proc p JOIN pg_type r ON r.oid = p.prorettype
 WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND NOT p.proretset AND p.provolatile <> 'v' AND p.provariadic = 0 AND p.proname = ANY ($1)
UNION ALL SELECT o.oprname, array_remove(ARRAY[l.typname::text, t.typname::text], NULL), r.typname
 FROM pg_operator o JOIN pg_proc p ON p.oid = o.oprcode JOIN pg_type t ON t.oid = o.oprright JOIN pg_type r ON r.oid = o.oprresult LEFT JOIN pg_type l ON l.oid = o.oprleft
 WHERE o.oprnamespace = 'pg_catalog'::regnamespace AND p.provolatile <> 'v' AND o.oprname = ANY ('{+,-,*,/,%,=,<>,<,<=,>,>=}')`

// TestServerCalls compares servercalls.txt with a server's catalog.
func TestServerCalls(t *testing.T) {
	ctx := context.Background()
	conn := startPostgres(t)
	rows, err := conn.Query(ctx, serverCallsSQL, serverFunctions)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	var name, result string
	var args []string
	if _, err := pgx.ForEachRow(rows, []any{&name, &args, &result}, func() error {
		if serverTypes[result] && !slices.ContainsFunc(args, func(t string) bool { return !serverTypes[t] }) {
			lines = append(lines, name+"("+strings.Join(args, ",")+") "+result)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile("servercalls.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if have, _ := parseServerCalls(got); len(have) < len(serverCalls) {
		t.Errorf("the server has %d of the calls, servercalls.txt %d", len(have), len(serverCalls))
	} else {
		for call, result := range serverCalls {
			if have[call] != result {
				t.Errorf("%s: servercalls.txt has %s, the server %s", call, result, have[call])
			}
		}
	}
}
