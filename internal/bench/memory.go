package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/pgserver"
)

// MemoryOptions are those of `pgaccel-bench memory`. The zero value is the full benchmark, some
// ten minutes.
type MemoryOptions struct {
	Rows        int           // of the table; 0 is 12,000,000
	Memory      int64         // --memory of pgaccel, in bytes; 0 is 2 GiB
	QueryMemory int64         // --query-memory; 0 is 1 GiB
	Hold        time.Duration // how long results are left unread, and SELECT 1 is measured alone; 0 is 10 s
	Only        []string      // names of scenarios; nil for all
	Binary      string        // the pgaccel to measure; "" is the one beside this program
	ServeArgs   []string      // more flags for `pgaccel serve`
	PGBinDir    string        // folder of initdb and postgres; "" looks for one
	Progress    io.Writer     // progress lines; nil is standard error
}

func (o *MemoryOptions) fill() (err error) {
	orDefault(false, &o.Rows, 12_000_000, 0)
	orDefault(false, &o.Memory, 2<<30, 0)
	orDefault(false, &o.QueryMemory, 1<<30, 0)
	orDefault(false, &o.Hold, 10*time.Second, 0)
	if o.Rows < 0 || o.Memory < 0 || o.QueryMemory < 0 || o.Hold < 0 {
		return fmt.Errorf("%d rows, limits of %d and %d bytes, %v: use positive numbers", o.Rows, o.Memory, o.QueryMemory, o.Hold)
	}
	for _, name := range o.Only {
		if !slices.ContainsFunc(memoryScenarios, func(s memoryScenario) bool { return s.name == name }) {
			return fmt.Errorf("there is no scenario %q: use %s", name, strings.Join(MemoryScenarios(), ", "))
		}
	}
	if o.PGBinDir == "" {
		if o.PGBinDir, err = pgserver.FindBinDir(); err != nil {
			return err
		}
	}
	return orPgaccel(&o.Progress, &o.Binary)
}

// bound is the most resident memory that the process may have: both limits and a tenth.
func (o *MemoryOptions) bound() int64 { return (o.Memory + o.QueryMemory) / 10 * 11 }

// memorySchema has u as unique as id, scattered over 32 bits (the multiplier is odd), and as many
// rows of each k as make partnersPerKey times the table's rows of pairs.
const (
	memorySchema = `
CREATE TABLE facts (id int PRIMARY KEY, u bigint NOT NULL, h int NOT NULL, k int NOT NULL, d numeric(12,2) NOT NULL);
INSERT INTO facts SELECT i, i::bigint * 2654435761 %% 4294967296, i %% 10, i %% %d, i %% 5000 / 4.0 FROM generate_series(1, %d) i;
VACUUM ANALYZE;
CHECKPOINT`
	partnersPerKey = 84
)

// memoryStatement is asked through pgaccel, and the server for the same rows in a way that is cheap
// for it.
type memoryStatement struct {
	sql, same string
	ordered   bool // in the same order, too
}

// memoryScenario has statements that hold much, all at once.
type memoryScenario struct {
	name, title string
	statements  []memoryStatement
	unread      bool // they are answered, and read later
	portals     bool // of one session
}

// again is n times the same statement.
func again(n int, s memoryStatement) []memoryStatement {
	return slices.Repeat([]memoryStatement{s}, n)
}

