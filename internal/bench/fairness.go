package bench

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/pgserver"
)

// FairnessOptions are those of `pgaccel-bench fairness`. The zero value is the full
// benchmark, some ten minutes.
type FairnessOptions struct {
	Quick     bool          // about a minute
	Rounds    int           // rounds over all settings and sides; 0 is 5, or 1 with Quick
	Duration  time.Duration // of each measurement; 0 is 8 s, or 3 s with Quick
	Rows      int           // of the table; 0 is 4,000,000, or 1,000,000 with Quick
	Heavy     int           // clients with heavy queries; 0 is 8
	Clients   int           // of the mixed setting; 0 is 100
	Binary    string        // the pgaccel to measure; "" is the one beside this program
	ServeArgs []string      // more flags for `pgaccel serve`
	PGBinDir  string        // folder of initdb and postgres; "" looks for one
	Progress  io.Writer     // progress lines; nil is standard error
}

func (o *FairnessOptions) fill() error {
	orDefault(o.Quick, &o.Rounds, 5, 1)
	orDefault(o.Quick, &o.Duration, 8*time.Second, 3*time.Second)
	orDefault(o.Quick, &o.Rows, 4_000_000, 1_000_000)
	orDefault(o.Quick, &o.Heavy, 8, 8)
	orDefault(o.Quick, &o.Clients, 100, 100)
	if o.Rounds < 0 || o.Duration < 0 || o.Rows < 0 || o.Heavy < 0 || o.Clients < 0 {
		return fmt.Errorf("%d rounds of %v, %d rows, %d and %d clients: use positive numbers", o.Rounds, o.Duration, o.Rows, o.Heavy, o.Clients)
	}
	return orPgaccel(&o.Progress, &o.Binary)
}

const fairnessSchema = `
CREATE TABLE facts (id int PRIMARY KEY, g int NOT NULL, h int NOT NULL, v int NOT NULL, d numeric(12,2) NOT NULL);
INSERT INTO facts SELECT i, i %% 1000, i %% 17, i::bigint * 7919 %% 10007, i %% 5000 / 4.0 FROM generate_series(1, %d) i;
CREATE TABLE result AS SELECT id, g, v, d FROM facts WHERE v < 200 ORDER BY d DESC, id;
VACUUM ANALYZE;
CHECKPOINT`

// fairnessHeavy read all of the table, and are accelerated: few groups and many, and sets of
// values.
var fairnessHeavy = []string{
	"SELECT g, count(*), sum(v), avg(d) FROM facts WHERE v % 7 <> 3 GROUP BY g ORDER BY g",
	"SELECT h, count(*), max(v * 2 - g), sum(d) FROM facts WHERE v > 100 GROUP BY h ORDER BY h",
	"SELECT v, count(*) FROM facts WHERE g > 10 GROUP BY v ORDER BY 2 DESC, 1 LIMIT 10",
	"SELECT count(*), sum(v), min(d), max(d) FROM facts WHERE h IN (1, 3, 5, 7) AND d > 17.5",
	"SELECT id % 100000, count(*), sum(d) FROM facts GROUP BY 1 ORDER BY 3 DESC, 1 LIMIT 20",
	"SELECT g, count(DISTINCT v), count(DISTINCT d) FROM facts GROUP BY g ORDER BY g",
}

// fairnessResult has 2 % of the table's rows as its result, which is more work for the client
// than for pgaccel: its clients leave the cores to nobody, the more the faster they are
// answered. So that they do on both sides, those that ask the server directly read the same
// rows from a table that holds them, in its order.
const (
	fairnessResult       = "SELECT id, g, v, d FROM facts WHERE v < 200 ORDER BY d DESC, id"
	fairnessResultDirect = "SELECT id, g, v, d FROM result"
)

// The kinds of statements whose times are measured.
const (
	oneKind   = "SELECT 1"
	pointKind = "point query"
	heavyKind = "heavy query"
)

// fairnessKinds are the kinds of statements that each setting measures.
var fairnessKinds = []string{oneKind, pointKind, heavyKind}

// The settings: who is there beside the small statements.
const (
	besideHeavy   = "heavy queries"
	besideResults = "large results"
	mixed         = "mixed clients"
)

var fairnessSettings = []string{besideHeavy, besideResults, mixed}

// fairnessCase is one setting on one side.
type fairnessCase struct {
	setting string
	side    string // "direct" or "pgaccel"
}

func (c fairnessCase) String() string { return c.setting + ", " + c.side }

// fairness is a server and a pgaccel before it.
type fairness struct {
	o       FairnessOptions
	server  *pgserver.Server
	child   *child
	version string
	want    map[string]answer // of the heavy statements, by text

	mu    sync.Mutex
	times map[string][]time.Duration // of the measurement that runs, by kind
	done  map[fairnessCase][]fairnessRound
}

