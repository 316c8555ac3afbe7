package replica

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgaccel/colstore"
	"pgaccel/sqltype"
)

// TestTypesOfExtensions: columns of them are known by the functions that write their values, not by their names, go on after a restart,
// and are copied where a pgaccel that did not know them has saved the table.
func TestTypesOfExtensions(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, `CREATE SCHEMA x; CREATE EXTENSION citext SCHEMA x; CREATE EXTENSION hstore SCHEMA x; CREATE TYPE public.hstore AS (a int); CREATE DOMAIN citext AS x.citext;
		CREATE TABLE a (id int PRIMARY KEY, c x.citext, h x.hstore, i hstore, d citext, l x.citext[]); INSERT INTO a VALUES (1, 'Größe', '"a"=>NULL, b=>"x\"y"', ROW(1), 'D', '{L}')`)
	dir := filepath.Join(t.TempDir(), "data")
	for round := range 2 {
		store := colstore.New(colstore.Options{})
		r := start(t, url, Config{Store: store, DataDir: dir, CheckpointInterval: 20 * time.Millisecond})
		ready(t, r)
		waitInsert(t, c, store)
		v, state := store.Get(tableOID(t, c, "a"))
		if v == nil {
			t.Fatal(state)
		}
		if copied := copied(v.Meta); !slices.Equal(copied, []int{0, 1, 2}) {
			t.Errorf("copied: %d", copied)
		}
		for col, want := range map[int]string{1: "Größe", 2: `"a"=>NULL, "b"=>"x\"y"`} {
			if got := sqltype.OpaqueOfType(v.Meta.Columns[col].Type).AppendText(nil, v.Dicts[col].At(0)); string(got) != want {
				t.Errorf("%d: %s, want %s", round, got, want)
			}
		}
		extensions, err := extensionTypes(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		meta := *v.Meta
		meta.Columns = slices.Clone(meta.Columns)
		if got := lacking(&meta, nil, extensions); got != "" {
			t.Errorf("lacks %s", got)
		}
		meta.Columns[2].Unsupported = "type x.hstore"
		if got := lacking(&meta, nil, extensions); got != "h" {
			t.Errorf("lacks %q, want h", got)
		}
		v.Release()
		r.Close()
		store.Close()
		slotsAreFree(t, c)
	}
}
