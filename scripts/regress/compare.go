package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// difference is what the two runs answered to one statement.
type difference struct {
	line            int // of the script, where the statement ends
	statement       string
	direct, proxied string
	order           bool // the same lines in another order
}

func (d difference) String() string {
	kind := "DIFFERENT"
	if d.order {
		kind = "ORDER"
	}
	return fmt.Sprintf("=== %s line %d\n%s--- direct\n%s--- proxied\n%s\n", kind, d.line, d.statement, d.direct, d.proxied)
}

// compare splits both outputs at the lines of the script, which psql -a repeats, and
// compares what is between.
func compare(script, direct, proxied string) []difference {
	lines := strings.Split(strings.TrimRight(script, "\n"), "\n")
	a, b := split(lines, direct), split(lines, proxied)
	var found []difference
	first := 0
	for i := range lines {
		if strings.HasSuffix(strings.TrimSpace(lines[i]), ";") || a[i] != "" {
			if a[i] != b[i] && !explains(lines[first:i+1]) {
				d := difference{line: i + 1, statement: strings.Join(lines[first:i+1], "\n") + "\n", direct: a[i], proxied: b[i]}
				d.order = sorted(a[i]) == sorted(b[i])
				found = append(found, d)
			}
			first = i + 1
		}
	}
	return found
}

// explains tells whether a statement is an EXPLAIN: pgaccel's plans are its own, and beside the
// server's it says why these are given.
func explains(lines []string) bool { return slices.ContainsFunc(lines, plans.MatchString) }

var plans = regexp.MustCompile(`(?i)^\s*explain\b`)

// split returns what an output has after each line of the script.
func split(script []string, output string) []string {
	after := make([]string, len(script))
	silent := unrepeated(script)
	at := -1
	for line := range strings.Lines(output) {
		next := at + 1
		for next < len(script) && silent[next] {
			next++
		}
		if next < len(script) && strings.TrimRight(line, "\n") == script[next] {
			at = next
			continue
		}
		if at >= 0 {
			after[at] += line
		}
	}
	return after
}

// unrepeated tells which lines psql does not repeat: empty ones, the data of COPY, and what stands
// where the script has it not.
func unrepeated(script []string) []bool {
	silent := make([]bool, len(script))
	data, off := false, false
	for i, line := range script {
		command := strings.TrimSpace(line)
		silent[i] = line == "" || data || off
		switch {
		case data:
			data = command != `\.`
		case fromStdin.MatchString(line):
			data = true
		case command == `\set ECHO none`:
			off = true
		case command == `\set ECHO all`:
			off = false
		}
	}
	return silent
}

func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
