package referee

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

const (
	// hardRows are the rows of the table that expressions are over: of the first half, values are mostly mild, so that
	// fewer expressions fail.
	hardRows = 64
	// batchSize is the number of expressions in one SELECT.
	batchSize = 32
)

// failsFunction returns the rows, of those from first to before last, for which an expression is an error.
const failsFunction = `CREATE FUNCTION rf_hard.fails(e text, first int, last int) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE n int; middle int := (first + last) / 2;
BEGIN
 EXECUTE format('SELECT count(x) FROM (SELECT (%s) AS x FROM ` + hardTableName + ` WHERE id >= %s AND id < %s OFFSET 0) s', e, first, last) INTO n;
 RETURN '{}';
EXCEPTION WHEN others THEN
 IF last - first = 1 THEN RETURN ARRAY[first]; END IF;
 RETURN rf_hard.fails(e, first, middle) || rf_hard.fails(e, middle, last);
END $$`

// expressionRun asks for many expressions in one statement, each of rows for which the server has no error; of those for which it
// has one, one is asked alone. What is forwarded is asked in halves.
type expressionRun struct {
	Options
	stack       *stack
	asked       atomic.Int64
	failing     atomic.Int64 // expressions that are errors of some rows
	forwarded   atomic.Int64 // expressions that were, though they were asked of rows without errors
	mu          sync.Mutex
	differences []string
	answering   sync.Mutex // held while pgaccel answers: its counters say whether it did
	counted     map[string]int
	forwards    map[string]string // an expression that was forwarded for each reason
	stop        context.CancelFunc
}

// RunExpressions asks for o.Queries random expressions of signatures that are answered, over a table of hard values.
func RunExpressions(ctx context.Context, o Options) (*Report, error) {
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
	st, err := startStack(ctx, o)
	if err != nil {
		return nil, err
	}
	defer st.stop()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r := &expressionRun{Options: o, stack: st, stop: stop, forwards: map[string]string{}}
	list, err := r.create(ctx)
	if err != nil {
		return nil, err
	}
	if r.counted, err = st.counts(); err != nil {
		return nil, err
	}
	before := r.counted
	start := time.Now()
	var wait sync.WaitGroup
	errs := make([]error, o.Sessions)
	for i := range o.Sessions {
		wait.Go(func() {
			if errs[i] = r.session(ctx, newExpressions(o.Seed+uint64(i)<<32, list, o.Collation == "" || o.Collation == "C")); errs[i] != nil {
				stop()
			}
		})
	}
	wait.Wait()
	now, err := st.counts()
	if err != nil {
		return nil, err
	}
	if now["internal error"] > before["internal error"] {
		errs = append(errs, errors.New("some were forwarded for an internal error"))
		if looker, err := connect(context.Background(), st.proxy); err == nil {
			var seen tally
			seen.look(context.Background(), looker)
			seen.internal(o.Out)
			looker.Close(context.Background())
		}
	}
	p := &Report{Queries: int(r.asked.Load()), Failed: int(r.failing.Load()), Took: time.Since(start), Reasons: since(now, before), Differences: append(r.differences, errorLog.take()...)}
	p.Accelerated = p.Reasons[""]
	delete(p.Reasons, "")
	fmt.Fprintf(o.Out, "referee: PostgreSQL %d, %d expressions in %.0f s, %d with errors, %d forwarded; statements: %d accelerated, %v\n",
		st.world.version, p.Queries, p.Took.Seconds(), p.Failed, r.forwarded.Load(), p.Accelerated, p.Reasons)
	for reason, e := range r.forwards {
		fmt.Fprintf(o.Out, "referee: forwarded for %s: %s\n", reason, e)
	}
	if ctx.Err() != nil && len(r.differences) < o.Differences {
		errs = append(errs, ctx.Err())
	}
	return p, errors.Join(errs...)
}

