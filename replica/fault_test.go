package replica

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pgaccel/colstore"
	"pgaccel/internal/pgserver"
)

// left lists what pgaccel has on the server.
const leftSQL = `SELECT coalesce(string_agg(what, ' '), '') FROM (SELECT slot_name::text AS what FROM pg_replication_slots WHERE database = current_database()
	UNION ALL SELECT pubname::text FROM pg_publication) x`

func TestRecoversFromLostSessions(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a VALUES (1)")
	store := colstore.New(colstore.Options{})
	defer store.Close()
	r := start(t, url, Config{Store: store})
	defer r.Close()
	ready(t, r)
	a := tableOID(t, c, "a")
	for i, kill := range []string{
		"SELECT count(pg_terminate_backend(active_pid))::text FROM pg_replication_slots WHERE database = current_database()",
		"SELECT count(pg_terminate_backend(pid))::text FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'pgaccel%' AND backend_type = 'client backend'",
		"DROP_PUBLICATION",
	} {
		waitState(t, store, a, colstore.StateReady)
		before := queryText(t, c, "SELECT active_pid::text FROM pg_replication_slots WHERE database = current_database()")
		if kill == "DROP_PUBLICATION" {
			mustExec(t, c, "DROP PUBLICATION "+r.name)
		} else if n := queryText(t, c, kill); n == "0" {
			t.Fatal("nothing to kill")
		}
		// A change that no stream saw must not be missing from what is served next.
		mustExec(t, c, fmt.Sprintf("INSERT INTO a VALUES (%d)", 10+i))
		eventually(t, "a new slot", func() bool {
			now := queryText(t, c, "SELECT coalesce(max(active_pid)::text, '') FROM pg_replication_slots WHERE database = current_database()")
			return now != "" && now != before
		})
		eventually(t, "the new row is copied", func() bool {
			v, _ := store.Get(a)
			if v == nil {
				return false
			}
			defer v.Release()
			return v.Rows == int64(2+i)
		})
		waitInsert(t, c, store)
	}
	r.Close()
	if got := queryText(t, c, leftSQL); got != "" {
		t.Errorf("left behind: %s", got)
	}
	if v, st := store.Get(a); v != nil {
		t.Errorf("still served after Close: %s", st)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a SELECT g FROM generate_series(1, 300000) g")
	for i := range 30 { // cut short at each step of the way
		after := time.Duration(i*i) * 300 * time.Microsecond
		store := colstore.New(colstore.Options{})
		r := start(t, url, Config{Store: store})
		time.Sleep(after)
		r.Close()
		if got := queryText(t, c, leftSQL); got != "" {
			t.Errorf("closed after %v: left behind: %s", after, got)
		}
		if used, _ := store.Usage(); used != 0 {
			t.Errorf("closed after %v: %d bytes in use", after, used)
		}
		store.Close()
	}
	// What a killed instance left is dropped by the next; what a living one has is not.
	mustExec(t, c, "CREATE PUBLICATION pgaccel_0123456789ab; CREATE PUBLICATION pgaccel_mine")
	one := start(t, url, Config{})
	ready(t, one)
	two := start(t, url, Config{})
	ready(t, two)
	names := queryText(t, c, "SELECT string_agg(pubname, ' ') FROM pg_publication")
	if strings.Contains(names, "pgaccel_0123456789ab") || !strings.Contains(names, "pgaccel_mine") || !strings.Contains(names, one.name) || !strings.Contains(names, two.name) {
		t.Errorf("publications: %s", names)
	}
}

// TestMemoryLimitRefusesOneTable: one that does not fit is refused, and copied once the limit is raised.
func TestMemoryLimitRefusesOneTable(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, `CREATE TABLE small (id int PRIMARY KEY); INSERT INTO small SELECT g FROM generate_series(1, 1000) g;
		CREATE TABLE big (id int PRIMARY KEY, t text); INSERT INTO big SELECT g, repeat(md5(g::text), 8) FROM generate_series(1, 20000) g`)
	store := colstore.New(colstore.Options{MemoryLimit: 2 << 20})
	defer store.Close()
	r := start(t, url, Config{Store: store})
	defer r.Close()
	ready(t, r)
	waitState(t, store, tableOID(t, c, "small"), colstore.StateReady)
	waitState(t, store, tableOID(t, c, "big"), colstore.StateRefused)
	for _, st := range store.Statuses() {
		if st.Name == "public.big" && !strings.HasPrefix(st.Detail, "memory limit") {
			t.Errorf("%+v", st)
		}
	}
	mustExec(t, c, "INSERT INTO big VALUES (0, 'while it is refused')")
	store.Memory().SetLimit(3 << 20) // too little as well
	r.MemoryRaised()
	waitState(t, store, tableOID(t, c, "big"), colstore.StateRefused)
	store.Memory().SetLimit(1 << 30)
	r.MemoryRaised()
	waitState(t, store, tableOID(t, c, "big"), colstore.StateReady)
	mustExec(t, c, "INSERT INTO big VALUES (-1, 'and after')")
	if !served(t, c, store, "big", "concat('|', id, '|', t)") {
		t.Error("the copied table does not answer")
	}
}

