package referee

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options say what to run.
type Options struct {
	Queries     int
	Seed        uint64
	Sessions    int       // in parallel; 0 is 4
	Changes     int       // of 100 queries, how many are preceded by a change of the data
	Repeat      int       // how often each query is asked again, after changes of the data, with what is kept of it
	Outside     int       // of 100 queries, how many are outside of the subset
	Rows        int       // of fact tables, about; 0 is few
	Eager       bool      // larger tables, which take the paths of tables much larger still; two questions at a time
	Literals    int       // of 100 queries, how many have constants that are read in ways of their own
	Blocks      int       // of 100 other queries, how many are trees of blocks
	Limits      int       // of 100 queries, how many are about the limits of types
	Finish      int       // of 100 queries, how many have parts that PostgreSQL finishes
	Collation   string    // one of Collations; "" is C
	Differences int       // end after so many; 0 is 3
	Dir         string    // where found cases are written; "" is nowhere
	Out         io.Writer // progress and report
	Samples     int       // print so many of the shapes that were forwarded
	Log         *slog.Logger
	QueryMemory int64 // of server.Config

	// Device and those with it are server.Config's; sessions demand a device that is named.
	Device, DeviceWorker string
	DeviceMemory         int64
}

// schemaQueries is the number of queries on one schema before the next one.
const schemaQueries = 400

// eagerRows are the rows of fact tables of eager runs.
const eagerRows = 6000

type run struct {
	Options
	stack   *stack
	log     *errorLog
	asked   atomic.Int64 // queries, each counted as often as it is executed
	changed atomic.Int64
	failed  atomic.Int64 // queries that end in an error
	mu      sync.Mutex
	report  *Report
	stop    context.CancelFunc
	shrink  sync.Mutex
	tally   tally
}

// Run starts a server and a pgaccel, and asks. The error is of the run itself;
// differences are in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Sessions == 0 {
		o.Sessions = 4
	}
	if o.Differences == 0 {
		o.Differences = 3
	}
	errorLog := &errorLog{}
	if o.Log != nil {
		errorLog.next = o.Log.Handler()
	}
	o.Log = errorLog.logger()
	fmt.Fprintf(o.Out, "referee: seed %d, %d queries, %d sessions, %d%% changes\n", o.Seed, o.Queries, o.Sessions, o.Changes)
	st, err := startStack(ctx, o)
	if err != nil {
		return nil, err
	}
	defer st.stop()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r := &run{Options: o, stack: st, log: errorLog, report: &Report{}, stop: stop}
	start := time.Now()
	before, err := st.counts()
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(o.Out, "referee: PostgreSQL %d, collations %s\n", st.world.version, strings.Join(st.world.collations, " "))
	done := make(chan error, o.Sessions)
	for i := range o.Sessions {
		go func() {
			err := r.session(ctx, i)
			if err != nil && ctx.Err() == nil {
				stop()
			}
			done <- err
		}()
	}
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	look := time.NewTicker(2 * time.Second)
	defer look.Stop()
	looker, err := connect(ctx, st.proxy)
	if err != nil {
		return nil, err
	}
	defer looker.Close(context.Background())
	var errs []error
	for left := o.Sessions; left > 0; {
		select {
		case err := <-done:
			left--
			if err != nil && !errors.Is(err, context.Canceled) {
				errs = append(errs, err)
			}
		case <-look.C:
			r.tally.look(ctx, looker)
		case <-tick.C:
			n := r.asked.Load()
			fmt.Fprintf(o.Out, "referee: %d queries, %.0f a second, %d changes, %d differences\n", n, float64(n)/time.Since(start).Seconds(), r.changed.Load(), len(r.report.Differences))
		}
	}
	r.tally.look(ctx, looker)
	now, err := st.counts()
	if err != nil {
		return nil, err
	}
	p := r.report
	p.Forms = r.tally.forms()
	if o.Samples > 0 {
		p.Details = r.tally.details()
	}
	if p.Shared, err = st.counter("pgaccel_shared_scans_total"); err != nil {
		return nil, err
	}
	if p.Indexed, err = st.counter("pgaccel_index_answers_total"); err != nil {
		return nil, err
	}
	if p.Narrowed, err = st.counter("pgaccel_device_bitmap_queries_total"); err != nil {
		return nil, err
	}
	if p.OnDevice, p.Streamed, p.Fallbacks, err = st.deviceCounts(); err != nil {
		return nil, err
	}
	p.Queries, p.Changes, p.Failed, p.Took = int(r.asked.Load()), int(r.changed.Load()), int(r.failed.Load()), time.Since(start)
	p.Reasons = since(now, before)
	p.Accelerated = p.Reasons[""] + p.Reasons["partial"]
	delete(p.Reasons, "")
	if n := p.Reasons["internal error"]; n > 0 {
		errs = append(errs, fmt.Errorf("%d executions were forwarded for an internal error", n))
		r.tally.internal(o.Out)
	}
	maps.DeleteFunc(p.Reasons, func(_ string, n int) bool { return n == 0 })
	if o.Samples > 0 {
		r.samples()
	}
	p.Differences = append(p.Differences, errorLog.take()...)
	p.print(o.Out)
	return p, errors.Join(errs...)
}

