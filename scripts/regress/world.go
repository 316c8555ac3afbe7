package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/pgserver"
	"pgaccel/internal/server"
)

const database = "regression"

// copyTimeout bounds the wait for tables, the first one: some are never copied.
const copyTimeout = 15 * time.Second

// side is one of the two runs.
type side struct {
	pg    *pgserver.Server
	port  string // that psql connects to
	build string // folder that the server writes to
	wait  string // command of waitLine
	more  string // options of sessions
}

// world is both runs: a server alone, and one with pgaccel before it.
type world struct {
	options
	direct, proxied *side
	accel           *server.Server
	admin           *pgconn.PgConn // of the second server
	looker          *pgconn.PgConn // of pgaccel
	mu              sync.Mutex     // guards both
	seen            map[string]statement
	counts          map[route]int   // pgaccel_queries_total
	sum             counted         // of all files so far
	given           map[string]bool // tables that are waited for no more
	copies          map[string]copiedTable
	listener        net.Listener
	cancel          context.CancelFunc
}

// statement is a row of pgaccel.queries.
type statement struct {
	query, reason, detail string
	forwarded             int
}

// route is a label set of pgaccel_queries_total.
type route struct{ name, reason string }

// copiedTable is a table's OID, and when pgaccel says that it was copied.
type copiedTable struct{ oid, when string }

// counted is how many SELECTs of pgaccel's sessions were executed: those over tables that are not
// copied, or over none, are left out.
type counted struct {
	asked                int
	accelerated, partial int // answered from columns, wholly and in part
	internal             int // failed inside
}

// setup has each table take its rows as its identity where it has no key: only then is it copied.
const setup = `CREATE SCHEMA regress_identity;
CREATE FUNCTION regress_identity.set() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER SET client_min_messages = error AS $f$
DECLARE c record;
BEGIN
  FOR c IN SELECT r.oid::regclass AS t FROM pg_event_trigger_ddl_commands() d JOIN pg_class r ON r.oid = d.objid
    WHERE d.classid = 'pg_class'::regclass AND r.relkind = 'r' AND r.relpersistence = 'p' AND r.relreplident = 'd'
      AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = r.oid AND i.indisprimary) LOOP
    BEGIN
      EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', c.t);
    EXCEPTION WHEN OTHERS THEN NULL;
    END;
  END LOOP;
END $f$;
CREATE EVENT TRIGGER regress_identity ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO') EXECUTE FUNCTION regress_identity.set()`

