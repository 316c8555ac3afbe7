package advise

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// width is the longest line, in characters.
const width = 140

// Statements behind the first few of less than this share of the time are only counted.
const (
	shownShare = 0.001
	shownLeast = 10
)

// Text writes the report for people.
func (r *Report) Text(w io.Writer) error {
	p := &printer{w: w}
	p.line("database %s, as role %s; nothing on the server was changed", r.Database, r.Role)
	if r.Since != nil {
		p.line("statistics since %s", r.Since.UTC().Format(time.DateTime))
	}
	r.tables(p)
	if r.statements {
		r.listStatements(p)
	}
	r.recommendation(p)
	return p.err
}

func (r *Report) tables(p *printer) {
	p.line("")
	p.line("Tables")
	rows := [][]string{{"table", "rows", "on server", "memory", "seq scans", "rows read", "index scans", "changes", "take", "why"}}
	guessed := false
	for _, t := range r.Tables {
		size := Size(t.Memory.Bytes)
		switch t.Memory.Method {
		case bySample:
			size = "~" + size
		case byTypes:
			size, guessed = "?"+size, true
		}
		u := &t.Usage
		rows = append(rows, []string{t.Name, count(t.Memory.Rows), Size(t.Server), size, count(u.SeqScans), count(u.SeqRows + u.IdxRows), count(u.IdxScans),
			count(u.Inserts + u.changed()), map[bool]string{true: "yes", false: "no"}[t.Take], t.Why})
	}
	p.table(rows, "lrrrrrrrll", 0)
	p.line("all tables: %s of columns; --memory %s. ~ is from a sample, encoded as a copy is", Size(r.MemoryAll), Size(r.MemoryLimit))
	if guessed {
		p.line("? is guessed by the columns' types, for want of SELECT or time:")
		for _, t := range r.Tables {
			if t.Memory.Method == byTypes {
				p.wrapped("  ", t.Name+": "+t.Memory.Detail)
			}
		}
	}
	for _, t := range r.Tables {
		var parts []string
		for _, l := range t.Left {
			parts = append(parts, l.Column+" ("+l.Reason+")")
		}
		if parts != nil {
			p.wrapped("", t.Name+": columns not kept, so that queries over them are forwarded: "+strings.Join(parts, ", "))
		}
	}
	if shown := slices.DeleteFunc(slices.Clone(r.Refused), func(n need) bool { return strings.HasPrefix(n.Reason, "view ") }); len(shown) > 0 {
		p.line("")
		p.line("Not copied")
		for _, n := range shown {
			p.wrapped("", n.Table+": "+n.Reason)
			if n.SQL != "" {
				p.wrapped("    ", n.SQL)
			}
		}
	}
	for _, text := range r.Missing {
		p.line("pattern %s matches no table", text)
	}
}

func (r *Report) listStatements(p *printer) {
	p.line("")
	p.line("Statements by total time (pg_stat_statements: %d, %s in all)", r.StatementsCount, duration(r.StatementsTotalMS))
	rows := [][]string{{"share", "total", "mean", "calls", "route", "est. mean", "est. gain", "query"}}
	var shares = map[route]float64{}
	gain := 0.0
	short := 0
	for i, st := range r.Statements {
		est, saved := "", ""
		if st.EstimatedMS > 0 {
			est, saved = duration(st.EstimatedMS), duration(st.GainMS)
			if st.Route == partial {
				saved = "<" + saved
			} else {
				gain += st.GainMS
			}
		}
		shares[st.Route] += st.Share
		if st.Share < shownShare && i >= shownLeast {
			short++
			continue
		}
		rows = append(rows, []string{percent(st.Share), duration(st.TotalMS), duration(st.MeanMS), count(st.Calls), string(st.Route), est, saved, strings.Join(strings.Fields(st.Query), " ")})
	}
	notes := func(i int) (lines []string) {
		if i == 0 {
			return nil
		}
		st := r.Statements[i-1]
		for _, why := range st.Reasons {
			lines = append(lines, why.String())
		}
		if st.Note != "" {
			lines = append(lines, st.Note)
		}
		return lines
	}
	p.tableWith(rows, "rrrrlrrl", 0, notes)
	if short > 0 {
		p.line("and %d more, of less than %s each (--format json lists them)", short, percent(shownShare))
	}
	p.line("of all time: accelerated %s, in part %s, forwarded %s, not known %s, not looked at %s", percent(shares[accelerated]), percent(shares[partial]), percent(shares[forwarded]),
		percent(shares[unknown]), percent(max(0, 1-shares[accelerated]-shares[partial]-shares[forwarded]-shares[unknown])))
	p.wrapped("", fmt.Sprintf("est. is a rough estimate, not a measurement: %.1f ms, and all rows of the tables at %.0f million a second. By it the accelerated ones would have saved %s", gateMS, rowsPerSecond/1e6, duration(gain)))
}

