package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const fenceSchema = `
CREATE TABLE counter (id int PRIMARY KEY, v bigint NOT NULL, note text NOT NULL);
INSERT INTO counter SELECT i, 0, 'start' FROM generate_series(1, 16) i;
CREATE TABLE log (k int NOT NULL, v bigint NOT NULL, PRIMARY KEY (k, v));
CREATE TABLE baton (id int PRIMARY KEY, v bigint NOT NULL);
INSERT INTO baton VALUES (1, 0);
CREATE FUNCTION bump(key int, value bigint) RETURNS void LANGUAGE plpgsql AS $$BEGIN
	BEGIN UPDATE counter SET v = value + 1000000 WHERE id = key; PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN UPDATE counter SET v = value WHERE id = key; END; END$$;
VACUUM ANALYZE;
`

// Keys 1 to fenceCounters are rows that are updated, those from fenceLog on are
// rows that are added, v = 1, 2, ...
const (
	fenceCounters = 16
	fenceLog      = fenceCounters + 1
	fenceKeys     = 24
	fenceWriters  = 3
	fenceReaders  = 3
)

// fence checks the order of events in real time: what a writer was told to be
// committed, or any reader has seen, every read that begins later must see.
type fence struct {
	w *world
	// Of each key: the value that was sent last, the highest that is known to be
	// committed, and, for its writer, the current one.
	issued, floor [fenceKeys + 1]atomic.Int64
	current       [fenceKeys + 1]int64
	batonValue    atomic.Int64
	turns         sync.Mutex // one holder of the baton at a time, also while one is in doubt
	// Held for reading by every write, for writing by recovered.
	writes  sync.RWMutex
	moments []moment // patient's
}

// moment is what was known to be committed at a time.
type moment struct {
	at    time.Time
	floor [fenceKeys + 1]int64
}

func newFence(w *world) *fence { return &fence{w: w} }

func (f *fence) queries() []string {
	return []string{"SELECT id, v, note FROM counter ORDER BY id", "SELECT k, count(*), max(v) FROM log GROUP BY k ORDER BY k", "SELECT id, v FROM baton ORDER BY id"}
}

func (f *fence) run(ctx context.Context) {
	var wg sync.WaitGroup
	for i := range fenceWriters {
		wg.Go(func() { f.writer(ctx, i) })
	}
	for i := range fenceReaders {
		wg.Go(func() { f.reader(ctx, i) })
	}
	for i := range 2 {
		wg.Go(func() { f.passBaton(ctx, i) })
	}
	wg.Go(func() { f.listener(ctx) })
	wg.Go(func() { f.patient(ctx) })
	wg.Wait()
}

func raise(a *atomic.Int64, v int64) {
	for {
		old := a.Load()
		if v <= old || a.CompareAndSwap(old, v) {
			return
		}
	}
}

// up reports whether the server is up, after a pause if not.
func (w *world) up() bool {
	if w.epoch.Load()%2 == 0 {
		return true
	}
	time.Sleep(5 * time.Millisecond)
	return false
}

// writer writes rising values to keys of its own.
func (f *fence) writer(ctx context.Context, number int) {
	name := fmt.Sprint("fence-w", number)
	r := f.w.random(name)
	sessions := []*session{f.w.session(name, direct), f.w.session(name, through)}
	defer sessions[0].close()
	defer sessions[1].close()
	var doubt []int // keys whose last write is in doubt
	for ctx.Err() == nil {
		if !f.w.up() {
			continue
		}
		f.writes.RLock()
		s := sessions[r.IntN(2)]
		s.begin()
		if len(doubt) > 0 {
			if f.resolve(name, doubt[0]) {
				doubt = doubt[1:]
			}
			f.writes.RUnlock()
			continue
		}
		k := 1 + number + fenceWriters*r.IntN(fenceKeys/fenceWriters)
		v := f.current[k] + 1
		raise(&f.issued[k], v)
		var err error
		if k >= fenceLog {
			err = f.add(s, r, k, v)
		} else {
			err = f.set(s, r, name, k, v)
		}
		switch {
		case err == nil:
			f.current[k] = v
			raise(&f.floor[k], v)
		case isLost(err):
			doubt = append(doubt, k)
		default:
			s.rollback()
			doubt = append(doubt, k) // a prepared transaction may be left
		}
		f.writes.RUnlock()
		if r.IntN(50) == 0 {
			time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
		}
	}
}

// resolve finds out what became of a key's last write.
func (f *fence) resolve(name string, k int) bool {
	s := f.w.session("resolve", direct)
	defer s.close()
	if err := s.end(name + "-"); err != nil {
		return false
	}
	v, err := f.value(s, k)
	if err != nil {
		return false
	}
	f.current[k] = v
	raise(&f.floor[k], v)
	return true
}