var (
	memoryGroups = []memoryStatement{
		{sql: "SELECT u, count(*), sum(d), max(h) FROM facts GROUP BY u", same: "SELECT u, 1::bigint, d, h FROM facts"},
		{sql: "SELECT id, min(u), avg(h)::float8, count(d) FROM facts GROUP BY id", same: "SELECT id, u, h::float8, 1::bigint FROM facts"},
		{sql: "SELECT h, u, sum(k), min(d) FROM facts GROUP BY h, u", same: "SELECT h, u, k::bigint, d FROM facts"},
	}
	memoryDistinct = memoryStatement{sql: "SELECT DISTINCT u FROM facts", same: "SELECT u FROM facts"}
	memorySort     = memoryStatement{sql: "SELECT id, u, d FROM facts ORDER BY u", ordered: true}
	memoryJoin     = memoryStatement{
		sql: "SELECT a.h, count(*), sum(b.id), max(b.d) FROM facts a JOIN facts b ON a.k = b.k GROUP BY a.h ORDER BY a.h",
		same: "SELECT a.h, sum(n.c), sum(n.s), max(n.m) FROM facts a JOIN (SELECT k, count(*) AS c, sum(id) AS s, max(d) AS m FROM facts GROUP BY k) n USING (k) " +
			"GROUP BY a.h ORDER BY a.h",
		ordered: true,
	}
	memoryResult = memoryStatement{sql: "SELECT id, u, d FROM facts WHERE h < 9", ordered: false}

	// What files do not hold: it fits, or the server answers.
	memoryLookup = memoryStatement{
		sql:     "SELECT a.h, count(*), max(b.u), sum(b.d) FROM facts a JOIN facts b ON a.id = b.id GROUP BY a.h ORDER BY a.h",
		same:    "SELECT h, count(*), max(u), sum(d) FROM facts GROUP BY h ORDER BY h",
		ordered: true,
	}
	memoryRelation = memoryStatement{
		sql:  "SELECT count(*), sum(c), max(s) FROM (SELECT u, count(*) AS c, sum(d) AS s FROM facts GROUP BY u) g WHERE s >= 0",
		same: "SELECT count(*), count(*), max(d) FROM facts",
	}
	memoryWindow = memoryStatement{
		sql:  "SELECT count(*), max(r) FROM (SELECT h, row_number() OVER (ORDER BY u) AS r FROM facts) w WHERE r % 2 = 0",
		same: "SELECT count(*) / 2, count(*) / 2 * 2 FROM facts",
	}
	memoryValues = memoryStatement{
		sql:     "SELECT h, count(DISTINCT u) FROM facts GROUP BY h ORDER BY h",
		same:    "SELECT h, count(*) FROM facts GROUP BY h ORDER BY h",
		ordered: true,
	}

	memoryScenarios = []memoryScenario{
		{name: "groups", title: "as many groups as rows, 3 sessions", statements: memoryGroups},
		{name: "distinct", title: "DISTINCT of a unique column", statements: []memoryStatement{memoryDistinct}},
		{name: "sort", title: "sort of all rows", statements: []memoryStatement{memorySort}},
		{name: "join", title: "many-to-many join into 10 groups", statements: []memoryStatement{memoryJoin}},
		{name: "lookup", title: "join to as many rows by their key", statements: []memoryStatement{memoryLookup}},
		{name: "relation", title: "derived table of as many groups", statements: []memoryStatement{memoryRelation}},
		{name: "window", title: "window over all rows", statements: []memoryStatement{memoryWindow}},
		{name: "values", title: "DISTINCT in 10 groups", statements: []memoryStatement{memoryValues}},
		{name: "portals", title: "8 open portals", statements: again(8, memoryResult), unread: true, portals: true},
		{name: "readers", title: "6 clients that do not read", statements: again(6, memorySort), unread: true},
	}
)

// MemoryScenarios returns the names of what Memory does.
func MemoryScenarios() (names []string) {
	for _, s := range memoryScenarios {
		names = append(names, s.name)
	}
	return names
}

// memory is a server and a pgaccel with little memory before it.
type memory struct {
	o       MemoryOptions
	server  *pgserver.Server
	child   *child
	version string
	want    map[string]tally // by text
	columns int64            // bytes
	rest    int64            // resident bytes with the table copied
	alone   smallTimes       // without any load
	most    int64            // resident bytes, of all scenarios
	bad     []string
}

// smallTimes are the 99th percentiles of SELECT 1.
type smallTimes struct{ through, direct time.Duration }

