package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const appendSchema = `
CREATE TABLE lists (k int PRIMARY KEY, vals text NOT NULL);
CREATE TABLE items (k int NOT NULL, pos int NOT NULL, v int NOT NULL, PRIMARY KEY (k, pos));
CREATE TABLE probe (round int NOT NULL, side int NOT NULL, PRIMARY KEY (round, side));
INSERT INTO lists VALUES (0, '');
INSERT INTO items VALUES (0, 0, 0);
INSERT INTO probe VALUES (0, 0);
VACUUM ANALYZE;
`

const (
	appendKeys    = 8   // of a round; even ones are a text that grows, odd ones rows
	appendStep    = 100 // from a round's first key to the next round's
	appendWorkers = 6
	appendRound   = 2 * time.Second
)

// appends is the list-append program: see elle.go for what is checked. It works in
// rounds, each with keys of its own, so that histories stay small.
type appends struct {
	w     *world
	value atomic.Int64

	mu   sync.Mutex
	txns []*txn
}

func newAppend(w *world) *appends { return &appends{w: w} }

func (p *appends) queries() []string {
	return []string{"SELECT k, vals FROM lists ORDER BY k", "SELECT k, pos, v FROM items ORDER BY k, pos", "SELECT side, count(*), max(round) FROM probe GROUP BY side ORDER BY side"}
}

// recovered implements workload: a round in which the server crashed is checked only
// where nothing was committed asynchronously.
func (p *appends) recovered(*session) {}

func (p *appends) run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { p.forks(ctx) })
	for round := 1; ctx.Err() == nil; round++ {
		p.round(ctx, round*appendStep, round%2 == 0)
	}
	wg.Wait()
}

// round lets all workers append to the keys from first on, then checks.
func (p *appends) round(ctx context.Context, first int, async bool) {
	s := p.w.session("append-admin", direct)
	defer s.close()
	if !p.prepare(ctx, s, first) {
		return
	}
	epoch := p.w.epoch.Load()
	p.txns = nil
	until, cancel := context.WithTimeout(ctx, appendRound)
	defer cancel()
	var wg sync.WaitGroup
	for i := range appendWorkers {
		wg.Go(func() { p.worker(until, i, first, async) })
	}
	wg.Wait()
	final, ok := p.final(s, first)
	if !ok || async && p.w.epoch.Load() != epoch {
		return
	}
	p.w.history.note("append", "checking %d transactions", len(p.txns))
	if bad := checkLists(p.txns, final); bad != "" {
		p.w.violate("append, keys from %d: %s", first, bad)
	}
}

// prepare makes the round's lists and removes those before.
func (p *appends) prepare(ctx context.Context, s *session, first int) bool {
	for ctx.Err() == nil {
		s.begin()
		err := s.all("BEGIN", fmt.Sprintf("DELETE FROM lists WHERE k > 0; DELETE FROM items WHERE k > 0; INSERT INTO lists SELECT k, '' FROM generate_series(%d, %d, 2) k", first, first+appendKeys-1), "COMMIT")
		if err == nil {
			return true
		}
		s.rollback()
		time.Sleep(50 * time.Millisecond)
	}
	return false
}

// final reads all lists when no transaction is left.
func (p *appends) final(s *session, first int) (map[int][]int, bool) {
	for range 200 {
		s.begin()
		err := s.end("append-w")
		var lists map[int][]int
		if err == nil {
			lists = map[int][]int{}
			err = p.read(s, formText|formRows, first, first+appendKeys, "", func(key int, list []int) { lists[key] = list })
		}
		if err == nil {
			return lists, true
		}
		time.Sleep(100 * time.Millisecond)
	}
	p.w.violate("append: the server does not answer")
	return nil, false
}

// The two forms of a list, one statement each.
const (
	formText = 1 << iota // even keys
	formRows             // odd keys
)

// read reads the lists of the keys in [from, to) that have one of the forms.
func (p *appends) read(s *session, forms, from, to int, more string, f func(key int, list []int)) error {
	found := map[int][]int{}
	if forms&formText != 0 {
		p.count(s, more)
		a, err := s.do("SELECT k, vals FROM lists WHERE k >= $1 AND k < $2"+more+" ORDER BY k", from, to)
		if err != nil {
			return err
		}
		for _, row := range a.rows {
			k, _ := strconv.Atoi(row[0])
			for v := range strings.FieldsFuncSeq(row[1], func(r rune) bool { return r == ',' }) {
				n, _ := strconv.Atoi(v)
				found[k] = append(found[k], n)
			}
		}
	}
	if forms&formRows != 0 {
		p.count(s, more)
		a, err := s.do("SELECT k, v FROM items WHERE k >= $1 AND k < $2"+more+" ORDER BY k, pos", from, to)
		if err != nil {
			return err
		}
		for i := range a.rows {
			k := int(a.int(i, 0))
			found[k] = append(found[k], int(a.int(i, 1)))
		}
	}
	for k := from; k < to; k++ {
		if forms&(1<<(k%2)) != 0 {
			f(k, found[k])
		}
	}
	return nil
}

func (p *appends) count(s *session, more string) {
	if s.via == through && more == "" {
		p.w.reads.Add(1)
	}
}

