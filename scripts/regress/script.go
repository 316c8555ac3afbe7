package main

import (
	"regexp"
	"strings"
)

// waitLine has the script wait until the tables made so far are copied; directly it
// does nothing.
const waitLine = `\! $REGRESS_WAIT`

var (
	makesTable = regexp.MustCompile(`(?i)^\s*(create (table|materialized|view|or replace view)|alter (table|type)|select .* into |truncate|commit|end)\b`)
	asks       = regexp.MustCompile(`(?i)^\s*\(*\s*(select|with|values|table|fetch)\b`)
	begins     = regexp.MustCompile(`(?i)^\s*(begin|start transaction)\b`)
	ends       = regexp.MustCompile(`(?i)^\s*(commit|end|rollback|abort)\s*(work|transaction)?\s*;`)
	fromStdin  = regexp.MustCompile(`(?i)^\s*copy\b.*\bfrom stdin\b`)
	digits     = regexp.MustCompile(`(?i)^\s*set extra_float_digits\b`)
	temporary  = regexp.MustCompile(`(?i)^(\s*create )(?:local )?temp(?:orary)? (table|view|recursive view)\b`)
	nameColumn = regexp.MustCompile(`^(\s+\w+\s+)name(,?\s*)$`)
	dollar     = regexp.MustCompile(`\$[a-zA-Z_]*\$`)
)

// paced puts a waitLine before the first question after tables were made, and leaves out what would
// have all floats forwarded. Where adapted is true, temporary tables become others, and columns of type name
// text. It reads lines, not SQL: where it is wrong both runs are told the same.
func paced(script string, adapted bool) string {
	var b strings.Builder
	made, between, data, block := false, true, false, false
	quote := ""
	for line := range strings.Lines(script) {
		trimmed := strings.TrimSpace(line)
		switch {
		case data:
			data = trimmed != `\.`
			b.WriteString(line)
			continue
		case quote == "" && between && made && !block && asks.MatchString(line):
			b.WriteString(waitLine + "\n")
			made = false
		}
		if quote == "" && between && digits.MatchString(line) {
			line = "-- " + line
		}
		if adapted && quote == "" && between {
			line = temporary.ReplaceAllString(line, "$1$2")
		}
		if adapted && quote == "" {
			line = nameColumn.ReplaceAllString(line, "${1}text$2")
		}
		b.WriteString(line)
		if quote == "" && between {
			made = made || makesTable.MatchString(line)
			if begins.MatchString(line) {
				block = true
			}
			if ends.MatchString(line) {
				block = false
			}
			data = fromStdin.MatchString(line)
		}
		for _, q := range dollar.FindAllString(line, -1) {
			switch quote {
			case "":
				quote = q
			case q:
				quote = ""
			}
		}
		code, _, _ := strings.Cut(trimmed, "--")
		if code = strings.TrimSpace(code); code != "" {
			between = strings.HasSuffix(code, ";") || strings.HasPrefix(code, `\`) || strings.Contains(code, `\g`)
		}
	}
	return b.String()
}

// selects counts statements that ask, about.
func selects(script string) int {
	n, between := 0, true
	for line := range strings.Lines(script) {
		code, _, _ := strings.Cut(line, "--")
		if code = strings.TrimSpace(code); code == "" {
			continue
		}
		if between && asks.MatchString(code) {
			n++
		}
		between = strings.HasSuffix(code, ";")
	}
	return n
}
