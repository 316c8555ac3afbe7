package pgoutput

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Random transactions of several sessions, with savepoints, rollbacks and changes of
// definitions, large enough to be streamed in pieces: what the model makes of the
// stream is what the server shows.
func TestRandomTransactions(t *testing.T) {
	settings := []string{"-c logical_decoding_work_mem=64kB", "-c logical_decoding_work_mem=64MB"}
	probe := connect(t, server.URL("postgres", "postgres"))
	if version(t, probe) >= 170000 {
		settings = append(settings, "-c debug_logical_replication_streaming=immediate")
	}
	for i, setting := range settings {
		t.Run(setting, func(t *testing.T) {
			seed := uint64(1000 + i)
			schema := "CREATE TABLE shared (id int PRIMARY KEY, t text, n int);"
			for w := range 3 {
				schema += fmt.Sprintf("CREATE TABLE own%d (id int PRIMARY KEY, t text, n int);", w)
			}
			s, a, m := begin(t, setting, schema)
			rounds := 6
			if strings.Contains(setting, "immediate") {
				rounds = 2 // slow: a piece for each row
			}
			for round := range rounds {
				var wait sync.WaitGroup
				for w := range 3 {
					c := connect(t, s.url)
					wait.Go(func() { randomTransactions(t, c, w, rand.New(rand.NewPCG(seed, uint64(10*round+w)))) })
				}
				wait.Wait()
				follow(s, a, m)
				if held, n := a.Held(); held != 0 || n != 0 {
					t.Errorf("%d bytes of %d transactions are left", held, n)
				}
				if t.Failed() {
					t.Fatalf("seed %d, round %d", seed, round)
				}
			}
			t.Logf("%d transactions, %d rows, messages %v", len(m.commits), m.rows, s.letters)
			if streams := s.letters[KindStreamCommit] > 5 && s.letters[KindStreamAbort] > 20; streams != (i != 1) {
				t.Errorf("messages %v", s.letters)
			}
		})
	}
}

func randomTransactions(t *testing.T, c *pgconn.PgConn, writer int, r *rand.Rand) {
	run := func(sql string) {
		if _, err := c.Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	own := fmt.Sprintf("own%d", writer)
	for range 6 {
		run("BEGIN")
		depth := 0
		for range 3 + r.IntN(12) {
			table := own
			if r.IntN(3) == 0 {
				table = "shared"
			}
			// Writers keep to keys of their own, so that none waits for another.
			where := fmt.Sprintf(" WHERE id %% 3 = %d", writer)
			switch r.IntN(14) {
			case 0, 1, 2, 3, 4:
				run(fmt.Sprintf("INSERT INTO %s (id, t, n) SELECT 3 * g + %d, repeat('x', g %% 100), %d FROM generate_series(%d, %d) g ON CONFLICT DO NOTHING",
					table, writer, r.IntN(100), r.IntN(1000), 1000+r.IntN(500)))
			case 5, 6:
				run(fmt.Sprintf("UPDATE %s SET n = n + 1, t = 'y' || id%s AND id %% 7 = %d", table, where, r.IntN(7)))
			case 7:
				run(fmt.Sprintf("UPDATE %s SET id = id + 30000 * %d%s AND id %% 11 = %d AND id < 30000", table, 5+r.IntN(60000), where, r.IntN(11)))
			case 8:
				run(fmt.Sprintf("DELETE FROM %s%s AND id %% 5 = %d", table, where, r.IntN(5)))
			case 9, 10, 11:
				run(fmt.Sprintf("SAVEPOINT s%d", depth))
				depth++
			case 12:
				if depth > 0 {
					depth = r.IntN(depth)
					run(fmt.Sprintf("ROLLBACK TO s%d", depth))
					depth++
				}
			case 13:
				switch r.IntN(4) {
				case 0:
					run(fmt.Sprintf("ALTER TABLE %s ADD c%d text", own, r.IntN(1<<30)))
				case 1:
					run("TRUNCATE " + own)
				default:
					if depth > 0 {
						depth = r.IntN(depth)
						run(fmt.Sprintf("RELEASE s%d", depth))
					}
				}
			}
		}
		run([]string{"COMMIT", "COMMIT", "COMMIT", "ROLLBACK"}[r.IntN(4)])
	}
	// Many subtransactions in one, as of a function that catches errors.
	run(strings.ReplaceAll(`DO $$ BEGIN FOR i IN 1..400 LOOP BEGIN
		INSERT INTO TABLE_ (id, t) VALUES (100000 + i, repeat('z', 300)); IF i % 3 = 0 THEN RAISE 'x'; END IF; DELETE FROM TABLE_ WHERE id = 99990 + i;
		EXCEPTION WHEN raise_exception THEN NULL; END; END LOOP; DELETE FROM TABLE_ WHERE id > 100000; END $$`, "TABLE_", own))
}
