package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// catalogSchema has rows that nobody changes: what an answer depends on is what the names
// in a statement mean, and who may call them.
const catalogSchema = `
CREATE ROLE asker;
CREATE TABLE things (id int PRIMARY KEY, b bigint NOT NULL, n numeric(12,2) NOT NULL, d date NOT NULL, v varchar(20) NOT NULL);
INSERT INTO things SELECT i, i * 3, i % 50 / 2.0, date '2024-01-01' + i % 90, 'thing ' || i % 7 FROM generate_series(1, 2000) i;
GRANT SELECT ON things TO asker;
CREATE FUNCTION never(int, numeric) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT false';
CREATE FUNCTION zero(int, numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT 0::numeric';
CREATE FUNCTION seven(bigint) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT ''7''::text';
CREATE FUNCTION kept(text, varchar) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT ''kept''::text';
ALTER DATABASE postgres SET TimeZone = 'UTC';
CREATE SCHEMA s0;
CREATE SCHEMA s1;
CREATE SCHEMA s2;
CREATE SCHEMA hidden;
GRANT USAGE ON SCHEMA s0, s1, s2, hidden TO PUBLIC;
VACUUM ANALYZE;
`

// catalogQueries each use a name that a change gives another meaning.
var catalogQueries = []string{
	"SELECT count(*), sum(id) FROM things WHERE id = n",
	"SELECT count(*), sum(id) FROM things WHERE id > n AND id < 100",
	"SELECT sum(id + n), count(*) FROM things",
	"SELECT count(*)::text, sum(id)::text FROM things WHERE id > 5",
	"SELECT date_trunc('month', d), count(*) FROM things GROUP BY 1 ORDER BY 1",
	"SELECT mod(id, b), count(*) FROM things WHERE id < 9 GROUP BY 1 ORDER BY 1",
	"SELECT min(v), max(v) FROM things",
	"SELECT d::date, count(*) FROM things WHERE d < date '2024-01-10' GROUP BY 1 ORDER BY 1",
	"SELECT sum(b), avg(id) FROM things WHERE id >= 7",
}

// catalogChange is a change and what undoes it. S is one of the schemas.
type catalogChange struct{ do, undo string }

var catalogChanges = []catalogChange{
	{"CREATE OPERATOR S.= (FUNCTION = public.never, LEFTARG = int, RIGHTARG = numeric)", "DROP OPERATOR IF EXISTS S.= (int, numeric)"},
	{"CREATE OPERATOR S.> (FUNCTION = public.never, LEFTARG = int, RIGHTARG = numeric)", "DROP OPERATOR IF EXISTS S.> (int, numeric)"},
	{"CREATE OPERATOR S.+ (FUNCTION = public.zero, LEFTARG = int, RIGHTARG = numeric)", "DROP OPERATOR IF EXISTS S.+ (int, numeric)"},
	{"CREATE CAST (bigint AS text) WITH FUNCTION public.seven(bigint)", "DROP CAST IF EXISTS (bigint AS text)"},
	{"CREATE FUNCTION S.date_trunc(text, date) RETURNS date LANGUAGE sql IMMUTABLE AS 'SELECT date ''1999-09-09'''", "DROP FUNCTION IF EXISTS S.date_trunc(text, date)"},
	{"CREATE FUNCTION S.mod(int, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 77::bigint'", "DROP FUNCTION IF EXISTS S.mod(int, bigint)"},
	{"CREATE FUNCTION S.other(int, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 78::bigint'; ALTER FUNCTION S.other(int, bigint) RENAME TO mod", "ALTER FUNCTION S.mod(int, bigint) RENAME TO other; DROP FUNCTION S.other(int, bigint)"},
	{"CREATE FUNCTION hidden.mod(int, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 79::bigint'; ALTER FUNCTION hidden.mod(int, bigint) SET SCHEMA S", "ALTER FUNCTION S.mod(int, bigint) SET SCHEMA hidden; DROP FUNCTION hidden.mod(int, bigint)"},
	{"CREATE OPERATOR hidden.= (FUNCTION = public.never, LEFTARG = int, RIGHTARG = numeric); ALTER OPERATOR hidden.= (int, numeric) SET SCHEMA S", "DROP OPERATOR IF EXISTS S.= (int, numeric)"},
	{"CREATE AGGREGATE S.max(varchar) (SFUNC = public.kept, STYPE = text)", "DROP AGGREGATE IF EXISTS S.max(varchar)"},
	{"CREATE DOMAIN S.date AS int", "DROP DOMAIN IF EXISTS S.date"},
	{"ALTER SCHEMA S RENAME TO away", "ALTER SCHEMA away RENAME TO S"},
	{"REVOKE EXECUTE ON FUNCTION pg_catalog.sum(bigint) FROM PUBLIC", "GRANT EXECUTE ON FUNCTION pg_catalog.sum(bigint) TO PUBLIC"},
	{"REVOKE EXECUTE ON FUNCTION pg_catalog.int4ge(int, int) FROM PUBLIC", "GRANT EXECUTE ON FUNCTION pg_catalog.int4ge(int, int) TO PUBLIC"},
	{"REVOKE EXECUTE ON FUNCTION pg_catalog.numeric(int), pg_catalog.numeric_add(numeric, numeric) FROM PUBLIC", "GRANT EXECUTE ON FUNCTION pg_catalog.numeric(int), pg_catalog.numeric_add(numeric, numeric) TO PUBLIC"},
	{"REVOKE SELECT ON things FROM asker; GRANT SELECT (id, n) ON things TO asker", "GRANT SELECT ON things TO asker"},
	// These change no answer.
	{"CREATE OPERATOR S.### (FUNCTION = public.never, LEFTARG = int, RIGHTARG = numeric)", "DROP OPERATOR IF EXISTS S.### (int, numeric)"},
	{"CREATE CAST (bigint AS box) WITH INOUT", "DROP CAST IF EXISTS (bigint AS box)"},
}