// create makes the table, and returns the server's signatures.
func (r *expressionRun) create(ctx context.Context) ([]signature, error) {
	conn, err := connect(ctx, r.stack.direct)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	stmts := append([]string{"BEGIN", "CREATE SCHEMA rf_hard"}, hardTable(rand.New(rand.NewPCG(r.Seed, 1)))...)
	for _, sql := range append(stmts, failsFunction, "COMMIT", "ANALYZE "+hardTableName) {
		if a := conn.ask(ctx, sql, nil, protocol{}); a.err != "" || a.lost != nil {
			return nil, fmt.Errorf("%s %w in %.400s", a.err, a.lost, sql)
		}
	}
	proxy, err := connect(ctx, r.stack.proxy)
	if err != nil {
		return nil, err
	}
	defer proxy.Close(ctx)
	if err := waitCopied(ctx, proxy, &schema{name: "rf_hard", tables: make([]*table, 1)}); err != nil {
		return nil, err
	}
	return readSignatures(ctx, conn)
}

// hardTable returns the statements that make the table.
func hardTable(r *rand.Rand) []string {
	var columns []string
	x := &expressions{r: r}
	for _, k := range hardKinds() {
		for n := range 2 {
			columns = append(columns, columnName(k, n)+" "+typeOfColumn(k, n))
		}
	}
	var rows []string
	for id := range hardRows {
		values := []string{fmt.Sprint(id)}
		for _, k := range hardKinds() {
			for n := range 2 {
				values = append(values, x.hardValue(k, n, id < hardRows/2))
			}
		}
		rows = append(rows, "("+strings.Join(values, ", ")+")")
	}
	return []string{"CREATE TABLE " + hardTableName + " (id int4 PRIMARY KEY, " + strings.Join(columns, ", ") + ")", "INSERT INTO " + hardTableName + " VALUES " + strings.Join(rows, ", ")}
}

// hardValue is a value of a column.
func (x *expressions) hardValue(k vector.Kind, n int, mild bool) string {
	if x.r.IntN(12) == 0 {
		return "NULL"
	}
	fits := func(s string) bool {
		switch k {
		case vector.BPChar, vector.Varchar:
			return len([]rune(s)) <= 3
		case vector.Numeric:
			return len(strings.TrimLeft(strings.Split(s, ".")[0], "-")) <= 9 && !strings.ContainsAny(s, "eE")
		}
		return true
	}
	number := k.IsInt() || k == vector.Numeric || k.IsFloat()
	for {
		list := slices.Concat(sqltype.Of(k.Element()).Samples, hardLiterals[k.Element()])
		switch {
		case mild && number:
			return fmt.Sprint(x.r.IntN(25) - 4)
		case k.IsArray():
			return x.literal(k)
		case k == vector.BPChar || k == vector.Varchar:
			list = append(list, hardLiterals[vector.Text]...)
		}
		if s := pick(x.r, list...); fits(s) {
			return quote(s) + "::" + typeOfColumn(k, n)
		}
	}
}

// session asks until enough has been asked.
func (r *expressionRun) session(ctx context.Context, x *expressions) error {
	direct, err := connect(ctx, r.stack.direct)
	if err != nil {
		return err
	}
	defer direct.Close(context.Background())
	proxy, err := connect(ctx, r.stack.proxy)
	if err != nil {
		return err
	}
	defer proxy.Close(context.Background())
	for _, s := range []*session{direct, proxy} {
		if a := s.ask(ctx, "SET TimeZone = 'UTC'", nil, protocol{}); a.lost != nil {
			return a.lost
		}
	}
	for ctx.Err() == nil && int(r.asked.Load()) < r.Queries {
		batch := make([]string, batchSize)
		for i := range batch {
			batch[i] = x.next()
		}
		if err := r.batch(ctx, direct, proxy, batch); err != nil {
			return err
		}
	}
	return nil
}