func TestPatternsAndTablesThatComeAndGo(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE SCHEMA m; CREATE TABLE m.f1 (id int PRIMARY KEY); CREATE TABLE m.secret (id int PRIMARY KEY); CREATE TABLE other (id int PRIMARY KEY); CREATE TABLE m.nokey (a int)")
	store := colstore.New(colstore.Options{})
	defer store.Close()
	r := start(t, url, Config{Store: store, Accelerate: []string{"m.*", "!m.secret"}})
	defer r.Close()
	ready(t, r)
	states := func() string {
		var b []string
		for _, st := range store.Statuses() {
			b = append(b, st.Name+"="+st.State.String())
		}
		return strings.Join(b, " ")
	}
	if got := states(); got != "m.f1=ready m.nokey=refused" {
		t.Errorf("states: %s", got)
	}
	mustExec(t, c, "UPDATE m.nokey SET a = 1; CREATE TABLE m.f2 (id int PRIMARY KEY); INSERT INTO m.f2 VALUES (1)")
	eventually(t, "a new table is copied", func() bool { return states() == "m.f1=ready m.f2=ready m.nokey=refused" })
	waitInsert(t, c, store)
	f2 := tableOID(t, c, "m.f2")
	mustExec(t, c, "INSERT INTO m.f2 VALUES (2)")
	waitInsert(t, c, store)
	if v, st := store.Get(f2); v == nil {
		t.Errorf("a change of the new table made it %s", st)
	} else {
		if got := strings.Join(contents(v), " "); got != "|1 |2" {
			t.Errorf("the new table has %s", got)
		}
		v.Release()
	}
	mustExec(t, c, "DROP TABLE m.f1; ALTER TABLE m.nokey ADD PRIMARY KEY (a)")
	eventually(t, "the dropped table is gone, the mended one copied", func() bool { return states() == "m.f2=ready m.nokey=ready" })
	// Without its key the table's UPDATEs fail for as long as it is published.
	mustExec(t, c, "ALTER TABLE m.f2 DROP CONSTRAINT f2_pkey; INSERT INTO m.f2 VALUES (3)")
	eventually(t, "a table without key is out of the publication", func() bool {
		return queryText(t, c, "SELECT count(*)::text FROM pg_publication_tables WHERE tablename = 'f2'") == "0"
	})
	mustExec(t, c, "UPDATE m.f2 SET id = id")
	eventually(t, "and refused", func() bool { return states() == "m.f2=refused m.nokey=ready" })
	mustExec(t, c, "CREATE FUNCTION public.sum2(int) RETURNS int LANGUAGE sql AS 'SELECT 1'")
	eventually(t, "a new function is known", func() bool { return store.Catalog().Shadowed["sum2"] })
	eventually(t, "renamed away", func() bool {
		c.Exec(context.Background(), "ALTER TABLE m.nokey SET SCHEMA public")
		return states() == "m.f2=refused"
	})
}

// TestNewTableWithOpenTransactions: joining the publication hides what transactions
// that are open at that moment have done before it.
func TestNewTableWithOpenTransactions(t *testing.T) {
	url := database(t)
	c, writer := connectTo(t, url), connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY)")
	store := colstore.New(colstore.Options{})
	defer store.Close()
	r := start(t, url, Config{Store: store})
	defer r.Close()
	ready(t, r)
	mustExec(t, writer, "BEGIN; INSERT INTO a VALUES (1)")
	mustExec(t, c, "CREATE TABLE late (id int); ALTER TABLE late REPLICA IDENTITY FULL")
	mustExec(t, writer, "INSERT INTO late VALUES (1)") // before the table is published, nearly always
	late := tableOID(t, c, "late")
	eventually(t, "the table is published", func() bool {
		return queryText(t, c, "SELECT count(*)::text FROM pg_publication_tables WHERE tablename = 'late'") == "1"
	})
	time.Sleep(300 * time.Millisecond)
	if v, st := store.Get(late); v != nil {
		t.Fatalf("copied beside a transaction whose changes the stream does not show: %s", st)
	}
	mustExec(t, writer, "COMMIT")
	waitState(t, store, late, colstore.StateReady)
	v, _ := store.Get(late)
	defer v.Release()
	if v.Rows != 1 {
		t.Errorf("%d rows, want 1", v.Rows)
	}
}