// worker runs transactions on keys of the round.
func (p *appends) worker(ctx context.Context, number, first int, async bool) {
	name := fmt.Sprint("append-w", number)
	r := p.w.random(fmt.Sprint(name, first))
	sessions := []*session{p.w.session(name, through), p.w.session(name, direct)}
	defer sessions[0].close()
	defer sessions[1].close()
	for n := 0; ctx.Err() == nil; n++ {
		if !p.w.up() {
			continue
		}
		s := sessions[0]
		if r.IntN(4) == 0 {
			s = sessions[1]
		}
		s.begin()
		t := &txn{who: s.name + " " + s.via.String()}
		t.began = time.Now()
		err := p.transaction(t, s, r, first, async, fmt.Sprintf("%s-%d-%d", name, first, n))
		t.ended = time.Now()
		switch {
		case isLost(err):
			t.state, t.ended = txnUnknown, time.Time{}
		case err != nil:
			s.rollback()
			t.state = txnAborted
		}
		p.mu.Lock()
		t.id = len(p.txns)
		p.txns = append(p.txns, t)
		p.mu.Unlock()
	}
}

// transaction is a single statement, or a REPEATABLE READ transaction.
func (p *appends) transaction(t *txn, s *session, r *rand.Rand, first int, async bool, gid string) error {
	switch r.IntN(6) {
	case 0:
		return p.append(t, s, r, first)
	case 1: // one statement: its snapshot is its own
		return p.readSome(t, s, 1+r.IntN(2), first, first+appendKeys, "")
	}
	if err := s.all("BEGIN ISOLATION LEVEL REPEATABLE READ"); err != nil {
		return err
	}
	if async && r.IntN(2) == 0 {
		if err := s.all("SET LOCAL synchronous_commit = off"); err != nil {
			return err
		}
	}
	writes := r.IntN(3) // of the operations, how many in three
	wrote := false
	for range 1 + r.IntN(4) {
		var err error
		if r.IntN(3) < writes {
			wrote = true
			err = p.append(t, s, r, first)
		} else {
			from := first + r.IntN(appendKeys)
			to := from + 1 + r.IntN(first+appendKeys-from)
			err = p.readSome(t, s, 1+r.IntN(3), from, to, []string{"", "", " AND pg_backend_pid() > 0"}[r.IntN(3)])
		}
		if err != nil {
			return err
		}
	}
	switch {
	case r.IntN(12) == 0:
		if err := s.all("ROLLBACK"); err != nil {
			return err
		}
		t.state = txnAborted
		return nil
	case wrote && r.IntN(6) == 0:
		return s.all("PREPARE TRANSACTION '"+gid+"'", "COMMIT PREPARED '"+gid+"'")
	}
	return s.all("COMMIT")
}

func (p *appends) readSome(t *txn, s *session, forms, from, to int, more string) error {
	return p.read(s, forms, from, to, more, func(key int, list []int) {
		t.ops = append(t.ops, listOp{key: key, read: true, list: list})
	})
}

func (p *appends) append(t *txn, s *session, r *rand.Rand, first int) error {
	k, v := first+r.IntN(appendKeys), int(p.value.Add(1))
	t.ops = append(t.ops, listOp{key: k, value: v})
	if k%2 == 0 {
		return s.all(fmt.Sprintf("UPDATE lists SET vals = vals || '%d,' WHERE k = %d", v, k))
	}
	// The primary key fails whoever did not see the last element.
	return s.all(fmt.Sprintf("INSERT INTO items SELECT %d, coalesce(max(pos), 0) + 1, %d FROM items WHERE k = %d", k, v, k))
}

// forks looks for the smallest anomaly that no prefix of the log explains: two
// transactions at the same time, one reader that sees only the first and another
// that sees only the second.
func (p *appends) forks(ctx context.Context) {
	writers := []*session{p.w.session("fork-w", direct), p.w.session("fork-w", through)}
	readers := []*session{p.w.session("fork-r", through), p.w.session("fork-r", through), p.w.session("fork-r", direct)}
	defer func() {
		for _, s := range append(writers, readers...) {
			s.close()
		}
	}()
	for round := 1; ctx.Err() == nil; round++ {
		if p.w.up() {
			p.fork(writers, readers, round)
		}
		time.Sleep(time.Duration(writers[0].rand.IntN(30)) * time.Millisecond)
	}
}

func (p *appends) fork(writers, readers []*session, round int) {
	epoch := p.w.epoch.Load()
	var wg sync.WaitGroup
	for side, s := range writers {
		s.begin()
		mode := []string{"on", "off", "local"}[s.rand.IntN(3)]
		wg.Go(func() {
			if s.all("SET synchronous_commit = "+mode, fmt.Sprintf("INSERT INTO probe VALUES (%d, %d)", round, side)) != nil {
				s.rollback()
			}
		})
	}
	seen := make([][3]bool, len(readers)) // by reader: only side 0, only side 1
	for i, s := range readers {
		s.begin()
		wg.Go(func() {
			for range 200 {
				p.count(s, "")
				a, err := s.do("SELECT side, count(*) FROM probe WHERE round = $1 GROUP BY side ORDER BY side", round)
				if err != nil || len(a.rows) > 1 {
					return
				}
				if len(a.rows) == 1 {
					seen[i][a.int(0, 0)] = true
				}
			}
		})
	}
	wg.Wait()
	for i := range seen {
		for j := range seen {
			if seen[i][0] && seen[j][1] && p.w.epoch.Load() == epoch {
				p.w.violate("long fork in round %d: %s saw the first write without the second, %s the second without the first", round, readers[i].name, readers[j].name)
				return
			}
		}
	}
}
