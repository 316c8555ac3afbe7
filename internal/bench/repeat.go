package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/events"
	"pgaccel/internal/pgserver"
)

// RepeatOptions are those of `pgaccel-bench repeat`. The zero value is the full benchmark.
type RepeatOptions struct {
	Quick     bool
	Rows      int64     // of the table; 0 is ten million, or a million with Quick
	Rounds    int       // of all queries, with reuse and without; 0 is 20, or 4 with Quick
	Appends   int       // rows a second that a writer appends; 0 is 500
	Updates   int       // rows a second that it updates; 0 is 50
	Binary    string    // the pgaccel to measure; "" is the one beside this program
	ServeArgs []string  // more flags for `pgaccel serve`
	PGBinDir  string    // folder of postgres; "" looks for one
	Progress  io.Writer // progress lines; nil is standard error
}

func (o *RepeatOptions) fill() error {
	orDefault(o.Quick, &o.Rows, 10_000_000, 1_000_000)
	orDefault(o.Quick, &o.Rounds, 20, 4)
	orDefault(o.Quick, &o.Appends, 500, 500)
	orDefault(o.Quick, &o.Updates, 50, 50)
	if o.Rows < events.RowsMin || o.Rounds < 1 || o.Appends < 0 || o.Updates < 0 {
		return fmt.Errorf("%d rows, %d rounds, %d and %d rows a second: use %d rows and a round at least", o.Rows, o.Rounds, o.Appends, o.Updates, events.RowsMin)
	}
	err := orPgaccel(&o.Progress, &o.Binary)
	if err == nil && o.PGBinDir == "" {
		o.PGBinDir, err = pgserver.FindBinDir()
	}
	return err
}

// inRow is how often a query is asked in a row: as by those who look at the same dashboard.
const inRow = 5

// recentShare: updates are of the last 1/recentShare of the rows. 50 a second of any rows would change most segments of
// the table between two questions.
const recentShare = 10

// checkShare: of so many rounds one is compared with Postgres, each answer at its snapshot.
const checkShare = 4

// repeat is a server with the events, and a pgaccel before it.
type repeat struct {
	o               RepeatOptions
	direct, through *pgconn.PgConn
	child           *child
	queries         []repeated
	checked         int
	wrong           []string
	segments        float64 // reused
	executions      int     // with reuse
}

// repeated is a query, and what it took as the client sees it.
type repeated struct {
	statement
	on, off []time.Duration
}

// Repeat asks the 20 queries of business intelligence tools (BI) again and again while a writer appends and updates rows,
// each some times in a row, with pgaccel.reuse and without, and writes medians to out. A share of the answers is compared with Postgres'.
func Repeat(ctx context.Context, o RepeatOptions, out io.Writer) (err error) {
	defer interrupted(ctx, &err)
	if err := o.fill(); err != nil {
		return err
	}
	server, err := startPostgres(ctx, o.PGBinDir)
	if err != nil {
		return err
	}
	defer server.Stop()
	r := &repeat{o: o}
	for _, q := range biWorkload(o.Rows).queries {
		r.queries = append(r.queries, repeated{statement: q})
	}
	url := server.URL("postgres", "postgres")
	p := newProgress(o.Progress)
	if err := biWorkload(o.Rows).load(ctx, url, p); err != nil {
		return err
	}
	args := append([]string{"--reuse-memory", "64MiB"}, o.ServeArgs...)
	if r.child, err = startChild(ctx, o.Binary, url, server.Dir, "127.0.0.1:0", "127.0.0.1:0", args, nil); err != nil {
		return err
	}
	defer r.child.stop()
	if r.direct, err = pgconn.Connect(ctx, url); err != nil {
		return err
	}
	defer r.direct.Close(context.WithoutCancel(ctx))
	if r.through, err = pgconn.Connect(ctx, "postgres://postgres@"+r.child.Addr+"/postgres?sslmode=disable"); err != nil {
		return err
	}
	defer r.through.Close(context.WithoutCancel(ctx))
	if err := runScript(ctx, r.through, "SET pgaccel.mode = 'force'"); err != nil {
		return err
	}
	writing, stop := context.WithCancel(ctx)
	written := make(chan error, 1)
	go func() { written <- write(writing, url, o) }()
	err = r.measure(ctx, p)
	stop()
	if e := <-written; err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	if err := r.print(ctx, out); err != nil {
		return err
	}
	if len(r.wrong) > 0 {
		return fmt.Errorf("the benchmark failed:\n  %s", strings.Join(r.wrong, "\n  "))
	}
	return nil
}

