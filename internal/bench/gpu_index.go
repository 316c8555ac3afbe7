package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// The bounds of --index-rows: keys are int, and each connection is to have some rows.
const (
	indexRowsMin = 10_000
	indexRowsMax = 2_000_000_000
)

// indexModes are the values of pgaccel.index that are compared.
var indexModes = [...]string{"off", "force", "auto"}

// The places in indexModes.
const (
	indexOff = iota
	indexForced
	indexAuto
)

// indexSide is a statement on the device with one of indexModes.
type indexSide struct {
	client  time.Duration // median
	compute time.Duration // of kernels
	bytes   int64         // that these read
	ran     bool          // all executions were the device's
	asked   bool          // some of them asked bitmap indexes
}

// indexResult is what was measured of a statement.
type indexResult struct {
	rows  int     // of the answer
	left  float64 // of the table's rows, in percent
	sides [len(indexModes)]indexSide
}

// indexRun has a session for each setting: one whose settings change begins the next execution with the old ones, drops that
// and begins anew, and both count.
type indexRun struct {
	*statementsRun
	sessions  [len(indexModes)]*pgconn.PgConn // that demand the device
	processor *pgconn.PgConn                  // that does not use it, nor indexes
}

func (s *indexRun) session(ctx context.Context, device, index string) (*pgconn.PgConn, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := c.Exec(ctx, fmt.Sprintf("SET pgaccel.mode = force; SET pgaccel.device = %s; SET pgaccel.index = %s", device, index)).ReadAll(); err != nil {
		c.Close(ctx)
		return nil, err
	}
	return c, nil
}

// index measures conditions that bitmap indexes can answer, through the wire and on the device: without indexes, with those
// that there are, and as pgaccel chooses. Answers are compared with each other and with the processor's.
func (r *gpuRun) index(ctx context.Context) error {
	if r.IndexRows < indexRowsMin || r.IndexRows > indexRowsMax {
		return fmt.Errorf("%d rows: use %d to %d", r.IndexRows, indexRowsMin, indexRowsMax)
	}
	kind := r.handOver()
	tables, err := indexTables(int(r.IndexRows))
	if err != nil {
		return err
	}
	var w workload
	for _, t := range tables {
		w.tables = append(w.tables, t.name)
	}
	w.load = func(ctx context.Context, dsn string, p *progress) error { return loadIndexTables(ctx, dsn, tables, p) }
	s := &indexRun{statementsRun: &statementsRun{gpuRun: r, kind: kind}}
	defer s.closeAll()
	if err := s.start(ctx, w); err != nil {
		return err
	}
	for i, index := range indexModes {
		if s.sessions[i], err = s.session(ctx, kind, index); err != nil {
			return err
		}
		defer s.sessions[i].Close(context.WithoutCancel(ctx))
	}
	if s.processor, err = s.session(ctx, "cpu", "off"); err != nil {
		return err
	}
	defer s.processor.Close(context.WithoutCancel(ctx))
	means := gpuTable{Part: "index", Title: "Bitmap indexes on the device: geometric means of ratios",
		Columns: []string{"table", "queries", "computing: off / force", "off / auto", "client: off / force", "off / auto"}}
	var wrong []string
	var all []indexResult
	var failed error
	for _, t := range tables {
		if r.Quick { // each has kernels to be compiled, which takes seconds for the emulator
			t.queries = t.quickQueries()
		}
		results, bad, err := s.table(ctx, t)
		wrong = append(wrong, bad...)
		all = append(all, results...)
		if len(results) > 0 {
			means.Rows = append(means.Rows, meansOf(t.name, results))
		}
		if err != nil {
			failed = err
			break
		}
	}
	if len(all) > 0 {
		means.Rows = append(means.Rows, meansOf("all", all))
	}
	return errors.Join(r.showSoFar(means, failed), wrongAnswers(wrong))
}

