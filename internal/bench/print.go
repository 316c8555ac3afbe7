package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// A query is slower than in Postgres where it takes this many times its time and so much more.
const slowerTimes, slowerBy = 1.1, 20 * time.Millisecond

// printResults prints one line a query, then sums and geometric means. The speed-ups are
// ratios of medians.
func printResults(out io.Writer, results []*result, duckdb bool) {
	head := fmt.Sprintf("%-7s %6s %12s %11s %9s", "query", "rows", "Postgres ms", "pgaccel ms", "speed-up")
	if duckdb {
		head += fmt.Sprintf(" %10s %9s", "DuckDB ms", "vs DuckDB")
	}
	fmt.Fprintln(out, head+"  answered by")
	var sumPostgres, sumPgaccel, sumDuckdb time.Duration
	var ratios, duckdbRatios []float64
	var slower, slowerThanPostgres, limited, notes []string
	for _, r := range results {
		postgres, pgaccel, duck := median(r.postgres), median(r.pgaccel), median(r.duckdb)
		sumPostgres, sumPgaccel, sumDuckdb = sumPostgres+postgres, sumPgaccel+pgaccel, sumDuckdb+duck
		ratios = append(ratios, r.speedup())
		over := "" // what Postgres needs at least
		if r.limited {
			over = ">"
			limited = append(limited, r.query.Name)
		}
		if pgaccel-postgres > slowerBy && float64(pgaccel) > slowerTimes*float64(postgres) {
			slowerThanPostgres = append(slowerThanPostgres, r.query.Name)
		}
		fmt.Fprintf(out, "%-7s %6d %12s %11s %8sx", r.query.Name, r.answer.n, over+ms(postgres), ms(pgaccel), over+ratio(r.speedup()))
		if duckdb {
			duckdbRatios = append(duckdbRatios, float64(duck)/float64(pgaccel))
			fmt.Fprintf(out, " %10s %8sx", ms(duck), ratio(float64(duck)/float64(pgaccel)))
		}
		by := "pgaccel, same answer"
		if r.limited {
			by = "pgaccel, not compared"
		}
		if len(r.forwarded) > 0 {
			by = "Postgres: " + strings.Join(slices.Sorted(maps.Keys(r.forwarded)), "; ")
		}
		if len(r.wrong) > 0 {
			by = "WRONG ANSWER"
		}
		if duckdb && duck < pgaccel {
			slower = append(slower, r.query.Name)
		}
		if r.differs != "" {
			by += fmt.Sprintf(" [%d]", len(notes)+1)
			notes = append(notes, fmt.Sprintf("[%d] %s: DuckDB's answer is another (%s): %s", len(notes)+1, r.query.Name, r.query.differs, r.differs))
		}
		fmt.Fprintln(out, "  "+by)
	}
	// The sum weighs long queries, the geometric mean weighs all alike.
	line := func(name, postgres, pgaccel, speedup, duck, of string) {
		fmt.Fprintf(out, "%-7s %6s %12s %11s %9s", name, "", postgres, pgaccel, speedup)
		if duckdb {
			fmt.Fprintf(out, " %10s %9s", duck, of)
		}
		fmt.Fprintln(out)
	}
	line("sum", ms(sumPostgres), ms(sumPgaccel), ratio(float64(sumPostgres)/float64(sumPgaccel))+"x", ms(sumDuckdb), ratio(float64(sumDuckdb)/float64(sumPgaccel))+"x")
	line("geomean", "", "", ratio(geomean(ratios))+"x", "", ratio(geomean(duckdbRatios))+"x")
	legend := "speed-up: Postgres ms / pgaccel ms"
	if duckdb {
		legend += "; vs DuckDB: DuckDB ms / pgaccel ms"
		if len(slower) > 0 {
			legend += "\nDuckDB is faster on " + strings.Join(slower, ", ")
		}
	}
	if len(slowerThanPostgres) > 0 {
		legend += fmt.Sprintf("\nSlower than Postgres by more than %v times and %v: %s", slowerTimes, slowerBy, strings.Join(slowerThanPostgres, ", "))
	}
	if len(limited) > 0 {
		legend += "\nEnded in Postgres at the limit, so that times and ratios are lower bounds, and not compared: " + strings.Join(limited, ", ")
	}
	fmt.Fprintln(out, legend)
	for _, note := range notes {
		fmt.Fprintln(out, note)
	}
}

// printBase prints what queries take through another pgaccel, where there is one.
func printBase(out io.Writer, results []*result) {
	var ratios []float64
	for _, r := range results {
		if len(r.base) == 0 {
			continue
		}
		if ratios == nil {
			fmt.Fprintf(out, "\n%-7s %11s %11s %7s\n", "query", "base ms", "pgaccel ms", "ratio")
		}
		here, base := median(r.pgaccel), median(r.base)
		ratios = append(ratios, float64(here)/float64(base))
		by := ""
		if r.baseForwarded {
			by = "  base: by Postgres"
		}
		fmt.Fprintf(out, "%-7s %11s %11s %7.3f%s\n", r.query.Name, ms(base), ms(here), float64(here)/float64(base), by)
	}
	if ratios != nil {
		fmt.Fprintf(out, "%-7s %11s %11s %7.3f\nratio: pgaccel ms / base ms\n", "geomean", "", "", geomean(ratios))
	}
}

// ms prints milliseconds with three significant digits or more.
func ms(d time.Duration) string { return digits(milliseconds(d)) }

func ratio(r float64) string { return digits(r) }

func digits(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// size prints bytes as MB (10^6).
func size(n int64) string {
	if n >= 1e9 {
		return fmt.Sprintf("%.2f GB", float64(n)/1e9)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
