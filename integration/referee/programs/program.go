package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// workload is sessions that write and read, and check what they see.
type workload interface {
	// run works until ctx ends, and returns when all its sessions have.
	run(ctx context.Context)
	// recovered is called when the server is up again after a crash, with no
	// operation under way: what it holds now is the truth.
	recovered(s *session)
	// queries are compared at the end, when all is quiet, and must be accelerated
	// again then.
	queries() []string
}

// program is one of the programs.
type program struct {
	name   string
	schema string
	share  float64 // of the reads that must have been accelerated
	start  func(w *world) []workload
	faults bool // nemesis works beside
	// restores has a restorer work beside; pgaccel keeps its columns in a data directory.
	restores bool
	serve    []string // more flags for pgaccel
}

// programs are all, in the order in which they run.
var programs = []program{
	{name: "fence", schema: fenceSchema, share: 0.7, start: func(w *world) []workload { return []workload{newFence(w)} }},
	{name: "mirror", schema: mirrorSchema, share: 0.7, start: func(w *world) []workload { return []workload{newMirror(w)} }},
	{name: "append", schema: appendSchema, share: 0.7, start: func(w *world) []workload { return []workload{newAppend(w)} }},
	{name: "skew", schema: skewSchema, share: 0.5, start: func(w *world) []workload { return []workload{newSkew(w)} }},
	{name: "ddl-chaos", schema: chaosSchema, share: 0.1, start: func(w *world) []workload { return []workload{newChaos(w)} }},
	{name: "catalog", schema: catalogSchema, share: 0.1, start: func(w *world) []workload { return []workload{newCatalogs(w)} }},
	{name: "faults", schema: fenceSchema + mirrorSchema + appendSchema, share: 0.01, faults: true,
		start: func(w *world) []workload { return []workload{newFence(w), newMirror(w), newAppend(w)} }},
	{name: "restore", schema: mirrorSchema + restoreSchema, share: 0.01, restores: true, start: func(w *world) []workload { return []workload{newMirror(w), &quiet{w}} }},
	{name: "memory", schema: memorySchema, share: 0.05, serve: []string{"--query-memory", strconv.Itoa(memoryBudget)}, start: func(w *world) []workload { return []workload{newMemory(w)} }},
}

// runOptions say how a program runs.
type runOptions struct {
	binary   string // of pgaccel
	seed     uint64
	duration time.Duration
	out      io.Writer
	keep     bool // write the history even without a violation
	dataDir  bool // pgaccel keeps its columns in a data directory
	// histories is the folder for the history of a violation; "" is the temporary one.
	histories string
	lie       func(s *session, sql string, args []any) (answer, bool)
}

