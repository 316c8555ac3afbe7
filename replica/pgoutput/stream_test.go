package pgoutput

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// follow receives all that was committed and compares it with what the server shows.
func follow(s *source, a *Assembler, m *model) {
	s.t.Helper()
	s.receive(a.Message)
	m.compare(s)
}

func begin(t testing.TB, settings, schema string) (*source, *Assembler, *model) {
	t.Helper()
	s, m := newSource(t, settings, schema), newModel(t)
	return s, NewAssembler(m, 0), m
}

// words checks that the sink was told these, among others, in this order, and forgets
// what it was told.
func (m *model) words(want ...string) {
	m.t.Helper()
	at := 0
	for _, w := range want {
		i := slices.Index(m.log[at:], w)
		if i < 0 {
			m.t.Errorf("%q did not come (in this place): %q", w, m.log)
			break
		}
		at += i + 1
	}
	m.log = nil
}

func TestEveryMessage(t *testing.T) {
	s, a, m := begin(t, "", `CREATE TYPE mood AS ENUM ('sad', 'glad');
		CREATE TABLE a (id int PRIMARY KEY, n numeric, t text, m mood, g int GENERATED ALWAYS AS (id + 1) STORED, x aclitem, ts timestamptz)`)
	exec(t, s.db, "INSERT INTO a VALUES (1, 1.50, 'x', 'glad', DEFAULT, 'postgres=r/postgres', '2020-01-01'), (2, NULL, '', NULL, DEFAULT, NULL, 'infinity'), (3, 'NaN', 'ö', 'sad', DEFAULT, NULL, NULL)")
	follow(s, a, m)
	m.words("begin", "relation a(id!,n,t,m,x,ts)", "commit")
	exec(t, s.db, "UPDATE a SET n = 7, t = NULL WHERE id < 3; DELETE FROM a WHERE id = 3")
	exec(t, s.db, "UPDATE a SET id = id + 100")
	exec(t, s.db, "DELETE FROM a WHERE id = 101")
	follow(s, a, m)
	if slices.ContainsFunc(m.log, func(w string) bool { return strings.HasPrefix(w, "relation") }) {
		t.Errorf("the same definition was told twice: %q", m.log)
	}
	m.log = nil
	exec(t, s.db, "BEGIN; SELECT pg_logical_emit_message(true, 'p', 'in'), pg_logical_emit_message(false, 'p', 'out'); COMMIT")
	exec(t, s.db, "BEGIN; SELECT pg_logical_emit_message(true, 'p', 'lost'), pg_logical_emit_message(false, 'p', 'kept'); ROLLBACK")
	follow(s, a, m)
	m.words("message false p out", "begin", "message true p in", "commit", "message false p kept")
	exec(t, s.db, "SELECT pg_replication_origin_create('elsewhere'), pg_replication_origin_session_setup('elsewhere')")
	exec(t, s.db, "INSERT INTO a VALUES (4)")
	exec(t, s.db, "SELECT pg_replication_origin_session_reset()")
	exec(t, s.db, "TRUNCATE a")
	follow(s, a, m)
	m.words("truncate 1 cascade=false restart=false")
	for _, k := range []Kind{KindBegin, KindCommit, KindRelation, KindType, KindOrigin, KindInsert, KindUpdate, KindDelete, KindTruncate, KindMessage} {
		if s.letters[k] == 0 {
			t.Errorf("no message %q came", k)
		}
	}
	if m.texts == 0 {
		t.Error("no value came as text")
	}
}

