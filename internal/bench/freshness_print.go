package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

func us(d time.Duration) string { return fmt.Sprintf("%.0f", float64(d)/float64(time.Microsecond)) }

func rate(n int64, d time.Duration) string {
	return fmt.Sprintf("%.0f", float64(n)/max(d.Seconds(), 1e-9)/1e3)
}

func (f *freshness) print(out io.Writer) {
	f.printHeader(out)
	f.printCost(out)
	f.printHistogram(out)
	f.printApply(out)
	f.printHistory(out)
	f.printChecks(out)
}

// printUntilInterrupted prints the tables of what was measured whole before ctx ended.
func (f *freshness) printUntilInterrupted(out io.Writer) {
	if len(f.loads) == 0 {
		fmt.Fprintln(out, "Interrupted before a load was measured: no medians.")
		return
	}
	f.printHeader(out)
	fmt.Fprintf(out, "INTERRUPTED after %d of %d loads and %d of %d changes.\n", len(f.loads), len(f.costLoads()), len(f.applied), 2*len(f.changes()))
	f.printCost(out)
	f.printHistogram(out)
	if len(f.applied) > 0 {
		f.printApply(out)
	}
	f.printChecks(out)
	for _, wrong := range slices.Compact(f.wrong) {
		fmt.Fprintln(out, "  "+wrong)
	}
}

func (f *freshness) printHeader(out io.Writer) {
	fmt.Fprintf(out, "What it costs to be never stale: Postgres %s, %s beside each load of pgbench (%d writers, TPC-B,\nall tables copied), everything on this machine.\n", f.version, f.o.Duration, f.o.Clients)
}

func (f *freshness) printChecks(out io.Writer) {
	fmt.Fprintf(out, "\n%d answers were compared with Postgres' at the same snapshot, %d of them pgaccel's own: ", f.checks.exact, f.checks.accelerated)
	if len(f.wrong) == 0 {
		fmt.Fprintln(out, "no difference.")
	} else {
		fmt.Fprintf(out, "%d DIFFERENCES.\n", len(f.wrong))
	}
}