// write appends and updates rows, a tenth of a second's at a time, until ctx ends.
func write(ctx context.Context, url string, o RepeatOptions) error {
	c, err := pgconn.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	rnd := rand.New(rand.NewPCG(1, 2))
	next := 10 * o.Rows
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		appends, updates := int64(o.Appends*n/10-o.Appends*(n-1)/10), o.Updates*n/10-o.Updates*(n-1)/10
		var sql strings.Builder
		from := 1 + rnd.Int64N(o.Rows-appends)
		fmt.Fprintf(&sql, "INSERT INTO events SELECT id + %d, now(), user_id, country, device, browser, url, campaign, status, amount, latency, bytes, converted "+
			"FROM events WHERE id >= %d AND id < %d;\n", next-from, from, from+appends)
		next += appends
		for range updates {
			fmt.Fprintf(&sql, "UPDATE events SET amount = amount + 1 WHERE id = %d;\n", o.Rows-rnd.Int64N(o.Rows/recentShare))
		}
		if err := runScript(ctx, c, sql.String()); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

func (r *repeat) measure(ctx context.Context, p *progress) error {
	bar := p.start("asking", int64(r.o.Rounds))
	defer bar.done()
	for round := range r.o.Rounds + 2 { // the first two find what they keep
		for _, on := range []bool{true, false} {
			if err := r.round(ctx, on, round >= 2); err != nil {
				return err
			}
		}
		if round%checkShare == 2 {
			for i := range r.queries {
				if err := r.check(ctx, &r.queries[i]); err != nil {
					return err
				}
			}
		}
		bar.set("rounds", int64(max(round-1, 0)))
	}
	return nil
}

// round asks all queries once, with reuse or without.
func (r *repeat) round(ctx context.Context, on, counts bool) error {
	setting := "off"
	if on {
		setting = "on"
	}
	if err := runScript(ctx, r.through, "SET pgaccel.reuse = '"+setting+"'"); err != nil {
		return err
	}
	before, err := r.reused(ctx)
	if err != nil {
		return err
	}
	for i := range r.queries {
		q := &r.queries[i]
		for range inRow {
			_, took, err := ask(ctx, r.through, q.SQL)
			if err != nil {
				return fmt.Errorf("%s: %w", q.Name, err)
			}
			switch {
			case !counts:
			case on:
				q.on = append(q.on, took)
				r.executions++
			default:
				q.off = append(q.off, took)
			}
			time.Sleep(100 * time.Millisecond) // others commit meanwhile
		}
	}
	after, err := r.reused(ctx)
	if counts {
		r.segments += after - before
	}
	return err
}

// reused is the number of segments that were not scanned so far.
func (r *repeat) reused(ctx context.Context) (float64, error) {
	m, err := r.child.metrics(ctx)
	for _, s := range m {
		if s.name == "pgaccel_reuse_total" && s.labels["kind"] == "segments" {
			return s.value, err
		}
	}
	return 0, err
}

// check compares an answer with Postgres' at the same snapshot.
func (r *repeat) check(ctx context.Context, q *repeated) error {
	if err := runScript(ctx, r.through, "SET pgaccel.reuse = 'on'"); err != nil {
		return err
	}
	snapshot, err := query(ctx, r.direct, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_export_snapshot()")
	if err != nil {
		return err
	}
	if err := runScript(ctx, r.through, "BEGIN ISOLATION LEVEL REPEATABLE READ"); err != nil {
		return err
	}
	if err := runScript(ctx, r.through, "SET TRANSACTION SNAPSHOT '"+snapshot+"'"); err != nil {
		return err
	}
	want, _, err := ask(ctx, r.direct, q.SQL)
	got, _, err2 := ask(ctx, r.through, q.SQL)
	if err := errors.Join(err, err2); err != nil {
		return fmt.Errorf("%s: %w", q.Name, err)
	}
	if d := q.difference(want, got); d != "" {
		r.wrong = append(r.wrong, q.Name+": "+d)
	}
	r.checked++
	return errors.Join(runScript(ctx, r.direct, "COMMIT"), runScript(ctx, r.through, "COMMIT"))
}

func (r *repeat) print(ctx context.Context, out io.Writer) error {
	m, err := r.child.metrics(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Queries repeated over %d events, while %d rows a second are appended and %d updated\n\n", r.o.Rows, r.o.Appends, r.o.Updates)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "query\treuse off, ms\treuse on, ms\tratio\t")
	var all []float64
	for i := range r.queries {
		q := &r.queries[i]
		on, off := median(q.on), median(q.off)
		all = append(all, float64(off)/float64(on))
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t\n", q.Name, ms(off), ms(on), ratio(all[i]))
	}
	fmt.Fprintf(t, "geometric mean\t\t\t%s\t\n", ratio(geomean(all)))
	if err := t.Flush(); err != nil {
		return err
	}
	segments := float64(r.executions) * float64((r.o.Rows+1<<16-1)>>16)
	fmt.Fprintf(out, "\nOf the segments %.0f %% were reused, of all queries; %s are kept. %d answers were compared with PostgreSQL's, %d differ.\n",
		100*r.segments/segments, size(int64(m.sum("pgaccel_reuse_bytes"))), r.checked, len(r.wrong))
	return nil
}
