package referee

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"pgaccel/internal/pgserver"
	"pgaccel/internal/server"
)

// stack is a server with a pgaccel in front, which accelerates the tables of all
// schemas whose name begins with rf.
type stack struct {
	pg            *pgserver.Server
	accel         *server.Server
	direct, proxy string // URLs
	byRole        string // as proxy, where a role says the mode and not the connection; "" for none
	world         world
	cancel        context.CancelFunc
}

// patience is how long PostgreSQL may take for a question. What takes longer is not compared.
const patience = 20 * time.Second

// timedOut reports whether the question took longer.
func (a *answer) timedOut() bool { return strings.Contains(a.err, " 57014: ") }

// startStack starts both.
func startStack(ctx context.Context, opt Options) (*stack, error) {
	o, err := serverOptions(opt.Collation)
	if err != nil {
		return nil, err
	}
	o.Settings = map[string]string{"autovacuum": "off", "max_parallel_workers_per_gather": "0"}
	pg, err := pgserver.Start(ctx, o)
	if err != nil {
		return nil, explainLocale(opt.Collation, err)
	}
	s := &stack{pg: pg, direct: fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable&options=-c%%20statement_timeout%%3D%d", pg.Port, patience.Milliseconds())}
	if err := s.start(opt); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *stack) start(opt Options) error {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	conn, err := connect(ctx, s.direct)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if err := s.world.read(ctx, conn); err != nil {
		return err
	}
	if s.world.isLoose = opt.Collation == "ci"; s.world.isLoose && s.world.loose == "" {
		return errors.New("the server has no nondeterministic collation: it was built without ICU")
	}
	byRole := opt.Seed%2 == 0
	if byRole {
		if a := conn.ask(ctx, "CREATE ROLE rf_mode SUPERUSER LOGIN; ALTER ROLE rf_mode SET pgaccel.mode = 'force'; ALTER ROLE rf_mode SET pgaccel.ties = 'forward'", nil, protocol{}); a.err != "" {
			return errors.New(a.err)
		}
	}
	// Small segments: a table of some thousand rows has several.
	segment := 1024
	if opt.Rows >= 1<<17 {
		segment = 0
	}
	reuse := int64(0)
	if opt.Repeat > 0 {
		reuse = 64 << 20
	}
	s.accel, err = server.Start(ctx, server.Config{Upstream: s.pg.URL("postgres", "postgres"), Listen: []string{"127.0.0.1:0"}, HTTP: "127.0.0.1:0",
		Accelerate: []string{"rf*.*"}, SegmentRows: segment, Eager: opt.Eager, Memory: 2 << 30, QueryMemory: opt.QueryMemory, ReuseMemory: reuse, Logger: opt.Log,
		Device: opt.Device, DeviceMemory: opt.DeviceMemory, DeviceWorker: opt.DeviceWorker})
	if err != nil {
		return err
	}
	s.proxy = fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable&options=-c%%20pgaccel.mode%%3Dforce%%20-c%%20pgaccel.ties%%3Dforward", s.accel.Addr())
	if byRole {
		s.byRole = fmt.Sprintf("postgres://rf_mode@%s/postgres?sslmode=disable", s.accel.Addr())
	}
	if kind, _, _ := strings.Cut(opt.Device, ":"); kind == "cuda" || kind == "emu" {
		s.proxy += "%20-c%20pgaccel.device%3D" + kind
		if byRole {
			s.byRole += "&options=-c%20pgaccel.device%3D" + kind
		}
		return s.waitDevice()
	}
	return nil
}

// waitDevice waits until there is a device.
func (s *stack) waitDevice() error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		switch up, err := s.counter("pgaccel_device_up"); {
		case err != nil:
			return err
		case up > 0:
			return nil
		case time.Now().After(deadline):
			return errors.New("there is no device: pgaccel's log (-v) says why")
		}
	}
}

func (s *stack) stop() {
	if s.accel != nil {
		s.accel.Close()
	}
	if s.cancel != nil {
		s.cancel()
	}
	s.pg.Stop()
}

// read asks the server what it has, and creates a nondeterministic collation where
// it can.
func (w *world) read(ctx context.Context, conn *session) error {
	a := conn.ask(ctx, "SHOW server_version_num", nil, protocol{})
	if a.err != "" || a.lost != nil {
		return fmt.Errorf("%s %w", a.err, a.lost)
	}
	w.version, _ = strconv.Atoi(string(a.rows[0][0]))
	a = conn.ask(ctx, `SELECT pg_catalog.quote_ident(collname) FROM pg_catalog.pg_collation WHERE collnamespace = 'pg_catalog'::regnamespace
		AND collencoding IN (-1, 6) AND collisdeterministic
		AND collname IN ('C', 'POSIX', 'ucs_basic', 'C.utf8', 'pg_c_utf8', 'unicode', 'en_US.utf8', 'en-x-icu', 'de-x-icu', 'sv-x-icu', 'und-x-icu', 'tr-x-icu') ORDER BY 1`, nil, protocol{})
	for _, r := range a.rows {
		w.collations = append(w.collations, string(r[0]))
	}
	// C twice as often: its order is the one that is known for computed text.
	w.collations = append(w.collations, `"C"`, `"C"`)
	if a := conn.ask(ctx, `CREATE COLLATION IF NOT EXISTS public.loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`, nil, protocol{}); a.err == "" {
		w.loose = "public.loose"
	}
	var labels []string
	for _, s := range enum.entry().Samples {
		labels = append(labels, quote(s))
	}
	a = conn.ask(ctx, "CREATE TYPE "+enumName+" AS ENUM ("+strings.Join(labels, ", ")+")", nil, protocol{})
	if a.err != "" && !strings.Contains(a.err, "already exists") || a.lost != nil {
		return fmt.Errorf("%s %w", a.err, a.lost)
	}
	// Its split_part takes an integer, too, which might be preferred to the built-in one.
	a = conn.ask(ctx, "CREATE EXTENSION citext; ALTER EXTENSION citext DROP FUNCTION split_part(citext, citext, int); DROP FUNCTION split_part(citext, citext, int)", nil, protocol{})
	if a.err != "" && !strings.Contains(a.err, "already exists") || a.lost != nil {
		return fmt.Errorf("%s %w", a.err, a.lost)
	}
	return nil
}

