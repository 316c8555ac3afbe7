package advise

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const two = `CREATE TABLE a (id int PRIMARY KEY, v bigint); INSERT INTO a SELECT i, hashint8(i) FROM generate_series(1, 100000) i;
CREATE TABLE b (LIKE a INCLUDING ALL); INSERT INTO b SELECT * FROM a; CREATE TABLE small (id int PRIMARY KEY, name text); INSERT INTO small SELECT i, 'n' FROM generate_series(1, 10) i;
CREATE TABLE nokey (v bigint); INSERT INTO nokey SELECT v FROM a; CREATE TABLE unread (LIKE a INCLUDING ALL); INSERT INTO unread SELECT * FROM a;`

// choosing is a Chooser whose choices are copied at once.
type choosing struct {
	t      *testing.T
	c      *Chooser
	now    time.Time
	told   map[string]Executions
	held   []Held
	limit  int64
	chosen []Choice
}

func newChoosing(t *testing.T, url string) *choosing {
	now := time.Unix(0, 0)
	return &choosing{t: t, c: NewChooser(url, now), now: now, told: map[string]Executions{}, limit: 1 << 30}
}

// after has a statement executed so often, with a second each, and looks.
func (c *choosing) after(d time.Duration, sql string, calls int64) {
	c.t.Helper()
	c.now = c.now.Add(d)
	x := c.told[sql]
	x.Text, x.Calls, x.Server = sql, x.Calls+calls, time.Second
	c.told[sql] = x
	var list []Executions
	for _, x := range c.told {
		list = append(list, x)
	}
	c.c.Note(c.now, list)
	var err error
	if c.chosen, err = c.c.Choose(context.Background(), c.now, []string{"auto", "!unread"}, c.held, c.limit); err != nil {
		c.t.Fatal(err)
	}
	c.held = slices.DeleteFunc(c.held, func(h Held) bool { return !h.Fixed })
	for _, one := range c.chosen {
		if one.Take {
			c.held = append(c.held, Held{OID: one.Table.OID, Bytes: one.Bytes})
		}
	}
}

// at is the place of a table among the choices.
func (c *choosing) at(name string) int {
	return slices.IndexFunc(c.chosen, func(one Choice) bool { return one.Table.Name == name })
}

// are asserts what was said of tables: a name, + where it is taken or - where it is left, and how the reason begins.
func (c *choosing) are(want ...string) {
	c.t.Helper()
	var got []string
	for _, one := range c.chosen {
		got = append(got, fmt.Sprintf("%s%s %s", map[bool]string{true: "+", false: "-"}[one.Take], one.Table.Name, one.Why))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		c.t.Errorf("%q, want %q", got, want)
	}
}

// TestChooser: tables are taken once statements have gained by them what a copy costs, and give way to better ones only, seldom.
func TestChooser(t *testing.T) {
	url := database(t, postgres, two)
	const a, b, joined = "SELECT sum(v) FROM a WHERE id > $1", "SELECT sum(v) FROM b WHERE id > $1", "SELECT s.name, count(*) FROM b JOIN small s ON s.id = b.v GROUP BY s.name"
	c := newChoosing(t, url)
	c.after(0, a, 0)
	c.are()
	c.after(time.Minute, "SELECT sum(v) FROM unread", 100)
	c.after(time.Minute, "UPDATE a SET v = v WHERE id = $1", 100)
	c.after(time.Minute, "SELECT pg_sleep($1) FROM a", 100)
	c.after(time.Minute, "cut off (", 100)
	// pg_stat_statements has pgaccel's own copies and samples.
	c.after(time.Minute, `COPY (SELECT "id", "v" FROM ONLY "public"."a" WHERE ctid >= '(0,0)'::pg_catalog.tid) TO STDOUT (FORMAT binary)`, 1000)
	c.after(time.Minute, `COPY "public"."a" ("id", "v") TO STDOUT (FORMAT binary)`, 1000)
	c.after(time.Minute, `COPY (SELECT "id", "v" FROM ONLY "public"."a" TABLESAMPLE SYSTEM (10) REPEATABLE (0)) TO STDOUT (FORMAT binary)`, 1000)
	c.after(time.Minute, "COPY public.a (id, v) TO stdout", 1000) // pg_dump's
	c.are()
	c.after(time.Minute, "SELECT sum(v) FROM nokey", 100)
	c.are("-nokey no replica identity")
	c.told[a] = Executions{Text: a, Calls: 1}
	c.after(time.Minute, a, 0+1)
	c.are("+a read by", "-nokey no replica identity")

	// Memory is for one of both.
	bytes := c.held[0].Bytes
	c.limit = bytes + bytes/2
	c.after(time.Minute, b, 100)
	c.are("+a read by", "-b does not fit", "-nokey no")
	c.after(2*holdFor, joined, 100) // a has stayed its time
	c.are("-a does not fit", "+b read by", "+small read by", "-nokey no")
	c.after(time.Minute, a, 100000)
	c.are("-a does not fit", "+b read by", "+small read by", "-nokey no")
	c.after(2*holdFor, b, 1)
	c.are("+a read by", "-b does not fit", "+small no other", "-nokey no")
	// One that is somewhat better takes nobody's place.
	c.after(2*holdFor, b, 120000)
	c.are("+a read by", "-b does not fit", "+small no other", "-nokey no")
	// Nor does it go because nothing reads it any more.
	c.told, c.c.told, c.c.load = map[string]Executions{}, map[string]Executions{}, map[string]*load{}
	c.after(100*holdFor, b, 0)
	c.are("+a no other", "+small no other")

	// One whose copy came to nothing is left for a while.
	c.after(time.Minute, a, 10)
	c.held[c.at("a")].Refused = "a reason"
	c.after(time.Minute, a, 10)
	c.are("-a a reason", "+small no other")
	c.after(2*holdFor, a, 10)
	c.are("+a read by", "+small no other")
	// What a pattern names is not chosen, and those that are joined with it need no memory for it.
	c.held = []Held{{OID: c.chosen[c.at("a")].Table.OID, Bytes: bytes, Fixed: true}}
	c.after(time.Minute, "SELECT s.name, count(*) FROM a JOIN small s ON s.id = a.v GROUP BY s.name", 10)
	c.are("+small read by")
}

