package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"pgaccel/internal/ssb"
)

// wireParts are what an execution's time goes to: the columns of a table, in milliseconds.
type wireParts [len(wireColumns)]float64

// The columns behind the query's name. Those of execute up to result are within it, from worker to kernels within the
// round trip.
var wireColumns = [...]string{"client", "untraced", "statement", "decide", "gate", "wait", "execute",
	"stream", "prepare", "round trip", "worker", "enqueue", "device", "kernels", "result", "write", "rest: client", "statement", "execute"}

const (
	wireClient = iota
	wireUntraced
	wireStatement
	wireDecide
	wireGate
	wireWait
	wireExecute
	wireStream
	wirePrepare
	wireRoundTrip
	wireWorker
	wireEnqueue
	wireDevice
	wireKernels
	wireResult
	wireWrite
	wireRestClient
	wireRestStatement
	wireRestExecute
)

// wireNotes say what is in the columns.
var wireNotes = []string{
	"client: from sending a query until its last row was read. untraced: the same of a pgaccel without a tracer. statement: from its arrival at pgaccel until its rows are handed to the kernel. decide, gate, wait, execute, write: the spans below it (docs/operations.md); execute may begin beside the gate, and again where that was in vain: both count.",
	"Of execute: the device's waiting for a stream or another query, preparing commands, the round trips to the worker, reading the result. Of a round trip: worker, from having read the batch until it replies; enqueue, until the device has all commands; device, by its first and last event, copies and kernels; kernels.",
	"rest: of the client's time what is not the statement's, of the statement's that in which none of its spans was under way, of execute's what is before and behind the device. The client's can be below 0: it may have its rows before pgaccel notes that they are written. Each number is a median of its own: they do not add up.",
	"The emulator executes commands as they stand: enqueue is 0 there.",
}

// wireExecution is one that a client has seen.
type wireExecution struct {
	query     int
	pid       uint32 // the server's process of its session
	sent      time.Time
	took      time.Duration
	statement *span // nil without
}

// parts takes an execution's time apart.
func (x *wireExecution) parts() (p wireParts) {
	s := x.statement
	p[wireClient], p[wireStatement], p[wireRestClient] = milliseconds(x.took), milliseconds(s.took), milliseconds(x.took-s.took)
	for column, name := range map[int]string{wireDecide: "decide", wireGate: "gate", wireWait: "wait", wireExecute: "execute", wireWrite: "write"} {
		p[column] = milliseconds(s.sum(name))
	}
	p[wireRestStatement], p[wireRestExecute] = milliseconds(s.uncovered()), p[wireExecute]
	for _, e := range s.below {
		for _, d := range e.below {
			for column, name := range map[int]string{wireStream: "wait", wirePrepare: "prepare", wireRoundTrip: "round_trip", wireWorker: "worker",
				wireEnqueue: "enqueue", wireDevice: "busy", wireKernels: "kernels", wireResult: "result"} {
				p[column] += d.attributes["pgaccel.device."+name+"_ms"]
			}
			p[wireRestExecute] -= milliseconds(d.took)
		}
	}
	return p
}

// wireModes are how the queries are asked.
var wireModes = [...]string{"1 client, simple protocol", "1 client, extended protocol, prepared", fmt.Sprintf("%d clients, simple protocol", clientsMany)}

const wireExtended, wireMany = 1, 2 // of them

// wireMeasured is what came of asking the queries in all modes.
type wireMeasured struct {
	executions [len(wireModes)][]wireExecution
	missing    [len(wireModes)]int // executions without spans
	perSecond  [len(wireModes)]float64
	cpu        [len(wireModes)]string
}

// wireRun is the part wire.
type wireRun struct {
	*statementsRun
	title   string
	queries []statement
	want    []answer
	spans   *spanReceiver
}

// The runs of a query that do not count.
const wireWarm, wireWarmQuick = 5, 2

