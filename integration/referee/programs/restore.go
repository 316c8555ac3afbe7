package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const restoreSchema = `
CREATE SCHEMA elsewhere;
CREATE TABLE elsewhere.noise (t text);
CREATE TABLE quiet (id int PRIMARY KEY, step int NOT NULL);
INSERT INTO quiet SELECT i, 0 FROM generate_series(1, 100) i;
`

// quietQuery is asked accelerated ("{}" left out) and forwarded.
const quietQuery = "SELECT id, step FROM quiet WHERE id > 0{} ORDER BY id"

// quiet compares a table that the restorer alone changes, once after each step: what a
// wrong history leaves there is not mended by the next change.
type quiet struct{ w *world }

func (q *quiet) queries() []string { return []string{strings.Replace(quietQuery, "{}", "", 1)} }

// recovered implements workload.
func (q *quiet) recovered(*session) {}

func (q *quiet) run(ctx context.Context) {
	s := q.w.session("quiet", through)
	defer s.close()
	for ctx.Err() == nil {
		if !q.w.up() {
			continue
		}
		s.begin()
		if err := q.compare(s); err != nil {
			s.rollback()
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (q *quiet) compare(s *session) error {
	if err := s.all("BEGIN ISOLATION LEVEL REPEATABLE READ"); err != nil {
		return err
	}
	q.w.reads.Add(1)
	fast, err := s.do(strings.Replace(quietQuery, "{}", "", 1))
	if err != nil {
		return err
	}
	plain, err := s.do(strings.Replace(quietQuery, "{}", " AND pg_backend_pid() > 0", 1))
	if err != nil {
		return err
	}
	if fast.String() != plain.String() {
		q.w.violate("%s: %s\npgaccel: %s\nforwarded: %s", s.name, quietQuery, clip(fast.String(), 1000), clip(plain.String(), 1000))
	}
	return s.all("COMMIT")
}

// restorer puts the server's files, and those of the data directory, back as they were
// some time before, by themselves or together: what pgaccel remembers may be of a
// future that the server has never had. Mirror's readers and quiet's compare with Postgres
// all the time.
type restorer struct {
	*nemesis
	servers, backups, datas, both []int // numbers of the copies there are
	next                          int   // number of the next copy
	counts                        map[string]int
	begins                        bool // these are the first steps
}

func newRestorer(w *world, loads []workload, out io.Writer) *restorer {
	n := newNemesis(w, loads, out)
	n.rand = w.random("restorer")
	return &restorer{nemesis: n, counts: map[string]int{}}
}

// copiesMax is how many copies of a kind are kept.
const copiesMax = 3

// step is something that the restorer does; it returns with server and pgaccel running.
type step struct {
	name string
	do   func(r *restorer, ctx context.Context) error
}

var restoreSteps = []step{
	{"server copied", (*restorer).copyServer},
	{"server put back, pgaccel killed", func(r *restorer, ctx context.Context) error { return r.putServerBack(ctx, r.pick(r.servers), true) }},
	{"server put back, pgaccel alive", func(r *restorer, ctx context.Context) error { return r.putServerBack(ctx, r.pick(r.servers), false) }},
	{"base backup", (*restorer).backup},
	{"base backup put back", func(r *restorer, ctx context.Context) error {
		return r.putServerBack(ctx, r.pick(r.backups), r.rand.IntN(2) == 0)
	}},
	{"data directory copied", (*restorer).copyData},
	{"data directory put back", (*restorer).putDataBack},
	{"both copied", (*restorer).copyBoth},
	{"both put back", (*restorer).putBothBack},
	{"pgaccel killed", func(r *restorer, ctx context.Context) error {
		r.w.killAccelerator()
		r.pause(ctx, 500*time.Millisecond)
		return r.w.startAccelerator()
	}},
	{"pgaccel stopped", func(r *restorer, ctx context.Context) error {
		if err := r.w.stopAccelerator(); err != nil {
			return err
		}
		r.pause(ctx, 500*time.Millisecond)
		return r.w.startAccelerator()
	}},
	{"server stopped at once", func(r *restorer, ctx context.Context) error { return r.restart(ctx, true) }},
	{"server stopped", func(r *restorer, ctx context.Context) error { return r.restart(ctx, false) }},
	{"walsender terminated", func(r *restorer, _ context.Context) error {
		_, err := r.admin.do("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_replication")
		return ignoreLost(err)
	}},
}

// run begins with the shortest way to another history, which is the same for all seeds,
// and goes on at random.
func (r *restorer) run(ctx context.Context) error {
	defer r.admin.close()
	defer r.report()
	r.saved(ctx)
	for i := 0; ctx.Err() == nil; i++ {
		s := restoreSteps[r.rand.IntN(len(restoreSteps))]
		if r.begins = i < 3; r.begins {
			s = restoreSteps[i]
		}
		r.admin.begin()
		r.w.history.note("restorer", "%s", s.name)
		if err := s.do(r, ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		r.counts[s.name]++
		r.admin.begin()
		if _, err := r.admin.do(fmt.Sprintf("UPDATE quiet SET step = %d WHERE id %% 7 = %d", i+1, r.rand.IntN(7))); ignoreLost(err) != nil {
			return err
		}
		r.w.history.note("restorer", "after: %s", s.name)
		if r.begins || r.rand.IntN(3) > 0 {
			r.served(ctx, s.name)
			r.saved(ctx)
		}
	}
	return nil
}

func (r *restorer) pick(numbers []int) int {
	if len(numbers) == 0 {
		return -1
	}
	return numbers[r.rand.IntN(len(numbers))]
}

// saved waits until a checkpoint of what is there now is on disk: it is what a later
// history may be taken for.
func (r *restorer) saved(ctx context.Context) {
	manifest := filepath.Join(r.w.data, "manifest")
	began := time.Now()
	for ctx.Err() == nil && time.Since(began) < servedLimit {
		if info, err := os.Stat(manifest); err == nil && info.ModTime().After(began) && info.Size() > 1000 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (r *restorer) path(kind string, number int) string {
	return filepath.Join(r.w.dir, "copies", fmt.Sprintf("%s-%d", kind, number))
}

// serverDir holds the server's files.
func (r *restorer) serverDir() string { return r.w.server().DataDir }

// copyTree makes to a copy of from, owners included.
func copyTree(from, to string) error {
	if err := errors.Join(os.RemoveAll(to), os.MkdirAll(filepath.Dir(to), 0o755)); err != nil {
		return err
	}
	if out, err := exec.Command("cp", "-a", "--reflink=auto", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("cp: %w: %s", err, out)
	}
	return nil
}

// keep adds a copy's number, and removes the oldest of too many.
func (r *restorer) keep(numbers []int, kinds ...string) []int {
	numbers = append(numbers, r.next)
	r.next++
	for len(numbers) > copiesMax {
		for _, kind := range kinds {
			os.RemoveAll(r.path(kind, numbers[0]))
		}
		numbers = numbers[1:]
	}
	return numbers
}

// stopServer stops the server, cleanly or not; startServer must follow.
func (r *restorer) stopServer(atOnce bool) {
	r.w.epoch.Add(1)
	if atOnce {
		r.w.server().Stop() // keeps its folder: it is ours
	} else {
		r.w.server().Shutdown()
	}
}

func (r *restorer) startServer(ctx context.Context) error {
	if err := r.w.startServer(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	return r.up(ctx)
}

func (r *restorer) copyServer(ctx context.Context) error {
	r.stopServer(r.rand.IntN(3) == 0)
	if err := copyTree(r.serverDir(), r.path("server", r.next)); err != nil {
		return err
	}
	r.servers = r.keep(r.servers, "server")
	return r.startServer(ctx)
}

// putServerBack has the server go on from a copy of its files. Its log may soon be
// longer than that of the history that is gone.
func (r *restorer) putServerBack(ctx context.Context, number int, killed bool) error {
	if number < 0 {
		return nil
	}
	if killed {
		r.w.killAccelerator()
	}
	dir := r.serverDir()
	r.stopServer(r.rand.IntN(2) == 0)
	kind := "server"
	if _, err := os.Stat(r.path(kind, number)); err != nil {
		kind = "backup"
	}
	if err := errors.Join(os.RemoveAll(dir), copyTree(r.path(kind, number), dir)); err != nil {
		return err
	}
	// Nobody else may use it before its log is as long as it is to be, or else the
	// streams find it too short.
	if r.begins || r.rand.IntN(3) > 0 {
		if err := r.lengthen(ctx); err != nil {
			return err
		}
	}
	if err := r.startServer(ctx); err != nil {
		return err
	}
	if killed {
		return r.w.startAccelerator()
	}
	return nil
}

// lengthen starts the server for a moment, where pgaccel does not find it, and has its
// log pass all positions that there ever were.
func (r *restorer) lengthen(ctx context.Context) error {
	alone, err := r.w.runServer(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	defer alone.Shutdown()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), statementLimit)
	defer cancel()
	conn, err := pgconn.Connect(limited, alone.URL("postgres", "postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(limited)
	statements := []string{"INSERT INTO tally VALUES (1, 3), (2, -3)", "UPDATE acc_b SET note = 'restored' WHERE id % 50 = 7"}
	for range 2 + r.rand.IntN(3) {
		statements = append(statements, "INSERT INTO elsewhere.noise VALUES ('x')", "SELECT pg_switch_wal()")
	}
	for _, sql := range statements {
		if _, err := conn.Exec(limited, sql).ReadAll(); err != nil {
			return err
		}
	}
	return nil
}

// backup makes a base backup: without slots, and of the same history up to then.
func (r *restorer) backup(context.Context) error {
	program := filepath.Join(r.w.server().BinDir, "pg_basebackup")
	if _, err := os.Stat(program); err != nil {
		return nil // a server without client programs
	}
	to := r.path("backup", r.next)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := exec.Command(program, "-h", "127.0.0.1", "-p", fmt.Sprint(r.w.server().Port), "-U", "postgres", "-D", to, "-c", "fast", "-X", "stream").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if out, err := exec.Command("chown", "-R", "--reference", r.serverDir(), to).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	r.backups = r.keep(r.backups, "backup")
	return nil
}

// copyData copies the data directory of a pgaccel that was killed: what a snapshot of the
// file system would have.
func (r *restorer) copyData(context.Context) error {
	r.w.killAccelerator()
	if err := copyTree(r.w.data, r.path("data", r.next)); err != nil {
		return err
	}
	r.datas = r.keep(r.datas, "data")
	return r.w.startAccelerator()
}

func (r *restorer) putDataBack(ctx context.Context) error {
	number := r.pick(r.datas)
	if number < 0 {
		return nil
	}
	r.w.killAccelerator()
	if err := copyTree(r.path("data", number), r.w.data); err != nil {
		return err
	}
	return r.w.startAccelerator()
}

// copyBoth copies server and data directory at one moment.
func (r *restorer) copyBoth(ctx context.Context) error {
	r.w.killAccelerator()
	r.stopServer(r.rand.IntN(2) == 0)
	if err := errors.Join(copyTree(r.serverDir(), r.path("server", r.next)), copyTree(r.w.data, r.path("data", r.next))); err != nil {
		return err
	}
	r.both = r.keep(r.both, "server", "data")
	if err := r.startServer(ctx); err != nil {
		return err
	}
	return r.w.startAccelerator()
}

func (r *restorer) putBothBack(ctx context.Context) error {
	number := r.pick(r.both)
	if number < 0 {
		return nil
	}
	r.w.killAccelerator()
	if err := copyTree(r.path("data", number), r.w.data); err != nil {
		return err
	}
	return r.putServerBack(ctx, number, true)
}

func (r *restorer) report() {
	for _, s := range restoreSteps {
		fmt.Fprintf(r.out, "  %4d times: %s\n", r.counts[s.name], s.name)
	}
}
