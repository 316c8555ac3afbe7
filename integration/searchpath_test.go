package integration

import "testing"

const tenants = `CREATE SCHEMA one; CREATE SCHEMA two; CREATE SCHEMA "Three";
CREATE TABLE one.items (id int PRIMARY KEY, x int); INSERT INTO one.items SELECT i, i FROM generate_series(1, 1000) i;
CREATE TABLE two.items (id int PRIMARY KEY, x text); INSERT INTO two.items SELECT i, 'two ' || i % 7 FROM generate_series(1, 1500) i;
CREATE TABLE "Three".items (x numeric(8,2), id int PRIMARY KEY); INSERT INTO "Three".items SELECT i / 4.0, i FROM generate_series(1, 500) i;
CREATE TABLE two.only (id int PRIMARY KEY); INSERT INTO two.only SELECT generate_series(1, 70);
CREATE VIEW one.shown AS SELECT x FROM one.items WHERE id < 10;
CREATE VIEW two.shown AS SELECT x FROM two.items WHERE id < 20;
VACUUM ANALYZE`

// TestSearchPath asks for tables of several schemas by one name: of each session's own search_path, from its second statement on here.
func TestSearchPath(t *testing.T) {
	s := privateStack(t, tenants, "--accelerate", "*.*")
	for _, path := range []string{"one", "two", `"Three"`, "two, one", "nosuch, one, public"} {
		direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
		must(t, direct, "SET search_path = "+path)
		must(t, proxy, "SET search_path = "+path)
		ask(t, proxy, "SELECT count(*) FROM items", nil) // shows the path
		for _, sql := range []string{"SELECT count(*), min(x), max(x) FROM items", "SELECT x, count(*) FROM items WHERE id < 9 GROUP BY x ORDER BY x", "SELECT count(*) FROM shown",
			"SELECT i.x, o.x FROM items i JOIN one.items o USING (id) WHERE id < 5 ORDER BY id", "SELECT sum(id) FROM only"} {
			for _, p := range protocols {
				want := ask(t, direct, sql, p.format)
				compare := func() {
					if got := ask(t, proxy, sql, p.format); got.String() != want.String() {
						t.Errorf("%s under %s (%s): %s", sql, path, p.name, firstDifference([]byte(got.String()), []byte(want.String())))
					}
				}
				if want.err != "" {
					compare()
				} else {
					s.accelerates(t, 1, compare)
				}
			}
		}
	}
	// The path of a session changes.
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	sql := "SELECT count(*), min(x), max(x) FROM items"
	for i := range 6 {
		path := []string{"one", "two", `"Three"`}[i%3]
		must(t, direct, "SET search_path = "+path)
		must(t, proxy, "SET search_path = "+path)
		for n := range 2 {
			want := ask(t, direct, sql, nil)
			compare := func() {
				if got := ask(t, proxy, sql, nil); got.String() != want.String() {
					t.Errorf("%s: %s", path, firstDifference([]byte(got.String()), []byte(want.String())))
				}
			}
			if n == 0 {
				compare()
			} else {
				s.accelerates(t, 1, compare)
			}
		}
	}
	must(t, proxy, "CREATE TEMP TABLE items (x int)")
	s.forwardsAll(t, func() {
		if got := ask(t, proxy, "SELECT count(*) FROM items", nil); len(got.rows) != 1 || got.rows[0] != `"0"|` {
			t.Error("with a temporary table:", got)
		}
		ask(t, proxy, "SELECT count(*) FROM items", nil)
	})
	if t.Failed() {
		t.Log(reasons(t, s))
	}
}