// Memory shows that the memory of pgaccel is bounded: statements that hold much run with small
// limits, their answers are compared with the server's, and the most resident memory, the bytes
// written to files, and what SELECT 1 takes meanwhile are printed. It is an error where an answer
// is wrong, or there was more memory than both limits and a tenth.
func Memory(ctx context.Context, o MemoryOptions, out io.Writer) (err error) {
	defer interrupted(ctx, &err)
	if err := o.fill(); err != nil {
		return err
	}
	m := &memory{o: o, want: map[string]tally{}}
	defer m.close()
	p := newProgress(o.Progress)
	if err := m.start(ctx, p); err != nil {
		return err
	}
	m.printHeader(out)
	for _, s := range memoryScenarios {
		if len(o.Only) > 0 && !slices.Contains(o.Only, s.name) {
			continue
		}
		w := p.start(s.title, 0)
		if err := m.scenario(ctx, s, out); err != nil {
			return fmt.Errorf("%s: %w\n%s", s.name, err, m.child.tail())
		}
		w.done()
	}
	m.printEnd(out)
	if len(m.bad) > 0 {
		return fmt.Errorf("the benchmark failed:\n  %s", strings.Join(m.bad, "\n  "))
	}
	return nil
}

func (m *memory) start(ctx context.Context, p *progress) (err error) {
	if m.server, err = startPostgres(ctx, m.o.PGBinDir); err != nil {
		return err
	}
	url := m.server.URL("postgres", "postgres")
	conn, err := pgconn.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	m.version = conn.ParameterStatus("server_version")
	w := p.start("loading", 0)
	if err := runScript(ctx, conn, fmt.Sprintf(memorySchema, max(m.o.Rows/partnersPerKey, 1), m.o.Rows)); err != nil {
		return err
	}
	w.done()
	limits := []string{"--memory", strconv.FormatInt(m.o.Memory, 10), "--query-memory", strconv.FormatInt(m.o.QueryMemory, 10)}
	w = p.start("first copy", 0)
	if m.child, err = startChild(ctx, m.o.Binary, url, m.server.Dir, "127.0.0.1:0", "127.0.0.1:0", slices.Concat(limits, m.o.ServeArgs), nil); err != nil {
		return err
	}
	w.done()
	if err := m.child.checkTables(ctx, []string{"facts"}); err != nil {
		return err
	}
	is, err := m.child.metrics(ctx)
	if err != nil {
		return err
	}
	m.columns = int64(is.sum("pgaccel_table_bytes"))
	w = p.start("SELECT 1 alone", 0)
	defer w.done()
	quiet, end := context.WithTimeout(ctx, m.o.Hold)
	defer end()
	if m.alone, err = m.small(ctx, quiet.Done()); err != nil {
		return err
	}
	_, m.rest = m.child.residentBytes()
	return nil
}

func (m *memory) close() {
	stopBoth(m.child, m.server)
}

func (m *memory) url(direct bool) string {
	addr := m.child.Addr
	if direct {
		addr = "127.0.0.1:" + strconv.Itoa(m.server.Port)
	}
	return "postgres://postgres@" + addr + "/postgres?sslmode=disable"
}

// small measures SELECT 1 through pgaccel and directly, side by side, until stop is closed.
func (m *memory) small(ctx context.Context, stop <-chan struct{}) (smallTimes, error) {
	type measured struct {
		times []time.Duration
		err   error
	}
	measure := func(addr string, to chan<- measured) {
		var all measured
		for seed := uint64(0); all.err == nil; seed++ {
			var times []time.Duration
			times, all.err = paced(ctx, m.o.PGBinDir, m.server.Dir, addr, "SELECT 1;\n", time.Second, seed)
			all.times = append(all.times, times...)
			select {
			case <-stop:
				to <- all
				return
			default:
			}
		}
		to <- all
	}
	through, direct := make(chan measured, 1), make(chan measured, 1)
	go measure(m.child.Addr, through)
	go measure("127.0.0.1:"+strconv.Itoa(m.server.Port), direct)
	t, d := <-through, <-direct
	slices.Sort(t.times)
	slices.Sort(d.times)
	return smallTimes{percentile(t.times, 0.99), percentile(d.times, 0.99)}, errors.Join(t.err, d.err)
}

// memoryOutcome is what one scenario has shown.
type memoryOutcome struct {
	took        time.Duration
	rows        int64
	most        int64 // resident bytes
	spilled     int64 // bytes
	accelerated int64
	forwarded   map[string]int64 // by reason
	small       smallTimes
	wrong       []string
}

