package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

const skewSchema = `
CREATE TABLE doctors (id int PRIMARY KEY, shift int NOT NULL, on_call boolean NOT NULL, n int NOT NULL);
INSERT INTO doctors SELECT i, i / 2, true, 0 FROM generate_series(0, 199) i;
VACUUM ANALYZE;
`

// skew checks that SERIALIZABLE stays serializable: each shift has two doctors, and
// whoever sees both on call may leave. Schedules that Postgres refuses must be
// refused through pgaccel too, and a shift must never be left alone.
type skew struct{ w *world }

func newSkew(w *world) *skew { return &skew{w} }

func (k *skew) queries() []string {
	return []string{onCallSQL + " >= 0 GROUP BY shift ORDER BY shift", "SELECT count(*), sum(n) FROM doctors WHERE on_call"}
}

func (k *skew) recovered(*session) {}

func (k *skew) run(ctx context.Context) {
	k.schedules()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() { k.doctor(ctx, i) })
	}
	wg.Go(func() { k.watch(ctx) })
	wg.Wait()
}

const onCallSQL = "SELECT shift, count(*), sum(n) FROM doctors WHERE on_call AND shift"

// doctor leaves shifts and returns to them.
func (k *skew) doctor(ctx context.Context, number int) {
	name := fmt.Sprint("skew-", number)
	s := k.w.session(name, through)
	if number == 3 {
		s.via = direct
	}
	defer s.close()
	for ctx.Err() == nil {
		shift, who := s.rand.IntN(3), s.rand.IntN(2)
		err := func() error {
			if err := s.all("BEGIN ISOLATION LEVEL SERIALIZABLE"); err != nil {
				return err
			}
			a, err := s.do(onCallSQL+" = $1 GROUP BY shift", shift)
			if err != nil {
				return err
			}
			on := a.int(0, 1) < 2
			return s.all(fmt.Sprintf("UPDATE doctors SET on_call = %t, n = n + 1 WHERE id = %d", on, 2*shift+who), "COMMIT")
		}()
		if err != nil {
			s.rollback()
		}
	}
}

// watch looks whether a shift is alone.
func (k *skew) watch(ctx context.Context) {
	s := k.w.session("skew-watch", through)
	defer s.close()
	for ctx.Err() == nil {
		k.w.reads.Add(1)
		a, err := s.do(onCallSQL + " < 3 GROUP BY shift ORDER BY shift")
		if err != nil {
			continue
		}
		if len(a.rows) != 3 {
			k.w.violate("write skew under SERIALIZABLE: a shift has nobody on call: %s", a)
		}
	}
}

// skewSchedules are interleavings of sessions 0, 1 and 2. In each, every session by
// itself keeps the rule.
var skewSchedules = [][]string{
	{ // write skew
		"0 BEGIN ISOLATION LEVEL SERIALIZABLE", "1 BEGIN ISOLATION LEVEL SERIALIZABLE", "0 " + onCallSQL + " = 50 GROUP BY shift", "1 " + onCallSQL + " = 50 GROUP BY shift",
		"0 UPDATE doctors SET on_call = false WHERE id = 100", "1 UPDATE doctors SET on_call = false WHERE id = 101", "0 COMMIT", "1 COMMIT",
	},
	{ // the same, with the second read after the first commit
		"0 BEGIN ISOLATION LEVEL SERIALIZABLE", "1 BEGIN ISOLATION LEVEL SERIALIZABLE", "1 SELECT count(*) FROM doctors WHERE id = 100 AND on_call", "0 " + onCallSQL + " = 50 GROUP BY shift",
		"0 UPDATE doctors SET on_call = false WHERE id = 100", "0 COMMIT", "1 " + onCallSQL + " = 50 GROUP BY shift", "1 UPDATE doctors SET on_call = false WHERE id = 101", "1 COMMIT",
	},
	{ // the read-only anomaly of Fekete, O'Neil, O'Neil, 2004: the reader is the third
		"0 BEGIN ISOLATION LEVEL SERIALIZABLE", "0 SELECT sum(n) FROM doctors WHERE shift = 60", "1 BEGIN ISOLATION LEVEL SERIALIZABLE", "1 SELECT sum(n) FROM doctors WHERE id = 121",
		"1 UPDATE doctors SET n = n + 20 WHERE id = 121", "1 COMMIT", "2 BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY", "2 SELECT id, n FROM doctors WHERE shift = 60 ORDER BY id", "2 COMMIT",
		"0 UPDATE doctors SET n = n - 11 WHERE id = 120", "0 COMMIT",
	},
	{ // REPEATABLE READ lets write skew happen, through pgaccel as well
		"0 BEGIN ISOLATION LEVEL REPEATABLE READ", "1 BEGIN ISOLATION LEVEL REPEATABLE READ", "0 " + onCallSQL + " = 50 GROUP BY shift", "1 " + onCallSQL + " = 50 GROUP BY shift",
		"0 UPDATE doctors SET on_call = false WHERE id = 100", "1 UPDATE doctors SET on_call = false WHERE id = 101", "0 COMMIT", "1 COMMIT",
	},
	{ // lost update: the second is refused
		"0 BEGIN ISOLATION LEVEL REPEATABLE READ", "1 BEGIN ISOLATION LEVEL REPEATABLE READ", "0 SELECT sum(n) FROM doctors WHERE id = 100", "1 SELECT sum(n) FROM doctors WHERE id = 100",
		"0 UPDATE doctors SET n = 1 WHERE id = 100", "0 COMMIT", "1 UPDATE doctors SET n = 2 WHERE id = 100", "1 COMMIT",
	},
	{ // safe snapshots do not wait here, and read what a snapshot has
		"0 BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE", "0 " + onCallSQL + " = 50 GROUP BY shift", "1 UPDATE doctors SET n = n + 1 WHERE id = 100", "0 " + onCallSQL + " = 50 GROUP BY shift", "0 COMMIT",
	},
}

// schedules runs each schedule directly, through pgaccel, and mixed: every
// statement must be answered alike.
func (k *skew) schedules() {
	for i, schedule := range skewSchedules {
		want := k.schedule(schedule, direct, direct, direct)
		for _, via := range [][]route{{through, through, through}, {through, direct, through}, {direct, through, direct}} {
			if got := k.schedule(schedule, via...); got != want {
				k.w.violate("schedule %d through %v:\n%s\ndirectly:\n%s", i, via, got, want)
				return
			}
		}
	}
}

func (k *skew) schedule(steps []string, via ...route) string {
	reset := k.w.session("skew-reset", direct)
	defer reset.close()
	if err := reset.all("UPDATE doctors SET on_call = true, n = 0"); err != nil {
		return err.Error()
	}
	var sessions []*session
	for _, v := range via {
		s := k.w.session("skew-schedule", v)
		defer s.close()
		sessions = append(sessions, s)
	}
	var log strings.Builder
	for _, step := range steps {
		number, sql, _ := strings.Cut(step, " ")
		a, err := sessions[number[0]-'0'].do(sql)
		fmt.Fprintf(&log, "%s -> %s %s\n", step, a, sqlState(err))
	}
	return log.String()
}
