package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/pgserver"
)

// PassthroughOptions are those of `pgaccel-bench passthrough`. The zero value is the
// full benchmark, some fifteen minutes.
type PassthroughOptions struct {
	Quick     bool          // about a minute
	Rounds    int           // rounds over all targets; 0 is 3, or 1 with Quick
	Duration  time.Duration // of each pgbench run; 0 is 5 s, or 1 s with Quick
	Scale     int           // 100,000 rows each in the tables of point queries; 0 is 10, or 1 with Quick
	Rows      int           // rows of the large SELECT and COPY; 0 is 2,000,000, or 400,000 with Quick
	Idle      int           // idle connections; 0 is 2,000, or 200 with Quick
	Binary    string        // the pgaccel to measure; "" is the one beside this program
	ServeArgs []string      // more flags for `pgaccel serve`
	PgBouncer string        // program; "" looks for one, and leaves it out where there is none
	PGBinDir  string        // folder of initdb and postgres; "" looks for one
	Progress  io.Writer     // progress lines; nil is standard error
}

func (o *PassthroughOptions) fill() error {
	orDefault(o.Quick, &o.Rounds, 3, 1)
	orDefault(o.Quick, &o.Scale, 10, 1)
	orDefault(o.Quick, &o.Rows, 2_000_000, 400_000)
	orDefault(o.Quick, &o.Idle, 2000, 200)
	orDefault(o.Quick, &o.Duration, 5*time.Second, time.Second)
	if o.Rounds < 0 || o.Scale < 0 || o.Rows < 0 || o.Idle < 0 || o.Duration < time.Second {
		return fmt.Errorf("%d rounds of %s, scale %d, %d rows, %d idle connections: use positive numbers and a second at least", o.Rounds, o.Duration, o.Scale, o.Rows, o.Idle)
	}
	return orPgaccel(&o.Progress, &o.Binary)
}

// passTarget is one way to the server.
type passTarget struct {
	name  string
	addr  string // host:port
	table string // of the point queries
	// prepared is false where the protocol's named statements do not work.
	prepared bool
	rates    map[passCase][]float64 // pgbench's transactions a second
	drains   map[string][]time.Duration
}

// passCase is one pgbench setting.
type passCase struct {
	mode    string
	clients int
}

var passCases = []passCase{{"simple", 1}, {"extended", 1}, {"prepared", 1}, {"simple", 16}, {"extended", 16}, {"prepared", 16}}

// drainSQL are the statements of the large results.
var drainSQL = []struct{ name, sql string }{
	{"SELECT", "SELECT * FROM plain.wide"},
	{"COPY", "COPY plain.wide TO STDOUT"},
}

// passthrough is a server, PgBouncers and a pgaccel before it.
type passthrough struct {
	o        PassthroughOptions
	progress *progress
	server   *pgserver.Server
	child    *child
	bouncers []*bouncer
	targets  []*passTarget
	version  string

	drained  map[string]drained // what the server itself sent
	rounds   int                // of point queries that have been measured whole
	memory   [2]int64           // resident bytes of pgaccel without and with idle connections
	accepted int64              // executions that pgaccel answered itself
}

// passSchema: point queries on a table that pgaccel copies (public) and on one that it
// is not told of, whose names share nothing; and a wide table, after SSB's fact table.
const passSchema = `
CREATE SCHEMA plain;
CREATE TABLE public.watched (aid int PRIMARY KEY, bid int, abalance int NOT NULL, filler char(84));
INSERT INTO public.watched SELECT i, i / 100000, i::bigint * 7919 %% 10007, '' FROM generate_series(1, %[1]d) i;
CREATE TABLE plain.ledger (LIKE public.watched INCLUDING ALL);
INSERT INTO plain.ledger SELECT * FROM public.watched;
CREATE TABLE plain.wide AS SELECT i / 4 AS orderkey, i %% 4 + 1 AS linenumber, i %% 30000 AS custkey, i %% 200000 AS partkey, i %% 2000 AS suppkey, 19920101 + i %% 28 AS orderdate,
  '3-MEDIUM'::varchar(15) AS orderpriority, '0'::varchar(1) AS shippriority, i %% 50 AS quantity, 1000000 + i %% 4000000 AS extendedprice, 2000000 + i %% 9000000 AS ordtotalprice,
  i %% 11 AS discount, 900000 + i %% 4000000 AS revenue, 60000 + i %% 60000 AS supplycost, i %% 9 AS tax, 19920201 + i %% 28 AS commitdate, 'REG AIR'::varchar(10) AS shipmode
  FROM generate_series(1, %[2]d) i;
VACUUM ANALYZE;
CHECKPOINT`