// wire shows where the time of small queries goes between the kernels and the client, by the spans that pgaccel sends.
func (r *gpuRun) wire(ctx context.Context) error {
	kind := r.handOver()
	w, err := r.wireWorkload()
	if err != nil {
		return err
	}
	w.queries = append(w.queries, statement{Name: "count", SQL: "SELECT count(*) FROM " + w.tables[len(w.tables)-1]})
	s := &wireRun{statementsRun: &statementsRun{gpuRun: r, kind: kind}, title: w.title, queries: w.queries, want: make([]answer, len(w.queries))}
	if s.spans, err = newSpanReceiver(); err != nil {
		return err
	}
	defer s.spans.close()
	defer s.closeAll()
	if err := s.start(ctx, w, s.spans.environment()...); err != nil {
		return err
	}
	traced, failed := s.measure(ctx, true)
	var plain wireMeasured
	if failed == nil {
		if failed = s.serve(ctx, w); failed == nil {
			plain, failed = s.measure(ctx, false)
		}
	}
	for mode := range wireModes {
		failed = r.showSoFar(s.table(mode, &traced, &plain), failed)
	}
	return failed
}

// wireWorkload has the statements of WireOf.
func (r *gpuRun) wireWorkload() (w workload, err error) {
	switch r.WireOf {
	case "clickbench":
		w, err = r.clickbenchWorkload()
	case "tpch":
		w, err = r.tpchWorkload()
	default:
		if w, err = ssbWorkload(r.Scale); err == nil {
			w = inPieces(w, ssb.Source, r.Scale)
		}
	}
	if err == nil {
		err = r.choose(&w)
	}
	return w, err
}

// measure asks the queries in all modes.
func (s *wireRun) measure(ctx context.Context, traced bool) (m wireMeasured, err error) {
	if err := s.on(ctx, "cpu"); err != nil {
		return m, err
	}
	for i := range s.queries {
		if s.want[i], _, err = ask(ctx, s.conn, s.queries[i].SQL); err != nil {
			return m, fmt.Errorf("%s: %w", s.queries[i].Name, err)
		}
	}
	for mode, name := range wireModes {
		began := time.Now()
		before, err := s.counted(ctx)
		if err != nil {
			return m, err
		}
		s.spans.forget()
		clients := 1
		if mode == wireMany {
			clients = clientsMany
		}
		asked, err := s.ask(ctx, clients, mode == wireExtended)
		if err != nil {
			return m, fmt.Errorf("%s: %w", name, err)
		}
		n := len(asked.executions)
		m.executions[mode], m.perSecond[mode], m.cpu[mode] = asked.executions, float64(n)/asked.took.Seconds(), asked.cpu.perExecution(n, asked.took)
		after, err := s.counted(ctx)
		if err != nil {
			return m, err
		}
		if did := after.since(before).queries; did != int64(asked.all) {
			return m, fmt.Errorf("%s: %d of %d executions ran on the device; pgaccel's log says:\n  %s", name, did, asked.all, strings.Join(s.child.complaints(), "\n  "))
		}
		if traced {
			if m.missing[mode], err = s.spans.attach(ctx, m.executions[mode]); err != nil {
				return m, err
			}
		}
		s.took("wire: "+name, began)
	}
	return m, nil
}

// wireSample is what clients have asked: the executions that count, with their time and the processors', and how many there were in all.
type wireSample struct {
	executions []wireExecution
	took       time.Duration
	cpu        wireCPU
	all        int
}