// TestStreamedTransactions: large transactions come in pieces before they end.
func TestStreamedTransactions(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY, t text); CREATE TABLE b (id int PRIMARY KEY, t text)")
	mustExec(t, c, "ALTER DATABASE "+queryText(t, c, "SELECT current_database()")+" SET logical_decoding_work_mem = '64kB'")
	store := colstore.New(colstore.Options{})
	defer store.Close()
	r := start(t, url, Config{Store: store})
	defer r.Close()
	ready(t, r)
	a, b := tableOID(t, c, "a"), tableOID(t, c, "b")
	insert := "INSERT INTO %s SELECT g, repeat('x', 200) FROM generate_series(%d, %d) g"
	mustExec(t, c, "BEGIN; "+fmt.Sprintf(insert, "a", 1, 5000)+"; ROLLBACK")
	waitInsert(t, c, store)
	for _, oid := range []uint32{a, b} {
		if v, st := store.Get(oid); v == nil {
			t.Errorf("an aborted transaction left a table %s", st)
		} else {
			v.Release()
		}
	}
	other := connectTo(t, url)
	mustExec(t, other, "BEGIN; "+fmt.Sprintf(insert, "b", 1, 5000))
	time.Sleep(50 * time.Millisecond)
	if v, st := store.Get(b); v == nil {
		t.Errorf("a transaction that runs still left a table %s", st)
	} else {
		v.Release()
	}
	// Another one commits in between.
	mustExec(t, c, "INSERT INTO a VALUES (0, '')")
	waitInsert(t, c, store)
	count := func(oid uint32) int {
		v, st := store.Get(oid)
		if v == nil {
			t.Errorf("%d is %s", oid, st)
			return -1
		}
		defer v.Release()
		return len(contents(v))
	}
	if n := count(a); n != 1 {
		t.Errorf("a has %d rows", n)
	}
	if n := count(b); n != 0 {
		t.Errorf("b has %d rows of a transaction that runs still", n)
	}
	mustExec(t, other, "SAVEPOINT s; "+fmt.Sprintf(insert, "a", 1, 5000)+"; ROLLBACK TO s; COMMIT")
	waitInsert(t, c, store)
	if n, m := count(a), count(b); n != 1 || m != 5000 {
		t.Errorf("a has %d rows, b %d", n, m)
	}
	if got := queryText(t, c, "SELECT sum(stream_txns)::text FROM pg_stat_replication_slots s JOIN pg_replication_slots USING (slot_name) WHERE database = current_database()"); got == "0" {
		t.Error("nothing was streamed: the test tests nothing")
	}
}

func TestPreparedTransactionHoldsBackTheFirstCopyOnly(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY)")
	mustExec(t, c, "BEGIN; INSERT INTO a VALUES (1); PREPARE TRANSACTION '"+url+"'")
	store := colstore.New(colstore.Options{})
	defer store.Close()
	r := start(t, url, Config{Store: store})
	defer r.Close()
	time.Sleep(200 * time.Millisecond)
	if r.Ready() {
		t.Error("ready beside a prepared transaction")
	}
	mustExec(t, c, "COMMIT PREPARED '"+url+"'")
	ready(t, r)
	a := tableOID(t, c, "a")
	waitState(t, store, a, colstore.StateReady)
	// Later copies do not wait for it; its commit makes them outdated.
	mustExec(t, c, "BEGIN; INSERT INTO a VALUES (2); PREPARE TRANSACTION '"+url+"'")
	mustExec(t, c, "INSERT INTO a VALUES (3)")
	waitInsert(t, c, store)
	waitState(t, store, a, colstore.StateReady)
	rows := func() int64 {
		v, _ := store.Get(a)
		if v == nil {
			return -1
		}
		defer v.Release()
		return v.Rows
	}
	if n := rows(); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
	mustExec(t, c, "COMMIT PREPARED '"+url+"'")
	waitInsert(t, c, store)
	if n := rows(); n == 2 {
		t.Error("the prepared transaction's commit was missed")
	}
	eventually(t, "all rows", func() bool { return rows() == 3 })
}

