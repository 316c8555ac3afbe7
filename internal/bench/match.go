package bench

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// tolerance is how far numbers that depend on the order of summation may be apart,
// relative to the larger.
const tolerance = 1e-9

// difference says where got is not want, "" if nowhere: byte for byte, but for the order
// of rows, the last digits of columns and what ties decide where the query leaves them open.
func (q statement) difference(want, got answer) string {
	switch {
	case want.columns != got.columns:
		return fmt.Sprintf("columns:\n%sinstead of\n%s", got.columns, want.columns)
	case want.tag != got.tag:
		return fmt.Sprintf("%s instead of %s", got.tag, want.tag)
	}
	return q.rowsDiffer(want.rows, got.rows, func(column int, want, got string) bool {
		return slices.Contains(q.open, column) || slices.Contains(q.inexact, column) && near(want, got)
	})
}

// duckdbDiffers says where DuckDB's rows are not Postgres', "" if nowhere. Numbers that
// are no integers in Postgres are compared by value: DuckDB averages numeric as double
// precision and writes other digits. Its char(n) has no blanks at the end.
func (q statement) duckdbDiffers(want answer, rows []byte) string {
	return q.rowsDiffer(want.rows, rows, func(column int, a, b string) bool {
		if column >= len(want.types) || slices.Contains(q.open, column) {
			return column < len(want.types)
		}
		switch want.types[column] {
		case pgtype.NumericOID, pgtype.Float4OID, pgtype.Float8OID:
			return near(a, b)
		case pgtype.TimestampOID: // it has a zone there
			return a+"+00" == b
		case pgtype.BPCharOID:
			return strings.TrimRight(a, " ") == strings.TrimRight(b, " ")
		}
		return false
	})
}

// rowsDiffer compares rows of COPY text; alike is asked about values that are not the
// same text.
func (q statement) rowsDiffer(want, got []byte, alike func(column int, want, got string) bool) string {
	if bytes.Equal(want, got) {
		return ""
	}
	if len(q.tied) > 0 { // the same rows, and in the order of all other columns
		rows := q
		rows.unordered, rows.tied = true, nil
		if d := rows.rowsDiffer(want, got, alike); d != "" {
			return d
		}
		of := alike
		alike = func(column int, want, got string) bool {
			return slices.Contains(q.tied, column) || of(column, want, got)
		}
	}
	a, b := lines(want), lines(got)
	if q.unordered {
		slices.Sort(a)
		slices.Sort(b)
	}
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		x, y := strings.Split(a[i], "\t"), strings.Split(b[i], "\t")
		same := len(x) == len(y)
		for k := 0; same && k < len(x); k++ {
			same = x[k] == y[k] || alike(k, x[k], y[k])
		}
		if !same {
			return fmt.Sprintf("row %d is %q instead of %q", i+1, b[i], a[i])
		}
	}
	if len(a) != len(b) {
		return fmt.Sprintf("%d rows instead of %d", len(b), len(a))
	}
	return ""
}

// lines are the rows without what ends them.
func lines(rows []byte) []string {
	if len(rows) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(rows), "\n"), "\n")
}

// near reports whether two numbers are the same but for rounding.
func near(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	if err != nil {
		return false
	}
	y, err := strconv.ParseFloat(b, 64)
	if err != nil {
		return false
	}
	return x == y || math.IsNaN(x) && math.IsNaN(y) || math.Abs(x-y) <= tolerance*max(math.Abs(x), math.Abs(y))
}