// ask has clients ask the queries: one asks each some times in a row, several ask them in turns, each begins with another one.
func (s *wireRun) ask(ctx context.Context, clients int, prepared bool) (asked wireSample, err error) {
	conns := make([]*pgconn.PgConn, clients)
	defer func() {
		for _, c := range conns {
			if c != nil {
				c.Close(context.WithoutCancel(ctx))
			}
		}
	}()
	for i := range conns {
		if conns[i], err = s.connect(ctx); err != nil {
			return asked, err
		}
		if _, err := conns[i].Exec(ctx, "SET pgaccel.mode = force; SET pgaccel.device = "+s.kind).ReadAll(); err != nil {
			return asked, err
		}
		for k := range s.queries {
			if q := &s.queries[k]; prepared {
				if _, err := conns[i].Prepare(ctx, q.Name, q.SQL, nil); err != nil {
					return asked, fmt.Errorf("%s: %w", q.Name, err)
				}
			}
		}
	}
	warm := wireWarm
	if s.Quick {
		warm = wireWarmQuick
	}
	for _, runs := range []int{warm, s.wireRuns} {
		lists := make([][]wireExecution, clients)
		before, began := s.processorTimes(), time.Now()
		g, each := errgroup.WithContext(ctx)
		for i, c := range conns {
			g.Go(func() error {
				for k := range runs * len(s.queries) {
					query := k / runs
					if clients > 1 {
						query = (i + k) % len(s.queries)
					}
					x, err := s.execute(each, c, query, prepared)
					if err != nil {
						return err
					}
					lists[i] = append(lists[i], x)
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			return asked, err
		}
		asked.took, asked.cpu = time.Since(began), s.processorTimes().since(before)
		asked.executions = slices.Concat(lists...)
		asked.all += len(asked.executions)
	}
	return asked, nil
}

// execute asks one query, and compares the answer with the processor's.
func (s *wireRun) execute(ctx context.Context, c *pgconn.PgConn, query int, prepared bool) (x wireExecution, err error) {
	q := &s.queries[query]
	x = wireExecution{query: query, pid: c.PID(), sent: time.Now()}
	var a answer
	if prepared {
		a, x.took, err = askPrepared(ctx, c, q.Name)
	} else {
		a, x.took, err = ask(ctx, c, q.SQL)
	}
	if err == nil {
		if d := q.difference(s.want[query], a); d != "" {
			err = errors.New(d)
		}
	}
	if err != nil {
		return x, fmt.Errorf("%s: %w", q.Name, err)
	}
	return x, nil
}

// table shows a mode: a row a query, and one of all executions.
func (s *wireRun) table(mode int, traced, plain *wireMeasured) gpuTable {
	t := gpuTable{Part: "wire", Title: fmt.Sprintf("Between kernel and client: %s, where the device is demanded; medians of %d runs in ms, %s", s.title, s.wireRuns, wireModes[mode]),
		Columns: append([]string{"query"}, wireColumns[:]...)}
	all := -1
	row := func(name string, query int) {
		var parts []wireParts
		for i := range traced.executions[mode] {
			if x := &traced.executions[mode][i]; x.statement != nil && (query == all || x.query == query) {
				parts = append(parts, x.parts())
			}
		}
		if len(parts) == 0 {
			return
		}
		var untraced []time.Duration
		for i := range plain.executions[mode] {
			if x := &plain.executions[mode][i]; query == all || x.query == query {
				untraced = append(untraced, x.took)
			}
		}
		computed, cells := 0, []any{name}
		for column := range wireColumns {
			var values []float64
			for i := range parts {
				if column < wireStream || column > wireResult || parts[i][wireRoundTrip] > 0 {
					values = append(values, parts[i][column])
				}
			}
			if len(values) == 0 {
				cells = append(cells, nil)
				continue
			}
			if column == wireRoundTrip {
				computed = len(values)
			}
			slices.Sort(values)
			cells = append(cells, values[len(values)/2])
		}
		if query == all && computed < len(parts) {
			t.Notes = append(t.Notes, fmt.Sprintf("%.0f %% of the executions had the result of an equal one that was under way: they do not count from stream to result.", 100-100*float64(computed)/float64(len(parts))))
		}
		cells[1+wireUntraced] = nil
		if len(untraced) > 0 {
			cells[1+wireUntraced] = milliseconds(median(untraced))
		}
		t.Rows = append(t.Rows, cells)
	}
	for i := range s.queries {
		row(s.queries[i].Name, i)
	}
	row("all", all)
	if len(t.Rows) == 0 {
		return t
	}
	if mode == 0 {
		t.Notes = append(t.Notes, wireNotes...)
	}
	last := t.Rows[len(t.Rows)-1]
	if without, ok := last[1+wireUntraced].(float64); ok {
		with := last[1+wireClient].(float64)
		t.Notes = append(t.Notes, fmt.Sprintf("Tracing: the client's median is %.4f ms with it, %.4f without.", with, without))
	}
	if mode == wireMany {
		note := fmt.Sprintf("Queries a second: %.0f", traced.perSecond[mode])
		if plain.perSecond[mode] > 0 {
			note += fmt.Sprintf(", %.0f without tracing", plain.perSecond[mode])
		}
		t.Notes = append(t.Notes, note+".")
	}
	if plain.cpu[mode] != "" {
		t.Notes = append(t.Notes, plain.cpu[mode]+" The clients are this program, which checks answers.")
	}
	if n := traced.missing[mode]; n > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("INCOMPLETE: no spans came of %d executions.", n))
	}
	return t
}
