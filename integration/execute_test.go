package integration

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestExecuteIsListed: what an EXECUTE of SQL's PREPARE executes is among pgaccel.queries, whatever it takes, with what stands against it.
func TestExecuteIsListed(t *testing.T) {
	s := privateStack(t, "CREATE TABLE item (id int PRIMARY KEY, price int); CREATE TABLE other (id int);\nINSERT INTO item SELECT i, i FROM generate_series(1, 1000) i;\nVACUUM ANALYZE;\n")
	conn := connect(t, s.proxy.url("postgres"))
	for _, sql := range []string{
		"PREPARE sums (int) AS SELECT sum(price) FROM item WHERE id > $1;", "EXECUTE sums(5)", "EXECUTE sums(6)",
		"PREPARE \"Odd\" AS\n SELECT count(*), random() < 2 FROM item", "EXECUTE \"Odd\"", "PREPARE change(int) AS UPDATE item SET price = $1 WHERE id = 1", "EXECUTE change(7)",
	} {
		must(t, conn, sql)
	}
	if a := ask(t, conn, "PREPARE sums AS SELECT 1 FROM item", nil); a.err == "" { // the name stays the first one's
		t.Error("a statement was prepared twice")
	}
	if a := ask(t, conn, "EXECUTE sums($1::int)", nil); a.err == "" {
		t.Error("a parameter without a value was executed")
	}
	if a := ask(t, conn, "EXECUTE sums(7)", []int16{0}); a.err != "" { // by the extended protocol
		t.Error(a.err)
	}
	must(t, conn, "DEALLOCATE sums")
	if a := ask(t, conn, "EXECUTE sums(7)", nil); a.err == "" {
		t.Error("what is deallocated was executed")
	}
	want := []string{"SELECT sum(price) FROM item WHERE id > $1 / 3 / EXECUTE of a statement of PREPARE", "SELECT count(*), random() < $1 FROM item / 1 / random()", "UPDATE item SET price = $1 WHERE id = $2 / 1 / "}
	var listed string
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		listed = ask(t, conn, "SELECT query || ' / ' || forwarded || ' / ' || coalesce(detail, '') FROM pgaccel.queries WHERE query ~ 'item'", nil).String()
		if !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(listed, w) }) {
			return
		}
		if time.Now().After(end) {
			t.Fatal(listed)
		}
	}
}