func (f *freshness) printCost(out io.Writer) {
	fmt.Fprintf(out, `
Cost of freshness, microseconds, as one client sees it that asks every millisecond or so.
  passed on    SELECT 1 through pgaccel
  accelerated  %s through pgaccel, whole
  freshness    the same without what passing on adds: gate, wait and execution
  wait         pgaccel's own measure of the wait alone (upper bound of the bucket)
%-13s %7s  %-11s %8s %8s %8s %8s  answered by pgaccel
`, probeSQL, "load", "tps", "", "p50", "p90", "p99", "max")
	for _, l := range f.loads {
		for i, row := range []struct {
			name  string
			times []time.Duration
		}{{"passed on", l.passed}, {"accelerated", l.accelerated}, {"freshness", l.freshness()}} {
			name, tps := "", ""
			if i == 0 {
				name, tps = l.name, fmt.Sprintf("%.0f", l.tps)
			}
			fmt.Fprintf(out, "%-13s %7s  %-11s %8s %8s %8s %8s", name, tps, row.name, us(quantile(row.times, 0.5)), us(quantile(row.times, 0.9)), us(quantile(row.times, 0.99)), us(quantile(row.times, 1)))
			if i == 1 {
				total := l.answered
				var why []string
				for _, reason := range slices.Sorted(maps.Keys(l.forwarded)) {
					total += l.forwarded[reason]
					why = append(why, fmt.Sprintf("%d %s", l.forwarded[reason], reason))
				}
				fmt.Fprintf(out, "  %.1f%% of %d", 100*float64(l.answered)/float64(max(total, 1)), total)
				if len(why) > 0 {
					fmt.Fprintf(out, " (%s)", strings.Join(why, ", "))
				}
			}
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%-13s %7s  %-11s", "", "", "wait")
		for _, q := range []float64{0.5, 0.9, 0.99, 1} {
			if bound, there := waited(l.waits[0], l.waits[1], q); !there {
				fmt.Fprintf(out, " %8s", "-")
			} else if bound > time.Minute {
				fmt.Fprintf(out, " %8s", "more")
			} else {
				fmt.Fprintf(out, " %8s", us(bound))
			}
		}
		fmt.Fprintln(out)
	}
}

// printHistogram shows the distribution of freshness, a bar for each load.
func (f *freshness) printHistogram(out io.Writer) {
	fmt.Fprintf(out, "\nDistribution of freshness, percent of the queries\n%-10s", "up to us")
	for _, l := range f.loads {
		fmt.Fprintf(out, "  %-14s", l.name)
	}
	fmt.Fprintln(out)
	lower := time.Duration(0)
	for upper := 64 * time.Microsecond; ; upper *= 2 {
		last := upper > 60*time.Millisecond
		name := us(upper)
		if last {
			name = "more"
		}
		fmt.Fprintf(out, "%-10s", name)
		for _, l := range f.loads {
			n, times := 0, l.freshness()
			for _, t := range times {
				if t > lower && (t <= upper || last) || lower == 0 && t == 0 {
					n++
				}
			}
			share := 100 * float64(n) / float64(max(len(times), 1))
			bar := strings.Repeat("#", int(share/10+0.5))
			fmt.Fprintf(out, "  %-14s", strings.TrimSuffix(fmt.Sprintf("%3.0f %s", share, bar), " "))
		}
		fmt.Fprintln(out)
		if last {
			return
		}
		lower = upper
	}
}

func (f *freshness) printApply(out io.Writer) {
	fmt.Fprintf(out, `
Applying changes, thousands of changed rows a second. Receivers and walsenders stand still while the changes are made;
then one after the other takes them in: pg_recvlogical into /dev/null, the same stream options; pgaccel, until it has applied them.
%-20s %9s %9s %9s %9s %7s %10s %8s  %s
`, "change", "rows", "Postgres", "null sink", "pgaccel", "ratio", "walsender", "pgaccel", "then a query")
	each := func(d time.Duration, rows int64) string {
		return fmt.Sprintf("%.2f us", float64(d)/float64(time.Microsecond)/float64(max(rows, 1)))
	}
	for _, r := range f.applied {
		name, after := r.name, ms(r.shown)+" ms"
		if r.busy {
			name += " *"
			after += fmt.Sprintf("; %d queries meanwhile", r.queries)
		}
		for reason := range r.reasons {
			after += ", forwarded: " + reason
		}
		fmt.Fprintf(out, "%-20s %9d %9s %9s %9s %6.2fx %10s %8s  %s\n", name, r.rows, rate(r.rows, r.written), rate(r.rows, r.sink), rate(r.rows, r.pgaccel),
			r.sink.Seconds()/max(r.pgaccel.Seconds(), 1e-9), each(r.used[0], r.rows), each(r.used[1], r.rows), after)
	}
	fmt.Fprintln(out, "* while a client asks pgaccel for "+whole+"\nratio: pgaccel's rate / the null sink's; then the processor time for each row: of the null sink's walsender, of pgaccel")
}

func (f *freshness) printHistory(out io.Writer) {
	fmt.Fprintf(out, "\nHistory under a long reader (REPEATABLE READ, held open) beside %.0f transactions/s\n%9s  %-9s %10s %12s %12s %15s  %s\n", f.history.tps, "second", "snapshot", "commits", "history", "resident", "others' query", "its queries")
	known := func(n int64, text string) string {
		if n < 0 {
			return "-"
		}
		return text
	}
	for _, s := range f.history.samples {
		held, by := "held", "forwarded"
		if s.accelerated {
			by = "accelerated, same answer"
		}
		if !s.held {
			held, by = "released", ""
		}
		fmt.Fprintf(out, "%9.1f  %-9s %10s %12s %12s %12s us  %s\n", s.at.Seconds(), held, known(s.commits, fmt.Sprint(s.commits)), known(s.bytes, size(s.bytes)), size(s.resident), us(s.view), by)
	}
}