// end ends all sessions whose name begins with prefix, and commits what they have
// prepared.
func (s *session) end(prefix string) error {
	for {
		a, err := s.do("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE '" + prefix + "%' AND pid <> pg_backend_pid()")
		if err != nil {
			return err
		}
		if a.int(0, 0) == 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	a, err := s.do("SELECT gid FROM pg_prepared_xacts WHERE gid LIKE '" + prefix + "%'")
	if err != nil {
		return err
	}
	for _, row := range a.rows {
		if _, err := s.do("COMMIT PREPARED '" + row[0] + "'"); err != nil {
			return err
		}
	}
	return nil
}

func (f *fence) value(s *session, k int) (int64, error) {
	sql := "SELECT v FROM counter WHERE id = $1"
	if k >= fenceLog {
		sql = "SELECT coalesce(max(v), 0) FROM log WHERE k = $1"
	}
	a, err := s.do(sql, k)
	return a.int(0, 0), err
}

func (f *fence) recovered(s *session) {
	f.writes.Lock()
	defer f.writes.Unlock()
	s.end("fence-w")
	for k := 1; k <= fenceKeys; k++ {
		v, err := f.value(s, k)
		if err != nil {
			f.w.violate("after a crash: %v", err)
			return
		}
		f.current[k] = v
		f.floor[k].Store(v)
	}
	a, err := s.do("SELECT v FROM baton")
	if err != nil {
		f.w.violate("after a crash: %v", err)
	}
	f.batonValue.Store(a.int(0, 0))
	f.moments = nil
}

// set gives a counter a new value, in one of many ways.
func (f *fence) set(s *session, r *rand.Rand, name string, k int, v int64) error {
	update := fmt.Sprintf("UPDATE counter SET v = %d, note = '%s' WHERE id = %d", v, name, k)
	wrong := fmt.Sprintf("UPDATE counter SET v = %d WHERE id = %d", v+1000000, k)
	if r.IntN(4) == 0 {
		if _, err := s.do("SET synchronous_commit = " + []string{"on", "off", "local"}[r.IntN(3)]); err != nil {
			return err
		}
	}
	switch r.IntN(9) {
	case 0:
		return s.all("BEGIN", "SAVEPOINT a", wrong, "ROLLBACK TO a", update, "COMMIT")
	case 1:
		gid := fmt.Sprintf("%s-%d-%d", name, k, v)
		return s.all("BEGIN", update, "PREPARE TRANSACTION '"+gid+"'", "COMMIT PREPARED '"+gid+"'")
	case 2:
		return s.all(fmt.Sprintf("SELECT bump(%d, %d)", k, v))
	case 3:
		return s.all(fmt.Sprintf("MERGE INTO counter c USING (VALUES (%d, %d)) n(id, v) ON c.id = n.id WHEN MATCHED THEN UPDATE SET v = n.v WHEN NOT MATCHED THEN INSERT VALUES (n.id, n.v, '')", k, v))
	case 4:
		return s.all(fmt.Sprintf("INSERT INTO counter VALUES (%d, %d, 'conflict') ON CONFLICT (id) DO UPDATE SET v = excluded.v", k, v))
	case 5:
		return s.all("BEGIN", fmt.Sprintf("DELETE FROM counter WHERE id = %d", k), "SAVEPOINT b", fmt.Sprintf("INSERT INTO counter VALUES (%d, %d, 'again')", k, v), "RELEASE b", "COMMIT")
	case 6: // own writes are seen before they are committed
		if err := s.all("BEGIN", update); err != nil {
			return err
		}
		a, err := s.do("SELECT max(v), count(*) FROM counter WHERE id = $1", k)
		if err != nil {
			return err
		}
		if a.int(0, 0) != v || a.int(0, 1) != 1 {
			f.w.violate("%s wrote %d to key %d and reads %s in the same transaction", s.name, v, k, a)
		}
		return s.all("COMMIT")
	case 7:
		if err := s.all("BEGIN", wrong, "ROLLBACK"); err != nil {
			return err
		}
		return s.all("BEGIN; " + update + fmt.Sprintf("; NOTIFY fence, '%d %d'; COMMIT", k, v))
	}
	return s.all(update)
}

// add adds the rows up to v of a key in the log.
func (f *fence) add(s *session, r *rand.Rand, k int, v int64) error {
	switch r.IntN(3) {
	case 0:
		return s.copyIn("COPY log FROM STDIN", fmt.Sprintf("%d\t%d\n", k, v))
	case 1:
		if err := s.all("BEGIN"); err != nil {
			return err
		}
		if err := s.copyIn("COPY log (v, k) FROM STDIN", fmt.Sprintf("%d\t%d\n", v, k)); err != nil {
			return err
		}
		return s.all("COMMIT")
	}
	return s.all(fmt.Sprintf("INSERT INTO log VALUES (%d, %d)", k, v))
}

// reader reads keys, accelerated, forced to Postgres, and directly.
func (f *fence) reader(ctx context.Context, number int) {
	name := fmt.Sprint("fence-r", number)
	r := f.w.random(name)
	fast, plain := f.w.session(name, through), f.w.session(name, direct)
	defer fast.close()
	defer plain.close()
	block := false // fast is in a transaction
	for ctx.Err() == nil {
		if !f.w.up() {
			continue
		}
		s, more := fast, ""
		switch r.IntN(8) {
		case 0:
			s = plain
		case 1, 2:
			more = " AND pg_backend_pid() > 0" // forwarded
		case 3:
			sql := "BEGIN"
			if block {
				sql = "COMMIT"
			}
			fast.begin()
			_, err := fast.do(sql)
			block = err == nil && !block
			continue
		}
		epoch := f.w.epoch.Load()
		s.begin()
		if err := f.read(s, r, more, epoch); err != nil {
			s.rollback()
			block = false
		}
	}
}

// read reads one key, or all, and compares with what must be seen.
func (f *fence) read(s *session, r *rand.Rand, more string, epoch int64) error {
	var floor [fenceKeys + 1]int64
	for k := range floor {
		floor[k] = f.floor[k].Load()
	}
	if s.via == through && more == "" {
		f.w.reads.Add(1)
	}
	var a answer
	var err error
	values := map[int]int64{}
	k := 1 + r.IntN(fenceKeys)
	switch {
	case r.IntN(4) == 0:
		if a, err = s.do("SELECT id, v FROM counter WHERE id > 0" + more + " ORDER BY id"); err != nil {
			return err
		}
		for i := range a.rows {
			values[int(a.int(i, 0))] = a.int(i, 1)
		}
		if len(values) != fenceCounters {
			f.w.violate("%s sees %d counters of %d: %s", s.name, len(values), fenceCounters, a)
		}
	case k >= fenceLog:
		if a, err = s.do("SELECT max(v), count(*), min(v) FROM log WHERE k = $1"+more, k); err != nil {
			return err
		}
		values[k] = max(a.int(0, 0), 0)
		if a.int(0, 1) != values[k] {
			f.w.violate("%s sees %s rows of key %d, of which the last is %s", s.name, a.rows[0][1], k, a.rows[0][0])
		}
	case r.IntN(2) == 0:
		if a, err = s.do("SELECT max(v), count(*) FROM counter WHERE id = $1"+more, k); err != nil {
			return err
		}
		values[k] = a.int(0, 0)
	default:
		if a, err = s.do("SELECT v FROM counter WHERE id = $1"+more, k); err != nil {
			return err
		}
		values[k] = a.int(0, 0)
	}
	f.writes.RLock() // recovered does not run meanwhile
	defer f.writes.RUnlock()
	if f.w.epoch.Load() != epoch {
		return nil
	}
	for k, v := range values {
		if v < floor[k] || v > f.issued[k].Load() {
			f.w.violate("%s reads %d of key %d, but %d had been seen or acknowledged before, and %d was written last", s.name, v, k, floor[k], f.issued[k].Load())
		}
		raise(&f.floor[k], v)
	}
	return nil
}

// patience is the staleness that patient allows.
const patience = 300 * time.Millisecond

// patient is a session with pgaccel.max_staleness: what it reads may be old, but not
// older than that.
func (f *fence) patient(ctx context.Context) {
	s := f.w.session("fence-p", through, fmt.Sprintf("SET pgaccel.max_staleness = '%dms'", patience.Milliseconds()))
	defer s.close()
	for ctx.Err() == nil {
		if !f.w.up() {
			continue
		}
		f.writes.RLock()
		epoch := f.w.epoch.Load()
		m := moment{at: time.Now()}
		for k := range m.floor {
			m.floor[k] = f.floor[k].Load()
		}
		m.at = time.Now() // not before the floors were read
		f.moments = append(f.moments, m)
		for len(f.moments) > 1 && time.Since(f.moments[1].at) > patience {
			f.moments = f.moments[1:]
		}
		oldest := f.moments[0]
		f.writes.RUnlock()
		s.begin()
		f.w.reads.Add(1)
		a, err := s.do("SELECT id, v FROM counter WHERE id > 0 ORDER BY id")
		if err == nil && m.at.Sub(oldest.at) > patience && f.w.epoch.Load() == epoch {
			for i := range a.rows {
				if k := a.int(i, 0); a.int(i, 1) < oldest.floor[k] {
					f.w.violate("%s reads %d of key %d, but %d had been committed %v before", s.name, a.int(i, 1), k, oldest.floor[k], m.at.Sub(oldest.at))
				}
			}
			if len(a.rows) != fenceCounters {
				f.w.violate("%s sees %d counters of %d: %s", s.name, len(a.rows), fenceCounters, a)
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// passBaton hands a counter over by an advisory lock: whoever holds the lock reads
// through pgaccel exactly what the last holder left.
func (f *fence) passBaton(ctx context.Context, number int) {
	name := fmt.Sprint("fence-b", number)
	r := f.w.random(name)
	lock, fast := f.w.session(name, direct), f.w.session(name, through)
	defer lock.close()
	defer fast.close()
	for ctx.Err() == nil {
		if !f.w.up() {
			continue
		}
		f.writes.RLock()
		f.turns.Lock()
		epoch := f.w.epoch.Load()
		lock.begin()
		fast.begin()
		if f.turn(lock, fast, r, epoch) != nil {
			fast.close() // and with it its transaction and its lock
			lock.close()
		}
		f.turns.Unlock()
		f.writes.RUnlock()
		time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
	}
}

func (f *fence) turn(lock, fast *session, r *rand.Rand, epoch int64) error {
	if a, err := lock.do("SELECT pg_try_advisory_lock(42)"); err != nil || a.rows[0][0] != "t" {
		return err
	}
	f.w.reads.Add(1)
	a, err := fast.do("SELECT sum(v), count(*) FROM baton WHERE id = 1")
	if err != nil {
		return err
	}
	got := a.int(0, 0)
	if want := f.batonValue.Load(); got != want && f.w.epoch.Load() == epoch {
		f.w.violate("%s holds the lock and reads %d, the last holder left %d", fast.name, got, want)
	}
	s := lock
	if r.IntN(2) == 0 {
		s = fast
	}
	next := got + 1
	if _, err := s.do(fmt.Sprintf("UPDATE baton SET v = %d WHERE id = 1", next)); err != nil {
		return f.unknownTurn(lock, err)
	}
	f.batonValue.Store(next)
	_, err = lock.do("SELECT pg_advisory_unlock(42)")
	return err
}

// unknownTurn finds out what a turn that was cut short has left.
func (f *fence) unknownTurn(lock *session, err error) error {
	s := f.w.session("resolve", direct)
	defer s.close()
	s.epoch = lock.epoch
	for f.w.epoch.Load() == lock.epoch {
		if e := s.end("fence-b"); e != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		a, e := s.do("SELECT v FROM baton WHERE id = 1 FOR UPDATE")
		if e == nil {
			f.batonValue.Store(a.int(0, 0))
			return err
		}
	}
	return err
}

// listener reads a key as soon as a notification says that it was written.
func (f *fence) listener(ctx context.Context) {
	fast := f.w.session("fence-l", through)
	defer fast.close()
	fast.settings = []string{"LISTEN fence"}
	for ctx.Err() == nil {
		if !f.w.up() {
			continue
		}
		epoch := f.w.epoch.Load()
		fast.begin()
		if fast.conn == nil {
			if _, err := fast.do("SELECT 1"); err != nil {
				continue
			}
		}
		note, err := fast.notification(50 * time.Millisecond)
		if err != nil || note == nil {
			continue
		}
		var k int
		var v int64
		if n, _ := fmt.Sscan(strings.TrimSpace(note.Payload), &k, &v); n != 2 {
			f.w.violate("an unknown notification: %q", note.Payload)
			return
		}
		f.w.reads.Add(1)
		a, err := fast.do("SELECT max(v), count(*) FROM counter WHERE id = $1", k)
		if err == nil && a.int(0, 0) < v && f.w.epoch.Load() == epoch {
			f.w.violate("%s was notified that key %d is %d, and reads %d", fast.name, k, v, a.int(0, 0))
		}
	}
}

// notification waits for a notification, nil if there is none in time.
func (s *session) notification(wait time.Duration) (*pgconn.Notification, error) {
	if len(s.notes) == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		if err := s.conn.WaitForNotification(ctx); err != nil {
			if s.conn.IsClosed() {
				s.close()
				return nil, errLost{err}
			}
			return nil, nil
		}
	}
	if len(s.notes) == 0 {
		return nil, nil
	}
	n := s.notes[0]
	s.notes = s.notes[1:]
	return n, nil
}
