package referee

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Report is what a run found.
type Report struct {
	Queries     int
	Accelerated int
	Reasons     map[string]int    // forwarded executions
	Forms       map[string][2]int // executions of the forms of blocks, and the accelerated
	Details     map[string]int    // as Reasons, with what else was said
	Changes     int
	Failed      int // executions that PostgreSQL answers with an error
	Differences []string
	Took        time.Duration
	Shared      int // scans that joined another
	Indexed     int // conditions that a bitmap index answered for a segment, or a device's for all
	Narrowed    int // executions of which bitmap indexes said on a device which rows to look at

	OnDevice  int            // executions that a device ran
	Streamed  int            // of them, whose columns did not fit it
	Fallbacks map[string]int // those that it was offered and did not run
}

// Share is the accelerated part of the queries.
func (r *Report) Share() float64 {
	return float64(r.Accelerated) / float64(max(r.Queries, 1))
}

// valid is the accelerated part of the queries without those that PostgreSQL answers with an error, and
// without so many others.
func (r *Report) valid(without int) float64 {
	return float64(r.Accelerated) / float64(max(r.Queries-r.Failed-without, 1))
}

// barred counts executions that were forwarded for what the session or a change had said, whatever the
// statement was.
func (r *Report) barred() (n int) {
	for _, reason := range []string{"mode off", "session settings", "own writes", "definition changed"} {
		n += r.Reasons[reason]
	}
	return n
}

// leastShare is the accelerated share of plain queries below which a run proves too little,
// leastBlocks that of trees of blocks, of which some have a form that is forwarded.
const leastShare, leastBlocks = 0.9, 0.65

// LeastShare is that of a run: what Literals and Limits ask need not be accelerated, nor
// what shows one of several equal texts of a nondeterministic collation, or searches in it.
func (o *Options) LeastShare() float64 {
	blocks := float64(o.Blocks) / 100
	share := (leastShare*(1-blocks) + leastBlocks*blocks) * float64(100-o.Literals-o.Limits) / 100
	if o.Collation == "ci" {
		share *= 0.8
	}
	return share
}

func (p *Report) print(w io.Writer) {
	fmt.Fprintf(w, "referee: %d queries in %s (%.0f a second), %d changes\n", p.Queries, p.Took.Round(time.Second), float64(p.Queries)/p.Took.Seconds(), p.Changes)
	fmt.Fprintf(w, "  accelerated %8d  %5.1f %%\n", p.Accelerated, 100*p.Share())
	fmt.Fprintf(w, "  accelerated           %5.1f %% of those without an error, %.1f %% of these where the session allows it\n", 100*p.valid(0), 100*p.valid(p.barred()))
	fmt.Fprintf(w, "  errors      %8d  %5.1f %%\n", p.Failed, 100*float64(p.Failed)/float64(max(p.Queries, 1)))
	fmt.Fprintf(w, "  scans shared %d, conditions answered by an index %d, queries narrowed on a device %d\n", p.Shared, p.Indexed, p.Narrowed)
	if p.OnDevice > 0 || len(p.Fallbacks) > 0 {
		fmt.Fprintf(w, "  on a device %8d  %5.1f %%, %d streamed\n", p.OnDevice, 100*float64(p.OnDevice)/float64(max(p.Queries, 1)), p.Streamed)
		for _, reason := range slices.SortedFunc(maps.Keys(p.Fallbacks), func(a, b string) int { return p.Fallbacks[b] - p.Fallbacks[a] }) {
			fmt.Fprintf(w, "  on the CPU  %8d  %5.1f %%  %s\n", p.Fallbacks[reason], 100*float64(p.Fallbacks[reason])/float64(max(p.Queries, 1)), reason)
		}
	}
	forwarded := 0
	for _, reason := range slices.SortedFunc(maps.Keys(p.Reasons), func(a, b string) int { return p.Reasons[b] - p.Reasons[a] }) {
		n := p.Reasons[reason]
		forwarded += n
		fmt.Fprintf(w, "  forwarded   %8d  %5.1f %%  %s\n", n, 100*float64(n)/float64(max(p.Queries, 1)), reason)
	}
	if rest := p.Queries - forwarded - p.Accelerated; rest > 0 {
		fmt.Fprintf(w, "  relayed     %8d  %5.1f %%\n", rest, 100*float64(rest)/float64(max(p.Queries, 1)))
	}
	p.printForms(w)
	for _, d := range slices.SortedFunc(maps.Keys(p.Details), func(a, b string) int { return p.Details[b] - p.Details[a] }) {
		fmt.Fprintf(w, "  forwarded   %8d  %s\n", p.Details[d], d)
	}
	fmt.Fprintf(w, "referee: %d differences\n", len(p.Differences))
	for _, d := range p.Differences {
		fmt.Fprintf(w, "%s\n", d)
	}
}