func TestReplicaIdentities(t *testing.T) {
	s, a, m := begin(t, "", `
		CREATE TABLE d (a int, b text, c int, PRIMARY KEY (c, a));
		CREATE TABLE i (a int, u uuid NOT NULL, c text); CREATE UNIQUE INDEX iu ON i (u); ALTER TABLE i REPLICA IDENTITY USING INDEX iu;
		CREATE TABLE f (a int, b text); ALTER TABLE f REPLICA IDENTITY FULL`)
	exec(t, s.db, "INSERT INTO d SELECT g, 'x' || g, g % 3 FROM generate_series(1, 30) g; INSERT INTO i SELECT g, md5(g::text)::uuid, 'y' FROM generate_series(1, 30) g; INSERT INTO f SELECT g % 4, NULL FROM generate_series(1, 30) g")
	exec(t, s.db, "UPDATE d SET b = NULL WHERE a < 10; UPDATE d SET c = c + 10 WHERE a > 20; DELETE FROM d WHERE a % 5 = 0")
	exec(t, s.db, "UPDATE i SET c = 'z' WHERE a < 10; UPDATE i SET u = md5(c || a)::uuid WHERE a > 20; DELETE FROM i WHERE a % 5 = 0")
	exec(t, s.db, "UPDATE f SET b = 'z' WHERE a = 1; UPDATE f SET a = 9 WHERE a = 2; DELETE FROM f WHERE a = 3")
	follow(s, a, m)
	m.words("relation d(a!,b,c!)")
	m.log = nil
	exec(t, s.db, "ALTER TABLE f REPLICA IDENTITY NOTHING; INSERT INTO f VALUES (5); ALTER TABLE d REPLICA IDENTITY FULL; UPDATE d SET b = 'full'; ALTER TABLE d DROP CONSTRAINT d_pkey; UPDATE d SET a = 7; DELETE FROM d WHERE c = 0")
	follow(s, a, m)
	m.words("relation f(a,b)", "relation d(a!,b!,c!)")
}

func TestUnchangedOutOfLineValues(t *testing.T) {
	s, a, m := begin(t, "", `
		CREATE TABLE d (id int PRIMARY KEY, big text, n int); ALTER TABLE d ALTER big SET STORAGE EXTERNAL;
		CREATE TABLE f (id int, big text, n int); ALTER TABLE f ALTER big SET STORAGE EXTERNAL; ALTER TABLE f REPLICA IDENTITY FULL;
		CREATE TABLE k (id text PRIMARY KEY, n int); ALTER TABLE k ALTER id SET STORAGE EXTERNAL`)
	for _, table := range []string{"d", "f"} {
		exec(t, s.db, "INSERT INTO "+table+" SELECT g, repeat(g::text, 5000), 0 FROM generate_series(1, 5) g")
		exec(t, s.db, "UPDATE "+table+" SET n = 1; UPDATE "+table+" SET id = id + 10 WHERE id > 3; UPDATE "+table+" SET big = NULL WHERE id = 1; UPDATE "+table+" SET big = repeat('q', 9000) WHERE id = 2")
	}
	exec(t, s.db, "INSERT INTO k VALUES (repeat('a', 2600), 1)")
	exec(t, s.db, "UPDATE k SET n = 2")
	follow(s, a, m)
	if m.unchanged < 10 {
		t.Errorf("%d unchanged values", m.unchanged)
	}
}

func TestTruncateAndPartitions(t *testing.T) {
	s, a, m := begin(t, "", `
		CREATE TABLE p (id int, k int, t text, PRIMARY KEY (id, k)) PARTITION BY LIST (k);
		CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
		CREATE TABLE p2 (t text, k int NOT NULL, id int NOT NULL, PRIMARY KEY (id, k)); ALTER TABLE p ATTACH PARTITION p2 FOR VALUES IN (2);
		CREATE TABLE q (id serial PRIMARY KEY); CREATE TABLE r (id int PRIMARY KEY, q int REFERENCES q)`)
	exec(t, s.db, "INSERT INTO p SELECT g, 1 + g % 2, 'x' FROM generate_series(1, 20) g; UPDATE p SET k = 3 - k WHERE id < 5; DELETE FROM p WHERE id > 15")
	exec(t, s.db, "INSERT INTO q SELECT FROM generate_series(1, 5); INSERT INTO r VALUES (1, 1)")
	follow(s, a, m)
	m.words("relation p2(t,k!,id!)", "relation p1(id!,k!,t)")
	exec(t, s.db, "TRUNCATE p1")
	exec(t, s.db, "TRUNCATE q RESTART IDENTITY CASCADE")
	exec(t, s.db, "INSERT INTO q DEFAULT VALUES")
	follow(s, a, m)
	m.words("truncate 1 cascade=false restart=false", "truncate 2 cascade=true restart=true")
	exec(t, s.db, "INSERT INTO p VALUES (1, 1, 'again'); TRUNCATE p, r")
	follow(s, a, m)
	m.words("truncate 3 cascade=false restart=false")
}

