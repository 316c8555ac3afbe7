package replica

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/sqltype"
)

// start begins to replicate and stops, with a check that nothing is left, when the
// test ends.
func start(t testing.TB, url string, cfg Config) *Replicator {
	t.Helper()
	cfg.Upstream = url
	if cfg.Store == nil {
		cfg.Store = colstore.New(colstore.Options{})
		t.Cleanup(cfg.Store.Close)
	}
	if cfg.Accelerate == nil {
		cfg.Accelerate = []string{"public.*"}
	}
	if cfg.backoffMax == 0 {
		cfg.backoffMax = backoffMin
	}
	if cfg.RecopyQuiet == 0 {
		cfg.RecopyQuiet = 50 * time.Millisecond
	}
	out := io.Discard
	if os.Getenv("REPLICA_LOG") != "" {
		out = os.Stderr
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(out, nil))
	}
	r, err := Start(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func ready(t testing.TB, r *Replicator) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := r.WaitReady(ctx); err != nil {
		t.Fatalf("%v; %+v", err, r.cfg.Store.Statuses())
	}
}

func tableOID(t testing.TB, c *pgx.Conn, name string) uint32 {
	t.Helper()
	var oid uint32
	if err := c.QueryRow(context.Background(), "SELECT $1::text::regclass::oid", name).Scan(&oid); err != nil {
		t.Fatal(err)
	}
	return oid
}

// waitState waits until the table is in a state.
func waitState(t testing.TB, s *colstore.Store, oid uint32, want colstore.State) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		v, st := s.Get(oid)
		if v != nil {
			v.Release()
		}
		if st == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("state of %d is %s, want %s: %+v", oid, st, want, s.Statuses())
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// waitInsert waits, as the engine does, for all that is visible now.
func waitInsert(t testing.TB, c *pgx.Conn, s *colstore.Store) {
	t.Helper()
	var hi, lo uint64
	var lsn string
	if err := c.QueryRow(context.Background(), "SELECT pg_current_wal_insert_lsn()::text").Scan(&lsn); err != nil {
		t.Fatal(err)
	}
	fmt.Sscanf(lsn, "%X/%X", &hi, &lo)
	cat := s.Catalog()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := s.Wait(ctx, catalog.NormalizeLSN(hi<<32|lo, cat.WALSegmentSize, cat.WALBlockSize)); err != nil {
		t.Fatalf("waiting for %s (applied %X): %v", lsn, s.Applied(), err)
	}
}

func TestChangeIsThereWhenWaitReturns(t *testing.T) {
	for _, sync := range []string{"on", "off"} {
		t.Run("synchronous_commit="+sync, func(t *testing.T) {
			url := database(t)
			c := connectTo(t, url)
			mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY, v int); CREATE TABLE b (id int PRIMARY KEY); INSERT INTO a VALUES (0, 0)")
			store := colstore.New(colstore.Options{})
			defer store.Close()
			r := start(t, url, Config{Store: store, RecopyQuiet: time.Millisecond})
			ready(t, r)
			defer r.Close()
			a := tableOID(t, c, "a")
			mustExec(t, c, "SET synchronous_commit = "+sync)
			var waited time.Duration
			rounds := 0
			for i := 1; i <= 200; i++ {
				mustExec(t, c, []string{"UPDATE a SET v = v + 1 WHERE id = 0", fmt.Sprintf("INSERT INTO a VALUES (%d, 1)", i), "DELETE FROM a WHERE id > 0",
					fmt.Sprintf("BEGIN; SAVEPOINT s; UPDATE a SET v = 0 WHERE id = 0; RELEASE s; INSERT INTO b VALUES (%d); COMMIT", i)}[i%4])
				begin := time.Now()
				waitInsert(t, c, store)
				waited += time.Since(begin)
				want := strings.Join(queryRows(t, c, "SELECT concat('|', id, '|', v) FROM a ORDER BY id"), " ")
				v, st := store.Get(a)
				if v == nil {
					t.Fatalf("round %d: the table is %s", i, st)
				}
				rows := contents(v)
				v.Release()
				slices.SortFunc(rows, compareIDs)
				if got := strings.Join(rows, " "); got != want {
					t.Fatalf("round %d: %s, want %s", i, got, want)
				}
				rounds++
			}
			t.Logf("%d rounds, mean wait %v", rounds, waited/time.Duration(rounds))
		})
	}
}

// compareIDs orders rows that begin with an integer.
func compareIDs(a, b string) int {
	id := func(s string) (n int64) { fmt.Sscanf(s, "|%d", &n); return n }
	return cmp.Compare(id(a), id(b))
}

// forgive lets a table, all where oid is 0, be copied again at once, however often it
// has changed.
func (r *Replicator) forgive(oid uint32) {
	r.mu.Lock()
	e := r.current
	r.mu.Unlock()
	if e == nil {
		return
	}
	e.reg.mu.Lock()
	for _, t := range e.reg.tables {
		if oid == 0 || t.meta.OID == oid {
			t.quiet, t.took, t.notBefore = 0, 0, time.Time{}
		}
	}
	e.reg.mu.Unlock()
	signal(e.copySoon)
}