// samples prints shapes that were forwarded, a few for each reason.
func (r *run) samples() {
	ctx := context.Background()
	conn, err := connect(ctx, r.stack.proxy)
	if err != nil {
		return
	}
	defer conn.Close(ctx)
	a := conn.ask(ctx, fmt.Sprintf(`SELECT concat_ws(': ', reason, detail), query FROM (SELECT reason, detail, query, row_number() OVER (PARTITION BY reason ORDER BY md5(query)) AS n
		FROM pgaccel.queries WHERE forwarded > 0) q WHERE n <= %d ORDER BY 1`, r.Samples), nil, protocol{})
	for _, row := range a.rows {
		fmt.Fprintf(r.Out, "  [%s] %s\n", row[0], row[1])
	}
}

// found reports a difference, as small as it can be made.
func (r *run) found(ctx context.Context, t *talk, s *schema, q *query, p protocol, d string) error {
	r.shrink.Lock()
	defer r.shrink.Unlock()
	t.shrinks = true
	defer func() { t.shrinks = false }()
	sql, bounds := p.text(q)
	block := t.inBlock
	settings := slices.Clone(t.settings)
	note := ""
	if t.own != nil {
		note = "-- amid own changes: " + oneLine(strings.Join(t.own, "; ")) + "\n"
	}
	// Does it stay? A difference that goes away by itself is one of time.
	if again, _, err := r.compare(ctx, t, q, p); err != nil {
		return err
	} else if again == "" {
		note += "-- It went away when asked again.\n"
	}
	text := fmt.Sprintf("-- %s\n%s-- %s, in %q, settings %q, parameters %s\n%s;\n", oneLine(d), note, p, block, settings, describeBounds(bounds), sql)
	fmt.Fprintf(r.Out, "referee: DIFFERENCE\n%s", text)
	if t.proxy.IsClosed() || t.direct.IsClosed() {
		t.close()
		var err error
		fresh, err := r.open(ctx, t.number)
		if err != nil {
			return err
		}
		*t = *fresh
		t.shrinks = true
	} else if err := t.endBlock(ctx); err != nil {
		return err
	}
	small, err := r.reduce(ctx, t, s, q, p, settings)
	switch {
	case err != nil:
		fmt.Fprintf(r.Out, "referee: not made smaller: %v\n", err)
		text += "-- after:\n-- " + strings.ReplaceAll(strings.Join(t.history[max(0, len(t.history)-30):], ";\n"), "\n", "\n-- ") + "\n"
	default:
		text = small
		fmt.Fprintf(r.Out, "referee: made smaller:\n%s", text)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Differences = append(r.report.Differences, text)
	if r.Dir != "" {
		name := filepath.Join(r.Dir, fmt.Sprintf("found-%s%d-%d.sql", strings.TrimPrefix(r.Collation+"-", "-"), r.Seed, len(r.report.Differences)))
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(r.Out, "referee: written to %s\n", name)
	}
	if len(r.report.Differences) >= r.Options.Differences {
		r.stop()
	}
	return nil
}

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", `\n`) }

func describeBounds(bs []bound) string {
	var out []string
	for _, b := range bs {
		v := "NULL"
		if b.value != nil {
			v = quote(*b.value)
		}
		out = append(out, fmt.Sprintf("%s/%d", v, b.oid))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// errorLog keeps what pgaccel logs as an error: it forwards what it fails at, so that
// nothing else would tell.
type errorLog struct {
	next slog.Handler // may be nil
	mu   sync.Mutex
	seen []string
	n    int
}

// internalError is the difference where there is none but in the log.
const internalError = "pgaccel failed within, and forwarded: see the log"

// failures is how many errors have been logged.
func (l *errorLog) failures() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

func (l *errorLog) logger() *slog.Logger { return slog.New(l) }

// Enabled implements slog.Handler.
func (l *errorLog) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError || l.next != nil && l.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (l *errorLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		text := r.Message
		r.Attrs(func(a slog.Attr) bool { text += fmt.Sprintf(" %s=%v", a.Key, a.Value); return true })
		l.mu.Lock()
		if l.n++; len(l.seen) < 10 {
			l.seen = append(l.seen, text)
		}
		l.mu.Unlock()
	}
	if l.next != nil && l.next.Enabled(ctx, r.Level) {
		return l.next.Handle(ctx, r)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (l *errorLog) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l *errorLog) WithGroup(string) slog.Handler { return l }

func (l *errorLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}