// catalogHarmless is the number of changes at the end of catalogChanges that change no answer.
const catalogHarmless = 2

// catalogs checks what names mean: sessions create, alter, rename, grant and drop operators,
// casts, functions, types and schemas in transactions that overlap, and others ask. While no
// change is being committed, a session through pgaccel is answered as one beside it is.
type catalogs struct {
	w *world
	// begun and ended count the commits of changes.
	begun, ended atomic.Int64
	compared     atomic.Int64
}

func newCatalogs(w *world) *catalogs { return &catalogs{w: w} }

func (c *catalogs) queries() []string { return catalogQueries }

func (c *catalogs) recovered(*session) {}

func (c *catalogs) run(ctx context.Context) {
	var changers, askers sync.WaitGroup
	asking, stop := context.WithCancel(ctx)
	for i := range 2 {
		changers.Go(func() { c.changer(ctx, i) })
	}
	changers.Go(func() { c.overlap(ctx) })
	for i := range 4 {
		askers.Go(func() { c.asker(asking, i) })
	}
	changers.Wait()
	stop()
	askers.Wait()
	s := c.w.session("catalog-end", direct)
	defer s.close()
	if c.w.violated() != nil {
		return // the last events are what led to it
	}
	c.undoAll(s, "s0", "s1", "s2")
	if c.compared.Load() == 0 {
		c.w.violate("no answer was compared: changes were being committed all the time")
	}
}

// commit commits what a session has changed. Nothing is known of the moment of a commit
// but that it is between the two counts.
func (c *catalogs) commit(s *session) error {
	c.begun.Add(1)
	defer c.ended.Add(1)
	_, err := s.do("COMMIT")
	return err
}

// apply runs changes in one transaction, and pauses before it commits.
func (c *catalogs) apply(ctx context.Context, s *session, pause time.Duration, changes ...string) error {
	err := s.all("BEGIN", "SET LOCAL lock_timeout = '2s'")
	for _, sql := range changes {
		if err == nil {
			err = s.all(sql)
		}
	}
	if err != nil {
		s.rollback()
		return err
	}
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
	if err := c.commit(s); err != nil {
		s.rollback()
		return err
	}
	return nil
}

// undoAll takes back whatever there is, each by itself: most of it is not there.
func (c *catalogs) undoAll(s *session, schemas ...string) {
	for _, schema := range schemas {
		for i := len(catalogChanges) - 1; i >= 0; i-- {
			c.apply(context.Background(), s, 0, inSchema(catalogChanges[i].undo, schema))
		}
	}
}

// changer makes changes in a schema of its own, several in one transaction or in several,
// and takes them back.
func (c *catalogs) changer(ctx context.Context, number int) {
	s := c.w.session(fmt.Sprint("catalog-changer-", number), direct)
	defer s.close()
	schema := fmt.Sprint("s", number)
	in := func(sql string) string { return inSchema(sql, schema) }
	for ctx.Err() == nil {
		var done []catalogChange
		for range 1 + s.rand.IntN(3) {
			ch := catalogChanges[s.rand.IntN(len(catalogChanges))]
			pause := time.Duration(s.rand.IntN(60)) * time.Millisecond
			if s.rand.IntN(3) == 0 {
				pause = time.Duration(s.rand.IntN(2500)) * time.Millisecond
			}
			texts := []string{in(ch.do)}
			if s.rand.IntN(4) == 0 { // made, dropped and made again
				texts = append(texts, in(ch.undo), in(ch.do))
			}
			if c.apply(ctx, s, pause, texts...) == nil {
				done = append(done, ch)
			}
			c.rest(ctx, s.rand, 150)
		}
		for i := len(done) - 1; i >= 0; i-- {
			for c.apply(ctx, s, 0, in(done[i].undo)) != nil && ctx.Err() == nil { // a lock, another's change of the same row
				c.rest(ctx, s.rand, 100)
			}
		}
		c.rest(ctx, s.rand, 3000)
	}
}