func TestPreparedTransactionsComeAtTheirCommit(t *testing.T) {
	s, a, m := begin(t, "", "CREATE TABLE a (id int PRIMARY KEY, t text)")
	for i, rows := range []int{3, 5000} { // the second is streamed
		exec(t, s.db, fmt.Sprintf("BEGIN; INSERT INTO a SELECT g + %d, repeat('x', 50) FROM generate_series(1, %d) g", 10000*i, rows))
		xid := query(t, s.db, "SELECT pg_current_xact_id()::text")[0][0]
		exec(t, s.db, "PREPARE TRANSACTION 'p'")
		exec(t, s.db, "BEGIN; INSERT INTO a SELECT g - 10000 FROM generate_series(1, 5000) g; PREPARE TRANSACTION 'lost'")
		exec(t, s.db, "ROLLBACK PREPARED 'lost'")
		s.receive(a.Message)
		if slices.Contains(m.commits, parseXID(xid)) {
			t.Fatal("it came before its commit")
		}
		exec(t, s.db, "COMMIT PREPARED 'p'")
		follow(s, a, m)
		if !slices.Contains(m.commits, parseXID(xid)) {
			t.Errorf("xid %s did not come: %d", xid, m.commits)
		}
	}
	if s.letters[KindStreamCommit] == 0 {
		t.Error("nothing was streamed")
	}
	if held, n := a.Held(); held != 0 || n != 0 {
		t.Errorf("%d bytes of %d transactions are left", held, n)
	}
}

func parseXID(s string) uint32 {
	n, _ := strconv.ParseUint(s, 10, 64)
	return uint32(n)
}

func TestDefinitionsInTheMiddleOfATransaction(t *testing.T) {
	s, a, m := begin(t, "", "CREATE TABLE a (id int PRIMARY KEY, t text)")
	big := func(column string, from int) string {
		return fmt.Sprintf("INSERT INTO a (id, %s) SELECT g, 'x' FROM generate_series(%d, %d) g; ", column, from, from+2999)
	}
	exec(t, s.db, "BEGIN; INSERT INTO a VALUES (1, 'x'); ALTER TABLE a ADD b text; INSERT INTO a VALUES (2, 'x', 'y'); ALTER TABLE a DROP t; INSERT INTO a VALUES (3, 'y'); COMMIT")
	follow(s, a, m)
	m.words("relation a(id!,t)", "relation a(id!,t,b)", "relation a(id!,b)", "commit")
	// The same, streamed, with a rollback of what is not to count.
	exec(t, s.db, "BEGIN; "+big("b", 10000)+"ALTER TABLE a ADD c text; "+big("c", 20000)+
		"SAVEPOINT s; ALTER TABLE a ADD lost text; "+big("lost", 30000)+"ROLLBACK TO s; "+big("c", 40000)+"ALTER TABLE a DROP b; "+big("c", 50000)+"COMMIT")
	follow(s, a, m)
	m.words("relation a(id!,b,c)", "relation a(id!,c)", "commit")
	exec(t, s.db, "BEGIN; ALTER TABLE a ADD lost text; "+big("lost", 60000)+"ROLLBACK")
	exec(t, s.db, "INSERT INTO a VALUES (4, 'z')")
	follow(s, a, m)
	for _, w := range m.log {
		if strings.Contains(w, "lost") {
			t.Errorf("told of a definition that was rolled back: %q", w)
		}
	}
	if s.letters[KindStreamCommit] < 1 || s.letters[KindStreamAbort] < 1 {
		t.Errorf("streamed too little: %v", s.letters)
	}
}

