package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

const mirrorSchema = `
CREATE TABLE acc_a (id int PRIMARY KEY, bal bigint NOT NULL, grp int NOT NULL);
INSERT INTO acc_a SELECT i, 1000, i % 7 FROM generate_series(1, 200) i;
CREATE TABLE acc_b (id int PRIMARY KEY, bal bigint NOT NULL, note text COLLATE "C");
INSERT INTO acc_b SELECT i, 1000, 'note ' || i % 5 FROM generate_series(1, 200) i;
CREATE TABLE hist (id bigint NOT NULL, part int NOT NULL, acc int NOT NULL, amount bigint NOT NULL, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE hist_0 PARTITION OF hist FOR VALUES IN (0);
CREATE TABLE hist_1 PARTITION OF hist FOR VALUES IN (1);
CREATE TABLE hist_2 PARTITION OF hist FOR VALUES IN (2);
CREATE TABLE tally (grp int NOT NULL, amount bigint NOT NULL);
ALTER TABLE tally REPLICA IDENTITY FULL;
CREATE SEQUENCE hist_id INCREMENT BY 2;
VACUUM ANALYZE;
`

const (
	mirrorAccounts = 200
	mirrorTotal    = 2 * 1000 * mirrorAccounts
	mirrorMoved    = 1000 // added to the id of an account that has moved
	mirrorWriters  = 4
)

// mirrorQueries are asked accelerated ("{}" left out) and forwarded. The last two
// return rows: what differs is seen at once.
var mirrorQueries = []string{
	"SELECT count(*), sum(bal), sum(bal * id), min(bal), max(bal), avg(bal) FROM acc_a WHERE id > 0{}",
	"SELECT count(*), sum(bal), sum(bal * id), min(bal), max(bal), min(id), max(id) FROM acc_b WHERE id > 0{}",
	"SELECT grp, count(*), sum(bal), min(id), max(id) FROM acc_a WHERE id > 0{} GROUP BY grp ORDER BY grp",
	"SELECT note, count(*), sum(bal) FROM acc_b WHERE id > 0{} GROUP BY note ORDER BY note",
	"SELECT acc_a.grp, count(*), sum(acc_a.bal + acc_b.bal), sum(acc_a.bal * acc_b.bal) FROM acc_a JOIN acc_b ON acc_a.id = acc_b.id WHERE acc_a.id > 0{} GROUP BY acc_a.grp ORDER BY acc_a.grp",
	"SELECT part, count(*), sum(amount), sum(id * acc), min(id), max(id) FROM hist WHERE id > 0{} GROUP BY part ORDER BY part",
	"SELECT hist.acc, count(*), sum(amount * bal) FROM hist JOIN acc_b ON hist.acc = acc_b.id WHERE hist.id > 0{} GROUP BY hist.acc ORDER BY hist.acc",
	"SELECT grp, amount, count(*) FROM tally WHERE grp >= 0{} GROUP BY grp, amount ORDER BY grp, amount",
	"SELECT id, bal, grp FROM acc_a WHERE id > 0{} ORDER BY id",
	"SELECT id, bal, note FROM acc_b WHERE id > 0{} ORDER BY id",
	"SELECT id, part, acc, amount FROM hist WHERE id > 0{} ORDER BY id, part",
}

// mirrorSums hold in every snapshot, so that READ COMMITTED can check them.
var mirrorSums = [][2]string{
	{"SELECT count(*), sum(acc_a.bal + acc_b.bal) FROM acc_a JOIN acc_b ON acc_a.id = acc_b.id WHERE acc_a.id > 0", fmt.Sprintf("%d|%d", mirrorAccounts, mirrorTotal)},
	{"SELECT coalesce(sum(amount), 0) FROM hist WHERE id > 0", "0"},
	{"SELECT coalesce(sum(amount), 0) FROM tally WHERE grp >= 0", "0"},
}

// mirror checks that an accelerated answer within a REPEATABLE READ transaction is
// exactly Postgres' own in the same transaction. Sums that must not tear are not
// enough: they hold in every prefix of the log, and no prefix need be the snapshot.
type mirror struct{ w *world }

func newMirror(w *world) *mirror { return &mirror{w} }