// fairnessRound is what one round has measured of a case, by kind.
type fairnessRound map[string]fairnessTimes

// fairnessTimes are percentiles of one kind of statement in one round.
type fairnessTimes struct {
	p50, p99 time.Duration
	n        int
	rate     float64 // statements a second
}

// Fairness measures what statements that pgaccel forwards wait for beside accelerated ones:
// the times of small statements beside clients with heavy queries, beside clients that read
// large results, and of all statements of many clients that mix both; here and directly in
// one run. Answers are checked. It writes each measurement as it comes, and medians of the
// rounds and their ratios to out, also of what there is when ctx ends.
func Fairness(ctx context.Context, o FairnessOptions, out io.Writer) error {
	if err := o.fill(); err != nil {
		return err
	}
	f := &fairness{o: o, want: map[string]answer{}, done: map[fairnessCase][]fairnessRound{}}
	defer f.close()
	p := newProgress(o.Progress)
	if err := f.start(ctx, p); err != nil {
		return err
	}
	err := f.rounds(ctx, out)
	f.print(out)
	return err
}

func (f *fairness) start(ctx context.Context, p *progress) (err error) {
	if f.o.PGBinDir == "" {
		if f.o.PGBinDir, err = pgserver.FindBinDir(); err != nil {
			return err
		}
	}
	settings := postgresSettings(physicalMemory())
	settings["max_connections"] = strconv.Itoa(max(f.o.Clients, f.o.Heavy) + 50)
	if f.server, err = pgserver.Start(ctx, pgserver.Options{BinDir: f.o.PGBinDir, Settings: settings}); err != nil {
		return err
	}
	url := f.server.URL("postgres", "postgres")
	conn, err := pgconn.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	f.version = conn.ParameterStatus("server_version")
	w := p.start("loading", 0)
	if err := runScript(ctx, conn, fmt.Sprintf(fairnessSchema, f.o.Rows)); err != nil {
		return err
	}
	w.done()
	for _, sql := range slices.Concat(fairnessHeavy, []string{fairnessResult, fairnessResultDirect}) {
		if f.want[sql], _, err = ask(ctx, conn, sql); err != nil {
			return err
		}
	}
	f.child, err = startChild(ctx, f.o.Binary, url, f.server.Dir, "127.0.0.1:0", "127.0.0.1:0", f.o.ServeArgs, nil)
	return err
}

func (f *fairness) close() {
	stopBoth(f.child, f.server)
}

func (f *fairness) addr(side string) string {
	if side == "direct" {
		return "127.0.0.1:" + strconv.Itoa(f.server.Port)
	}
	return f.child.Addr
}

func (f *fairness) url(side string) string {
	return "postgres://postgres@" + f.addr(side) + "/postgres?sslmode=disable"
}

// rounds measures every setting on both sides; each round begins with the other side.
func (f *fairness) rounds(ctx context.Context, out io.Writer) error {
	for round := range f.o.Rounds {
		for _, setting := range fairnessSettings {
			sides := []string{"direct", "pgaccel"}
			if round%2 == 1 {
				slices.Reverse(sides)
			}
			for _, side := range sides {
				c := fairnessCase{setting, side}
				before, err := f.child.metrics(ctx)
				if err != nil {
					return err
				}
				if err := f.measure(ctx, c, uint64(round)); err != nil {
					return fmt.Errorf("%s: %w", c, err)
				}
				after, err := f.child.metrics(ctx)
				if err != nil {
					return err
				}
				was, _ := before.routes()
				is, _ := after.routes()
				fmt.Fprintf(out, "round %d, %s: %s, %d accelerated\n", round+1, c, f.done[c][round], is-was)
				if side == "pgaccel" && is == was {
					return fmt.Errorf("%s: no query was accelerated", c)
				}
			}
		}
	}
	return nil
}

// measure has clients send statements for the duration.
func (f *fairness) measure(ctx context.Context, c fairnessCase, round uint64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f.times = map[string][]time.Duration{}
	clients := f.o.Heavy
	if c.setting == mixed {
		clients = f.o.Clients
	}
	conns := make([]*pgconn.PgConn, clients)
	defer func() {
		for _, conn := range conns {
			if conn != nil {
				conn.Close(context.WithoutCancel(ctx))
			}
		}
	}()
	for i := range conns {
		var err error
		if conns[i], err = pgconn.Connect(ctx, f.url(c.side)); err != nil {
			return err
		}
	}
	begun := time.Now()
	over := begun.Add(f.o.Duration)
	var wg sync.WaitGroup
	if c.setting != mixed {
		for _, kind := range []string{oneKind, pointKind} {
			wg.Go(func() {
				times, err := f.paced(ctx, c, kind, round)
				if err != nil {
					cancel(err)
					return
				}
				f.add(kind, times...)
			})
		}
	}
	for i, conn := range conns {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(round, uint64(i)))
			for ctx.Err() == nil && time.Now().Before(over) {
				kind := heavyKind
				if c.setting == mixed {
					kind = [...]string{oneKind, pointKind, pointKind, pointKind, pointKind, pointKind, pointKind, pointKind, pointKind, heavyKind}[r.IntN(10)]
				}
				took, err := f.statement(ctx, conn, c, kind, r)
				if err != nil {
					cancel(err)
					return
				}
				f.add(kind, took)
			}
		})
	}
	wg.Wait()
	spent := time.Since(begun).Seconds()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	measured := fairnessRound{}
	for kind, times := range f.times {
		slices.Sort(times)
		measured[kind] = fairnessTimes{percentile(times, 0.5), percentile(times, 0.99), len(times), float64(len(times)) / spent}
	}
	f.done[c] = append(f.done[c], measured)
	return nil
}

