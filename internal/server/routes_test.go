package server

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestRoutesChangeNoAnswer: whoever answers, as trials and times make it, answers are those of the server. Only
// what does not depend on time is asserted.
func TestRoutesChangeNoAnswer(t *testing.T) {
	b := startBench(t, `
CREATE TABLE sale (id int PRIMARY KEY, item int NOT NULL, v int NOT NULL);
INSERT INTO sale SELECT i, i % 5000, i % 17 FROM generate_series(1, 20000) i;
CREATE INDEX ON sale (item);
CREATE TABLE item (id int PRIMARY KEY, name text NOT NULL);
INSERT INTO item SELECT i, 'name ' || i FROM generate_series(0, 4999) i;
CREATE INDEX ON item (name);
ANALYZE sale, item;
`, Config{Trials: true, TrialFloor: time.Nanosecond})
	s := b.s
	direct := b.direct("postgres")
	sessions := map[string]*pgconn.PgConn{}
	for name, mode := range map[string]string{"plain": "", "insists": "SET pgaccel.mode = 'auto'", "forces": "SET pgaccel.mode = 'force'"} {
		sessions[name] = b.connect(fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", s.Addr()))
		if mode != "" {
			b.exec(sessions[name], mode)
		}
	}
	for round := range 150 {
		sql := fmt.Sprintf("SELECT count(*), sum(s.v) FROM sale s JOIN item i ON i.id = s.item WHERE i.name = 'name %d'", round%50)
		format := round%3 - 1
		want := b.ask(direct, sql, format)
		for name, c := range sessions {
			if got := b.ask(c, sql, format); got != want {
				t.Errorf("%s, round %d: %s, want %s", name, round, got, want)
			}
		}
		b.exec(sessions["plain"], fmt.Sprintf("UPDATE sale SET v = v + 1 WHERE item = %d", round%50))
	}
	// Nobody who forces is forwarded for the time.
	accelerated := func() (n int64) {
		for _, c := range s.databases[0].engine.Counts() {
			if c.Route == "accelerated" {
				n += c.N
			}
		}
		return n
	}
	before := accelerated()
	for range 20 {
		b.ask(sessions["forces"], "SELECT count(*), sum(s.v) FROM sale s JOIN item i ON i.id = s.item WHERE i.name = 'name 7'", -1)
	}
	if n := accelerated() - before; n != 20 {
		t.Errorf("%d of 20 executions were accelerated in force mode: %v", n, s.databases[0].engine.Counts())
	}
	if l := b.log.errors(); len(l) > 0 {
		t.Errorf("logged: %s", l)
	}
}