func TestRanksAreTheServers(t *testing.T) {
	for _, options := range []string{"", "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'sv'", "TEMPLATE template0 LOCALE 'C.UTF-8'"} {
		t.Run(options, func(t *testing.T) {
			url := database(t, options)
			c := connectTo(t, url)
			mustExec(t, c, `CREATE COLLATION de (provider = icu, locale = 'de');
				CREATE TABLE a (id serial PRIMARY KEY, icu text COLLATE de, padded char(3), plain text, c char(3) COLLATE "C");
				INSERT INTO a (icu, padded, plain, c) SELECT s, s, s, s FROM unnest(ARRAY['a', 'B', 'A', 'b', 'ä', '_', '-a', '10', '9', 'Z', '', NULL, E'a\x01', 'a b']) s`)
			store := colstore.New(colstore.Options{})
			defer store.Close()
			r := start(t, url, Config{Store: store})
			defer r.Close()
			ready(t, r)
			v, st := store.Get(tableOID(t, c, "a"))
			if v == nil {
				t.Fatal(st)
			}
			defer v.Release()
			for col, name := range map[int]string{1: "icu", 2: "padded", 3: "plain", 4: "c"} {
				d := v.Dicts[col]
				if d.Ranks() == nil {
					t.Errorf("%s: no ranks", name)
					continue
				}
				byRank := make([]string, d.Len())
				for code, rank := range d.Ranks() {
					byRank[rank] = d.At(int64(code))
				}
				got := fmt.Sprintf("%q", byRank)
				want := queryRows(t, c, "SELECT DISTINCT "+name+" FROM a WHERE "+name+" IS NOT NULL ORDER BY 1")
				if got != fmt.Sprintf("%q", want) {
					t.Errorf("%s: order %s, want %q", name, got, want)
				}
			}
		})
	}
}

// TestDefinitionChangedUnderTheSnapshot: a rewritten or truncated table shows its
// rows to no older snapshot, so that a copy made there would be empty.
func TestDefinitionChangedUnderTheSnapshot(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a SELECT g FROM generate_series(1, 100) g")
	for _, sql := range []string{"TRUNCATE a; INSERT INTO a VALUES (1)", "ALTER TABLE a ALTER id TYPE bigint", "ALTER TABLE a ADD COLUMN x int", "VACUUM FULL a"} {
		e, store := testEpoch(t, url)
		h, err := e.hold(context.Background(), "")
		if err != nil {
			t.Fatal(err)
		}
		mustExec(t, c, sql)
		if _, err := e.copyTable(context.Background(), h, store.Catalog().Tables[0], newFlag(), func() {}); err != errDefinition {
			t.Errorf("%s after the snapshot: %v", sql, err)
		}
		if used, _ := store.Usage(); used != 0 {
			t.Errorf("%d bytes left", used)
		}
		h.close()
	}
}

// TestFirstCopyUnderWrites: the exported snapshot and the stream together miss
// nothing and repeat nothing, whatever runs beside them.
func TestFirstCopyUnderWrites(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id bigserial PRIMARY KEY, v int)")
	stop, stopped := make(chan struct{}), make(chan struct{})
	writer := connectTo(t, url)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				writer.Exec(context.Background(), "INSERT INTO a (v) VALUES (1)")
				time.Sleep(time.Duration(rand.Intn(100)) * time.Millisecond)
			}
		}
	}()
	compared := 0
	for range 3 {
		store := colstore.New(colstore.Options{})
		r := start(t, url, Config{Store: store, RecopyQuiet: time.Millisecond})
		ready(t, r)
		a := tableOID(t, c, "a")
		// While the writer runs, a version is there for an instant only; whatever is
		// served must be what the server shows in a snapshot that contains it.
		for range 300 {
			r.forgive(a)
			tx, err := c.BeginTx(context.Background(), txRepeatable)
			if err != nil {
				t.Fatal(err)
			}
			var snap string
			var count int64
			if err := tx.QueryRow(context.Background(), "SELECT pg_current_snapshot()::text, (SELECT count(*) FROM a)").Scan(&snap, &count); err != nil {
				t.Fatal(err)
			}
			waitInsert(t, c, store)
			s, _ := colstore.ParseSnapshot(snap)
			if v, err := store.View(a, s); err == nil {
				if compared++; int64(len(contents(v))) != count {
					t.Errorf("served %d rows, the server shows %d", len(contents(v)), count)
				}
				v.Release()
			}
			tx.Rollback(context.Background())
			time.Sleep(2 * time.Millisecond)
		}
		r.Close()
		store.Close()
	}
	close(stop)
	<-stopped
	if t.Logf("%d answers compared", compared); compared == 0 {
		t.Error("nothing was compared")
	}
	store := colstore.New(colstore.Options{})
	defer store.Close()
	r := start(t, url, Config{Store: store})
	defer r.Close()
	ready(t, r)
	v, st := store.Get(tableOID(t, c, "a"))
	if v == nil {
		t.Fatal(st)
	}
	defer v.Release()
	if got := queryText(t, c, "SELECT count(*)::text FROM a"); got != fmt.Sprint(v.Rows) {
		t.Errorf("copied %d of %s rows", v.Rows, got)
	}
}