func start(ctx context.Context, o options) (*world, error) {
	w := &world{options: o, seen: map[string]statement{}, given: map[string]bool{}, copies: map[string]copiedTable{}}
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := w.start(ctx); err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

func (w *world) start(ctx context.Context) (err error) {
	for _, dir := range []string{"direct", "proxied"} {
		if err := os.MkdirAll(filepath.Join(w.out, dir), 0o755); err != nil {
			return err
		}
	}
	if w.direct, err = startSide(ctx); err != nil {
		return err
	}
	if w.proxied, err = startSide(ctx); err != nil {
		return err
	}
	w.accel, err = server.Start(ctx, server.Config{Upstream: w.proxied.pg.URL("postgres", database), Listen: []string{"127.0.0.1:0"}, HTTP: "127.0.0.1:0",
		Accelerate: []string{"*.*"}, SegmentRows: 1024, Memory: 2 << 30, Device: "cpu", Logger: w.log, WaitLimit: 2 * time.Second})
	if err != nil {
		return err
	}
	if w.admin, err = pgconn.Connect(ctx, w.proxied.pg.URL("postgres", database)); err != nil {
		return err
	}
	_, w.proxied.port, _ = net.SplitHostPort(w.accel.Addr().String())
	if w.looker, err = pgconn.Connect(ctx, "postgres://postgres@127.0.0.1:"+w.proxied.port+"/"+database+"?sslmode=disable"); err != nil {
		return err
	}
	w.proxied.more = " -c pgaccel.mode=force"
	return w.serveWaits(ctx)
}

func startSide(ctx context.Context) (*side, error) {
	pg, err := pgserver.Start(ctx, pgserver.Options{Settings: map[string]string{"max_prepared_transactions": "2", "max_parallel_workers_per_gather": "2"}})
	if err != nil {
		return nil, err
	}
	s := &side{pg: pg, port: strconv.Itoa(pg.Port), build: filepath.Join(pg.Dir, "build"), wait: "true"}
	for _, dir := range []string{"results", "testtablespace"} {
		if err := os.MkdirAll(filepath.Join(s.build, dir), 0o777); err != nil {
			return s, err
		}
		os.Chmod(filepath.Join(s.build, dir), 0o777) // the server writes there, as another user
	}
	conn, err := pgconn.Connect(ctx, pg.URL("postgres", "postgres"))
	if err != nil {
		return s, err
	}
	defer conn.Close(ctx)
	statements := []string{"CREATE DATABASE " + database + " TEMPLATE template0"}
	// What pg_regress sets when it creates the database.
	for _, set := range []string{"lc_messages TO 'C'", "lc_monetary TO 'C'", "lc_numeric TO 'C'", "lc_time TO 'C'", "bytea_output TO 'hex'", "timezone_abbreviations TO 'Default'"} {
		statements = append(statements, "ALTER DATABASE "+database+" SET "+set)
	}
	for _, sql := range statements {
		if err := conn.Exec(ctx, sql).Close(); err != nil {
			return s, err
		}
	}
	in, err := pgconn.Connect(ctx, pg.URL("postgres", database))
	if err != nil {
		return s, err
	}
	defer in.Close(ctx)
	return s, in.Exec(ctx, setup).Close()
}

func (w *world) stop() {
	if w.listener != nil {
		w.listener.Close()
	}
	if w.accel != nil {
		w.accel.Close()
	}
	w.cancel()
	for _, s := range []*side{w.direct, w.proxied} {
		if s != nil {
			s.pg.Stop()
		}
	}
}

// serveWaits answers what waitLine asks.
func (w *world) serveWaits(ctx context.Context) (err error) {
	if w.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	w.proxied.wait = self + " wait " + w.listener.Addr().String()
	go http.Serve(w.listener, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { w.copied(ctx) }))
	return nil
}

// copied waits until pgaccel has copied, or refused, all tables with an identity.
func (w *world) copied(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var missing []string
	for deadline := time.Now().Add(copyTimeout); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		tables, err := rows(ctx, w.admin, `SELECT n.nspname || '.' || c.relname, c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence = 'p' AND c.oid >= 16384 AND (c.relkind = 'p' OR c.relreplident = 'f' OR EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary))`)
		if err != nil {
			continue
		}
		known, err := rows(ctx, w.looker, "SELECT name, state, coalesce(copied::text, '') FROM pgaccel.tables WHERE state IN ('ready', 'refused')")
		if err != nil {
			continue
		}
		oids := map[string]string{}
		for _, r := range tables {
			oids[r[0]] = r[1]
		}
		ready := map[string]bool{}
		for _, r := range known {
			last, now := w.copies[r[0]], copiedTable{oids[r[0]], r[2]}
			// What is ready may be a table of the name that is no more.
			if ready[r[0]] = r[1] == "refused" || last.oid == "" || last.oid == now.oid || last.when != now.when; ready[r[0]] {
				w.copies[r[0]] = now
			}
		}
		missing = missing[:0]
		for _, r := range tables {
			if !ready[r[0]] && !w.given[r[0]] {
				missing = append(missing, r[0])
			}
		}
		if len(missing) == 0 {
			return
		}
	}
	w.log.Info("not copied", "tables", missing)
	for _, name := range missing {
		w.given[name] = true
	}
}

var total = regexp.MustCompile(`^pgaccel_queries_total\{reason="(.*)",route="(.*)"\} (.*)`)