// run runs the program and returns what went wrong, with the history written to out.
func (p *program) run(ctx context.Context, o runOptions) error {
	began := time.Now()
	fmt.Fprintf(o.out, "%s: seed %d, for %v\n", p.name, o.seed, o.duration)
	data := ""
	if o.dataDir || p.restores {
		dir, err := os.MkdirTemp("", "pgaccel-programs-data-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		data = filepath.Join(dir, "data")
	}
	w, err := newWorld(ctx, o.binary, o.seed, p, data)
	if err != nil {
		return err
	}
	defer w.close()
	w.lie = o.lie
	loads := p.start(w)
	err = w.drive(ctx, p, loads, o)
	if err == nil {
		err = w.settle(loads)
	}
	counts := w.counts()
	reads := w.reads.Load()
	fmt.Fprintf(o.out, "%s: %v, %d statements, %d reads in a shape that is taken, %d accelerated\n", p.name,
		time.Since(began).Round(time.Second), w.history.count(), reads, counts[""])
	w.reportCounts(o.out)
	if w.slowest > time.Second {
		fmt.Fprintf(o.out, "  accelerated again only after %v: %s\n", w.slowest.Round(time.Millisecond), w.slowestQuery)
	}
	if err == nil && o.binary != "" {
		err = w.leave()
	}
	share := p.share
	if o.duration < 20*time.Second {
		share /= 4 // on a busy machine most of a short run may pass in waits for the stream
	}
	if err == nil && o.binary != "" && float64(counts[""]) < share*float64(reads) {
		err = fmt.Errorf("only %d of %d reads were accelerated, which proves too little", counts[""], reads)
	}
	if err != nil {
		fmt.Fprintf(o.out, "\n%s: VIOLATION: %v\n\n", p.name, err)
		w.history.write(o.out, 25, 160)
		fmt.Fprintf(o.out, "\nagain: go run ./integration/referee/programs -only %s -seed %d -d %v\n", p.name, o.seed, o.duration)
	}
	if err != nil || o.keep {
		w.save(p, o, err)
	}
	if err != nil {
		return fmt.Errorf("%s, seed %d: %w", p.name, o.seed, err)
	}
	return nil
}

// drive runs the workloads, and the nemesis where the program has one, for the
// duration or up to the first violation.
func (w *world) drive(ctx context.Context, p *program, loads []workload, o runOptions) error {
	ctx, cancel := context.WithTimeout(ctx, o.duration)
	defer cancel()
	w.mu.Lock()
	w.stop = cancel
	w.mu.Unlock()
	var wg sync.WaitGroup
	for _, load := range loads {
		wg.Go(func() { load.run(ctx) })
	}
	var err error
	if p.faults && o.binary != "" {
		wg.Go(func() {
			if err = newNemesis(w, loads, o.out).run(ctx); err != nil {
				cancel()
			}
		})
	}
	if p.restores && o.binary != "" {
		wg.Go(func() {
			if err = newRestorer(w, loads, o.out).run(ctx); err != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	if v := w.violated(); v != nil {
		return v
	}
	return err
}

// settle compares all answers when nothing writes any more, and waits until they
// are accelerated.
func (w *world) settle(loads []workload) error {
	plain, fast := w.session("settle", direct), w.session("settle", through)
	defer plain.close()
	defer fast.close()
	for _, load := range loads {
		for _, sql := range load.queries() {
			if err := w.same(plain, fast, sql); err != nil {
				return err
			}
			if err := w.accelerates(fast, sql); err != nil {
				return err
			}
			if err := w.same(plain, fast, sql); err != nil {
				return err
			}
		}
	}
	return nil
}

// same compares what both sessions are answered, errors included. They send it alike:
// a prepared statement may rightly mean what its names meant when it was prepared.
func (w *world) same(plain, fast *session, sql string, args ...any) error {
	plain.protocol = plain.rand.IntN(protocols)
	fast.protocol = plain.protocol
	want, wantErr := plain.do(sql, args...)
	got, gotErr := fast.do(sql, args...)
	if (sqlState(wantErr) == planChanged) != (sqlState(gotErr) == planChanged) {
		// A prepared statement is analysed anew once its session has heard that a table of it has changed: autovacuum says
		// so, too, and it may be between both.
		plain.protocol, fast.protocol = 0, 0
		want, wantErr = plain.do(sql, args...)
		got, gotErr = fast.do(sql, args...)
	}
	if w.binary != "" && (isLost(wantErr) || isLost(gotErr)) {
		return fmt.Errorf("a session was lost: %v, %v", wantErr, gotErr)
	}
	if want.String() != got.String() || sqlState(wantErr) != sqlState(gotErr) {
		return fmt.Errorf("%s %v: pgaccel answers\n%s %v\nbut directly it is\n%s %v", sql, args, clip(got.String(), 2000), gotErr, clip(want.String(), 2000), wantErr)
	}
	return nil
}

// planChanged is the SQLSTATE of a prepared statement whose result would be of other types than when it was prepared.
const planChanged = "0A000"

// settleLimit bounds the time until a table is accelerated again: several copies
// may be needed, on a busy machine.
const settleLimit = 90 * time.Second

// accelerates waits until a query is accelerated. Nothing else may run.
func (w *world) accelerates(s *session, sql string) error {
	if w.binary == "" {
		return nil
	}
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		before := w.scrape()[""]
		if _, err := s.do(sql); err != nil {
			return err
		}
		if w.scrape()[""] > before {
			if took := time.Since(began); took > w.slowest {
				w.slowest, w.slowestQuery = took, sql
			}
			return nil
		}
		if time.Since(began) > settleLimit {
			a, _ := s.do("SELECT name, state, detail FROM pgaccel.tables")
			return fmt.Errorf("not accelerated again: %s\n%s\n%s", sql, a, w.logTail())
		}
	}
}

// leave stops pgaccel and looks at what it leaves: nothing that holds back the log
// or vacuum, and nothing wrong in its own log.
func (w *world) leave() error {
	if err := w.stopAccelerator(); err != nil {
		return err
	}
	s := w.session("admin", direct)
	defer s.close()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		a, err := s.do("SELECT 'slot ' || slot_name FROM pg_replication_slots UNION ALL SELECT 'publication ' || pubname FROM pg_publication UNION ALL SELECT 'session ' || application_name FROM pg_stat_activity WHERE application_name LIKE 'pgaccel%'")
		if err != nil {
			return err
		}
		if len(a.rows) == 0 || w.data != "" && len(a.rows) == 2 { // the slot and the publication stay
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("pgaccel has left behind:\n%s", a)
		}
	}
	for _, bad := range []string{"panic:", "fatal error:", "WARNING: DATA RACE", "BUG"} {
		if text := w.log(); strings.Contains(text, bad) {
			at := strings.Index(text, bad)
			return fmt.Errorf("pgaccel's log: %s", text[at:min(len(text), at+4000)])
		}
	}
	return nil
}

// save writes the history and pgaccel's log into a file.
func (w *world) save(p *program, o runOptions, err error) {
	if o.histories == "" {
		o.histories = os.TempDir()
	}
	name := filepath.Join(o.histories, fmt.Sprintf("programs-%s-%d.history", p.name, o.seed))
	file, failed := os.Create(name)
	if failed != nil {
		fmt.Fprintln(o.out, "no history:", failed)
		return
	}
	defer file.Close()
	fmt.Fprintf(file, "%s, seed %d: %v\n\n", p.name, o.seed, err)
	w.history.write(file, historyMax, 2000)
	fmt.Fprintf(file, "\npgaccel's log:\n%s", w.log())
	fmt.Fprintln(o.out, "the history:", name)
}