// scenarioLimit is many times what a scenario takes.
const scenarioLimit = 5 * time.Minute

// atWork says what the server and pgaccel are at; pgaccel ends.
func (m *memory) atWork(ctx context.Context) string {
	var lines []string
	ask := func(url, sql string) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		conn, err := pgconn.Connect(ctx, url)
		if err != nil {
			lines = append(lines, err.Error())
			return
		}
		defer conn.Close(ctx)
		results, err := conn.Exec(ctx, sql).ReadAll()
		if err != nil {
			lines = append(lines, err.Error())
		}
		for _, r := range results {
			for _, row := range r.Rows {
				lines = append(lines, string(bytes.Join(row, []byte(" | "))))
			}
		}
	}
	ask(m.url(true), "SELECT state, wait_event, left(query, 80) FROM pg_stat_activity WHERE backend_type = 'client backend'")
	ask(m.url(false), "SELECT client_port, state, state_change, route, accelerated, forwarded, held_bytes FROM pgaccel.sessions")
	lines = append(lines, queued(m.child.Addr)...)
	return strings.Join(append(lines, m.child.goroutines()), "\n")
}

// queued are the connections of an address, from both ends, with the bytes that the kernel has of them: who has not read, and
// what has not been taken.
func queued(addr string) (lines []string) {
	_, text, _ := strings.Cut(addr, ":")
	port, _ := strconv.Atoi(text)
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return []string{err.Error()}
	}
	for line := range strings.Lines(string(table)) {
		var at, local, remote, state, tx, rx int
		if n, _ := fmt.Sscanf(line, "%d: %8x:%4x %8x:%4x %2x %8x:%8x", &at, new(int), &local, new(int), &remote, &state, &tx, &rx); n == 8 && (local == port || remote == port) && remote != 0 {
			lines = append(lines, fmt.Sprintf("port %d to %d, state %d: %d bytes to be sent, %d to be read", local, remote, state, tx, rx))
		}
	}
	return lines
}

// scenario runs one and prints its line. Where anything of it does not end, whoever waits, the error says what each is at.
func (m *memory) scenario(ctx context.Context, s memoryScenario, out io.Writer) error {
	limited, end := context.WithCancelCause(ctx)
	defer end(nil)
	stuck := time.AfterFunc(m.o.Hold+scenarioLimit, func() {
		end(fmt.Errorf("it has not ended after %v:\n%s", scenarioLimit, m.atWork(ctx)))
	})
	defer stuck.Stop()
	r, err := m.measure(limited, s)
	if err != nil {
		return errors.Join(context.Cause(limited), err)
	}
	m.print(out, s, r)
	m.judge(s, r)
	return nil
}

// measure has the scenario's statements run beside SELECT 1.
func (m *memory) measure(ctx context.Context, s memoryScenario) (r memoryOutcome, err error) {
	if err := m.ask(ctx, s); err != nil {
		return r, fmt.Errorf("the server's answer: %w", err)
	}
	before, err := m.child.metrics(ctx)
	if err != nil {
		return r, err
	}
	if err := m.child.resetPeak(); err != nil {
		return r, err
	}
	stop := make(chan struct{})
	small := make(chan error, 1)
	go func() {
		var err error
		if r.small, err = m.small(ctx, stop); err != nil {
			err = fmt.Errorf("SELECT 1: %w", err)
		}
		small <- err
	}()
	begun := time.Now()
	got, err := m.run(ctx, s)
	r.took = time.Since(begun)
	close(stop)
	if err := errors.Join(err, <-small); err != nil {
		return r, err
	}
	if s.unread {
		r.took -= m.o.Hold
	}
	for i, g := range got {
		r.rows += g.rows
		if d := m.want[s.statements[i].sql].difference(g, s.statements[i].ordered); d != "" {
			r.wrong = append(r.wrong, d+" in "+s.statements[i].sql)
		}
	}
	r.most, _ = m.child.residentBytes()
	after, err := m.empty(ctx)
	if err != nil {
		return r, err
	}
	r.spilled = int64(after.sum("pgaccel_temp_bytes_total") - before.sum("pgaccel_temp_bytes_total"))
	was, wasForwarded := before.routes()
	is, forwarded := after.routes()
	r.accelerated, r.forwarded = is-was, map[string]int64{}
	for reason, n := range forwarded {
		if n -= wasForwarded[reason]; n > 0 {
			r.forwarded[reason] = n
		}
	}
	return r, nil
}

