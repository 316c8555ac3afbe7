package replica

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"pgaccel/catalog"
	"pgaccel/colstore"
)

// TestLook asks on the session for looking, from several sides at once, and after the
// server has ended it.
func TestLook(t *testing.T) {
	url := database(t)
	store := colstore.New(colstore.Options{MemoryLimit: 64 << 20})
	defer store.Close()
	r, err := Start(context.Background(), Config{Upstream: url, Accelerate: []string{"public.*"}, Store: store, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ready(t, r)
	const add, half = "SELECT ($1::int + 1)::text, NULL::text UNION ALL SELECT '0', 'x'", "SELECT ($1::int / 2)::text, pg_catalog.pg_backend_pid()::text"
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			rows, err := r.Look(context.Background(), add, []string{fmt.Sprint(10 + i)})
			if err != nil || len(rows) != 2 || *rows[0][0] != fmt.Sprint(11+i) || rows[0][1] != nil || *rows[1][1] != "x" {
				t.Errorf("%d: %v %v", i, rows, err)
			}
		})
	}
	wg.Wait()
	rows, err := r.Look(context.Background(), half, []string{"10"})
	if err != nil || *rows[0][0] != "5" {
		t.Fatal(rows, err)
	}
	if _, err := r.Look(context.Background(), half, []string{"x"}); err == nil {
		t.Error("no error")
	}
	mustExec(t, connectTo(t, url), "SELECT pg_terminate_backend("+*rows[0][1]+")")
	eventually(t, "it looks again", func() bool {
		rows, err := r.Look(context.Background(), half, []string{"10"})
		return err == nil && *rows[0][0] == "5"
	})
	r.Close()
	if _, err := r.Look(context.Background(), half, []string{"10"}); err == nil {
		t.Error("it looks after Close")
	}
}

// TestShadowed lists what could be meant in place of a built-in, and what could not.
func TestShadowed(t *testing.T) {
	c := connectTo(t, database(t))
	mustExec(t, c, `CREATE SCHEMA other; CREATE DOMAIN word AS text; CREATE TYPE mood AS ENUM ('sad', 'glad');
		CREATE FUNCTION public."Lower"(varchar) RETURNS int LANGUAGE sql AS 'SELECT 1';
		CREATE FUNCTION other.upper(varchar, mood) RETURNS int LANGUAGE sql AS 'SELECT 1';
		CREATE FUNCTION btrim(text, mood) RETURNS int LANGUAGE sql AS 'SELECT 1';
		CREATE FUNCTION abs(word) RETURNS int LANGUAGE sql AS 'SELECT 1';
		CREATE FUNCTION mod(anyelement) RETURNS int LANGUAGE sql AS 'SELECT 1';
		CREATE FUNCTION yes(varchar, word) RETURNS bool LANGUAGE sql AS 'SELECT true';
		CREATE FUNCTION yes(text, word) RETURNS bool LANGUAGE sql AS 'SELECT true';
		CREATE FUNCTION yes(word, word) RETURNS bool LANGUAGE sql AS 'SELECT true';
		CREATE FUNCTION yes(word) RETURNS bool LANGUAGE sql AS 'SELECT true';
		CREATE FUNCTION yes(int, numeric) RETURNS bool LANGUAGE sql AS 'SELECT true';
		CREATE OPERATOR = (FUNCTION = yes, LEFTARG = varchar, RIGHTARG = word);
		CREATE OPERATOR <> (FUNCTION = yes, LEFTARG = text, RIGHTARG = word);
		CREATE OPERATOR < (FUNCTION = yes, LEFTARG = word, RIGHTARG = word);
		CREATE OPERATOR - (FUNCTION = yes, RIGHTARG = word);
		CREATE OPERATOR >= (FUNCTION = yes, LEFTARG = int, RIGHTARG = numeric);
		CREATE FUNCTION yes(mood, mood) RETURNS bool LANGUAGE sql AS 'SELECT true';
		CREATE OPERATOR <= (FUNCTION = yes, LEFTARG = mood, RIGHTARG = mood);
		CREATE FUNCTION shown(mood) RETURNS text LANGUAGE sql AS $$SELECT 'x'$$`)
	cat, _, err := readCatalogOf(context.Background(), c, []string{"public.*"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"lower": true, "upper": true, "btrim": true, "abs": true, "mod": true, "=": true, "<>": true, "<": true, "-": true, ">=": true, "<=": true, "::": false, catalog.EnumCast: false} {
		if cat.Shadowed[name] != want {
			t.Errorf("shadowed %q: %v", name, cat.Shadowed[name])
		}
		now := queryText(t, c, "SELECT ("+catalog.ShadowedNowSQL("ARRAY['"+name+"']::name[]", "false")+")::text")
		if function := name[0] >= 'a' && name != "lower"; function && now != fmt.Sprint(want) {
			t.Errorf("shadowed now %q: %s", name, now)
		}
	}
	mustExec(t, c, `CREATE CAST (mood AS text) WITH FUNCTION shown(mood)`)
	if cat, _, err = readCatalogOf(context.Background(), c, []string{"public.*"}); err != nil || !cat.Shadowed[catalog.EnumCast] || cat.Shadowed["::"] {
		t.Errorf("a cast of an enum takes the place of the one by way of text: %v", err)
	}
	mustExec(t, c, `CREATE CAST (bigint AS text) WITH INOUT`)
	if cat, _, err = readCatalogOf(context.Background(), c, []string{"public.*"}); err != nil || !cat.Shadowed["::"] {
		t.Errorf("an explicit cast between built-in types takes the place of the one by way of text: %v", err)
	}
}
