package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// speculations returns pgaccel_speculations_total by outcome.
func (s *stack) speculations(t testing.TB) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, line := range s.scrape(t) {
		if rest, ok := strings.CutPrefix(line, `pgaccel_speculations_total{outcome="`); ok {
			outcome, value, _ := strings.Cut(rest, `"} `)
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(line, err)
			}
			all[outcome] = n
		}
	}
	return all
}

// TestSpeculation: what was begun before the gate answered is taken where nothing has been
// committed since, and never where something has. A writer commits between the queries of
// some readers, and during those of others: every answer has all that was committed before
// the query, and what a query shows was committed before its end.
func TestSpeculation(t *testing.T) {
	s := privateStack(t, changingSchema)
	writer := connect(t, s.direct.url("postgres"))
	sql := "SELECT count(*), sum(v) FROM changing WHERE id >= $1"
	base := ask(t, writer, strings.Replace(sql, "$1", "10000", 1), nil)
	if !slices.Equal(base.rows, []string{`"0"|NULL|`}) {
		t.Fatal(base)
	}
	next := 10000
	commit := func() {
		if a := ask(t, writer, fmt.Sprintf("INSERT INTO changing VALUES (%d, 1, 1)", next), nil); a.err != "" {
			t.Error(a.err)
		}
		next++
	}
	readers := []func() answer{}
	for _, p := range protocols {
		conn := connect(t, s.proxy.url("postgres"))
		if p.format == nil {
			readers = append(readers, func() answer { return ask(t, conn, strings.Replace(sql, "$1", "10000", 1), nil) })
			continue
		}
		text := strings.Replace(sql, "$1", "$1::int", 1)
		if _, err := conn.Prepare(context.Background(), "q", text, nil); err != nil {
			t.Fatal(err)
		}
		readers = append(readers, func() (a answer) {
			var r *pgconn.ResultReader
			if p.format[0] == 0 {
				r = conn.ExecPrepared(context.Background(), "q", [][]byte{[]byte("10000")}, nil, []int16{0})
			} else { // the types of its parameters are not known when it is executed
				r = conn.ExecParams(context.Background(), text, [][]byte{[]byte("10000")}, nil, nil, []int16{0})
			}
			for r.NextRow() {
				a.rows = append(a.rows, fmt.Sprintf("%q|%q|", r.Values()[0], r.Values()[1]))
			}
			_, err := r.Close()
			a.note(err)
			return a
		})
	}
	commit()
	count := func(a answer) int {
		t.Helper()
		var n, sum int
		if len(a.rows) != 1 {
			t.Fatal(a)
		}
		if _, err := fmt.Sscanf(strings.ReplaceAll(a.rows[0], `"`, ""), "%d|%d|", &n, &sum); err != nil || n != sum {
			t.Fatal(a, err)
		}
		return n
	}
	for i, read := range readers {
		before := s.speculations(t)
		for range 30 {
			read()
		}
		if all := s.speculations(t); all["hit"] < before["hit"]+5 || all["settings"] != 0 {
			t.Errorf("reader %d: %v, then %v", i, before, all)
		}
	}
	// The writer commits between queries, now and then.
	s.accelerates(t, 200, func() {
		r := rand.New(rand.NewPCG(7, 7))
		for range 300 {
			if r.IntN(20) == 0 {
				commit()
			}
			if n := count(readers[r.IntN(len(readers))]()); n != next-10000 {
				t.Fatalf("%d rows, want %d", n, next-10000)
			}
		}
	})
	all := s.speculations(t)
	if all["hit"] == 0 {
		t.Errorf("nothing was taken of what was begun: %v", all)
	}
	// It commits while they run.
	var committed struct {
		sync.Mutex
		n int
	}
	committed.n = next - 10000
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(3 * time.Millisecond):
			}
			commit()
			committed.Lock()
			committed.n++
			committed.Unlock()
		}
	})
	for i := 0; i < 600 || s.speculations(t)["changed"] == 0 && i < 20_000; i++ {
		committed.Lock()
		least := committed.n
		committed.Unlock()
		n := count(readers[i%len(readers)]())
		committed.Lock()
		most := committed.n + 1 // one is being committed
		committed.Unlock()
		if n < least || n > most {
			t.Errorf("%d rows, though %d were committed before and at most %d after", n, least, most)
			break
		}
	}
	close(stop)
	wg.Wait()
	all = s.speculations(t)
	t.Log(all)
	if all["changed"] == 0 {
		t.Errorf("commits went unnoticed, or nothing was begun beside them: %v", all)
	}
}

// TestSpeculationNeedsRights: a session whose right is taken away, or that is told
// otherwise, has nothing of what was begun on the strength of its last query.
func TestSpeculationNeedsRights(t *testing.T) {
	s := privateStack(t, changingSchema+"CREATE ROLE reader LOGIN;\nGRANT SELECT ON changing TO reader;\n")
	owner := connect(t, s.direct.url("postgres"))
	conn, plain := connect(t, s.proxy.url("reader")), connect(t, s.direct.url("reader"))
	for round := range 5 {
		before := s.speculations(t)
		for range 20 {
			same(t, plain, conn, sumChanging)
		}
		if all := s.speculations(t); all["hit"] == before["hit"] {
			t.Errorf("round %d: nothing was taken: %v, then %v", round, before, all)
		}
		for _, change := range [][2]string{
			{"REVOKE SELECT ON changing FROM reader", "GRANT SELECT ON changing TO reader"},
			{"ALTER TABLE changing ENABLE ROW LEVEL SECURITY", "ALTER TABLE changing DISABLE ROW LEVEL SECURITY"},
		} {
			for _, sql := range change {
				if a := ask(t, owner, sql, nil); a.err != "" {
					t.Fatal(sql, a.err)
				}
				same(t, plain, conn, sumChanging)
			}
			s.eventually(t, conn, sumChanging)
		}
	}
}