// TestChooserLeaves: what this role could not copy is left, with the reason.
func TestChooserLeaves(t *testing.T) {
	url := database(t, postgres, two+`CREATE UNLOGGED TABLE fast (id int PRIMARY KEY, v bigint); INSERT INTO fast SELECT * FROM a; CREATE TABLE policed (id int PRIMARY KEY, v bigint); INSERT INTO policed SELECT * FROM a;
		ALTER TABLE policed ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; CREATE TABLE unreadable (id int PRIMARY KEY, v bigint); INSERT INTO unreadable SELECT * FROM a;
		CREATE FOREIGN DATA WRAPPER files; CREATE SERVER files FOREIGN DATA WRAPPER files; CREATE FOREIGN TABLE remote (id int, v bigint) SERVER files;
		CREATE MATERIALIZED VIEW kept AS SELECT * FROM a; CREATE VIEW seen AS SELECT * FROM a`)
	as := role(t, url, "GRANT SELECT ON b TO ROLE; ALTER TABLE a OWNER TO ROLE; ALTER TABLE policed OWNER TO ROLE; ALTER TABLE fast OWNER TO ROLE; ALTER TABLE unreadable OWNER TO ROLE; REVOKE SELECT ON unreadable FROM ROLE; GRANT SELECT ON seen TO ROLE")
	c := newChoosing(t, as)
	for _, table := range []string{"b", "fast", "policed", "unreadable", "remote", "kept", "b JOIN a USING (id)", "pg_class", "pg_temp.x"} {
		c.after(0, "SELECT count(*) FROM "+table, 100)
	}
	c.are("-a what reads it reads public.b, too", "-b not owned by this role", "-fast unlogged table", "-policed cannot be read: query would be affected by row-level security", "-unreadable no SELECT privilege; GRANT SELECT")
	c.after(0, "SELECT count(*) FROM seen", 100) // a view of a table that can be copied
	c.are("+a read by", "-b not owned", "-fast unlogged", "-policed cannot", "-unreadable no SELECT")
}

// TestLoadAges: an execution counts half after a while, counts that were forgotten begin anew, and only so many statements are remembered.
func TestLoadAges(t *testing.T) {
	now := time.Unix(0, 0)
	c := NewChooser("", now)
	c.Note(now, []Executions{{Text: "a", Calls: 8, Server: time.Second}})
	now = now.Add(halfLife)
	c.Note(now, []Executions{{Text: "a", Calls: 10, Server: 3 * time.Second}})
	if l := c.load["a"]; l.calls != 6 || l.serverMS != 3000 {
		t.Errorf("%+v", l)
	}
	c.Note(now, []Executions{{Text: "a", Calls: 1, Here: time.Second}})
	if l := c.load["a"]; l.calls != 7 || l.serverMS != 3000 || l.hereMS != 1000 {
		t.Errorf("%+v", l)
	}
	c.Note(now, []Executions{{Text: "here", Calls: 1, Here: time.Second}})
	if l := c.load["here"]; l.serverMS != 2000 {
		t.Errorf("%+v", l)
	}
	c.newMS = 0
	if c.Note(now, []Executions{{Text: "rare", Calls: 1, Server: 100 * time.Millisecond}}) {
		t.Error("another look for next to nothing")
	}
	if !c.Note(now, []Executions{{Text: "rare", Calls: 10, Server: 100 * time.Millisecond}}) {
		t.Error("no other look for more")
	}
	var many []Executions
	for i := range 2 * loadMax {
		many = append(many, Executions{Text: fmt.Sprint("x", i), Calls: 1, Server: time.Millisecond})
	}
	c.Note(now, many)
	if len(c.load) != loadMax || c.load["a"] == nil || c.load["here"] == nil {
		t.Errorf("%d statements", len(c.load))
	}
}

// TestNoteServer: what pg_stat_statements has counts as if it had come through pgaccel.
func TestNoteServer(t *testing.T) {
	url := database(t, postgres, two)
	c := newChoosing(t, url)
	if err := c.c.NoteServer(context.Background()); err == nil || !strings.Contains(err.Error(), "pg_stat_statements") {
		t.Error(err)
	}
	available(t)
	on, err := start(map[string]string{"shared_preload_libraries": "pg_stat_statements"})
	if err != nil {
		t.Fatal(err)
	}
	defer on.Stop()
	url = database(t, on, two+"CREATE SCHEMA ext; CREATE EXTENSION pg_stat_statements SCHEMA ext; SELECT ext.pg_stat_statements_reset()")
	for range 100 {
		exec(t, url, "SELECT id % 10, count(*), sum(v), avg(v), stddev(v) FROM b GROUP BY 1 ORDER BY 1")
	}
	c = newChoosing(t, url)
	if err := c.c.NoteServer(context.Background()); err != nil {
		t.Fatal(err)
	}
	c.after(0, "SELECT 1", 0)
	c.are("+b read by")
}