// empty waits until nothing is held any more for the clients that have gone.
func (m *memory) empty(ctx context.Context) (metrics, error) {
	const patience = 10 * time.Second
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		is, err := m.child.metrics(ctx)
		if err != nil {
			return nil, err
		}
		held, files := is.sum("pgaccel_query_memory_bytes"), is.sum("pgaccel_temp_files")
		if held == 0 && files == 0 {
			return is, nil
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("%.0f bytes of query memory and %.0f files are held for nobody", held, files)
		}
	}
}

// ask asks the server for the rows of the scenario's statements, each once.
func (m *memory) ask(ctx context.Context, s memoryScenario) error {
	for _, q := range s.statements {
		if _, known := m.want[q.sql]; known {
			continue
		}
		c, err := dialRows(ctx, m.url(true))
		if err != nil {
			return err
		}
		sql := q.same
		if sql == "" {
			sql = q.sql
		}
		m.want[q.sql], err = c.simple(sql)
		c.close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) judge(s memoryScenario, r memoryOutcome) {
	m.most = max(m.most, r.most)
	for _, w := range r.wrong {
		m.bad = append(m.bad, s.name+": "+w)
	}
	if r.most > m.o.bound() {
		m.bad = append(m.bad, fmt.Sprintf("%s: %s were resident, more than %s", s.name, size(r.most), size(m.o.bound())))
	}
}

func (m *memory) printHeader(out io.Writer) {
	fmt.Fprintf(out, "PostgreSQL %s, %d rows, %d cores; --memory %s, --query-memory %s; columns %s, %s resident with nothing to do.\n",
		m.version, m.o.Rows, runtime.NumCPU(), size(m.o.Memory), size(m.o.QueryMemory), size(m.columns), size(m.rest))
	fmt.Fprintf(out, "SELECT 1 alone: p99 %s ms through pgaccel, %s ms directly.\n\n", ms(m.alone.through), ms(m.alone.direct))
	fmt.Fprintf(out, "%-36s %9s %8s %10s %9s %9s %8s %8s %8s  %s\n", "scenario", "rows", "s", "most RSS", "of bound", "spilled", "answers", "SELECT 1", "direct", "executions")
}

func (m *memory) print(out io.Writer, s memoryScenario, r memoryOutcome) {
	answers := "right"
	if len(r.wrong) > 0 {
		answers = "WRONG"
	}
	who := fmt.Sprintf("%d accelerated", r.accelerated)
	for _, reason := range slices.Sorted(maps.Keys(r.forwarded)) {
		who += fmt.Sprintf(", %d forwarded: %s", r.forwarded[reason], reason)
	}
	fmt.Fprintf(out, "%-36s %9d %8.1f %10s %8.0f%% %9s %8s %7.1fx %7.1fx  %s\n", s.title, r.rows, r.took.Seconds(), size(r.most), 100*float64(r.most)/float64(m.o.bound()),
		size(r.spilled), answers, float64(r.small.through)/float64(m.alone.through), float64(r.small.direct)/float64(m.alone.direct), who)
}

func (m *memory) printEnd(out io.Writer) {
	fmt.Fprintf(out, "\nrows: that clients have read; SELECT 1, direct: its p99 beside the statements, through pgaccel and not, over that alone\n")
	full := m.most - m.columns + m.o.Memory
	fmt.Fprintf(out, "bound: both limits and a tenth, %s; most RSS of all %s, and with as many columns as may be %s, %.0f%%\n",
		size(m.o.bound()), size(m.most), size(full), 100*float64(full)/float64(m.o.bound()))
}

// resetPeak has residentBytes begin anew with its peak.
func (c *child) resetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", c.cmd.Process.Pid), []byte("5"), 0)
}