// create makes a schema's tables and rows.
func create(ctx context.Context, conn *session, s *schema) error {
	exec := func(sql string) error {
		if a := conn.ask(ctx, sql, nil, protocol{}); a.err != "" || a.lost != nil {
			return fmt.Errorf("%s %w in %.200s", a.err, a.lost, sql)
		}
		return nil
	}
	// In one transaction: pgaccel sees the tables with their rows.
	stmts := []string{"BEGIN", "CREATE SCHEMA " + s.name}
	for _, t := range s.tables {
		stmts = append(stmts, t.ddl()...)
		stmts = append(stmts, t.inserts()...)
	}
	stmts = append(stmts, "COMMIT")
	for _, t := range s.tables {
		stmts = append(stmts, "ANALYZE "+t.qualified())
	}
	for _, q := range stmts {
		if err := exec(q); err != nil {
			exec("ROLLBACK")
			return err
		}
	}
	return nil
}

// waitCopied waits until pgaccel answers for all tables of the schemas, or has refused
// them.
func waitCopied(ctx context.Context, proxy *session, schemas ...*schema) error {
	var like []string
	want := 0
	for _, s := range schemas {
		like = append(like, "name LIKE "+quote(s.name+".%"))
		want += len(s.tables)
	}
	sql := "SELECT state, name, detail FROM pgaccel.tables WHERE " + strings.Join(like, " OR ")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		a := proxy.ask(ctx, sql, nil, protocol{})
		if a.lost != nil {
			return a.lost
		}
		done := 0
		for _, r := range a.rows {
			if state := string(r[0]); state == "ready" || state == "refused" {
				done++
			}
		}
		if done >= want {
			return nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			writing := proxy.ask(ctx, "SELECT pid, xact_start, state, pg_catalog.left(query, 200) FROM pg_catalog.pg_stat_activity WHERE backend_xid IS NOT NULL", nil, protocol{})
			return fmt.Errorf("tables are not copied in time: %d of %d: %s\nwriting, which copies wait for: %s", done, want, a.text(), writing.text())
		}
	}
}

// counts returns pgaccel's counters of executions: "" for the accelerated, else the
// reason for which they were forwarded.
func (s *stack) counts() (map[string]int, error) {
	r, err := http.Get(fmt.Sprintf("http://%s/metrics", s.accel.HTTPAddr()))
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	out := map[string]int{}
	scan := bufio.NewScanner(io.LimitReader(r.Body, 1<<24))
	for scan.Scan() {
		line, ok := strings.CutPrefix(scan.Text(), `pgaccel_queries_total{reason="`)
		if !ok {
			continue
		}
		reason, rest, _ := strings.Cut(line, `"`)
		v, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if strings.Contains(rest, `route="partial"`) {
			reason = "partial"
		}
		if err == nil {
			out[reason] += int(v)
		}
	}
	return out, scan.Err()
}

// counter returns one of pgaccel's counters that have no labels.
func (s *stack) counter(name string) (int, error) {
	r, err := http.Get(fmt.Sprintf("http://%s/metrics", s.accel.HTTPAddr()))
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	scan := bufio.NewScanner(io.LimitReader(r.Body, 1<<24))
	for scan.Scan() {
		if n, ok := strings.CutPrefix(scan.Text(), name+" "); ok {
			v, err := strconv.ParseFloat(n, 64)
			return int(v), err
		}
	}
	return 0, fmt.Errorf("there is no %s: %w", name, scan.Err())
}

// deviceCounts returns the executions that a device ran, those of them whose columns streamed
// through it, and those that it was offered and did not run, by reason.
func (s *stack) deviceCounts() (ran, streamed int, fallbacks map[string]int, err error) {
	r, err := http.Get(fmt.Sprintf("http://%s/metrics", s.accel.HTTPAddr()))
	if err != nil {
		return 0, 0, nil, err
	}
	defer r.Body.Close()
	fallbacks = map[string]int{}
	scan := bufio.NewScanner(io.LimitReader(r.Body, 1<<24))
	for scan.Scan() {
		name, rest, _ := strings.Cut(scan.Text(), `="`)
		label, value, ok := strings.Cut(rest, `"} `)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue
		}
		switch {
		case name == "pgaccel_device_queries_total{device" && label != "cpu":
			ran += int(v)
		case name == "pgaccel_device_streamed_queries_total{device":
			streamed += int(v)
		case name == "pgaccel_device_fallbacks_total{reason":
			fallbacks[label] += int(v)
		}
	}
	return ran, streamed, fallbacks, scan.Err()
}

// since subtracts earlier counters.
func since(now, before map[string]int) map[string]int {
	out := maps.Clone(now)
	for k, n := range before {
		out[k] -= n
	}
	return out
}