// contents returns the rows of a version as text, in order.
func contents(v *colstore.Table) []string {
	var rows []string
	for _, seg := range v.Segments {
		for i := range seg.Rows {
			if seg.Live != nil && seg.Live[i>>6]>>(i&63)&1 == 0 {
				continue
			}
			var b strings.Builder
			for c := range v.Meta.Columns {
				b.WriteByte('|')
				col := &seg.Columns[c]
				switch {
				case v.Meta.Columns[c].Unsupported != "":
					b.WriteByte('-')
				case col.Nulls != nil && col.Nulls[i>>6]>>(i&63)&1 != 0:
					b.WriteByte('~')
				default:
					var x [1]int64
					col.Data.Gather(x[:], i/1024*1024, []uint16{uint16(i % 1024)})
					if v.Meta.Columns[c].Type.Varying() {
						d, _ := sqltype.NumericOfKey(v.Dicts[c].At(x[0]))
						b.WriteString(d.String())
					} else if v.Dicts[c] != nil {
						b.WriteString(v.Dicts[c].At(x[0]))
					} else {
						fmt.Fprint(&b, x[0])
					}
				}
			}
			rows = append(rows, b.String())
		}
	}
	return rows
}

func TestCopyUnderWritesHoldsItsSnapshot(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, `CREATE TABLE w (id int PRIMARY KEY, v bigint, pad text) WITH (autovacuum_enabled = off);
		INSERT INTO w SELECT g, g, repeat('x', 100) FROM generate_series(1, 100000) g`) // 1,700 pages: split
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for n := range 3 {
		conn := connectTo(t, url)
		writers.Add(1)
		go func() {
			defer writers.Done()
			rng := rand.New(rand.NewSource(int64(n)))
			for {
				select {
				case <-stop:
					return
				default:
				}
				conn.Exec(context.Background(), fmt.Sprintf("BEGIN; UPDATE w SET v = v - 1 WHERE id = %d; SAVEPOINT a; UPDATE w SET v = v + 1 WHERE id = %d; %s TO a; INSERT INTO w VALUES (%d, 0, 'new'); COMMIT",
					1+rng.Intn(50000), 50001+rng.Intn(50000), []string{"RELEASE", "ROLLBACK"}[rng.Intn(2)], 1000000+rng.Int31n(1e9)), pgx.QueryExecModeSimpleProtocol)
			}
		}()
	}
	defer writers.Wait()
	defer close(stop)
	// The whole path but the publishing: a copy at a snapshot, against the same
	// snapshot's own answer.
	e, _ := testEpoch(t, url)
	for range 5 {
		h, err := e.hold(context.Background(), "")
		if err != nil {
			t.Fatal(err)
		}
		v, err := e.copyTable(context.Background(), h, e.cfg.Store.Catalog().Tables[0], newFlag(), func() {})
		if err != nil {
			t.Fatal(err)
		}
		var count, sum, ids int64
		if err := h.conn.QueryRow(context.Background(), "SELECT count(*), sum(v)::bigint, sum(id)::bigint FROM public.w").Scan(&count, &sum, &ids); err != nil {
			t.Fatal(err)
		}
		var gotSum, gotIDs int64
		for _, seg := range v.Segments {
			x := make([]int64, seg.Rows)
			seg.Columns[0].Data.Decode(x, 0)
			for _, n := range x {
				gotIDs += n
			}
			seg.Columns[1].Data.Decode(x, 0)
			for _, n := range x {
				gotSum += n
			}
		}
		if v.Rows != count || gotSum != sum || gotIDs != ids {
			t.Errorf("copied %d rows, sums %d and %d; the snapshot has %d, %d, %d", v.Rows, gotSum, gotIDs, count, sum, ids)
		}
		v.Release()
		h.close()
	}
}

func TestChangedTableComesBack(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY, v text); INSERT INTO a VALUES (1, 'one'), (2, NULL)")
	store := colstore.New(colstore.Options{})
	defer store.Close()
	r := start(t, url, Config{Store: store})
	defer r.Close()
	ready(t, r)
	a := tableOID(t, c, "a")
	for i, step := range []struct {
		sql  string
		want string
	}{
		{"SELECT", "|1|one |2|~"},
		{"UPDATE a SET v = 'two' WHERE id = 2", "|1|one |2|two"},
		{"TRUNCATE a", ""},
		{"INSERT INTO a VALUES (3, '')", "|3|"},
		{"ALTER TABLE a ADD n int DEFAULT 7", "|3||7"},
		{"ALTER TABLE a ALTER n TYPE int USING n + 100", "|3||107"},
		{"ALTER TABLE a DROP v", "|3|107"},
		{"BEGIN; CREATE TABLE x (LIKE a INCLUDING ALL); INSERT INTO x SELECT id + 1, n FROM a; DROP TABLE a; ALTER TABLE x RENAME TO a; COMMIT", "|4|107"},
	} {
		mustExec(t, c, step.sql)
		if now := tableOID(t, c, "a"); now != a {
			a = now
			eventually(t, "the new table is known", func() bool { return store.Catalog().ByOID(a) != nil })
		}
		r.forgive(a)
		var got string
		eventually(t, fmt.Sprintf("step %d (%s): rows %q", i, step.sql, step.want), func() bool {
			r.forgive(a)
			v, _ := store.Get(a)
			if v == nil {
				return false
			}
			defer v.Release()
			got = strings.Join(contents(v), " ")
			return got == step.want
		})
	}
}