func (r *Report) recommendation(p *printer) {
	p.line("")
	if r.Command == "" {
		p.line("No table is recommended.")
		return
	}
	p.line("Recommended")
	p.wrapped("  ", "--accelerate "+strings.Join(r.Accelerate, " --accelerate "))
	p.line("  --memory %s", Size(r.Memory))
	if r.statements {
		p.line("  statements of %s of the time would be accelerated, of %s in part", percent(r.ShareAccelerated), percent(r.SharePartial))
	}
	seen := map[string]int{}
	var list []string
	sql := map[string]string{}
	for _, t := range r.Tables {
		for _, n := range t.Needs {
			if !t.Take {
				continue
			}
			if seen[n.Reason]++; seen[n.Reason] == 1 {
				list = append(list, n.Reason)
				sql[n.Reason] = n.SQL
			}
		}
	}
	if list != nil {
		p.line("First, were it role %s that pgaccel has", r.Role)
	}
	for _, why := range list {
		p.wrapped("  ", why)
		p.wrapped("      ", sql[why])
		if n := seen[why] - 1; n > 0 {
			p.line("      and so of %d more tables (--format json lists them)", n)
		}
	}
	p.line("Try, once pgaccel check finds nothing in the way")
	p.line("  %s", r.Command)
}

// printer writes lines; err is the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if _, err := fmt.Fprintf(p.w, strings.TrimRight(format, " ")+"\n", args...); p.err == nil {
		p.err = err
	}
}

// wrapped writes a text in lines of words, those after the first indented further. A word that is longer than a line
// is not cut.
func (p *printer) wrapped(indent, text string) {
	line := indent
	for _, word := range strings.Fields(text) {
		if n := utf8.RuneCountInString(line); n > len(indent)+2 && n+1+utf8.RuneCountInString(word) > width {
			p.line("%s", line)
			line = indent + "  "
		}
		if strings.TrimSpace(line) != "" {
			line += " "
		}
		line += word
	}
	p.line("%s", line)
}

// table aligns cells: l to the left, r to the right. The last column gets what is left of the width.
func (p *printer) table(rows [][]string, align string, indent int) {
	p.tableWith(rows, align, indent, nil)
}

// tableWith writes lines below each row, too.
func (p *printer) tableWith(rows [][]string, align string, indent int, below func(i int) []string) {
	const most = 44 // of a column but the last
	widths := make([]int, len(align))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = min(most, max(widths[i], utf8.RuneCountInString(cell)))
		}
	}
	rest := width - indent
	for _, n := range widths[:len(widths)-1] {
		rest -= n + 2
	}
	widths[len(widths)-1] = max(rest, 12)
	for at, row := range rows {
		line := strings.Repeat(" ", indent)
		for i, cell := range row {
			cell = cut(cell, widths[i])
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if align[i] == 'r' {
				cell = pad + cell
			} else if i < len(row)-1 {
				cell += pad
			}
			if i > 0 {
				line += "  "
			}
			line += cell
		}
		p.line("%s", strings.TrimRight(line, " "))
		if below != nil {
			for _, text := range below(at) {
				p.wrapped("        ", text)
			}
		}
	}
}

// cut shortens a text to n characters.
func cut(text string, n int) string {
	r := []rune(text)
	if len(r) <= n {
		return text
	}
	return string(r[:n-3]) + "..."
}

// Size writes bytes for people.
func Size(bytes int64) string {
	for _, u := range []struct {
		shift uint
		name  string
	}{{40, "TiB"}, {30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if bytes >= 1<<u.shift {
			n := float64(bytes) / float64(int64(1)<<u.shift)
			if n >= 99.95 || n == float64(int64(n)) {
				return fmt.Sprintf("%.0f%s", n, u.name)
			}
			return fmt.Sprintf("%.1f%s", n, u.name)
		}
	}
	return fmt.Sprintf("%dB", bytes)
}

// count writes a number for people.
func count(n int64) string {
	switch {
	case n >= 10_000_000_000:
		return fmt.Sprintf("%.0fG", float64(n)/1e9)
	case n >= 10_000_000:
		return fmt.Sprintf("%.0fM", float64(n)/1e6)
	case n >= 100_000:
		return fmt.Sprintf("%.0fk", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

// duration writes milliseconds for people.
func duration(ms float64) string {
	switch {
	case ms >= 3_600_000:
		return fmt.Sprintf("%.1fh", ms/3_600_000)
	case ms >= 60_000:
		return fmt.Sprintf("%.1fmin", ms/60_000)
	case ms >= 1000:
		return fmt.Sprintf("%.1fs", ms/1000)
	case ms >= 10:
		return fmt.Sprintf("%.0fms", ms)
	}
	return fmt.Sprintf("%.2fms", ms)
}