// Passthrough measures what pgaccel adds to statements that it forwards, beside
// PgBouncer: point queries by pgbench in three protocols, large results, and memory for
// idle connections. Rounds alternate between the targets; answers are compared. It
// writes tables of medians and ratios to out.
func Passthrough(ctx context.Context, o PassthroughOptions, out io.Writer) (err error) {
	defer interrupted(ctx, &err)
	if err := o.fill(); err != nil {
		return err
	}
	p := &passthrough{o: o, progress: newProgress(o.Progress), drained: map[string]drained{}}
	defer p.close()
	for _, step := range []func(context.Context) error{p.start, p.check, p.bench, p.drain, p.idle} {
		if err := step(ctx); err != nil {
			if ctx.Err() != nil {
				p.printUntilInterrupted(out)
			}
			return err
		}
	}
	p.print(out)
	return nil
}

func (p *passthrough) start(ctx context.Context) (err error) {
	if p.o.PGBinDir == "" {
		if p.o.PGBinDir, err = pgserver.FindBinDir(); err != nil {
			return err
		}
	}
	settings := postgresSettings(physicalMemory())
	settings["max_connections"] = strconv.Itoa(p.o.Idle + 200)
	if p.server, err = pgserver.Start(ctx, pgserver.Options{BinDir: p.o.PGBinDir, Settings: settings}); err != nil {
		return err
	}
	url := p.server.URL("postgres", "postgres")
	conn, err := pgconn.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	p.version = conn.ParameterStatus("server_version")
	w := p.progress.start("loading", 0)
	if err := runScript(ctx, conn, fmt.Sprintf(passSchema, 100_000*p.o.Scale, p.o.Rows)); err != nil {
		return err
	}
	w.done()
	if p.child, err = startChild(ctx, p.o.Binary, url, p.server.Dir, "127.0.0.1:0", "127.0.0.1:0", p.o.ServeArgs, nil); err != nil {
		return err
	}
	add := func(name, addr, table string, prepared bool) {
		p.targets = append(p.targets, &passTarget{name, addr, table, prepared, map[passCase][]float64{}, map[string][]time.Duration{}})
	}
	add("direct", "127.0.0.1:"+strconv.Itoa(p.server.Port), "plain.ledger", true)
	if p.o.PgBouncer == "" {
		p.o.PgBouncer = findPgBouncer()
	}
	if p.o.PgBouncer == "" {
		p.progress.say("no pgbouncer found (apt-get install -y pgbouncer): it is left out")
	} else {
		for _, mode := range []string{"session", "transaction"} {
			b, err := startBouncer(ctx, p.o.PgBouncer, p.server, mode)
			if err != nil {
				return err
			}
			p.bouncers = append(p.bouncers, b)
			// PgBouncer before 1.21 knows no named statements across transactions.
			add("pgbouncer "+mode, b.addr, "plain.ledger", mode == "session")
		}
	}
	add("pgaccel", p.child.Addr, "plain.ledger", true)
	// The same queries on a table that has been copied: decided, then forwarded.
	add("pgaccel, copied", p.child.Addr, "public.watched", true)
	return nil
}

// runScript runs statements that end with ";\n" one by one, VACUUM among them.
func runScript(ctx context.Context, conn *pgconn.PgConn, script string) error {
	for _, sql := range splitScript(script) {
		if _, err := conn.Exec(ctx, sql).ReadAll(); err != nil {
			return fmt.Errorf("%w in %s", err, sql)
		}
	}
	return nil
}

func (p *passthrough) close() {
	if p.child != nil {
		p.child.stop()
	}
	for _, b := range p.bouncers {
		b.stop()
	}
	if p.server != nil {
		p.server.Stop()
	}
}

// url is a connection string for the target.
func (t *passTarget) url() string {
	return "postgres://postgres@" + t.addr + "/postgres?sslmode=disable"
}