// listed is how \d lists pgaccel's publication, where it is the only one.
var listed = regexp.MustCompile("(?m)^Publications:\n    \"pgaccel_[0-9a-f]+\"\n")

func rows(ctx context.Context, c *pgconn.PgConn, sql string) ([][]string, error) {
	results, err := c.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	var all [][]string
	for _, r := range results {
		for _, row := range r.Rows {
			var values []string
			for _, v := range row {
				values = append(values, string(v))
			}
			all = append(all, values)
		}
	}
	return all, nil
}

// psql runs a script as pg_regress does.
func (s *side) psql(ctx context.Context, w *world, name, script string) (string, error) {
	cmd := exec.CommandContext(ctx, "psql", "-X", "-a", "-q", "-h", "127.0.0.1", "-p", s.port, "-U", "postgres", "-d", database,
		"-v", "HIDE_TABLEAM=on", "-v", "HIDE_TOAST_COMPRESSION=on")
	if w.logic == "" {
		cmd.Dir = w.suite
	}
	cmd.Env = append(os.Environ(), "PGTZ=PST8PDT", "PGDATESTYLE=Postgres, MDY", "PGOPTIONS=-c intervalstyle=postgres_verbose"+s.more,
		"PGAPPNAME=pg_regress/"+name, "LC_MESSAGES=C", "PG_ABS_SRCDIR="+w.suite, "PG_ABS_BUILDDIR="+s.build, "PG_LIBDIR="+w.libdir,
		"PG_DLSUFFIX=.so", "REGRESS_WAIT="+s.wait)
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		err = nil // psql's own status: of the last statement
	}
	if ctx.Err() != nil {
		err = nil // it was too slow: what there is is compared
		out = append(out, "regress: ended after its time\n"...)
	}
	return listed.ReplaceAllString(strings.ReplaceAll(string(out), s.build, "BUILD"), ""), err
}

// count returns what was executed since it was last called. It also notes what pgaccel.queries
// has: that forgets statements when there are many.
func (w *world) count(ctx context.Context) (c counted, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all, err := rows(ctx, w.looker, "SELECT query, reason, detail, forwarded FROM pgaccel.queries")
	if err != nil {
		return c, err
	}
	for _, r := range all {
		s := statement{query: r[0], reason: r[1], detail: r[2]}
		s.forwarded, _ = strconv.Atoi(r[3])
		w.seen[s.query] = s
	}
	r, err := http.Get("http://" + w.accel.HTTPAddr().String() + "/metrics")
	if err != nil {
		return c, err
	}
	defer r.Body.Close()
	now := map[route]int{}
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		if m := total.FindStringSubmatch(lines.Text()); m != nil {
			n, _ := strconv.ParseFloat(m[3], 64)
			now[route{m[2], m[1]}] = int(n)
		}
	}
	for r, n := range now {
		n -= w.counts[r]
		if r.reason != "not a plain SELECT" && r.reason != "no accelerated table" {
			c.asked += n
		}
		switch {
		case r.name == "accelerated":
			c.accelerated += n
		case r.name == "partial":
			c.partial += n
		case r.reason == "internal error":
			c.internal += n
		}
	}
	w.counts = now
	return c, nil
}

// printReasons says what was forwarded, the most frequent reasons first.
func (w *world) printReasons(most int) {
	type line struct {
		n       int
		example string
	}
	reasons := map[string]line{}
	for _, s := range w.seen {
		if s.forwarded > 0 {
			key := s.reason + ": " + s.detail
			l := reasons[key]
			if l.n += s.forwarded; l.example == "" || len(s.query) < len(l.example) {
				l.example = s.query
			}
			reasons[key] = l
		}
	}
	keys := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(reasons[b].n-reasons[a].n, strings.Compare(a, b))
	})
	for _, k := range keys[:min(most, len(keys))] {
		fmt.Printf("%6d  %s\n        %.150s\n", reasons[k].n, k, strings.Join(strings.Fields(reasons[k].example), " "))
	}
}