// talk is one session's two connections and what they have been told.
type talk struct {
	number                int // of the session
	direct, proxy, writer *session
	// twin asks pgaccel the question before once more while proxy asks the next one, so
	// that they share what can be shared. Nil: no.
	twin     *session
	last     *asked // what twin may ask: nothing has changed since
	wrong    *asked // the question that twin got another answer to
	settings []string
	inBlock  string   // the BEGIN of the open transaction block, "" for none
	left     int      // queries until the block ends
	own      []string // changes of the session's, taken back, that the last question was asked amid
	history  []string
	shrinks  bool // a difference of its is being made smaller
}

// asked is a question with PostgreSQL's answer.
type asked struct {
	q    *query
	p    protocol
	want answer
}

func (r *run) open(ctx context.Context, number int) (*talk, error) {
	t := &talk{number: number}
	url := r.stack.proxy
	if number%3 == 1 && r.stack.byRole != "" {
		url = r.stack.byRole
	}
	var err error
	if t.direct, err = connect(ctx, r.stack.direct); err != nil {
		return nil, err
	}
	if t.writer, err = connect(ctx, r.stack.direct); err != nil {
		return nil, err
	}
	if r.Eager {
		if t.twin, err = connect(ctx, url); err != nil {
			return nil, err
		}
	}
	t.proxy, err = connect(ctx, url)
	return t, err
}

func (t *talk) close() {
	for _, s := range []*session{t.direct, t.proxy, t.writer, t.twin} {
		if s != nil {
			s.Close(context.Background())
		}
	}
}

// tell sends statements to both sides, which answer alike unless something is wrong.
func (t *talk) tell(ctx context.Context, sqls ...string) error {
	t.last = nil
	for _, q := range sqls {
		if t.twin != nil && (strings.HasPrefix(q, "SET ") || strings.HasPrefix(q, "RESET ")) { // it has no blocks
			t.twin.ask(ctx, q, nil, protocol{})
		}
		want := t.direct.ask(ctx, q, nil, protocol{})
		got := t.proxy.ask(ctx, q, nil, protocol{})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if d := difference(&query{raw: q}, want, got); d != "" {
			return fmt.Errorf("%s: %s", q, d)
		}
	}
	return nil
}

// session asks about one schema after the other, until enough has been asked.
func (r *run) session(ctx context.Context, number int) error {
	t, err := r.open(ctx, number)
	if err != nil {
		return err
	}
	defer func() { t.close() }()
	type made struct {
		s   *schema
		err error
	}
	w := r.stack.world
	if w.rows = r.Rows; w.rows == 0 && r.Eager {
		w.rows = eagerRows
	}
	prepare := func(cycle int) chan made {
		ch := make(chan made, 1)
		go func() {
			rnd := rand.New(rand.NewPCG(r.Seed, uint64(number)<<32|uint64(cycle)<<1))
			s := randomSchema(rnd, fmt.Sprintf("rf%d_%d", number, cycle), w)
			conn, err := connect(ctx, r.stack.direct)
			if err == nil {
				err = create(ctx, conn, s)
				conn.Close(context.Background())
			}
			ch <- made{s, err}
		}()
		return ch
	}
	next := prepare(0)
	for cycle := 0; ctx.Err() == nil && int(r.asked.Load()) < r.Queries; cycle++ {
		m := <-next
		if m.err != nil {
			return m.err
		}
		next = prepare(cycle + 1)
		if err := waitCopied(ctx, t.proxy, m.s); err != nil {
			return err
		}
		rnd := rand.New(rand.NewPCG(r.Seed, uint64(number)<<32|uint64(cycle)<<1|1))
		if err := r.questions(ctx, t, m.s, rnd); err != nil {
			return err
		}
		if err := t.tell(ctx, "RESET search_path"); err != nil {
			return err
		}
		if a := t.writer.ask(ctx, "DROP SCHEMA "+m.s.name+" CASCADE", nil, protocol{}); a.lost != nil {
			return a.lost
		}
	}
	<-next
	return nil
}