func (f *fairness) add(kind string, took ...time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.times[kind] = append(f.times[kind], took...)
}

// heavy is a statement that a client of the case asks.
func (c fairnessCase) heavy(r *rand.Rand) string {
	switch {
	case c.setting != besideResults:
		return fairnessHeavy[r.IntN(len(fairnessHeavy))]
	case c.side == "direct":
		return fairnessResultDirect
	}
	return fairnessResult
}

// statement runs one of a kind and checks its answer.
func (f *fairness) statement(ctx context.Context, conn *pgconn.PgConn, c fairnessCase, kind string, r *rand.Rand) (time.Duration, error) {
	if kind == heavyKind {
		sql := c.heavy(r)
		a, took, err := ask(ctx, conn, sql)
		if want := f.want[sql]; err == nil && (string(a.rows) != string(want.rows) || a.columns != want.columns) {
			err = fmt.Errorf("%s: another answer:\n%s\ninstead of\n%s", sql, a.rows, want.rows)
		}
		return took, err
	}
	sql, want := "SELECT 1", "1\n"
	if kind == pointKind {
		id := 1 + r.IntN(f.o.Rows)
		sql, want = fmt.Sprintf("SELECT v FROM facts WHERE id = %d", id), strconv.Itoa(int(int64(id)*7919%10007))+"\n"
	}
	a, took, err := ask(ctx, conn, sql)
	if err == nil && string(a.rows) != want {
		err = fmt.Errorf("%s: %q instead of %q", sql, a.rows, want)
	}
	return took, err
}

// percentile returns the p-th of sorted durations, 0 of none.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(p*float64(len(sorted))), len(sorted)-1)]
}

// String is the round in a line.
func (m fairnessRound) String() (text string) {
	for _, kind := range fairnessKinds {
		t := m[kind]
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("%s p50 %s p99 %s ms (%d)", kind, ms(t.p50), ms(t.p99), t.n)
	}
	return text
}

// medians of a kind over rounds: of each percentile by itself, as one round that a neighbour
// of the machine has disturbed must not decide.
func medians(rounds []fairnessRound, kind string) fairnessTimes {
	var p50, p99 []time.Duration
	var rates []float64
	for _, m := range rounds {
		p50, p99, rates = append(p50, m[kind].p50), append(p99, m[kind].p99), append(rates, m[kind].rate)
	}
	slices.Sort(rates)
	return fairnessTimes{p50: median(p50), p99: median(p99), rate: rates[len(rates)/2]}
}

// print prints medians of both sides and their ratios.
func (f *fairness) print(out io.Writer) {
	fmt.Fprintf(out, "\nPostgreSQL %s, %d rows, medians of %d rounds of %v.\n", f.version, f.o.Rows, f.o.Rounds, f.o.Duration)
	fmt.Fprintf(out, "%-24s %-12s %11s %11s %7s %11s %11s %7s %10s %10s\n", "setting", "statement",
		"direct p50", "pgaccel p50", "ratio", "direct p99", "pgaccel p99", "ratio", "direct /s", "pgaccel /s")
	for _, setting := range fairnessSettings {
		direct, here := f.done[fairnessCase{setting, "direct"}], f.done[fairnessCase{setting, "pgaccel"}]
		if len(direct) == 0 || len(here) == 0 {
			continue
		}
		name := fmt.Sprintf("%d with %s", f.o.Heavy, setting)
		if setting == mixed {
			name = fmt.Sprintf("%d mixed", f.o.Clients)
		}
		for _, kind := range fairnessKinds {
			d, p := medians(direct, kind), medians(here, kind)
			fmt.Fprintf(out, "%-24s %-12s %11s %11s %7s %11s %11s %7s %10s %10s\n", name, kind,
				ms(d.p50), ms(p.p50), ratio(float64(p.p50)/float64(d.p50)),
				ms(d.p99), ms(p.p99), ratio(float64(p.p99)/float64(d.p99)), digits(d.rate), digits(p.rate))
		}
	}
	fmt.Fprintln(out, "times in ms; ratio: pgaccel / direct")
}