// table measures the queries over one table, and shows them.
func (s *indexRun) table(ctx context.Context, t *indexTable) (results []indexResult, wrong []string, err error) {
	memory, err := s.build(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	shown := gpuTable{Part: "index", Title: fmt.Sprintf("Bitmap indexes on the device, through the wire: %s, %d rows; medians of %d runs in ms, 1 client", t.name, t.rows, s.Runs),
		Columns: []string{"query", "rows", "% left", "off", "force", "auto", "computing: off", "force", "auto", "MB read: off", "force", "auto", "computing: off / force", "asked"},
		Notes: []string{memory,
			"off, force, auto: pgaccel.index, where the device is demanded. rows: of the answer; % left: of the table's rows by the condition. computing: the time of kernels, of the device's executions only. asked: with which settings bitmap indexes were."}}
	left := map[string]float64{} // by condition
	for i := range t.queries {
		q := &t.queries[i]
		one, count, bad, failed := s.query(ctx, q)
		for _, w := range bad {
			wrong = append(wrong, t.name+" "+w)
		}
		if failed != nil {
			err = fmt.Errorf("%s %s: %w", t.name, q.Name, failed)
			break
		}
		if _, known := left[q.where]; !known {
			left[q.where] = 100 * float64(count) / float64(t.rows)
		}
		one.left = left[q.where]
		results = append(results, one)
		row := one.row(q.Name)
		shown.Rows = append(shown.Rows, row)
		// The machine may be taken away before the table is shown.
		fmt.Fprintf(s.Progress, "index: %s %s: ", t.name, q.Name)
		for k, v := range row[1:] {
			fmt.Fprintf(s.Progress, "%s %s, ", shown.Columns[k+1], cell(v))
		}
		fmt.Fprintln(s.Progress)
	}
	return results, wrong, s.showSoFar(shown, err)
}

// Indexes are built in the background, for columns that some queries had conditions on.
const (
	indexUses  = 3
	indexCalm  = time.Second     // without another index: there will be no more
	indexLimit = 2 * time.Minute // to wait for that
	indexPoll  = 100 * time.Millisecond
)

// build asks each query some times and waits until there are indexes of all columns of which they are worth their memory to
// pgaccel. It returns what they take.
func (s *indexRun) build(ctx context.Context, t *indexTable) (what string, err error) {
	began := time.Now()
	for i := range t.queries {
		for range indexUses {
			if _, _, err := ask(ctx, s.sessions[indexForced], t.queries[i].SQL); err != nil {
				return "", fmt.Errorf("%s %s: %w", t.name, t.queries[i].Name, err)
			}
		}
	}
	asked := time.Since(began)
	bytes := func(codec string) (int64, error) {
		return queryInt(ctx, s.conn, fmt.Sprintf(`SELECT COALESCE(sum(bytes), 0)::bigint FROM pgaccel.columns WHERE "table" = 'public.%s' AND codec %s 'index'`, t.name, codec))
	}
	began = time.Now()
	var now int64
	for last, since := int64(-1), began; time.Since(since) < indexCalm && time.Since(began) < indexLimit; {
		if now, err = bytes("="); err != nil {
			return "", err
		}
		if now != last {
			last, since = now, time.Now()
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(indexPoll):
		}
	}
	columns, err := bytes("<>")
	if err != nil {
		return "", err
	}
	what = fmt.Sprintf("Columns take %s, bitmap indexes %s.", size(columns), size(now))
	if time.Since(began) >= indexLimit {
		what += " INCOMPLETE: some of these were still being built."
	}
	fmt.Fprintf(s.Progress, "index: %s: the first executions took %v, the wait for indexes %v. %s\n", t.name, asked.Round(100*time.Millisecond), time.Since(began).Round(100*time.Millisecond), what)
	return what, nil
}

// query measures a statement with all settings. count is the first value of its answer.
func (s *indexRun) query(ctx context.Context, q *indexQuery) (one indexResult, count int64, wrong []string, err error) {
	var want answer
	compared := func(c *pgconn.PgConn, what string, runs int) (times []time.Duration, err error) {
		times, bad, err := s.times(ctx, c, &q.statement, runs, &want)
		if bad != "" {
			wrong = append(wrong, fmt.Sprintf("%s (%s): %s", q.Name, what, bad))
		}
		return times, err
	}
	side := func(c *pgconn.PgConn, index string) (side indexSide, err error) {
		index = "index " + index
		if _, err := compared(c, index, 1); err != nil { // which may compile a kernel
			return side, err
		}
		before, err := s.counted(ctx)
		if err != nil {
			return side, err
		}
		times, err := compared(c, index, s.Runs)
		if err != nil {
			return side, err
		}
		after, err := s.counted(ctx)
		did, n := after.since(before), int64(len(times))
		return indexSide{median(times), did.compute / time.Duration(n), did.bytes / n, did.queries == n, did.bitmaps > 0}, err
	}
	for i, index := range indexModes {
		if one.sides[i], err = side(s.sessions[i], index); err != nil {
			return one, 0, wrong, err
		}
	}
	if _, err = compared(s.processor, "on the processor", 1); err != nil {
		return one, 0, wrong, err
	}
	one.rows = want.n
	first, _, _ := strings.Cut(string(want.rows), "\t")
	count, _ = strconv.ParseInt(strings.TrimSpace(first), 10, 64)
	return one, count, wrong, nil
}

// computed is the ratio of the computing times of two sides, 0 where one of them was not the device's.
func (x *indexResult) computed(of, by int) float64 {
	a, b := &x.sides[of], &x.sides[by]
	if !a.ran || !b.ran || b.compute == 0 {
		return 0
	}
	return float64(a.compute) / float64(b.compute)
}

// row is the statement's in the table.
func (x *indexResult) row(name string) []any {
	row := make([]any, 14)
	row[0], row[1], row[2] = name, x.rows, x.left
	var asked []string
	for i := range x.sides {
		side := &x.sides[i]
		row[3+i] = milliseconds(side.client)
		if side.ran {
			row[6+i], row[9+i] = milliseconds(side.compute), float64(side.bytes)/1e6
		}
		if side.asked {
			asked = append(asked, indexModes[i])
		}
	}
	if ratio := x.computed(indexOff, indexForced); ratio > 0 {
		row[12] = ratio
	}
	row[13] = strings.Join(asked, ", ")
	return row
}

// meansOf are the geometric means over some statements.
func meansOf(name string, results []indexResult) []any {
	row := []any{name, len(results)}
	for _, by := range []int{indexForced, indexAuto} {
		var list []float64
		for i := range results {
			if ratio := results[i].computed(indexOff, by); ratio > 0 {
				list = append(list, ratio)
			}
		}
		if list == nil { // the device took none
			row = append(row, nil)
			continue
		}
		row = append(row, geomean(list))
	}
	for _, by := range []int{indexForced, indexAuto} {
		var list []float64
		for i := range results {
			list = append(list, float64(results[i].sides[indexOff].client)/float64(results[i].sides[by].client))
		}
		row = append(row, geomean(list))
	}
	return row
}
