package integration

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestExecuteIsListed: what an EXECUTE of SQL's PREPARE executes is among pgaccel.queries, whatever it takes, with what stands against it.
func TestExecuteIsListed(t *testing.T) {
	s := privateStack(t, "CREATE TABLE item (id int PRIMARY KEY, price int); CREATE TABLE other (id int);\nINSERT INTO item SELECT i, i FROM generate_series(1, 1000) i;\nVACUUM ANALYZE;\n")
	conn := connect(t, s.proxy.url("postgres"))
	// listed is how often a statement was, -1 where it is not among them.
	listed := func(text, detail string) int {
		for _, row := range ask(t, conn, "SELECT query || ' / ' || coalesce(detail, '') || ' / ' || forwarded FROM pgaccel.queries WHERE query ~ 'item'", nil).rows {
			if _, behind, ok := strings.Cut(row, text+" / "+detail+" / "); ok {
				n, err := strconv.Atoi(strings.Trim(behind, `"|`))
				if err != nil {
					t.Fatal(row)
				}
				return n
			}
		}
		return -1
	}
	executed := map[string]int{} // by text
	// A busy pgaccel leaves out statements of a shape that it has not looked at yet, and counts those of others.
	for _, s := range []struct{ prepare, execute, text, detail string }{
		{"PREPARE sums (int) AS SELECT sum(price) FROM item WHERE id > $1;", "EXECUTE sums(5)", "SELECT sum(price) FROM item WHERE id > $1", "EXECUTE of a statement of PREPARE"},
		{"PREPARE \"Odd\" AS\n SELECT count(*), random() < 2 FROM item", "EXECUTE \"Odd\"", "SELECT count(*), random() < $1 FROM item", "random()"},
		{"PREPARE change(int) AS UPDATE item SET price = $1 WHERE id = 1", "EXECUTE change(7)", "UPDATE item SET price = $1 WHERE id = $2", ""},
	} {
		must(t, conn, s.prepare)
		execute := func() {
			must(t, conn, s.execute)
			executed[s.text]++
		}
		n := -1
		for end := time.Now().Add(30 * time.Second); n < 0; time.Sleep(20 * time.Millisecond) {
			if execute(); time.Now().After(end) {
				t.Fatalf("%s is not listed: %s", s.text, ask(t, conn, "SELECT query, forwarded, detail FROM pgaccel.queries", nil))
			}
			n = listed(s.text, s.detail)
		}
		execute()
		execute()
		for end := time.Now().Add(30 * time.Second); listed(s.text, s.detail) < n+2; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s was executed twice, and counts %d after %d", s.text, listed(s.text, s.detail), n)
			}
		}
	}
	if a := ask(t, conn, "PREPARE sums AS SELECT 1 FROM item", nil); a.err == "" { // the name stays the first one's
		t.Error("a statement was prepared twice")
	}
	if a := ask(t, conn, "EXECUTE sums($1::int)", nil); a.err == "" {
		t.Error("a parameter without a value was executed")
	}
	const sums, why = "SELECT sum(price) FROM item WHERE id > $1", "EXECUTE of a statement of PREPARE"
	before := listed(sums, why)
	if a := ask(t, conn, "EXECUTE sums(7)", []int16{0}); a.err != "" { // by the extended protocol
		t.Error(a.err)
	}
	must(t, conn, "DEALLOCATE sums")
	if a := ask(t, conn, "EXECUTE sums(7)", nil); a.err == "" {
		t.Error("what is deallocated was executed")
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		n := listed(sums, why)
		if n > executed[sums]+1 {
			t.Fatalf("%d executions are listed of %d: those that failed, too", n, executed[sums]+1)
		}
		if n > before {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d executions are listed, as before one by the extended protocol", n)
		}
	}
}