// inSchema puts a schema in the place of S.
func inSchema(sql, schema string) string {
	sql = strings.ReplaceAll(sql, "S.", schema+".")
	sql = strings.ReplaceAll(sql, "SCHEMA S ", "SCHEMA "+schema+" ")
	for _, at := range []string{"SET SCHEMA S", "RENAME TO S"} {
		if strings.HasSuffix(sql, at) {
			sql = strings.TrimSuffix(sql, "S") + schema
		}
	}
	return strings.ReplaceAll(sql, "SCHEMA S;", "SCHEMA "+schema+";")
}

// overlap has what takes an OID first be committed last, behind something that changes no
// answer, once pgaccel has had the time to look at that.
func (c *catalogs) overlap(ctx context.Context) {
	first, second := c.w.session("catalog-first", direct), c.w.session("catalog-second", direct)
	defer first.close()
	defer second.close()
	in := func(sql string) string { return inSchema(sql, "s2") }
	for ctx.Err() == nil {
		ch := catalogChanges[first.rand.IntN(4)]
		harmless := catalogChanges[len(catalogChanges)-1-first.rand.IntN(catalogHarmless)]
		err := first.all("BEGIN", in(ch.do))
		if err == nil {
			c.apply(ctx, second, 0, in(harmless.do))
			c.rest(ctx, first.rand, 1000)
			c.rest(ctx, first.rand, 3000)
			err = c.commit(first)
		}
		if err != nil {
			first.rollback()
		}
		c.rest(ctx, first.rand, 1500)
		for _, undo := range []string{harmless.undo, ch.undo} {
			for err == nil && c.apply(ctx, second, 0, in(undo)) != nil && ctx.Err() == nil {
				c.rest(ctx, first.rand, 100)
			}
		}
		c.apply(ctx, second, 0, in(harmless.undo))
		c.rest(ctx, first.rand, 2500)
	}
}

// rest waits for up to so many milliseconds.
func (c *catalogs) rest(ctx context.Context, r *rand.Rand, limit int) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(r.IntN(limit)) * time.Millisecond):
	}
}

// asker asks through pgaccel and beside it: outside of a block, in one, and in one whose
// snapshot is old, where names mean what they mean now all the same.
func (c *catalogs) asker(ctx context.Context, number int) {
	settings := []string{"SET search_path = public, s0, s1, s2"}
	if number%2 == 1 {
		settings = append(settings, "SET ROLE asker")
	}
	name := fmt.Sprint("catalog-asker-", number)
	fast, plain := c.w.session(name, through, settings...), c.w.session(name+"-beside", direct, settings...)
	defer fast.close()
	defer plain.close()
	for ctx.Err() == nil {
		switch fast.rand.IntN(4) {
		case 0:
			fast.do("BEGIN")
		case 1:
			fast.do("BEGIN ISOLATION LEVEL REPEATABLE READ")
			fast.do(catalogQueries[0])
			c.rest(ctx, fast.rand, 1500)
		}
		for range 1 + fast.rand.IntN(8) {
			if err := c.compare(fast, plain, catalogQueries[fast.rand.IntN(len(catalogQueries))]); err != nil {
				break // its block has failed, in both
			}
			if c.w.violated() != nil {
				return
			}
		}
		fast.rollback()
	}
}

// compare asks both, and compares where no change was committed in between.
func (c *catalogs) compare(fast, plain *session, sql string) error {
	// A prepared statement may rightly mean what its names meant when it was prepared.
	fast.protocol = fast.rand.IntN(protocols - 1)
	plain.protocol = fast.protocol
	ended := c.ended.Load()
	begun := c.begun.Load()
	c.w.reads.Add(1)
	got, gotErr := fast.do(sql)
	want, wantErr := plain.do(sql)
	if ended != begun || c.begun.Load() != begun {
		return gotErr
	}
	if isLost(gotErr) || isLost(wantErr) {
		c.w.violate("a session was lost: %v, %v", gotErr, wantErr)
		return gotErr
	}
	if sqlState(gotErr) == "25P02" { // the block had failed before
		return gotErr
	}
	c.compared.Add(1)
	if got.String() != want.String() || sqlState(gotErr) != sqlState(wantErr) {
		c.w.violate("%s, while nothing was committed: pgaccel answers\n%s %v\nbut beside it the answer is\n%s %v", sql, clip(got.String(), 2000), gotErr, clip(want.String(), 2000), wantErr)
	}
	return gotErr
}