func (m *mirror) queries() []string {
	var all []string
	for _, q := range mirrorQueries {
		all = append(all, strings.Replace(q, "{}", "", 1))
	}
	return all
}

// recovered implements workload: nothing is remembered of which a crash could take
// away the ground.
func (m *mirror) recovered(*session) {}

// janitor ends the prepared transactions of writers that lost their connection: they
// hold locks.
func (m *mirror) janitor(ctx context.Context) {
	s := m.w.session("mirror-janitor", direct)
	defer s.close()
	for ctx.Err() == nil {
		time.Sleep(500 * time.Millisecond)
		s.begin()
		a, err := s.do("SELECT gid FROM pg_prepared_xacts WHERE gid LIKE 'mirror-%' AND prepared < now() - interval '3 seconds'")
		if err != nil {
			continue
		}
		for _, row := range a.rows {
			s.do([]string{"COMMIT", "ROLLBACK"}[s.rand.IntN(2)] + " PREPARED '" + row[0] + "'")
		}
	}
}

func (m *mirror) run(ctx context.Context) {
	var wg sync.WaitGroup
	for i := range mirrorWriters {
		wg.Go(func() { m.writer(ctx, i) })
	}
	for i := range 3 {
		wg.Go(func() { m.exact(ctx, i) })
	}
	wg.Go(func() { m.sums(ctx) })
	wg.Go(func() { m.standby(ctx) })
	wg.Go(func() { m.janitor(ctx) })
	wg.Wait()
	s := m.w.session("mirror-end", direct)
	defer s.close()
	for range 100 { // what is still prepared holds locks
		a, err := s.do("SELECT gid FROM pg_prepared_xacts WHERE gid LIKE 'mirror-%'")
		if err == nil && len(a.rows) == 0 {
			return
		}
		for _, row := range a.rows {
			s.do("ROLLBACK PREPARED '" + row[0] + "'")
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// standby makes commits wait for a standby that does not exist, now and then: they
// are in the stream long before they are visible.
func (m *mirror) standby(ctx context.Context) {
	s := m.w.session("mirror-standby", direct)
	defer s.close()
	set := func(sql string) {
		for range 600 { // the server may be down
			s.begin()
			if s.all(sql, "SELECT pg_reload_conf()") == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		m.w.violate("cannot %s", sql)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(2+s.rand.IntN(10)) * time.Second):
		}
		set("ALTER SYSTEM SET synchronous_standby_names = 'nosuch'")
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
		set("ALTER SYSTEM RESET synchronous_standby_names")
	}
}

// writer moves money.
func (m *mirror) writer(ctx context.Context, number int) {
	name := fmt.Sprint("mirror-w", number)
	r := m.w.random(name)
	sessions := []*session{m.w.session(name, direct), m.w.session(name, through)}
	defer sessions[0].close()
	defer sessions[1].close()
	for n := 0; ctx.Err() == nil; n++ {
		if !m.w.up() {
			continue
		}
		s := sessions[r.IntN(2)]
		s.begin()
		if err := m.transfer(s, r, fmt.Sprintf("%s-%d", name, n)); err != nil {
			s.rollback() // deadlocks and the like: Postgres' own business
		}
		if r.IntN(100) == 0 {
			time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
		}
	}
}

// move is a transfer between two accounts, with its traces in hist and tally.
func (m *mirror) move(r *rand.Rand) []string {
	from, to, n := 1+r.IntN(mirrorAccounts), 1+r.IntN(mirrorAccounts), 1+r.IntN(50)
	account := func(table string, id, n int) string {
		return fmt.Sprintf("UPDATE %s SET bal = bal + %d WHERE id IN (%d, %d)", table, n, id, id+mirrorMoved)
	}
	return []string{
		account("acc_a", from, -n), account("acc_b", to, n),
		fmt.Sprintf("INSERT INTO hist SELECT x + i, %d, CASE i WHEN 0 THEN %d ELSE %d END, CASE i WHEN 0 THEN -%d ELSE %d END FROM nextval('hist_id') x, generate_series(0, 1) i", r.IntN(3), from, to, n, n),
		fmt.Sprintf("INSERT INTO tally VALUES (%d, %d), (%d, -%d)", from%5, n%4, to%5, n%4),
	}
}

// transfer is one transaction of the writers.
func (m *mirror) transfer(s *session, r *rand.Rand, gid string) error {
	first := []string{"BEGIN"}
	if r.IntN(3) == 0 {
		first = append(first, "SET LOCAL synchronous_commit = "+[]string{"off", "local"}[r.IntN(2)])
	}
	run := func(parts ...[]string) error {
		if err := s.all(first...); err != nil {
			return err
		}
		for _, part := range parts {
			if err := s.all(part...); err != nil {
				return err
			}
		}
		return nil
	}
	commit := []string{"COMMIT"}
	id := 1 + r.IntN(mirrorAccounts)
	ids := fmt.Sprintf("(%d, %d)", id, id+mirrorMoved)
	switch r.IntN(14) {
	case 0:
		return run([]string{"SAVEPOINT a"}, m.move(r), []string{"ROLLBACK TO a", "SAVEPOINT b"}, m.move(r), []string{"RELEASE b"}, commit)
	case 1:
		return run(m.move(r), []string{"ROLLBACK"})
	case 2, 3:
		end := []string{"COMMIT PREPARED", "COMMIT PREPARED", "ROLLBACK PREPARED"}[r.IntN(3)]
		if err := run(m.move(r), []string{"PREPARE TRANSACTION '" + gid + "'"}); err != nil {
			return err
		}
		time.Sleep(time.Duration(r.IntN(5)) * time.Millisecond)
		return s.all(end + " '" + gid + "'")
	case 4: // both tables keep the same ids
		change := fmt.Sprintf("SET id = CASE WHEN id > %d THEN id - %d ELSE id + %d END WHERE id IN %s", mirrorMoved, mirrorMoved, mirrorMoved, ids)
		return run([]string{"UPDATE acc_a " + change, "UPDATE acc_b " + change}, commit)
	case 5:
		// An UPDATE that waited for a deleted row would pass over the one that replaces it.
		return run([]string{"LOCK TABLE acc_a IN SHARE ROW EXCLUSIVE MODE", "SAVEPOINT a", "DELETE FROM acc_a WHERE id IN " + ids, "ROLLBACK TO a",
			"WITH gone AS (DELETE FROM acc_a WHERE id IN " + ids + " RETURNING *) SELECT set_config('mirror.row', (id, bal, grp)::text, true) FROM gone",
			"INSERT INTO acc_a SELECT (current_setting('mirror.row')::acc_a).*"}, m.move(r), commit)
	case 6: // rows move between partitions
		return run([]string{fmt.Sprintf("UPDATE hist SET part = (part + 1) %% 3 WHERE id BETWEEN (SELECT max(id) FROM hist) - %d AND (SELECT max(id) FROM hist) - 5", 5+r.IntN(20))}, commit)
	case 7: // pairs of old rows go
		return run([]string{"DELETE FROM hist WHERE (id - 1) / 2 IN (SELECT (id - 1) / 2 FROM hist ORDER BY id LIMIT 40) AND (SELECT count(*) FROM hist) > 500"}, commit)
	case 8: // equal rows are as good as each other: delete a balanced set
		return run([]string{"LOCK TABLE tally IN SHARE ROW EXCLUSIVE MODE", "DELETE FROM tally WHERE grp IN (SELECT grp FROM tally GROUP BY grp HAVING sum(amount) = 0)",
			"DELETE FROM tally WHERE amount = 0 OR (SELECT count(*) FROM tally) > 2000"}, commit)
	case 9: // many rows at once
		grp := r.IntN(7)
		return run([]string{fmt.Sprintf("UPDATE acc_a SET bal = bal + 1 WHERE grp = %d", grp), fmt.Sprintf("UPDATE acc_b SET bal = bal - 1 WHERE id %% %d IN (SELECT id %% %d FROM acc_a WHERE grp = %d)", mirrorMoved, mirrorMoved, grp)}, commit)
	case 10:
		return run([]string{fmt.Sprintf("UPDATE acc_b SET note = 'note ' || %d WHERE id IN %s", r.IntN(100), ids), fmt.Sprintf("UPDATE tally SET grp = (grp + 1) %% 5 WHERE grp = %d", r.IntN(5))}, commit)
	}
	return run(m.move(r), commit)
}

// exact asks accelerated and forwarded within one REPEATABLE READ transaction.
func (m *mirror) exact(ctx context.Context, number int) {
	name := fmt.Sprint("mirror-r", number)
	r := m.w.random(name)
	fast, plain := m.w.session(name, through), m.w.session(name, direct)
	defer fast.close()
	defer plain.close()
	for ctx.Err() == nil {
		if !m.w.up() {
			continue
		}
		fast.begin()
		plain.begin()
		var err error
		if r.IntN(4) == 0 {
			err = m.imported(fast, plain, r)
		} else {
			err = m.repeatable(fast, r)
		}
		if err != nil {
			fast.rollback()
			plain.rollback()
		}
	}
}

// ask asks one of the queries of a session, forwarded or not.
func (m *mirror) ask(s *session, q int, forwarded bool) (string, error) {
	more := ""
	if forwarded {
		more = " AND pg_backend_pid() > 0"
	} else if s.via == through {
		m.w.reads.Add(1)
	}
	a, err := s.do(strings.Replace(mirrorQueries[q], "{}", more, 1))
	return a.String(), err
}

// repeatable asks some queries once or several times each way, in any order.
func (m *mirror) repeatable(s *session, r *rand.Rand) error {
	if _, err := s.do("BEGIN ISOLATION LEVEL REPEATABLE READ"); err != nil {
		return err
	}
	first := map[int]string{}
	var order []string
	some := r.Perm(len(mirrorQueries))[:1+r.IntN(3)]
	for range 2 + r.IntN(7) {
		q := some[r.IntN(len(some))]
		if r.IntN(10) == 0 {
			time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
		}
		for _, forwarded := range [][]bool{{false, true}, {true, false}, {false}}[r.IntN(3)] {
			got, err := m.ask(s, q, forwarded)
			if err != nil {
				return err
			}
			way := "accelerated"
			if forwarded {
				way = "forwarded"
			}
			order = append(order, fmt.Sprintf("%d %s", q, way))
			if want, ok := first[q]; ok && want != got {
				m.w.violate("%s: two answers in one snapshot (asked in the order %s)\nquery: %s\nfirst: %s\nnow:   %s", s.name, strings.Join(order, ", "), mirrorQueries[q], want, got)
				return nil
			}
			first[q] = got
		}
	}
	return s.all("COMMIT")
}

// imported compares with a direct session of which the snapshot is.
func (m *mirror) imported(fast, plain *session, r *rand.Rand) error {
	if err := plain.all("BEGIN ISOLATION LEVEL REPEATABLE READ"); err != nil {
		return err
	}
	a, err := plain.do("SELECT pg_export_snapshot()")
	if err != nil {
		return err
	}
	if err := fast.all("BEGIN ISOLATION LEVEL REPEATABLE READ", "SET TRANSACTION SNAPSHOT '"+a.rows[0][0]+"'"); err != nil {
		return err
	}
	for range 3 {
		if r.IntN(4) == 0 {
			time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond)
		}
		q := r.IntN(len(mirrorQueries))
		got, err := m.ask(fast, q, false)
		if err != nil {
			return err
		}
		want, err := m.ask(plain, q, false)
		if err != nil {
			return err
		}
		if got != want {
			m.w.violate("%s with an imported snapshot: %s\npgaccel: %s\nthe exporting session: %s", fast.name, mirrorQueries[q], got, want)
			return nil
		}
	}
	if err := fast.all("COMMIT"); err != nil {
		return err
	}
	return plain.all("COMMIT")
}

// sums checks what holds in all snapshots, in READ COMMITTED.
func (m *mirror) sums(ctx context.Context) {
	fast := m.w.session("mirror-sums", through)
	defer fast.close()
	for ctx.Err() == nil {
		if !m.w.up() {
			continue
		}
		fast.begin()
		check := mirrorSums[fast.rand.IntN(len(mirrorSums))]
		m.w.reads.Add(1)
		a, err := fast.do(check[0])
		if err != nil {
			fast.rollback()
			continue
		}
		if got := strings.Join(a.rows[0], "|"); got != check[1] {
			m.w.violate("%s: %s is %s, not %s", fast.name, check[0], got, check[1])
		}
	}
}
