package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// nemesis breaks things, one after the other, while the workloads go on.
type nemesis struct {
	w     *world
	loads []workload
	rand  *rand.Rand
	out   io.Writer
	admin *session
	// The longest time until columns answered again, by fault.
	slowest map[string]time.Duration
}

func newNemesis(w *world, loads []workload, out io.Writer) *nemesis {
	return &nemesis{w: w, loads: loads, out: out, rand: w.random("nemesis"), admin: w.session("nemesis", direct), slowest: map[string]time.Duration{}}
}

// fault is one way to break things; it returns when they are whole again, or heal by
// themselves.
type fault struct {
	name string
	do   func(n *nemesis, ctx context.Context) error
}

var faults = []fault{
	{"pgaccel killed", (*nemesis).killAccelerator},
	{"walsender terminated", func(n *nemesis, _ context.Context) error {
		_, err := n.admin.do("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_replication")
		return ignoreLost(err)
	}},
	{"pgaccel's sessions terminated", func(n *nemesis, _ context.Context) error {
		_, err := n.admin.do("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE 'pgaccel%' AND backend_type = 'client backend'")
		return ignoreLost(err)
	}},
	{"walsender killed", func(n *nemesis, ctx context.Context) error {
		return n.crash(ctx, "SELECT pid FROM pg_stat_replication LIMIT 1")
	}},
	{"backend killed", func(n *nemesis, ctx context.Context) error {
		return n.crash(ctx, "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'mirror-w%' ORDER BY random() LIMIT 1")
	}},
	{"server stopped at once", func(n *nemesis, ctx context.Context) error { return n.restart(ctx, true) }},
	{"server stopped", func(n *nemesis, ctx context.Context) error { return n.restart(ctx, false) }},
	{"walsender stopped", (*nemesis).suspendSender},
	{"stream cut", func(n *nemesis, _ context.Context) error {
		n.w.link.cut(func(p *pipe) bool { return p.stream }, false)
		return nil
	}},
	{"stream cut within a message", func(n *nemesis, _ context.Context) error {
		n.w.link.cut(func(p *pipe) bool { return p.stream }, true)
		return nil
	}},
	{"sessions cut within messages", func(n *nemesis, _ context.Context) error {
		n.w.link.cut(func(p *pipe) bool { return !p.stream && n.rand.IntN(3) == 0 }, true)
		return nil
	}},
	{"all cut", func(n *nemesis, _ context.Context) error {
		n.w.link.cut(func(*pipe) bool { return true }, false)
		return nil
	}},
	{"stream delayed", func(n *nemesis, ctx context.Context) error {
		return n.faulty(ctx, true, linkFault{delay: time.Duration(1+n.rand.IntN(60)) * time.Millisecond})
	}},
	{"stream throttled", func(n *nemesis, ctx context.Context) error {
		return n.faulty(ctx, true, linkFault{rate: 20000 + n.rand.IntN(200000)})
	}},
	{"stream held", func(n *nemesis, ctx context.Context) error { return n.faulty(ctx, true, linkFault{hold: true}) }},
	{"sessions delayed", func(n *nemesis, ctx context.Context) error {
		return n.faulty(ctx, false, linkFault{delay: time.Duration(1+n.rand.IntN(20)) * time.Millisecond})
	}},
	{"all held, then cut", (*nemesis).holdAll},
	{"slot dropped", func(n *nemesis, _ context.Context) error {
		_, err := n.admin.do("SELECT count(pg_terminate_backend(active_pid)), count(*) FROM pg_replication_slots")
		n.admin.do("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active AND NOT temporary")
		return ignoreLost(err)
	}},
	{"publication dropped", func(n *nemesis, _ context.Context) error {
		_, err := n.admin.do("DO $$DECLARE p name; BEGIN FOR p IN SELECT pubname FROM pg_publication WHERE pubname LIKE 'pgaccel%' LOOP EXECUTE format('DROP PUBLICATION %I', p); END LOOP; END$$")
		return ignoreLost(err)
	}},
	{"large transaction", func(n *nemesis, _ context.Context) error {
		rows := 1000 << n.rand.IntN(7)
		_, err := n.admin.do(fmt.Sprintf("INSERT INTO tally SELECT i %% 5, CASE i %% 2 WHEN 0 THEN 1 ELSE -1 END FROM generate_series(1, %d) i", rows))
		return ignoreLost(err)
	}},
	{"disk full", (*nemesis).fillDisk},
}

// ignoreLost: that a session was lost is the nemesis' own doing.
func ignoreLost(err error) error {
	if isLost(err) || sqlState(err) != "" {
		return nil
	}
	return err
}

// run breaks something every second or so. Every fault comes once before any comes
// again.
func (n *nemesis) run(ctx context.Context) error {
	defer n.admin.close()
	defer n.w.link.heal()
	defer n.report()
	for {
		for _, i := range n.rand.Perm(len(faults)) {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(time.Duration(n.rand.IntN(2000)) * time.Millisecond):
			}
			f := faults[i]
			n.admin.begin()
			n.w.history.note("nemesis", "%s", f.name)
			if err := f.do(n, ctx); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
			n.w.history.note("nemesis", "after: %s", f.name)
			if n.rand.IntN(2) == 0 {
				n.served(ctx, f.name)
			}
		}
	}
}