// check asserts that every target gives the server's answers to the point queries.
func (p *passthrough) check(ctx context.Context) error {
	for _, t := range p.targets {
		conn, err := pgconn.Connect(ctx, t.url())
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		for i := range 200 {
			aid := 1 + i*7919%(100_000*p.o.Scale)
			want := strconv.Itoa(int(int64(aid) * 7919 % 10007))
			a, _, err := ask(ctx, conn, fmt.Sprintf("SELECT abalance FROM %s WHERE aid = %d", t.table, aid))
			if err == nil && string(a.rows) != want+"\n" {
				err = fmt.Errorf("aid %d: %q instead of %s", aid, a.rows, want)
			}
			if err == nil {
				r := conn.ExecParams(ctx, "SELECT abalance FROM "+t.table+" WHERE aid = $1", [][]byte{[]byte(strconv.Itoa(aid))}, nil, nil, nil).Read()
				if err = r.Err; err == nil && (len(r.Rows) != 1 || string(r.Rows[0][0]) != want) {
					err = fmt.Errorf("aid %d, extended: %q instead of %s", aid, r.Rows, want)
				}
			}
			if err != nil {
				conn.Close(ctx)
				return fmt.Errorf("%s: %w", t.name, err)
			}
		}
		if err := conn.Close(ctx); err != nil {
			return err
		}
	}
	return nil
}

// bench runs pgbench in rounds; each begins with another target.
func (p *passthrough) bench(ctx context.Context) error {
	work := p.progress.start("point queries", int64(p.o.Rounds*len(passCases)*len(p.targets)))
	defer work.done()
	done := int64(0)
	for round := range p.o.Rounds {
		for _, c := range passCases {
			for i := range p.targets {
				t := p.targets[(i+round)%len(p.targets)]
				if c.mode == "prepared" && !t.prepared {
					continue
				}
				tps, err := p.pgbench(ctx, t, c)
				if err != nil {
					return fmt.Errorf("%s, %s, %d clients: %w", t.name, c.mode, c.clients, err)
				}
				t.rates[c] = append(t.rates[c], tps)
				done++
				work.set("runs", done)
			}
		}
		p.rounds = round + 1
	}
	return nil
}

// idle opens connections that do nothing and looks at the process's memory.
func (p *passthrough) idle(ctx context.Context) error {
	var err error
	if p.accepted, err = p.accelerated(ctx); err != nil {
		return err
	}
	// What the runs above left behind goes back to the system in a while; a fresh
	// process shows what connections alone cost.
	p.child.stop()
	dir := filepath.Join(p.server.Dir, "idle")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if p.child, err = startChild(ctx, p.o.Binary, p.server.URL("postgres", "postgres"), dir, "127.0.0.1:0", "127.0.0.1:0", p.o.ServeArgs, nil); err != nil {
		return err
	}
	var conns []*pgconn.PgConn
	defer func() {
		for _, c := range conns {
			c.Close(context.WithoutCancel(ctx))
		}
	}()
	open := func(n int) error {
		for len(conns) < n {
			c, err := pgconn.Connect(ctx, "postgres://postgres@"+p.child.Addr+"/postgres?sslmode=disable")
			if err != nil {
				return fmt.Errorf("connection %d: %w", len(conns)+1, err)
			}
			conns = append(conns, c)
			// It has worked once, as every pool's connection has.
			if _, err := c.Exec(ctx, "SELECT 1").ReadAll(); err != nil {
				return err
			}
		}
		return nil
	}
	w := p.progress.start("idle connections", 0)
	defer w.done()
	if err := open(1); err != nil {
		return err
	}
	if p.memory[0], err = p.settledBytes(ctx); err != nil {
		return err
	}
	if err := open(1 + p.o.Idle); err != nil {
		return err
	}
	p.memory[1], err = p.settledBytes(ctx)
	return err
}

// settledBytes is the resident memory of pgaccel once it has stopped shrinking: the
// garbage of its start goes back to the system little by little.
func (p *passthrough) settledBytes(ctx context.Context) (int64, error) {
	var last int64
	for range 20 {
		_, now := p.child.residentBytes()
		if now == 0 {
			return 0, errors.New("pgaccel's memory cannot be read")
		}
		if last != 0 && now > last-last/200 {
			return now, nil
		}
		last = now
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(time.Second):
		}
	}
	return last, nil
}

func (p *passthrough) accelerated(ctx context.Context) (int64, error) {
	m, err := p.child.metrics(ctx)
	if err != nil {
		return 0, err
	}
	n, _ := m.routes()
	return n, nil
}
