package main

import (
	"fmt"
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
func explains(statement []string) bool {
	for _, line := range statement {
		if code, _, _ := strings.Cut(strings.TrimSpace(line), "--"); code != "" {
			return len(code) >= 7 && strings.EqualFold(code[:7], "explain")
		}
	}
	return false
}

// split returns what an output has after each line of the script.
func split(script []string, output string) []string {
	after := make([]string, len(script))
	at := -1
	for line := range strings.Lines(output) {
		next := at + 1
		for next < len(script) && script[next] == "" { // psql does not repeat empty lines
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

func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