// served waits until columns answer again: half of the faults strike then, the
// others while pgaccel recovers.
func (n *nemesis) served(ctx context.Context, after string) {
	began, before := time.Now(), n.w.counts()[""]
	for ctx.Err() == nil && time.Since(began) < servedLimit {
		time.Sleep(20 * time.Millisecond)
		if n.w.counts()[""] > before+20 {
			n.pause(ctx, 3*time.Second)
			break
		}
	}
	if took := time.Since(began); took > n.slowest[after] {
		n.slowest[after] = took
	}
}

func (n *nemesis) report() {
	for _, name := range slices.Sorted(maps.Keys(n.slowest)) {
		fmt.Fprintf(n.out, "  %6.1f s until served again after: %s\n", n.slowest[name].Seconds(), name)
	}
}

// servedLimit is when the nemesis does not wait any longer.
const servedLimit = 20 * time.Second

func (n *nemesis) pause(ctx context.Context, most time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(n.rand.Int64N(int64(most)))):
	}
}

// killAccelerator kills pgaccel and starts it again: nothing of the old one may hold
// back the log.
func (n *nemesis) killAccelerator(ctx context.Context) error {
	n.w.killAccelerator()
	n.pause(ctx, 500*time.Millisecond)
	if err := n.w.startAccelerator(); err != nil {
		return err
	}
	if n.rand.IntN(4) == 0 { // killed again while it starts
		n.pause(ctx, time.Second)
		n.w.killAccelerator()
		if err := n.w.startAccelerator(); err != nil {
			return err
		}
	}
	for range 600 {
		if r, err := http.Get(n.w.web("/healthz")); err == nil {
			r.Body.Close()
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		n.admin.begin()
		a, err := n.admin.do("SELECT count(*), string_agg(slot_name, ' ') FROM pg_replication_slots WHERE NOT active")
		if err == nil && a.int(0, 0) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("slots that retain the log: %s %w", a, err)
		}
	}
}

// crash kills a process of the server, so that all end and recover.
func (n *nemesis) crash(ctx context.Context, which string) error {
	a, err := n.admin.do(which)
	if err != nil || len(a.rows) == 0 {
		return ignoreLost(err)
	}
	pid := int(a.int(0, 0))
	n.w.epoch.Add(1)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		return err
	}
	// The server notices in its own time: our session ends when it has.
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, err := n.admin.do("SELECT 1"); isLost(err) {
			break
		}
	}
	return n.up(ctx)
}

// up waits until the server answers, tells the workloads, and ends the crash.
func (n *nemesis) up(ctx context.Context) error {
	s := n.w.session("recovery", direct)
	defer s.close()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := s.do("SELECT 1"); err == nil {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the server does not come back:\n%s", n.serverLog())
		}
	}
	for _, load := range n.loads {
		load.recovered(s)
	}
	n.w.epoch.Add(1)
	return nil
}

func (n *nemesis) serverLog() string {
	text, _ := os.ReadFile(filepath.Join(n.w.server().Dir, "postgres.log"))
	return string(text[max(0, len(text)-3000):])
}

func (n *nemesis) restart(ctx context.Context, atOnce bool) error {
	n.w.epoch.Add(1)
	if atOnce {
		n.w.server().Stop() // keeps its folder: it is ours
	} else {
		n.w.server().Shutdown()
	}
	n.pause(ctx, 300*time.Millisecond)
	if err := n.w.startServer(context.Background()); err != nil {
		return err
	}
	return n.up(ctx)
}

func (n *nemesis) suspendSender(ctx context.Context) error {
	a, err := n.admin.do("SELECT pid FROM pg_stat_replication")
	if err != nil {
		return ignoreLost(err)
	}
	for i := range a.rows {
		syscall.Kill(int(a.int(i, 0)), syscall.SIGSTOP)
	}
	n.pause(ctx, 2*time.Second)
	for i := range a.rows {
		syscall.Kill(int(a.int(i, 0)), syscall.SIGCONT)
	}
	return nil
}

func (n *nemesis) faulty(ctx context.Context, stream bool, w linkFault) error {
	n.w.link.set(stream, w)
	n.pause(ctx, 3*time.Second)
	n.w.link.set(stream, linkFault{})
	return nil
}

// holdAll is a network that is gone: nothing passes, nothing is closed.
func (n *nemesis) holdAll(ctx context.Context) error {
	n.w.link.set(true, linkFault{hold: true})
	n.w.link.set(false, linkFault{hold: true})
	n.pause(ctx, 3*time.Second)
	n.w.link.cut(func(*pipe) bool { return true }, false)
	n.w.link.heal()
	return nil
}

// fillDisk leaves the server no room for a moment. Without room for its log it
// panics.
func (n *nemesis) fillDisk(ctx context.Context) error {
	if n.w.disk == "" {
		return nil // we may not mount file systems here
	}
	ballast := filepath.Join(n.w.disk, "ballast")
	var fs syscall.Statfs_t
	if err := syscall.Statfs(n.w.disk, &fs); err != nil {
		return err
	}
	file, err := os.Create(ballast)
	if err != nil {
		return err
	}
	defer file.Close()
	n.w.epoch.Add(1) // it may crash; if not, nothing is lost by saying so
	syscall.Fallocate(int(file.Fd()), 0, 0, int64(fs.Bfree)*fs.Bsize-int64(n.rand.IntN(1<<20)))
	n.pause(ctx, 2*time.Second)
	if err := os.Remove(ballast); err != nil {
		return err
	}
	s := n.w.session("nemesis", direct)
	defer s.close()
	if _, err := s.do("SELECT 1"); isLost(err) {
		n.w.server().Stop()
		if err := n.w.startServer(context.Background()); err != nil {
			return err
		}
	}
	return n.up(ctx)
}