var txRepeatable = pgx.TxOptions{IsoLevel: pgx.RepeatableRead}

// TestServerCrash: a backend that is killed takes all others with it, and the
// server recovers from its log.
func TestServerCrash(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := pgserver.Start(ctx, pgserver.Options{Settings: map[string]string{"shared_buffers": "16MB", "restart_after_crash": "on"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	url := s.URL("postgres", "postgres")
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a VALUES (1)")
	store := colstore.New(colstore.Options{})
	defer store.Close()
	r := start(t, url, Config{Store: store})
	defer r.Close()
	ready(t, r)
	a := tableOID(t, c, "a")
	pid, err := strconv.Atoi(queryText(t, c, "SELECT active_pid::text FROM pg_replication_slots"))
	if err != nil {
		t.Fatal(err)
	}
	before := store.Applied()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "waits fail", func() bool { return store.Wait(ctx, 0) == colstore.ErrStream || store.Applied() > before })
	// A session may begin, and take a row, before the server has noticed that it must end them all.
	eventually(t, "the server ends its sessions", func() bool { return c.Ping(ctx) != nil })
	eventually(t, "the server takes a row", func() bool {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return false
		}
		if _, err := conn.Exec(ctx, "INSERT INTO a VALUES (2) ON CONFLICT DO NOTHING"); err != nil {
			conn.Close(ctx)
			return false
		}
		c = conn
		return true
	})
	defer c.Close(context.Background())
	eventually(t, "both rows are served", func() bool {
		v, _ := store.Get(a)
		if v == nil {
			return false
		}
		defer v.Release()
		return v.Rows == 2
	})
	waitInsert(t, c, store)
}

// TestReplacedTableIsNotPublished: what was looked at and what is added by name may
// be two tables. One that cannot be updated while it is published must never be.
func TestReplacedTableIsNotPublished(t *testing.T) {
	ctx := context.Background()
	url := database(t)
	c := connectTo(t, url)
	e := &epoch{control: connectTo(t, url), name: publicationPrefix + "0123456789ab"}
	mustExec(t, c, "CREATE PUBLICATION "+e.name)
	f := func(what, change string, want error) {
		t.Helper()
		mustExec(t, c, "DROP TABLE IF EXISTS a; CREATE TABLE a (id int PRIMARY KEY)")
		cat, _, err := readCatalogOf(ctx, c, []string{"public.a"})
		if err != nil || len(cat.Tables) != 1 {
			t.Fatal(cat, err)
		}
		mustExec(t, c, change)
		if err := e.addTables(ctx, cat.Tables...); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		published := want == nil
		if got := queryText(t, c, "SELECT count(*)::text FROM pg_publication_tables WHERE pubname = '"+e.name+"'"); (got == "1") != published {
			t.Errorf("%s: %s tables are published", what, got)
		}
		mustExec(t, c, "INSERT INTO a VALUES (1); UPDATE a SET id = 2; DELETE FROM a")
	}
	f("replaced by one without key", "DROP TABLE a; CREATE TABLE a (id int)", errReplaced)
	f("key dropped", "ALTER TABLE a DROP CONSTRAINT a_pkey", errReplaced)
	f("identity nothing", "ALTER TABLE a REPLICA IDENTITY NOTHING", errReplaced)
	f("replaced by one with a key", "DROP TABLE a; CREATE TABLE a (id int PRIMARY KEY)", errReplaced)
	f("nothing changed", "SELECT 1", nil)
}