// batch compares expressions over all rows.
func (r *expressionRun) batch(ctx context.Context, direct, proxy *session, batch []string) error {
	columns := make([]string, len(batch))
	for i, e := range batch {
		columns[i] = "rf_hard.fails(" + quote(e) + ", 0, " + fmt.Sprint(hardRows) + ")::text"
	}
	a := direct.ask(ctx, "SELECT "+strings.Join(columns, ", "), nil, protocol{})
	if a.err != "" || a.lost != nil || ctx.Err() != nil {
		return errors.Join(errors.New(a.err), a.lost)
	}
	for i, e := range batch {
		columns[i] = e
		fails := strings.Trim(string(a.rows[0][i]), "{}")
		if fails == "" {
			continue
		}
		r.failing.Add(1)
		list := strings.Split(fails, ",")
		if _, err := r.compare(ctx, direct, proxy, batch[i:i+1], " WHERE id = "+list[int(r.asked.Load())%len(list)]); err != nil {
			return err
		}
		columns[i] = "CASE WHEN id NOT IN (" + fails + ") THEN " + e + " END"
	}
	r.asked.Add(int64(len(batch)))
	return r.halves(ctx, direct, proxy, columns)
}

// halves compares expressions that are no errors.
func (r *expressionRun) halves(ctx context.Context, direct, proxy *session, batch []string) error {
	reason, err := r.compare(ctx, direct, proxy, batch, "")
	if err != nil || reason == "" || ctx.Err() != nil {
		return err
	}
	if half := len(batch) / 2; half > 0 {
		if err := r.halves(ctx, direct, proxy, batch[:half]); err != nil {
			return err
		}
		return r.halves(ctx, direct, proxy, batch[half:])
	}
	r.forwarded.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if have, ok := r.forwards[reason]; !ok || len(batch[0]) < len(have) {
		r.forwards[reason] = batch[0]
	}
	return nil
}

// compare asks both sides for expressions. It returns why pgaccel forwarded them, "" where it did not.
func (r *expressionRun) compare(ctx context.Context, direct, proxy *session, batch []string, where string) (reason string, err error) {
	sql := "SELECT id, " + strings.Join(batch, ", ") + " FROM " + hardTableName + where + " ORDER BY id"
	want := direct.ask(ctx, sql, nil, protocol{})
	r.answering.Lock()
	got := proxy.ask(ctx, sql, nil, protocol{})
	now, err := r.stack.counts()
	for key, n := range now {
		if key != "" && n > r.counted[key] {
			reason = key
		}
	}
	r.counted = now
	r.answering.Unlock()
	if ctx.Err() != nil || err != nil {
		return "", err
	}
	if want.lost != nil || got.lost != nil {
		return "", fmt.Errorf("connection: %v, want %v: %s", got.lost, want.lost, sql)
	}
	if d := r.difference(batch, want, got); d != "" {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.differences = append(r.differences, d); len(r.differences) >= r.Differences {
			r.stop()
		}
		fmt.Fprintf(r.Out, "referee: difference: %s\n", d)
	}
	return reason, nil
}

// difference names the expression and the row in which two answers differ.
func (r *expressionRun) difference(batch []string, want, got answer) string {
	if len(batch) == 1 || want.err != "" || got.err != "" || len(want.rows) != len(got.rows) {
		if d := difference(&query{raw: "x", ordered: true}, want, got); d != "" {
			return strings.Join(batch, ", ") + ": " + d
		}
		return ""
	}
	for i, e := range batch {
		if want.fields[i+1] != got.fields[i+1] {
			return fmt.Sprintf("%s: column %+v, want %+v", e, got.fields[i+1], want.fields[i+1])
		}
		for j := range want.rows {
			if w, g := show(want.rows[j][i+1:i+2]), show(got.rows[j][i+1:i+2]); w != g {
				return fmt.Sprintf("%s: of row %s %s, want %s", e, want.rows[j][0], g, w)
			}
		}
	}
	return ""
}