// questions asks schemaQueries questions about a schema.
func (r *run) questions(ctx context.Context, t *talk, s *schema, rnd *rand.Rand) error {
	g := &gen{r: rnd, linguistic: r.Collation != "" && r.Collation != "C"}
	serial := 0
	t.history = nil
	for i := range schemaQueries {
		if ctx.Err() != nil || int(r.asked.Load()) >= r.Queries {
			break
		}
		if i%40 == 0 {
			if err := t.endBlock(ctx); err != nil {
				return err
			}
			t.settings, g.utc = randomSettings(g, s.name)
			if err := t.tell(ctx, append([]string{"RESET ALL"}, t.settings...)...); err != nil {
				return err
			}
		}
		if t.inBlock == "" && g.chance(2) {
			t.inBlock = pick(rnd, "BEGIN", "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN READ ONLY", "START TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
			t.left = 2 + rnd.IntN(8)
			block := []string{t.inBlock}
			if g.chance(25) {
				block = append(block, "SET LOCAL pgaccel.mode = "+quote(pick(rnd, "auto", "force", "force", "off")))
			}
			if err := t.tell(ctx, block...); err != nil {
				return err
			}
		}
		question := r.question(g, s)
		question.ties = r.Collation == "ci"
		p := randomProtocol(rnd, len(question.out))
		if question.raw != "" && len(p.formats) != 1 {
			p.formats, p.copy = nil, false
		}
		if r.Changes > 0 && g.chance(r.Changes) {
			if err := r.change(ctx, t, g, s, &serial); err != nil {
				return err
			}
		}
		compare := r.compare
		if r.Repeat > 0 && t.inBlock == "" && question.raw == "" {
			compare = func(ctx context.Context, t *talk, q *query, p protocol) (string, bool, error) {
				return r.repeatedly(ctx, t, g, s, q, p, &serial)
			}
		}
		// Forms that leave rows equal in an order have PostgreSQL's own choice in them, which the
		// same change made twice, and so in two places, alters.
		if r.Changes > 0 && t.inBlock == "" && question.raw == "" && g.chance(1) {
			own := g.randomChange(s, &serial)
			compare = func(ctx context.Context, t *talk, q *query, p protocol) (string, bool, error) {
				return r.ownWrites(ctx, t, own, q, p)
			}
		}
		t.own = nil
		d, failed, err := compare(ctx, t, question, p)
		if err != nil {
			return err
		}
		if t.wrong != nil {
			question, p, t.wrong = t.wrong.q, t.wrong.p, nil
		}
		if d != "" {
			if err := r.found(ctx, t, s, question, p, d); err != nil {
				return err
			}
			return nil // the next schema
		}
		// The same text with parameters of other types.
		if _, bounds := question.sql(true); p.extended && len(bounds) > 0 && !failed && g.chance(20) {
			p.oids = g.otherTypes(question, len(bounds))
			if d, failed, err = r.compare(ctx, t, question, p); err != nil {
				return err
			}
			if t.wrong != nil {
				question, p, t.wrong = t.wrong.q, t.wrong.p, nil
			}
			if d != "" {
				return r.found(ctx, t, s, question, p, d)
			}
		}
		if t.inBlock != "" {
			if t.left--; t.left <= 0 || failed {
				if err := t.endBlock(ctx); err != nil {
					return err
				}
			}
		}
	}
	return t.endBlock(ctx)
}

// repeatedly is compare, and again after changes of the data.
func (r *run) repeatedly(ctx context.Context, t *talk, g *gen, s *schema, q *query, p protocol, serial *int) (diff string, failed bool, err error) {
	for range r.Repeat {
		if diff, failed, err = r.compare(ctx, t, q, p); err != nil || diff != "" || failed {
			return diff, failed, err
		}
		if err := r.change(ctx, t, g, s, serial); err != nil {
			return "", false, err
		}
	}
	return r.compare(ctx, t, q, p)
}

// question makes one of the questions that the run is to ask.
func (r *run) question(g *gen, s *schema) *query {
	g.reckless, g.odd = g.chance(4), false
	g.finish = r.Finish > 0 && g.chance(r.Finish)
	switch n := g.r.IntN(100); {
	case n < r.Outside:
		return g.outsideQuery(s)
	case n < r.Outside+r.Limits:
		q := g.limitsQuery(s)
		if g.chance(15) {
			g.oddLiterals(q)
		}
		return q
	case n < r.Outside+r.Limits+r.Literals:
		g.odd = true
		q := g.randomQuery(s)
		g.oddLiterals(q)
		return q
	}
	if g.chance(r.Blocks) {
		return g.treeQuery(s)
	}
	return g.randomQuery(s)
}

func (t *talk) endBlock(ctx context.Context) error {
	if t.inBlock == "" {
		return nil
	}
	t.inBlock = ""
	return t.tell(ctx, "ROLLBACK")
}

// change changes the data, by the connection that no query uses. In a block of
// REPEATABLE READ DDL would wait for itself: it is left out.
func (r *run) change(ctx context.Context, t *talk, g *gen, s *schema, serial *int) error {
	stmts := g.randomChange(s, serial)
	t.last = nil
	if t.inBlock != "" {
		for _, q := range stmts {
			for _, word := range []string{"TRUNCATE", "VACUUM", "REINDEX", "ALTER", "GRANT", "VIEW"} {
				if strings.Contains(q, word) {
					return nil
				}
			}
		}
	}
	// By pgaccel or past it: all writes count.
	by := t.writer
	if t.inBlock == "" && g.chance(30) {
		by = t.proxy
	}
	for _, q := range stmts {
		a := by.ask(ctx, q, nil, protocol{})
		if a.lost != nil {
			return a.lost
		}
		t.history = append(t.history, q)
	}
	r.changed.Add(1)
	return nil
}

// compare asks one question of both sides.
func (r *run) compare(ctx context.Context, t *talk, q *query, p protocol) (diff string, failed bool, err error) {
	sql, bounds := p.text(q)
	r.asked.Add(int64(p.times))
	want := t.direct.ask(ctx, sql, bounds, p)
	if want.timedOut() {
		return "", true, ctx.Err()
	}
	last := t.last
	t.last = nil
	beside := make(chan answer, 1)
	if last != nil {
		r.asked.Add(int64(last.p.times))
		before, b := last.p.text(last.q)
		go func() { beside <- t.twin.ask(ctx, before, b, last.p) }()
	}
	failures := r.log.failures()
	got := t.proxy.ask(ctx, sql, bounds, p)
	if last != nil {
		if d := difference(last.q, last.want, <-beside); d != "" && ctx.Err() == nil {
			t.wrong = last
			return "beside another question: " + d, false, nil
		}
	}
	if ctx.Err() != nil {
		return "", false, ctx.Err()
	}
	if want.lost != nil {
		return "", false, fmt.Errorf("the server's connection: %w, in %s", want.lost, sql)
	}
	if t.twin != nil && t.inBlock == "" && want.lost == nil {
		t.last = &asked{q, p, want}
	}
	if want.err != "" {
		r.failed.Add(int64(p.times))
	}
	diff = difference(q, want, got)
	if diff != "" && want.err == "" && got.err != "" {
		// What a plan computes before it finds that a join is empty, and may fail by, changes with
		// the statistics, which autovacuum gathers at any moment: LIKE under a collation that is
		// not deterministic fails for whichever row comes.
		want = t.direct.ask(ctx, sql, bounds, p)
		diff = difference(q, want, got)
	}
	if diff == "" && r.log.failures() > failures && r.failsInternally(ctx, t, q, p) {
		diff = internalError
	}
	return diff, want.err != "", nil
}

// failsInternally reports whether it is this question that pgaccel fails at: the log does not say of which session a failure is,
// and another one's may be being made smaller.
func (r *run) failsInternally(ctx context.Context, t *talk, q *query, p protocol) bool {
	if !t.shrinks { // else it has the lock
		r.shrink.Lock()
		defer r.shrink.Unlock()
	}
	failures := r.log.failures()
	sql, bounds := p.text(q)
	t.proxy.ask(ctx, sql, bounds, p)
	return r.log.failures() > failures
}