// A transaction that is streamed gets its own definitions; those of one that rolls
// back must not reach others, and those of one that commits count from then on.
func TestDefinitionsOfStreamsAreTheirOwn(t *testing.T) {
	s, a, m := begin(t, "", "CREATE TABLE a (id int PRIMARY KEY, t text); CREATE TABLE b (id int PRIMARY KEY, t text)")
	other := connect(t, s.url)
	insert := func(table string, from int) string {
		return fmt.Sprintf("INSERT INTO %s SELECT g, repeat('x', 60) FROM generate_series(%d, %d) g; ", table, from, from+1999)
	}
	exec(t, other, "BEGIN; "+insert("a", 1)+insert("b", 1))
	s.receive(a.Message) // pieces are here
	exec(t, s.db, "INSERT INTO a VALUES (-1, 'x')")
	s.receive(a.Message)
	exec(t, other, "ROLLBACK")
	exec(t, s.db, "INSERT INTO b VALUES (-1, 'x'); INSERT INTO a VALUES (-2, 'y')")
	follow(s, a, m)
	exec(t, other, "BEGIN; "+insert("a", 1)+insert("b", 1))
	s.receive(a.Message)
	// Settings take effect while the other runs, and show in no definition of its.
	exec(t, s.db, "ALTER PUBLICATION everything SET (publish = 'insert, update, delete, truncate'); INSERT INTO b VALUES (-3, 'x')")
	s.receive(a.Message)
	exec(t, other, insert("a", 10000)+"COMMIT")
	exec(t, s.db, "INSERT INTO b VALUES (-4, 'x'); INSERT INTO a VALUES (-4, 'x'); UPDATE a SET t = 'q' WHERE id < 100")
	follow(s, a, m)
	if s.letters[KindStreamAbort] == 0 || s.letters[KindStreamCommit] == 0 {
		t.Errorf("streamed too little: %v", s.letters)
	}
}

func TestTransactionTooLarge(t *testing.T) {
	s := newSource(t, "", "CREATE TABLE a (id int PRIMARY KEY, t text); CREATE TABLE b (id int PRIMARY KEY, t text)")
	m := newModel(t)
	a := NewAssembler(m, 1<<20)
	other := connect(t, s.url)
	exec(t, other, "BEGIN; INSERT INTO b SELECT g, repeat('x', 90) FROM generate_series(1, 3000) g")
	s.receive(a.Message)
	if held, n := a.Held(); n != 1 || held < 300<<10 {
		t.Errorf("%d bytes of %d transactions", held, n)
	}
	// The larger one goes, the smaller stays.
	exec(t, s.db, "BEGIN; INSERT INTO a SELECT g, repeat('y', 100) FROM generate_series(1, 20000) g; SAVEPOINT s; ALTER TABLE a ADD lost int; INSERT INTO a SELECT g, 'z', 1 FROM generate_series(20001, 30000) g; ROLLBACK TO s")
	exec(t, s.db, "INSERT INTO a SELECT g, 'z' FROM generate_series(20001, 30000) g; COMMIT")
	exec(t, other, "COMMIT")
	s.receive(a.Message)
	if len(m.tooLarge) != 1 {
		t.Fatalf("too large: %v", m.tooLarge)
	}
	m.words("begin", "too large: 1 relations", "commit", "begin", "relation b(id!,t)", "commit")
	m.compare(s) // of a nothing is known
	if held, n := a.Held(); held != 0 || n != 0 {
		t.Errorf("%d bytes of %d transactions are left", held, n)
	}
	// Its definitions count: the server does not send them again.
	exec(t, s.db, "INSERT INTO a VALUES (-1, 'x'); DELETE FROM a WHERE id = -1")
	s.receive(a.Message)
	m.words("relation a(id!,t)")
}

func TestOptions(t *testing.T) {
	for version, want := range map[int]string{
		130000: `proto_version '1', publication_names '"a"'`,
		140000: `proto_version '2', publication_names '"a"', streaming 'on', binary 'true', messages 'true'`,
		150018: `proto_version '3', publication_names '"a"', streaming 'on', binary 'true', messages 'true'`,
		180004: `proto_version '4', publication_names '"a"', streaming 'on', binary 'true', messages 'true'`,
	} {
		if got := Options(version, "a"); got != want {
			t.Errorf("%d: %s", version, got)
		}
	}
	if got, want := Options(100000, `o'b"c`, "d"), `proto_version '1', publication_names '"o''b""c","d"'`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
